/* lang/literal.c - what literals stand for. */
#include "lang/literal.h"

#include <string.h>

/* ---- numbers ---- */

static unsigned digit_of(char b) {
    if (b >= '0' && b <= '9') return (unsigned)(b - '0');
    if (b >= 'a' && b <= 'f') return (unsigned)(b - 'a') + 10;
    if (b >= 'A' && b <= 'F') return (unsigned)(b - 'A') + 10;
    return 99;
}

static bool is_text(const char *s, uint32_t n, const char *text) {
    return n == strlen(text) && memcmp(s, text, n) == 0;
}

static void apply_unit(ebb__number *x, const char *s, uint32_t n) {
    static const struct {
        char text[4];
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (!is_text(s, n, units[i].text)) continue;
        x->is_duration = true;
        if (x->value > (uint64_t)INT64_MAX / units[i].ms) x->error = EBB__NUMBER_RANGE;
        else x->value *= units[i].ms;
        return;
    }
    x->error = EBB__NUMBER_FORM;
}

static void apply_suffix(ebb__number *x, const char *s, uint32_t n, uint32_t base) {
    if (n == 0) return;
    if (is_text(s, n, "i64")) x->is_i64 = true;
    else if (is_text(s, n, "u64")) x->is_u64 = true;
    else if (base == 10) apply_unit(x, s, n);
    else x->error = EBB__NUMBER_FORM;
}

ebb__number ebb__number_read(const char *s, uint32_t n) {
    ebb__number x = {0};
    uint32_t at = 0, base = 10, digits = 0;
    if (n > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'b')) {
        base = s[1] == 'x' ? 16 : 2;
        at = 2;
    }
    bool range = false;
    for (; at < n; at++) {
        if (s[at] == '_') continue;
        unsigned digit = digit_of(s[at]);
        if (digit >= base) break;
        digits++;
        if (x.value > (UINT64_MAX - digit) / base) range = true;
        else x.value = x.value * base + digit;
    }
    if (digits == 0) x.error = EBB__NUMBER_FORM;
    else apply_suffix(&x, s + at, n - at, base);
    if (range && x.error == EBB__NUMBER_OK) x.error = EBB__NUMBER_RANGE;
    return x;
}

bool ebb__token_number(const ebb__source *s, const ebb__token *t, uint64_t *out, bool *is_u64, bool *is_i64) {
    ebb__number x = ebb__number_read(s->text + t->at, t->n);
    *out = x.value;
    *is_u64 = x.is_u64;
    *is_i64 = x.is_i64;
    return x.error == EBB__NUMBER_OK;
}

/* ---- UTF-8 and escapes ---- */

uint32_t ebb__utf8_length(const char *s, uint32_t n) {
    const uint8_t *p = (const uint8_t *)s;
    if (n == 0) return 0;
    if (p[0] < 0x80) return 1;
    uint32_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < length) return 0;
    for (uint32_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
    }
    bool too_long = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool no_scalar = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return too_long || no_scalar ? 0 : length;
}

/* "u{1F30A}" without the backslash: its length, 0 if it is not well formed. */
static uint32_t unicode_escape(const char *s, uint32_t n, uint32_t *scalar) {
    uint32_t at = 2;
    *scalar = 0;
    if (n < 2 || s[1] != '{') return 0;
    for (; at < n && digit_of(s[at]) < 16 && at < 9; at++) *scalar = *scalar * 16 + digit_of(s[at]);
    bool valid =
        at > 2 && at < n && s[at] == '}' && *scalar <= 0x10ffff && (*scalar < 0xd800 || *scalar > 0xdfff);
    return valid ? at + 1 : 0;
}

static bool is_simple(char b) {
    static const char simple[] = "ntr0\\\"{}";
    for (const char *at = simple; *at != 0; at++) {
        if (*at == b) return true;
    }
    return false;
}

const char *ebb__escape_check(const char *s, uint32_t n, bool bytes, uint32_t *length) {
    uint32_t scalar;
    if (s[0] != '\\') {
        *length = ebb__utf8_length(s, n);
        if (*length > 0) return NULL;
        *length = 1;
        return "this byte is not UTF-8";
    }
    *length = n < 2 ? n : 2;
    if (n < 2) return "an escape needs a letter";
    if (is_simple(s[1])) return NULL;
    if (s[1] == 'x') {
        bool hex = n >= 4 && digit_of(s[2]) < 16 && digit_of(s[3]) < 16;
        if (!hex) return "\\x needs two hexadecimal digits";
        *length = 4;
        return bytes || digit_of(s[2]) < 8 ? NULL : "\\x is below 80 in a string; use \\u{..}";
    }
    if (s[1] == 'u') {
        uint32_t u = unicode_escape(s + 1, n - 1, &scalar);
        if (u == 0) return "\\u needs a Unicode scalar value, as in \\u{1F30A}";
        *length = u + 1;
        return NULL;
    }
    return "no such escape; there are \\n \\t \\r \\0 \\\\ \\\" \\xHH \\u{H...}";
}

static uint32_t put_utf8(char *out, uint32_t x) {
    if (x < 0x80) {
        out[0] = (char)x;
        return 1;
    }
    uint32_t n = x < 0x800 ? 2 : x < 0x10000 ? 3 : 4;
    for (uint32_t i = n; i-- > 1; x >>= 6) out[i] = (char)(0x80 | (x & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xff) | x);
    return n;
}

/* One character or escape at `s`; gives how many bytes were read. What is not valid was reported, and is copied. */
static uint32_t unescape(const char *s, uint32_t n, char *out, uint32_t *to) {
    uint32_t scalar;
    if (s[0] != '\\' || n < 2) {
        out[(*to)++] = s[0];
        return 1;
    }
    if (s[1] == 'x' && n >= 4 && digit_of(s[2]) < 16 && digit_of(s[3]) < 16) {
        out[(*to)++] = (char)(digit_of(s[2]) * 16 + digit_of(s[3]));
        return 4;
    }
    uint32_t u = s[1] == 'u' ? unicode_escape(s + 1, n - 1, &scalar) : 0;
    if (u > 0) {
        *to += put_utf8(out + *to, scalar);
        return u + 1;
    }
    char b = s[1];
    out[(*to)++] = b == 'n' ? '\n' : b == 't' ? '\t' : b == 'r' ? '\r' : b == '0' ? '\0' : b;
    return 2;
}

const char *ebb__token_bytes(ebb_lang *c, const ebb__source *s, const ebb__token *t, uint32_t *n) {
    const char *from = s->text + t->at, *end = from + t->n;
    if (t->kind != EBB__T_FSTRING_MID && t->kind != EBB__T_FSTRING_END && t->kind != EBB__T_STRING) from++;
    from++;
    if (end > from && (end[-1] == '"' || end[-1] == '{')) end--;
    char *out = ebb__lang_array(c, (size_t)(end > from ? end - from : 0) + 1, 1);
    *n = 0;
    if (out == NULL) return "";
    while (from < end) from += unescape(from, (uint32_t)(end - from), out, n);
    return out;
}
