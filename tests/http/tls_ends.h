/* Two ends of a TLS connection that speak to each other in memory: ours, and OpenSSL by itself where the
 * other has to behave as ours never does. */
#ifndef EBB_TESTS_TLS_ENDS_H
#define EBB_TESTS_TLS_ENDS_H

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "http/tls.h"
#include "tests/http/tls_certificates.h"
#include "tests/support/trace_build.h"

/* One of `tls` and `raw` is there. */
typedef struct end {
    ebb__tls *tls;
    SSL *raw;
    ebb_status st; /* of the last input */
    char error[256];
} end;

static inline ebb__tls_ctx *context(bool server, const char *cert, const char *ca) {
    char cert_name[64], key_name[64];
    snprintf(cert_name, sizeof cert_name, "%s.pem", cert != NULL ? cert : "");
    snprintf(key_name, sizeof key_name, "%s.key", cert != NULL ? cert : "");
    ebb_tls_opts o = {.size = sizeof o,
                      .cert_file = cert != NULL ? file(cert_name) : NULL,
                      .key_file = cert != NULL ? file(key_name) : NULL,
                      .ca_file = ca != NULL ? file(ca) : NULL};
    ebb__tls_ctx *c;
    if (ebb__tls_ctx_new(libc_allocator(), &o, server, &c) != EBB_OK) fail_msg("%s", ebb_http_error());
    return c;
}

/* That the connection lives on without its context is how each of them is used here. */
static inline end server_with(const char *cert, const char *ca) {
    ebb__tls_ctx *c = context(true, cert, ca);
    end e = {.tls = ebb__tls_new(c, NULL)};
    ebb__tls_ctx_free(c);
    assert_non_null(e.tls);
    return e;
}

static inline end client_with(const char *host, const char *cert, const char *ca) {
    ebb__tls_ctx *c = context(false, cert, ca);
    end e = {.tls = ebb__tls_new(c, host)};
    ebb__tls_ctx_free(c);
    assert_non_null(e.tls);
    assert_int_equal(ebb__tls_start(e.tls), EBB_OK);
    return e;
}

static inline end raw_over(SSL_CTX *c, bool server) {
    end e = {.raw = SSL_new(c)};
    SSL_set_bio(e.raw, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (server) SSL_set_accept_state(e.raw);
    else SSL_set_connect_state(e.raw);
    SSL_CTX_free(c);
    return e;
}

static inline SSL_CTX *raw_context(bool server) {
    SSL_CTX *c = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    assert_non_null(c);
    if (!server) return c;
    assert_int_equal(SSL_CTX_use_certificate_chain_file(c, file("leaf.pem")), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(c, file("leaf.key"), SSL_FILETYPE_PEM), 1);
    return c;
}

static inline void end_free(end *e) {
    ebb__tls_free(e->tls);
    SSL_free(e->raw);
}

static inline void raw_step(end *e) {
    ERR_clear_error();
    int r = SSL_is_init_finished(e->raw) ? 1 : SSL_do_handshake(e->raw);
    if (r == 1 || SSL_get_error(e->raw, r) == SSL_ERROR_WANT_READ) return;
    e->st = EBB_ERR_TLS;
    snprintf(e->error, sizeof e->error, "%s", ERR_reason_error_string(ERR_peek_error()));
}

static inline void give(end *e, const void *buffer, size_t n) {
    if (e->st != EBB_OK) return;
    if (e->raw != NULL) {
        assert_int_equal(BIO_write(SSL_get_rbio(e->raw), buffer, (int)n), n);
        raw_step(e);
        return;
    }
    e->st = ebb__tls_input(e->tls, buffer, n);
    if (e->st != EBB_OK) snprintf(e->error, sizeof e->error, "%s", ebb_http_error());
}

static inline size_t take(end *e, void *into, size_t room) {
    if (e->tls != NULL) return ebb__tls_output(e->tls, into, room);
    int n = BIO_read(SSL_get_wbio(e->raw), into, (int)room);
    return n > 0 ? (size_t)n : 0;
}

/* Carries over what one has to say, in pieces. */
static inline size_t carry(end *from, end *to, size_t piece) {
    static char buffer[1 << 16];
    size_t all = 0;
    if (piece > sizeof buffer) piece = sizeof buffer;
    for (size_t n; (n = take(from, buffer, piece)) > 0; all += n) give(to, buffer, n);
    return all;
}

/* Until both are silent. */
static inline void shake(end *client, end *server, size_t piece) {
    if (client->raw != NULL) raw_step(client);
    while (carry(client, server, piece) + carry(server, client, piece) > 0) continue;
}

/* What there is to read, as a text. */
static inline ebb_status read_text(end *e, char *into, size_t room) {
    size_t n = 0, got;
    ebb_status st;
    do {
        st = ebb__tls_read(e->tls, into + n, room - 1 - n, &got);
        n += got;
    } while (st == EBB_OK && got > 0);
    into[n] = 0;
    return st;
}

static inline void assert_ready(const end *client, const end *server) {
    const end *both[] = {client, server};
    for (size_t i = 0; i < 2; i++) {
        if (both[i]->st != EBB_OK) fail_msg("%s", both[i]->error);
        if (both[i]->tls != NULL) assert_true(ebb__tls_is_ready(both[i]->tls));
        else assert_true(SSL_is_init_finished(both[i]->raw));
    }
}

static inline void assert_failed(const end *e, const char *text) {
    assert_int_equal(e->st, EBB_ERR_TLS);
    if (strstr(e->error, text) == NULL) fail_msg("'%s' does not say '%s'", e->error, text);
}

#endif
