/* The conformance suite: which cases there are, and how they are run. */
#include <stdio.h>

#include "base/opts.h"
#include "durable/suite_case.h"
#include "kernel/layer.h"

static const ebb__suite_case *const files[] = {
    ebb__suite_activities, ebb__suite_histories, ebb__suite_turns,    ebb__suite_claims,
    ebb__suite_leases,     ebb__suite_order,     ebb__suite_cancels,  ebb__suite_poison,
    ebb__suite_executions, ebb__suite_starts,    ebb__suite_errors,   ebb__suite_operators,
    ebb__suite_values,     ebb__suite_sessions,  ebb__suite_versions, ebb__suite_hints,
};
enum { FILES = sizeof files / sizeof files[0] };

static const ebb__suite_case *case_at(size_t i) {
    for (size_t f = 0; f < FILES; f++) {
        for (const ebb__suite_case *c = files[f]; c->run != NULL; c++)
            if (i-- == 0) return c;
    }
    return NULL;
}

const char *ebb_provider_case_at(size_t i, const char **about) {
    const ebb__suite_case *c = case_at(i);
    if (about != NULL) *about = c != NULL ? c->about : NULL;
    return c != NULL ? c->name : NULL;
}

/* ---- one case -------------------------------------------------------------------------------------------------- */

static void hear(void *arg, const ebb_provider_hint *h) {
    ebb__t_heard *to = &((ebb__suite *)arg)->heard;
    switch (h->kind) {
    case EBB_PROVIDER_HINT_TURNS: to->turns++; break;
    case EBB_PROVIDER_HINT_WORK: to->work++; break;
    case EBB_PROVIDER_HINT_ENDED: to->ended++; break;
    case EBB_PROVIDER_HINT_LOST: to->lost++; break;
    case EBB_PROVIDER_HINT_GONE:
        to->gone++;
        to->last_gone = *h;
        to->last_gone.queue = "";
        break;
    }
}

/* Deletes what the case has made: all instances whose ids begin with its name. */
static ebb_status clean(ebb__suite *s) {
    ebb_instance_filter filter = {.size = sizeof filter, .prefix = ebb__t_id(s, ""), .most = 1000};
    for (int page = 0; page < 100; page++) {
        ebb_provider_list_call *l = ebb__t_new(s, EBB_PROVIDER_LIST);
        l->filter = &filter;
        ASK(s, l, EBB_OK);
        if (l->rows_n == 0) return EBB_OK;
        uint64_t *keys = ebb__arena_alloc(&s->arena, l->rows_n * sizeof *keys);
        CHECK(s, keys != NULL);
        for (size_t i = 0; i < l->rows_n; i++) keys[i] = l->rows[i].key;
        ebb_provider_remove_call *r = ebb__t_new(s, EBB_PROVIDER_REMOVE);
        r->keys = keys;
        r->keys_n = l->rows_n;
        r->force = true;
        ASK(s, r, EBB_OK);
        SAME(s, r->removed, l->rows_n);
    }
    return ebb__t_fail(s, "instances that are deleted come back");
}

static void free_kept(ebb__suite *s) {
    ebb_provider_call *next;
    for (ebb_provider_call *c = s->kept; c != NULL; c = next) {
        next = c->next;
        ebb__call_free(c);
    }
    s->kept = NULL;
    ebb__arena_reset(&s->arena);
}

/* The failure of the case itself, not of what was done after it. */
static ebb_status end_case(ebb__suite *s, ebb_status st) {
    char text[sizeof s->text];
    (void)snprintf(text, sizeof text, "%s", s->text);
    ebb_status end = EBB_OK;
    for (; s->nodes > 2 && end == EBB_OK; s->nodes--) end = ebb__t_leave(s, s->nodes - 1);
    s->nodes = 2;
    if (end == EBB_OK) end = ebb__t_come_back(s);
    if (end == EBB_OK) end = clean(s);
    if (st != EBB_OK) (void)snprintf(s->text, sizeof s->text, "%s", text);
    return st != EBB_OK ? st : end;
}

