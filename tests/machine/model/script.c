/* Scripts: what handlers do. */
#include "tests/machine/model/model.h"

#define H EBB_MACHINE_HANDLE
#define D EBB_MACHINE_DEFER
#define I EBB_MACHINE_IGNORE
#define N EBB_MACHINE_NONE

/* Kind 0 is the failed request; 1 to 4 messages, 5 and 6 requests, 7 and 8 replies. */
const uint8_t rules[TYPES][STATES][KINDS] = {
    {{H, H, H, H, D, H, H, H, H},
     {H, H, D, I, H, D, H, H, N},
     {N, H, H, D, N, H, N, D, H},
     {N, N, N, N, N, N, N, N, N}},
    {{H, H, H, D, I, H, D, H, H},
     {H, D, H, H, H, H, I, N, H},
     {H, H, N, H, D, N, H, H, H},
     {H, H, H, H, H, H, H, H, H}},
    {{I, H, D, H, H, H, H, H, H},
     {H, H, H, N, D, H, H, H, D},
     {D, N, H, H, H, D, D, H, H},
     {H, N, D, H, H, H, H, I, H}},
};
const bool has_entry[TYPES][STATES] = {{false, true, false, false}, {false}, {true, false, true, false}};
const bool has_exit[TYPES][STATES] = {{false, true, true, false}, {false}, {false, false, true, false}};
const bool is_final[TYPES][STATES] = {{false, false, false, true}, {false}, {false}};
const int fault_states[TYPES] = {-1, 2, -1};
const int mailboxes[TYPES] = {4, 3, 6};

uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t pick(uint64_t *r, uint32_t n) {
    return (uint32_t)((next_random(r) >> 32) * n >> 32);
}

size_t script_size(script s) {
    return s.seed % 3 == 0 ? sizeof s : offsetof(script, pad);
}

void say(api *a, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(a->log + a->n, TEXT - a->n, format, args);
    va_end(args);
    assert_true(n >= 0 && a->n + (size_t)n < TEXT);
    a->n += (size_t)n;
}

static script child(uint64_t *r, uint32_t energy) {
    return (script){.seed = next_random(r) | 1u, .energy = energy == 0 ? 0 : energy - 1};
}

/* One thing that a handler or the host does. True: a delivery was refused. */
static bool act(api *a, uint64_t *r, uint32_t energy, bool inside, int self) {
    script s = child(r, energy);
    int m = a->machines == 0 ? -1 : (int)pick(r, (uint32_t)a->machines + 1) - (pick(r, 8) == 0);
    if (a->machines > 8 && pick(r, 4) > 0) m = a->machines - 1 - (int)pick(r, 7);
    int q = a->requests == 0 ? 0 : (int)pick(r, (uint32_t)a->requests);
    if (pick(r, 3) == 0 && a->requests > 4) q = a->requests - 1 - (int)pick(r, 4);
    uint64_t span = (uint64_t)pick(r, 6) * EBB_MS + pick(r, 2) * 300;
    int kind = 1 + (int)pick(r, 4), what = (int)pick(r, inside ? 32 : 24), st = 0;
    uint64_t key = pick(r, TOPICS / 2);
    switch (what) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
        st = a->send(a->ctx, m, kind, s);
        say(a, " send %d %d=%d", m, kind, st);
        break;
    case 7:
    case 8:
        st = a->publish(a->ctx, 1 + kind % 2, key, s);
        say(a, " publish=%d", st);
        break;
    case 9:
        if (a->machines >= MACHINES - 1) break;
        st = a->spawn(a->ctx, kind % TYPES, pick(r, 3));
        say(a, " spawn=%d", st);
        if (st >= 0 && pick(r, 4) > 0) say(a, " start=%d", a->start(a->ctx, st));
        if (st >= 0 && pick(r, 2) > 0) say(a, " greet=%d", a->send(a->ctx, st, kind, s));
        break;
    case 10: say(a, " start %d=%d", m, a->start(a->ctx, m)); break;
    case 11:
        if (pick(r, 4) == 0) say(a, " stop %d=%d", m, a->stop(a->ctx, m));
        break;
    case 12:
    case 13:
        st = a->reply(a->ctx, q, 7 + kind % 2, s);
        say(a, " reply %d=%d", q, st);
        break;
    case 14:
    case 15:
    case 16:
    case 17:
    case 18:
        if (a->requests >= REQUESTS - 1) break;
        st = inside ? a->request(a->ctx, m, 5 + kind % 2, s, pick(r, 3) == 0 ? span + 1 : 0, pick(r, 99))
                    : a->call(a->ctx, m, 5 + kind % 2, s, pick(r, 3) == 0 ? span + 1 : 0);
        say(a, " request %d=%d", m, st);
        break;
    case 19:
    case 20:
    case 21:
    case 22:
    case 23: break;
    case 24:
    case 25:
    case 26: say(a, " become=%d", a->become(a->ctx, pick(r, STATES + (pick(r, 9) == 0)))); break;
    case 27: say(a, " after=%d", a->after(a->ctx, span, kind)); break;
    case 28: say(a, " subscribe=%d", a->subscribe(a->ctx, 1 + kind % 2, key)); break;
    case 29: say(a, " unsubscribe=%d", a->unsubscribe(a->ctx, 1 + kind % 2, key)); break;
    case 30:
        if (a->requests > 0 && pick(r, 2) == 0) q = a->requests - 1;
        say(a, " forget %d=%d", q, a->forget(a->ctx, q));
        break;
    case 31:
        if (self >= 0 && pick(r, 5) == 0) say(a, " stop self=%d", a->stop(a->ctx, self));
        break;
    default: break;
    }
    return st < 0;
}

