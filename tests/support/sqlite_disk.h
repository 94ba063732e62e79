/* A disk of a test below SQLite: a VFS over the system's that loses power, is full, or fails.
 *
 * Writes go to the real files and are remembered until their sync. When the power is cut, at the n-th operation, every
 * operation fails from then on, and what survives is: all that was synced, and of the rest each write whole, in part (sectors
 * of 512 bytes) or not at all, by chance. So later writes may survive earlier ones. */
#ifndef EBB_TESTS_SQLITE_DISK_H
#define EBB_TESTS_SQLITE_DISK_H

#include <stdbool.h>
#include <stdint.h>

#define DISK_VFS "ebb-test-disk"

typedef enum disk_op { DISK_READ = 1, DISK_WRITE = 2, DISK_SYNC = 4, DISK_TRUNCATE = 8 } disk_op;

/* A new disk: nothing is tracked, nothing fails. Files that are opened from now on are on it. */
void disk_begin(uint64_t seed);
/* Frees what it remembers. SQLite uses the system's again. */
void disk_end(void);
/* The power is cut at the n-th write, truncation or sync from now on, from 1 on; 0: never. */
void disk_cut_at(uint64_t n);
bool disk_is_cut(void);
/* Writes what has survived into another directory. */
void disk_survive(const char *dir);
/* The n-th operation of the kinds in `ops` fails with SQLite's `code`, and with `forever` all after it. 0: none. */
void disk_fail_at(uint64_t n, unsigned ops, int code, bool forever);
uint64_t disk_failures(void); /* so far */
/* Most bytes of all files; 0: no limit. */
void disk_room(uint64_t bytes);
uint64_t disk_used(void);

#endif
