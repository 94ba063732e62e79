/* lang/value_json.c - values as JSON, for the host: a record is an object, a list or tuple an array, a map with string
 * keys an object and another one an array of pairs. A member of a union is {"Name": value}, or "Name" if it has no fields.
 * Bytes are hexadecimal, a duration is its milliseconds, a handle the text of its id. */
#include "lang/host.h"

#include <string.h>

#include "base/text.h"

static void put(ebb__builder *b, const char *s) {
    ebb__builder_bytes(b, s, strlen(s));
}

/* ---- words and strings ---- */

static void put_u64(ebb__builder *b, uint64_t x, bool negative) {
    char digits[24];
    ebb__text t = ebb__text_in(digits, sizeof digits);
    if (negative) ebb__text_str(&t, "-");
    ebb__text_u64(&t, x);
    ebb__builder_bytes(b, digits, t.n);
}

static void put_id(ebb__builder *b, uint64_t id) {
    char text[40];
    ebb__text t = ebb__text_in(text, sizeof text);
    ebb__text_str(&t, "\"");
    ebb__text_id(&t, id);
    ebb__text_str(&t, "\"");
    ebb__builder_bytes(b, text, t.n);
}

static void put_string(ebb__builder *b, const uint8_t *s, size_t n) {
    static const char hex[] = "0123456789abcdef";
    put(b, "\"");
    for (size_t i = 0; i < n && b->text != NULL; i++) {
        const char escaped[] = {'\\', 'u', '0', '0', hex[s[i] >> 4], hex[s[i] & 15]};
        if (s[i] == '"' || s[i] == '\\') put(b, "\\");
        if (s[i] < ' ' || s[i] == 127) ebb__builder_bytes(b, escaped, sizeof escaped);
        else ebb__builder_bytes(b, &s[i], 1);
    }
    put(b, "\"");
}

static void put_hex(ebb__builder *b, const ebb__object *o) {
    static const char hex[] = "0123456789abcdef";
    put(b, "\"");
    for (uint32_t i = 0; i < o->n && b->text != NULL; i++) {
        uint8_t byte = ebb__object_bytes(o)[i];
        const char two[] = {hex[byte >> 4], hex[byte & 15]};
        ebb__builder_bytes(b, two, sizeof two);
    }
    put(b, "\"");
}

static void put_name(ebb__builder *b, const char *name) {
    put_string(b, (const uint8_t *)name, strlen(name));
}

/* ---- objects ---- */

static void put_value(ebb__builder *b, uint32_t type, ebb__value x);

static void put_fields(ebb__builder *b, const ebb__shape *s, const ebb__object *o) {
    put(b, s->kind == EBB__TY_TUPLE ? "[" : "{");
    for (uint32_t i = 0; i < s->n && b->text != NULL; i++) {
        if (i > 0) put(b, ",");
        if (s->kind != EBB__TY_TUPLE) {
            put_name(b, s->names[i]);
            put(b, ":");
        }
        put_value(b, s->of[i], o->slots[s->at[i]]);
    }
    put(b, s->kind == EBB__TY_TUPLE ? "]" : "}");
}

static void put_list(ebb__builder *b, const ebb__shape *s, ebb__object *o) {
    put(b, "[");
    for (uint32_t i = 0; i < ebb__array_len(o) && b->text != NULL; i++) {
        if (i > 0) put(b, ",");
        put_value(b, s->of[0], *ebb__array_at(o, i));
    }
    put(b, "]");
}

static void put_map(ebb__builder *b, const ebb__shape *s, ebb__object *o) {
    bool named = b->run->shapes[s->of[0]].kind == EBB__TY_STRING;
    put(b, named ? "{" : "[");
    for (uint32_t i = 0; i < ebb__dict_len(b->run, o) && b->text != NULL; i++) {
        if (i > 0) put(b, ",");
        if (!named) put(b, "[");
        put_value(b, s->of[0], *ebb__dict_key(b->run, o, i));
        put(b, named ? ":" : ",");
        put_value(b, s->of[1], *ebb__dict_value(b->run, o, i));
        if (!named) put(b, "]");
    }
    put(b, named ? "}" : "]");
}

static void put_object(ebb__builder *b, uint32_t type, ebb__object *o) {
    const ebb__shape *s = &b->run->shapes[type];
    switch (s->kind) {
    case EBB__TY_STRING: put_string(b, ebb__object_bytes(o), o->n); break;
    case EBB__TY_BYTES: put_hex(b, o); break;
    case EBB__TY_LIST: put_list(b, s, o); break;
    case EBB__TY_MAP: put_map(b, s, o); break;
    case EBB__TY_RECORD:
    case EBB__TY_TUPLE:
    case EBB__TY_STATE: put_fields(b, s, o); break;
    default: put_value(b, type, o->slots[0]); /* a boxed word */
    }
}

static void put_member(ebb__builder *b, ebb__object *o) {
    const ebb__shape *s = &b->run->shapes[o->type];
    bool bare = s->kind == EBB__TY_RECORD && s->n == 0;
    if (!bare) put(b, "{");
    put_name(b, s->name);
    if (bare) return;
    put(b, ":");
    put_object(b, o->type, o);
    put(b, "}");
}

static void put_reference(ebb__builder *b, uint32_t type, ebb__object *o) {
    if (b->depth == 0) {
        (void)ebb__run_trap(b->run, EBB__TRAP_DEPTH, (ebb__span){0});
        b->text = NULL;
        return;
    }
    b->depth--;
    if (o == NULL) put(b, "null"); /* a field that is not set yet */
    else if (b->run->shapes[type].kind == EBB__TY_UNION) put_member(b, o);
    else put_object(b, type, o);
    b->depth++;
}

static void put_value(ebb__builder *b, uint32_t type, ebb__value x) {
    const ebb__shape *s = &b->run->shapes[type];
    if (s->is_ref) {
        put_reference(b, type, x.ref);
        return;
    }
    switch (s->kind) {
    case EBB__TY_BOOL: put(b, x.word ? "true" : "false"); break;
    case EBB__TY_I64:
    case EBB__TY_DURATION: put_u64(b, (int64_t)x.word < 0 ? 0 - x.word : x.word, (int64_t)x.word < 0); break;
    case EBB__TY_U64: put_u64(b, x.word, false); break;
    case EBB__TY_MACHINE:
    case EBB__TY_ROLE: put_id(b, x.word); break;
    default: put(b, "null"); /* (), and what only machines can use */
    }
}

ebb__object *ebb__object_json(ebb__run *run, uint32_t type, ebb__object *o) {
    ebb__builder b = ebb__builder_begin(run);
    b.depth = EBB__JSON_VALUE_DEPTH;
    put_object(&b, type, o);
    return ebb__builder_end(&b);
}
