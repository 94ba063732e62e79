/* The resources that a server may use: descriptors and memory, which it shares with the rest of the process. */
#ifndef EBB__HTTP_CAPACITY_H
#define EBB__HTTP_CAPACITY_H

#include <ebb/http.h>

/* The number of descriptors that the process may have, less a reserve for files, logs and the pool. */
uint32_t ebb__room_descriptors(uint32_t limit);
/* Sets `connections` and `stalled` where they are 0, and lowers `connections` to what the descriptors allow. */
void ebb__room_for_descriptors(ebb_http_limits *l, uint32_t descriptors);
/* Memory of a runtime: stacks, in use and kept; tasks, regions and other records in use; and futures, beyond what it
 * keeps between two collections. */
uint64_t ebb__runtime_bytes(const ebb_runtime *rt);
/* Returns free pages of the allocator to the system, if the allocator is libc's. */
void ebb__room_give_back(void);

#endif
