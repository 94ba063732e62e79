#include "tests/support/world.h"

enum { TRACE_BYTES = 1 << 24, POLLS_AT_ONCE = 512, POLLS_MAX = 50 * 1000 * 1000 };

static void append(void *ctx, const void *bytes, size_t n) {
    world *w = ctx;
    if (w->trace_n + n > w->trace_room) {
        w->trace_room = 2 * (w->trace_n + n);
        w->trace = realloc(w->trace, w->trace_room);
        assert_non_null(w->trace);
    }
    memcpy(w->trace + w->trace_n, bytes, n);
    w->trace_n += n;
}

world *world_new(const ebb_runtime_opts *opts, bool traced) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    ebb_runtime_opts o = opts == NULL ? (ebb_runtime_opts){.size = sizeof o} : *opts;
    w->memory.inner = ebb_libc_allocator();
    w->allocator = ebb_failing_allocator(&w->memory);
    o.allocator = w->allocator;
    assert_int_equal(ebb_runtime_new(&o, &w->rt), EBB_OK);
    w->traced = traced;
    if (traced) assert_int_equal(ebb_trace_start(w->rt, TRACE_BYTES), EBB_OK);
    w->host = ebb_runtime_host(w->rt);
    w->root = ebb_runtime_root(w->rt);
    return w;
}

static void check_trace(world *w) {
    ebb_trace_take(w->rt, true, append, w);
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    ebb_trace_reader reader;
    ebb_event ev;
    ebb_status st;
    assert_non_null(c);
    assert_int_equal(ebb_trace_reader_open(&reader, w->trace, w->trace_n), EBB_OK);
    while ((st = ebb_trace_reader_next(&reader, &ev)) == EBB_OK) {
        if (ebb_checker_event(c, &ev) != EBB_OK) break;
    }
    if (st == EBB_PENDING) st = EBB_OK;
    if (st == EBB_OK && ebb_checker_violation(c) == NULL) (void)ebb_checker_end(c, true);
    const ebb_violation *v = ebb_checker_violation(c);
    char text[320] = "";
    if (v != NULL) {
        const char *event = ebb_event_name(v->event.type);
        snprintf(text, sizeof text, "%s: event %llu, %s: %s", ebb_oracle_name(v->oracle),
                 (unsigned long long)v->event.decision_seq, event == NULL ? "the end" : event, v->text);
    }
    ebb_checker_free(c);
    assert_int_equal(st, EBB_OK);
    assert_string_equal(text, "");
    assert_int_equal(stats_of(w).trace_lost, 0);
}

static void shut_down(world *w) {
    uint64_t start = world_now(w);
    if (state_of(w, w->root) != EBB_REGION_CLOSED) {
        ebb_region_cancel(w->host, w->root, EBB_CANCEL_SHUTDOWN, "the test is over");
        world_pass(w, 550 * EBB_MS);
    }
    assert_int_equal(state_of(w, w->root), EBB_REGION_CLOSED);
    ebb_runtime_stats s = stats_of(w);
    assert_int_equal(s.tasks, 0);
    assert_int_equal(s.regions, 0);
    assert_int_equal(s.obligations, 0);
    assert_true(world_now(w) <= start + 550 * EBB_MS);
    if (w->traced) check_trace(w);
}

void world_end(world *w) {
    /* After a failed assertion inside a poll the pump believes that it still runs. */
    if (ebb_runtime_pump(w->rt, 0) != EBB_ERR_REENTERED) shut_down(w);
    ebb_runtime_free(w->rt);
    int64_t live = w->memory.live, bytes = w->memory.live_bytes;
    for (size_t i = 0; i < w->kept_n; i++) free(w->kept[i]);
    free((void *)w->kept);
    free(w->trace);
    free(w);
    assert_int_equal(live, 0);
    assert_int_equal(bytes, 0);
}

int world_up(void **state) {
    *state = world_new(NULL, true);
    return 0;
}

int world_up_untraced(void **state) {
    *state = world_new(NULL, false);
    return 0;
}

int world_down(void **state) {
    world_end(*state);
    return 0;
}

void *world_keep(world *w, size_t n) {
    if ((w->kept_n & (w->kept_n - 1)) == 0) {
        size_t room = w->kept_n == 0 ? 1 : 2 * w->kept_n;
        w->kept = (void **)realloc((void *)w->kept, room * sizeof *w->kept);
        assert_non_null(w->kept);
    }
    void *p = calloc(1, n);
    assert_non_null(p);
    w->kept[w->kept_n++] = p;
    return p;
}

/* ---- time --------------------------------------------------------------------------------------- */

uint64_t world_now(const world *w) {
    return ebb_now(w->host);
}

void world_settle(world *w) {
    uint64_t polls = 0;
    ebb_status st;
    do {
        st = ebb_runtime_pump(w->rt, POLLS_AT_ONCE);
        if (w->traced) ebb_trace_take(w->rt, false, append, w);
        polls += POLLS_AT_ONCE;
        assert_true(polls < POLLS_MAX);
    } while (st == EBB_PENDING);
    assert_int_equal(st, EBB_OK);
}

void world_pass(world *w, uint64_t span) {
    uint64_t end = world_now(w) + span;
    world_settle(w);
    for (uint64_t due; (due = ebb_runtime_next_due(w->rt)) <= end && due > world_now(w);) {
        ebb_runtime_advance(w->rt, due);
        world_settle(w);
    }
    ebb_runtime_advance(w->rt, end);
    world_settle(w);
}

