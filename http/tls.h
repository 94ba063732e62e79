/* TLS as a pair of byte pumps: what came from the wire goes in, what is to be sent comes out. No sockets
 * here.
 *
 * What holds: after each call all that OpenSSL has to send is taken by ebb__tls_output before the loop
 * sleeps; an error is final. OpenSSL's memory is its own. */
#ifndef EBB__HTTP_TLS_H
#define EBB__HTTP_TLS_H

#include <ebb/http.h>

typedef struct ebb__tls_ctx ebb__tls_ctx; /* certificates and keys: one a server or client */
typedef struct ebb__tls ebb__tls;         /* one connection */

/* EBB_ERR_TLS: ebb_http_error says which file and why; EBB_ERR_NOMEM, EBB_ERR_VERSION. `opts` is not kept. A
 * server offers h2 and http/1.1 by ALPN and prefers h2; a client asks for both. TLS 1.2 is the least, no
 * renegotiation, no compression; session tickets are allowed. */
ebb_status ebb__tls_ctx_new(ebb_allocator a, const ebb_tls_opts *opts, bool server, ebb__tls_ctx **out);
/* The same in two steps: the second uses nothing of the host's, so it may run on another thread. What it says of a
 * failure is said on that thread; ebb__tls_ctx_tell says it on this one. NULL: no memory. */
ebb__tls_ctx *ebb__tls_ctx_empty(ebb_allocator a, bool server);
ebb_status ebb__tls_ctx_fill(ebb__tls_ctx *c, const ebb_tls_opts *opts);
void ebb__tls_ctx_tell(const ebb__tls_ctx *c);
void ebb__tls_ctx_free(ebb__tls_ctx *c); /* NULL is allowed. Connections may outlive it. */

/* `host` is whom a client wants: for SNI (a name only) and the check of the certificate (names and
 * addresses); NULL for a server. NULL: no memory, or a client without a host, or one of more than 255
 * bytes. */
ebb__tls *ebb__tls_new(ebb__tls_ctx *c, const char *host);
void ebb__tls_free(ebb__tls *t); /* NULL is allowed */

/* Bytes from the wire; all are taken. The handshake goes on with them. EBB_OK, EBB_ERR_TLS, EBB_ERR_NOMEM. */
ebb_status ebb__tls_input(ebb__tls *t, const void *bytes, size_t n);
/* Starts a client's handshake. */
ebb_status ebb__tls_start(ebb__tls *t);
/* The handshake is over. It is not while a part of a later message of it (a ticket, new keys) keeps us
 * from writing: what is written then all the same is kept, so write no more until it is ready again, after
 * a read. */
bool ebb__tls_is_ready(const ebb__tls *t);
bool ebb__tls_is_h2(const ebb__tls *t); /* ALPN chose h2 */
/* Takes plain bytes that came: *n of them, 0: none yet. EBB_ERR_EOF: close_notify; EBB_ERR_TLS. */
ebb_status ebb__tls_read(ebb__tls *t, void *into, size_t room, size_t *n);
/* Encrypts all n bytes. EBB_ERR_TLS, EBB_ERR_NOMEM; EBB_ERR_INVALID before the handshake is over. */
ebb_status ebb__tls_write(ebb__tls *t, const void *from, size_t n);
/* The same, but records that fit are put straight to `to`: *made bytes of them. Only when ebb__tls_output has
 * nothing, or they would overtake it. Up to EBB__TLS_PLAIN bytes are one record, of at most EBB__TLS_EXTRA more. */
enum { EBB__TLS_PLAIN = 16384, EBB__TLS_EXTRA = 256 };
ebb_status ebb__tls_write_to(ebb__tls *t, const void *from, size_t n, void *to, size_t room, size_t *made);
/* Says close_notify. */
void ebb__tls_close(ebb__tls *t);
/* Takes what is to be sent: how many bytes; 0: nothing. */
size_t ebb__tls_output(ebb__tls *t, void *into, size_t room);
/* How many it has to send, what can't be encrypted yet included. */
size_t ebb__tls_pending(const ebb__tls *t);

/* What ebb_http_error returns from now on. */
void ebb__http_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
