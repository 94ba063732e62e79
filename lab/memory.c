/* Memory of the lab: blocks that live for a round or a run, and what runtimes leave for those of the next run. */
#include "lab/lab.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

struct ebb__lab_block {
    ebb__lab_block *next;
    size_t size;
    uint64_t align;
    unsigned char bytes[];
};

/* ---- blocks -------------------------------------------------------------------------------------------- */

bool ebb__lab_grow(ebb_lab *lab, void **items, size_t *room, size_t n, size_t size) {
    if (n <= *room) return true;
    size_t wanted = *room == 0 ? 64 : *room;
    while (wanted < n) wanted *= 2;
    void *p = ebb__resize(&lab->allocator, *items, *room * size, wanted * size);
    if (p == NULL) {
        ebb__lab_stop(lab, EBB_ERR_NOMEM, "", NULL);
        return false;
    }
    *items = p;
    *room = wanted;
    return true;
}

static void *add_block(ebb_lab *lab, ebb__lab_block **blocks, size_t n) {
    ebb__lab_block *b = ebb__alloc(&lab->allocator, sizeof *b + n);
    if (b == NULL) {
        ebb__lab_stop(lab, EBB_ERR_NOMEM, "", NULL);
        return NULL;
    }
    memset(b, 0, sizeof *b + n);
    b->next = *blocks;
    b->size = n;
    *blocks = b;
    return b->bytes;
}

void *ebb_lab_alloc(ebb_lab *lab, size_t n) {
    return add_block(lab, &lab->blocks, n);
}

const char *ebb__lab_string(ebb_lab *lab, const char *text) {
    for (ebb__lab_block *b = lab->strings; b != NULL; b = b->next) {
        if (strcmp((const char *)b->bytes, text) == 0) return (const char *)b->bytes;
    }
    size_t n = strlen(text) + 1;
    char *copy = add_block(lab, &lab->strings, n);
    return copy == NULL ? NULL : memcpy(copy, text, n);
}

void ebb__lab_blocks_free(ebb_lab *lab, ebb__lab_block **blocks) {
    while (*blocks != NULL) {
        ebb__lab_block *b = *blocks;
        *blocks = b->next;
        ebb__free(&lab->allocator, b, sizeof *b + b->size);
    }
}

/* ---- kept between runs --------------------------------------------------------------------------------- */

/* Each runtime has a few blocks of a megabyte: the ring of its trace, the pages of its heap. malloc gives them back to
 * the system at the end of each run, and all the small blocks beside them; to get zeroed pages again for the next run
 * takes several times as long as the run. So they are kept, in a list, each with this at its beginning. A block of the
 * size of a kept one is that one. There are at most MOST, because sizes that never come again would fill the memory. */
struct ebb__lab_kept {
    ebb__lab_kept *next;
    size_t size;
};

enum { BIG = 64 * 1024, MOST = 4 * EBB_LAB_RUNTIMES };

static void *take_kept(ebb_lab *lab, size_t size) {
    ebb__lab_kept **at = &lab->kept;
    while (*at != NULL && (*at)->size != size) at = &(*at)->next;
    ebb__lab_kept *k = *at;
    if (k == NULL) return NULL;
    *at = k->next;
    lab->kept_n--;
    return k;
}

static void *keeping(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    ebb_lab *lab = ctx;
    if (ptr == NULL && new_size >= BIG) {
        void *kept = take_kept(lab, new_size);
        if (kept != NULL) return kept;
    }
    if (ptr == NULL || new_size != 0 || old_size < BIG || lab->kept_n == MOST)
        return lab->allocator.fn(lab->allocator.ctx, ptr, old_size, new_size);
    ebb__lab_kept *k = ptr;
    *k = (ebb__lab_kept){lab->kept, old_size};
    lab->kept = k;
    lab->kept_n++;
    return NULL;
}

ebb_allocator ebb__lab_keeping(ebb_lab *lab) {
    return (ebb_allocator){keeping, lab};
}

void ebb__lab_kept_free(ebb_lab *lab) {
    while (lab->kept != NULL) {
        ebb__lab_kept *k = lab->kept;
        lab->kept = k->next;
        lab->kept_n--;
        ebb__free(&lab->allocator, k, k->size);
    }
    assert(lab->kept_n == 0);
}
