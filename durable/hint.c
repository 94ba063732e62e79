/* Hints: from whichever thread has committed to the listeners of a store, on the thread of its loop. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "base/alloc.h"
#include "durable/store.h"

typedef struct record {
    ebb_provider_hint hint; /* its `queue` is NULL: the text is behind it */
    size_t text;            /* bytes, with the 0 */
} record;

enum { FIRST_ROOM = 1024 };

static size_t aligned(size_t n) {
    return (n + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

static bool has_room(ebb__hints *h, size_t n) {
    ebb__hint_buffer *b = &h->buffer;
    if (b->room - b->n >= n) return true;
    size_t room = b->room != 0 ? b->room : FIRST_ROOM;
    while (room - b->n < n) room *= 2;
    if (room > EBB__HINT_BYTES) return false;
    uint8_t *at = ebb__resize(&h->allocator, b->at, b->room, room);
    if (at == NULL) return false;
    b->at = at;
    b->room = room;
    return true;
}

static void put(ebb__hints *h, const ebb_provider_hint *hint) {
    const char *queue = hint->queue != NULL ? hint->queue : "";
    record r = {*hint, strlen(queue) + 1};
    const size_t n = sizeof r + aligned(r.text);
    if (h->lost || !has_room(h, n)) {
        h->lost = true;
        return;
    }
    uint8_t *at = h->buffer.at + h->buffer.n;
    r.hint.queue = NULL;
    memcpy(at, &r, sizeof r);
    memcpy(at + sizeof r, queue, r.text);
    h->buffer.n += n;
}

void ebb__hints_add(ebb__hints *h, const ebb_provider_hint *hint) {
    (void)pthread_mutex_lock(&h->lock);
    put(h, hint);
    const bool posts = !h->waits;
    h->waits = true;
    (void)pthread_mutex_unlock(&h->lock);
    if (!posts || ebb__post(h->heap, &h->posted)) return;
    (void)pthread_mutex_lock(&h->lock); /* the runtime was freed: nobody listens */
    h->waits = false;
    (void)pthread_mutex_unlock(&h->lock);
}

static void tell(ebb__hints *h, const ebb_provider_hint *hint) {
    for (ebb__hint_listener *l = h->listeners; l != NULL; l = h->next) {
        h->next = l->next;
        l->hint(l->arg, hint);
    }
    h->next = NULL;
}

static void tell_all(ebb__hints *h, const ebb__hint_buffer *b) {
    record r;
    for (size_t i = 0; i < b->n; i += sizeof r + aligned(r.text)) {
        memcpy(&r, b->at + i, sizeof r);
        r.hint.queue = (const char *)(b->at + i + sizeof r);
        tell(h, &r.hint);
    }
}

static void take(ebb_runtime *rt, ebb__message *m) {
    ebb__hints *h = (ebb__hints *)(void *)m;
    (void)pthread_mutex_lock(&h->lock);
    ebb__hint_buffer b = h->buffer;
    const bool lost = h->lost;
    memset(&h->buffer, 0, sizeof h->buffer);
    h->waits = h->lost = false;
    (void)pthread_mutex_unlock(&h->lock);
    if (rt != NULL && !h->dead) {
        tell_all(h, &b);
        if (lost) tell(h, &(ebb_provider_hint){.kind = EBB_PROVIDER_HINT_LOST, .queue = ""});
    }
    ebb__free(&h->allocator, b.at, b.room);
    if (h->dead) ebb__hints_end(h);
}

ebb_status ebb__hints_init(ebb__hints *h, ebb_allocator a, ebb__heap *heap, void (*freed)(ebb__hints *h)) {
    memset(h, 0, sizeof *h);
    h->posted.take = take;
    h->allocator = a;
    h->heap = heap;
    h->freed = freed;
    return pthread_mutex_init(&h->lock, NULL) == 0 ? EBB_OK : EBB_ERR_NOMEM;
}

void ebb__hints_end(ebb__hints *h) {
    h->dead = true;
    (void)pthread_mutex_lock(&h->lock);
    const bool waits = h->waits;
    (void)pthread_mutex_unlock(&h->lock);
    if (waits) return; /* the message is in the runtime's inbox, and comes back */
    ebb__free(&h->allocator, h->buffer.at, h->buffer.room);
    (void)pthread_mutex_destroy(&h->lock);
    h->freed(h);
}

/* ---- listeners ---------------------------------------------------------------------------------------------- */

void ebb__hints_listen(ebb__hints *h, ebb__hint_listener *l) {
    l->next = h->listeners;
    h->listeners = l;
}

void ebb__hints_unlisten(ebb__hints *h, ebb__hint_listener *l) {
    ebb__hint_listener **at = &h->listeners;
    while (*at != NULL && *at != l) at = &(*at)->next;
    if (*at == l) *at = l->next;
    if (h->next == l) h->next = l->next;
}
