/* A run in a network: programs take turns, and when all of them wait the time advances to the next event. */
#define _POSIX_C_SOURCE 200809L
#include "lab/network.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include <ebb/workflow.h>

enum {
    TURNS = 1000000,       /* decisions in a run before it counts as a livelock */
    TURNS_ENDING = 200000, /* turns after a failure, before programs are abandoned */
    TURNS_A_MOMENT = 4096, /* then the time advances, otherwise a spinning task would stop the clock */
    ODDS = 32,             /* of a fault that may happen */
    SHOWN = 40
};
#define BEGINS   EBB_SECOND /* the time when a run begins: 0 would be special */
#define PATIENCE (600 * EBB_SECOND)
#define PAUSE    (10 * EBB_MS)
#define ENDING   (60 * EBB_SECOND) /* between the signals that end a failed run */

static _Thread_local ebb__net *here;

ebb__net *ebb__net_here(void) {
    return here;
}

ebb__net_program *ebb__net_running(void) {
    return here->running;
}

ebb_lab *ebb_lab_here(void) {
    return here == NULL ? NULL : here->lab;
}

bool ebb_lab_disturbed(const ebb_lab *lab) {
    const ebb__net *net = lab->network;
    return net != NULL && net->disturbed;
}

static bool going(const ebb__net *net) {
    return net->lab->result.status == EBB_OK;
}

/* ---- failing ------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static void fail(ebb__net *net, uint32_t program, const char *failure,
                                                       const char *format, ...) {
    char text[sizeof net->lab->result.text];
    va_list args;
    if (!going(net)) return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ebb__lab_stop(net->lab, strcmp(failure, "livelock") == 0 ? EBB_ERR_LIMIT : EBB_FAILED, failure, text);
    net->lab->result.runtime = program;
}

/* ---- events -------------------------------------------------------------------------------------------- */

void ebb__net_later(ebb__net *net, uint64_t at, void (*happens)(ebb__net *net, void *arg), void *arg) {
    ebb__net_event *e = net->spare_events;
    if (e != NULL) net->spare_events = e->next;
    else if ((e = ebb_lab_alloc(net->lab, sizeof *e)) == NULL) return;
    *e = (ebb__net_event){.at = at, .number = net->number++, .happens = happens, .arg = arg};
    ebb__net_event **where = &net->events;
    while (*where != NULL && (*where)->at <= at) where = &(*where)->next;
    e->next = *where;
    *where = e;
}

static void happen(ebb__net *net) {
    while (net->events != NULL && net->events->at <= net->lab->now) {
        ebb__net_event *e = net->events;
        net->events = e->next;
        assert(net->events == NULL || net->events->at >= e->at); /* in the order of their times */
        e->happens(net, e->arg);
        e->next = net->spare_events;
        net->spare_events = e;
    }
}

/* ---- faults -------------------------------------------------------------------------------------------- */

bool ebb__net_fault_now(ebb__net *net, ebb__net_fault kind) {
    if (net->faults_left[kind] == 0 || ebb__choose(net->lab, ODDS) != ODDS - 1) return false;
    net->faults_left[kind]--;
    net->disturbed = true;
    return true;
}

uint64_t ebb__net_cut_until(const ebb__net *net, uint32_t a, uint32_t b) {
    uint64_t until = net->cut_until[a][b];
    return until > net->lab->now ? until : 0;
}

/* A partition may last for ever; a shorter one does not end a longer one. */
static void cut(ebb__net *net, uint32_t a, uint32_t b, uint64_t ns) {
    uint64_t now = net->lab->now, until = ns < EBB_FOREVER - now ? now + ns : EBB_FOREVER;
    net->disturbed = true;
    if (until > net->cut_until[a][b]) net->cut_until[a][b] = net->cut_until[b][a] = until;
}

static void maybe_cut(ebb__net *net) {
    static const uint64_t times[] = {EBB_SECOND, 10 * EBB_SECOND, 100 * EBB_SECOND};
    if (net->n < 2 || !ebb__net_fault_now(net, EBB__NET_PARTITION)) return;
    uint32_t a = ebb__choose(net->lab, net->n), b = (a + 1 + ebb__choose(net->lab, net->n - 1)) % net->n;
    cut(net, a, b, times[ebb__choose(net->lab, 3)]);
}

ebb__net_program *ebb__net_program_named(const ebb__net *net, const char *name) {
    for (uint32_t i = 0; i < net->n; i++) {
        if (strcmp(net->program[i]->what->name, name) == 0) return net->program[i];
    }
    return NULL;
}

static ebb__net_program *named(const ebb_lab *lab, const char *name) {
    return lab->network == NULL ? NULL : ebb__net_program_named(lab->network, name);
}

