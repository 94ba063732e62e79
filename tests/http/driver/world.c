/* One run: the runtimes, servers, clients and peers, how they are stopped, and what has to hold in the end. */
#include "tests/http/driver/driver.h"

#include <dirent.h>
#include <stdarg.h>
#include <stddef.h>

tally driver_tally;
const char *driver_cert, *driver_key, *driver_ca;
bool driver_talks;

/* ---- chance --------------------------------------------------------------------------------------------------- */

uint32_t roll(dice *d, uint32_t n) {
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

dice dice_of(const world *w, uint32_t number) {
    dice d = {w->seed * UINT64_C(0x2545f4914f6cdd1d) + number};
    (void)roll(&d, 2);
    return d;
}

uint32_t size_of_body(dice *d) {
    static const uint32_t most[] = {1, 2, 100, 3000, 20000, 150000, 3000000};
    return roll(d, most[roll(d, chance(d, 10) ? 7 : 6)]);
}

size_t size_of_piece(dice *d) {
    static const uint32_t most[] = {1, 100, 2000, 9000, 20000, 60000, 300000};
    return 1 + roll(d, most[roll(d, 7)]);
}

uint8_t byte_at(uint32_t id, int up, size_t at) {
    uint32_t z = (uint32_t)at * 2654435761u + id * 40503u + (uint32_t)up * 97u;
    return (uint8_t)(z >> 24 ^ z >> 13);
}

void fill(uint8_t *into, uint32_t id, int up, size_t from, size_t n) {
    for (size_t i = 0; i < n; i++) into[i] = byte_at(id, up, from + i);
}

bool fits(const void *bytes, uint32_t id, int up, size_t from, size_t n) {
    const uint8_t *b = bytes;
    for (size_t i = 0; i < n; i++) {
        if (b[i] == byte_at(id, up, from + i)) continue;
        fprintf(stderr, "request %u: byte %zu of %zu is 0x%02x\n", id, from + i, from + n, b[i]);
        return false;
    }
    return true;
}

bool answers(const request *r, const void *bytes, size_t from, size_t n) {
    return r->events || fits(bytes, r->id, r->echo, from, n);
}

/* ---- what must hold ---------------------------------------------------------------------------------------------- */

void must(const world *w, bool holds, const char *what, uint64_t value) {
    if (holds) return;
    fprintf(stderr, "seed %" PRIu64 ": %s: %" PRIu64 "\n", w->seed, what, value);
    abort();
}

void talk(const char *format, ...) {
    va_list args;
    if (!driver_talks) return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

static world *now_running;

static void put_text(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)fwrite(text, 1, n, stderr);
}

/* What is alive, for a run that hangs. */
void tell_world(void) {
    const world *w = now_running;
    for (uint32_t i = 0; w != NULL && i < w->requests_n; i++) {
        const request *r = &w->requests[i];
        if (r->ends < r->calls)
            fprintf(stderr, "request %u has no end, its handler ran %u times\n", r->id, r->runs);
    }
    for (int i = 0; now_running != NULL && i < SIDES; i++) {
        if (now_running->sides[i].loop == NULL) continue;
        fprintf(stderr, "side %d, %u actors\n", i, now_running->actors);
        ebb_runtime_dump(now_running->sides[i].rt, put_text, NULL);
        ebb_future_dump(now_running->sides[i].rt, put_text, NULL);
    }
}

static void misused(void *ctx, ebb_status st, const char *what, const char *site) {
    fprintf(stderr, "misuse: %s %s %s\n", ebb_status_name(st), what, site == NULL ? "" : site);
    ((side *)ctx)->misuse++;
}

static int descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d != NULL && readdir(d) != NULL) n++;
    if (d != NULL) closedir(d);
    return n;
}

/* ---- memory of actors ---------------------------------------------------------------------------------------------- */

typedef struct block {
    struct block *next, **at;
    max_align_t bytes[];
} block;

void *grab(world *w, size_t n) {
    block *b = calloc(1, sizeof *b + n);
    if (b == NULL) abort();
    b->next = w->blocks;
    b->at = &w->blocks;
    if (b->next != NULL) b->next->at = &b->next;
    w->blocks = b;
    return b->bytes;
}

void release(void *p) {
    block *b = (block *)((char *)p - offsetof(block, bytes));
    *b->at = b->next;
    if (b->next != NULL) b->next->at = b->at;
    free(b);
}

request *request_new(world *w) {
    if (w->requests_n == REQUESTS) return NULL;
    request *r = &w->requests[w->requests_n];
    *r = (request){.world = w, .id = w->requests_n++};
    return r;
}

