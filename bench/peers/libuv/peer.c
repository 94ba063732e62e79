/* The kernel's benchmark rows that libuv has something for: its timers, and closing a
 * million handles. It has no tasks, no scopes and no channels.
 * Protocol and caveats: bench/peers/README.md. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

enum { MILLION = 1000000 };

typedef struct row {
    const char *name;
    double (*round)(uv_loop_t *loop); /* ns an operation; NULL: skipped */
    const char *why;                  /* it is skipped */
} row;

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *allocate(size_t count, size_t size) {
    void *p = calloc(count, size);
    if (p == NULL) {
        fprintf(stderr, "out of memory: %zu times %zu bytes\n", count, size);
        exit(1);
    }
    return p;
}

static uint64_t random_due_ms(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return 100000 + *x % 1000000;
}

static void never(uv_timer_t *timer) {
    fprintf(stderr, "timer %p fired that was to be cancelled\n", (void *)timer);
    exit(1);
}

static long closed;

static void free_closed(uv_handle_t *handle) {
    free(handle);
    closed++;
}

static double cancel_fan(uv_loop_t *loop) {
    uv_timer_t **timers = allocate(MILLION, sizeof(uv_timer_t *));
    uint64_t x = 88172645463325252u;
    for (long i = 0; i < MILLION; i++) {
        timers[i] = allocate(1, sizeof(uv_timer_t));
        uv_timer_init(loop, timers[i]);
        uv_timer_start(timers[i], never, random_due_ms(&x), 0);
    }
    closed = 0;
    double start = cpu_ns();
    for (long i = 0; i < MILLION; i++) uv_close((uv_handle_t *)timers[i], free_closed);
    while (closed < MILLION) uv_run(loop, UV_RUN_NOWAIT);
    double ns = (cpu_ns() - start) / MILLION;
    free(timers);
    return ns;
}

/* The handles are the caller's and made beforehand: only arming and stopping count. */
static double timer_arm_cancel(uv_loop_t *loop) {
    uv_timer_t *timers = allocate(MILLION, sizeof(uv_timer_t));
    uint64_t *due_ms = allocate(MILLION, sizeof(uint64_t));
    uint64_t x = 88172645463325252u;
    for (long i = 0; i < MILLION; i++) {
        uv_timer_init(loop, &timers[i]);
        due_ms[i] = random_due_ms(&x);
    }
    double start = cpu_ns();
    for (long i = 0; i < MILLION; i++) uv_timer_start(&timers[i], never, due_ms[i], 0);
    for (long i = 0; i < MILLION; i++) uv_timer_stop(&timers[i]);
    double ns = (cpu_ns() - start) / MILLION;
    for (long i = 0; i < MILLION; i++) uv_close((uv_handle_t *)&timers[i], NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    free(due_ms);
    free(timers);
    return ns;
}

static const row rows[] = {
    {"kernel.spawn_end_seq", NULL, "libuv has no tasks"},
    {"kernel.spawn_end_1m", NULL, "libuv has no tasks"},
    {"kernel.region_open_close", NULL, "libuv has no scopes"},
    {"kernel.task_bytes", NULL, "libuv has no tasks"},
    {"kernel.cancel_fan_1m", cancel_fan, NULL},
    {"kernel.cancel_chain_1m", NULL, "libuv has no scopes"},
    {"kernel.cancelled_check", NULL, "libuv has no cancelled state to ask for"},
    {"kernel.channel_msg", NULL, "libuv has no channels"},
    {"kernel.timer_arm_cancel_1m", timer_arm_cancel, NULL},
};

static const row *find_row(const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: peer <row> <rounds>\n");
        return 2;
    }
    const row *r = find_row(argv[1]);
    if (r == NULL || r->round == NULL) {
        printf("skip %s %s\n", argv[1], r == NULL ? "no such row in this peer" : r->why);
        return 0;
    }
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) {
        fprintf(stderr, "uv_loop_init failed\n");
        return 1;
    }
    for (long rounds = strtol(argv[2], NULL, 10); rounds > 0; rounds--) {
        printf("row %s ns %.3f\n", r->name, r->round(&loop));
        fflush(stdout);
    }
    uv_loop_close(&loop);
    return 0;
}
