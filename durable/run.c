/* A run: its fiber, its memory, and the feeding of turns. */
#include "durable/run.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"

enum { CHUNK = 4096, LIST_FIRST = 8 };

/* ---- memory ---------------------------------------------------------------------------------------------------- */

void *ebb__run_new(ebb_orch *r, size_t n) {
    void *at = ebb__arena_zero(&r->memory, n != 0 ? n : 1);
    if (at == NULL) ebb__run_fail(r, EBB_ERR_NOMEM);
    r->bytes += n;
    return at;
}

ebb_blob ebb__run_copy(ebb_orch *r, ebb_blob b) {
    static const uint8_t empty;
    if (b.n == 0) return (ebb_blob){&empty, 0};
    void *at = ebb__run_new(r, b.n);
    if (at == NULL) return (ebb_blob){&empty, 0};
    memcpy(at, b.at, b.n);
    return (ebb_blob){at, b.n};
}

const char *ebb__run_text(ebb_orch *r, const char *at, size_t n) {
    char *to = ebb__run_new(r, n + 1);
    if (to == NULL) return "";
    if (n != 0) memcpy(to, at, n);
    return to;
}

void *ebb__run_add(ebb_orch *r, ebb__arena *arena, ebb__list *l, size_t size) {
    if (l->n == l->room) {
        const size_t room = l->room != 0 ? 2 * l->room : LIST_FIRST;
        void *at = ebb__arena_alloc(arena, room * size);
        if (at == NULL) {
            ebb__run_fail(r, EBB_ERR_NOMEM);
            return NULL;
        }
        if (l->n != 0) memcpy(at, l->at, l->n * size);
        if (arena == &r->memory) r->bytes += room * size;
        l->at = at;
        l->room = room;
    }
    void *entry = (char *)l->at + l->n++ * size;
    memset(entry, 0, size);
    return entry;
}

/* ---- the fiber --------------------------------------------------------------------------------------------------- */

static void memory_free(ebb_orch *r) {
    ebb_allocator a = r->allocator;
    ebb__arena_free(&r->code);
    ebb__arena_free(&r->scratch);
    ebb__arena_free(&r->memory);
    ebb__free(&a, r, sizeof *r);
}

/* The fiber was discarded, or its region cancelled. `on` is NULL if the run is gone already. */
static void wait_dropped(ebb_wait *w) {
    ebb_orch *r = w->on;
    if (r != NULL) r->wait = NULL;
}

static const ebb_wait_kind wait_kind = {"step of an orchestration", wait_dropped};

bool ebb__run_is_here(const ebb_orch *r) {
    const ebb__fiber *f = ebb__fiber_here();
    return f != NULL && r->cx != NULL && f->cx == r->cx;
}

static void at_end(ebb_orch *r) {
    r->fed = false;
    if (r->opts.parked != NULL) r->opts.parked(r->opts.arg);
}

void ebb__run_pause(ebb_orch *r) {
    ebb__run_check_end(r);
    at_end(r);
    while (!r->fed) {
        ebb_wait wait = {0}; /* the stack outlives the run, if a cancel ends the fiber */
        r->wait = &wait;
        ebb_status st = ebb__fiber_wait(r->cx, &wait, &wait_kind, r);
        assert(st == EBB_OK);
        (void)st;
        r->wait = NULL;
    }
}

void ebb__run_fail(ebb_orch *r, ebb_status st) {
    if (r->outcome == EBB_OK) r->outcome = st;
    while (ebb__run_is_here(r) && !r->returned) ebb__run_pause(r);
}

static ebb_status body(ebb_cx *cx, void *arg) {
    ebb_orch *r = arg;
    ebb_blob out = {NULL, 0};
    r->cx = cx;
    r->begun = true;
    ebb_status st = r->opts.fn(r, r->started.body, &out);
    r->returned = true;
    ebb__turn_end(r, st, out);
    ebb__run_check_end(r);
    r->task.id = 0;
    at_end(r);
    return EBB_OK;
}