ebb_status nap(ebb_cx *cx, uint64_t ns) {
    return ebb_await(cx, ebb_after(cx, ns), NULL);
}

/* ---- the start ------------------------------------------------------------------------------------------------------ */

static void side_start(world *w, side *s) {
    ebb_heap_opts heap = {.verify = chance(&w->dice, 4), .misuse = misused, .ctx = s};
    if (chance(&w->dice, 4)) heap.trigger = 1 << 16;
    ebb_loop_opts opts = {.runtime.allocator = ebb_failing_allocator(&s->memory), .heap = &heap};
    opts.runtime.cleanup[1].time_ns = opts.runtime.cleanup[2].time_ns = (1 + roll(&w->dice, 300)) * EBB_MS;
    if (chance(&w->dice, 3)) opts.polls = 1 + roll(&w->dice, 20);
    s->memory.inner = ebb_libc_allocator();
    must(w, ebb_loop_attach(&w->uv, &opts, &s->loop) == EBB_OK, "attach", 0);
    s->rt = ebb_loop_runtime(s->loop);
    s->cx = ebb_loop_cx(s->loop);
    s->region = ebb_region_open(s->cx, &(ebb_region_opts){.policy = EBB_FAIL_COLLECT});
}

static ebb_http_limits limits_by_chance(dice *d) {
    ebb_http_limits l = {0};
    if (chance(d, 4)) l.connections = 1 + roll(d, 6);
    if (chance(d, 3)) l.streams = 1 + roll(d, 6);
    if (chance(d, 5)) l.requests = 1 + roll(d, 10);
    if (chance(d, 3)) l.write_bytes = 17408 + roll(d, 20000);
    if (chance(d, 5)) l.memory_bytes = (1 << 20) + roll(d, chance(d, 2) ? 100000 : 8000000);
    if (chance(d, 5)) l.body_bytes = 1 + roll(d, 30000);
    if (chance(d, 4)) l.stalled = 1 + roll(d, 8);
    l.body_ns = (1 + roll(d, chance(d, 5) ? 20 : 500)) * EBB_MS; /* clients may wait for what does not come */
    l.write_ns = (1 + roll(d, chance(d, 5) ? 20 : 500)) * EBB_MS;
    if (chance(d, 5)) l.body_rate = chance(d, 2) ? EBB_HTTP_NO_RATE : 1 + roll(d, 1000000);
    if (chance(d, 5)) l.write_rate = chance(d, 2) ? EBB_HTTP_NO_RATE : 1 + roll(d, 1000000);
    if (chance(d, 6)) l.idle_ns = (1 + roll(d, 20)) * EBB_MS;
    if (chance(d, 6)) l.header_ns = (1 + roll(d, 20)) * EBB_MS;
    if (chance(d, 2)) l.resets = l.resets_second = 1000000;
    if (chance(d, 2)) l.frames = l.frames_second = 1000000;
    return l;
}

static void access_line(void *ctx, const char *line, size_t n) {
    const world *w = ctx;
    must(w, n > 0 && line[n - 1] == '\n', "a line of the access log", n);
}

static void servers_start(world *w) {
    ebb_cx *cx = w->serving->cx;
    ebb_tls_opts tls = {.cert_file = driver_cert, .key_file = driver_key};
    ebb_address at;
    for (int i = 0; i < SERVERS; i++) {
        ebb_http_server_opts o = {.address = {"127.0.0.1", 0}, .tls = i == 1 ? &tls : NULL};
        if (i == 1 && chance(&w->dice, 2)) continue;
        o.limits = limits_by_chance(&w->dice);
        if (chance(&w->dice, 2)) o.access = access_line, o.ctx = w;
        must(w, ebb_http_listen(cx, &o, &w->servers[i]) == EBB_OK, "listen", (uint64_t)i);
        must(w, add_routes(w, w->servers[i]) == EBB_OK, "routes", 0);
        must(w, ebb_http_server_address(cx, w->servers[i], &at) == EBB_OK, "address", 0);
        w->ports[i] = at.port;
        w->server_regions[i] = ebb_http_server_region(w->servers[i]);
    }
}

static ebb_status inner_ended(ebb_cx *cx, void *arg) {
    world *w = arg;
    (void)cx;
    w->inner = NULL;
    return EBB_OK;
}

static ebb_status inner_start(ebb_cx *cx, void *arg) {
    world *w = arg;
    ebb_http_client_opts inner = {.prior_knowledge = chance(&w->dice, 2)};
    ebb_http_client *made;
    if (ebb_http_client_new(cx, &inner, &made) == EBB_OK &&
        ebb_region_defer(cx, ebb_cx_region(cx), inner_ended, w) == EBB_OK)
        w->inner = made;
    return EBB_OK;
}

