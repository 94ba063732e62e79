#define _POSIX_C_SOURCE 200809L
#include "workflow/audit.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

ebb_audit *ebb__audit_new(ebb_allocator a, const ebb_audit_sink *sink) {
    ebb_audit *audit = ebb__alloc(&a, sizeof *audit);
    if (audit == NULL) return NULL;
    memset(audit, 0, offsetof(ebb_audit, line));
    audit->allocator = a;
    audit->sink = *sink;
    audit->fd = -1;
    /* Fetched once: a fetch costs more than the hash of a line. */
    audit->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (audit->sha256 != NULL && pthread_mutex_init(&audit->lock, NULL) == 0) return audit;
    EVP_MD_free(audit->sha256);
    ebb__free(&a, audit, sizeof *audit);
    return NULL;
}

ebb_status ebb_audit_new(ebb_allocator a, const ebb_audit_sink *sink, ebb_audit **out) {
    if (sink == NULL || sink->append == NULL) return EBB_ERR_INVALID;
    ebb_audit *audit = ebb__audit_new(a, sink);
    if (audit == NULL) return EBB_ERR_NOMEM;
    ebb_status st = ebb__audit_start(audit, 0);
    if (st != EBB_OK) {
        ebb_audit_close(audit);
        return st;
    }
    *out = audit;
    return EBB_OK;
}

void ebb_audit_close(ebb_audit *audit) {
    if (audit == NULL) return;
    ebb__audit_file_close(audit);
    EVP_MD_free(audit->sha256);
    (void)pthread_mutex_destroy(&audit->lock);
    ebb__free(&audit->allocator, audit->unfinished, audit->unfinished_n * sizeof *audit->unfinished);
    ebb__free(&audit->allocator, audit, sizeof *audit);
}

ebb_status ebb_audit_unfinished_at(const ebb_audit *audit, size_t i, ebb_audit_unfinished *out) {
    if (i >= audit->unfinished_n) return EBB_ERR_INVALID;
    *out = audit->unfinished[i];
    return EBB_OK;
}

bool ebb__audit_hash(const char *line, size_t n, uint8_t out[EBB__AUDIT_HASH]) {
    return EVP_Digest(line, n, out, NULL, EVP_sha256(), NULL) == 1;
}

/* ---- JSON ------------------------------------------------------------------------------------------ */

/* All fields of a line fit: EBB__AUDIT_LINE is their sum. */
static void put_bytes(ebb_audit *a, const char *text, size_t n) {
    assert(a->n <= sizeof a->line && n <= sizeof a->line - a->n);
    if (n > sizeof a->line - a->n) n = sizeof a->line - a->n;
    memcpy(a->line + a->n, text, n);
    a->n += n;
}

static void put(ebb_audit *a, const char *text) {
    put_bytes(a, text, strlen(text));
}

static bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* The length in bytes of the character at `s`; 0: not UTF-8. */
static size_t utf8(const unsigned char *s) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    unsigned code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return n == 0 || code < least[n] || code > 0x10ffff || surrogate ? 0 : n;
}

/* The next piece of a text in JSON: a run of plain bytes, or one character. Returns how many bytes of `s` it covers.
 * Bytes that are not UTF-8 become a replacement character. */
static size_t piece_of(const unsigned char *s, char escape[8], const char **piece, size_t *length) {
    size_t n = 0;
    while (is_plain(s[n])) n++;
    *piece = (const char *)s;
    *length = n;
    if (n > 0) return n;
    n = utf8(s);
    *length = n;
    if (n > 1) return n;
    if (n == 0) snprintf(escape, 8, "\\ufffd");
    else if (*s == '"' || *s == '\\') snprintf(escape, 8, "\\%c", *s);
    else snprintf(escape, 8, "\\u%04x", *s);
    *piece = escape;
    *length = strlen(escape);
    return 1;
}

/* A text that is too long is cut and ends in "...". */
static void put_string(ebb_audit *a, const char *text) {
    const unsigned char *s = (const unsigned char *)(text == NULL ? "" : text);
    size_t room = EBB__AUDIT_VALUE - 5; /* the quotes and the dots */
    put(a, "\"");
    while (*s != 0) {
        char escape[8];
        const char *piece;
        size_t length, took = piece_of(s, escape, &piece, &length);
        bool cut = length > room;
        if (cut && took == length && is_plain(*s)) put_bytes(a, piece, room);
        if (cut) put(a, "...");
        if (cut) break;
        put_bytes(a, piece, length);
        room -= length;
        s += took;
    }
    put(a, "\"");
}

/* Keys are constants of this layer, and need no escapes. */
static void put_key(ebb_audit *a, const char *key) {
    assert(a->n > 0); /* the brace of its object */
    put(a, a->line[a->n - 1] == '{' ? "\"" : ",\"");
    put(a, key);
    put(a, "\":");
}

/* Readers of JSON do not agree on larger numbers. */
static void put_number(ebb_audit *a, const char *key, uint64_t x) {
    const uint64_t most = (UINT64_C(1) << 53) - 1;
    char text[24];
    put_key(a, key);
    snprintf(text, sizeof text, "%" PRIu64, x < most ? x : most);
    put(a, text);
}

static void put_text(ebb_audit *a, const char *key, const char *text) {
    put_key(a, key);
    put_string(a, text);
}

