/* JSON as values of a program: the inverse of lang/value_json.c. The recursion is as deep as the JSON, which
 * EBB__JSON_DEPTH bounds. */
#include "serve/program_value.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Where a value stands: "/fields/items/3/name". */
typedef struct reading {
    ebb__ask *a;
    ebb__run *run;
    char where[80];
    size_t n;
} reading;

static size_t enter(reading *r, const char *name) {
    size_t before = r->n, left = sizeof r->where - r->n;
    int n = snprintf(r->where + r->n, left, "/%.60s", name);
    r->n += n > 0 && (size_t)n < left ? (size_t)n : left - 1;
    return before;
}

static size_t enter_index(reading *r, size_t i) {
    char text[24];
    (void)snprintf(text, sizeof text, "%zu", i);
    return enter(r, text);
}

static void leave(reading *r, size_t before) {
    r->n = before;
    r->where[before] = 0;
}

static bool bad(reading *r, const char *expected, const char *found) {
    return ebb__problem_set(r->a, 400, "bad_value", r->where, expected, "'%.70s' is %.100s", r->where, found);
}

/* What was asked for too much memory. */
static bool too_large(reading *r) {
    return ebb__problem_set(r->a, 413, "limit", r->where, "a message of 64 KiB or less",
                            "the message is too large");
}

static bool take(reading *r, uint32_t type, const json_t *j, ebb__value *out);

/* ---- words -------------------------------------------------------------------------------------------------------- */

static bool take_integer(reading *r, uint8_t kind, const char *type, const json_t *j, ebb__value *out) {
    char expected[120];
    const char *span = kind == EBB__TY_U64 ? "from 0 to 9223372036854775807" : "of 64 bits";
    (void)snprintf(expected, sizeof expected, "a whole number %s: %.60s", span,
                   kind == EBB__TY_DURATION ? "milliseconds" : type);
    if (!json_is_integer(j)) return bad(r, expected, ebb__json_type(j));
    if (kind == EBB__TY_U64 && json_integer_value(j) < 0) return bad(r, expected, "less than 0");
    out->word = (uint64_t)json_integer_value(j);
    return true;
}

static bool take_handle(reading *r, uint32_t type, const json_t *j, ebb__value *out) {
    char expected[120];
    (void)snprintf(expected, sizeof expected, "the id of a machine, as \"1.5.2\": %.60s",
                   r->run->shapes[type].name);
    if (!json_is_string(j)) return bad(r, expected, ebb__json_type(j));
    if (ebb__id_of(json_string_value(j), &out->word) && ebb__handle_fits(r->run->program, type, out->word))
        return true;
    return bad(r, expected, "the id of no such machine");
}

/* ---- strings and bytes --------------------------------------------------------------------------------------------- */

static bool keep(reading *r, ebb__object *o, ebb__value *out) {
    out->ref = o;
    return o != NULL || too_large(r);
}

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool take_bytes(reading *r, uint32_t type, const json_t *j, ebb__value *out) {
    static const char expected[] = "a string of hexadecimal digits, two a byte";
    if (!json_is_string(j)) return bad(r, expected, ebb__json_type(j));
    const char *s = json_string_value(j);
    const size_t n = json_string_length(j);
    ebb__object *o = ebb__bytes_new(r->run, type, NULL, n / 2);
    if (!keep(r, o, out)) return false;
    for (size_t i = 0; i < n; i++) {
        if (n % 2 != 0 || hex(s[i]) < 0) return bad(r, expected, "a string with something else");
        uint8_t *byte = ebb__object_bytes(o) + i / 2;
        *byte = (uint8_t)(i % 2 == 0 ? hex(s[i]) << 4 : *byte | hex(s[i]));
    }
    return true;
}

static bool take_string(reading *r, uint32_t type, const json_t *j, ebb__value *out) {
    if (!json_is_string(j)) return bad(r, "a string", ebb__json_type(j));
    return keep(r, ebb__bytes_new(r->run, type, json_string_value(j), json_string_length(j)), out);
}

/* ---- lists and maps ------------------------------------------------------------------------------------------------ */