/* Its clients serve until the region of their maker has ended; here that is a fiber's. */
static ebb_status clients_start(ebb_cx *cx, void *arg) {
    world *w = arg;
    for (int i = 0; i < CLIENTS; i++) {
        ebb_http_client_opts o = {.prior_knowledge = i == 1, .tls.ca_file = driver_ca};
        if (chance(&w->dice, 2)) o.connections = 1 + roll(&w->dice, 3);
        if (chance(&w->dice, 6)) o.body_bytes = 1 + roll(&w->dice, 20000);
        if (chance(&w->dice, 6)) o.connect_ns = (1 + roll(&w->dice, 20)) * EBB_MS;
        if (chance(&w->dice, 6)) o.idle_ns = roll(&w->dice, 5) * EBB_MS;
        if (ebb_http_client_new(cx, &o, &w->clients[i]) != EBB_OK) return EBB_OK; /* stopped, or no memory */
    }
    uint32_t clients = 1 + roll(&w->dice, 6), peers = roll(&w->dice, 4);
    for (uint32_t i = 0; i < clients + peers; i++) {
        actor *a = grab(w, sizeof *a);
        *a = (actor){w, 1000 + i};
        w->actors++;
        (void)ebb_fiber_spawn(cx, ebb_cx_region(cx), i < clients ? client_main : raw_main, a);
    }
    return EBB_OK;
}

/* ---- the run --------------------------------------------------------------------------------------------------------- */

static void ticked(uv_timer_t *timer) {
    (void)timer;
}

static void turn(world *w) {
    for (int i = 0; i < SIDES; i++) {
        if (w->sides[i].loop != NULL) (void)ebb_loop_cx(w->sides[i].loop);
    }
    uv_run(&w->uv, UV_RUN_ONCE);
}

static void refuse_memory(world *w, uint32_t one_in) {
    for (int i = 0; i < SIDES; i++) {
        side *s = &w->sides[i];
        if (s->loop == NULL || s->memory.fail_at > s->memory.calls || !chance(&w->dice, one_in)) continue;
        s->memory.fail_at = s->memory.calls + 1 + roll(&w->dice, 60);
        s->memory.fail_after = false;
        w->starved = true;
    }
}

static bool closed(const side *s, ebb_region r) {
    ebb_region_state state;
    return ebb_region_state_of(s->cx, r, &state) != EBB_OK || state == EBB_REGION_CLOSED;
}

static void say_verb(world *w, const side *s, ebb_region r) {
    ebb_budget soon = {ebb_now(s->cx) + roll(&w->dice, 20) * EBB_MS, EBB_POLLS_UNBOUNDED, 0};
    w->stopped = true;
    switch (roll(&w->dice, 4)) {
    case 0:
        talk("close\n");
        ebb_region_close(s->cx, r);
        break;
    case 1:
        talk("cancel\n");
        ebb_region_cancel(s->cx, r, EBB_CANCEL_USER, "by chance");
        break;
    case 2:
        talk("cancel within\n");
        ebb_region_cancel_within(s->cx, r, EBB_CANCEL_SHUTDOWN, "soon", soon);
        break;
    default: talk("force\n"); ebb_region_force(s->cx, r);
    }
}

static void stop_something(world *w) {
    switch (roll(&w->dice, 5)) {
    case 0:
    case 1: say_verb(w, w->serving, w->server_regions[w->servers[1] != NULL && chance(&w->dice, 2)]); break;
    case 2: say_verb(w, w->calling, w->calling->region); break;
    case 3: say_verb(w, w->serving, w->serving->region); break;
    default: say_verb(w, w->serving, ebb_runtime_root(w->serving->rt));
    }
}

/* Lets everybody finish; then nothing may be left of the servers' work. */
static void wait_for_still(world *w) {
    ebb_http_server_stats st;
    while (w->actors > 0) turn(w);
    ebb_region_cancel(w->calling->cx, w->calling->region, EBB_CANCEL_USER, "all have ended");
    ebb_region_cancel(w->serving->cx, w->serving->region, EBB_CANCEL_USER, "all have ended");
    w->stopped = true;
    for (int i = 0; i < SERVERS; i++) {
        if (w->servers[i] == NULL) continue;
        for (ebb_http_server_stats_of(w->servers[i], &st); st.connections + st.exchanges > 0;
             ebb_http_server_stats_of(w->servers[i], &st))
            turn(w);
    }
    driver_tally.still++;
}

