/* Many instances: lists, and cancels and deletions of all that match, page by page. */
#include <stdio.h>
#include <string.h>

#include "base/opts.h"
#include "durable/client.h"
#include "durable/run.h"

enum { PAGE = 100, PAGE_MOST = 1000 };
enum {
    ENDED = 1 << EBB_INSTANCE_COMPLETED | 1 << EBB_INSTANCE_FAILED | 1 << EBB_INSTANCE_CANCELLED |
            1 << EBB_INSTANCE_TERMINATED,
    ALIVE = 1 << EBB_INSTANCE_RUNNING | 1 << EBB_INSTANCE_SUSPENDED
};

static ebb_status read_filter(const ebb_instance_filter *given, ebb_instance_filter *f) {
    ebb_status st = EBB__DURABLE_OPTS(f, given);
    if (st != EBB_OK) return st;
    if (f->most == 0) f->most = PAGE;
    if (f->most > PAGE_MOST)
        return ebb__durable_say(EBB_ERR_LIMIT, "a page of %u instances (%d)", f->most, PAGE_MOST);
    if (f->tree && f->parent == NULL) return ebb__durable_say(EBB_ERR_INVALID, "a tree needs its parent");
    return EBB_OK;
}

static const char *copied(ebb_provider_call *c, const char *text) {
    return text != NULL ? ebb__call_text(c, text) : NULL;
}

static ebb_provider_list_call *list_call(ebb_store *s, const ebb_instance_filter *f) {
    ebb_provider_list_call *c = ebb__call_new(ebb__store_gate(s), EBB_PROVIDER_LIST);
    if (c == NULL) return NULL;
    ebb_instance_filter *copy = ebb__call_room(&c->call, sizeof *copy);
    c->filter = copy;
    if (copy == NULL) return c; /* the begin fails with EBB_ERR_NOMEM */
    *copy = *f;
    copy->size = sizeof *copy;
    copy->name = copied(&c->call, f->name);
    copy->prefix = copied(&c->call, f->prefix);
    copy->parent = copied(&c->call, f->parent);
    copy->after = copied(&c->call, f->after);
    return c;
}

/* ---- lists ------------------------------------------------------------------------------------------------------------ */

typedef struct list_value {
    ebb_provider_call *call;
    size_t n;
    ebb_instance_info infos[];
} list_value;

static void list_free(void *p) {
    ebb__call_free(((list_value *)p)->call);
}

static const ebb_type list_type = {"instances", 0, NULL, list_free, 0};

const ebb_instance_info *ebb_instances_of(const ebb_value *v, size_t *n) {
    const list_value *l = v->type == &list_type ? v->as.p : NULL;
    *n = l != NULL ? l->n : 0;
    return l != NULL ? l->infos : NULL;
}

static ebb_future *listed(ebb_cx *cx, ebb_value *v, void *arg) {
    const ebb_value own = ebb_value_take(cx, v);
    ebb_provider_list_call *c = ebb__call_of(&own);
    ebb_status st = c->call.status;
    (void)arg;
    if (st != EBB_OK) (void)ebb__durable_say(st, "%s", c->call.text);
    list_value *l =
        st == EBB_OK ? ebb_provider_alloc(&c->call, sizeof *l + c->rows_n * sizeof l->infos[0]) : NULL;
    if (st == EBB_OK && l == NULL) st = EBB_ERR_NOMEM;
    for (size_t i = 0; st == EBB_OK && i < c->rows_n; i++)
        st = ebb__client_info(&c->call, &c->rows[i], &l->infos[i]);
    if (st != EBB_OK) {
        ebb__call_free(&c->call);
        return ebb__durable_future_failed(cx, st, EBB_SITE);
    }
    l->call = &c->call;
    l->n = c->rows_n;
    return ebb_future_ready(cx, ebb_value_owned(&list_type, l));
}

ebb_future *ebb_instance_list_site(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter,
                                   const char *site) {
    ebb_instance_filter f;
    ebb_status st = read_filter(filter, &f);
    ebb_provider_list_call *c = st == EBB_OK ? list_call(s, &f) : NULL;
    if (c == NULL) return ebb__durable_future_failed(cx, st != EBB_OK ? st : EBB_ERR_NOMEM, site);
    return ebb_then_site(cx, ebb__call_begin(cx, &c->call, site), listed, NULL, site);
}

/* ---- bulk --------------------------------------------------------------------------------------------------------------- */

typedef struct bulk {
    ebb__client_op op;
    ebb_instance_filter filter;
    ebb_bulk_opts opts;
    const char *reason;
    char last[EBB_DURABLE_ID + 1];
    bool prunes;
    uint64_t done;
} bulk;

