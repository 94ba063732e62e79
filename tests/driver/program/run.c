/* One run: the sides take turns, then everything is let go of and has to end. */
#include "tests/driver/program/driver.h"

#include <sched.h>
#include <time.h>

enum { TURNS_MAX = 20000, POLLS = 30 };
#define HORIZON (UINT64_C(1) << 62) /* what is due later is never waited for */

/* ---- a side's turn ---------------------------------------------------------------------------------------- */

static bool pump_side(side *s, uint32_t polls) {
    atomic_store(&s->inbound, false);
    ebb_inbox_receive(s->rt);
    bool more = ebb_runtime_pump(s->rt, polls) == EBB_PENDING;
    side_record(s, false);
    return more;
}

static void host_ops(side *s) {
    for (uint32_t k = pick(s, 5); k > 0; k--) any_op(s, ebb_runtime_host(s->rt), NULL);
    if (one_in(s, 5)) settle_some(s, false);
    if (one_in(s, 8)) forget_closed(s);
}

static void pass_time(side *s) {
    s->now += some_span(s) / 2;
    side_advance(s);
}

static void play_turn(side *s) {
    if (s->freed) return;
    host_ops(s);
    if (!one_in(s, 3)) pass_time(s);
    (void)pump_side(s, 1 + pick(s, POLLS));
}

/* True if it has nothing to do at this time. */
static bool rests(side *s) {
    return s->freed || (!pump_side(s, 1000) && !atomic_load(&s->inbound));
}

/* The time when it has something to do next. */
static bool skip_time(side *s) {
    uint64_t due = s->freed ? EBB_FOREVER : ebb_runtime_next_due(s->rt);
    if (due >= HORIZON) return false;
    if (due > s->now) s->now = due;
    side_advance(s);
    return true;
}

/* ---- one thread ------------------------------------------------------------------------------------------- */

static void rest_all(hub *h) {
    for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
        bool rest = true;
        for (uint32_t i = 0; i < h->sides; i++) rest &= rests(&h->side[i]);
        for (uint32_t i = 0; i < h->sides; i++) rest &= h->side[i].freed || !atomic_load(&h->side[i].inbound);
        if (rest) return;
    }
    failed(h, "it does not come to rest");
}

static void judge_rest(hub *h) {
    for (uint32_t i = 0; i < h->sides; i++) {
        if (!h->side[i].freed) judge_idle(&h->side[i]);
    }
}

/* Until nothing happens by itself any more, however long that takes. */
static void wait_all(hub *h) {
    for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
        bool more = false;
        rest_all(h);
        judge_rest(h);
        for (uint32_t i = 0; i < h->sides; i++) more |= skip_time(&h->side[i]);
        if (!more) return;
    }
    failed(h, "its timers never end");
}

/* ---- the end ---------------------------------------------------------------------------------------------- */

static bool root_closed(side *s) {
    ebb_region_state state;
    ebb_status st = ebb_region_state_of(ebb_runtime_host(s->rt), ebb_runtime_root(s->rt), &state);
    return st == EBB_OK && state == EBB_REGION_CLOSED;
}

static void let_go(side *s) {
    if (s->freed) return;
    ebb_cx *host = ebb_runtime_host(s->rt);
    settle_some(s, true);
    forget_closed(s);
    if (s->chan != NULL) ebb_chan_close(host, s->chan);
    if (s->broadcast != NULL) ebb_broadcast_close(host, s->broadcast);
    for (uint32_t i = 0; i < 8; i++) ebb_sem_release(host, &s->sem);
    for (uint32_t i = 0; i < BRIDGES; i++) {
        pthread_mutex_lock(&s->hub->lock);
        ebb_bridge *b = s->hub->bridge[i];
        pthread_mutex_unlock(&s->hub->lock);
        if (b != NULL) (void)ebb_bridge_close(host, b);
    }
    for (const node *n = s->nodes; n != NULL; n = n->next) {
        if (n->self.id != 0) (void)ebb_task_wake(host, n->self);
    }
    flows_end(s);
}

static void say_end(side *s, bool cancel) {
    if (s->freed) return;
    ebb_cx *host = ebb_runtime_host(s->rt);
    if (cancel) ebb_region_cancel(host, ebb_runtime_root(s->rt), EBB_CANCEL_SHUTDOWN, "the end");
    else if (s->force && one_in(s, 6)) ebb_region_force(host, ebb_runtime_root(s->rt));
    else ebb_region_close(host, ebb_runtime_root(s->rt));
}

static void print_text(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)fwrite(text, 1, n, stderr);
}

static void must_be_closed(side *s) {
    if (s->freed) return;
    s->closed = root_closed(s);
    if (!s->closed) {
        ebb_runtime_dump(s->rt, print_text, NULL);
        ebb_future_dump(s->rt, print_text, NULL);
        failed(s->hub, "side %u: its root does not close, and nothing is left to do", s->number);
    }
    judge_closed(s);
}