ebb_status ebb_lab_signal(ebb_lab *lab, const char *program, int signum) {
    ebb__net_program *p = named(lab, program);
    if (p == NULL || signum < 1 || signum > 63) return EBB_ERR_INVALID;
    p->net->disturbed = true;
    ebb__net_signal_raise(p, signum);
    return EBB_OK;
}

ebb_status ebb_lab_partition(ebb_lab *lab, const char *a, const char *b, uint64_t ns) {
    ebb__net_program *p = named(lab, a), *q = named(lab, b);
    if (p == NULL || q == NULL) return EBB_ERR_INVALID;
    cut(lab->network, p->index, q->index, ns);
    return EBB_OK;
}

ebb_status ebb_lab_reset(ebb_lab *lab, const char *program) {
    ebb__net_program *p = named(lab, program);
    if (p == NULL) return EBB_ERR_INVALID;
    p->net->disturbed = true;
    ebb__net_reset_all(p);
    return EBB_OK;
}

/* ---- injection ----------------------------------------------------------------------------------------- */

static void act(ebb__net_loop *l, ebb_lab_action action) {
    ebb__net_program *p = l->program;
    ebb_cx *cx = ebb_loop_cx(l->watched);
    ebb__loop_wake(l->watched); /* so that a turn follows */
    ebb_region root = ebb_runtime_root(l->watched->rt);
    switch (action) {
    case EBB_LAB_CANCEL:
        ebb_task_cancel(cx, (ebb_task){p->net->lab->runtime[p->index].polled}, EBB_CANCEL_USER, "injected");
        break;
    case EBB_LAB_STOP: ebb__net_signal_raise(p, SIGTERM); break;
    case EBB_LAB_SHUTDOWN: ebb_region_cancel(cx, root, EBB_CANCEL_SHUTDOWN, "injected"); break;
    case EBB_LAB_FORCE:
        p->forced = true;
        ebb_region_force(cx, root);
        break;
    case EBB_LAB_RESET: ebb__net_reset_all(p); break;
    default: break;
    }
}

void ebb__net_polled(ebb__net_loop *l) {
    ebb__net_program *p = l->program;
    ebb__net *net = p->net;
    const ebb_lab_case *c = net->lab->c;
    if (l->watched == NULL) return;
    uint64_t polls = ebb__rt_polls(l->watched->rt), n = polls - p->polls;
    p->polls = polls;
    net->polls += n;
    if (n == 0 || c->action == EBB_LAB_NOTHING || net->acted || net->polls < c->point || !going(net)) return;
    ebb__lab_take_all(net->lab, false); /* to know which task was polled */
    net->acted = net->disturbed = true;
    act(l, c->action);
}

/* ---- the end of programs ------------------------------------------------------------------------------- */

static void check_status(ebb__net_program *p) {
    ebb__net *net = p->net;
    const char *name = p->what->name;
    if (p->status == EBB_SERVICE_LEAK && !p->forced)
        fail(net, p->index, "leak", "%s left something behind: its exit status is 5", name);
    if (p->status != 0 && !net->disturbed)
        fail(net, p->index, "exit", "%s ended with the exit status %d; nothing has disturbed the run", name,
             p->status);
    if (p->what->main == NULL && p->memory.live != 0)
        fail(net, p->index, "leak", "%s ended and left %d blocks of memory", name, (int)p->memory.live);
}

/* A forced service does not wait for the threads of the pool. */
static void check_left(ebb__net_program *p) {
    const ebb__net_loop *l = p->loops;
    if (p->forced) return;
    if (p->open > 0)
        fail(p->net, p->index, "left", "%s ended and left %u descriptors open", p->what->name, p->open);
    if (l != NULL) fail(p->net, p->index, "left", "%s ended and did not close its libuv loop", p->what->name);
}

static void ended(ebb__net_program *p) {
    if (!going(p->net)) return;
    check_status(p);
    check_left(p);
}

/* ---- turns --------------------------------------------------------------------------------------------- */

static bool services_are_up(const ebb__net *net) {
    bool up = true;
    for (uint32_t i = 0; i < net->n; i++) {
        const ebb__net_program *p = net->program[i];
        up &= p->what->main == NULL || p->what->never_listens || p->up || p->state == EBB__NET_ENDED;
    }
    return up || net->stopping;
}

static bool can_run(const ebb__net_program *p) {
    if (p->state == EBB__NET_ENDED) return false;
    if (p->state == EBB__NET_NEW) return p->what->main != NULL || services_are_up(p->net);
    return p->until <= p->net->lab->now || ebb__net_loop_is_ready(p->polling);
}

