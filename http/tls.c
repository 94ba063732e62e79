/* TLS by OpenSSL. Received bytes go through a memory BIO. A BIO of ours writes records straight to the send buffer, or
 * to a memory BIO, the spill, if there is no buffer.
 *
 * OpenSSL keeps errors in a queue of the thread, and the result of a call is right only if the queue was empty before.
 * So the queue is emptied before every call that may fail, and after every failure. */
#define _POSIX_C_SOURCE 200809L
#include "http/tls.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "base/text.h"

enum { SAID_BYTES = 1024, WHY_BYTES = 256, SPILL_KEPT_BYTES = 32 * 1024 };

struct ebb__tls_ctx {
    ebb_allocator allocator;
    SSL_CTX *ssl;
    bool server;
    char why[WHY_BYTES]; /* why it could not be filled */
};

/* Invariants: `ssl` owns `in` and the BIO that writes to `to` and `spill`. Nothing is written to `to` while the spill
 * has bytes, which are sent first. Once `failed` is not EBB_OK, `ssl` is not called any more, and the spill has its
 * last alert. */
struct ebb__tls {
    ebb_allocator allocator;
    size_t size; /* of this record */
    SSL *ssl;
    BIO *in, *spill;
    BIO *late;         /* plaintext that OpenSSL does not take yet; NULL: none */
    size_t spill_most; /* the most bytes that `spill` has held: it does not shrink by itself */
    uint8_t *to;       /* during a write: where records go */
    size_t to_room, to_n;
    ebb_status failed;
    bool ready;
    char peer[]; /* the host that a client connects to, or a server's name for the peer */
};

/* ---- errors -------------------------------------------------------------------------------------------- */

static _Thread_local char said[SAID_BYTES];

const char *ebb_http_error(void) {
    return said;
}

void ebb__http_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(said, sizeof said, format, args);
    va_end(args);
}

static ebb__text say_of(const char *what) {
    ebb__text t = ebb__text_in(said, sizeof said);
    ebb__text_str(&t, what);
    ebb__text_str(&t, ": ");
    return t;
}

static ebb_status say(const char *what, const char *why) {
    ebb__text t = say_of(what);
    ebb__text_str(&t, why);
    return EBB_ERR_TLS;
}

static void say_code(ebb__text *t, unsigned long code) {
    char of_system[128];
    const char *reason = ERR_reason_error_string(code);
    if (ERR_SYSTEM_ERROR(code) && strerror_r(ERR_GET_REASON(code), of_system, sizeof of_system) == 0)
        reason = of_system;
    if (code == 0) reason = "the other side has closed it";
    ebb__text_str(t, reason != NULL ? reason : "OpenSSL has no reason");
}

/* The first error of the queue is the cause; the others are from its callers. */
static ebb_status complain(const char *what) {
    ebb__text t = say_of(what);
    ebb_status st =
        ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE ? EBB_ERR_NOMEM : EBB_ERR_TLS;
    say_code(&t, ERR_peek_error());
    ERR_clear_error();
    return st;
}

