/* The model: arrays, loops, and a copy of the whole world for each dispatch. */
#include "tests/machine/model/model.h"

enum {
    MESSAGE = 1,
    REQUEST,
    REPLY,
    FAILED,
    EXPIRY,
    STALE,
    SPAWN,
    START,
    STOP,
    ARM,
    HOLD,
    FORGET,
    SUBSCRIBE,
    UNSUBSCRIBE,
    NOBODY
};
enum { BODY = 1, ELSE };

typedef struct message {
    int what, kind, from, to, request, alarm, failure;
    bool place;
    uint64_t key;
    script s;
} message;

typedef struct machine {
    bool there, enter, ready;
    int lifecycle, type, places, count, n, deferred;
    uint32_t state;
    message q[LETTERS];
} machine;

typedef struct request {
    bool there, wanted, owed, ended, staged, held, delivered;
    int requester, responder, kind;
    uint32_t label, hold_order;
    uint64_t within, due, order;
    script s;
} request;

typedef struct alarm {
    bool live, queued;
    int machine, kind;
    uint64_t due, order;
} alarm;

typedef struct subscription {
    int kind, machine;
    uint64_t key;
} subscription;

typedef struct world {
    machine m[MACHINES];
    request r[REQUESTS];
    alarm a[ALARMS];
    subscription s[TOPICS * MACHINES];
    int n_s, ready[MACHINES * 2], n_ready;
    uint64_t order;
    uint32_t hold_order;
    ebb_machines_stats stats;
} world_state;

struct model {
    api a;
    world_state w, before;
    uint64_t now;
    int self; /* -1: outside */
    message current;
    bool has_current;
    int part;
    uint32_t next_state;
    message log[256];
    int n_log;
    message dead[512], answers[512];
    int dead_reason[512], dead_to[512], n_dead, n_answers;
    int full_to[8], full_kind[8], n_full;
    bool faulted;
    int fault_self, fault_kind, fault_status;
    bool closing, stopping, cancelled, ended;
    uint32_t (*choose)(void *ctx, uint32_t n);
    void *choose_ctx;
};

static int find_alarm(model *m) {
    for (int i = 0; i < ALARMS; i++)
        if (!m->w.a[i].live) return i;
    fail_msg("the model has too few alarms");
    return 0;
}

/* ---- queues ------------------------------------------------------------------------------------------------ */

static void push_ready(model *m, int i) {
    m->w.m[i].ready = true;
    m->w.ready[m->w.n_ready++] = i;
}

static void put(model *m, int to, message l) {
    machine *r = &m->w.m[to];
    assert_true(r->n < LETTERS);
    r->q[r->n++] = l;
    if (!r->ready && r->lifecycle == EBB_MACHINE_RUNNING && to != m->self) push_ready(m, to);
}

static message take(machine *r, int i) {
    message l = r->q[i];
    memmove(&r->q[i], &r->q[i + 1], (size_t)(r->n - i - 1) * sizeof l);
    r->n--;
    if (l.place) r->places--;
    return l;
}