static void run(world *w) {
    bool starves = chance(&w->dice, 3);
    uint32_t one_in = 1 + roll(&w->dice, 30);
    if (w->still) {
        wait_for_still(w);
        return;
    }
    uint32_t verbs = 1 + roll(&w->dice, 3);
    for (; verbs > 0; verbs--) {
        for (uint32_t n = roll(&w->dice, 60); n > 0; n--) {
            turn(w);
            if (starves) refuse_memory(w, one_in);
        }
        stop_something(w);
    }
    for (uint32_t n = roll(&w->dice, 30); n > 0; n--) turn(w);
}

/* ---- the end ----------------------------------------------------------------------------------------------------------- */

static void judge_request(const world *w, const request *r) {
    must(w, r->ends == r->calls, "a call ends once", r->id);
    if (!r->whole || r->raw || r->runs == 0) return;
    must(w, !r->cut || r->head, "a body that was cut is not whole", r->id);
    if (!r->events && !r->head && r->got_n != r->body_n) fprintf(stderr, "%u of %u\n", r->got_n, r->body_n);
    if (!r->events && !r->head) must(w, r->got_n == r->body_n, "a whole response has all bytes", r->id);
}

static void side_end(world *w, side *s) {
    size_t n = 0;
    ebb_loop_leftover left[4] = {{.what = ""}};
    ebb_status st = ebb_loop_close(s->loop, left, 4, &n);
    for (size_t i = 0; i < n && i < 4 && st != EBB_OK; i++)
        fprintf(stderr, "left: %s at %s\n", left[i].what, left[i].site);
    must(w, st == EBB_OK, "the loop closes", n);
}

static void end(world *w) {
    for (int i = 0; i < SIDES; i++) {
        side *s = &w->sides[i];
        s->memory.fail_at = 0;
        if (s->loop != NULL)
            ebb_region_cancel(s->cx, ebb_runtime_root(s->rt), EBB_CANCEL_USER, "the run is over");
    }
    w->stopped = true;
    for (int i = 0; i < SIDES; i++) {
        while (w->sides[i].loop != NULL && !closed(&w->sides[i], ebb_runtime_root(w->sides[i].rt))) turn(w);
    }
    uv_run(&w->uv, UV_RUN_DEFAULT); /* what was forced may take longer */
    for (int i = 0; i < SIDES; i++) {
        if (w->sides[i].loop != NULL) side_end(w, &w->sides[i]);
    }
    uv_close((uv_handle_t *)&w->tick, NULL);
    uv_run(&w->uv, UV_RUN_DEFAULT);
    must(w, uv_loop_close(&w->uv) == 0, "libuv has nothing left", 0);
    for (int i = 0; i < SIDES; i++) {
        must(w, w->sides[i].memory.live == 0, "memory is freed", (uint64_t)w->sides[i].memory.live);
        must(w, w->sides[i].misuse == 0, "no misuse", 0);
        driver_tally.starved += w->sides[i].memory.failures;
    }
    for (uint32_t i = 0; i < w->requests_n; i++) judge_request(w, &w->requests[i]);
    while (w->blocks != NULL) release(w->blocks->bytes);
}

void drive(uint64_t seed) {
    static uv_loop_t first;
    world *w = calloc(1, sizeof *w);
    if (w == NULL || uv_loop_init(&first) != 0 || uv_loop_close(&first) != 0) abort();
    w->seed = seed;
    now_running = w;
    w->dice = dice_of(w, 1);
    w->still = chance(&w->dice, 3);
    int fds = descriptors();
    must(w, uv_loop_init(&w->uv) == 0, "libuv", 0);
    uv_timer_init(&w->uv, &w->tick);
    uv_timer_start(&w->tick, ticked, 1, 1);
    uv_unref((uv_handle_t *)&w->tick);
    side_start(w, &w->sides[0]);
    w->serving = w->calling = &w->sides[0];
    if (!chance(&w->dice, 3)) side_start(w, w->calling = &w->sides[1]);
    servers_start(w);
    (void)ebb_fiber_spawn(w->serving->cx, w->serving->region, inner_start, w);
    if (chance(&w->dice, 3)) (void)ebb_fiber_spawn(w->calling->cx, w->calling->region, bad_server_main, w);
    (void)ebb_fiber_spawn(w->calling->cx, w->calling->region, clients_start, w);
    turn(w);
    run(w);
    end(w);
    must(w, descriptors() == fds, "descriptors are closed", (uint64_t)(descriptors() - fds));
    driver_tally.seeds++;
    now_running = NULL;
    free(w);
}
