/* Values: objects of the heap, owned words, bytes of a region. */
#include "future/future.h"

const ebb_type ebb__moved_type = {"moved", 0, NULL, NULL, 0};
const ebb_type ebb__nested_type = {"future", sizeof(ebb_future), NULL, NULL,
                                   EBB__TYPE_OWN | EBB__TYPE_FUTURE};

void *ebb__object_new(ebb_cx *cx, const ebb_type *type, size_t size, ebb_status *st) {
    ebb__region_futures *s = ebb__region_futures_get(cx, st);
    if (s == NULL) return NULL;
    ebb__cell *c = ebb__alloc_slow(s->heap, type, sizeof *c + size);
    if (c == NULL) {
        *st = ebb__refusal(s->heap);
        return NULL;
    }
    ebb__member_add(s, c);
    if (ebb__wants_step(s->heap)) ebb__region_futures_wake(s);
    return c + 1;
}

void *ebb_gc_new(ebb_cx *cx, const ebb_type *type) {
    ebb_status st = EBB_OK;
    if (type == NULL || type->size == 0 || type->reserved != 0 || type->size > SIZE_MAX / 2) return NULL;
    return ebb__object_new(cx, type, type->size, &st);
}

ebb_value ebb_value_object(void *object) {
    return object == NULL ? ebb_value_none() : (ebb_value){((ebb__cell *)object - 1)->type, {object}};
}

ebb_value ebb_value_future(ebb_future *f) {
    ebb_status st = ebb__usable(f);
    return (ebb_value){&ebb__nested_type, {st == EBB_OK ? f : ebb__failed(st)}};
}

/* An object is a member of the first region that holds it. Every other region that holds it has a holder as member. */
typedef struct holder {
    ebb__cell cell;
    ebb__cell *object;
} holder;

static void trace_holder(void *object, ebb_gc_marker *t) {
    ebb__trace_cell(t, ((const holder *)object)->object);
}

static const ebb_type holder_type = {"holder", sizeof(holder), trace_holder, NULL, EBB__TYPE_OWN};

ebb_status ebb__object_hold(ebb_cx *cx, ebb__cell *c) {
    ebb_status st = EBB_OK;
    if (c == NULL || c->type->reserved != 0) return EBB_OK;
    ebb__region_futures *s = ebb__region_futures_get(cx, &st);
    if (s == NULL) return st;
    if (ebb__heap_of(c) != s->heap) return EBB_ERR_FOREIGN;
    ebb__shade(s->heap, c);
    if (c->member == 0) {
        uint32_t flags = c->region & EBB__CELL_FLAGS;
        ebb__member_add(s, c);
        c->region |= flags;
        return EBB_OK;
    }
    holder *h = ebb__heap_alloc(s->heap, &holder_type, sizeof *h);
    if (h == NULL) return ebb__refusal(s->heap);
    h->object = c;
    c->region |= EBB__CELL_SHARED;
    ebb__member_add(s, &h->cell);
    return EBB_OK;
}

static holder *find_holder(const ebb__region_futures *s, const ebb__cell *c) {
    for (uint32_t i = s->members_n; i > 0; i--) {
        holder *h = (holder *)(void *)ebb__member_cell(s->members[i - 1]);
        if (h->cell.type == &holder_type && h->object == c) return h;
    }
    return NULL;
}

ebb_value ebb_value_take(ebb_cx *cx, ebb_value *v) {
    ebb_value got = *v;
    if (ebb__object_hold(cx, ebb__value_cell(&got)) != EBB_OK)
        return ebb_value_none(); /* the value stays with its owner */
    *v = ebb_value_none();
    return got;
}

void ebb_value_discard(ebb_cx *cx, ebb_value v) {
    ebb__cell *c = ebb__value_cell(&v);
    if (c == NULL) {
        ebb__dispose(v);
        return;
    }
    ebb__region_futures *s = ebb__region_futures_here(cx);
    if (c->type->reserved != 0 || ebb__heap_of(c) != ebb__heap_at(ebb__rt_of(cx))) return;
    holder *h = s != NULL && c->region & EBB__CELL_SHARED ? find_holder(s, c) : NULL;
    if (h != NULL) {
        ebb__shade(s->heap, c);
        ebb__member_remove(s, &h->cell);
        ebb__heap_free_cell(s->heap, &h->cell);
    } else if (s != NULL && c->member != 0 && ebb__region_futures_of_cell(s->heap, c) == s) {
        ebb__member_remove(s, c);
    } else {
        ebb__object_let_go(c);
    }
    ebb__dispose(v);
}

/* ---- bytes of a region ------------------------------------------------------------------------------------ */

typedef struct bytes {
    ebb_region region;
    void *at;
    size_t n;
} bytes;

static const ebb_type bytes_type = {"bytes", sizeof(bytes), NULL, NULL, 0};

ebb_status ebb_bytes_new(ebb_cx *cx, size_t n, ebb_value *out, void **at) {
    ebb_status st = EBB_OK;
    *out = ebb_value_none();
    *at = NULL;
    bytes *b = ebb__object_new(cx, &bytes_type, sizeof *b, &st);
    if (b == NULL) return st;
    ebb__region_futures *s = ebb__region_futures_get(cx, &st);
    b->at = s == NULL || n > SIZE_MAX / 2 ? NULL : ebb__arena_alloc(&s->arena, n);
    if (b->at == NULL) {
        ebb_value_discard(cx, ebb_value_object(b));
        return EBB_ERR_NOMEM;
    }
    b->region = s->region;
    b->n = n;
    *out = ebb_value_object(b);
    *at = b->at;
    return EBB_OK;
}

ebb_status ebb_bytes_of(ebb_cx *cx, const ebb_value *v, void **at, size_t *n) {
    if (v->type != &bytes_type || v->as.p == NULL) return EBB_ERR_INVALID;
    const bytes *b = v->as.p;
    ebb__region *r;
    *at = NULL;
    *n = 0;
    if (ebb__region_get(ebb__rt_of(cx), b->region, &r) != EBB_OK || ebb__region_callbacks(r) == NULL)
        return EBB_ERR_CLOSED;
    *at = b->at;
    *n = b->n;
    return EBB_OK;
}
