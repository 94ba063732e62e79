/* What a request gives: parameters of the query, or members of a body that is one JSON object. Both follow the rules of
 * the route, and nothing else may be given. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "durable/info_json.h"
#include "serve/serve.h"

enum { SAY = 200, NAMES = 160 };

/* ---- rules ------------------------------------------------------------------------------------------------------- */

const char *ebb__rule_say(const ebb__rule *r, char *out, size_t room) {
    switch (r->type) {
    case EBB__TEXT:
        (void)snprintf(out, room, "a string of %" PRIu64 " to %" PRIu64 " bytes", r->least, r->most);
        break;
    case EBB__NUMBER:
        (void)snprintf(out, room, "a whole number from %" PRIu64 " to %" PRIu64, r->least, r->most);
        break;
    case EBB__FLAG: (void)snprintf(out, room, "true or false"); break;
    case EBB__JSON: (void)snprintf(out, room, "any JSON value"); break;
    case EBB__STATES:
        (void)snprintf(out, room,
                       "Running, Suspended, Completed, Failed, Cancelled or Terminated, separated by commas");
        break;
    }
    return out;
}

static void where_of(const ebb__ask *a, const char *name, char out[80]) {
    bool body = strcmp(a->route->method, "POST") == 0;
    (void)snprintf(out, 80, body ? "/%.60s" : "query parameter '%.50s'", name);
}

static bool bad_value(ebb__ask *a, const ebb__rule *r, const char *found) {
    char where[80], expected[SAY];
    where_of(a, r->name, where);
    return ebb__problem_set(a, 400, "bad_value", where, ebb__rule_say(r, expected, sizeof expected),
                            "'%s' is %.200s", r->name, found);
}

static bool unknown(ebb__ask *a, const char *name) {
    char names[NAMES] = "", where[80];
    for (size_t i = 0, n = 0; i < a->route->rules_n && n < sizeof names; i++) {
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i == 0 ? "" : ", ",
                              a->route->rules[i].name);
    }
    where_of(a, name, where);
    return ebb__problem_set(a, 400, "unknown_name", where, names[0] != 0 ? names : "nothing",
                            "'%.60s' is not known here", name);
}

/* NULL: there is none. */
static const ebb__rule *rule_of(ebb__ask *a, const char *name, ebb__given **out) {
    for (size_t i = 0; i < a->route->rules_n; i++) {
        if (strcmp(a->route->rules[i].name, name) != 0) continue;
        *out = &a->given[i];
        return &a->route->rules[i];
    }
    return NULL;
}

const ebb__given *ebb__given_of(const ebb__ask *a, const char *name) {
    for (size_t i = 0; i < a->route->rules_n; i++) {
        if (strcmp(a->route->rules[i].name, name) == 0) return &a->given[i];
    }
    return NULL;
}

static bool all_required(ebb__ask *a) {
    for (size_t i = 0; i < a->route->rules_n; i++) {
        if (a->route->rules[i].required && !a->given[i].is)
            return bad_value(a, &a->route->rules[i], "missing");
    }
    return true;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static char *keep(ebb__ask *a, const char *at, size_t n) {
    char *copy = ebb_http_alloc(a->x, n + 1);
    if (copy == NULL) {
        (void)ebb__problem_set(a, 503, "no_memory", NULL, NULL, "no memory for the request");
        return NULL;
    }
    memcpy(copy, at, n);
    copy[n] = 0;
    return copy;
}

static bool take_text(ebb__ask *a, const ebb__rule *r, ebb__given *g, const char *at, size_t n) {
    char found[SAY];
    (void)snprintf(found, sizeof found, "a string of %zu bytes", n);
    if (n < r->least || n > r->most) return bad_value(a, r, found);
    if (memchr(at, 0, n) != NULL) return bad_value(a, r, "a string with a NUL");
    g->text = keep(a, at, n);
    return g->text != NULL;
}

static bool take_states(ebb__ask *a, const ebb__rule *r, ebb__given *g, const char *text) {
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        uint64_t bit = 0;
        for (ebb_instance_state s = EBB_INSTANCE_RUNNING; s <= EBB_INSTANCE_TERMINATED; s++) {
            const char *name = ebb_instance_state_name(s);
            if (strlen(name) == n && strncasecmp(name, at, n) == 0) bit = UINT64_C(1) << s;
        }
        if (bit == 0) return bad_value(a, r, text);
        g->number |= bit;
        at += n;
        if (*at == 0) return true;
    }
}