/* The next time at which something happens. */
static uint64_t next_moment(const ebb__net *net) {
    uint64_t at = net->events == NULL ? EBB_FOREVER : net->events->at;
    for (uint32_t i = 0; i < net->n; i++) {
        const ebb__net_program *p = net->program[i];
        bool waits = p->state == EBB__NET_WAITS && p->until > net->lab->now;
        if (waits && p->until < at) at = p->until;
    }
    return at;
}

static void run(ebb__net *net, uint32_t i) {
    ebb__net_program *p = net->program[i];
    assert(net->running == NULL && p->state != EBB__NET_ENDED);
    const ebb__platform *before = ebb__platform_set(&ebb__net_platform);
    net->last = i;
    ebb__net_program_resume(p);
    (void)ebb__platform_set(before);
    if (p->state == EBB__NET_ENDED) ended(p);
    ebb__lab_take_all(net->lab, false);
}

static void advance(ebb__net *net, uint64_t at) {
    assert(at > net->lab->now && at != EBB_FOREVER);
    net->lab->now = at;
    net->lab->since_advance = 0;
    if (going(net)) maybe_cut(net);
}

static void do_step(ebb__net *net) {
    const ebb_lab_scenario *s = net->lab->c->scenario;
    if (s->step != NULL) s->step(net->lab, net->lab->next_step);
    net->lab->next_step++;
}

/* The alternatives: a program that can run, in turn after the last; an advance of the time; the scenario's next step.
 * False: there is none. */
static bool decide(ebb__net *net) {
    ebb_lab *lab = net->lab;
    uint32_t ready[EBB_LAB_RUNTIMES], n = 0;
    happen(net);
    for (uint32_t k = 1; k <= net->n; k++) {
        uint32_t i = (net->last + k) % net->n;
        if (can_run(net->program[i])) ready[n++] = i;
    }
    uint64_t at = next_moment(net);
    if (at != EBB_FOREVER && lab->since_advance >= TURNS_A_MOMENT) n = 0;
    /* While a program can run, the time advances only by a short pause of all programs. */
    bool advances = at != EBB_FOREVER && (n == 0 || at - lab->now <= PAUSE),
         steps = lab->next_step < lab->c->scenario->steps && going(net);
    if (n + advances + steps == 0) return false;
    uint32_t which = ebb__choose(lab, n + advances + steps);
    lab->result.steps++;
    lab->since_advance++;
    net->turns++;
    if (which < n) run(net, ready[which]);
    else if (which == n && advances) advance(net, at);
    else do_step(net);
    return true;
}

/* ---- the end of a run ---------------------------------------------------------------------------------- */

static const ebb__net_program *first_left(const ebb__net *net, bool clients) {
    for (uint32_t i = 0; i < net->n; i++) {
        const ebb__net_program *p = net->program[i];
        if (p->state != EBB__NET_ENDED && (!clients || p->what->main == NULL)) return p;
    }
    return NULL;
}

static void stop_all(ebb__net *net) {
    net->stopping = true;
    net->stopping_since = net->lab->now;
    for (uint32_t i = 0; i < net->n; i++) ebb__net_signal_raise(net->program[i], SIGTERM);
}

static void stuck(ebb__net *net, const ebb__net_program *p, const char *how) {
    fail(net, p->index, "stuck", "%s has not ended: %s, at %llu ms", p->what->name, how,
         (unsigned long long)((net->lab->now - BEGINS) / EBB_MS));
}

/* False: all programs have ended, or the run has failed. */
static bool goes_on(ebb__net *net) {
    const ebb__net_program *left = first_left(net, false);
    uint64_t patience = net->limits->patience != 0 ? net->limits->patience : PATIENCE;
    uint64_t since = net->stopping ? net->stopping_since : BEGINS;
    uint64_t most = net->lab->opts.max_steps != 0 ? net->lab->opts.max_steps : TURNS;
    if (left == NULL || !going(net)) return false;
    if (!net->stopping && first_left(net, true) == NULL &&
        net->lab->next_step >= net->lab->c->scenario->steps)
        stop_all(net);
    else if (net->lab->now - since > patience)
        stuck(net, net->stopping ? left : first_left(net, true),
              "it runs for longer than the patience of the lab");
    else if (net->turns > most)
        fail(net, left->index, "livelock", "%s has not ended after %llu decisions", left->what->name,
             (unsigned long long)net->turns);
    return going(net);
}

static void play(ebb__net *net) {
    while (goes_on(net)) {
        if (decide(net) || net->lab->next_step < net->lab->c->scenario->steps) continue;
        const ebb__net_program *left = first_left(net, !net->stopping);
        if (left != NULL && going(net)) stuck(net, left, "nothing will wake it");
    }
}

/* After a failure the programs get two signals to end, so that they free their memory. No decision is recorded, and no
 * fault is made. */
