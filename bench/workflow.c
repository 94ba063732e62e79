/* The workflows' rows of the cost table. By the public API; the floors are the bare kernel, and for a line of
 * the audit log what it can't do without: a SHA-256 of its bytes and a write. */
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STOPS = 20000, LOGGED_STOPS = 2000, CROWD = 100000, LINES = 20000 };

/* ---- logs ---------------------------------------------------------------------------------------------- */

static uint64_t logged_lines, logged_bytes;

static ebb_status keep(void *ctx, const char *line, size_t n) {
    static char memory[1 << 16];
    (void)ctx;
    memcpy(memory, line, n);
    __asm__ volatile("" ::"r"(memory) : "memory");
    logged_lines++;
    logged_bytes += n;
    return EBB_OK;
}

static ebb_audit *memory_log(void) {
    ebb_audit *audit;
    bench_must(ebb_audit_new(ebb_libc_allocator(), &(ebb_audit_sink){.append = keep}, &audit) == EBB_OK);
    return audit;
}

/* The name is gone at once: the log is a file only as long as it is open. */
static ebb_audit *file_log(int *reader) {
    char path[] = "/tmp/ebb-bench-XXXXXX";
    ebb_audit *audit;
    *reader = mkstemp(path);
    bench_must(*reader >= 0);
    bench_must(ebb_audit_open(ebb_libc_allocator(), path, &audit) == EBB_OK);
    unlink(path);
    return audit;
}

/* ---- one workflow with nothing in it ------------------------------------------------------------------- */

static ebb_status nothing_to_drain(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)cx;
    (void)d;
    (void)arg;
    return EBB_OK;
}

static ebb_workflow workflow_with(ebb_cx *cx, ebb_audit *audit, int handlers) {
    ebb_workflow wf =
        ebb_workflow_open(cx, &(ebb_workflow_opts){.type = &ebb_workflow_publish_abort, .audit = audit});
    for (int i = 0; i < handlers; i++) {
        bench_must(ebb_workflow_on_drain(cx, wf, "nothing", nothing_to_drain, NULL) == EBB_OK);
    }
    return wf;
}

static double open_join(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < STOPS; i++) {
        ebb_workflow wf = workflow_with(host, NULL, 0);
        bench_must(ebb_workflow_join(host, wf, NULL) == EBB_PENDING);
        bench_pump_all(rt);
        bench_must(ebb_workflow_join(host, wf, NULL) == EBB_OK);
    }
    return (bench_cpu_ns() - t0) / STOPS;
}

static double stop(ebb_audit *audit, int handlers, int times) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_workflow_report report;
    double t0 = bench_cpu_ns();
    for (int i = 0; i < times; i++) {
        ebb_workflow wf = workflow_with(host, audit, handlers);
        bench_must(ebb_workflow_request(host, wf, EBB_CANCEL_USER, "enough") == EBB_OK);
        bench_pump_all(rt);
        bench_must(ebb_workflow_join(host, wf, &report) == EBB_OK && report.state == EBB_WORKFLOW_FINALIZED);
        bench_must(report.audit == EBB_OK);
    }
    return (bench_cpu_ns() - t0) / times;
}

static double stop_without_log(void) {
    return stop(NULL, 0, STOPS);
}

static double stop_1_handler(void) {
    return stop(NULL, 1, STOPS);
}

static double stop_4_handlers(void) {
    return stop(NULL, 4, STOPS);
}

static double stop_memory_log(void) {
    ebb_audit *audit = memory_log();
    double ns = stop(audit, 0, LOGGED_STOPS);
    ebb_audit_close(audit);
    return ns;
}

static double stop_file_log(void) {
    int reader;
    ebb_audit *audit = file_log(&reader);
    double ns = stop(audit, 0, LOGGED_STOPS);
    bench_must(lseek(reader, 0, SEEK_END) > LOGGED_STOPS);
    ebb_audit_close(audit);
    close(reader);
    return ns;
}

static ebb_status until_stopping(ebb_cx *cx, void *state) {
    (void)state;
    return ebb_stopping(cx) ? EBB_OK : EBB_PENDING;
}

/* What a workflow is made of, without it: a region, one below, and tasks there that end when it closes. */
static double bare(int tasks) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < STOPS; i++) {
        ebb_region r = ebb_region_open(host, NULL);
        ebb_region apart = ebb_region_open(host, &(ebb_region_opts){.parent = r});
        for (int k = 0; k < tasks; k++) ebb_spawn(host, apart, until_stopping, NULL);
        ebb_region_close(host, r);
        bench_pump_all(rt);
        bench_must(ebb_region_join(host, r) == EBB_OK);
    }
    return (bench_cpu_ns() - t0) / STOPS;
}

static double bare_1(void) {
    return bare(1);
}

static double bare_2(void) {
    return bare(2);
}

static double bare_5(void) {
    return bare(5);
}

/* ---- a crowd ------------------------------------------------------------------------------------------- */

static void crowd(ebb_runtime *rt, ebb_region r) {
    for (int i = 0; i < CROWD; i++) ebb_spawn(ebb_runtime_host(rt), r, until_stopping, NULL);
    bench_pump_all(rt);
}

