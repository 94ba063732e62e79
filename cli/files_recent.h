/* cli/files_recent.h - what the requests of this turn of the loop have found.
 *
 * Requests for one path that are received in one turn share a lookup, and the bytes of a small file. Everything is
 * forgotten at the end of the turn. A connection is read once a turn, so its next request sees each change that was made
 * after its last response; on another connection, a request may still be answered with what the present turn has found. A
 * path has one place, by its hash; another path takes the place over.
 */
#ifndef EBB_CLI_FILES_RECENT_H
#define EBB_CLI_FILES_RECENT_H

#include <stdint.h>
#include <sys/types.h>

#include <ebb/ebb.h>

enum {
    EBB__RECENT_PLACES = 16,
    EBB__RECENT_PATH = 255,   /* longer paths are not shared */
    EBB__RECENT_BYTES = 16384 /* of a small file */
};

/* The regular file at the path of a request. `turn` is that of the lookup; 0: there is none. */
typedef struct ebb__recent {
    uint64_t turn;
    const char *type;
    dev_t device;
    ino_t inode;
    uint64_t size;
    uint32_t bytes_n; /* size: `bytes` has all of the file; 0: none of it */
    char path[EBB__RECENT_PATH + 1];
    char bytes[EBB__RECENT_BYTES];
} ebb__recent;

typedef struct ebb__recents {
    ebb__recent at[EBB__RECENT_PLACES];
} ebb__recents;

/* The present turn of the loop; never 0. */
uint64_t ebb__recent_turn(const ebb_cx *cx);
/* What was found at the path in the turn in which a request was received, or later. NULL: nothing. */
const ebb__recent *ebb__recent_find(const ebb__recents *all, const char *path, uint64_t turn);
/* Takes the place of the path, and forgets what was there. The caller fills all but `path`, `turn` last. NULL: the path is
 * too long. */
ebb__recent *ebb__recent_take(ebb__recents *all, const char *path);

#endif