ebb_status run_script(api *a, const seen *m) {
    uint64_t r = m->s.seed;
    say(a, "\n%d in %u: %d from %d req %d label %d fail %d origin %d/%llu e%u:", m->self, m->state, m->kind,
        m->from, m->request, m->label, m->failure, m->origin_kind, (unsigned long long)m->origin_seed,
        m->s.energy);
    uint32_t n = m->s.energy == 0 ? 0 : pick(&r, 6);
    bool refused = false;
    bool asked = m->kind == 5 || m->kind == 6;
    uint32_t when = pick(&r, n + 1), how = pick(&r, 12);
    for (uint32_t i = 0; i <= n; i++) {
        if (asked && i == when) {
            script s = child(&r, m->s.energy);
            if (how < 8) say(a, " answer=%d", a->reply(a->ctx, -1, 7 + (int)pick(&r, 2), s));
            else if (how < 11) say(a, " hold=%d", a->hold(a->ctx));
            if (how == 10) say(a, " answer=%d", a->reply(a->ctx, -1, 7, s));
            if (how == 7) say(a, " again=%d", a->reply(a->ctx, -1, 7, s));
        }
        if (i < n && act(a, &r, m->s.energy, true, m->self)) refused = true;
        if (refused && pick(&r, 12) == 0) return EBB_FAILED; /* `?` */
    }
    return pick(&r, 40) == 0 ? EBB_FAILED : EBB_OK;
}

ebb_status run_entry(api *a, int self, uint32_t state, bool entry) {
    uint64_t r = ((uint64_t)self * 77 + state * 5 + entry + a->n) | 1;
    say(a, " %s %d:", entry ? "entry" : "exit", self);
    if (pick(&r, 3) == 0) say(a, " after=%d", a->after(a->ctx, 2 * EBB_MS, 1));
    if (pick(&r, 3) == 0)
        say(a, " send=%d", a->send(a->ctx, self, 2, (script){.seed = next_random(&r), .energy = 1}));
    if (pick(&r, 5) == 0) say(a, " become=%d", a->become(a->ctx, 0));
    return pick(&r, 16) == 0 ? EBB_FAILED : EBB_OK;
}

void run_host(api *a, uint64_t seed) {
    uint64_t r = seed;
    say(a, "\nhost:");
    (void)act(a, &r, 3 + pick(&r, 3), false, -1);
}