static void make_dead(model *m, message l, int to, int why) {
    m->w.stats.dead++;
    m->dead[m->n_dead] = l;
    m->dead_to[m->n_dead] = to;
    m->dead_reason[m->n_dead++] = why;
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static void maybe_free(model *m, int i) {
    if (!m->w.r[i].wanted && !m->w.r[i].owed) m->w.r[i].there = false;
}

static void unwant(model *m, int i) {
    request *r = &m->w.r[i];
    if (!r->there || !r->wanted) return;
    r->ended = true;
    r->due = 0;
    r->wanted = false;
    r->requester = -1;
    maybe_free(m, i);
}

static void unowe(model *m, int i) {
    m->w.r[i].owed = m->w.r[i].staged = false;
    maybe_free(m, i);
}

static void end_request(model *m, int i, message l) {
    request *r = &m->w.r[i];
    r->ended = r->delivered = true;
    r->due = 0;
    l.request = i;
    if (r->requester >= 0) put(m, r->requester, l);
    else m->answers[m->n_answers++] = l;
}

static void fail_request(model *m, int i, int why) {
    if (m->w.r[i].ended) return;
    end_request(m, i, (message){.what = FAILED, .from = m->w.r[i].responder, .failure = why});
}

static void lose(model *m, int i, int why) {
    bool staged = m->w.r[i].staged;
    if (!staged) fail_request(m, i, why);
    m->w.r[i].held = false;
    if (!staged) unowe(m, i);
}

/* The request that this machine has held last; -1: none. */
static int last_held(const model *m, int self) {
    int found = -1;
    for (int i = 0; i < m->a.requests; i++) {
        const request *r = &m->w.r[i];
        if (r->there && r->held && r->responder == self &&
            (found < 0 || r->hold_order > m->w.r[found].hold_order))
            found = i;
    }
    return found;
}

/* ---- machines -------------------------------------------------------------------------------------------------- */

static void end_alarms(model *m, int self) {
    for (int i = 0; i < ALARMS; i++) {
        alarm *a = &m->w.a[i];
        if (!a->live || a->machine != self || a->order == 0) continue;
        for (int k = 0; k < m->w.m[self].n; k++)
            if (m->w.m[self].q[k].what == EXPIRY && m->w.m[self].q[k].alarm == i)
                m->w.m[self].q[k].what = STALE;
        a->live = false;
    }
}

static void call_off(model *m, int self, message l, bool faulted) {
    int why = faulted ? EBB_DEAD_FAULTED : EBB_DEAD_STOPPED;
    if (l.what == EXPIRY) m->w.a[l.alarm].live = false;
    if (l.what == EXPIRY || l.what == STALE) return;
    if (l.what == REQUEST) fail_request(m, l.request, faulted ? EBB_REQUEST_FAULTED : EBB_REQUEST_STOPPED);
    if (l.what == REPLY || l.what == FAILED) unwant(m, l.request);
    make_dead(m, l, self, why);
}

static void end_machine(model *m, int self, int how) {
    machine *x = &m->w.m[self];
    bool faulted = how == EBB_MACHINE_FAULTED;
    if (!x->there) return;
    if (x->lifecycle <= EBB_MACHINE_RUNNING) {
        x->lifecycle = how;
        x->enter = false;
        x->deferred = 0;
        for (int i = 0; i < m->a.requests; i++)
            if (m->w.r[i].there && m->w.r[i].requester == self) unwant(m, i);
        while (x->n > 0) call_off(m, self, take(x, 0), faulted);
        end_alarms(m, self);
        for (int i; (i = last_held(m, self)) >= 0;)
            lose(m, i, faulted ? EBB_REQUEST_FAULTED : EBB_REQUEST_STOPPED);
        int n = 0;
        for (int i = 0; i < m->w.n_s; i++)
            if (m->w.s[i].machine != self) m->w.s[n++] = m->w.s[i];
        m->w.n_s = n;
    }
    m->w.stats.faults += faulted;
    if (faulted) return;
    x->lifecycle = EBB_MACHINE_STOPPED;
    x->there = false;
}

static void enter_state(model *m, int self, uint32_t state) {
    m->w.m[self].state = state;
    m->w.m[self].deferred = 0;
    end_alarms(m, self);
}

/* ---- effects ----------------------------------------------------------------------------------------------------- */

static bool subscribed(const model *m, int self, int kind, uint64_t key) {
    for (int i = 0; i < m->w.n_s; i++)
        if (m->w.s[i].machine == self && m->w.s[i].kind == kind && m->w.s[i].key == key) return true;
    return false;
}

static void apply(model *m, message l) {
    machine *to = l.to >= 0 ? &m->w.m[l.to] : NULL;
    switch (l.what) {
    case MESSAGE:
        if (to->lifecycle <= EBB_MACHINE_RUNNING) put(m, l.to, l);
        else
            make_dead(m, l, l.to, to->lifecycle == EBB_MACHINE_STOPPED ? EBB_DEAD_STOPPED : EBB_DEAD_FAULTED);
        break;
    case REQUEST:
        if (to->lifecycle > EBB_MACHINE_RUNNING) {
            l.place = false;
            call_off(m, l.to, l, to->lifecycle == EBB_MACHINE_FAULTED);
            break;
        }
        if (m->w.r[l.request].within != 0 && !m->w.r[l.request].ended) {
            m->w.r[l.request].due = m->now + m->w.r[l.request].within;
            m->w.r[l.request].order = ++m->w.order;
        }
        put(m, l.to, l);
        break;
    case REPLY:
        m->w.r[l.request].held = false;
        if (!m->w.r[l.request].ended) end_request(m, l.request, l);
        else {
            make_dead(m, l, m->w.r[l.request].requester, EBB_DEAD_LATE);
            m->w.r[l.request].delivered = true;
        }
        unowe(m, l.request);
        break;
    case SPAWN: break;
    case START:
        if (to->lifecycle != EBB_MACHINE_CREATED) break;
        to->lifecycle = EBB_MACHINE_RUNNING;
        to->enter = has_entry[to->type][to->state] || is_final[to->type][to->state];
        if (to->enter || to->n > to->deferred) push_ready(m, l.to);
        break;
    case STOP: end_machine(m, l.to, EBB_MACHINE_STOPPED); break;
    case ARM:
        if (m->w.m[l.to].lifecycle > EBB_MACHINE_RUNNING) m->w.a[l.alarm].live = false;
        else m->w.a[l.alarm].order = ++m->w.order;
        break;
    case FORGET:
        if (m->w.r[l.request].there && !m->w.r[l.request].ended) unwant(m, l.request);
        break;
    case SUBSCRIBE:
        if (m->w.m[l.to].lifecycle <= EBB_MACHINE_RUNNING && !subscribed(m, l.to, l.kind, l.key))
            m->w.s[m->w.n_s++] = (subscription){l.kind, l.to, l.key};
        break;
    case UNSUBSCRIBE:
        for (int i = 0; i < m->w.n_s; i++)
            if (m->w.s[i].machine == l.to && m->w.s[i].kind == l.kind && m->w.s[i].key == l.key) {
                memmove(&m->w.s[i], &m->w.s[i + 1], (size_t)(m->w.n_s - i - 1) * sizeof m->w.s[0]);
                m->w.n_s--;
                break;
            }
        break;
    case NOBODY: make_dead(m, l, -1, EBB_DEAD_NOBODY); break;
    default: break;
    }
}

static void commit_log(model *m) {
    for (int i = 0; i < m->n_log; i++) apply(m, m->log[i]);
    m->n_log = 0;
}

static void stage(model *m, message l) {
    l.from = m->self;
    assert_true(m->n_log < 256);
    m->log[m->n_log++] = l;
}

/* ---- hooks --------------------------------------------------------------------------------------------------------- */

static void run_hooks(model *m) {
    int d = 0, a = 0;
    while (m->faulted || m->n_full > 0 || d < m->n_dead || a < m->n_answers) {
        if (m->faulted) say(&m->a, " [fault %d %d %d]", m->fault_self, m->fault_kind, m->fault_status);
        m->faulted = false;
        for (int i = 0; i < m->n_full; i++) say(&m->a, " [full %d %d]", m->full_to[i], m->full_kind[i]);
        m->n_full = 0;
        if (d < m->n_dead) {
            const message *l = &m->dead[d];
            say(&m->a, " [dead %d: %d to %d from %d %llu]", m->dead_reason[d], l->kind, m->dead_to[d],
                l->from, (unsigned long long)l->s.seed);
            if (l->what == REQUEST) unowe(m, l->request);
            d++;
        }
        if (a < m->n_answers) {
            say(&m->a, " [answer %d: %d/%d]", m->answers[a].request, m->answers[a].kind,
                m->answers[a].failure);
            unwant(m, m->answers[a].request);
            a++;
        }
    }
    m->n_dead = m->n_answers = 0;
}

/* ---- the interface of scripts --------------------------------------------------------------------------------------- */

static bool refuses(const model *m, bool spawns) {
    if (m->ended || m->cancelled) {
        if (m->self < 0 || m->ended || spawns) return true;
    }
    if (m->self >= 0) return spawns && (m->closing || m->cancelled);
    return m->closing || m->cancelled;
}

static void leave(model *m) {
    if (m->self >= 0) return;
    commit_log(m);
    run_hooks(m);
}

static int refuse(model *m, int to, int kind, int st) {
    m->w.stats.refused++;
    if (st == EBB_ERR_MAILBOX_FULL && m->n_full < 8) {
        m->full_to[m->n_full] = to;
        m->full_kind[m->n_full++] = kind;
    }
    return st;
}

static int find(const model *m, int to) {
    if (to < 0 || to >= m->a.machines) return EBB_ERR_UNKNOWN_MACHINE;
    return m->w.m[to].there ? EBB_OK : EBB_ERR_NOT_RUNNING;
}

static int receiver(const model *m, int to) {
    int st = find(m, to);
    return st == EBB_OK && m->w.m[to].lifecycle > EBB_MACHINE_RUNNING ? EBB_ERR_NOT_RUNNING : st;
}

static bool is_full(const model *m, int to) {
    return m->w.m[to].places == mailboxes[m->w.m[to].type];
}

static int do_send(void *ctx, int to, int kind, script s) {
    model *m = ctx;
    if (refuses(m, false)) return EBB_ERR_CLOSED;
    int st = receiver(m, to);
    if (st == EBB_OK && is_full(m, to)) st = EBB_ERR_MAILBOX_FULL;
    if (st != EBB_OK) st = refuse(m, to, kind, st);
    else {
        m->w.m[to].places++;
        stage(m, (message){.what = MESSAGE, .kind = kind, .to = to, .place = true, .s = s});
    }
    leave(m);
    return st;
}

static int do_publish(void *ctx, int kind, uint64_t key, script s) {
    model *m = ctx;
    int n = 0, st = EBB_OK;
    if (refuses(m, false)) return EBB_ERR_CLOSED;
    for (int i = 0; st == EBB_OK && i < m->w.n_s; i++) {
        if (m->w.s[i].kind != kind || m->w.s[i].key != key) continue;
        n++;
        if (is_full(m, m->w.s[i].machine)) st = refuse(m, m->w.s[i].machine, kind, EBB_ERR_MAILBOX_FULL);
    }
    for (int i = 0; st == EBB_OK && i < m->w.n_s; i++) {
        if (m->w.s[i].kind != kind || m->w.s[i].key != key) continue;
        m->w.m[m->w.s[i].machine].places++;
        stage(m, (message){.what = MESSAGE, .kind = kind, .to = m->w.s[i].machine, .place = true, .s = s});
    }
    if (n == 0) stage(m, (message){.what = NOBODY, .kind = kind, .to = -1, .s = s});
    leave(m);
    return st;
}

static int make_request(model *m, int to, int kind, script s, uint64_t within, uint32_t label) {
    int st = receiver(m, to);
    if (st == EBB_OK && is_full(m, to)) st = EBB_ERR_MAILBOX_FULL;
    if (st != EBB_OK) return refuse(m, to, kind, st);
    int i = m->a.requests++;
    m->w.r[i] = (request){.there = true,
                          .wanted = true,
                          .owed = true,
                          .requester = m->self,
                          .responder = to,
                          .kind = kind,
                          .label = label,
                          .within = within,
                          .s = s};
    m->w.m[to].places++;
    m->w.stats.requests++;
    stage(m, (message){.what = REQUEST, .kind = kind, .to = to, .request = i, .place = true, .s = s});
    return i;
}

static int n_made(const model *m, int self) {
    int n = 0;
    for (int i = 0; i < m->a.requests; i++)
        n += m->w.r[i].there && m->w.r[i].wanted && m->w.r[i].requester == self;
    return n;
}

static int do_request(void *ctx, int to, int kind, script s, uint64_t within, uint32_t label) {
    model *m = ctx;
    if (n_made(m, m->self) >= PENDING_MAX) return refuse(m, to, kind, EBB_ERR_PENDING_FULL);
    return make_request(m, to, kind, s, within, label);
}

static int do_call(void *ctx, int to, int kind, script s, uint64_t within) {
    model *m = ctx;
    if (refuses(m, false)) return EBB_ERR_CLOSED;
    int st = make_request(m, to, kind, s, within, 0);
    leave(m);
    return st;
}

static bool handles(const model *m) {
    return m->self >= 0 && m->has_current && m->current.what == REQUEST;
}

static int do_reply(void *ctx, int q, int kind, script s) {
    model *m = ctx;
    if (m->ended) return EBB_ERR_CLOSED;
    if (q < 0 || q >= m->a.requests) {
        if (!handles(m)) return EBB_ERR_INVALID;
        q = m->current.request;
    }
    request *r = &m->w.r[q];
    if (!r->there) return EBB_ERR_REPLIED;
    if (!r->owed) return EBB_ERR_REPLIED;
    if (m->self >= 0 && r->responder != m->self) return EBB_ERR_INVALID;
    if (r->staged) return EBB_ERR_REPLIED;
    if (!r->held && !(handles(m) && m->current.request == q)) return EBB_ERR_INVALID;
    r->staged = true;
    stage(m, (message){.what = REPLY, .kind = kind, .to = -1, .request = q, .s = s});
    m->log[m->n_log - 1].from = r->responder;
    leave(m);
    return EBB_OK;
}

static int do_hold(void *ctx) {
    model *m = ctx;
    if (!handles(m)) return EBB_ERR_INVALID;
    request *r = &m->w.r[m->current.request];
    if (r->held) return EBB_OK;
    if (r->staged) return EBB_ERR_REPLIED;
    r->held = true;
    r->hold_order = ++m->w.hold_order;
    return EBB_OK;
}

static int do_forget(void *ctx, int q) {
    model *m = ctx;
    if (q >= m->a.requests || !m->w.r[q].there) return EBB_ERR_STALE;
    if (m->w.r[q].requester != m->self) return EBB_ERR_INVALID;
    if (m->w.r[q].ended) return EBB_ERR_STALE;
    stage(m, (message){.what = FORGET, .to = -1, .request = q});
    return EBB_OK;
}

static int do_spawn(void *ctx, int type, uint32_t state) {
    model *m = ctx;
    if (refuses(m, true)) return EBB_ERR_CLOSED;
    int i = m->a.machines++;
    m->w.m[i] = (machine){.there = true, .lifecycle = EBB_MACHINE_CREATED, .type = type, .state = state};
    stage(m, (message){.what = SPAWN, .to = i});
    leave(m);
    return i;
}

static int do_start(void *ctx, int to) {
    model *m = ctx;
    if (refuses(m, false)) return EBB_ERR_CLOSED;
    int st = find(m, to);
    if (st == EBB_OK && m->w.m[to].lifecycle != EBB_MACHINE_CREATED)
        st = m->w.m[to].lifecycle == EBB_MACHINE_RUNNING ? EBB_ERR_INVALID : EBB_ERR_NOT_RUNNING;
    if (st == EBB_OK) stage(m, (message){.what = START, .to = to});
    leave(m);
    return st;
}

static int do_stop(void *ctx, int to) {
    model *m = ctx;
    if (refuses(m, false)) return EBB_ERR_CLOSED;
    int st = find(m, to);
    if (st == EBB_OK) stage(m, (message){.what = STOP, .to = to});
    leave(m);
    return st;
}

static int do_become(void *ctx, uint32_t state) {
    model *m = ctx;
    if (m->part != BODY || state >= STATES) return EBB_ERR_INVALID;
    m->next_state = state;
    return EBB_OK;
}

static int do_after(void *ctx, uint64_t span, int kind) {
    model *m = ctx;
    uint32_t n = 0;
    for (int i = 0; i < ALARMS; i++) n += m->w.a[i].live && m->w.a[i].machine == m->self;
    if (n >= EBB_MACHINE_TIMERS) return EBB_ERR_LIMIT;
    int i = find_alarm(m);
    m->w.a[i] = (alarm){.live = true, .machine = m->self, .kind = kind, .due = m->now + span};
    stage(m, (message){.what = ARM, .to = m->self, .alarm = i});
    return EBB_OK;
}

static int do_subscribe(void *ctx, int kind, uint64_t key) {
    model *m = ctx;
    stage(m, (message){.what = SUBSCRIBE, .kind = kind, .to = m->self, .key = key});
    return EBB_OK;
}

static int do_unsubscribe(void *ctx, int kind, uint64_t key) {
    model *m = ctx;
    stage(m, (message){.what = UNSUBSCRIBE, .kind = kind, .to = m->self, .key = key});
    return EBB_OK;
}

/* ---- dispatches ------------------------------------------------------------------------------------------------------ */

static ebb_status body(model *m, const message *l) {
    seen s = {
        .self = m->self, .from = l->from, .kind = l->kind, .request = -1, .state = m->w.m[m->self].state};
    if (l->what == MESSAGE || l->what == REQUEST || l->what == REPLY) s.s = l->s;
    if (l->what == EXPIRY) s.from = m->self;
    if (l->what == REQUEST || l->what == REPLY || l->what == FAILED) s.request = l->request;
    if (l->what == REPLY || l->what == FAILED) {
        s.label = (int)m->w.r[l->request].label;
        s.origin_kind = m->w.r[l->request].kind;
        s.origin_seed = m->w.r[l->request].s.seed;
        s.failure = l->what == FAILED ? l->failure : 0;
    }
    m->w.m[m->self].count++;
    m->part = BODY;
    return run_script(&m->a, &s);
}

static ebb_status change_state(model *m, int self) {
    const machine *x = &m->w.m[self];
    bool changes = m->next_state != x->state, entering = !m->has_current;
    ebb_status st = EBB_OK;
    m->part = ELSE;
    if (changes && has_exit[x->type][x->state]) st = run_entry(&m->a, self, x->state, false);
    if (st == EBB_OK && (changes || entering) && has_entry[x->type][m->next_state])
        st = run_entry(&m->a, self, m->next_state, true);
    return st;
}

static void dispatch(model *m, int self, const message *l) {
    m->before = m->w;
    m->self = self;
    m->has_current = l != NULL;
    if (l != NULL) m->current = *l;
    m->n_log = 0;
    m->next_state = m->w.m[self].state;
    ebb_status st = l == NULL ? EBB_OK : body(m, l);
    if (st == EBB_OK) st = change_state(m, self);
    if (st == EBB_OK && handles(m) && !m->w.r[l->request].staged && !m->w.r[l->request].held)
        st = EBB_ERR_NO_REPLY;
    if (st == EBB_OK) {
        bool changes = m->next_state != m->w.m[self].state;
        if (changes) enter_state(m, self, m->next_state);
        m->w.stats.committed++;
        commit_log(m);
        machine *x = &m->w.m[self];
        if ((changes || l == NULL) && is_final[x->type][x->state] && x->lifecycle == EBB_MACHINE_RUNNING)
            end_machine(m, self, EBB_MACHINE_STOPPED);
        if (l != NULL && (l->what == REPLY || l->what == FAILED)) unwant(m, l->request);
    } else {
        uint64_t refused = m->w.stats.refused;
        m->w = m->before;
        m->n_log = 0;
        m->w.stats.refused = refused;
        m->w.stats.rolled_back++;
        m->faulted = true;
        m->fault_self = self;
        m->fault_kind = l == NULL ? 0 : l->kind;
        m->fault_status = st;
        if (l != NULL) {
            if (l->what == REPLY || l->what == FAILED) unwant(m, l->request);
            if (l->what == REQUEST) fail_request(m, l->request, EBB_REQUEST_FAULTED);
            message copy = *l;
            if (l->what == EXPIRY) copy.from = self;
            make_dead(m, copy, self, EBB_DEAD_FAULTED);
        }
        machine *x = &m->w.m[self];
        int to = fault_states[x->type];
        if (to < 0 || x->state == (uint32_t)to) {
            end_machine(m, self, EBB_MACHINE_FAULTED);
        } else {
            enter_state(m, self, (uint32_t)to);
            for (int i; (i = last_held(m, self)) >= 0;) lose(m, i, EBB_REQUEST_FAULTED);
        }
    }
    m->self = -1;
    m->part = 0;
    m->has_current = false;
}

static void drop(model *m, int self, message l, bool ignored) {
    if (l.what == REQUEST) {
        fail_request(m, l.request, EBB_REQUEST_UNHANDLED);
        make_dead(m, l, self, EBB_DEAD_UNHANDLED);
        return;
    }
    if (l.what == REPLY || l.what == FAILED) unwant(m, l.request);
    if (ignored) m->w.stats.ignored++;
    else if (l.what != STALE) make_dead(m, l, self, EBB_DEAD_UNHANDLED);
}

static void turn(model *m, int self) {
    machine *x = &m->w.m[self];
    if (x->there && x->lifecycle == EBB_MACHINE_RUNNING) {
        if (x->enter) {
            x->enter = false;
            dispatch(m, self, NULL);
        } else if (x->n > x->deferred) {
            const message *l = &x->q[x->deferred];
            int rule = l->what == STALE ? EBB_MACHINE_NONE : rules[x->type][x->state][l->kind];
            if (rule == EBB_MACHINE_DEFER) {
                x->deferred++;
            } else {
                message got = take(x, x->deferred);
                m->w.stats.dispatched++;
                if (got.what == EXPIRY) m->w.a[got.alarm].live = false;
                if (rule == EBB_MACHINE_HANDLE) dispatch(m, self, &got);
                else drop(m, self, got, rule == EBB_MACHINE_IGNORE);
            }
        }
        if (x->there && x->lifecycle == EBB_MACHINE_RUNNING && !x->ready && x->n > x->deferred)
            push_ready(m, self);
    }
    run_hooks(m);
}

/* ---- the dispatcher -------------------------------------------------------------------------------------------------- */

static uint64_t tick(uint64_t due) {
    return (due + EBB_MS - 1) / EBB_MS;
}

/* Again and again the first that is due. */
static void fire_timers(model *m) {
    for (;;) {
        int best_a = -1, best_r = -1;
        uint64_t at = UINT64_MAX, order = UINT64_MAX;
        for (int i = 0; i < ALARMS; i++) {
            const alarm *a = &m->w.a[i];
            if (!a->live || a->queued || a->order == 0 || tick(a->due) > m->now / EBB_MS) continue;
            if (tick(a->due) < at || (tick(a->due) == at && a->order < order)) {
                at = tick(a->due), order = a->order, best_a = i;
            }
        }
        for (int i = 0; i < m->a.requests; i++) {
            const request *r = &m->w.r[i];
            if (!r->there || r->due == 0 || tick(r->due) > m->now / EBB_MS) continue;
            if (tick(r->due) < at || (tick(r->due) == at && r->order < order)) {
                at = tick(r->due), order = r->order, best_r = i, best_a = -1;
            }
        }
        if (best_r >= 0 && best_a < 0) {
            fail_request(m, best_r, EBB_REQUEST_TIMEOUT);
        } else if (best_a >= 0) {
            alarm *a = &m->w.a[best_a];
            a->queued = true;
            put(m, a->machine,
                (message){.what = EXPIRY, .kind = a->kind, .from = a->machine, .alarm = best_a});
        } else {
            return;
        }
    }
}

static int youngest(const model *m) {
    for (int i = m->a.machines - 1; i >= 0; i--)
        if (m->w.m[i].there) return i;
    return -1;
}

static void cancel_one(model *m) {
    int self = youngest(m);
    if (self >= 0) {
        machine *x = &m->w.m[self];
        if (x->lifecycle == EBB_MACHINE_RUNNING) {
            x->enter = false;
            int deferred = x->deferred, done = 0;
            x->deferred = 0;
            for (int i = 0, n = x->n; n > 0; n--, done++) {
                bool answer = x->q[i].what == REPLY || x->q[i].what == FAILED;
                if (answer) x->deferred += done < deferred;
                if (answer) i++;
                else call_off(m, self, take(x, i), false);
            }
            for (int i = m->a.requests - 1; i >= 0; i--)
                if (m->w.r[i].there && m->w.r[i].wanted && m->w.r[i].requester == self)
                    fail_request(m, i, EBB_REQUEST_STOPPED);
            if (x->n > x->deferred) turn(m, self);
        }
        end_machine(m, self, EBB_MACHINE_STOPPED);
        run_hooks(m);
    }
    m->ended = youngest(m) < 0;
}

static int live_requests(const model *m) {
    int n = 0;
    for (int i = 0; i < m->a.requests; i++) n += m->w.r[i].there;
    return n;
}

void model_turn(model *m) {
    if (m->cancelled) {
        cancel_one(m);
        return;
    }
    fire_timers(m);
    run_hooks(m);
    if (m->w.n_ready > 0) {
        uint32_t choices = m->w.n_ready < 8 ? (uint32_t)m->w.n_ready : 8;
        uint32_t nth = choices < 2 ? 0 : m->choose(m->choose_ctx, choices);
        int self = m->w.ready[nth];
        memmove(&m->w.ready[nth], &m->w.ready[nth + 1], (size_t)(m->w.n_ready - (int)nth - 1) * sizeof self);
        m->w.n_ready--;
        m->w.m[self].ready = false;
        turn(m, self);
    }
    if (m->w.n_ready > 0 || !m->closing) return;
    if (!m->stopping) {
        if (model_stats(m).queued > 0 || live_requests(m) > 0) return;
        m->stopping = true;
    }
    int self = youngest(m);
    if (self >= 0) end_machine(m, self, EBB_MACHINE_STOPPED);
    m->ended = youngest(m) < 0;
}

/* ---- looking --------------------------------------------------------------------------------------------------------- */

machine_view model_view(const model *m, int i) {
    const machine *x = &m->w.m[i];
    machine_view v = {.lifecycle = EBB_MACHINE_STOPPED};
    if (!x->there) return v;
    v = (machine_view){x->lifecycle,
                       x->state,
                       (uint32_t)x->n,
                       (uint32_t)x->deferred,
                       (uint32_t)x->places,
                       (uint32_t)n_made(m, i),
                       0,
                       0,
                       0,
                       (uint32_t)x->count};
    for (int k = 0; k < m->a.requests; k++)
        v.held += m->w.r[k].there && m->w.r[k].held && m->w.r[k].responder == i;
    for (int k = 0; k < ALARMS; k++) v.timers += m->w.a[k].live && m->w.a[k].machine == i;
    for (int k = 0; k < m->w.n_s; k++) v.subscriptions += m->w.s[k].machine == i;
    return v;
}

ebb_machines_stats model_stats(const model *m) {
    ebb_machines_stats s = m->w.stats;
    for (int i = 0; i < m->a.machines; i++) {
        const machine *x = &m->w.m[i];
        if (!x->there) continue;
        s.machines++;
        s.queued += (uint32_t)x->n;
        for (int k = 0; k < x->n; k++) s.cells += x->q[k].what != REQUEST;
    }
    for (int i = 0; i < m->a.requests; i++) {
        if (!m->w.r[i].there) continue;
        s.pending++;
        s.cells += 1u + !m->w.r[i].delivered;
    }
    for (int i = 0; i < ALARMS; i++) {
        s.timers += m->w.a[i].live;
        s.cells += m->w.a[i].live && !m->w.a[i].queued;
    }
    s.subscriptions = (uint32_t)m->w.n_s;
    return s;
}

model *model_new(uint32_t (*choose)(void *ctx, uint32_t n), void *choose_ctx) {
    model *m = calloc(1, sizeof *m);
    m->self = -1;
    m->choose = choose;
    m->choose_ctx = choose_ctx;
    m->a = (api){m,        do_send,      do_publish,     do_request, do_call, do_reply,
                 do_hold,  do_forget,    do_spawn,       do_start,   do_stop, do_become,
                 do_after, do_subscribe, do_unsubscribe, 0,          0,       malloc(TEXT),
                 0};
    return m;
}

void model_free(model *m) {
    free(m->a.log);
    free(m);
}

api *model_api(model *m) {
    return &m->a;
}

void model_advance(model *m, uint64_t now) {
    m->now = now;
}

void model_close(model *m) {
    m->closing = true;
}

void model_cancel(model *m) {
    m->closing = m->cancelled = true;
}

bool model_ended(const model *m) {
    return m->ended;
}
