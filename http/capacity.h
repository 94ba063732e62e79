/* What a server has room for: descriptors and memory of the process, which it shares with others. */
#ifndef EBB__HTTP_CAPACITY_H
#define EBB__HTTP_CAPACITY_H

#include <ebb/http.h>

/* How many descriptors the process may have, less a reserve for files, logs and the pool. */
uint32_t ebb__room_descriptors(void);
/* Sets `connections` and `stalled` where they are 0, and lowers `connections` to what the descriptors allow. */
void ebb__room_for_descriptors(ebb_http_limits *l, uint32_t descriptors);
/* What a runtime takes for stacks, in use and kept; for tasks, regions and the like that are in use; and for
 * futures, past what it lets lie between two collections. */
uint64_t ebb__runtime_bytes(const ebb_runtime *rt);
/* Gives the system the pages back that the allocator keeps, if that is libc's. */
void ebb__room_give_back(void);

#endif