static void end_all(hub *h) {
    atomic_store(&h->ending, true);
    for (uint32_t i = 0; i < h->sides; i++) let_go(&h->side[i]);
    for (uint32_t i = 0; i < h->sides; i++) say_end(&h->side[i], false);
    wait_all(h);
    for (uint32_t i = 0; i < h->sides; i++) let_go(&h->side[i]);
    for (uint32_t i = 0; i < h->sides; i++) say_end(&h->side[i], true);
    wait_all(h);
    for (uint32_t i = 0; i < h->sides; i++) must_be_closed(&h->side[i]);
}

static void free_sides(hub *h) {
    for (uint32_t i = 0; i < h->sides; i++) side_free(&h->side[i]);
    close_hub(h);
    for (uint32_t i = 0; i < h->sides; i++) judge_records(&h->side[i]);
    judge_end(h);
}

/* ---- runs ------------------------------------------------------------------------------------------------- */

static hub *new_hub(uint64_t seed, bool threads) {
    hub *h = calloc(1, sizeof *h);
    if (h == NULL) abort();
    h->seed = seed;
    h->sides = SIDES;
    h->threads = threads;
    (void)pthread_mutex_init(&h->lock, NULL);
    for (uint32_t i = 0; i < h->sides; i++) {
        side *s = &h->side[i];
        s->hub = h;
        s->number = i;
        s->dice = seed * SIDES + i;
        (void)pthread_mutex_init(&s->memory.lock, NULL);
        if (!side_begin(s)) side_free(s);
    }
    return h;
}

static void free_hub(hub *h) {
    for (uint32_t i = 0; i < h->sides; i++) (void)pthread_mutex_destroy(&h->side[i].memory.lock);
    (void)pthread_mutex_destroy(&h->lock);
    free_all(h);
    free(h);
}

static void play(hub *h) {
    side *first = &h->side[0];
    uint32_t rounds = 20 + pick(first, one_in(first, 6) ? 600 : 60), leaves = pick(first, rounds);
    for (uint32_t i = 0; i < h->sides; i++) {
        for (uint32_t k = 0; k < 6 && !h->side[i].freed; k++)
            spawn_some(&h->side[i], ebb_runtime_host(h->side[i].rt));
    }
    for (uint32_t round = 0; round < rounds; round++) {
        play_turn(&h->side[pick(first, h->sides)]);
        if (one_in(first, 8)) {
            rest_all(h);
            judge_rest(h);
        }
        for (uint32_t i = 0; i < h->sides && round == leaves; i++) {
            if (h->side[i].early) side_free(&h->side[i]);
        }
    }
}

/* ---- threads ---------------------------------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static atomic_uint playing, open_sides; /* sides that play; and whose root is not closed */

static void close_side(side *s) {
    let_go(s);
    say_end(s, false);
    double patience = seconds() + 120;
    bool told = false, closed = false;
    for (uint32_t idle = 0; atomic_load(&open_sides) > 0;) {
        if (!rests(s)) {
            idle = 0;
            continue;
        }
        if (!closed && root_closed(s)) {
            closed = true;
            atomic_fetch_sub(&open_sides, 1);
        }
        if (!closed && !skip_time(s) && ++idle > 100 && !told) {
            told = true;
            let_go(s);
            say_end(s, true);
        }
        if (seconds() > patience) break;
        (void)sched_yield();
    }
    must_be_closed(s);
}

/* Its first use makes the heap, which may be refused. */
static void adopt(side *s) {
    ebb_status st;
    while ((st = ebb_runtime_adopt(s->rt)) == EBB_ERR_NOMEM) continue;
    if (st != EBB_OK) failed(s->hub, "side %u can't have its thread", s->number);
}

static void *side_thread(void *arg) {
    side *s = arg;
    hub *h = s->hub;
    adopt(s);
    for (uint32_t k = 0; k < 6; k++) spawn_some(s, ebb_runtime_host(s->rt));
    for (uint32_t round = 20 + pick(s, one_in(s, 6) ? 600 : 60); round > 0; round--) play_turn(s);
    bool leaves = s->early;
    if (leaves) {
        side_free(s);
        atomic_fetch_sub(&open_sides, 1);
    }
    atomic_fetch_sub(&playing, 1);
    while (!leaves && atomic_load(&playing) > 0) play_turn(s);
    atomic_store(&h->ending, true);
    if (!leaves) close_side(s);
    return NULL;
}

static void play_threads(hub *h) {
    pthread_t thread[SIDES];
    bool started[SIDES] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->sides; i++) n += !h->side[i].freed;
    atomic_store(&playing, n);
    atomic_store(&open_sides, n);
    for (uint32_t i = 0; i < h->sides; i++) {
        if (h->side[i].freed) continue;
        started[i] = true;
        if (pthread_create(&thread[i], NULL, side_thread, &h->side[i]) != 0) abort();
    }
    for (uint32_t i = 0; i < h->sides; i++) {
        if (started[i]) (void)pthread_join(thread[i], NULL);
        if (!h->side[i].freed) adopt(&h->side[i]);
    }
}

uint64_t drive(uint64_t seed, bool threads) {
    hub *h = new_hub(seed, threads);
    if (threads) {
        play_threads(h);
    } else {
        play(h);
        end_all(h);
    }
    free_sides(h);
    uint64_t hash = h->hash;
    free_hub(h);
    return hash;
}