static double drain_crowd(ebb_audit *audit) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_workflow_report report;
    ebb_workflow wf = workflow_with(host, audit, 0);
    crowd(rt, ebb_workflow_region(host, wf));
    double t0 = bench_cpu_ns();
    bench_must(ebb_workflow_request(host, wf, EBB_CANCEL_USER, "enough") == EBB_OK);
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / CROWD;
    bench_must(ebb_workflow_join(host, wf, &report) == EBB_OK && !report.cancelled);
    return ns;
}

static double drain_100k(void) {
    return drain_crowd(NULL);
}

/* Each line says how many are in flight. */
static double drain_100k_log(void) {
    ebb_audit *audit = memory_log();
    double ns = drain_crowd(audit);
    ebb_audit_close(audit);
    return ns;
}

static double close_100k(void) {
    static ebb_runtime *rt;
    if (rt == NULL) rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_region r = ebb_region_open(host, NULL);
    crowd(rt, r);
    double t0 = bench_cpu_ns();
    ebb_region_close(host, r);
    bench_pump_all(rt);
    double ns = (bench_cpu_ns() - t0) / CROWD;
    bench_must(ebb_region_join(host, r) == EBB_OK);
    return ns;
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static double line_ns, bytes_a_line;

static ebb_status say_much(ebb_cx *cx, ebb_drain *d, void *arg) {
    (void)cx;
    (void)arg;
    double t0 = bench_cpu_ns();
    for (int i = 0; i < LINES; i++) ebb_drain_evidence(d, "step", "rolled back to the last known good");
    line_ns = (bench_cpu_ns() - t0) / LINES;
    return EBB_OK;
}

static void lines_to(ebb_audit *audit) {
    ebb_runtime *rt = bench_runtime();
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_workflow_report report;
    ebb_workflow wf = workflow_with(host, audit, 0);
    bench_must(ebb_workflow_on_drain(host, wf, "talk", say_much, NULL) == EBB_OK);
    bench_must(ebb_workflow_request(host, wf, EBB_CANCEL_USER, "enough") == EBB_OK);
    bench_pump_all(rt);
    bench_must(ebb_workflow_join(host, wf, &report) == EBB_OK && report.audit == EBB_OK);
    ebb_runtime_free(rt);
}

static double line_to_memory(void) {
    logged_lines = logged_bytes = 0;
    ebb_audit *audit = memory_log();
    lines_to(audit);
    ebb_audit_close(audit);
    bench_must(logged_lines > LINES);
    bytes_a_line = (double)logged_bytes / (double)logged_lines;
    return line_ns;
}

static double line_to_file(void) {
    int reader;
    ebb_audit *audit = file_log(&reader);
    lines_to(audit);
    bench_must(lseek(reader, 0, SEEK_END) > LINES);
    ebb_audit_close(audit);
    close(reader);
    return line_ns;
}

static double line_bytes(void) {
    if (bytes_a_line == 0) (void)line_to_memory();
    return bytes_a_line;
}

/* As many bytes as a line has: hashed, and written if there is a file. */
static double bare_lines(int fd) {
    static char bytes[1024];
    unsigned char hash[32];
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    bench_must(c != NULL && sha256 != NULL);
    size_t n = (size_t)line_bytes();
    bench_must(n <= sizeof bytes);
    double t0 = bench_cpu_ns();
    for (int i = 0; i < LINES; i++) {
        bench_must(EVP_DigestInit_ex2(c, sha256, NULL) && EVP_DigestUpdate(c, bytes, n));
        bench_must(EVP_DigestFinal_ex(c, hash, NULL));
        memcpy(bytes, hash, sizeof hash); /* as the chain does: each hash is of the one before too */
        if (fd >= 0) bench_must(write(fd, bytes, n) == (ssize_t)n);
    }
    double ns = (bench_cpu_ns() - t0) / LINES;
    EVP_MD_free(sha256);
    EVP_MD_CTX_free(c);
    return ns;
}

static double bare_hash(void) {
    return bare_lines(-1);
}

static double bare_hash_and_write(void) {
    char path[] = "/tmp/ebb-bench-XXXXXX";
    int fd = mkstemp(path);
    bench_must(fd >= 0);
    unlink(path);
    double ns = bare_lines(fd);
    close(fd);
    return ns;
}

const bench_row bench_workflow_rows[] = {
    {"workflow.open_join", "ns", open_join, bare_1, 2.5, 1},
    {"workflow.stop", "ns", stop_without_log, bare_1, 4.5, 1},
    {"workflow.stop_1_handler", "ns", stop_1_handler, bare_2, 4.5, 1},
    {"workflow.stop_4_handlers", "ns", stop_4_handlers, bare_5, 4.5, 1},
    {"workflow.stop_memory_log", "ns", stop_memory_log, NULL, 0, 0},
    {"workflow.stop_file_log", "ns", stop_file_log, NULL, 0, 0},
    {"workflow.drain_100k", "ns", drain_100k, close_100k, 1.3, 1},
    {"workflow.drain_100k_log", "ns", drain_100k_log, close_100k, 1.3, 1},
    {"workflow.line_bytes", "bytes", line_bytes, NULL, 0, 0},
    {"workflow.line_memory", "ns", line_to_memory, bare_hash, 0, 0},
    {"workflow.line_file", "ns", line_to_file, bare_hash_and_write, 2.5, 1},
};
const size_t bench_workflow_count = sizeof bench_workflow_rows / sizeof *bench_workflow_rows;
