#include "tests/support/sweep_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TRACE_BYTES = 32 * 1024, TURNS_MAX = 200000 };

/* ---- what scenarios do -------------------------------------------------------------------------- */

/* CANCELLED, CLOSED and NOMEM are answers that any operation may give in a sweep. */
ebb_status sweep_saw(sweep_world *w, ebb_status st, const char *where) {
    if (st == EBB_ERR_NOMEM) w->no_memory++;
    if (st >= 0 || st == EBB_ERR_NOMEM || st == EBB_CANCELLED || st == EBB_ERR_CLOSED) return st;
    if (st == EBB_DISCARDED) return st;
    if (w->odd++ == 0) {
        w->odd_status = st;
        w->odd_where = where;
    }
    return st;
}

static void suspended(sweep_world *w, ebb_cx *cx) {
    w->points++;
    if (w->acted || w->act == NULL || w->points != w->act_at) return;
    if (!w->act_within) {
        w->act_due = true;
        return;
    }
    w->acted = true;
    w->acted_time = ebb_now(cx);
    w->act(w, cx);
}

static ebb_status step(ebb_cx *cx, void *state) {
    sweep_actor *a = state;
    ebb_status st = a->body(cx, a);
    if (st == EBB_PENDING) suspended(a->w, cx);
    return st;
}

static ebb_status finalizer_step(ebb_cx *cx, void *state) {
    sweep_actor *a = state;
    ebb_status st = step(cx, state);
    if (st != EBB_PENDING) a->w->finalized++;
    return st;
}

static sweep_actor *new_actor(sweep_world *w, const char *name, sweep_body body) {
    if (w->actors == SWEEP_ACTORS) abort();
    sweep_actor *a = &w->actor[w->actors++];
    memset(a, 0, sizeof *a);
    a->w = w;
    a->name = name;
    a->body = body;
    a->number = (int)w->actors - 1;
    return a;
}

ebb_region sweep_open(ebb_cx *cx, sweep_world *w, ebb_region_opts opts) {
    if (opts.on_closed != NULL) opts.arg = w;
    ebb_region r = ebb_region_open(cx, &opts);
    if (sweep_saw(w, ebb_id_status(r.id), "open") == EBB_OK) {
        if (w->regions == SWEEP_IDS) abort();
        w->region[w->regions++] = r;
        if (opts.on_closed != NULL) w->wanted_notes++;
    }
    return r;
}

ebb_task sweep_spawn(ebb_cx *cx, sweep_world *w, ebb_region region, const char *name, sweep_body body,
                     ebb_task_opts opts, sweep_actor **actor) {
    sweep_actor *a = new_actor(w, name, body);
    ebb_task t = ebb_spawn_opts_site(cx, region, step, a, &opts, name);
    if (sweep_saw(w, ebb_id_status(t.id), "spawn") == EBB_OK) {
        if (w->tasks == SWEEP_IDS) abort();
        w->task[w->tasks++] = t;
    }
    if (actor != NULL) *actor = a;
    return t;
}

ebb_status sweep_defer(ebb_cx *cx, sweep_world *w, ebb_region region, const char *name, sweep_body body,
                       uint64_t span) {
    sweep_actor *a = new_actor(w, name, body);
    a->span = span;
    ebb_status st = region.id == 0 ? ebb_defer_site(cx, finalizer_step, a, name)
                                   : ebb_region_defer_site(cx, region, finalizer_step, a, name);
    if (sweep_saw(w, st, "defer") == EBB_OK) w->deferred++;
    return st;
}

static void hook(void *arg) {
    sweep_world *w = arg;
    w->hooks++;
}

ebb_obligation sweep_reserve(ebb_cx *cx, sweep_world *w, ebb_region region, ebb_obligation_kind kind) {
    ebb_obligation ob = region.id == 0 ? ebb_obligation_reserve(cx, kind, hook, w)
                                       : ebb_region_reserve(cx, region, kind, hook, w);
    if (sweep_saw(w, ebb_id_status(ob.id), "reserve") == EBB_OK) w->reserved++;
    return ob;
}

ebb_status sweep_commit(ebb_cx *cx, sweep_world *w, ebb_obligation ob) {
    ebb_status st = ebb_obligation_commit(cx, ob);
    if (sweep_saw(w, st, "commit") == EBB_OK) w->committed++;
    return st;
}