/* Milliseconds, with microseconds as decimals. */
static void put_ms(ebb_audit *a, const char *key, uint64_t ns) {
    char text[32];
    put_key(a, key);
    snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / EBB_MS, (unsigned)(ns % EBB_MS / EBB_US));
    put(a, text);
}

static void put_hash(ebb_audit *a, const char *key, const uint8_t hash[EBB__AUDIT_HASH]) {
    static const char digits[] = "0123456789abcdef";
    char text[2 * EBB__AUDIT_HASH + 1], *at = text;
    for (size_t i = 0; i < EBB__AUDIT_HASH; i++) {
        *at++ = digits[hash[i] >> 4];
        *at++ = digits[hash[i] & 15];
    }
    *at = 0;
    put_text(a, key, text);
}

static void put_date(ebb_audit *a) {
    uint64_t ns = a->sink.clock == NULL ? 0 : a->sink.clock(a->sink.ctx);
    time_t seconds = (time_t)(ns / EBB_SECOND);
    struct tm tm = {.tm_mday = 1, .tm_year = 70};
    char day[32], text[48];
    (void)gmtime_r(&seconds, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof text, "%s.%03uZ", day, (unsigned)(ns % EBB_SECOND / EBB_MS));
    put_text(a, "at", text);
}

static void put_chain(ebb_audit *a, const ebb__audit_entry *e) {
    put_key(a, "reason");
    put(a, "[");
    for (uint32_t i = 0; i < e->chain_n; i++) {
        const ebb_reason *r = &e->chain[i];
        put(a, i == 0 ? "{" : ",{");
        put_text(a, "kind", ebb_cancel_kind_name((ebb_cancel_kind)r->kind));
        put_number(a, "severity", r->severity);
        put_text(a, "message", r->message);
        put(a, "}");
    }
    put(a, "]");
}

static void put_facts(ebb_audit *a, const ebb__audit_entry *e) {
    put_key(a, "evidence");
    put(a, "{");
    for (size_t i = 0; i < EBB__AUDIT_FACTS && e->facts[i].key != NULL; i++) {
        const ebb__fact *f = &e->facts[i];
        if (f->text != NULL) put_text(a, f->key, f->text);
        else put_number(a, f->key, f->number);
    }
    put(a, "}");
}

static void put_workflow(ebb_audit *a, const ebb__audit_entry *e) {
    put_text(a, "workflow", e->type);
    put_text(a, "name", e->name);
    put_number(a, "id", e->number);
    put_number(a, "parent", e->parent);
    put_text(a, "from", ebb_workflow_state_name(e->from));
    put_text(a, "to", ebb_workflow_state_name(e->to));
    put_ms(a, "elapsed_ms", e->elapsed);
    put_ms(a, "budget_ms", e->budget);
    put_number(a, "epoch", e->epoch);
    put_number(a, "in_flight", e->in_flight);
    put_number(a, "inside", e->inside);
    put_number(a, "refused", e->refused);
    put_chain(a, e);
}

/* ---- lines ------------------------------------------------------------------------------------------- */

static ebb_status write_line(ebb_audit *a, const ebb__audit_entry *e) {
    assert(e->event > EBB__WE_NONE && e->event < EBB__WF_EVENTS);
    assert((e->number == 0) == (e->event == EBB__WE_STARTED)); /* every other line is a workflow's */
    uint8_t hash[EBB__AUDIT_HASH];
    const char *code = e->code != NULL ? e->code : ebb__wf_events[e->event].code;
    a->n = 0;
    put(a, "{");
    put_number(a, "seq", a->seq + 1);
    put_date(a);
    put_text(a, "event", ebb__wf_events[e->event].name);
    put_key(a, "code");
    if (code[0] != 0) put_string(a, code);
    else put(a, "null");
    if (e->number != 0) put_workflow(a, e);
    put_facts(a, e);
    if (a->lost > 0) put_number(a, "lost", a->lost);
    put_hash(a, "prev", a->prev);
    ebb_status st = EVP_Digest(a->line, a->n, hash, NULL, a->sha256, NULL) == 1 ? EBB_OK : EBB_ERR_NOMEM;
    put_hash(a, "hash", hash);
    put(a, "}\n");
    if (st == EBB_OK) st = a->sink.append(a->sink.ctx, a->line, a->n);
    if (st != EBB_OK) {
        a->lost++;
        return st;
    }
    memcpy(a->prev, hash, sizeof hash);
    a->seq++;
    a->lost = 0;
    return EBB_OK;
}

ebb_status ebb__audit_write(ebb_audit *a, ebb__audit_entry *e) {
    (void)pthread_mutex_lock(&a->lock);
    if (e->event == EBB__WE_OPENED) {
        e->number = ++a->number;
        e->at = ebb__audit_file_size(a);
    }
    ebb_status st = write_line(a, e);
    (void)pthread_mutex_unlock(&a->lock);
    return st;
}

ebb_status ebb__audit_start(ebb_audit *audit, uint64_t dropped) {
    ebb__audit_entry e = {.event = EBB__WE_STARTED, .facts = {{"audit", EBB__AUDIT_VERSION, 0}}};
    e.facts[1] = (ebb__fact){"contract", EBB_CONTRACT, 0};
    if (dropped > 0) e.facts[2] = (ebb__fact){"dropped", NULL, dropped};
    return ebb__audit_write(audit, &e);
}