static bool take_number(ebb__ask *a, const ebb__rule *r, ebb__given *g, uint64_t n) {
    char found[24];
    (void)snprintf(found, sizeof found, "%" PRIu64, n);
    if (n < r->least || n > r->most) return bad_value(a, r, found);
    g->number = n;
    return true;
}

/* ---- the query --------------------------------------------------------------------------------------------------- */

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place. False: an escape that is none, or that of a NUL. */
static bool decode(char *s) {
    char *to = s;
    for (; *s != 0; s++) {
        if (*s == '%' && (hex(s[1]) < 0 || hex(s[2]) < 0)) return false;
        if (*s != '%') {
            *to++ = *s == '+' ? ' ' : *s;
            continue;
        }
        *to = (char)((unsigned)hex(s[1]) * 16 + (unsigned)hex(s[2]));
        if (*to++ == 0) return false;
        s += 2;
    }
    *to = 0;
    return true;
}

static bool take_word(ebb__ask *a, const ebb__rule *r, ebb__given *g, const char *text) {
    size_t digits = strspn(text, "0123456789");
    switch (r->type) {
    case EBB__NUMBER:
        if (digits == 0 || digits > 19 || text[digits] != 0) return bad_value(a, r, text);
        return take_number(a, r, g, strtoull(text, NULL, 10));
    case EBB__FLAG:
        g->flag = strcmp(text, "true") == 0;
        return g->flag || strcmp(text, "false") == 0 || bad_value(a, r, text);
    case EBB__STATES: return take_states(a, r, g, text);
    case EBB__TEXT: return take_text(a, r, g, text, strlen(text));
    case EBB__JSON: break; /* in bodies only */
    }
    return false;
}

/* One "name=value", which is changed. */
static bool take_pair(ebb__ask *a, char *pair) {
    ebb__given *g = NULL;
    char *value = strchr(pair, '=');
    if (value != NULL) *value++ = 0;
    bool escapes = decode(pair) && (value == NULL || decode(value));
    if (!escapes)
        return ebb__problem_set(a, 400, "bad_escape", "query", "two hexadecimal digits after each %, not 00",
                                "the query has a %% that escapes nothing");
    const ebb__rule *r = rule_of(a, pair, &g);
    if (r == NULL) return unknown(a, pair);
    if (g->is) return bad_value(a, r, "given twice");
    g->is = true;
    return take_word(a, r, g, value != NULL ? value : "");
}

