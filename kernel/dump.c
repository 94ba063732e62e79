/* ebb_runtime_dump: the live tree as text, for people. The walk uses parents and positions, so it needs no stack. */
#include "base/text.h"
#include "kernel/lane.h"
#include "kernel/names.h"
#include "kernel/reason.h"
#include "kernel/region.h"
#include "kernel/supervisor.h"
#include "kernel/task.h"

typedef struct sink {
    void (*write)(void *ctx, const char *text, size_t n);
    void *ctx;
    char line[256];
    ebb__text text;
} sink;

static void begin(sink *s, uint32_t depth) {
    s->text = ebb__text_in(s->line, sizeof s->line - 1);
    if (depth > 24) depth = 24;
    for (uint32_t i = 0; i < depth; i++) ebb__text_str(&s->text, "  ");
}

static void end(sink *s) {
    s->line[s->text.n] = '\n';
    s->write(s->ctx, s->line, s->text.n + 1);
}

static void add_request(sink *s, uint8_t request) {
    if (request == 0) return;
    ebb__text_str(&s->text, ", ");
    ebb__text_str(&s->text, ebb_cancel_kind_name((ebb_cancel_kind)ebb__request_kind(request)));
    ebb__text_str(&s->text, " epoch ");
    ebb__text_u64(&s->text, ebb__request_epoch(request));
}

static void add_deadline(sink *s, const ebb_runtime *rt, uint64_t deadline) {
    if (deadline == EBB_FOREVER) return;
    ebb__text_str(&s->text, ", ");
    ebb__text_i64(&s->text, (int64_t)(deadline - rt->now) / (int64_t)EBB_MS);
    ebb__text_str(&s->text, " ms left");
}

static void add_site(sink *s, const char *site) {
    ebb__text_str(&s->text, ", at ");
    ebb__text_str(&s->text, site == NULL ? "?" : site);
}

static void dump_obligations(sink *s, const ebb_runtime *rt, uint32_t i, uint32_t depth) {
    for (; i != 0; i = ebb__obligation_at(rt, i)->next) {
        const ebb__obligation *d = ebb__obligation_at(rt, i);
        begin(s, depth);
        ebb__text_str(&s->text, d->kind == 0 ? "finalizer " : "obligation ");
        ebb__text_id(&s->text, ebb__obligation_id(rt, d));
        if (d->kind != 0) {
            ebb__text_str(&s->text, " ");
            ebb__text_str(&s->text, ebb__obligation_kind_name(d->kind));
        }
        add_site(s, d->site);
        end(s);
    }
}

static void dump_task(sink *s, const ebb_runtime *rt, const ebb__task *t, uint32_t depth) {
    const ebb__cold *c = ebb__cold_at(rt, t->index);
    begin(s, depth);
    ebb__text_str(&s->text, ebb__task_is_runner(rt, t)  ? "callback runner "
                            : ebb__is_supervisor(rt, t) ? "drain supervisor "
                            : t->flags & F_CLOSER       ? "closer "
                                                        : "task ");
    ebb__text_id(&s->text, ebb__task_id(t));
    ebb__text_str(&s->text, " ");
    ebb__text_str(&s->text, ebb__phase_name(t->phase));
    add_request(s, t->request);
    if (t->request != 0) add_deadline(s, rt, ebb__cleanup_deadline(rt, t));
    if (t->mask > 0) {
        ebb__text_str(&s->text, ", masked ");
        ebb__text_u64(&s->text, t->mask);
    }
    if (t->flags & F_FORCED) ebb__text_str(&s->text, ", forced");
    if (t->flags & F_POLLING) ebb__text_str(&s->text, ", being polled");
    else if (t->queue != EBB_LANE_NONE) {
        ebb__text_str(&s->text, ", in lane ");
        ebb__text_str(&s->text, ebb__lane_name(t->queue & 3));
    } else if (t->flags & F_RETURNED) {
        ebb__text_str(&s->text, t->flags & F_IN_FINALIZER ? ", finalizer waits" : ", waits for its regions");
    } else if (t->flags & F_JOINING) {
        ebb__text_str(&s->text, ", joins");
    } else if (c->wait != NULL) {
        ebb__text_str(&s->text, ", waits for ");
        ebb__text_str(&s->text, c->wait->kind->what);
    } else {
        ebb__text_str(&s->text, ", parked");
    }
    add_site(s, c->site);
    end(s);
    dump_obligations(s, rt, c->owed, depth + 1);
}

static void dump_region(sink *s, const ebb_runtime *rt, ebb__region *r) {
    begin(s, ebb__cold_of(r)->depth);
    ebb__text_str(&s->text, ebb__is_drain_region(r) ? "drain region "
                            : r->flags & R_OPERATOR ? "operators' region "
                            : r->flags & R_CLEANUP  ? "cleanup scope "
                                                    : "region ");
    ebb__text_id(&s->text, ebb__region_id(rt, r));
    ebb__text_str(&s->text, " ");
    ebb__text_str(&s->text, ebb__region_state_name(r->state));
    add_request(s, r->request);
    add_deadline(s, rt, r->deadline);
    if (r->request != 0 && ebb__cold_of(r)->message[0] != 0) {
        ebb__text_str(&s->text, " \"");
        ebb__text_str(&s->text, ebb__cold_of(r)->message);
        ebb__text_str(&s->text, "\"");
    }
    add_site(s, ebb__cold_of(r)->site);
    end(s);
    dump_obligations(s, rt, r->owed, ebb__cold_of(r)->depth + 1);
    const uint32_t *tasks = ebb__u32s_data(&r->tasks);
    for (uint32_t i = 0; i < r->tasks.n; i++)
        dump_task(s, rt, ebb__task_at(rt, tasks[i]), ebb__cold_of(r)->depth + 1);
}

void ebb_runtime_dump(ebb_runtime *rt, void (*write)(void *ctx, const char *text, size_t n), void *ctx) {
    sink s = {.write = write, .ctx = ctx};
    ebb__region *root = ebb__region_at(rt, rt->root);
    for (ebb__region *r = root; r != NULL; r = ebb__region_after(rt, r, root, true)) dump_region(&s, rt, r);
    if (rt->layers.call.shown != NULL) rt->layers.call.shown(rt, write, ctx);
}
