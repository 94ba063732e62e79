/* fuzz/fuzz_audit.c - ebb_audit_verify on anything.
 *
 * The first byte decides: the rest is a log as it is; or its lines are numbered and chained first, so that
 * what stands behind the chain is reached. A log that verifies does so too when it is cut after any of its
 * lines. */
#include <ebb/ebb.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { INPUT_MAX = 1 << 16, LOG_MAX = INPUT_MAX * 20, HEX = 64 };

static void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* ---- sealing -------------------------------------------------------------------------------------- */

typedef struct out {
    char *bytes;
    size_t n;
} out;

static void put(out *o, const char *bytes, size_t n) {
    require(n <= LOG_MAX - o->n, "the input is longer than it can be");
    memcpy(o->bytes + o->n, bytes, n);
    o->n += n;
}

static void put_text(out *o, const char *text) {
    put(o, text, strlen(text));
}

static void hash_since(const out *o, size_t start, char hex[HEX + 1]) {
    unsigned char hash[HEX / 2];
    require(EVP_Digest(o->bytes + start, o->n - start, hash, NULL, EVP_sha256(), NULL) == 1, "no memory");
    for (size_t i = 0; i < sizeof hash; i++) snprintf(hex + 2 * i, 3, "%02x", hash[i]);
}

/* Where `what` first stands; the end if it does not. */
static size_t find(const char *line, size_t n, const char *what) {
    size_t k = strlen(what), i = 0;
    while (i + k <= n && memcmp(line + i, what, k) != 0) i++;
    return i + k <= n ? i : n;
}

static void seal_line(out *o, const char *line, size_t n, size_t seq, char prev[HEX + 1]) {
    char head[32];
    size_t start = o->n, at = find(line, n, ",\"at\":"), end = find(line, n, ",\"prev\":");
    snprintf(head, sizeof head, "{\"seq\":%zu", seq);
    put_text(o, head);
    if (at < end) put(o, line + at, end - at);
    put_text(o, ",\"prev\":\"");
    put(o, prev, HEX);
    put_text(o, "\"");
    hash_since(o, start, prev);
    put_text(o, ",\"hash\":\"");
    put(o, prev, HEX);
    put_text(o, "\"}\n");
}

/* At most so many lines that what is put around them fits. */
static void seal(out *o, const char *bytes, size_t n) {
    char prev[HEX + 1];
    memset(prev, '0', HEX);
    for (size_t seq = 1; n > 0 && seq <= INPUT_MAX / 16; seq++) {
        const char *stop = memchr(bytes, '\n', n);
        size_t length = stop == NULL ? n : (size_t)(stop - bytes);
        seal_line(o, bytes, length, seq, prev);
        if (stop == NULL) return;
        bytes = stop + 1;
        n -= length + 1;
    }
}

/* ---- verifying ------------------------------------------------------------------------------------ */

static bool is_an_invariant(const char *name) {
    static const char *const names[] = {"three-phase",    "no-new-work", "drain-bounded",
                                        "finalize-clean", "idempotent",  "audit-complete"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return false;
}

static bool verify(const char *log, size_t n) {
    ebb_audit_verdict v;
    ebb_status st = ebb_audit_verify(ebb_libc_allocator(), log, n, &v);
    require(st == EBB_OK || st == EBB_ERR_ORACLE, "another status");
    require(memchr(v.text, 0, sizeof v.text) != NULL, "a text without an end");
    if (st == EBB_ERR_ORACLE) {
        require(v.line > 0 && v.line == v.lines, "it ends with the line that is wrong");
        require(is_an_invariant(v.invariant) && v.text[0] != 0, "a verdict without its reason");
        for (const char *c = v.text; *c != 0; c++)
            require(*c >= 0x20 && *c < 0x7f, "a text that is not plain");
        return false;
    }
    require(v.line == 0 && v.invariant[0] == 0 && v.text[0] == 0, "a verdict of a log that is good");
    require(v.cut == (n > 0 && log[n - 1] != '\n'), "cut");
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static char sealed[LOG_MAX];
    out o = {sealed, 0};
    if (n < 1 || n > INPUT_MAX) return 0;
    if (data[0] % 2 == 1) seal(&o, (const char *)data + 1, n - 1);
    else put(&o, (const char *)data + 1, n - 1);
    if (!verify(o.bytes, o.n)) return 0;
    for (size_t i = 0, left = 16; i < o.n && left > 0; i++) {
        if (o.bytes[i] != '\n') continue;
        require(verify(o.bytes, i + 1), "a part of a good log is not good");
        left--;
    }
    return 0;
}
