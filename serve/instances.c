/* Durable instances: what is read. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "durable/info_json.h"
#include "serve/instance.h"

enum { PAGE = 50, TURNS = 100, CUSTOM_MOST = 4096, HISTORY_BYTES = 4 << 20 };

/* ---- shared with the changes ------------------------------------------------------------------------------------- */

bool ebb__instance_take(ebb__ask *a, const char **id, ebb_status *st) {
    *id = ebb_http_param(a->x, "id");
    if (a->dash->store == NULL)
        *st = ebb__answer_refusal(a, 404, "no_store", "this server has no store of instances");
    else if (*id == NULL) *st = ebb__answer_failure(a, EBB_ERR_NOMEM, NULL);
    else return true;
    return false;
}

/* Right after the await that has failed: the text is that of its future. */
ebb_status ebb__instance_failure(ebb__ask *a, ebb_status st) {
    char text[sizeof a->problem.message];
    const ebb__given *given = ebb__given_of(a, "id");
    const char *id = given != NULL && given->is ? given->text : ebb_http_param(a->x, "id");
    const char *why = ebb_durable_error();
    if (*why != 0 || id == NULL) return ebb__answer_failure(a, st, why);
    (void)snprintf(text, sizeof text, "%.*s: %s", EBB_DURABLE_ID, id, ebb_status_text(st));
    return ebb__answer_failure(a, st, text);
}

ebb_status ebb__instance_await(ebb__ask *a, ebb_future *f, ebb_value *v) {
    return ebb_await(a->cx, ebb_within(a->cx, f, EBB__STORE_PATIENCE), v);
}

