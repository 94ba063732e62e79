/* Trace contexts of W3C: their text, the spans that are made of them, and the regions that have one.
 *
 * A region points to its context, which its layer owns, and regions below point to the same: nothing outlives its region.
 * A span is a mix of the one before and of what no other span of it has, so no random numbers are needed: a replay of a
 * durable instance gives the same spans. */
#include "kernel/record.h"
#include "kernel/rt.h"

#include <string.h>

/* ---- text ---------------------------------------------------------------------------------------------- */

enum { FLAGS_KNOWN = 3, AT_TRACE = 3, AT_SPAN = 36, AT_FLAGS = 53 };

/* Only digits of lower case: W3C refuses others. -1: none. */
static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False: not all are digits. */
static bool read_bytes(const char *at, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int high = digit_of(at[2 * i]), low = digit_of(at[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool is_zero(const uint8_t *at, size_t n) {
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) any |= at[i];
    return any == 0;
}

ebb_status ebb_traceparent_parse(const char *text, size_t n, ebb_traceparent *out) {
    ebb_traceparent t;
    uint8_t version;
    if (text == NULL || n < EBB_TRACEPARENT_TEXT) return EBB_ERR_FORMAT;
    if (!read_bytes(text, &version, 1) || version == 0xff) return EBB_ERR_FORMAT;
    if (n > EBB_TRACEPARENT_TEXT && (version == 0 || text[EBB_TRACEPARENT_TEXT] != '-'))
        return EBB_ERR_FORMAT;
    if (text[AT_TRACE - 1] != '-' || text[AT_SPAN - 1] != '-' || text[AT_FLAGS - 1] != '-')
        return EBB_ERR_FORMAT;
    if (!read_bytes(text + AT_TRACE, t.trace, sizeof t.trace) ||
        !read_bytes(text + AT_SPAN, t.span, sizeof t.span) || !read_bytes(text + AT_FLAGS, &t.flags, 1))
        return EBB_ERR_FORMAT;
    if (is_zero(t.trace, sizeof t.trace) || is_zero(t.span, sizeof t.span)) return EBB_ERR_FORMAT;
    t.flags &= FLAGS_KNOWN;
    *out = t;
    return EBB_OK;
}

static char *put_bytes(char *to, const uint8_t *at, size_t n, char after) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *to++ = digits[at[i] >> 4];
        *to++ = digits[at[i] & 15];
    }
    *to++ = after;
    return to;
}

void ebb_traceparent_text(const ebb_traceparent *t, char out[EBB_TRACEPARENT_TEXT + 1]) {
    static const uint8_t version = 0;
    out = put_bytes(out, &version, 1, '-');
    out = put_bytes(out, t->trace, sizeof t->trace, '-');
    out = put_bytes(out, t->span, sizeof t->span, '-');
    (void)put_bytes(out, &t->flags, 1, 0);
}

/* ---- spans --------------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Big-endian, so that a span is the same on every machine. */
static uint64_t word_of(const uint8_t at[8]) {
    uint64_t word = 0;
    for (size_t i = 0; i < 8; i++) word = word << 8 | at[i];
    return word;
}

ebb_traceparent ebb__trace_child(const ebb_traceparent *of, uint64_t number) {
    ebb_traceparent t = *of;
    uint64_t span = mixed(mixed(word_of(of->span) ^ mixed(word_of(of->trace + 8))) + number);
    if (span == 0) span = 1;
    for (size_t i = 0; i < 8; i++) t.span[i] = (uint8_t)(span >> (56 - 8 * i));
    return t;
}

/* A request that a client repeats has the same span again: the time and the runtime tell its calls apart. */
ebb_traceparent ebb__trace_next(const ebb_runtime *rt, ebb__trace_context *c) {
    return ebb__trace_child(&c->at, mixed(rt->now ^ (uint64_t)rt->id << 56) + ++c->given);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

void ebb__region_set_trace(ebb_runtime *rt, ebb_region region, ebb__trace_context *c) {
    ebb__region *r;
    if (ebb__find_region(rt, region, &r) != EBB_OK) return;
    assert(r->tasks.n == 0 && r->children.n == 0);
    r->flags |= R_TRACED;
    ebb__cold_of(r)->trace = c;
}

ebb__trace_context *ebb__region_trace(const ebb__region *r) {
    return r->flags & R_TRACED ? ebb__cold_of(r)->trace : NULL;
}

ebb__trace_context *ebb__trace_of(const ebb_cx *cx) {
    const ebb__task *t = ebb__task_of(cx);
    return ebb__region_trace(ebb__region_at(t->rt, t->region));
}

bool ebb_cx_traceparent(const ebb_cx *cx, ebb_traceparent *out) {
    const ebb__trace_context *c = ebb__trace_of(cx);
    if (c != NULL) *out = c->at;
    return c != NULL;
}

void ebb__note_trace_slow(ebb_runtime *rt, bool given, ebb__trace_party party, uint64_t task,
                          ebb_region region, uint64_t other, const ebb_traceparent *t) {
    char text[EBB_TRACEPARENT_TEXT + 1];
    ebb_traceparent_text(t, text);
    ebb__note_event(rt, given ? EBB_EV_TRACE_GIVEN : EBB_EV_TRACE_TAKEN, .task = task, .region = region.id,
                    .value = party, .other = other, .text = text);
}
