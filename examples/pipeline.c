/* A pipeline with backpressure: one reads a file, three count in it, one adds up.
 *
 *   build/release/examples/pipeline FILE        without a file: this program itself
 *
 *      reader ──▶ [ 4 blocks ] ──▶ counters ──▶ [ 2 counts ] ──▶ adder
 *
 * The channels are bounded, and that is all there is to backpressure: whoever sends into a full one waits
 * there, as in any other await. So a slow adder slows the counters down, and these the reader. And whatever
 * ends a stage ends the pipeline in order: the region asks the others, and each is found in an await. */
#include <ebb/ebb.h>
#include <ebb/loop.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 4096, BLOCKS = 4, COUNTS = 2, COUNTERS = 3 };

typedef struct block {
    size_t n;
    char bytes[BLOCK];
} block;

typedef struct pipeline {
    const char *path;
    ebb_chan *blocks, *counts; /* of block *, of size_t */
    int counting;              /* counters that are not done */
    size_t alive, most, lines; /* blocks in memory, the most there were, and the result */
} pipeline;

static ebb_status reads(ebb_cx *cx, void *arg) {
    pipeline *p = arg;
    ebb_wait place = {0};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_file_open(cx, p->path, O_RDONLY, 0), &v);
    ebb_file file = ebb_file_of(v);
    while (st == EBB_OK) {
        block *b = malloc(sizeof *b);
        if (b == NULL) return EBB_ERR_NOMEM; /* the region then cancels the others */
        if (++p->alive > p->most) p->most = p->alive;
        st = ebb_await(cx, ebb_file_read(cx, file, b->bytes, BLOCK, EBB_FILE_HERE), &v);
        b->n = (size_t)v.as.u;
        if (st == EBB_OK) st = ebb_chan_send(cx, p->blocks, &place, &b); /* waits if the counters are slow */
        if (st != EBB_OK) {                                              /* it was not sent: still ours */
            free(b);
            p->alive--;
        }
    }
    ebb_chan_close(cx, p->blocks); /* that was all */
    return st == EBB_ERR_EOF ? EBB_OK : st;
}

/* Work that takes time belongs into the pool of threads, not onto the loop. */
static ebb_status count_lines(void *arg, ebb_value *v) {
    const block *b = arg;
    for (size_t i = 0; i < b->n; i++) v->as.u += b->bytes[i] == '\n';
    return EBB_OK;
}

static ebb_status counts(ebb_cx *cx, void *arg) {
    pipeline *p = arg;
    ebb_wait w = {0};
    ebb_status st;
    block *b;
    while ((st = ebb_chan_recv(cx, p->blocks, &w, &b)) == EBB_OK) {
        ebb_value n;
        (void)ebb_mask(cx); /* the block is ours until it is counted: a cancel waits for that */
        st = ebb_await(cx, ebb_pool_run(cx, count_lines, b), &n);
        (void)ebb_unmask(cx);
        free(b);
        p->alive--;
        if (st == EBB_OK) st = ebb_chan_send(cx, p->counts, &w, &n.as.u);
        if (st != EBB_OK) break;
    }
    if (--p->counting == 0) ebb_chan_close(cx, p->counts);
    return st == EBB_ERR_CLOSED ? EBB_OK : st;
}

static ebb_status adds(ebb_cx *cx, void *arg) {
    pipeline *p = arg;
    ebb_wait w = {0};
    ebb_status st;
    uint64_t n;
    while ((st = ebb_chan_recv(cx, p->counts, &w, &n)) == EBB_OK) p->lines += n;
    return st == EBB_ERR_CLOSED ? EBB_OK : st;
}

static ebb_status run(ebb_cx *cx, void *arg) {
    pipeline *p = arg;
    ebb_runtime *rt = ebb_cx_runtime(cx);
    ebb_status st = ebb_chan_new(rt, BLOCKS, sizeof(block *), &p->blocks);
    if (st == EBB_OK) st = ebb_chan_new(rt, COUNTS, sizeof(uint64_t), &p->counts);
    if (st == EBB_OK) {
        ebb_region stages = ebb_region_open(cx, NULL); /* the first that fails cancels the others */
        ebb_fiber_spawn(cx, stages, reads, p);
        for (p->counting = 0; p->counting < COUNTERS; p->counting++) ebb_fiber_spawn(cx, stages, counts, p);
        ebb_fiber_spawn(cx, stages, adds, p);
        (void)ebb_mask(cx); /* the channels may go only after everybody who knows them */
        st = ebb_region_join(cx, stages);
    }
    block *b;
    ebb_wait w = {0};
    while (p->blocks != NULL && ebb_chan_length(p->blocks) > 0) { /* after a cancel */
        if (ebb_chan_recv(cx, p->blocks, &w, &b) == EBB_OK) free(b);
    }
    ebb_chan_free(p->blocks);
    ebb_chan_free(p->counts);
    return st;
}

int main(int argc, char **argv) {
    pipeline p = {.path = argc > 1 ? argv[1] : argv[0]};
    ebb_loop_opts opts = {.runtime.allocator = ebb_libc_allocator()};
    ebb_loop *loop;
    ebb_status st = ebb_loop_new(&opts, run, &p, &loop);
    if (st == EBB_OK) st = ebb_loop_join(loop);
    if (st != EBB_OK) fprintf(stderr, "pipeline: %s: %s\n", p.path, ebb_status_text(st));
    else printf("%zu lines, never more than %zu blocks in memory\n", p.lines, p.most);
    return st == EBB_OK ? 0 : 1;
}