/* The filter's texts are the exchange's. */
void ebb__instance_filter(const ebb__ask *a, ebb_instance_filter *f) {
    const struct {
        const char *name, **text;
        uint64_t *number;
    } fields[] = {{"name", &f->name, NULL},
                  {"prefix", &f->prefix, NULL},
                  {"parent", &f->parent, NULL},
                  {"after", &f->after, NULL},
                  {"started_after", NULL, &f->started_after},
                  {"ended_before", NULL, &f->ended_before}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const ebb__given *g = ebb__given_of(a, fields[i].name);
        if (g == NULL || !g->is) continue;
        if (fields[i].text != NULL) *fields[i].text = g->text;
        else *fields[i].number = g->number;
    }
    const ebb__given *state = ebb__given_of(a, "state"), *tree = ebb__given_of(a, "tree");
    if (state != NULL && state->is) f->states = (uint32_t)state->number;
    if (tree != NULL && tree->is) f->tree = tree->flag;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* A page may have two hundred statuses of two MiB, and is a page of rows. */
static json_t *row_of(const ebb_instance_info *i) {
    ebb_instance_info row = *i;
    if (row.custom.n > CUSTOM_MOST) row.custom = (ebb_blob){NULL, 0};
    json_t *j = ebb__info_json(&row, false);
    if (j != NULL && json_object_set_new(j, "custom_bytes", json_integer((json_int_t)i->custom.n)) == 0)
        return j;
    json_decref(j);
    return NULL;
}

static json_t *page_of(const ebb_instance_info *at, size_t n, size_t most) {
    json_t *all = json_array(), *j = json_object();
    bool ok = all != NULL && j != NULL;
    for (size_t i = 0; i < n && ok; i++) ok = json_array_append_new(all, row_of(&at[i])) == 0;
    ok = ok && json_object_set(j, "instances", all) == 0;
    ok = ok && json_object_set_new(j, "next", n == most ? ebb__text_json(at[n - 1].id) : json_null()) == 0;
    json_decref(all);
    if (!ok) json_decref(j);
    return ok ? j : NULL;
}

static ebb_future *ask_page(ebb__ask *a, ebb_instance_filter *f) {
    const ebb__given *most = ebb__given_of(a, "most");
    ebb__instance_filter(a, f);
    f->most = most->is ? (uint32_t)most->number : PAGE;
    return ebb_within(a->cx, ebb_instance_list(a->cx, a->dash->store, f), EBB__STORE_PATIENCE);
}

ebb_future *ebb__instance_page(ebb__ask *a) {
    ebb_instance_filter f = {0};
    return ask_page(a, &f);
}

json_t *ebb__instance_page_json(ebb__ask *a, ebb_value *v) {
    const ebb__given *most = ebb__given_of(a, "most");
    size_t n;
    const ebb_instance_info *at = ebb_instances_of(v, &n);
    json_t *j = page_of(at, n, most->is ? (size_t)most->number : PAGE);
    ebb_value_discard(a->cx, *v);
    return j;
}

static ebb_status answer_page(ebb__ask *a, ebb_future *page) {
    ebb_value v;
    ebb_status st = ebb_await(a->cx, page, &v);
    return st == EBB_OK ? ebb__answer(a, 200, ebb__instance_page_json(a, &v)) : ebb__instance_failure(a, st);
}

ebb_status ebb__serve_instances(ebb__ask *a) {
    if (a->dash->store == NULL)
        return ebb__answer_refusal(a, 404, "no_store", "this server has no store of instances");
    return answer_page(a, ebb__instance_page(a));
}

ebb_status ebb__serve_children(ebb__ask *a) {
    ebb_instance_filter f = {0};
    ebb_status st;
    if (!ebb__instance_take(a, &f.parent, &st)) return st;
    return answer_page(a, ask_page(a, &f));
}

/* ---- one --------------------------------------------------------------------------------------------------------- */

ebb_status ebb__instance_answer(ebb__ask *a, int status, ebb_status st, ebb_value *v) {
    if (st != EBB_OK) return ebb__instance_failure(a, st);
    json_t *j = ebb__info_json(ebb_instance_info_of(v), true);
    ebb_value_discard(a->cx, *v);
    return ebb__answer(a, status, j);
}

ebb_status ebb__serve_instance(ebb__ask *a) {
    const char *id;
    ebb_value v;
    ebb_status st;
    if (!ebb__instance_take(a, &id, &st)) return st;
    st = ebb__instance_await(a, ebb_instance_status(a->cx, a->dash->store, id), &v);
    return ebb__instance_answer(a, 200, st, &v);
}

/* ---- history ----------------------------------------------------------------------------------------------------- */

/* A page that is full of turns, or of bytes, has a next one; that may be empty. */
static json_t *history_of(const ebb_history_event *at, size_t n, uint32_t most) {
    json_t *all = json_array(), *j = json_object();
    bool ok = all != NULL && j != NULL;
    uint64_t turns = 0, bytes = 0;
    for (size_t i = 0; i < n && ok; i++) {
        turns += i == 0 || at[i].turn != at[i - 1].turn;
        bytes += strlen(at[i].json);
        ok = json_array_append_new(all, ebb__history_event_json(&at[i])) == 0;
    }
    json_t *next =
        turns == most || bytes > HISTORY_BYTES ? json_integer((json_int_t)at[n - 1].turn) : json_null();
    ok = (json_object_set_new(j, "next", next) == 0) && ok && json_object_set(j, "events", all) == 0;
    json_decref(all);
    if (!ok) json_decref(j);
    return ok ? j : NULL;
}

ebb_status ebb__serve_history(ebb__ask *a) {
    const ebb__given *execution = ebb__given_of(a, "execution"), *after = ebb__given_of(a, "after"),
                     *most = ebb__given_of(a, "most");
    const ebb_history_opts opts = {.execution = execution->number,
                                   .after = after->number,
                                   .most = most->is ? (uint32_t)most->number : TURNS,
                                   .bytes = HISTORY_BYTES};
    const char *id;
    ebb_value v;
    ebb_status st;
    size_t n;
    if (!ebb__instance_take(a, &id, &st)) return st;
    st = ebb__instance_await(a, ebb_instance_history(a->cx, a->dash->store, id, &opts), &v);
    if (st != EBB_OK) return ebb__instance_failure(a, st);
    const ebb_history_event *at = ebb_history_of(&v, &n);
    json_t *j = history_of(at, n, opts.most);
    ebb_value_discard(a->cx, v);
    return ebb__answer(a, 200, j);
}
