/* One request: its gate, its arguments, its handler. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/serve.h"

/* A payload of the largest size, with names around it. */
enum { BODY_MOST = EBB_DURABLE_PAYLOAD + 65536 };

static ebb_status set_headers(ebb_http *x) {
    ebb_status st = ebb_http_set_header(x, "cache-control", "no-store");
    if (st == EBB_OK) st = ebb_http_set_header(x, "x-content-type-options", "nosniff");
    if (st == EBB_OK)
        st = ebb_http_set_header(x, "content-security-policy", "default-src 'none'; frame-ancestors 'none'");
    return st;
}

/* A form of another site can't have this type without being asked for leave. */
static bool type_is_right(ebb__ask *a) {
    static const char json[] = "application/json";
    const char *type = ebb_http_header(a->x, "content-type");
    if (type != NULL && strncasecmp(type, json, sizeof json - 1) == 0 &&
        strchr("; ", type[sizeof json - 1]) != NULL)
        return true;
    return ebb__problem_set(a, 415, "wrong_type", "header 'content-type'", json, "the body is '%.60s'",
                            type != NULL ? type : "of no type");
}

static ebb_status take_body(ebb__ask *a, bool *valid) {
    ebb_value v;
    *valid = true;
    if (!ebb_http_has_body(a->x)) {
        *valid = ebb__given_body(a, "", 0);
        return EBB_OK;
    }
    ebb_status st = ebb_await(a->cx, ebb_http_body(a->cx, a->x, BODY_MOST), &v);
    if (st == EBB_ERR_LIMIT)
        *valid = ebb__problem_set(a, 413, "body_too_large", "body", NULL, "the body has more than %d bytes",
                                  BODY_MOST);
    if (st != EBB_OK) return st == EBB_ERR_LIMIT ? EBB_OK : st;
    const ebb_http_bytes *b = ebb_http_body_of(&v);
    *valid = (b->n == 0 || type_is_right(a)) && ebb__given_body(a, b->at, b->n);
    return EBB_OK;
}

/* What is meant to be told must not be overheard: "?dry_run=true". */
static bool has_no_query(ebb__ask *a) {
    const char *query = ebb_http_query(a->x);
    if (*query == 0) return true;
    return ebb__problem_set(a, 400, "unknown_name", "query", "nothing: a POST takes a body",
                            "'%.60s' is not known here", query);
}

static ebb_status take_given(ebb__ask *a, bool *valid) {
    const bool post = strcmp(a->route->method, "POST") == 0;
    *valid = post ? has_no_query(a) : ebb__given_query(a);
    return post && *valid ? take_body(a, valid) : EBB_OK;
}

ebb_status ebb__dispatch(ebb_cx *cx, ebb_http *x, void *arg) {
    const ebb__binding *b = arg;
    ebb__ask *a = ebb_http_state(x, sizeof *a);
    bool valid;
    if (a == NULL) return EBB_ERR_NOMEM;
    a->cx = cx;
    a->x = x;
    a->dash = b->dash;
    a->route = b->route;
    ebb_status st = set_headers(x);
    if (st != EBB_OK) return st;
    valid = ebb__gate(a);
    if (valid) st = take_given(a, &valid);
    if (st != EBB_OK) return st;
    return valid ? a->route->fn(a) : ebb__answer_problem(a);
}