static ebb_status resume(ebb_cx *cx, ebb_orch *r) {
    if (r->task.id != 0) {
        ebb__waiter_wake(r->wait);
        return EBB_OK;
    }
    r->task = ebb__fiber_spawn_confined(cx, r->opts.region, body, r, r->opts.paint, NULL, EBB_SITE);
    const ebb_status st = ebb_id_status(r->task.id);
    if (st == EBB_OK) return EBB_OK;
    r->task.id = 0;
    r->fed = false;
    return r->outcome = st;
}

/* ---- made and freed ----------------------------------------------------------------------------------------------- */

ebb__orch_run *ebb__orch_run_new(ebb_cx *cx, const ebb__orch_run_opts *opts) {
    ebb_runtime *rt = ebb_cx_runtime(cx);
    const ebb_allocator a = *ebb__rt_allocator(rt);
    ebb_orch *r = ebb__alloc(&a, sizeof *r);
    if (r == NULL) return NULL;
    memset(r, 0, sizeof *r);
    r->opts = *opts;
    r->allocator = a;
    r->rt = rt;
    ebb__arena_init(&r->memory, a, CHUNK);
    ebb__arena_init(&r->code, a, CHUNK);
    ebb__arena_init(&r->scratch, a, CHUNK);
    r->parent = r->cancel_reason = "";
    r->version = opts->version;
    r->opts.id = ebb__run_text(r, opts->id, strlen(opts->id));
    if (r->outcome == EBB_OK) return r;
    memory_free(r);
    return NULL;
}

void ebb__orch_run_free(ebb_cx *cx, ebb__orch_run *r) {
    if (r == NULL) return;
    assert(!ebb__run_is_here(r));
    r->opts.parked = NULL;
    if (r->task.id != 0) (void)ebb__task_discard(cx, r->task);
    if (r->wait != NULL)
        r->wait->on = NULL; /* under a cancel: the kernel ends the task, and with it the wait */
    memory_free(r);
}

/* ---- feeding --------------------------------------------------------------------------------------------------------- */

static void open_turn(ebb_orch *r, uint64_t now, bool replaying) {
    assert(!r->fed && r->outcome == EBB_OK && r->ends == 0);
    r->replaying = replaying;
    r->now = now;
    r->turn++;
    r->first = r->event + 1;
    r->fed = true;
    ebb__turn_open(r);
}

/* The inputs are in. A turn that needs no code (a terminate) has ended already. */
static ebb_status run_code(ebb_cx *cx, ebb_orch *r) {
    if (r->outcome == EBB_OK) ebb__turn_consequences(r);
    if (r->outcome == EBB_OK && r->started.kind == 0) r->outcome = EBB_ERR_CORRUPT;
    if (r->outcome != EBB_OK) {
        r->fed = false;
        return r->outcome;
    }
    if (r->ends == 0) return resume(cx, r);
    ebb__run_check_end(r);
    at_end(r);
    return r->outcome;
}

static ebb_status replay_inputs(ebb_orch *r) {
    for (;;) {
        ebb__event_reader before = r->record;
        ebb__event e;
        ebb_status st = ebb__event_read(&r->record, &e);
        if (st == EBB_ERR_EOF) return EBB_OK;
        if (st != EBB_OK)
            return ebb__durable_say(st, "turn %llu: %s", (unsigned long long)r->turn, r->record.text);
        if (ebb__event_class_of(e.kind) != EBB__CLASS_INPUT) {
            r->record = before;
            return EBB_OK;
        }
        r->event = e.number;
        if (ebb__run_concerns(r, &e)) ebb__run_take(r, &e);
    }
}

ebb_status ebb__orch_run_replay(ebb_cx *cx, ebb__orch_run *r, const ebb_provider_turn_row *row) {
    open_turn(r, row->at, true);
    const ebb_blob bytes = ebb__run_copy(r, row->body);
    if (r->outcome == EBB_OK) r->outcome = ebb__event_reader_open(&r->record, bytes);
    if (r->outcome == EBB_OK && (row->turn != r->turn || r->record.next != r->first)) {
        r->outcome = ebb__durable_say(EBB_ERR_CORRUPT, "turn %llu of %s has number %llu in the store",
                                      (unsigned long long)r->turn, r->opts.id, (unsigned long long)row->turn);
    }
    if (r->outcome == EBB_OK && r->record.semantics > EBB__SEMANTICS) r->outcome = EBB_ERR_VERSION;
    if (r->outcome == EBB_OK) r->outcome = replay_inputs(r);
    return run_code(cx, r);
}

