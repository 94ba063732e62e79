/* Texts that name tasks and are no literals. A trace and its reports keep names by pointer, and know a text again by its
 * address: so a text has one address, and keeps it. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "loop/loop.h"

struct ebb__loop_text {
    struct ebb__loop_text *next;
    size_t n; /* with the 0 at its end */
    char text[];
};

const char *ebb__loop_text(ebb_loop *l, const char *text) {
    size_t n = strlen(text) + 1;
    for (const struct ebb__loop_text *t = l->texts; t != NULL; t = t->next) {
        if (t->n == n && memcmp(t->text, text, n) == 0) return t->text;
    }
    struct ebb__loop_text *t = ebb__alloc(&l->allocator, sizeof *t + n);
    if (t == NULL) return NULL;
    t->next = l->texts;
    t->n = n;
    memcpy(t->text, text, n);
    l->texts = t;
    return t->text;
}

void ebb__loop_texts_free(ebb_loop *l) {
    for (struct ebb__loop_text *t = l->texts, *next; t != NULL; t = next) {
        next = t->next;
        ebb__free(&l->allocator, t, sizeof *t + t->n);
    }
    l->texts = NULL;
}
