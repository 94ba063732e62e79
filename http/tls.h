/* TLS as a transformation of bytes: received bytes go in, bytes to send come out. There are no sockets here.
 *
 * Invariants: after each call, ebb__tls_output takes all that OpenSSL has to send before the loop sleeps. An error is
 * final. OpenSSL's memory is not counted. */
#ifndef EBB__HTTP_TLS_H
#define EBB__HTTP_TLS_H

#include <ebb/http.h>

typedef struct ebb__tls_ctx ebb__tls_ctx; /* certificates and keys: one a server or client */
typedef struct ebb__tls ebb__tls;         /* one connection */

/* EBB_ERR_TLS: ebb_http_error says which file and why; EBB_ERR_NOMEM, EBB_ERR_VERSION. `opts` is not kept. A
 * server offers h2 and http/1.1 by ALPN and prefers h2; a client asks for both. TLS 1.2 is the least, no
 * renegotiation, no compression; session tickets are allowed. */
ebb_status ebb__tls_ctx_new(ebb_allocator a, const ebb_tls_opts *opts, bool server, ebb__tls_ctx **out);
/* The same in two steps: the second uses nothing of the host, so it may run on another thread. Its error message is
 * set on that thread; ebb__tls_ctx_set_error sets it on this one. NULL: no memory. */
ebb__tls_ctx *ebb__tls_ctx_empty(ebb_allocator a, bool server);
ebb_status ebb__tls_ctx_fill(ebb__tls_ctx *c, const ebb_tls_opts *opts);
void ebb__tls_ctx_set_error(const ebb__tls_ctx *c);
void ebb__tls_ctx_free(ebb__tls_ctx *c); /* NULL is allowed. Connections may outlive it. */

/* `host` is the host that a client connects to: for SNI (a name only) and for the check of the certificate (names and
 * addresses). NULL for a server. Returns NULL without memory, and for a client without a host or with one of more than
 * 255 bytes. */
ebb__tls *ebb__tls_new(ebb__tls_ctx *c, const char *host);
void ebb__tls_free(ebb__tls *t); /* NULL is allowed */

/* Takes received bytes, all of them, and continues the handshake. EBB_OK, EBB_ERR_TLS, EBB_ERR_NOMEM. */
ebb_status ebb__tls_input(ebb__tls *t, const void *bytes, size_t n);
/* Starts a client's handshake. */
ebb_status ebb__tls_start(ebb__tls *t);
/* The handshake is complete. False again while a part of a later handshake message (a ticket, new keys) prevents
 * writing: bytes that are written then are kept, so write no more until this is true, after a read. */
bool ebb__tls_is_ready(const ebb__tls *t);
bool ebb__tls_is_h2(const ebb__tls *t); /* ALPN chose h2 */
/* Returns received plaintext: *n bytes, 0: none yet. EBB_ERR_EOF: close_notify; EBB_ERR_TLS. */
ebb_status ebb__tls_read(ebb__tls *t, void *into, size_t room, size_t *n);
/* Encrypts all n bytes. EBB_ERR_TLS, EBB_ERR_NOMEM; EBB_ERR_INVALID before the handshake is complete. */
ebb_status ebb__tls_write(ebb__tls *t, const void *from, size_t n);
/* The same, but records that fit are written straight to `to`: *made bytes. Only when ebb__tls_output has nothing, or
 * they would overtake that. Up to EBB__TLS_PLAIN bytes are one record, with at most EBB__TLS_EXTRA bytes more. */
enum { EBB__TLS_PLAIN = 16384, EBB__TLS_EXTRA = 256 };
ebb_status ebb__tls_write_to(ebb__tls *t, const void *from, size_t n, void *to, size_t room, size_t *made);
/* Sends close_notify. */
void ebb__tls_close(ebb__tls *t);
/* Takes bytes to send, and returns how many; 0: none. */
size_t ebb__tls_output(ebb__tls *t, void *into, size_t room);
/* How many bytes there are to send, including those that can't be encrypted yet. */
size_t ebb__tls_pending(const ebb__tls *t);

/* Sets the text that ebb_http_error returns. */
void ebb__http_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
