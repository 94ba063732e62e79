/* Header fields, and the small grammar of RFC 9110 that they are made of. */
#include "http/fields.h"

#include <string.h>

enum { FIRST_ROOM = 16 };

/* ---- characters ---------------------------------------------------------------------------------------- */

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* A bit for each character below 0x80: letters, digits and !#$%&'*+-.^_`|~ */
static bool is_token_char(char c) {
    static const uint32_t set[4] = {0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};
    unsigned char u = (unsigned char)c;
    return u < 0x80 && (set[u / 32] >> u % 32 & 1);
}

/* Bytes past ASCII are allowed: RFC 9110 calls them opaque. */
static bool is_text(char c) {
    unsigned char u = (unsigned char)c;
    return (u >= ' ' && u != 0x7f) || u == '\t';
}

bool ebb__is_token(const char *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!is_token_char(at[i])) return false;
    }
    return n > 0;
}

/* Eight characters at once: none is below ' ' or 0x7f. */
static bool is_text_word(uint64_t w) {
    const uint64_t each = UINT64_C(0x0101010101010101), high = each * 0x80;
    uint64_t is_control = (w - each * ' ') & ~w, del = w ^ each * 0x7f;
    return ((is_control | ((del - each) & ~del)) & high) == 0;
}

/* The words have false alarms only: a character after a control character. */
bool ebb__is_field_value(const char *at, size_t n) {
    size_t i = 0;
    if (n > 0 && (is_blank(at[0]) || is_blank(at[n - 1]))) return false;
    for (uint64_t w; n - i >= sizeof w; i += sizeof w) {
        memcpy(&w, at + i, sizeof w);
        if (!is_text_word(w)) break;
    }
    for (; i < n; i++) {
        if (!is_text(at[i])) return false;
    }
    return true;
}

bool ebb__same_name(const char *a, size_t a_n, const char *b, size_t b_n) {
    if (a_n != b_n) return false;
    for (size_t i = 0; i < a_n; i++) {
        if (lower(a[i]) != lower(b[i])) return false;
    }
    return true;
}

bool ebb__parse_u64(const char *at, size_t n, uint64_t *out) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(at[i])) return false;
        uint64_t digit = (uint64_t)(at[i] - '0');
        if (x > (UINT64_MAX - digit) / 10) return false;
        x = 10 * x + digit;
    }
    *out = x;
    return n > 0;
}

/* ---- names and lists ----------------------------------------------------------------------------------- */

/* Fields of one connection, and fields whose value the layer sets. */
static const char *const OURS[] = {
    "connection", "content-length",    "date", "host", "keep-alive", "proxy-connection", "te", "trailer",
    "upgrade",    "transfer-encoding",
};

bool ebb__field_is_ours(const char *name, size_t n) {
    if (n > 0 && name[0] == ':') return true;
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++) {
        if (ebb__same_name(name, n, OURS[i], strlen(OURS[i]))) return true;
    }
    return false;
}

bool ebb__has_token(const char *list, const char *token) {
    for (size_t n; *list != 0; list += n + (list[n] == ',')) {
        while (is_blank(*list)) list++;
        n = strcspn(list, ",");
        size_t end = n;
        while (end > 0 && is_blank(list[end - 1])) end--;
        if (end > 0 && ebb__same_name(list, end, token, strlen(token))) return true;
    }
    return false;
}

/* ---- the list ------------------------------------------------------------------------------------------ */

/* The old array stays in the arena. Each array is twice the last, so at most half of the space is lost. */
static bool has_room(ebb__fields *f, ebb__arena *arena) {
    if (f->n < f->room) return true;
    uint32_t room = f->room == 0 ? FIRST_ROOM : 2 * f->room;
    ebb__field *at = ebb__arena_alloc(arena, room * sizeof *at);
    if (at == NULL) return false;
    if (f->n > 0) memcpy(at, f->at, f->n * sizeof *at);
    f->at = at;
    f->room = room;
    return true;
}

static bool is_countable(const ebb__fields *f, size_t name_n, size_t value_n) {
    size_t left = UINT32_MAX - f->bytes;
    return left >= EBB__FIELD_EXTRA && name_n <= left - EBB__FIELD_EXTRA &&
           value_n <= left - EBB__FIELD_EXTRA - name_n;
}

/* Eight characters at once: 0x80 is set in `upper` for each byte from 'A' to 'Z', and 0x20 is what lower case adds. */
static uint64_t lower_word(uint64_t w) {
    const uint64_t each = UINT64_C(0x0101010101010101), ascii = w & each * 0x7f;
    uint64_t from_a = ascii + each * (0x80 - 'A'), past_z = ascii + each * (0x7f - 'Z');
    uint64_t upper = (from_a ^ past_z) & ~w & each * 0x80;
    return w | upper >> 2;
}