/* One that has ended meanwhile is not counted. */
static ebb_status cancel_page(ebb_cx *cx, bulk *b, const ebb_provider_list_call *page) {
    for (size_t i = 0; i < page->rows_n; i++) {
        const ebb_status st =
            ebb_await(cx, ebb_instance_cancel(cx, b->op.store, page->rows[i].id, b->reason), NULL);
        if (st == EBB_OK) b->done++;
        else if (st != EBB_ERR_UNKNOWN_INSTANCE) return st;
    }
    return EBB_OK;
}

static ebb_status prune_page(ebb_cx *cx, bulk *b, const ebb_provider_list_call *page) {
    ebb_status st = EBB_ERR_NOMEM;
    ebb_provider_remove_call *c = ebb__call_new(ebb__store_gate(b->op.store), EBB_PROVIDER_REMOVE);
    if (c == NULL) return st;
    uint64_t *keys = ebb__call_room(&c->call, page->rows_n * sizeof *keys);
    for (size_t i = 0; keys != NULL && i < page->rows_n; i++) keys[i] = page->rows[i].key;
    c->keys = keys;
    c->keys_n = page->rows_n;
    c = ebb__client_ask(cx, &c->call, &st);
    if (c == NULL) return st;
    b->done += c->removed;
    ebb__call_free(&c->call);
    return EBB_OK;
}

static ebb_status one_page(ebb_cx *cx, bulk *b, bool *more) {
    ebb_status st = EBB_ERR_NOMEM;
    ebb_provider_list_call *c = list_call(b->op.store, &b->filter);
    *more = false;
    if (c != NULL) c = ebb__client_ask(cx, &c->call, &st);
    if (c == NULL) return st;
    if (c->rows_n != 0) {
        (void)snprintf(b->last, sizeof b->last, "%s", c->rows[c->rows_n - 1].id);
        b->filter.after = b->last;
        *more = c->rows_n == b->filter.most;
        if (b->opts.dry_run) b->done += c->rows_n;
        else st = b->prunes ? prune_page(cx, b, c) : cancel_page(cx, b, c);
    }
    ebb__call_free(&c->call);
    return st;
}

static ebb_status run(ebb_cx *cx, ebb__client_op *op) {
    bulk *b = (bulk *)(void *)op;
    bool more = true;
    ebb_status st = EBB_OK;
    while (st == EBB_OK && more) {
        st = one_page(cx, b, &more);
        if (st == EBB_OK && b->opts.progress != NULL && !b->opts.progress(b->opts.arg, b->done)) break;
        if (st == EBB_OK) st = ebb_checkpoint(cx);
    }
    return st;
}

static ebb_value value(ebb_cx *cx, ebb__client_op *op) {
    (void)cx;
    return ebb_value_int((int64_t)((bulk *)(void *)op)->done);
}

static bool keep(bulk *b, const char **text) {
    if (*text == NULL) return true;
    *text = ebb__client_op_text(&b->op, *text);
    return *text != NULL;
}

static ebb_future *begin(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter,
                         const ebb_bulk_opts *opts, bool prunes, const char *site) {
    ebb_instance_filter f;
    ebb_bulk_opts o;
    ebb_status st = read_filter(filter, &f);
    if (st == EBB_OK) st = EBB__DURABLE_OPTS(&o, opts);
    bulk *b = st == EBB_OK ? ebb__client_op_new(s, sizeof *b) : NULL;
    if (b == NULL) return ebb__durable_future_failed(cx, st != EBB_OK ? st : EBB_ERR_NOMEM, site);
    b->filter = f;
    b->opts = o;
    b->reason = o.reason;
    b->prunes = prunes;
    b->filter.states = (f.states != 0 ? f.states : ~0u) & (prunes ? (uint32_t)ENDED : (uint32_t)ALIVE);
    b->op.run = run;
    b->op.value = value;
    const bool kept = keep(b, &b->filter.name) && keep(b, &b->filter.prefix) && keep(b, &b->filter.parent) &&
                      keep(b, &b->filter.after) && keep(b, &b->reason);
    if (kept && b->filter.states != 0) return ebb__client_op_begin(cx, b, site);
    ebb__client_op_free(b);
    if (kept) return ebb_future_ready_site(cx, ebb_value_int(0), site);
    return ebb__durable_future_failed(cx, EBB_ERR_NOMEM, site);
}

ebb_future *ebb_instance_cancel_all_site(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter,
                                         const ebb_bulk_opts *opts, const char *site) {
    return begin(cx, s, filter, opts, false, site);
}

ebb_future *ebb_instance_prune_site(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter,
                                    const ebb_bulk_opts *opts, const char *site) {
    return begin(cx, s, filter, opts, true, site);
}
