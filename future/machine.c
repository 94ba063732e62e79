/* Requests to machines as futures. machine/ knows no futures: this file joins the two. */
#include <ebb/future.h>
#include <ebb/machine.h>

#include "base/alloc.h"
#include "future/heap.h"
#include "future/machine.h"

/* ---- the value ------------------------------------------------------------------------------------------ */

typedef struct answer {
    ebb_machine_answer seen; /* what the program sees */
    ebb_allocator allocator;
    void (*drop)(void *payload);
    max_align_t bytes[];
} answer;

static void answer_free(void *p) {
    answer *a = p;
    ebb_allocator allocator = a->allocator;
    if (a->drop != NULL) a->drop(a->bytes);
    ebb__free(&allocator, a, sizeof *a + a->seen.size);
}

static const ebb_type answer_type = {"machine answer", 0, NULL, answer_free, 0};

/* Another copy of the payload, as a second receiver of a publish has one. NULL: no memory. */
static answer *copy_of(const ebb_allocator *allocator, const ebb_machines *ms, const ebb_message *m) {
    const ebb_machine_kind *kind = ebb_machines_kind(ms, m->kind);
    answer *a = ebb__alloc(allocator, sizeof *a + m->size);
    if (a == NULL) return NULL;
    a->seen = (ebb_machine_answer){a->bytes, m->size, m->kind};
    a->allocator = *allocator;
    a->drop = kind == NULL ? NULL : kind->drop;
    if (m->size > 0) memcpy(a->bytes, m->payload, m->size);
    if (kind != NULL && kind->keep != NULL) kind->keep(a->bytes);
    return a;
}

/* ---- asking ---------------------------------------------------------------------------------------------- */

/* Lives until it was answered or cancelled. */
typedef struct asking {
    ebb_runtime *rt;
    ebb_machines *ms;
    ebb_future *future;
    ebb_request request;
    ebb_allocator allocator;
} asking;

static void end(asking *a) {
    ebb_allocator allocator = a->allocator;
    ebb__free(&allocator, a, sizeof *a);
}

static ebb_status status_of(uint8_t failure) {
    switch (failure) {
    case EBB_REQUEST_TIMEOUT: return EBB_TIMEOUT;
    case EBB_REQUEST_FAULTED: return EBB_FAULTED;
    case EBB_REQUEST_UNHANDLED: return EBB_ERR_UNHANDLED;
    default: return EBB_ERR_NOT_RUNNING;
    }
}

static void answered(void *arg, const ebb_message *m) {
    asking *a = arg;
    if (ebb__heap_at(a->rt) == NULL) { /* the runtime is being freed, and its futures are gone */
        end(a);
        return;
    }
    answer *value = m->failure != 0 ? NULL : copy_of(&a->allocator, a->ms, m);
    if (value != NULL) (void)ebb_promise_settle(a->future, ebb_value_owned(&answer_type, value));
    else (void)ebb_promise_reject(a->future, m->failure != 0 ? status_of(m->failure) : EBB_ERR_NOMEM);
    end(a);
}

static void cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    asking *a = arg;
    (void)cx;
    (void)ebb_machine_forget(a->ms, a->request);
    (void)ebb_promise_reject(f, EBB_CANCELLED);
    end(a);
}

static const ebb_operation operation = {"request to a machine", cancel, NULL};

ebb_future *ebb__machine_ask(ebb_cx *cx, ebb_machines *ms, const ebb__question *q, const char *site,
                             bool *taken) {
    const ebb_allocator *allocator = ebb__rt_allocator(ebb__rt_of(cx));
    asking *a = ebb__alloc(allocator, sizeof *a);
    *taken = false;
    if (a == NULL) return ebb_future_failed_site(cx, EBB_ERR_NOMEM, site);
    *a = (asking){.rt = ebb__rt_of(cx), .ms = ms, .allocator = *allocator};
    ebb_future *f = a->future = ebb_promise_new_site(cx, &operation, a, site);
    if (ebb_future_state_of(f) != EBB_FUTURE_PENDING) { /* it has failed */
        end(a);
        return f;
    }
    /* A request to a machine that has ended is answered before the call returns. */
    ebb_request request = ebb_machine_call(ms, q->to, q->kind, q->payload, q->size, q->within, answered, a);
    ebb_status st = ebb_id_status(request.id);
    *taken = st == EBB_OK;
    if (st != EBB_OK) {
        (void)ebb_promise_reject(f, st);
        end(a);
    } else if (ebb_future_state_of(f) == EBB_FUTURE_PENDING) {
        a->request = request;
    }
    return f;
}

ebb_future *ebb_machine_ask_site(ebb_cx *cx, ebb_machines *ms, uint64_t to, uint16_t kind,
                                 const void *payload, size_t size, uint64_t within, const char *site) {
    const ebb__question q = {.to = {to}, .kind = kind, .payload = payload, .size = size, .within = within};
    bool taken;
    return ebb__machine_ask(cx, ms, &q, site, &taken);
}