static bool is_about_certificate(void) {
    unsigned long code = ERR_peek_error();
    return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

static ebb_status fail(ebb__tls *t) {
    if (is_about_certificate()) {
        t->failed = say(t->peer, X509_verify_cert_error_string(SSL_get_verify_result(t->ssl)));
        ERR_clear_error();
    } else t->failed = complain(t->peer);
    return t->failed;
}

/* ---- certificates and keys ----------------------------------------------------------------------------- */

static const unsigned char PROTOCOLS[] = "\x02h2\x08http/1.1";
enum { PROTOCOLS_N = sizeof PROTOCOLS - 1 };

/* The server's order decides. A client that offers neither protocol gets an alert, as RFC 7301 requires. */
static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                           const unsigned char *asked, unsigned int asked_n, void *arg) {
    unsigned char *chosen;
    (void)ssl;
    (void)arg;
    int r = SSL_select_next_proto(&chosen, out_n, PROTOCOLS, PROTOCOLS_N, asked, asked_n);
    if (r != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* For a key with a password, OpenSSL would prompt on the terminal. */
static int no_password(char *into, int room, int writing, void *arg) {
    (void)into;
    (void)room;
    (void)writing;
    (void)arg;
    return -1;
}

/* TLS 1.2 has only the ciphers that HTTP/2 allows: RFC 9113, appendix A forbids the rest. */
static bool set_rules(SSL_CTX *ssl) {
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(ssl, no_password);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

static bool set_protocols(const ebb__tls_ctx *c) {
    static const unsigned char name[] = "ebb";
    if (!c->server) return SSL_CTX_set_alpn_protos(c->ssl, PROTOCOLS, PROTOCOLS_N) == 0;
    SSL_CTX_set_alpn_select_cb(c->ssl, select_protocol, NULL);
    return SSL_CTX_set_session_id_context(c->ssl, name, sizeof name - 1) == 1;
}

static ebb_status use_certificate(const ebb__tls_ctx *c, const ebb_tls_opts *o) {
    if (o->cert_file == NULL && o->key_file == NULL)
        return c->server ? say("TLS", "a server needs cert_file and key_file") : EBB_OK;
    if (o->cert_file == NULL) return say(o->key_file, "a key without a cert_file");
    if (o->key_file == NULL) return say(o->cert_file, "a certificate without a key_file");
    if (SSL_CTX_use_certificate_chain_file(c->ssl, o->cert_file) != 1) return complain(o->cert_file);
    if (SSL_CTX_use_PrivateKey_file(c->ssl, o->key_file, SSL_FILETYPE_PEM) != 1) return complain(o->key_file);
    return EBB_OK;
}

static ebb_status trust_system(const ebb__tls_ctx *c) {
    if (c->server) return EBB_OK;
    SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, NULL);
    return SSL_CTX_set_default_verify_paths(c->ssl) == 1 ? EBB_OK : complain("the system's certificates");
}

static ebb_status trust(const ebb__tls_ctx *c, const char *ca_file) {
    if (ca_file == NULL) return trust_system(c);
    SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER | (c->server ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    if (SSL_CTX_load_verify_file(c->ssl, ca_file) != 1) return complain(ca_file);
    if (!c->server) return EBB_OK;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ca_file);
    if (names == NULL) return complain(ca_file);
    SSL_CTX_set_client_CA_list(c->ssl, names);
    return EBB_OK;
}

static ebb_status fill(ebb__tls_ctx *c, const ebb_tls_opts *o) {
    c->ssl = SSL_CTX_new(c->server ? TLS_server_method() : TLS_client_method());
    if (c->ssl == NULL || !set_rules(c->ssl) || !set_protocols(c)) return complain("TLS");
    ebb_status st = use_certificate(c, o);
    return st == EBB_OK ? trust(c, o->ca_file) : st;
}

ebb__tls_ctx *ebb__tls_ctx_empty(ebb_allocator a, bool server) {
    ebb__tls_ctx *c = ebb__alloc(&a, sizeof *c);
    if (c != NULL) *c = (ebb__tls_ctx){.allocator = a, .server = server};
    return c;
}

ebb_status ebb__tls_ctx_fill(ebb__tls_ctx *c, const ebb_tls_opts *opts) {
    ERR_clear_error();
    ebb_status st = fill(c, opts);
    if (st == EBB_OK) return st;
    ebb__text t = ebb__text_in(c->why, sizeof c->why);
    ebb__text_str(&t, said);
    return st;
}

void ebb__tls_ctx_set_error(const ebb__tls_ctx *c) {
    ebb__text t = ebb__text_in(said, sizeof said);
    ebb__text_str(&t, c->why);
}

ebb_status ebb__tls_ctx_new(ebb_allocator a, const ebb_tls_opts *opts, bool server, ebb__tls_ctx **out) {
    ebb_tls_opts o;
    *out = NULL;
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st != EBB_OK) return st;
    ebb__tls_ctx *c = ebb__tls_ctx_empty(a, server);
    if (c == NULL) return EBB_ERR_NOMEM;
    st = ebb__tls_ctx_fill(c, &o);
    if (st == EBB_OK) *out = c;
    else ebb__tls_ctx_free(c);
    return st;
}

void ebb__tls_ctx_free(ebb__tls_ctx *c) {
    if (c == NULL) return;
    ebb_allocator a = c->allocator;
    SSL_CTX_free(c->ssl);
    ebb__free(&a, c, sizeof *c);
}

/* ---- a connection -------------------------------------------------------------------------------------- */

static int put_record(BIO *b, const char *from, int n) {
    ebb__tls *t = BIO_get_data(b);
    size_t all = n > 0 ? (size_t)n : 0, written = 0;
    if (all > t->to_room - t->to_n || BIO_ctrl_pending(t->spill) > 0) {
        return BIO_write_ex(t->spill, from, all, &written) == 1 ? (int)written : -1;
    }
    if (all > 0) memcpy(t->to + t->to_n, from, all);
    t->to_n += all;
    return n;
}

static long control(BIO *b, int command, long n, void *arg) {
    (void)b;
    (void)n;
    (void)arg;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/* One for the process. It is made once and never changes. */
static CRYPTO_ONCE method_once = CRYPTO_ONCE_STATIC_INIT;
static BIO_METHOD *method;

static void method_new(void) {
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "records of ebb");
    if (method == NULL) return;
    (void)BIO_meth_set_write(method, put_record);
    (void)BIO_meth_set_ctrl(method, control);
}

static bool attach(ebb__tls *t) {
    if (CRYPTO_THREAD_run_once(&method_once, method_new) != 1 || method == NULL) return false;
    BIO *out = BIO_new(method);
    t->in = BIO_new(BIO_s_mem());
    t->spill = BIO_new(BIO_s_mem());
    if (t->in == NULL || t->spill == NULL || out == NULL) {
        BIO_free(t->in);
        BIO_free(out);
        return false;
    }
    BIO_set_data(out, t);
    BIO_set_init(out, 1);
    SSL_set_bio(t->ssl, t->in, out);
    return true;
}

/* The certificate must be for this name or address. Only its list of names counts, not its subject. */
static bool aim(ebb__tls *t) {
    SSL_set_connect_state(t->ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), t->peer) == 1) return true;
    ERR_clear_error();
    SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return SSL_set1_host(t->ssl, t->peer) == 1 && SSL_set_tlsext_host_name(t->ssl, t->peer) == 1;
}

