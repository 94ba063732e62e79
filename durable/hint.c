/* Hints: from whichever thread has committed to the listeners of a store, on the thread of its loop. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
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

static void tell_list(ebb__hints *h, ebb__hint_listener *first, const ebb_provider_hint *hint) {
    for (ebb__hint_listener *l = first; l != NULL; l = h->next) {
        h->next = l->next;
        l->hint(l->arg, hint);
    }
    h->next = NULL;
}

static ebb__hint_listener **list_of(ebb__hints *h, uint64_t key) {
    return &h->of_key[ebb__hash_word(key) % EBB__HINT_LISTS];
}

static void tell(ebb__hints *h, const ebb_provider_hint *hint) {
    const bool ended = hint->kind == EBB_PROVIDER_HINT_ENDED, lost = hint->kind == EBB_PROVIDER_HINT_LOST;
    h->ends += ended || lost;
    tell_list(h, h->listeners, hint);
    if (ended) tell_list(h, *list_of(h, hint->key), hint);
    for (size_t i = 0; lost && i < EBB__HINT_LISTS; i++) tell_list(h, h->of_key[i], hint);
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

static void link(ebb__hint_listener **list, ebb__hint_listener *l) {
    l->list = list;
    l->prev = NULL;
    l->next = *list;
    if (l->next != NULL) l->next->prev = l;
    *list = l;
}

void ebb__hints_listen(ebb__hints *h, ebb__hint_listener *l) {
    link(&h->listeners, l);
}

void ebb__hints_listen_for(ebb__hints *h, ebb__hint_listener *l, uint64_t key) {
    ebb__hints_unlisten(h, l);
    link(list_of(h, key), l);
}

void ebb__hints_tell_awaited(ebb__hints *h) {
    for (ebb__hint_listener *l = h->listeners; l != NULL; l = l->next) {
        if (l->awaited != NULL) l->awaited(l->arg);
    }
}

void ebb__hints_tell_away(ebb__hints *h, const char *text, uint64_t span) {
    for (ebb__hint_listener *l = h->listeners; l != NULL; l = l->next) {
        if (l->away != NULL) l->away(l->arg, text, span);
    }
}

static void tell_closed(ebb__hints *h, ebb__hint_listener **list) {
    while (*list != NULL) {
        ebb__hint_listener *l = *list;
        ebb__hints_unlisten(h, l);
        if (l->closed != NULL) l->closed(l->arg);
    }
}

void ebb__hints_tell_closed(ebb__hints *h) {
    tell_closed(h, &h->listeners);
    for (size_t i = 0; i < EBB__HINT_LISTS; i++) tell_closed(h, &h->of_key[i]);
}

void ebb__hints_unlisten(ebb__hints *h, ebb__hint_listener *l) {
    if (l->list == NULL) return;
    if (h->next == l) h->next = l->next;
    if (l->prev != NULL) l->prev->next = l->next;
    else *l->list = l->next;
    if (l->next != NULL) l->next->prev = l->prev;
    l->list = NULL;
}
