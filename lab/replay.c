/* The driver of a replay, and the calls of the kernel into replayed tasks. */
#include "lab/replay.h"

#include <assert.h>

#include "base/hash.h"
#include "base/text.h"
#include "kernel/record.h"
#include "sched/pump.h"

/* ---- errors -------------------------------------------------------------------------------------------- */

static ebb__text message_of(ebb__replay *p) {
    return ebb__text_in(p->out->message, sizeof p->out->message);
}

/* The trace ends here: the end of the replayed tasks after a failure is no part of it. */
static void end_trace(ebb__replay *p) {
    if (p->rt == NULL || p->trace == NULL) return;
    ebb_trace_take(p->rt, true, p->trace, p->trace_ctx);
    (void)ebb_trace_start(p->rt, 0);
}

static void out_of_memory(ebb__replay *p);

/* True for the first failure: only that one gets a message. */
static bool first_failure(ebb__replay *p, ebb_status st) {
    if (p->status != EBB_OK) return false;
    if (p->ran_out && st != EBB_ERR_NOMEM) { /* the lack of memory is the cause */
        out_of_memory(p);
        return false;
    }
    p->status = st;
    end_trace(p);
    return true;
}

static void say_operation(ebb__text *t, const ebb__journal_op *op) {
    ebb__text_str(t, "operation ");
    ebb__text_u64(t, op->number);
    if (op->rec.type != 0) {
        ebb__text_str(t, " (");
        ebb__text_str(t, ebb__op_name(op->rec.type));
        ebb__text_str(t, ")");
    }
    ebb__text_str(t, ": ");
}

void ebb__replay_fail(ebb__replay *p, ebb_status st, const ebb__journal_op *op, const char *text) {
    if (!first_failure(p, st)) return;
    ebb__text t = message_of(p);
    say_operation(&t, op);
    ebb__text_str(&t, text);
}

static void say_id(ebb__text *t, uint64_t id) {
    if ((uint32_t)id != 0) ebb__text_id(t, id);
    else ebb__text_str(t, ebb_status_name(ebb_id_status(id)));
}

void ebb__replay_diverged(ebb__replay *p, const ebb__journal_op *op, uint64_t expected, uint64_t found) {
    if (!first_failure(p, EBB_ERR_DIVERGED)) return;
    bool status = (ebb__op_fields(op->rec.type) & EBB__OP_RESULT) != 0;
    ebb__text t = message_of(p);
    say_operation(&t, op);
    ebb__text_str(&t, "expected ");
    if (status) ebb__text_str(&t, ebb_status_name((ebb_status)(int32_t)expected));
    else say_id(&t, expected);
    ebb__text_str(&t, ", found ");
    if (status) ebb__text_str(&t, ebb_status_name((ebb_status)(int32_t)found));
    else say_id(&t, found);
}

static void say_call(ebb__text *t, const ebb__replay_call *c) {
    ebb__text_str(t, "a call of the ");
    ebb__text_str(t, ebb__call_name(c->what));
    if (c->task != 0) {
        ebb__text_str(t, " of task ");
        ebb__text_id(t, c->task);
    }
    if (c->region != 0) {
        ebb__text_str(t, " of region ");
        ebb__text_id(t, c->region);
    }
    if (c->what == EBB__CALL_ABORT || c->what == EBB__CALL_FINALIZER) {
        ebb__text_str(t, " ");
        ebb__text_id(t, c->other);
    }
}

static ebb__replay_call call_in(const ebb_record *r) {
    return (ebb__replay_call){.what = r->value, .task = r->task, .region = r->region, .other = r->other};
}

/* The replay makes a call that the journal does not have here. */
static void wrong_call(ebb__replay *p, const ebb__journal_op *op, const ebb__replay_call *found) {
    if (!first_failure(p, EBB_ERR_DIVERGED)) return;
    ebb__text t = message_of(p);
    say_operation(&t, op);
    ebb__text_str(&t, "expected ");
    ebb__replay_call wanted = call_in(&op->rec);
    if (op->rec.type == J_CALL) say_call(&t, &wanted);
    else ebb__text_str(&t, ebb__op_name(op->rec.type));
    ebb__text_str(&t, ", found ");
    say_call(&t, found);
}

