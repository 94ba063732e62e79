/* The real machines behind the interface of scripts. */
#include "tests/machine/model/model.h"

typedef struct fields {
    uint32_t ordinal, count;
} fields;

struct real {
    api a;
    ebb_machines *ms;
    ebb_machine machine[MACHINES];
    ebb_request request[REQUESTS];
    const ebb_message *now;
};

static real *the; /* handlers have no other way to it */

static int ordinal_of(const real *r, uint64_t id) {
    for (int i = 0; id != 0 && i < r->a.machines; i++)
        if (r->machine[i].id == id) return i;
    return -1;
}

static int request_of(const real *r, uint64_t id) {
    for (int i = r->a.requests - 1; id != 0 && i >= 0; i--)
        if (r->request[i].id == id) return i;
    return -1;
}

/* An id that no machine has. */
static ebb_machine machine_at(const real *r, int i) {
    return i >= 0 && i < r->a.machines ? r->machine[i] : (ebb_machine){UINT64_C(0x00fffff000000001)};
}

static int do_send(void *ctx, int to, int kind, script s) {
    real *r = ctx;
    return ebb_machine_send(r->ms, machine_at(r, to), (uint16_t)kind, &s, script_size(s));
}
static int do_publish(void *ctx, int kind, uint64_t key, script s) {
    real *r = ctx;
    return ebb_machine_publish(r->ms, (uint16_t)kind, key, &s, script_size(s));
}
static int note_request(real *r, ebb_request q) {
    ebb_status st = ebb_id_status(q.id);
    if (st != EBB_OK) return st;
    r->request[r->a.requests] = q;
    return r->a.requests++;
}
static int do_request(void *ctx, int to, int kind, script s, uint64_t within, uint32_t label) {
    real *r = ctx;
    return note_request(
        r, ebb_machine_request(r->ms, machine_at(r, to), (uint16_t)kind, &s, script_size(s), within, label));
}
static void answered(void *arg, const ebb_message *m) {
    real *r = arg;
    say(&r->a, " [answer %d: %d/%d]", request_of(r, m->request.id), m->kind, m->failure);
}
static int do_call(void *ctx, int to, int kind, script s, uint64_t within) {
    real *r = ctx;
    return note_request(r, ebb_machine_call(r->ms, machine_at(r, to), (uint16_t)kind, &s, script_size(s),
                                            within, answered, r));
}
static int do_reply(void *ctx, int request, int kind, script s) {
    real *r = ctx;
    ebb_request q = {request < 0 || request >= r->a.requests ? 0 : r->request[request].id};
    return ebb_machine_reply(r->ms, q, (uint16_t)kind, &s, script_size(s));
}
static int do_hold(void *ctx) {
    real *r = ctx;
    return ebb_id_status(ebb_machine_hold(r->ms).id);
}
static int do_forget(void *ctx, int request) {
    real *r = ctx;
    if (request >= r->a.requests) return EBB_ERR_STALE;
    return ebb_machine_forget(r->ms, r->request[request]);
}

static ebb_status handle(ebb_machines *ms, void *self, const ebb_message *m) {
    fields *f = self;
    real *r = the;
    ebb_machine_info info;
    seen s = {.self = ordinal_of(r, m->self.id),
              .from = ordinal_of(r, m->from.id),
              .kind = m->kind,
              .request = request_of(r, m->request.id),
              .label = (int)m->label,
              .failure = m->failure,
              .origin_kind = m->origin_kind};
    assert_int_equal(ebb_machine_info_of(ms, m->self, &info), EBB_OK);
    s.state = info.state;
    assert_int_equal(f->ordinal, s.self);
    if (m->origin != NULL) memcpy(&s.origin_seed, m->origin, sizeof s.origin_seed);
    if (m->size > 1) memcpy(&s.s, m->payload, m->size);
    f->count++;
    return run_script(&r->a, &s);
}
static ebb_status on_entry(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    return run_entry(&the->a, (int)((fields *)self)->ordinal, *(const uint32_t *)m->arg, true);
}
static ebb_status on_exit(ebb_machines *ms, void *self, const ebb_message *m) {
    (void)ms;
    return run_entry(&the->a, (int)((fields *)self)->ordinal, *(const uint32_t *)m->arg, false);
}