static bool take_list(reading *r, uint32_t type, const json_t *j, ebb__value *out) {
    const ebb__shape *s = &r->run->shapes[type];
    if (!json_is_array(j)) return bad(r, "an array", ebb__json_type(j));
    const size_t n = json_array_size(j);
    if (n > EBB_MACHINE_MESSAGE_MAX / sizeof(ebb__value)) return too_large(r);
    ebb__object *o = ebb__array_new(r->run, type, (uint32_t)n);
    if (!keep(r, o, out)) return false;
    for (uint32_t i = 0; i < n; i++) {
        size_t before = enter_index(r, i);
        if (!take(r, s->of[0], json_array_get(j, i), ebb__array_at(o, i))) return false;
        leave(r, before);
    }
    return true;
}

static bool take_tuple(reading *r, uint32_t type, const json_t *j, ebb__value *out) {
    const ebb__shape *s = &r->run->shapes[type];
    char expected[40];
    (void)snprintf(expected, sizeof expected, "an array of %" PRIu32, s->n);
    if (!json_is_array(j)) return bad(r, expected, ebb__json_type(j));
    if (json_array_size(j) != s->n) return bad(r, expected, "an array of another length");
    ebb__object *o = ebb__object_make(r->run, type);
    if (!keep(r, o, out)) return false;
    for (uint32_t i = 0; i < s->n; i++) {
        size_t before = enter_index(r, i);
        if (!take(r, s->of[i], json_array_get(j, i), &o->slots[s->at[i]])) return false;
        leave(r, before);
    }
    return true;
}

static bool put_pair(reading *r, const ebb__shape *s, const json_t *key, const json_t *value,
                     ebb__value *map) {
    ebb__value k = {0}, v = {0};
    if (!take(r, s->of[0], key, &k) || !take(r, s->of[1], value, &v)) return false;
    return keep(r, ebb__dict_set(r->run, map->ref, k, v), map);
}

/* By string keys: an object. */
static bool take_named(reading *r, const ebb__shape *s, json_t *j, ebb__value *map) {
    const char *name;
    json_t *value;
    size_t n;
    json_object_keylen_foreach(j, name, n, value) {
        size_t before = enter(r, name);
        json_t *key = json_stringn_nocheck(name, n);
        bool ok = key != NULL ? put_pair(r, s, key, value, map) : too_large(r);
        json_decref(key);
        if (!ok) return false;
        leave(r, before);
    }
    return true;
}

static bool take_pairs(reading *r, const ebb__shape *s, const json_t *j, ebb__value *map) {
    const json_t *pair;
    size_t i;
    json_array_foreach(j, i, pair) {
        size_t before = enter_index(r, i);
        if (!json_is_array(pair) || json_array_size(pair) != 2)
            return bad(r, "an array of a key and a value", ebb__json_type(pair));
        if (!put_pair(r, s, json_array_get(pair, 0), json_array_get(pair, 1), map)) return false;
        leave(r, before);
    }
    return true;
}

static bool take_map(reading *r, uint32_t type, json_t *j, ebb__value *out) {
    const ebb__shape *s = &r->run->shapes[type];
    const bool named = r->run->shapes[s->of[0]].kind == EBB__TY_STRING;
    if (named && !json_is_object(j)) return bad(r, "an object", ebb__json_type(j));
    if (!named && !json_is_array(j)) return bad(r, "an array of pairs", ebb__json_type(j));
    const size_t n = named ? json_object_size(j) : json_array_size(j);
    if (n > EBB_MACHINE_MESSAGE_MAX / sizeof(ebb__value)) return too_large(r);
    if (!keep(r, ebb__dict_new(r->run, type, (uint32_t)n), out)) return false;
    return named ? take_named(r, s, j, out) : take_pairs(r, s, j, out);
}

/* ---- records and unions -------------------------------------------------------------------------------------------- */

static void say_names(const char *const *names, uint32_t n, char *out, size_t room) {
    out[0] = 0;
    for (size_t i = 0, at = 0; i < n && at < room; i++) {
        int more = snprintf(out + at, room - at, "%s%.60s", i == 0 ? "" : ", ", names[i]);
        at += more > 0 ? (size_t)more : 0;
    }
}

static bool only_fields_of(reading *r, const ebb__shape *s, json_t *j) {
    const char *name;
    json_t *value;
    json_object_foreach(j, name, value) {
        uint32_t i = 0;
        while (i < s->n && strcmp(s->names[i], name) != 0) i++;
        if (i < s->n) continue;
        char names[200];
        say_names(s->names, s->n, names, sizeof names);
        (void)enter(r, name);
        return ebb__problem_set(r->a, 400, "unknown_name", r->where, names[0] != 0 ? names : "nothing",
                                "'%.60s' is not a field of %.60s", name, s->name);
    }
    return true;
}