void world_finish(world *w) {
    world_settle(w);
    for (uint64_t due; (due = ebb_runtime_next_due(w->rt)) != EBB_FOREVER;) {
        ebb_runtime_advance(w->rt, due);
        world_settle(w);
    }
}

/* ---- puppets ------------------------------------------------------------------------------------ */

void world_say(world *w, const char *word) {
    size_t n = strlen(w->log);
    assert_true(n + strlen(word) + 2 < sizeof w->log);
    snprintf(w->log + n, sizeof w->log - n, "%s ", word);
}

ebb_status puppet_poll(ebb_cx *cx, void *state) {
    puppet *p = state;
    p->polls++;
    if (p->says != NULL) world_say(p->world, p->says);
    if (p->act != NULL) p->act(cx, p);
    if (p->heeds && (p->seen = ebb_checkpoint(cx)) == EBB_CANCELLED) return p->on_cancel;
    if (p->spins) (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return p->returns;
}

void puppet_abort(void *state) {
    puppet *p = state;
    p->polls++;
    p->world->aborts++;
    if (p->says != NULL) world_say(p->world, p->says);
    if (p->act != NULL) p->act(p->world->host, p);
}

puppet *puppet_new(world *w, puppet p) {
    puppet *copy = world_keep(w, sizeof *copy);
    *copy = p;
    copy->world = w;
    return copy;
}

puppet *puppet_start_with(world *w, ebb_region r, puppet p, ebb_task_opts opts) {
    puppet *copy = puppet_new(w, p);
    copy->id = ebb_spawn(w->host, r, puppet_poll, copy, &opts);
    assert_int_equal(ebb_id_status(copy->id.id), EBB_OK);
    return copy;
}

puppet *puppet_start(world *w, ebb_region r, puppet p) {
    return puppet_start_with(w, r, p, (ebb_task_opts){.keep = true});
}

/* ---- looking ------------------------------------------------------------------------------------ */

ebb_task_phase phase_of(world *w, ebb_task t) {
    ebb_task_info info;
    return ebb_task_info_of(w->host, t, &info) == EBB_OK ? info.phase : (ebb_task_phase)0;
}

ebb_region_state state_of(world *w, ebb_region r) {
    ebb_region_state s;
    return ebb_region_state_of(w->host, r, &s) == EBB_OK ? s : (ebb_region_state)0;
}

ebb_task_info info_of(world *w, ebb_task t) {
    ebb_task_info info;
    assert_int_equal(ebb_task_info_of(w->host, t, &info), EBB_OK);
    return info;
}

ebb_region_report report_of(world *w, ebb_region r) {
    ebb_region_report report;
    assert_int_equal(ebb_region_report_of(w->host, r, &report), EBB_OK);
    return report;
}

ebb_runtime_stats stats_of(world *w) {
    ebb_runtime_stats s;
    ebb_runtime_stats_of(w->rt, &s);
    return s;
}

ebb_region open_region(world *w, ebb_region parent) {
    ebb_region r = ebb_region_open(w->host, &(ebb_region_opts){.parent = parent});
    assert_int_equal(ebb_id_status(r.id), EBB_OK);
    return r;
}

/* Ids of tasks, regions and obligations may be equal: which one is meant goes by the type. */
static bool names(const ebb_event *ev, uint64_t id) {
    if (id == 0) return true;
    bool finalizer = ev->type >= EBB_EV_FINALIZER_ADDED && ev->type <= EBB_EV_FINALIZER_ABANDONED;
    if (ev->type >= EBB_EV_OBLIGATION_RESERVED && !finalizer) return ev->other == id;
    bool region = ev->type < EBB_EV_TASK_SPAWNED || ev->type == EBB_EV_REFUSED;
    return (region ? ev->region_id : ev->task_id) == id;
}

/* Leaves the reader behind the event. */
static bool read_to(world *w, ebb_trace_reader *r, uint32_t type, uint64_t id, uint32_t nth, ebb_event *out) {
    ebb_trace_take(w->rt, true, append, w);
    assert_int_equal(ebb_trace_reader_open(r, w->trace, w->trace_n), EBB_OK);
    while (ebb_trace_reader_next(r, out) == EBB_OK) {
        if (out->type == type && names(out, id) && nth-- == 0) return true;
    }
    return false;
}

bool find_event(world *w, uint32_t type, uint64_t id, uint32_t nth, ebb_event *out) {
    ebb_trace_reader r;
    return read_to(w, &r, type, id, nth, out);
}

uint32_t count_events(world *w, uint32_t type, uint64_t id) {
    ebb_trace_reader r;
    ebb_event ev;
    uint32_t n = 0;
    for (bool more = read_to(w, &r, type, id, 0, &ev); more; n++) {
        while ((more = ebb_trace_reader_next(&r, &ev) == EBB_OK) && !(ev.type == type && names(&ev, id))) {}
    }
    return n;
}

ebb_event event_of(world *w, uint32_t type, uint64_t id) {
    ebb_event ev;
    if (!find_event(w, type, id, 0, &ev)) fail_msg("there is no event %s", ebb_event_name(type));
    return ev;
}

void text_of(world *w, uint32_t type, uint64_t id, char *out, size_t room) {
    ebb_trace_reader r;
    ebb_event ev;
    size_t n = 0;
    out[0] = 0;
    assert_true(read_to(w, &r, type, id, 0, &ev));
    while (ebb_trace_reader_next(&r, &ev) == EBB_OK && ev.type == EBB_EV_TEXT) {
        size_t more = strlen(ev.text);
        assert_true(n + more < room);
        memcpy(out + n, ev.text, more + 1);
        n += more;
    }
}
