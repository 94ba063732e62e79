/* Events for people: one line of text, or a JSON object, by the table in event.def. */
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "durable/event.h"
#include "durable/info_json.h"

typedef enum say_type { NUMBER, TEXT, STATUS, BLOB, EVENTS, SEED } say_type;

typedef enum say_field {
#define EBB__FIELD(name, NAME, type) FIELD_##NAME,
#include "durable/event.def"
#undef EBB__FIELD
    FIELDS
} say_field;

static const struct {
    const char *name;
    size_t offset;
    say_type type;
} fields[FIELDS] = {
#define EBB__FIELD(name, NAME, type) [FIELD_##NAME] = {#name, offsetof(ebb__event, name), type},
#include "durable/event.def"
#undef EBB__FIELD
};

const char *const ebb__flag_names[EBB__FLAGS] = {"final",   "detached", "removed",  "patched",
                                                 "retried", "backoff",  "deadline", "cleanup"};

/* Calls `each` for every field of the event's kind. */
static void walk(const ebb__event *e, void (*each)(void *arg, const ebb__event *e, say_field f), void *arg) {
#define F(NAME) each(arg, e, FIELD_##NAME);
#define M(NAME) each(arg, e, FIELD_##NAME);
    switch ((unsigned)e->kind) {
#define EBB__KIND(NAME, value, name, class, fields)                                                          \
    case value:                                                                                              \
        fields break;
#include "durable/event.def"
#undef EBB__KIND
    default: break;
    }
#undef F
#undef M
}

/* ---- a line ---------------------------------------------------------------------------------------------------- */

enum { SHOWN = 80 };

static void say_bytes(ebb__text *t, const char *at, size_t n) {
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const char c = at[i];
        if (c >= 32 && c < 127) ebb__text_bytes(t, &c, 1);
        else ebb__text_str(t, ".");
    }
    if (n > SHOWN) ebb__text_str(t, "...");
}

static void say_text(ebb__text *t, const char *at, size_t n) {
    if (n == 0) return;
    ebb__text_str(t, " \"");
    say_bytes(t, at, n);
    ebb__text_str(t, "\"");
}

static void say_field_of(void *arg, const ebb__event *e, say_field f) {
    ebb__text *t = arg;
    const void *at = (const char *)e + fields[f].offset;
    const ebb__event_text *text = at;
    const ebb_blob *blob = at;
    switch (fields[f].type) {
    case NUMBER:
        if (*(const uint64_t *)at == 0) return;
        ebb__text_str(t, " ");
        ebb__text_str(t, fields[f].name);
        ebb__text_str(t, " ");
        ebb__text_u64(t, *(const uint64_t *)at);
        break;
    case TEXT: say_text(t, text->at, text->n); break;
    case STATUS:
        ebb__text_str(t, " ");
        ebb__text_str(t, ebb_status_name(*(const ebb_status *)at));
        break;
    case BLOB:
        if (blob->n == 0) return;
        ebb__text_str(t, " ");
        ebb__text_str(t, fields[f].name);
        ebb__text_str(t, " ");
        say_bytes(t, blob->at, blob->n);
        break;
    case EVENTS:
    case SEED: break;
    }
}

size_t ebb__event_say(const ebb__event *e, char *out, size_t room) {
    ebb__text t = ebb__text_in(out, room);
    if (e->number != 0) {
        ebb__text_str(&t, "#");
        ebb__text_u64(&t, e->number);
        ebb__text_str(&t, " ");
    }
    ebb__text_str(&t, ebb__event_name(e->kind));
    walk(e, say_field_of, &t);
    return t.n;
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------- */

static json_t *base64(const uint8_t *at, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((n + 2) / 3 * 4 + 1), *to = text;
    if (text == NULL) return NULL;
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t b =
            (uint32_t)at[i] << 16 | (i + 1 < n ? (uint32_t)at[i + 1] << 8 : 0) | (i + 2 < n ? at[i + 2] : 0);
        *to++ = digits[b >> 18];
        *to++ = digits[b >> 12 & 63];
        *to++ = i + 1 < n ? digits[b >> 6 & 63] : '=';
        *to++ = i + 2 < n ? digits[b & 63] : '=';
    }
    *to = 0;
    json_t *j = json_pack("{s:s}", "base64", text);
    free(text);
    return j;
}

json_t *ebb__blob_json(ebb_blob b) {
    if (b.n == 0) return json_null();
    json_t *j = ebb__json_is_shallow(b.at, b.n)
                    ? json_loadb(b.at, b.n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                    : NULL;
    if (j == NULL) j = json_stringn(b.at, b.n);
    return j != NULL ? j : base64(b.at, b.n);
}

static json_t *json_of_list(ebb_blob list);

static json_t *json_of_field(const ebb__event *e, say_field f) {
    const void *at = (const char *)e + fields[f].offset;
    const ebb__event_text *text = at;
    char hex[33];
    switch (fields[f].type) {
    case NUMBER: return json_integer((json_int_t) * (const uint64_t *)at);
    case TEXT: {
        json_t *j = json_stringn(text->n != 0 ? text->at : "", text->n);
        return j != NULL ? j : base64((const uint8_t *)text->at, text->n);
    }
    case STATUS: return json_string(ebb_status_name(*(const ebb_status *)at));
    case BLOB: return ebb__blob_json(*(const ebb_blob *)at);
    case EVENTS: return json_of_list(*(const ebb_blob *)at);
    case SEED: break;
    }
    ebb__text t = ebb__text_in(hex, sizeof hex);
    for (size_t i = 0; i < sizeof e->seed.at; i++) ebb__text_hex(&t, e->seed.at[i], 2);
    return json_string(hex);
}

static void add_field(void *arg, const ebb__event *e, say_field f) {
    (void)json_object_set_new(arg, fields[f].name, json_of_field(e, f));
}

static json_t *json_of(const ebb__event *e) {
    json_t *j = json_object();
    if (j != NULL && e->kind == 0) (void)json_object_set_new(j, "bytes", base64(e->body.at, e->body.n));
    if (j != NULL) walk(e, add_field, j);
    return j;
}

static json_t *json_of_list(ebb_blob list) {
    ebb__event_reader r;
    ebb__event e;
    json_t *all = json_array();
    ebb__event_reader_list(&r, list);
    while (all != NULL && ebb__event_read(&r, &e) == EBB_OK) {
        json_t *one = json_of(&e);
        (void)json_object_set_new(one, "kind", json_string(ebb__event_name(e.kind)));
        (void)json_array_append_new(all, one);
    }
    return all;
}

const char *ebb__event_json(ebb__arena *arena, const ebb__event *e) {
    json_t *j = json_of(e);
    char *text = j != NULL ? json_dumps(j, JSON_COMPACT) : NULL;
    const size_t n = text != NULL ? strlen(text) + 1 : 0;
    char *copy = text != NULL ? ebb__arena_alloc(arena, n) : NULL;
    if (copy != NULL) memcpy(copy, text, n);
    free(text);
    json_decref(j);
    return copy;
}