bool ebb__given_query(ebb__ask *a) {
    const char *query = ebb_http_query(a->x);
    char *at = keep(a, query, strlen(query));
    if (at == NULL) return false;
    while (*at != 0) {
        char *next = at + strcspn(at, "&");
        bool last = *next == 0;
        *next = 0;
        if (*at != 0 && !take_pair(a, at)) return false;
        at = last ? next : next + 1;
    }
    return all_required(a);
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

const char *ebb__json_type(const json_t *j) {
    static const char *const names[] = {[JSON_OBJECT] = "an object",
                                        [JSON_ARRAY] = "an array",
                                        [JSON_STRING] = "a string",
                                        [JSON_INTEGER] = "a number",
                                        [JSON_REAL] = "a number with a fraction",
                                        [JSON_TRUE] = "true",
                                        [JSON_FALSE] = "false",
                                        [JSON_NULL] = "null"};
    return names[json_typeof(j)];
}

/* A value that is passed on is kept as it was sent: the JSON library would write 0.1 as 0.10000000000000001. These read
 * what the library has found to be valid, and so end before the 0 behind it. */
static const char *skip_space(const char *at) {
    return at + strspn(at, " \t\r\n");
}

static const char *string_end(const char *at) {
    for (at++; *at != '"'; at++) at += *at == '\\';
    return at + 1;
}

static const char *value_end(const char *at) {
    size_t depth = 0;
    do {
        const char c = *at;
        if (c == '"') at = string_end(at);
        else if (c == '[' || c == '{') depth++, at++;
        else if (c == ']' || c == '}') depth--, at++;
        else if (depth > 0) at++;
        else at += strcspn(at, " \t\r\n,]}");
    } while (depth > 0);
    return at;
}

/* The value of a member of the object `at`. NULL: none of them has its name written without escapes. */
static ebb_blob member_of(const char *at, const char *name) {
    const size_t n = strlen(name);
    at = skip_space(at);
    while (*at != '}' && *at != 0) {
        const char *key = skip_space(at + 1), *end, *value;
        if (*key != '"') break; /* an empty object */
        end = string_end(key);
        value = skip_space(skip_space(end) + 1);
        at = value_end(value);
        if ((size_t)(end - key) == n + 2 && memcmp(key + 1, name, n) == 0)
            return (ebb_blob){value, (size_t)(at - value)};
        at = skip_space(at);
    }
    return (ebb_blob){NULL, 0};
}

static bool take_json(ebb__ask *a, ebb__given *g, const char *body, const char *name, const json_t *j) {
    ebb_blob value = member_of(body, name);
    char *text = value.at == NULL ? json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (text != NULL) value = ebb_blob_text(text);
    g->json = (ebb_blob){value.at != NULL ? keep(a, value.at, value.n) : NULL, value.n};
    free(text);
    return g->json.at != NULL ||
           ebb__problem_set(a, 503, "no_memory", NULL, NULL, "no memory for the request");
}

static bool take_member(ebb__ask *a, const char *body, const char *name, const json_t *j) {
    ebb__given *g = NULL;
    const ebb__rule *r = rule_of(a, name, &g);
    if (r == NULL) return unknown(a, name);
    g->is = true;
    switch (r->type) {
    case EBB__JSON: return take_json(a, g, body, name, j);
    case EBB__FLAG:
        g->flag = json_is_true(j);
        return json_is_boolean(j) || bad_value(a, r, ebb__json_type(j));
    case EBB__NUMBER:
        if (!json_is_integer(j)) return bad_value(a, r, ebb__json_type(j));
        if (json_integer_value(j) < 0) return bad_value(a, r, "less than 0");
        return take_number(a, r, g, (uint64_t)json_integer_value(j));
    case EBB__STATES:
        return json_is_string(j) ? take_states(a, r, g, json_string_value(j))
                                 : bad_value(a, r, ebb__json_type(j));
    case EBB__TEXT:
        if (!json_is_string(j)) return bad_value(a, r, ebb__json_type(j));
        return take_text(a, r, g, json_string_value(j), json_string_length(j));
    }
    return false;
}

static bool take_object(ebb__ask *a, const char *body, json_t *object) {
    const char *name;
    json_t *j;
    if (!json_is_object(object))
        return ebb__problem_set(a, 400, "malformed_body", "body", "a JSON object", "the body is %s",
                                ebb__json_type(object));
    json_object_foreach(object, name, j) {
        if (!take_member(a, body, name, j)) return false;
    }
    return all_required(a);
}

/* No body gives nothing. */
bool ebb__given_body(ebb__ask *a, const char *at, size_t n) {
    json_error_t error;
    if (n == 0) return all_required(a);
    if (!ebb__json_is_shallow(at, n))
        return ebb__problem_set(a, 400, "malformed_body", "body", NULL,
                                "the body is nested deeper than %d levels", EBB__JSON_DEPTH);
    json_t *j = json_loadb(at, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (j != NULL) {
        bool valid = take_object(a, at, j);
        json_decref(j);
        return valid;
    }
    (void)ebb__problem_set(a, 400, "malformed_body", "body", "a JSON object",
                           "the body is not JSON: line %d, column %d: %s", error.line, error.column,
                           error.text);
    a->problem.line = error.line;
    a->problem.column = error.column;
    return false;
}