static void copy_lowered(char *to, const char *from, size_t n) {
    size_t i = 0;
    for (uint64_t w; n - i >= sizeof w; i += sizeof w) {
        memcpy(&w, from + i, sizeof w);
        w = lower_word(w);
        memcpy(to + i, &w, sizeof w);
    }
    for (; i < n; i++) to[i] = lower(from[i]);
    to[n] = 0;
}

static void copy(char *to, const char *from, size_t n) {
    if (n > 0) memcpy(to, from, n);
    to[n] = 0;
}

static void append(ebb__fields *f, const char *name, size_t name_n, const char *value, size_t value_n) {
    f->at[f->n++] = (ebb__field){name, value, (uint32_t)name_n, (uint32_t)value_n};
    f->bytes += (uint32_t)(name_n + value_n) + EBB__FIELD_EXTRA;
    f->lengths |= 1u << name_n % 32;
}

ebb_status ebb__fields_add(ebb__fields *f, ebb__arena *arena, const char *name, size_t name_n,
                           const char *value, size_t value_n) {
    if (!is_countable(f, name_n, value_n) || !has_room(f, arena)) return EBB_ERR_NOMEM;
    char *text = ebb__arena_alloc(arena, name_n + value_n + 2);
    if (text == NULL) return EBB_ERR_NOMEM;
    copy_lowered(text, name, name_n);
    copy(text + name_n + 1, value, value_n);
    append(f, text, name_n, text + name_n + 1, value_n);
    return EBB_OK;
}

ebb_status ebb__fields_add_constant(ebb__fields *f, ebb__arena *arena, const char *name, size_t name_n,
                                    const char *value, size_t value_n) {
    if (!is_countable(f, name_n, value_n) || !has_room(f, arena)) return EBB_ERR_NOMEM;
    append(f, name, name_n, value, value_n);
    return EBB_OK;
}

const ebb__field *ebb__fields_search(const ebb__fields *f, const char *name, size_t name_n) {
    for (uint32_t i = 0; i < f->n; i++) {
        if (ebb__same_name(f->at[i].name, f->at[i].name_n, name, name_n)) return &f->at[i];
    }
    return NULL;
}

void ebb__fields_remove(ebb__fields *f, const char *name, size_t name_n) {
    uint32_t kept = 0;
    if (!ebb__fields_may_have(f, name_n)) return;
    for (uint32_t i = 0; i < f->n; i++) {
        ebb__field x = f->at[i];
        if (!ebb__same_name(x.name, x.name_n, name, name_n)) f->at[kept++] = x;
        else f->bytes -= x.name_n + x.value_n + EBB__FIELD_EXTRA;
    }
    f->n = kept;
}

static bool is_named(const ebb__field *f, const char *name, size_t name_n) {
    return f->name_n == name_n && memcmp(f->name, name, name_n) == 0;
}

/* Removes all fields of the name but the first. */
static void drop_rest(ebb__fields *f, const char *name, size_t name_n) {
    uint32_t kept = 0, seen = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        if (!is_named(&f->at[i], name, name_n) || seen++ == 0) f->at[kept++] = f->at[i];
    }
    f->n = kept;
}

/* The counters of the list stay: so many fields were received. */
ebb_status ebb__fields_join(ebb__fields *f, ebb__arena *arena, const char *name, size_t name_n,
                            const char *between) {
    size_t all = 0, gap = strlen(between), many = 0;
    ebb__field *first = NULL;
    if (!ebb__fields_may_have(f, name_n)) return EBB_OK;
    for (uint32_t i = f->n; i-- > 0;) {
        if (!is_named(&f->at[i], name, name_n)) continue;
        first = &f->at[i];
        all += first->value_n + (many++ > 0 ? gap : 0);
    }
    if (many < 2) return EBB_OK;
    char *text = ebb__arena_alloc(arena, all + 1), *at = text;
    if (text == NULL) return EBB_ERR_NOMEM;
    for (ebb__field *x = first; x < f->at + f->n; x++) {
        if (!is_named(x, name, name_n)) continue;
        if (x != first) at = (char *)memcpy(at, between, gap) + gap;
        copy(at, x->value, x->value_n);
        at += x->value_n;
    }
    first->value = text;
    first->value_n = (uint32_t)all;
    drop_rest(f, name, name_n);
    return EBB_OK;
}
