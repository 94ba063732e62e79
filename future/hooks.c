/* What the program adds to a future: callbacks, cleanups and objects that it holds. They are one list, which is sorted
 * when the future ends and then worked off. */
#include "future/future.h"

enum { HOOK_DONE = 1, HOOK_CANCEL, HOOK_CLEANUP, HOOK_HOLD };

static void trace_hook(void *object, ebb_gc_marker *t) {
    const ebb__hook *k = object;
    ebb__trace_cell(t, k->next);
    if (k->what == HOOK_HOLD) ebb_gc_mark(t, k->arg);
}

static const ebb_type hook_type = {"hook", sizeof(ebb__hook), trace_hook, NULL, EBB__TYPE_OWN};

/* The place of a hook in a sorted list: callbacks in the order in which they were added, a cleanup before other
 * cleanups. */
static ebb__hook **place_of(ebb_future *f, uint8_t what) {
    ebb__hook **at = &f->hooks;
    while (*at != NULL && (what == HOOK_HOLD || (*at)->what < HOOK_CLEANUP)) at = &(*at)->next;
    return at;
}

static ebb_status hook_add(ebb_future *f, uint8_t what, ebb__hook model) {
    ebb_status st = ebb__usable(f);
    if (st != EBB_OK) return st;
    if (ebb__is_static(f)) return ebb__status_of(f);
    ebb__heap *h = ebb__heap_of(f);
    if (EBB__UNLIKELY(ebb__region_futures_of(f)->cx == NULL)) {
        st = ebb__region_futures_ensure_runner(ebb_runtime_host(h->rt), ebb__region_futures_of(f));
        if (st != EBB_OK) return st;
    }
    ebb__hook *k = ebb__heap_alloc(h, &hook_type, sizeof *k);
    if (k == NULL) return ebb__refusal(h);
    k->fn = model.fn;
    k->arg = model.arg;
    k->what = what;
    ebb__shade(h, f->hooks);
    ebb__hook **at = f->flags & EBB__F_SORTED ? place_of(f, what) : &f->hooks;
    k->next = *at;
    *at = k;
    if (f->flags & EBB__F_FINISHED) ebb__enqueue_future(f);
    return EBB_OK;
}

ebb_status ebb_future_on_done(ebb_future *f, ebb_done_fn fn, void *arg) {
    if (fn == NULL) return EBB_ERR_INVALID;
    return hook_add(f, HOOK_DONE, (ebb__hook){.fn.done = fn, .arg = arg});
}

ebb_status ebb_future_on_cancel(ebb_future *f, ebb_cancel_fn fn, void *arg) {
    if (fn == NULL) return EBB_ERR_INVALID;
    return hook_add(f, HOOK_CANCEL, (ebb__hook){.fn.cancel = fn, .arg = arg});
}

ebb_status ebb_future_on_cleanup(ebb_future *f, ebb_cleanup_fn fn, void *arg) {
    if (fn == NULL) return EBB_ERR_INVALID;
    return hook_add(f, HOOK_CLEANUP, (ebb__hook){.fn.cleanup = fn, .arg = arg});
}

ebb_status ebb_future_hold(ebb_future *f, void *object) {
    if (object == NULL) return EBB_ERR_INVALID;
    if (ebb__usable(f) == EBB_OK && !ebb__is_static(f) && !ebb__is_static(object) &&
        ebb__heap_of(object) != ebb__heap_of(f)) {
        return EBB_ERR_FOREIGN;
    }
    ebb_status st = hook_add(f, HOOK_HOLD, (ebb__hook){.arg = object});
    if (st != EBB_OK) return st;
    ebb__object_let_go(ebb__cell_of(object));
    return EBB_OK;
}

/* Callbacks first, in the order in which they were added; then cleanups, the last added first; held objects last. */
static void sort_hooks(ebb_future *f) {
    ebb__hook *callbacks = NULL, *cleanups = NULL, **tail = &cleanups, *held = NULL, *next;
    for (ebb__hook *k = f->hooks; k != NULL; k = next) { /* the list has the last added first */
        next = k->next;
        if (k->what == HOOK_CLEANUP) {
            *tail = k;
            tail = &k->next;
        } else {
            ebb__hook **list = k->what == HOOK_HOLD ? &held : &callbacks;
            k->next = *list;
            *list = k;
        }
    }
    *tail = held;
    for (tail = &callbacks; *tail != NULL; tail = &(*tail)->next) continue;
    *tail = cleanups;
    f->hooks = callbacks;
    f->flags |= EBB__F_SORTED;
}

static void run_hook(ebb__region_futures *s, ebb_future *f, const ebb__hook *k) {
    ebb_future_state state = ebb__state_of(f);
    ebb_value none = ebb_value_none();
    switch (k->what) {
    case HOOK_DONE:
        if (state == EBB_FUTURE_CANCELLED) break;
        k->fn.done(s->cx, ebb__status_of(f), state == EBB_FUTURE_COMPLETED ? &f->value : &none, k->arg);
        break;
    case HOOK_CANCEL:
        if (state == EBB_FUTURE_CANCELLED) k->fn.cancel(s->cx, ebb__kind_of_cancel(f), k->arg);
        break;
    case HOOK_CLEANUP: k->fn.cleanup(s->cx, k->arg); break;
    default: break;
    }
}

bool ebb__future_hooks_run(ebb__region_futures *s, ebb_future *f, uint32_t *work) {
    for (; f->hooks != NULL; --*work) {
        if (*work == 0) return false;
        if (!(f->flags & EBB__F_SORTED)) sort_hooks(f); /* a callback may have added hooks */
        ebb__hook k = *f->hooks; /* the cell is freed before the callback runs, which may collect */
        ebb__heap_free_cell(s->heap, &f->hooks->cell);
        f->hooks = k.next;
        ebb__shade(s->heap, k.next);
        if (k.what == HOOK_HOLD) ebb__shade(s->heap, ebb__cell_of(k.arg));
        run_hook(s, f, &k);
    }
    return true;
}