static void damaged(ebb__replay *p, ebb_status st) {
    if (!first_failure(p, st)) return;
    ebb__text t = message_of(p);
    if (p->in.operations > 0) {
        ebb__text_str(&t, "after operation ");
        ebb__text_u64(&t, p->in.operations);
        ebb__text_str(&t, ", ");
    }
    ebb__text_str(&t, "offset ");
    ebb__text_u64(&t, p->in.in.error_offset);
    ebb__text_str(&t, ": ");
    ebb__text_str(&t, ebb_status_text(st));
    ebb__text_str(&t, "; expected ");
    ebb__text_str(&t, p->in.in.error);
}

static void out_of_memory(ebb__replay *p) {
    if (!first_failure(p, EBB_ERR_NOMEM)) return;
    ebb__text t = message_of(p);
    ebb__text_str(&t, "there is no memory for the replay itself");
}

/* ---- the journal --------------------------------------------------------------------------------------- */

/* EBB_OK and the next operation in p->op; EBB_PENDING at the end; otherwise the replay has failed. */
static ebb_status look_ahead(ebb__replay *p) {
    if (p->status != EBB_OK) return p->status;
    if (p->loaded) return EBB_OK;
    ebb_status st = ebb__journal_next(&p->in, &p->op);
    p->loaded = st == EBB_OK;
    if (st == EBB_ERR_NOMEM) out_of_memory(p);
    else if (st != EBB_OK && st != EBB_PENDING) damaged(p, st);
    return st;
}