static ebb__tls *record_new(ebb_allocator a, const char *peer) {
    size_t n = strlen(peer);
    if (n > 1 && peer[n - 1] == '.') n--; /* certificates have no final dot */
    ebb__tls *t = ebb__alloc(&a, sizeof *t + n + 1);
    if (t == NULL) return NULL;
    *t = (ebb__tls){.allocator = a, .size = sizeof *t + n + 1};
    memcpy(t->peer, peer, n);
    t->peer[n] = 0;
    return t;
}

ebb__tls *ebb__tls_new(ebb__tls_ctx *c, const char *host) {
    /* OpenSSL would accept any name for an empty one. */
    if (!c->server && (host == NULL || host[0] == 0)) return NULL;
    ebb__tls *t = record_new(c->allocator, c->server ? "the client" : host);
    if (t == NULL) return NULL;
    ERR_clear_error();
    t->ssl = SSL_new(c->ssl);
    bool made = t->ssl != NULL && attach(t);
    if (made && c->server) SSL_set_accept_state(t->ssl);
    if (made && (c->server || aim(t))) return t;
    (void)complain(t->peer);
    ebb__tls_free(t);
    return NULL;
}

void ebb__tls_free(ebb__tls *t) {
    if (t == NULL) return;
    ebb_allocator a = t->allocator;
    SSL_free(t->ssl);
    BIO_free(t->spill);
    BIO_free(t->late);
    ebb__free(&a, t, t->size);
}

ebb_status ebb__tls_start(ebb__tls *t) {
    if (t->failed != EBB_OK || t->ready) return t->failed;
    ERR_clear_error();
    int r = SSL_do_handshake(t->ssl);
    t->ready = r == 1;
    return r == 1 || SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ ? EBB_OK : fail(t);
}

ebb_status ebb__tls_input(ebb__tls *t, const void *bytes, size_t n) {
    const char *at = bytes;
    size_t taken;
    if (t->failed != EBB_OK) return t->failed;
    for (; n > 0; at += taken, n -= taken) {
        if (BIO_write_ex(t->in, at, n, &taken) != 1) return t->failed = EBB_ERR_NOMEM;
    }
    return ebb__tls_start(t);
}

/* OpenSSL's own state changes while it reads a message after the handshake; what matters is whether it takes bytes. If
 * writes happen only when it is ready, `late` is no longer than one write. */