void sweep_note_closed(void *world, const ebb_region_report *report) {
    sweep_world *w = world;
    (void)report;
    w->notes++;
}

/* ---- a run ---------------------------------------------------------------------------------------- */

static void keep_trace(void *ctx, const void *bytes, size_t n) {
    sweep_world *w = ctx;
    if (w->trace_n + n > w->trace_room) {
        w->trace_room = (w->trace_n + n) * 2;
        w->trace = realloc(w->trace, w->trace_room);
        if (w->trace == NULL) abort();
    }
    memcpy(w->trace + w->trace_n, bytes, n);
    w->trace_n += n;
}

static void drop_journal(void *ctx, const void *bytes, size_t n) {
    (void)ctx;
    (void)bytes;
    (void)n;
}

bool sweep_begin(sweep_world *w, const sweep_scenario *s) {
    w->scenario = s;
    w->failing.inner = ebb_libc_allocator();
    w->limit = EBB_FOREVER;
    ebb_runtime_opts opts = {
        .allocator = ebb_failing_allocator(&w->failing), .runtime_id = 7, .now = EBB_SECOND};
    if (sweep_saw(w, ebb_runtime_new(&opts, &w->rt), "runtime") != EBB_OK) return false;
    w->host = ebb_runtime_host(w->rt);
    w->traced = sweep_saw(w, ebb_trace_start(w->rt, TRACE_BYTES), "trace") == EBB_OK;
    (void)sweep_saw(w, ebb_journal_start(w->rt, TRACE_BYTES), "journal");
    s->start(w);
    return true;
}

static void act_after_the_poll(sweep_world *w) {
    if (!w->act_due) return;
    w->act_due = false;
    w->acted = true;
    w->acted_time = ebb_now(w->host);
    w->act(w, w->host);
}

/* One poll at a time, so that the act falls exactly behind the poll it was meant for. */
static bool pump_all(sweep_world *w) {
    for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
        ebb_status st = ebb_runtime_pump(w->rt, 1);
        ebb_trace_take(w->rt, false, keep_trace, w);
        ebb_journal_take(w->rt, false, drop_journal, w);
        bool acts = w->act_due;
        act_after_the_poll(w);
        if (st == EBB_OK && !acts) return true;
    }
    return false;
}

bool sweep_run(sweep_world *w) {
    for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
        if (!pump_all(w)) return false;
        if (w->scenario->at_time != NULL && w->host_step >= 0) {
            w->scenario->at_time(w);
            if (!pump_all(w)) return false;
        }
        uint64_t due = ebb_runtime_next_due(w->rt);
        if (due > w->limit && w->over != NULL && !w->over(w)) w->late = true;
        if (due == EBB_FOREVER) return true;
        ebb_runtime_advance(w->rt, due);
    }
    return false;
}

void sweep_end(sweep_world *w) {
    if (w->rt != NULL) {
        ebb_trace_take(w->rt, true, keep_trace, w);
        for (int i = 0; i < SWEEP_CHANS; i++) {
            if (w->chan[i] != NULL) ebb_chan_free(w->chan[i]);
            w->chan[i] = NULL;
        }
        ebb_runtime_free(w->rt);
    }
    free(w->trace);
    w->trace = NULL;
    w->rt = NULL;
}

/* ---- judging -------------------------------------------------------------------------------------- */

bool sweep_closed(sweep_world *w, ebb_region region) {
    ebb_region_state state;
    ebb_status st = ebb_region_state_of(w->host, region, &state);
    return st == EBB_ERR_STALE || (st == EBB_OK && state == EBB_REGION_CLOSED);
}

bool sweep_ended(sweep_world *w, ebb_task task) {
    ebb_task_info info;
    ebb_status st = ebb_task_info_of(w->host, task, &info);
    return st == EBB_ERR_STALE || (st == EBB_OK && info.phase == EBB_TASK_COMPLETED);
}