bool ebb__replay_take(ebb__replay *p, ebb__journal_op *out) {
    if (look_ahead(p) != EBB_OK) return false;
    assert(p->loaded);
    *out = p->op;
    p->loaded = false;
    return true;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void ends_too_early(ebb__replay *p, const ebb__replay_call *c, const char *where) {
    if (!first_failure(p, EBB_ERR_TRUNCATED)) return;
    ebb__text t = message_of(p);
    ebb__text_str(&t, "after operation ");
    ebb__text_u64(&t, p->in.operations);
    ebb__text_str(&t, ": the journal ends ");
    ebb__text_str(&t, where);
    say_call(&t, c);
}

static bool called(ebb__replay *p, const ebb__replay_call *c) {
    ebb__journal_op op;
    if (!ebb__replay_take(p, &op)) {
        ends_too_early(p, c, "before ");
        return false;
    }
    const ebb_record *r = &op.rec;
    if (r->type != J_CALL || r->value != c->what || r->task != c->task || r->region != c->region ||
        r->other != c->other) {
        wrong_call(p, &op, c);
        return false;
    }
    if (p->depth == EBB__REPLAY_DEPTH) {
        ebb__replay_fail(p, EBB_ERR_LIMIT, &op, "calls are nested deeper than 200");
        return false;
    }
    return true;
}

ebb_status ebb__replay_call_of(ebb__replay *p, ebb__replay_call c) {
    ebb__journal_op op;
    if (p->status != EBB_OK || !called(p, &c)) return EBB_CANCELLED;
    p->depth++;
    while (ebb__replay_take(p, &op)) {
        if (c.empty && op.rec.type != J_NOTE && (op.rec.type != J_RETURN || op.rec.value != EBB_OK)) {
            ebb__replay_fail(p, EBB_ERR_DIVERGED, &op,
                             "expected an operation of user code, found a task of the kernel");
            break;
        }
        assert(p->depth > 0 && p->depth <= EBB__REPLAY_DEPTH);
        if (op.rec.type == J_RETURN) {
            p->depth--;
            return (ebb_status)(int32_t)op.rec.value;
        }
        ebb__replay_op(p, &op);
    }
    ends_too_early(p, &c, "inside ");
    p->depth--;
    return EBB_CANCELLED;
}

static uint32_t choose(void *ctx, uint32_t n) {
    ebb__replay *p = ctx;
    ebb__journal_op op;
    /* Without a chooser there is no record, and the head came first. */
    if (look_ahead(p) != EBB_OK || p->op.rec.type != J_CHOICE || !ebb__replay_take(p, &op)) return 0;
    if (op.rec.other == n) return op.rec.value;
    if (!first_failure(p, EBB_ERR_DIVERGED)) return 0;
    ebb__text t = message_of(p);
    say_operation(&t, &op);
    ebb__text_str(&t, "expected one of ");
    ebb__text_u64(&t, op.rec.other);
    ebb__text_str(&t, " tasks, found one of ");
    ebb__text_u64(&t, n);
    return 0;
}

/* The clock's reading at this place; without a clock there is no record. */
static uint64_t clock_reading(void *ctx) {
    ebb__replay *p = ctx;
    ebb__journal_op op = {.rec = {.other = p->reading}};
    p->reading = 0;
    if (op.rec.other != 0 || look_ahead(p) != EBB_OK || p->op.rec.type != J_CLOCK) return op.rec.other;
    return ebb__replay_take(p, &op) ? op.rec.other : 0;
}

/* The callback runner of a region has ended, or the region releases its callbacks. Older journals do not record
 * this call. */
static void replayed_callbacks(ebb_runtime *rt, ebb__callbacks *c) {
    ebb__replay *p = (ebb__replay *)(void *)((char *)c - offsetof(ebb__replay, callbacks));
    (void)rt;
    if (look_ahead(p) != EBB_OK || p->op.rec.type != J_CALL || p->op.rec.value != EBB__CALL_FUTURES) return;
    (void)ebb__replay_call_of(p, (ebb__replay_call){.what = EBB__CALL_FUTURES, .region = p->op.rec.region});
}

/* A task or region that a layer observed has ended. */
static void replayed_end(ebb_runtime *rt, ebb_task task, ebb_region region) {
    ebb__replay *p = ebb__layer_record(rt, EBB__REPLAY_SLOT);
    (void)ebb__replay_call_of(
        p, (ebb__replay_call){.what = EBB__CALL_OBSERVED, .task = task.id, .region = region.id});
}

static const ebb__layer replay_layer = {.slot = EBB__REPLAY_SLOT, .hooks = {.ended = replayed_end}};

/* ---- memory -------------------------------------------------------------------------------------------- */

/* An operation that ran out of memory does so again, at its first allocation, whichever allocation it was in the
 * original. The next operation that succeeds allocates what the original had allocated before. */
static void *allocate(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    ebb__replay *p = ctx;
    if (p->refuse && new_size > old_size) return NULL;
    void *got = p->host.fn(p->host.ctx, ptr, old_size, new_size);
    if (got == NULL && new_size != 0) p->ran_out = true;
    return got;
}

static uint64_t hash_of(const char *text, size_t n) {
    uint64_t h = n + 1;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, text + i, n - i < 8 ? n - i : 8);
        h = ebb__hash_word(h ^ word);
    }
    return h == 0 ? 1 : h; /* 0 is no valid key */
}

const char *ebb__replay_site(ebb__replay *p, const char *text) {
    if (text == NULL) return NULL;
    size_t n = strlen(text);
    const char **known = ebb__map_put(&p->sites, hash_of(text, n));
    if (known != NULL && *known != NULL && strcmp(*known, text) == 0) return *known;
    char *copy = known == NULL ? NULL : ebb__arena_alloc(&p->arena, n + 1);
    if (copy == NULL) {
        out_of_memory(p);
        return NULL;
    }
    memcpy(copy, text, n + 1);
    *known = copy;
    return copy;
}

/* ---- start and end ------------------------------------------------------------------------------------- */

