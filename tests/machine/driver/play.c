/* What handlers, hooks, tasks and fibers do when they have their turn. */
#include "tests/machine/driver/driver.h"

enum { MAGIC = 0x5eedf00d };

/* ---- payloads ------------------------------------------------------------------------------------------------ */

static bool has_reference(uint16_t kind) {
    return kind == 2 || kind == 5;
}

static void check_payload(const void *p, uint32_t size) {
    payload head;
    if (size == 0) return;
    memcpy(&head, p, 8);
    if (size < 16 || head.magic != MAGIC) failed("a payload is not what was sent");
}

static void keep(void *p) {
    check_payload(p, 16);
    d.references++;
}
static void drop(void *p) {
    check_payload(p, 16);
    d.references--;
}

static size_t some_payload(payload *p) {
    static const size_t sizes[] = {16, 24, 25, 64, 512};
    *p = (payload){.magic = MAGIC, .n = pick(1000)};
    return sizes[pick(5)];
}

/* The payload has a reference now. Whoever is not OK gives it back. */
static void lend(uint16_t kind) {
    if (has_reference(kind)) d.references++;
}
static bool lent(uint16_t kind, ebb_status st) {
    if (st != EBB_OK && has_reference(kind)) d.references--;
    return st == EBB_OK;
}

static uint16_t some_kind(void) {
    return (uint16_t)(1 + pick(KINDS - 1));
}

static ebb_machine some_machine(void) {
    uint32_t n = d.n_machines < IDS ? d.n_machines : IDS;
    if (n == 0 || one_in(40)) return (ebb_machine){(uint64_t)pick(9) << 32 | pick(3)};
    return d.machine[pick(n)];
}

static uint64_t some_span(void) {
    return one_in(30) ? EBB_FOREVER : pick(8) * EBB_MS / 2;
}

/* ---- operations of machines ------------------------------------------------------------------------------------ */

static ebb_status do_send(void) {
    payload p;
    uint16_t kind = some_kind();
    size_t n = some_payload(&p);
    lend(kind);
    ebb_status st = ebb_machine_send(d.ms, some_machine(), kind, &p, n);
    (void)lent(kind, st);
    return st;
}

static ebb_status do_publish(void) {
    payload p;
    uint16_t kind = some_kind();
    size_t n = some_payload(&p);
    lend(kind);
    ebb_status st = ebb_machine_publish(d.ms, kind, pick(3), &p, n);
    (void)lent(kind, st);
    return st;
}

static void answered(void *arg, const ebb_message *m) {
    call *c = arg;
    c->answers++;
    check_payload(m->origin, m->origin_size);
    if (m->failure == 0) check_payload(m->payload, m->size);
    if (one_in(4)) host_op(d.host);
}

static void do_call(void) {
    payload p;
    uint16_t kind = some_kind();
    size_t n = some_payload(&p);
    call *c = calloc(1, sizeof *c);
    if (c == NULL) abort();
    c->next = d.calls;
    d.calls = c;
    lend(kind);
    ebb_request r =
        ebb_machine_call(d.ms, some_machine(), kind, &p, n, one_in(3) ? some_span() : 0, answered, c);
    c->made = lent(kind, ebb_id_status(r.id));
    c->id = r;
    if (!c->made && c->answers > 0) failed("a call that was refused was answered");
}

static void do_forget_call(void) {
    call *c = d.calls;
    for (uint32_t k = pick(4); c != NULL && k > 0; k--) c = c->next;
    if (c == NULL || c->id.id == 0 || ebb_machine_forget(d.ms, c->id) != EBB_OK) return;
    if (c->answers > 0 || c->forgotten) failed("a call that has ended was forgotten");
    c->forgotten = true;
}

static ebb_status do_reply(ebb_request r) {
    payload p;
    uint16_t kind = some_kind();
    size_t n = some_payload(&p);
    lend(kind);
    ebb_status st = ebb_machine_reply(d.ms, r, kind, &p, n);
    (void)lent(kind, st);
    return st;
}

static void do_reply_held(void) {
    if (d.n_held > 0) (void)do_reply(d.held[pick(d.n_held < IDS ? d.n_held : IDS)]);
}

void answer_held(void) {
    for (uint32_t i = 0; i < IDS && i < d.n_held; i++) (void)do_reply(d.held[i]);
}

static const ebb_machine_type types[TYPES];

