/* Values of the reference: made, compared, printed, and carried over to objects and back. */
#include "tests/lang/reference/reference.h"

/* ---- memory: of one call from outside ---- */

typedef struct rv_chunk {
    struct rv_chunk *next;
    size_t used;
    uint64_t bytes[8192];
} rv_chunk;

void *rv_alloc(reference *r, size_t n) {
    rv_chunk *c = r->memory;
    n = (n + 7) / 8;
    if (n > sizeof c->bytes / 8 / 2 || c == NULL || c->used + n > sizeof c->bytes / 8) {
        c = calloc(1, sizeof *c + n * 8);
        assert_non_null(c);
        c->next = r->memory;
        r->memory = c;
    }
    void *p = c->bytes + c->used;
    c->used += n;
    return p;
}

void rv_free_all(reference *r) {
    while (r->memory != NULL) {
        rv_chunk *c = r->memory;
        r->memory = c->next;
        free(c);
    }
}

/* ---- making ---- */

static rv *make(reference *r, uint32_t type, uint32_t n) {
    rv *x = rv_alloc(r, sizeof *x);
    *x = (rv){.type = type, .n = n};
    return x;
}

const rv *rv_word(reference *r, uint32_t type, uint64_t word) {
    rv *x = make(r, type, 0);
    x->word = word;
    return x;
}

const rv *rv_bytes(reference *r, uint32_t type, const void *bytes, size_t n) {
    rv *x = make(r, type, (uint32_t)n);
    uint8_t *copy = rv_alloc(r, n + 1);
    if (n > 0) memcpy(copy, bytes, n);
    x->bytes = copy;
    return x;
}

const rv *rv_of(reference *r, uint32_t type, const rv *const *of, uint32_t n) {
    rv *x = make(r, type, n);
    const rv **copy = rv_alloc(r, (n + 1) * sizeof *copy);
    if (n > 0) memcpy(copy, of, n * sizeof *copy);
    x->of = copy;
    return x;
}

const rv *rv_with(reference *r, const rv *x, uint32_t i, const rv *part) {
    const rv *y = rv_of(r, x->type, x->of, x->n);
    ((const rv **)(uintptr_t)y->of)[i] = part;
    return y;
}

/* A copy with `more` parts at `at`, or without `less`. */
static const rv *splice(reference *r, const rv *x, uint32_t at, uint32_t less, const rv *const *more,
                        uint32_t n) {
    const rv **of = rv_alloc(r, (x->n + n + 1) * sizeof *of);
    for (uint32_t i = 0; i < at; i++) of[i] = x->of[i];
    for (uint32_t i = 0; i < n; i++) of[at + i] = more[i];
    for (uint32_t i = at + less; i < x->n; i++) of[i + n - less] = x->of[i];
    return rv_of(r, x->type, of, x->n + n - less);
}

const rv *rv_push(reference *r, const rv *list, const rv *x) {
    return splice(r, list, list->n, 0, &x, 1);
}

bool rv_find(reference *r, const rv *map, const rv *key, uint32_t *at) {
    for (*at = 0; *at < map->n; *at += 2) {
        int order = rv_order(r, map->of[*at], key);
        if (order >= 0) return order == 0;
    }
    return false;
}

const rv *rv_put(reference *r, const rv *map, const rv *key, const rv *value) {
    uint32_t at;
    const rv *pair[2] = {key, value};
    if (rv_find(r, map, key, &at)) return rv_with(r, map, at + 1, value);
    return splice(r, map, at, 0, pair, 2);
}

const rv *rv_remove(reference *r, const rv *map, uint32_t at) {
    return splice(r, map, at, 2, NULL, 0);
}

/* ---- comparing ---- */