bool ebb__tls_is_ready(const ebb__tls *t) {
    return t->ready && t->late == NULL;
}

bool ebb__tls_is_h2(const ebb__tls *t) {
    const unsigned char *name;
    unsigned int n;
    SSL_get0_alpn_selected(t->ssl, &name, &n);
    return n == 2 && memcmp(name, "h2", 2) == 0;
}

/* Our BIO takes everything, so OpenSSL has one reason to take no bytes: it has received a part of a handshake message,
 * a ticket or new keys. Then we keep the bytes until the rest of that message was read. *taken says whether OpenSSL
 * took the bytes. */
static ebb_status encrypt(ebb__tls *t, const void *from, size_t n, bool *taken) {
    size_t written;
    ERR_clear_error();
    int r = SSL_write_ex(t->ssl, from, n, &written);
    *taken = r == 1;
    return r == 1 || SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ ? EBB_OK : fail(t);
}

static ebb_status keep(ebb__tls *t, const void *from, size_t n) {
    size_t written = 0;
    if (t->late == NULL) t->late = BIO_new(BIO_s_mem());
    if (t->late != NULL && BIO_write_ex(t->late, from, n, &written) == 1 && written == n) return EBB_OK;
    return t->failed = EBB_ERR_NOMEM;
}

static ebb_status encrypt_kept(ebb__tls *t) {
    char *kept;
    bool taken;
    if (t->late == NULL) return EBB_OK;
    long n = BIO_get_mem_data(t->late, &kept);
    ebb_status st = encrypt(t, kept, (size_t)n, &taken);
    if (!taken) return st;
    BIO_free(t->late);
    t->late = NULL;
    return EBB_OK;
}

ebb_status ebb__tls_write(ebb__tls *t, const void *from, size_t n) {
    bool taken = false;
    if (t->failed != EBB_OK) return t->failed;
    if (!t->ready) return EBB_ERR_INVALID;
    if (n == 0) return EBB_OK;
    ebb_status st = t->late == NULL ? encrypt(t, from, n, &taken) : EBB_OK;
    return st == EBB_OK && !taken ? keep(t, from, n) : st;
}

ebb_status ebb__tls_write_to(ebb__tls *t, const void *from, size_t n, void *to, size_t room, size_t *made) {
    t->to = to;
    t->to_room = room;
    ebb_status st = ebb__tls_write(t, from, n);
    *made = t->to_n;
    t->to = NULL;
    t->to_room = t->to_n = 0;
    return st;
}

ebb_status ebb__tls_read(ebb__tls *t, void *into, size_t room, size_t *n) {
    *n = 0;
    if (t->failed != EBB_OK || !t->ready) return t->failed;
    ERR_clear_error();
    int r = SSL_read_ex(t->ssl, into, room, n);
    if (r == 1) return encrypt_kept(t);
    switch (SSL_get_error(t->ssl, r)) {
    case SSL_ERROR_WANT_READ: return encrypt_kept(t);
    case SSL_ERROR_ZERO_RETURN: return EBB_ERR_EOF;
    default: return fail(t);
    }
}

void ebb__tls_close(ebb__tls *t) {
    if (t->failed != EBB_OK) return;
    (void)SSL_shutdown(t->ssl);
    ERR_clear_error();
}

/* A burst must not leave its memory with an idle connection. */
static void shrink(ebb__tls *t) {
    BIO *fresh = BIO_new(BIO_s_mem());
    if (fresh == NULL) return;
    BIO_free(t->spill);
    t->spill = fresh;
    t->spill_most = 0;
}

size_t ebb__tls_output(ebb__tls *t, void *into, size_t room) {
    size_t n = 0, waiting = BIO_ctrl_pending(t->spill);
    if (waiting > t->spill_most) t->spill_most = waiting;
    if (waiting == 0 || BIO_read_ex(t->spill, into, room, &n) != 1) return 0;
    if (n == waiting && t->spill_most > SPILL_KEPT_BYTES) shrink(t);
    return n;
}

size_t ebb__tls_pending(const ebb__tls *t) {
    return BIO_ctrl_pending(t->spill) + (t->late != NULL ? BIO_ctrl_pending(t->late) : 0);
}