static void do_spawn(void) {
    fields f = {.reference = one_in(2) ? ++d.number : 0};
    d.references += f.reference != 0;
    ebb_machine m = ebb_machine_spawn(d.ms, &types[pick(TYPES)], pick(STATES), &f);
    if (ebb_id_status(m.id) != EBB_OK) {
        d.references -= f.reference != 0;
        return;
    }
    d.machine[d.n_machines++ % IDS] = m;
    if (!one_in(8)) (void)ebb_machine_start(d.ms, m);
}

/* There are some to send to. */
static void populate(void) {
    ebb_machines_stats s;
    ebb_machines_stats_of(d.ms, &s);
    for (uint32_t n = s.machines < 8 ? 8 : 1; n > 0; n--) do_spawn();
}

/* ---- the program around them ------------------------------------------------------------------------------------ */

static ebb_future *ask(ebb_cx *cx) {
    static const uint16_t plain[] = {1, 3, 4, 6, 7}; /* a failed ask does not say whose the references are */
    payload p;
    size_t n = some_payload(&p);
    return ebb_machine_ask(cx, d.ms, some_machine(), plain[pick(5)], &p, n, one_in(3) ? some_span() : 0);
}

static void use_answer(ebb_cx *cx, ebb_value v) {
    const ebb_machine_answer *a = v.as.p;
    if (a != NULL) check_payload(a->payload, a->size);
    ebb_value_discard(cx, v);
}

static ebb_future *some_future(ebb_cx *cx) {
    ebb_future *two[2];
    switch (pick(5)) {
    case 0: return ebb_within(cx, ask(cx), some_span());
    case 1:
        two[0] = ask(cx);
        two[1] = ask(cx);
        return ebb_race(cx, 2, two);
    default: return ask(cx);
    }
}

static ebb_status fiber(ebb_cx *cx, void *arg) {
    (void)arg;
    for (uint32_t turns = 1 + pick(12); turns > 0 && !d.ending; turns--) {
        ebb_sleeper nap = {0};
        ebb_wait w = {0};
        uint64_t item = 1;
        ebb_value v;
        ebb_status st = EBB_OK;
        switch (pick(6)) {
        case 0: st = ebb_sleep(cx, &nap, pick(6) * EBB_MS); break;
        case 1: st = d.chan == NULL ? EBB_OK : ebb_chan_send(cx, d.chan, &w, &item); break;
        case 2: st = d.chan == NULL ? EBB_OK : ebb_chan_recv(cx, d.chan, &w, &item); break;
        case 3:
            if (d.ms != NULL && (st = ebb_await(cx, some_future(cx), &v)) == EBB_OK) use_answer(cx, v);
            break;
        default: host_op(cx); break;
        }
        if (st == EBB_CANCELLED && ebb_cancelled(cx)) return st;
    }
    return EBB_OK;
}

static ebb_status task(ebb_cx *cx, void *arg) {
    (void)arg;
    if (d.ending || one_in(3) || ebb_checkpoint(cx) != EBB_OK) return EBB_OK;
    host_op(cx);
    (void)ebb_task_wake(cx, ebb_cx_task(cx));
    return EBB_PENDING;
}

static ebb_region some_region(void) {
    uint32_t k = pick(UNITS + 2);
    if (k < UNITS) return d.unit[k];
    return k == UNITS ? d.service : ebb_runtime_root(d.rt);
}

static void open_unit(ebb_cx *cx) {
    uint32_t k = pick(UNITS);
    ebb_region_close(cx, d.unit[k]);
    d.unit[k] = ebb_region_open(cx, &(ebb_region_opts){.parent = d.service, .unit = !one_in(3)});
}

void drop_handles(bool cancel) {
    for (uint32_t i = 0; i < HANDLES; i++) {
        if (d.handle[i] == NULL) continue;
        if (cancel) (void)ebb_future_cancel(d.handle[i], EBB_CANCEL_USER);
        ebb_future_drop(d.handle[i]);
        d.handle[i] = NULL;
    }
}

/* A future of the root that somebody else cancels. Futures are used outside of handlers and inside. */
static void some_handle(void) {
    uint32_t k = pick(HANDLES);
    if (d.handle[k] == NULL) {
        if (!d.in_handler) d.handle[k] = ask(d.host);
        return;
    }
    (void)ebb_future_cancel(d.handle[k], EBB_CANCEL_USER);
    if (one_in(2)) {
        ebb_future_drop(d.handle[k]);
        d.handle[k] = NULL;
    }
}