static ebb_machine_rule tables[TYPES][STATES][KINDS];
static ebb_machine_state states[TYPES][STATES];
static ebb_machine_type types[TYPES];
static const uint32_t numbers[STATES] = {0, 1, 2, 3};
static const uint16_t identity[KINDS] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static void build_types(void) {
    for (int t = 0; t < TYPES; t++) {
        for (int s = 0; s < STATES; s++) {
            for (int k = 0; k < KINDS; k++)
                tables[t][s][k] = (ebb_machine_rule){handle, NULL, rules[t][s][k]};
            states[t][s] = (ebb_machine_state){.name = "S",
                                               .entry = has_entry[t][s] ? on_entry : NULL,
                                               .exit = has_exit[t][s] ? on_exit : NULL,
                                               .arg = &numbers[s],
                                               .final = is_final[t][s]};
        }
        types[t] = (ebb_machine_type){.name = "T",
                                      .states = states[t],
                                      .table = &tables[t][0][0],
                                      .column = t == 1 ? identity : NULL,
                                      .fields = (uint32_t)(sizeof(fields) + 40u * (unsigned)t),
                                      .n_states = STATES,
                                      .columns = KINDS,
                                      .mailbox = (uint16_t)mailboxes[t],
                                      .fault_state = (uint16_t)(fault_states[t] + 1)};
    }
}

static int do_spawn(void *ctx, int type, uint32_t state) {
    real *r = ctx;
    unsigned char f[256] = {0};
    memcpy(f, &(fields){.ordinal = (uint32_t)r->a.machines}, sizeof(fields));
    ebb_machine m = ebb_machine_spawn(r->ms, &types[type], state, f);
    ebb_status st = ebb_id_status(m.id);
    if (st != EBB_OK) return st;
    r->machine[r->a.machines] = m;
    return r->a.machines++;
}
static int do_start(void *ctx, int machine) {
    real *r = ctx;
    return ebb_machine_start(r->ms, machine_at(r, machine));
}
static int do_stop(void *ctx, int machine) {
    real *r = ctx;
    return ebb_machine_stop(r->ms, machine_at(r, machine));
}
static int do_become(void *ctx, uint32_t state) {
    real *r = ctx;
    return ebb_machine_become(r->ms, state, NULL);
}
static int do_after(void *ctx, uint64_t span, int kind) {
    real *r = ctx;
    return ebb_machine_after(r->ms, span, (uint16_t)kind);
}
static int do_subscribe(void *ctx, int kind, uint64_t key) {
    real *r = ctx;
    return ebb_machine_subscribe(r->ms, (uint16_t)kind, key);
}
static int do_unsubscribe(void *ctx, int kind, uint64_t key) {
    real *r = ctx;
    return ebb_machine_unsubscribe(r->ms, (uint16_t)kind, key);
}

static void on_dead(void *arg, const ebb_dead_letter *d) {
    real *r = arg;
    uint64_t seed = 0;
    if (d->size > 1) memcpy(&seed, d->payload, sizeof seed);
    say(&r->a, " [dead %d: %d to %d from %d %llu]", d->reason, d->kind, ordinal_of(r, d->to.id),
        ordinal_of(r, d->from.id), (unsigned long long)seed);
}
static void on_overflow(void *arg, ebb_machine to, uint16_t kind) {
    real *r = arg;
    say(&r->a, " [full %d %d]", ordinal_of(r, to.id), kind);
}
static void on_fault(void *arg, ebb_machine machine, uint16_t kind, ebb_status st) {
    real *r = arg;
    say(&r->a, " [fault %d %d %d]", ordinal_of(r, machine.id), kind, st);
}

real *real_new(ebb_runtime *rt) {
    real *r = calloc(1, sizeof *r);
    build_types();
    the = r;
    r->a = (api){r,        do_send,      do_publish,     do_request, do_call, do_reply,
                 do_hold,  do_forget,    do_spawn,       do_start,   do_stop, do_become,
                 do_after, do_subscribe, do_unsubscribe, 0,          0,       malloc(TEXT),
                 0};
    ebb_machines_opts opts = {.n_kinds = KINDS,
                              .max_pending = PENDING_MAX,
                              .dead_letter = on_dead,
                              .overflow = on_overflow,
                              .fault = on_fault,
                              .arg = r};
    assert_int_equal(ebb_machines_open(ebb_runtime_host(rt), &r->ms, &opts), EBB_OK);
    return r;
}

void real_free(real *r) {
    assert_int_equal(ebb_machines_free(r->ms), EBB_OK);
    free(r->a.log);
    free(r);
}

api *real_api(real *r) {
    return &r->a;
}

ebb_machines *real_machines(real *r) {
    return r->ms;
}

machine_view real_view(const real *r, int machine) {
    ebb_machine_info i;
    assert_int_equal(ebb_machine_info_of(r->ms, r->machine[machine], &i), EBB_OK);
    machine_view v = {.lifecycle = (int)i.lifecycle};
    if (i.type == NULL) return v;
    v = (machine_view){
        (int)i.lifecycle, i.state, i.queued, i.deferred,      i.reserved,
        i.pending,        i.held,  i.timers, i.subscriptions, ((const fields *)i.fields)->count};
    return v;
}
