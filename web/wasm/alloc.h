/* The module's allocator. Whoever frees says how much it was, so a block needs no header: it is a power of two
 * of bytes, from a list of its size or from the end of the heap, which grows by pages. What is given back stays
 * on its list. */
#ifndef EBB__WEB_ALLOC_H
#define EBB__WEB_ALLOC_H

#include <ebb/base.h>

ebb_allocator web_allocator(void);

#endif