/* A timer's message has no body. */
static ebb_status message_event(ebb_orch *r, const ebb_provider_message *m, ebb_blob *bytes, ebb__event *e) {
    if (m->at.kind == EBB_PROVIDER_MESSAGE_TIMER) {
        *e = (ebb__event){.kind = EBB__EVENT_TIMER_FIRED, .step = m->step != 0 ? m->step : m->at.seq};
        *bytes = ebb__event_encode(&r->memory, e);
        return bytes->at != NULL ? EBB_OK : EBB_ERR_NOMEM;
    }
    *bytes = ebb__run_copy(r, m->body);
    ebb__event_reader reader;
    ebb__event_reader_list(&reader, *bytes);
    ebb_status st = r->outcome == EBB_OK ? ebb__event_read(&reader, e) : r->outcome;
    if (st == EBB_ERR_EOF || (st == EBB_OK && ebb__event_class_of(e->kind) != EBB__CLASS_INPUT))
        st = EBB_ERR_CORRUPT;
    if (st == EBB_ERR_CORRUPT || st == EBB_ERR_VERSION)
        ebb__durable_say(st, "a message of kind %u for %s: %s", m->at.kind, r->opts.id, reader.text);
    return st;
}

static ebb_status take_message(ebb_orch *r, const ebb_provider_message *m) {
    ebb__event e;
    ebb_blob bytes;
    if (m->execution != 0 && m->execution != r->opts.execution) return EBB_OK;
    ebb_status st = message_event(r, m, &bytes, &e);
    if (st != EBB_OK || !ebb__run_concerns(r, &e)) return st;
    e.number = ebb__event_write_encoded(&r->writer, bytes);
    if (e.number == 0) return r->writer.status;
    r->event = e.number;
    ebb__run_take(r, &e);
    return r->outcome;
}

/* The start comes first, wherever it lies. */
static ebb_status take_messages(ebb_orch *r, const ebb_provider_message *messages, size_t n) {
    ebb_status st = EBB_OK;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n && st == EBB_OK; i++) {
            const bool start = messages[i].at.kind == EBB_PROVIDER_MESSAGE_START;
            if (start == (pass == 0)) st = take_message(r, &messages[i]);
        }
    }
    return st;
}

ebb_status ebb__orch_run_turn(ebb_cx *cx, ebb__orch_run *r, uint64_t now,
                              const ebb_provider_message *messages, size_t n) {
    open_turn(r, now > r->now ? now : r->now, false);
    if (r->outcome == EBB_OK) r->outcome = take_messages(r, messages, n);
    return run_code(cx, r);
}

/* ---- what is known of it --------------------------------------------------------------------------------------------- */

ebb_status ebb__orch_run_outcome(const ebb__orch_run *r) {
    return r->outcome;
}

const char *ebb__orch_run_difference(const ebb__orch_run *r) {
    return r->difference;
}

uint64_t ebb__orch_run_bytes(const ebb__orch_run *r) {
    ebb_fiber_stats fibers;
    ebb_fiber_stats_of(r->rt, &fibers);
    const uint64_t stack =
        fibers.alive + fibers.pooled != 0 ? fibers.bytes / (fibers.alive + fibers.pooled) : 0;
    return sizeof *r + r->bytes + r->code_bytes + stack;
}

uint64_t ebb__orch_run_turns(const ebb__orch_run *r) {
    return r->turn;
}

uint32_t ebb__orch_run_actions(const ebb__orch_run *r) {
    return r->actions;
}

bool ebb__orch_run_has_ended(const ebb__orch_run *r) {
    return r->ends != 0 || r->continues;
}

bool ebb__orch_run_is_exact(const ebb__orch_run *r) {
    return r->opts.exact;
}