static void wind_down(ebb__net *net) {
    net->lab->winding_down = true;
    memset(net->cut_until, 0, sizeof net->cut_until);
    memset(net->faults_left, 0, sizeof net->faults_left);
    for (int i = 0; i < 2 && first_left(net, false) != NULL; i++) {
        uint64_t until = net->lab->now + ENDING, turns = net->turns + TURNS_ENDING;
        stop_all(net);
        while (first_left(net, false) != NULL && net->lab->now < until && net->turns < turns && decide(net)) {
        }
    }
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static bool parse_ip(const char *ip, struct sockaddr_storage *out) {
    return uv_ip4_addr(ip, 0, (struct sockaddr_in *)(void *)out) == 0 ||
           uv_ip6_addr(ip, 0, (struct sockaddr_in6 *)(void *)out) == 0;
}

/* A scenario that can't be played. */
__attribute__((format(printf, 2, 3))) static ebb_status invalid(ebb__net *net, const char *format, ...) {
    char text[120];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ebb__lab_stop(net->lab, EBB_ERR_INVALID, "check", text);
    return EBB_ERR_INVALID;
}

static ebb_status program_new(ebb__net *net, uint32_t i) {
    const ebb_lab_program *what = &net->limits->programs[i];
    ebb__net_program *p = ebb_lab_alloc(net->lab, sizeof *p);
    if (p == NULL) return EBB_ERR_NOMEM;
    p->what = what;
    p->net = net;
    p->index = p->machine = i;
    p->random = i + 1;
    p->memory.inner = net->lab->allocator;
    if (what->name == NULL || (what->main == NULL && what->fn == NULL))
        return invalid(net, "program %" PRIu32 " needs a name, and main or fn", i);
    if (!parse_ip(what->ip == NULL ? "127.0.0.1" : what->ip, &p->ip))
        return invalid(net, "program %s: '%s' is no address", what->name, what->ip);
    while (p->machine > 0 && memcmp(&net->program[p->machine - 1]->ip, &p->ip, sizeof p->ip) != 0)
        p->machine--;
    p->machine = p->machine > 0 ? net->program[p->machine - 1]->machine : i;
    net->program[i] = p;
    net->n = i + 1;
    return ebb__net_program_start(p);
}

static void set_faults(ebb__net *net) {
    const ebb_lab_network *l = net->limits;
    const uint32_t most[EBB__NET_FAULTS] = {l->resets,      l->refusals,    l->losses,       l->partitions,
                                            l->name_errors, l->file_errors, l->accept_errors};
    memcpy(net->faults_left, most, sizeof most);
}

static ebb_status begin(ebb__net *net) {
    ebb_lab *lab = net->lab;
    const ebb_lab_scenario *s = lab->c->scenario;
    const ebb_lab_network *what = s->network;
    if (what == NULL) return invalid(net, "the scenario has no network");
    if (what->n == 0 || what->n > EBB_LAB_RUNTIMES)
        return invalid(net, "a network has 1 to %d programs, not %" PRIu32, EBB_LAB_RUNTIMES, what->n);
    net->limits = what;
    net->last = what->n - 1;
    lab->now = BEGINS;
    lab->next_step = 0;
    lab->since_advance = 0;
    set_faults(net);
    lab->state = ebb_lab_alloc(lab, s->state_size == 0 ? 1 : s->state_size);
    ebb_status st = lab->state == NULL ? EBB_ERR_NOMEM : EBB_OK;
    for (uint32_t i = 0; i < what->n && st == EBB_OK; i++) st = program_new(net, i);
    return st == EBB_OK && s->setup != NULL ? s->setup(lab) : st;
}

void ebb__net_play(ebb_lab *lab) {
    const ebb_lab_scenario *s = lab->c->scenario;
    ebb__net *around = here, *net = ebb_lab_alloc(lab, sizeof *net);
    if (net == NULL) return;
    net->lab = lab;
    lab->network = here = net;
    ebb_status st = begin(net);
    if (st != EBB_OK) ebb__lab_stop(lab, st, st == EBB_ERR_NOMEM ? "" : "check", ebb_status_text(st));
    if (st == EBB_OK) play(net);
    if (going(net) && s->check != NULL) s->check(lab);
    if (!going(net)) wind_down(net);
    lab->result.polls = net->polls;
    lab->result.rounds = 1;
    for (uint32_t i = 0; i < net->n; i++) ebb__net_program_free(net->program[i]);
    if (lab->state != NULL && s->teardown != NULL) s->teardown(lab);
    lab->network = NULL;
    here = around;
}

void ebb_lab_network_play(ebb_lab *lab) {
    const ebb_lab_network *what = lab->c->scenario->network;
    if (what != NULL && what->forks) ebb__net_play_apart(lab);
    else ebb__net_play(lab);
}
