/* lang/value_text.c - values as text. The program decides how a number looks, not the host. */
#include "lang/host.h"

#include <string.h>

/* ---- the builder: a string object that grows ---- */

enum { FIRST_ROOM = 64 };

ebb__builder ebb__builder_begin(ebb__run *run) {
    ebb__builder b = {.run = run, .room = FIRST_ROOM, .depth = EBB__VALUE_DEPTH};
    b.text = ebb__bytes_new(run, EBB__TY_STRING, NULL, FIRST_ROOM);
    if (b.text != NULL) b.text->n = 0;
    return b;
}

static bool grow(ebb__builder *b, size_t n) {
    size_t room = (b->text->n + n) * 2;
    ebb__object *text = ebb__bytes_new(b->run, EBB__TY_STRING, NULL, room);
    if (text != NULL) {
        text->n = b->text->n;
        memcpy(ebb__object_bytes(text), ebb__object_bytes(b->text), b->text->n);
        b->room = room;
    }
    b->text = text;
    return text != NULL;
}

void ebb__builder_bytes(ebb__builder *b, const void *s, size_t n) {
    if (b->text == NULL || n == 0) return;
    if (b->room - b->text->n < n && !grow(b, n)) return;
    memcpy(ebb__object_bytes(b->text) + b->text->n, s, n);
    b->text->n += (uint32_t)n;
}

ebb__object *ebb__builder_end(ebb__builder *b) {
    return b->text;
}

static void put(ebb__builder *b, const char *s) {
    ebb__builder_bytes(b, s, strlen(s));
}

/* ---- words ---- */

static void put_u64(ebb__builder *b, uint64_t x) {
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + x % 10);
    while ((x /= 10) > 0);
    ebb__builder_bytes(b, digits + at, sizeof digits - at);
}

