/* Bodies and answers. A JSON value must not be alive across an await: a handler that is forced would leak it. */
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "shop.h"

ebb_status shop_answer(ebb_cx *cx, ebb_http *x, int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    json_t *made = json_vpack_ex(NULL, 0, format, args);
    va_end(args);
    char *text = made != NULL ? json_dumps(made, JSON_COMPACT) : NULL;
    json_decref(made);
    if (text == NULL) return EBB_ERR_NOMEM;
    ebb_status st = ebb_http_reply(cx, x, status, "application/json", text, strlen(text));
    free(text);
    return st;
}

/* A page of another site can't send this type without being asked for leave: so none orders in a user's name. */
static bool is_json(const ebb_http *x) {
    const char *type = ebb_http_header(x, "content-type");
    return type != NULL && strncmp(type, "application/json", 16) == 0;
}

bool shop_body(ebb_cx *cx, ebb_http *x, json_t **out, ebb_status *st) {
    ebb_value v;
    *out = NULL;
    if (!is_json(x)) {
        *st = shop_answer(cx, x, 415, "{s:s}", "error", "the body is not application/json");
        return false;
    }
    *st = ebb_await(cx, ebb_http_body(cx, x, SHOP_BODY), &v);
    if (*st == EBB_ERR_LIMIT) {
        *st = shop_answer(cx, x, 413, "{s:s, s:i}", "error", "the body is too large", "limit", SHOP_BODY);
        return false;
    }
    if (*st != EBB_OK) return false;
    const ebb_http_bytes *body = ebb_http_body_of(&v);
    *out = json_loadb(body->at, body->n, 0, NULL);
    ebb_value_discard(cx, v);
    if (json_is_object(*out)) return true;
    json_decref(*out);
    *st = shop_answer(cx, x, 400, "{s:s}", "error", "the body is not a JSON object");
    return false;
}