/* What anybody may do. */
static void other_op(ebb_cx *cx) {
    uint64_t item = 2;
    switch (pick(10)) {
    case 0: (void)ebb_fiber_spawn(cx, some_region(), fiber, NULL); break;
    case 1: (void)ebb_spawn(cx, some_region(), task, NULL); break;
    case 2: open_unit(cx); break;
    case 3:
        if (d.chan != NULL) (void)ebb_chan_try_send(cx, d.chan, &item);
        break;
    case 4:
        if (d.chan != NULL) (void)ebb_chan_try_recv(cx, d.chan, &item);
        break;
    case 5:
        if (one_in(4)) ebb_region_cancel(cx, d.unit[pick(UNITS)], EBB_CANCEL_USER, NULL);
        if (one_in(300)) ebb_region_close(cx, d.service);
        if (one_in(300)) ebb_region_cancel(cx, ebb_machines_region(d.ms), EBB_CANCEL_USER, NULL);
        break;
    default: some_handle(); break;
    }
}

/* Of the host, a hook, a task or a fiber. */
void host_op(ebb_cx *cx) {
    if (d.energy == 0 || d.ending || d.ms == NULL) return;
    d.energy--;
    switch (pick(12)) {
    case 0:
    case 1: (void)do_send(); break;
    case 2: (void)do_publish(); break;
    case 3:
    case 4: do_call(); break;
    case 5: populate(); break;
    case 6: do_reply_held(); break;
    case 7: do_forget_call(); break;
    case 8:
        if (one_in(4)) (void)ebb_machine_stop(d.ms, some_machine());
        else (void)ebb_machine_start(d.ms, some_machine());
        break;
    default: other_op(cx); break;
    }
}

/* ---- handlers ---------------------------------------------------------------------------------------------------- */

static void replace_reference(fields *f) {
    if (d.replaced) return;
    d.replaced = true;
    f->reference = one_in(3) ? 0 : ++d.number;
    d.references += f->reference != 0;
}

static ebb_status do_request(fields *f) {
    payload p;
    uint16_t kind = some_kind();
    size_t n = some_payload(&p);
    lend(kind);
    ebb_request r =
        ebb_machine_request(d.ms, some_machine(), kind, &p, n, one_in(2) ? some_span() : 0, pick(5));
    if (lent(kind, ebb_id_status(r.id))) f->asked = r;
    return ebb_id_status(r.id);
}

static ebb_status become_copy(const fields *f) {
    fields *next = ebb_machine_alloc(d.ms, sizeof *next);
    if (next == NULL) return EBB_ERR_NOMEM;
    *next = *f;
    next->turns += 1000;
    d.replaced = true; /* a later one would be in `f` alone */
    return ebb_machine_become(d.ms, pick(STATES), next);
}

static ebb_status handler_op(fields *f, const ebb_message *m) {
    switch (pick(16)) {
    case 0:
    case 1: return do_send();
    case 2: return do_publish();
    case 3:
    case 4: return do_request(f);
    case 5: return do_reply(f->held);
    case 6: return ebb_machine_become(d.ms, pick(STATES), NULL);
    case 7: return ebb_machine_after(d.ms, some_span(), some_kind());
    case 8: return ebb_machine_subscribe(d.ms, some_kind(), pick(3));
    case 9: return ebb_machine_unsubscribe(d.ms, some_kind(), pick(3));
    case 10: do_spawn(); return EBB_OK;
    case 11: return one_in(12) ? ebb_machine_stop(d.ms, one_in(2) ? m->self : some_machine()) : EBB_OK;
    case 12: return ebb_machine_forget(d.ms, f->asked);
    case 13: return become_copy(f);
    case 14: replace_reference(f); return EBB_OK;
    default: other_op(d.host); return EBB_OK;
    }
}

static ebb_status some_ops(fields *f, const ebb_message *m) {
    ebb_status st = EBB_OK;
    for (uint32_t k = pick(5); k > 0 && d.energy > 0 && !d.ending; k--) {
        d.energy--;
        st = handler_op(f, m);
        if (st != EBB_OK && one_in(30)) return st; /* `?` */
    }
    return one_in(100) ? EBB_FAILED : EBB_OK;
}