static const char *judge_trace(sweep_world *w, bool quiescent) {
    static char text[320];
    ebb_trace_reader reader;
    ebb_event ev;
    ebb_trace_take(w->rt, true, keep_trace, w);
    if (ebb_trace_reader_open(&reader, w->trace, w->trace_n) != EBB_OK) return "the trace has no header";
    ebb_checker *c = ebb_checker_new(ebb_libc_allocator());
    if (c == NULL) abort();
    ebb_status read = EBB_OK, st = EBB_OK;
    while (st == EBB_OK && (read = ebb_trace_reader_next(&reader, &ev)) == EBB_OK)
        st = ebb_checker_event(c, &ev);
    if (st == EBB_OK && read == EBB_PENDING) st = ebb_checker_end(c, quiescent);
    const char *said = NULL;
    if (read < 0) {
        said = reader.error;
    } else if (st != EBB_OK) {
        const ebb_violation *v = ebb_checker_violation(c);
        if (v == NULL) abort();
        snprintf(text, sizeof text, "%s at event %" PRIu64 " (%s, task %" PRIx64 ", region %" PRIx64 "): %s",
                 ebb_oracle_name(v->oracle), v->event.decision_seq,
                 v->event.type != 0 ? ebb_event_name(v->event.type) : "end", v->event.task_id,
                 v->event.region_id, v->text);
        said = text;
    }
    ebb_checker_free(c);
    return said;
}

static const char *judge_accounts(sweep_world *w) {
    static char text[160];
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(w->rt, &stats);
    uint64_t in_queue = 0;
    for (int i = 0; i < SWEEP_CHANS; i++) {
        if (w->chan[i] != NULL) in_queue += ebb_chan_length(w->chan[i]);
    }
    const struct {
        const char *what;
        uint64_t expected, found;
    } account[] = {
        {"items sent and then received or queued", w->sent, w->received + in_queue},
        {"illegal transitions", 0, stats.illegal},
        {"events lost", 0, stats.trace_lost},
        {"statuses that nothing explains", 0, w->odd},
    };
    for (size_t i = 0; i < sizeof account / sizeof account[0]; i++) {
        if (account[i].expected == account[i].found) continue;
        snprintf(text, sizeof text, "%s: %" PRIu64 " expected, %" PRIu64 " found (%s at %s)", account[i].what,
                 account[i].expected, account[i].found, w->odd != 0 ? ebb_status_name(w->odd_status) : "-",
                 w->odd != 0 ? w->odd_where : "-");
        return text;
    }
    return NULL;
}

static const char *judge_quiescence(sweep_world *w) {
    static char text[160];
    ebb_runtime_stats stats;
    ebb_runtime_stats_of(w->rt, &stats);
    bool patient = !w->scenario->stubborn; /* nobody was abandoned who would have returned */
    const struct {
        const char *what;
        uint64_t expected, found;
    } account[] = {
        {"root closed", 1, sweep_closed(w, ebb_runtime_root(w->rt))},
        {"tasks alive", 0, stats.tasks},
        {"regions open", 0, stats.regions},
        {"obligations reserved", 0, stats.obligations},
        {"tasks runnable", 0, stats.runnable},
        {"tasks ended", stats.spawned, stats.ended},
        {"obligations resolved", w->reserved, w->committed + w->hooks},
        {"notes of closed regions", w->wanted_notes, w->notes},
        {"leaks", w->scenario->leaks ? stats.leaks : 0, stats.leaks},
        {"abandoned", patient ? 0 : stats.abandoned, stats.abandoned},
        {"finalizers returned", patient ? w->deferred : w->finalized, w->finalized},
        {"permits back", patient && !w->discarded ? w->permits : w->sem.free, w->sem.free},
    };
    for (size_t i = 0; i < sizeof account / sizeof account[0]; i++) {
        if (account[i].expected == account[i].found) continue;
        snprintf(text, sizeof text, "%s: %" PRIu64 " expected, %" PRIu64 " found", account[i].what,
                 account[i].expected, account[i].found);
        return text;
    }
    return NULL;
}

const char *sweep_judge(sweep_world *w, bool quiescent) {
    const char *said = w->traced ? judge_trace(w, quiescent) : NULL;
    if (said == NULL && w->late) said = "it was not over when its budget was";
    if (said == NULL) said = judge_accounts(w);
    if (said == NULL && quiescent) said = judge_quiescence(w);
    return said;
}