static void put_i64(ebb__builder *b, int64_t x) {
    if (x < 0) put(b, "-");
    put_u64(b, x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
}

/* In the largest unit that divides it. */
static void put_duration(ebb__builder *b, int64_t ms) {
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (ms == 0 ? units[i].ms != 1 : ms % units[i].ms != 0) i++;
    put_i64(b, ms / units[i].ms);
    put(b, units[i].unit);
}

/* "Light#7": the index of the machine in its runtime. */
static void put_handle(ebb__builder *b, const char *type, uint64_t id) {
    static const char before[] = "Machine<";
    size_t n = strlen(type), skip = sizeof before - 1;
    if (n > skip && memcmp(type, before, skip) == 0) ebb__builder_bytes(b, type + skip, n - skip - 1);
    else put(b, type);
    put(b, "#");
    put_u64(b, id >> 32 & 0xffffff);
}

/* ---- objects ---- */

static void put_escaped(ebb__builder *b, uint8_t byte) {
    static const char hex[] = "0123456789abcdef";
    char text[4] = {'\\', 0, 0, 0};
    size_t n = 2;
    switch (byte) {
    case '\n': text[1] = 'n'; break;
    case '\t': text[1] = 't'; break;
    case '\r': text[1] = 'r'; break;
    case 0: text[1] = '0'; break;
    case '"':
    case '\\': text[1] = (char)byte; break;
    default:
        text[1] = 'x';
        text[2] = hex[byte >> 4];
        text[3] = hex[byte & 15];
        n = 4;
    }
    ebb__builder_bytes(b, text, n);
}

static void put_quoted(ebb__builder *b, const ebb__object *o, bool bytes) {
    put(b, bytes ? "b\"" : "\"");
    for (uint32_t i = 0; i < o->n && b->text != NULL; i++) {
        uint8_t c = ebb__object_bytes(o)[i];
        bool plain = c >= ' ' && c != '"' && c != '\\' && c != 127 && (c < 127 || !bytes);
        if (plain) ebb__builder_bytes(b, &c, 1);
        else put_escaped(b, c);
    }
    put(b, "\"");
}

static void put_value(ebb__builder *b, uint32_t type, ebb__value x, bool inside);

static void put_fields(ebb__builder *b, const ebb__shape *s, const ebb__object *o) {
    put(b, s->kind == EBB__TY_TUPLE ? "(" : s->name);
    if (s->kind != EBB__TY_TUPLE && s->n > 0) put(b, " { ");
    for (uint32_t i = 0; i < s->n && b->text != NULL; i++) {
        if (i > 0) put(b, ", ");
        if (s->names != NULL) {
            put(b, s->names[i]);
            put(b, ": ");
        }
        put_value(b, s->of[i], o->slots[s->at[i]], true);
    }
    if (s->kind == EBB__TY_TUPLE) put(b, ")");
    else if (s->n > 0) put(b, " }");
}

static void put_list(ebb__builder *b, const ebb__shape *s, ebb__object *o) {
    put(b, "[");
    for (uint32_t i = 0; i < ebb__array_len(o) && b->text != NULL; i++) {
        if (i > 0) put(b, ", ");
        put_value(b, s->of[0], *ebb__array_at(o, i), true);
    }
    put(b, "]");
}

static void put_map(ebb__builder *b, const ebb__shape *s, ebb__object *o) {
    uint32_t n = ebb__dict_len(b->run, o);
    put(b, n == 0 ? "[:" : "[");
    for (uint32_t i = 0; i < n && b->text != NULL; i++) {
        if (i > 0) put(b, ", ");
        put_value(b, s->of[0], *ebb__dict_key(b->run, o, i), true);
        put(b, ": ");
        put_value(b, s->of[1], *ebb__dict_value(b->run, o, i), true);
    }
    put(b, "]");
}

static void put_object(ebb__builder *b, uint32_t type, ebb__object *o, bool inside) {
    const ebb__shape *s = &b->run->shapes[type];
    switch (s->kind) {
    case EBB__TY_STRING:
        if (inside) put_quoted(b, o, false);
        else ebb__builder_bytes(b, ebb__object_bytes(o), o->n);
        break;
    case EBB__TY_BYTES: put_quoted(b, o, true); break;
    case EBB__TY_LIST: put_list(b, s, o); break;
    case EBB__TY_MAP: put_map(b, s, o); break;
    case EBB__TY_RECORD:
    case EBB__TY_TUPLE:
    case EBB__TY_STATE: put_fields(b, s, o); break;
    default: put_value(b, type, o->slots[0], inside); /* a boxed word */
    }
}

static void put_value(ebb__builder *b, uint32_t type, ebb__value x, bool inside) {
    const ebb__shape *s = &b->run->shapes[type];
    if (s->is_ref) {
        if (b->depth == 0) {
            (void)ebb__run_trap(b->run, EBB__TRAP_DEPTH, (ebb__span){0});
            b->text = NULL;
            return;
        }
        b->depth--;
        put_object(b, s->kind == EBB__TY_UNION ? x.ref->type : type, x.ref, inside);
        b->depth++;
        return;
    }
    switch (s->kind) {
    case EBB__TY_UNIT: put(b, "()"); break;
    case EBB__TY_BOOL: put(b, x.word ? "true" : "false"); break;
    case EBB__TY_I64: put_i64(b, (int64_t)x.word); break;
    case EBB__TY_DURATION: put_duration(b, (int64_t)x.word); break;
    case EBB__TY_MACHINE:
    case EBB__TY_ROLE: put_handle(b, s->name, x.word); break;
    default: put_u64(b, x.word);
    }
}

void ebb__builder_value(ebb__builder *b, uint32_t type, ebb__value x) {
    put_value(b, type, x, false);
}

ebb__object *ebb__value_text(ebb__run *run, uint32_t type, ebb__value x) {
    if (run->shapes[type].kind == EBB__TY_STRING) return x.ref;
    ebb__builder b = ebb__builder_begin(run);
    ebb__builder_value(&b, type, x);
    return ebb__builder_end(&b);
}

ebb__object *ebb__object_text(ebb__run *run, ebb__object *o) {
    if (o->type == EBB__TY_STRING) return o;
    ebb__builder b = ebb__builder_begin(run);
    put_object(&b, o->type, o, false);
    return ebb__builder_end(&b);
}