static ebb_status run_case(ebb__suite *s, const ebb__suite_case *c) {
    s->now = c;
    s->text[0] = 0;
    memset(&s->heard, 0, sizeof s->heard);
    (void)snprintf(s->queue, sizeof s->queue, "%s-%llx", c->name, (unsigned long long)s->run);
    const ebb_status st = end_case(s, c->run(s));
    free_kept(s);
    return st;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static ebb_status open_one(ebb__suite *s, const ebb_provider_test_opts *o, ebb_store **out) {
    const ebb_store_opts opts = {.size = sizeof opts, .url = o->url, .provider = o->provider};
    ebb_value v;
    const ebb_status st = ebb_await(s->cx, ebb_store_open(s->cx, &opts), &v);
    if (st == EBB_OK) *out = ebb_store_of(&v);
    return st;
}

static ebb_status set_up(ebb__suite *s, const ebb_provider_test_opts *o) {
    size_t node;
    ebb_status st = open_one(s, o, &s->store);
    if (st == EBB_OK) st = open_one(s, o, &s->other);
    if (st != EBB_OK) return st;
    s->run = ebb__t_token(s).lo;
    (void)snprintf(s->name, sizeof s->name, "suite-%llx", (unsigned long long)s->run);
    s->listener = (ebb__hint_listener){.hint = hear, .arg = s};
    ebb__store_listen(s->other, &s->listener);
    st = ebb__t_join(s, EBB__T_LONG, &node);
    if (st == EBB_OK) st = ebb__t_join(s, EBB__T_LONG, &node);
    return st == EBB_OK ? EBB_OK : ebb__durable_say(EBB_ERR_STORE, "%s", s->text);
}

static void tear_down(ebb__suite *s) {
    while (s->nodes > 0) (void)ebb__t_leave(s, --s->nodes);
    free_kept(s);
    if (s->other != NULL) {
        ebb__store_unlisten(s->other, &s->listener);
        (void)ebb_await(s->cx, ebb_store_close(s->cx, s->other), NULL);
    }
    if (s->store != NULL) (void)ebb_await(s->cx, ebb_store_close(s->cx, s->store), NULL);
    ebb__arena_free(&s->arena);
}

static ebb_status run_all(ebb__suite *s, const ebb_provider_test_opts *o, uint32_t *passed,
                          uint32_t *failed) {
    const ebb__suite_case *c;
    for (size_t i = 0; (c = case_at(i)) != NULL && !ebb_cancelled(s->cx); i++) {
        if (o->match != NULL && strstr(c->name, o->match) == NULL) continue;
        (void)ebb_mask(s->cx); /* calls point into the case's stack: it is not left before they are done */
        const ebb_status st = run_case(s, c);
        (void)ebb_unmask(s->cx);
        ++*(st == EBB_OK ? passed : failed);
        if (o->result != NULL) o->result(o->arg, c->name, st, st == EBB_OK ? "" : s->text);
    }
    if (*passed + *failed == 0)
        return ebb__durable_say(EBB_ERR_INVALID, "no case has '%s' in its name", o->match);
    return *failed == 0 ? EBB_OK : EBB_ERR_ORACLE;
}

ebb_status ebb_provider_test(ebb_cx *cx, const ebb_provider_test_opts *opts, uint32_t *passed,
                             uint32_t *failed) {
    uint32_t good = 0, bad = 0;
    ebb_provider_test_opts o;
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st != EBB_OK) return st;
    ebb__suite s = {.cx = cx};
    ebb__arena_init(&s.arena, *ebb__rt_allocator(ebb_cx_runtime(cx)), 4096);
    if (ebb_mask(cx) != EBB_OK) return EBB_ERR_INVALID;
    st = set_up(&s, &o);
    (void)ebb_unmask(cx);
    if (st == EBB_OK) st = run_all(&s, &o, &good, &bad);
    (void)ebb_mask(cx);
    tear_down(&s);
    (void)ebb_unmask(cx);
    if (passed != NULL) *passed = good;
    if (failed != NULL) *failed = bad;
    return st;
}