static int order_of(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

int rv_order(reference *r, const rv *a, const rv *b) {
    if (a->type != b->type) return order_of(a->type, b->type);
    switch (r->shapes[a->type].kind) {
    case EBB__TY_I64:
    case EBB__TY_DURATION:
        return (int64_t)a->word < (int64_t)b->word ? -1 : (int64_t)a->word > (int64_t)b->word;
    case EBB__TY_STRING:
    case EBB__TY_BYTES:
        for (uint32_t i = 0; i < a->n && i < b->n; i++) {
            if (a->bytes[i] != b->bytes[i]) return order_of(a->bytes[i], b->bytes[i]);
        }
        return order_of(a->n, b->n);
    case EBB__TY_LIST:
    case EBB__TY_MAP:
    case EBB__TY_TUPLE:
    case EBB__TY_RECORD:
    case EBB__TY_STATE:
        for (uint32_t i = 0; i < a->n && i < b->n; i++) {
            int order = rv_order(r, a->of[i], b->of[i]);
            if (order != 0) return order;
        }
        return order_of(a->n, b->n);
    default: return order_of(a->word, b->word);
    }
}

/* ---- printing ---- */

static void put(lang_text *t, const char *s) {
    lang_write(t, s, strlen(s));
}

static void put_quoted(lang_text *t, const rv *x, bool bytes) {
    put(t, bytes ? "b\"" : "\"");
    for (uint32_t i = 0; i < x->n; i++) {
        uint8_t c = x->bytes[i];
        char s[8];
        if (c == '\n') put(t, "\\n");
        else if (c == '\t') put(t, "\\t");
        else if (c == '\r') put(t, "\\r");
        else if (c == 0) put(t, "\\0");
        else if (c == '"' || c == '\\') snprintf(s, sizeof s, "\\%c", c), put(t, s);
        else if (c < ' ' || c == 127 || (bytes && c > 127)) snprintf(s, sizeof s, "\\x%02x", c), put(t, s);
        else lang_write(t, (const char *)&c, 1);
    }
    put(t, "\"");
}

static void put_number(lang_text *t, const char *format, uint64_t x) {
    char s[64];
    snprintf(s, sizeof s, format, x);
    put(t, s);
}

static void put_duration(lang_text *t, int64_t ms) {
    if (ms != 0 && ms % 3600000 == 0) put_number(t, "%lldh", (uint64_t)(ms / 3600000));
    else if (ms != 0 && ms % 60000 == 0) put_number(t, "%lldmin", (uint64_t)(ms / 60000));
    else if (ms != 0 && ms % 1000 == 0) put_number(t, "%llds", (uint64_t)(ms / 1000));
    else put_number(t, "%lldms", (uint64_t)ms);
}

static void put_text(reference *r, lang_text *t, const rv *x, bool inside);

static void put_parts(reference *r, lang_text *t, const rv *x) {
    const ebb__shape *s = &r->shapes[x->type];
    for (uint32_t i = 0; i < x->n; i++) {
        bool value = s->kind == EBB__TY_MAP && i % 2 == 1;
        if (i > 0) put(t, value ? ": " : ", ");
        if (s->names != NULL) put(t, s->names[i]), put(t, ": ");
        put_text(r, t, x->of[i], true);
    }
}

static void put_text(reference *r, lang_text *t, const rv *x, bool inside) {
    const ebb__shape *s = &r->shapes[x->type];
    switch (s->kind) {
    case EBB__TY_UNIT: put(t, "()"); break;
    case EBB__TY_BOOL: put(t, x->word ? "true" : "false"); break;
    case EBB__TY_I64: put_number(t, "%lld", x->word); break;
    case EBB__TY_DURATION: put_duration(t, (int64_t)x->word); break;
    case EBB__TY_STRING:
        if (inside) put_quoted(t, x, false);
        else lang_write(t, (const char *)x->bytes, x->n);
        break;
    case EBB__TY_BYTES: put_quoted(t, x, true); break;
    case EBB__TY_LIST: put(t, "["), put_parts(r, t, x), put(t, "]"); break;
    case EBB__TY_MAP: put(t, x->n == 0 ? "[:" : "["), put_parts(r, t, x), put(t, "]"); break;
    case EBB__TY_TUPLE: put(t, "("), put_parts(r, t, x), put(t, ")"); break;
    case EBB__TY_RECORD:
    case EBB__TY_STATE:
        put(t, s->name);
        if (x->n > 0) put(t, " { "), put_parts(r, t, x), put(t, " }");
        break;
    case EBB__TY_MACHINE:
    case EBB__TY_ROLE:
        lang_write(t, s->name + strlen("Machine<"), strlen(s->name) - strlen("Machine<>"));
        put_number(t, "#%llu", x->word >> 32 & 0xffffff);
        break;
    default: put_number(t, "%llu", x->word);
    }
}

const rv *rv_text(reference *r, const rv *x) {
    lang_text t = lang_empty();
    put_text(r, &t, x, false);
    const rv *text = rv_bytes(r, EBB__TY_STRING, t.s, t.n);
    free(t.s);
    return text;
}

/* ---- from objects ---- */

static const rv *from_list(reference *r, const ebb__shape *s, ebb__object *o) {
    uint32_t n = ebb__array_len(o);
    const rv **of = rv_alloc(r, (n + 1) * sizeof *of);
    for (uint32_t i = 0; i < n; i++) of[i] = rv_from(r, s->of[0], *ebb__array_at(o, i));
    return rv_of(r, o->type, of, n);
}

static const rv *from_map(reference *r, const ebb__shape *s, ebb__object *o) {
    uint32_t n = ebb__dict_len(r->run, o);
    const rv **of = rv_alloc(r, (2 * n + 1) * sizeof *of);
    for (uint32_t i = 0; i < n; i++) {
        of[2 * i] = rv_from(r, s->of[0], *ebb__dict_key(r->run, o, i));
        of[2 * i + 1] = rv_from(r, s->of[1], *ebb__dict_value(r->run, o, i));
    }
    return rv_of(r, o->type, of, 2 * n);
}

const rv *rv_from(reference *r, uint32_t type, ebb__value x) {
    if (!r->shapes[type].is_ref) return rv_word(r, type, x.word);
    ebb__object *o = x.ref;
    const ebb__shape *s = &r->shapes[o->type];
    if (!s->is_ref) return rv_word(r, o->type, o->n == 0 ? 0 : o->slots[0].word);
    if (s->kind == EBB__TY_STRING || s->kind == EBB__TY_BYTES)
        return rv_bytes(r, o->type, ebb__object_bytes(o), o->n);
    if (s->kind == EBB__TY_LIST) return from_list(r, s, o);
    if (s->kind == EBB__TY_MAP) return from_map(r, s, o);
    const rv **of = rv_alloc(r, (s->n + 1) * sizeof *of);
    for (uint32_t i = 0; i < s->n; i++) of[i] = rv_from(r, s->of[i], o->slots[s->at[i]]);
    return rv_of(r, o->type, of, s->n);
}

/* ---- to objects ---- */

static ebb__object *to_list(reference *r, const ebb__shape *s, const rv *x) {
    ebb__object *o = ebb__array_new(r->run, x->type, x->n);
    for (uint32_t i = 0; o != NULL && i < x->n; i++) {
        if (!rv_to(r, s->of[0], x->of[i], ebb__array_at(o, i))) return NULL;
    }
    return o;
}

static ebb__object *to_map(reference *r, const ebb__shape *s, const rv *x) {
    ebb__object *o = ebb__dict_new(r->run, x->type, 0);
    for (uint32_t i = 0; o != NULL && i < x->n; i += 2) {
        ebb__value key, value;
        if (!rv_to(r, s->of[0], x->of[i], &key) || !rv_to(r, s->of[1], x->of[i + 1], &value)) return NULL;
        o = ebb__dict_set(r->run, o, key, value);
    }
    return o;
}

static ebb__object *to_object(reference *r, const rv *x) {
    const ebb__shape *s = &r->shapes[x->type];
    if (s->constant != NULL) return s->constant;
    if (!s->is_ref) return ebb__object_box(r->run, x->type, x->word);
    if (s->kind == EBB__TY_STRING || s->kind == EBB__TY_BYTES)
        return ebb__bytes_new(r->run, x->type, x->bytes, x->n);
    if (s->kind == EBB__TY_LIST) return to_list(r, s, x);
    if (s->kind == EBB__TY_MAP) return to_map(r, s, x);
    ebb__object *o = ebb__object_make(r->run, x->type);
    for (uint32_t i = 0; o != NULL && i < s->n; i++) {
        if (!rv_to(r, s->of[i], x->of[i], &o->slots[s->at[i]])) return NULL;
    }
    return o;
}

bool rv_to(reference *r, uint32_t type, const rv *x, ebb__value *out) {
    if (!r->shapes[type].is_ref) {
        out->word = x->word;
        return true;
    }
    out->ref = to_object(r, x);
    return out->ref != NULL;
}
