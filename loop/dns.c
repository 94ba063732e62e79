/* Name lookup. */
#define _POSIX_C_SOURCE 200809L
#include "loop/stream.h"

typedef struct addresses {
    size_t n;
    ebb_address at[];
} addresses;

static const ebb_type addresses_type = {"addresses", 0, NULL, ebb__block_free, 0};

static size_t count(const struct addrinfo *found) {
    size_t n = 0;
    for (; found != NULL; found = found->ai_next) n++;
    return n;
}

static void fill(addresses *all, const struct addrinfo *found, uint16_t port) {
    all->n = 0;
    for (; found != NULL; found = found->ai_next) {
        if (ebb__address_format(found->ai_addr, &all->at[all->n]) != EBB_OK) continue;
        all->at[all->n++].port = port;
    }
}

static void on_found(uv_getaddrinfo_t *uv, int code, struct addrinfo *found) {
    ebb__uv_request *r = uv->data;
    addresses *all = NULL;
    if (code == 0) {
        all = ebb__block_new(&r->loop->allocator, sizeof *all + count(found) * sizeof *all->at);
        if (all != NULL) fill(all, found, r->as.port);
    }
    r->loop->os->freeaddrinfo(found);
    if (all != NULL) (void)ebb__request_settle(r, ebb_value_owned(&addresses_type, all));
    else ebb__request_reject(r, code == 0 ? EBB_ERR_NOMEM : ebb__uv_status(code));
    ebb__request_free(r);
}

static const ebb_operation resolve_op = {"resolve", ebb__request_cancel, NULL};

ebb_future *ebb_dns_resolve_site(ebb_cx *cx, const char *name, uint16_t port, const char *site) {
    /* Without it each address is returned once for each socket type. */
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    ebb_future *f;
    ebb_loop *l;
    ebb_status st = ebb__loop_admit(cx, &l);
    if (st == EBB_OK && name == NULL) st = EBB_ERR_INVALID;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb__uv_request *r = ebb__request_new(cx, l, NULL, &resolve_op, site, &f);
    if (r == NULL) return f;
    f = r->future;
    r->as.port = port;
    int code = l->os->getaddrinfo(l->uv, &r->uv.dns, on_found, name, NULL, &hints);
    if (code != 0) on_found(&r->uv.dns, code, NULL);
    return f;
}

const ebb_address *ebb_dns_addresses_of(const ebb_value *v, size_t *n) {
    const addresses *all = v->type == &addresses_type ? v->as.p : NULL;
    *n = all == NULL ? 0 : all->n;
    return all == NULL ? NULL : all->at;
}