/* Reads one of the records that every journal begins with. */
static bool beginning(ebb__replay *p, uint8_t type, ebb_record *out) {
    ebb__journal_op op = {.number = p->in.operations + 1, .rec = {.type = type}};
    if (!ebb__replay_take(p, &op)) {
        ebb__replay_fail(p, EBB_ERR_TRUNCATED, &op, "the journal ends before it");
        return false;
    }
    if (op.rec.type != type) {
        op.rec.type = type;
        ebb__replay_fail(p, EBB_ERR_INVALID, &op,
                         "a journal begins with its runtime's options; this is missing");
        return false;
    }
    if (type == J_START && op.rec.value != 0) {
        ebb__replay_fail(p, EBB_ERR_INVALID, &op, "the runtime was used before its journal was started");
        return false;
    }
    *out = op.rec;
    return true;
}

static bool read_options(ebb__replay *p, ebb_runtime_opts *o, ebb_record *start) {
    ebb_record limits, cleanup;
    if (!beginning(p, J_START, start) || !beginning(p, J_LIMITS, &limits)) return false;
    o->max_tasks = limits.value;
    o->max_regions = (uint32_t)limits.region;
    o->chain_depth = (uint32_t)(limits.task >> 32);
    o->chain_bytes = (uint32_t)limits.task;
    start->kind = limits.kind;
    /* The wheel may be behind the clock. */
    o->now = limits.other < start->other / EBB__TICK ? limits.other * EBB__TICK : start->other;
    for (uint32_t i = EBB_SEVERITY_POLITE; i <= EBB_SEVERITY_FORCED; i++) {
        if (!beginning(p, J_CLEANUP, &cleanup)) return false;
        o->cleanup[i] = (ebb_cleanup_budget){cleanup.task, cleanup.value};
    }
    return true;
}

static void begin(ebb__replay *p) {
    ebb_runtime_opts o = {.allocator = {allocate, p}, .runtime_id = p->in.in.runtime_id};
    ebb_record start;
    if (!read_options(p, &o, &start)) return;
    ebb_status st = ebb_runtime_new(&o, &p->rt);
    if (st == EBB_OK) {
        (void)ebb__layer_add(p->rt, &replay_layer, p);
        p->rt->now = start.other;
        p->rt->recorded_clock = clock_reading;
        p->rt->clock_ctx = p;
        p->callbacks = (ebb__callbacks){replayed_callbacks, replayed_callbacks};
        p->rt->short_pumps = start.kind != 0;
        p->rt->turn = start.task;
        p->rt->batch = start.region;
        ebb__set_chooser(p->rt, choose, p);
        if (p->trace != NULL) st = ebb_trace_start(p->rt, 1);
    }
    if (st != EBB_OK) out_of_memory(p);
    else if (p->trace != NULL) ebb__trace_sink(p->rt, p->trace, p->trace_ctx);
}

ebb_status ebb_journal_replay(ebb_allocator a, const void *journal, size_t n, ebb_write_fn trace, void *ctx,
                              ebb_journal_replay_result *out) {
    ebb__replay p = {.out = out, .trace = trace, .trace_ctx = ctx, .host = a};
    *out = (ebb_journal_replay_result){.operations = 0};
    ebb__arena_init(&p.arena, a, 4096);
    ebb__map_init(&p.sites, a, sizeof(const char *));
    ebb__map_init(&p.waits, a, sizeof(void *));
    ebb_status st = ebb__journal_open(&p.in, a, journal, n);
    if (st != EBB_OK) damaged(&p, st);
    else begin(&p);
    ebb__journal_op op;
    while (ebb__replay_take(&p, &op)) {
        ebb__replay_op(&p, &op);
        if (p.ran_out) out_of_memory(&p);
    }
    if (p.status == EBB_OK) end_trace(&p);
    out->operations = p.in.operations;
    ebb_runtime_free(p.rt);
    ebb__journal_close(&p.in);
    ebb__map_free(&p.waits);
    ebb__map_free(&p.sites);
    ebb__arena_free(&p.arena);
    return p.status;
}