static ebb_status handle(ebb_machines *ms, void *self, const ebb_message *m) {
    fields *f = self;
    d.in_handler = true;
    d.replaced = false;
    f->turns++;
    if (m->payload != NULL && m->failure == 0) check_payload(m->payload, m->size);
    if (m->origin != NULL) check_payload(m->origin, m->origin_size);
    ebb_status st = some_ops(f, m);
    bool is_request = m->request.id != 0 && m->origin == NULL;
    if (st == EBB_OK && is_request && !one_in(100)) {
        if (d.ending || !one_in(3)) {
            st = do_reply((ebb_request){0});
        } else {
            f->held = ebb_machine_hold(ms);
            st = ebb_id_status(f->held.id);
            if (st == EBB_OK) d.held[d.n_held++ % IDS] = f->held;
        }
    }
    d.in_handler = false;
    return st == EBB_ERR_REPLIED ? EBB_OK : st;
}

static ebb_status passes(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    d.in_handler = true;
    d.replaced = true;
    ebb_status st = one_in(3) ? some_ops(self, m) : EBB_OK;
    d.in_handler = false;
    return st;
}

static void settle(const ebb_machine_type *type, bool committed, uint32_t old_state, void *old,
                   uint32_t now_state, void *now) {
    const fields *was = old, *is = now;
    const fields *gone = committed || is == NULL ? was : is, *stays = gone == was ? is : was;
    (void)type;
    (void)old_state;
    (void)now_state;
    if (gone->reference != 0 && (stays == NULL || stays->reference != gone->reference)) d.references--;
}

#define H                                                                                                    \
    { handle, NULL, EBB_MACHINE_HANDLE }
#define D                                                                                                    \
    { NULL, NULL, EBB_MACHINE_DEFER }
#define I                                                                                                    \
    { NULL, NULL, EBB_MACHINE_IGNORE }
#define N                                                                                                    \
    { NULL, NULL, EBB_MACHINE_NONE }
static const ebb_machine_rule table[STATES][KINDS] = {
    {H, H, H, H, H, H, H, H}, {H, H, D, H, D, H, I, D}, {N, H, H, I, H, D, D, N}, {H, N, H, H, D, H, H, H}};
static const uint16_t columns[KINDS] = {1, 8, 7, 6, 5, 4, 3, 2};
static const ebb_machine_state plain[STATES] = {{.name = "A"}, {.name = "B"}, {.name = "C"}, {.name = "D"}};
static const ebb_machine_state rich[STATES] = {{.name = "A", .exit = passes},
                                               {.name = "B", .entry = passes, .exit = passes},
                                               {.name = "C", .entry = passes, .invariant = passes},
                                               {.name = "End", .entry = passes, .final = true}};
#define TYPE(states_, ...)                                                                                   \
    {                                                                                                        \
        .states = (states_), .table = &table[0][0], .fields = sizeof(fields), .n_states = STATES,            \
        .columns = KINDS, .settle = settle, __VA_ARGS__                                                      \
    }
static const ebb_machine_type types[TYPES] = {
    TYPE(plain, .name = "Plain", .mailbox = 3), TYPE(rich, .name = "Rich", .mailbox = 5, .fault_state = 2),
    TYPE(rich, .name = "Column", .column = columns, .fault_state = 4)};

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

static void in_hook(void) {
    if (d.in_handler) failed("a hook runs inside of a handler");
    if (one_in(4)) host_op(d.host);
}
static void on_dead(void *arg, const ebb_dead_letter *dead) {
    (void)arg;
    check_payload(dead->payload, dead->kind == 0 || dead->size < 16 ? 0 : dead->size);
    in_hook();
}
static void on_overflow(void *arg, ebb_machine to, uint16_t kind) {
    (void)arg;
    (void)to;
    (void)kind;
    in_hook();
}
static void on_fault(void *arg, ebb_machine machine, uint16_t kind, ebb_status st) {
    (void)arg;
    (void)machine;
    (void)kind;
    (void)st;
    d.in_handler = false;
    in_hook();
}

static const ebb_machine_kind kinds[KINDS] = {[2] = {"Two", keep, drop}, [5] = {NULL, keep, drop}};

ebb_status open_machines(void) {
    ebb_machines_opts opts = {.parent = d.service,
                              .kinds = kinds,
                              .n_kinds = KINDS,
                              .max_pending = 1 + pick(6),
                              .max_machines = one_in(3) ? 12 : 0,
                              .dead_letter = on_dead,
                              .overflow = on_overflow,
                              .fault = on_fault};
    return ebb_machines_open(d.host, &d.ms, &opts);
}