static bool take_record(reading *r, uint32_t type, json_t *j, ebb__value *out) {
    const ebb__shape *s = &r->run->shapes[type];
    char expected[120];
    (void)snprintf(expected, sizeof expected, "an object: %.60s", s->name);
    if (!json_is_object(j)) return bad(r, expected, ebb__json_type(j));
    if (!only_fields_of(r, s, j)) return false;
    if (s->constant != NULL) return keep(r, s->constant, out);
    if (!keep(r, ebb__object_make(r->run, type), out)) return false;
    for (uint32_t i = 0; i < s->n; i++) {
        json_t *value = json_object_get(j, s->names[i]);
        size_t before = enter(r, s->names[i]);
        if (value == NULL) return bad(r, r->run->shapes[s->of[i]].name, "missing");
        if (!take(r, s->of[i], value, &out->ref->slots[s->at[i]])) return false;
        leave(r, before);
    }
    return true;
}

/* "Name" of a record without fields, or {"Name": value}. */
static bool take_member(reading *r, uint32_t member, json_t *value, ebb__value *out) {
    const ebb__shape *s = &r->run->shapes[member];
    const size_t before = enter(r, s->name);
    ebb__value x = {0};
    if (value == NULL && (s->kind != EBB__TY_RECORD || s->n > 0))
        return bad(r, "an object with a value", "a name");
    if (value == NULL) x.ref = s->constant;
    else if (!take(r, member, value, &x)) return false;
    leave(r, before);
    if (s->is_ref) return keep(r, x.ref, out);
    return keep(r, s->constant != NULL ? s->constant : ebb__object_box(r->run, member, x.word), out);
}

static bool take_union(reading *r, uint32_t type, json_t *j, ebb__value *out) {
    const ebb__shape *s = &r->run->shapes[type];
    char expected[180];
    (void)snprintf(expected, sizeof expected, "\"Name\", or {\"Name\": value}: %.120s", s->name);
    const bool bare = json_is_string(j);
    if (!bare && (!json_is_object(j) || json_object_size(j) != 1)) return bad(r, expected, ebb__json_type(j));
    const char *name = bare ? json_string_value(j) : json_object_iter_key(json_object_iter(j));
    for (uint32_t i = 0; i < s->n; i++) {
        if (strcmp(r->run->shapes[s->of[i]].name, name) == 0)
            return take_member(r, s->of[i], bare ? NULL : json_object_get(j, name), out);
    }
    return bad(r, expected, "none of them");
}

static bool take(reading *r, uint32_t type, const json_t *given, ebb__value *out) {
    const ebb__shape *s = &r->run->shapes[type];
    json_t *j = (json_t *)(uintptr_t)given;
    switch (s->kind) {
    case EBB__TY_BOOL:
        out->word = json_is_true(j);
        return json_is_boolean(j) || bad(r, "true or false", ebb__json_type(j));
    case EBB__TY_I64:
    case EBB__TY_U64:
    case EBB__TY_DURATION: return take_integer(r, s->kind, s->name, j, out);
    case EBB__TY_STRING: return take_string(r, type, j, out);
    case EBB__TY_BYTES: return take_bytes(r, type, j, out);
    case EBB__TY_LIST: return take_list(r, type, j, out);
    case EBB__TY_MAP: return take_map(r, type, j, out);
    case EBB__TY_TUPLE: return take_tuple(r, type, j, out);
    case EBB__TY_RECORD: return take_record(r, type, j, out);
    case EBB__TY_UNION: return take_union(r, type, j, out);
    case EBB__TY_MACHINE:
    case EBB__TY_ROLE: return take_handle(r, type, j, out);
    case EBB__TY_UNIT: out->word = 0; return json_is_null(j) || bad(r, "null", ebb__json_type(j));
    default: return bad(r, "what only a machine can have", ebb__json_type(j));
    }
}

ebb__object *ebb__program_message(ebb__ask *a, ebb__run *run, uint32_t type, const json_t *fields) {
    reading r = {.a = a, .run = run};
    ebb__value out = {0};
    (void)enter(&r, "fields");
    return take_record(&r, type, (json_t *)(uintptr_t)fields, &out) ? out.ref : NULL;
}
