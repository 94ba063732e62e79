/* ebb_future_dump: lists pending futures, to show why a region does not close. */
#include "base/text.h"
#include "future/promise.h"

typedef struct sink {
    void (*write)(void *ctx, const char *text, size_t n);
    void *ctx;
    char line[256];
    ebb__text text;
} sink;

static void begin(sink *s) {
    s->text = ebb__text_in(s->line, sizeof s->line - 1);
}

static void end(sink *s) {
    s->line[s->text.n] = '\n';
    s->write(s->ctx, s->line, s->text.n + 1);
}

const char *ebb__future_name(const ebb_future *f) {
    if (!ebb__is_promise(f)) return f->cell.type->name;
    const ebb_operation *op = ((const ebb__promise *)(const void *)f)->op;
    return op == NULL ? f->cell.type->name : op->name != NULL ? op->name : "operation";
}

static void dump_future(sink *s, const ebb_future *f) {
    bool drains = ebb__has_ended(f);
    if (drains && !(f->flags & EBB__F_WORK)) return;
    begin(s);
    ebb__text_str(&s->text, "  ");
    ebb__text_str(&s->text, ebb__future_name(f));
    ebb__text_str(&s->text, drains ? ", cancelled and draining" : ", pending");
    if (f->holds == 0 && !drains) ebb__text_str(&s->text, ", awaited");
    ebb__text_str(&s->text, ", at ");
    ebb__text_str(&s->text, f->site == NULL ? "?" : f->site);
    end(s);
}

static void dump_region(sink *s, const ebb__region_futures *futures) {
    begin(s);
    ebb__text_str(&s->text, "region ");
    ebb__text_id(&s->text, futures->region.id);
    ebb__text_str(&s->text, futures->let_go ? ", abandoned: " : ": ");
    ebb__text_u64(&s->text, futures->producers);
    ebb__text_str(&s->text, " still produced");
    end(s);
    for (uint32_t i = 0; i < futures->members_n; i++) {
        const ebb__cell *c = ebb__member_cell(futures->members[i]);
        if (c->type->reserved & EBB__TYPE_FUTURE) dump_future(s, (const ebb_future *)(const void *)c);
    }
}

void ebb_future_dump(ebb_runtime *rt, void (*write)(void *ctx, const char *text, size_t n), void *ctx) {
    sink s = {.write = write, .ctx = ctx};
    const ebb__heap *h = ebb__heap_at(rt);
    for (uint32_t i = 1; h != NULL && i < h->regions_n; i++) {
        if (ebb__region_futures_at(h, i) != NULL) dump_region(&s, ebb__region_futures_at(h, i));
    }
}
