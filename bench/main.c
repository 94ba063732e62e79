/* ebb-bench [OUT.jsonl [FILTER]]: prints the cost table and writes one JSON object a row.
 *
 * Ours and the floor take turns, round by round, in one process, so that what disturbs one disturbs
 * the other; the median counts. Times are CPU times. A target was set on another machine; what must
 * be met is its ratio to the floor there. */
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double bench_cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

long bench_rss_bytes(void) {
    long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f == NULL) return 0;
    if (fscanf(f, "%ld %ld", &total, &resident) != 2) resident = 0;
    fclose(f);
    return resident * sysconf(_SC_PAGESIZE);
}

ebb_runtime *bench_runtime(void) {
    ebb_runtime_opts opts = {.allocator = ebb_libc_allocator()};
    ebb_runtime *rt;
    if (ebb_runtime_new(&opts, &rt) != EBB_OK) abort();
    return rt;
}

void bench_pump_all(ebb_runtime *rt) {
    while (ebb_runtime_pump(rt, UINT32_MAX) == EBB_PENDING) {}
}

void bench_must(int ok) {
    if (ok) return;
    fprintf(stderr, "ebb-bench: the work was not done\n");
    abort();
}

uint64_t bench_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, size_t n) {
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

static void run(const bench_row *row, FILE *out) {
    double ours[BENCH_ROUNDS], lowest[BENCH_ROUNDS];
    row->ours(); /* once to warm up: page faults and branch predictors */
    if (row->floor != NULL) row->floor();
    for (size_t i = 0; i < BENCH_ROUNDS; i++) {
        ours[i] = row->ours();
        lowest[i] = row->floor != NULL ? row->floor() : 0;
    }
    double o = median(ours, BENCH_ROUNDS), f = median(lowest, BENCH_ROUNDS);
    const char *verdict = "";
    double limit = row->target_floor > 0 ? row->target / row->target_floor * f : row->target;
    if (row->target > 0) verdict = o <= row->target || o <= limit ? "held" : "MISSED";
    printf("%-34s %-6s %9.1f ", row->name, row->unit, o);
    if (row->floor != NULL) printf("%9.1f %6.2fx ", f, o / f);
    else printf("%9s %7s ", "-", "-");
    if (row->target_floor == 1) printf("%7.1fx  %s", row->target, verdict); /* only the ratio is promised */
    else if (row->target > 0) printf("%8.0f  %s", row->target, verdict);
    printf("\n");
    fflush(stdout);
    if (out == NULL) return;
    fprintf(out, "{\"name\":\"%s\",\"unit\":\"%s\",\"ours\":%.2f", row->name, row->unit, o);
    if (row->floor != NULL) fprintf(out, ",\"floor\":%.2f,\"ratio\":%.3f", f, o / f);
    if (row->target > 0)
        fprintf(out, ",\"target\":%.0f,\"held\":%s", row->target, verdict[0] == 'h' ? "true" : "false");
    fprintf(out, "}\n");
    fflush(out);
}

static void run_group(const bench_row *rows, size_t n, const char *filter, FILE *out) {
    for (size_t i = 0; i < n; i++) {
        if (strstr(rows[i].name, filter) != NULL) run(&rows[i], out);
    }
}

int main(int argc, char **argv) {
    FILE *out = NULL;
    const char *filter = argc > 2 ? argv[2] : "";
    if (argc > 1 && strcmp(argv[1], "-") != 0 && (out = fopen(argv[1], "w")) == NULL) {
        fprintf(stderr, "ebb-bench: can't write %s\n", argv[1]);
        return 2;
    }
    printf("%-34s %-6s %9s %9s %7s %8s\n", "name", "unit", "ours", "floor", "ratio", "target");
#define RUN(group) run_group(bench_##group##_rows, bench_##group##_count, filter, out);
    BENCH_GROUPS(RUN)
    if (out != NULL && fclose(out) != 0) return 2;
    return 0;
}
