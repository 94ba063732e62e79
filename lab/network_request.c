/* Requests: operations that take time and end with a callback. A request that waits for a thread of the pool can be
 * cancelled; one that has begun can't. It takes effect at its end, on the program's stack. */
#define _POSIX_C_SOURCE 200809L
#include "lab/network.h"

#include <assert.h>
#include <netinet/in.h>

enum { ALTERNATIVES = 8 };

char *ebb__net_copy(ebb__net *net, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = ebb_lab_alloc(net->lab, n);
    if (copy != NULL) memcpy(copy, text, n);
    return copy;
}

/* ---- finishing ----------------------------------------------------------------------------------------- */

static void on_done(ebb__net *net, void *request) {
    ebb__net_request *r = request;
    ebb__net_loop *l = r->loop;
    (void)net;
    if (r->begun) return; /* it was cancelled, and its callback was called */
    r->begun = true;
    if (l->done_last != NULL) l->done_last->next = r;
    else l->done = r;
    l->done_last = r;
}

bool ebb__net_request_finish(ebb__net_loop *l) {
    ebb__net_request *r = l->done;
    if (r == NULL) return false;
    assert(r->begun && l->requests > 0 && r->uv->reserved[0] == r);
    l->done = r->next;
    if (l->done == NULL) l->done_last = NULL;
    l->requests--;
    r->uv->reserved[0] = NULL;
    if (!r->cancelled) r->act(r);
    r->back(r);
    return true;
}

static uint64_t choose_time(ebb_lab *lab) {
    static const uint64_t times[] = {20 * EBB_US, EBB_MS, 40 * EBB_MS};
    uint32_t which = ebb__choose(lab, ALTERNATIVES);
    return times[which < ALTERNATIVES - 2 ? 0 : which - (ALTERNATIVES - 3)];
}

/* It may be cancelled until a thread takes it up: at once, unless the chooser keeps all threads busy. */
ebb__net_request *ebb__net_request_new(uv_loop_t *loop, void *uv, void (*act)(ebb__net_request *r),
                                       void (*back)(ebb__net_request *r)) {
    ebb__net_loop *l = ebb__net_loop_of(loop);
    ebb__net *net = l->program->net;
    ebb__net_request *r = ebb_lab_alloc(net->lab, sizeof *r);
    if (r == NULL) return NULL;
    *r = (ebb__net_request){.loop = l, .uv = uv, .act = act, .back = back};
    r->uv->reserved[0] = r;
    r->waits = ebb__choose(net->lab, ALTERNATIVES) == ALTERNATIVES - 1;
    l->requests++;
    ebb__net_later(net, net->lab->now + choose_time(net->lab), on_done, r);
    return r;
}

int ebb__net_cancel(uv_req_t *request) {
    ebb__net_request *r = request->reserved[0];
    if (r == NULL || r->begun || !r->waits) return UV_EBUSY;
    r->cancelled = true;
    on_done(r->loop->program->net, r);
    return 0;
}

int ebb__net_request_drop(ebb__net_request *r) {
    assert(!r->begun && r->loop->requests > 0);
    r->begun = true;
    r->loop->requests--;
    return UV_ENOMEM;
}

/* ---- the pool ------------------------------------------------------------------------------------------ */

static void work_act(ebb__net_request *r) {
    r->as.work.work((uv_work_t *)r->uv);
}

static void work_back(ebb__net_request *r) {
    r->as.work.after((uv_work_t *)r->uv, r->cancelled ? UV_ECANCELED : 0);
}

int ebb__net_queue_work(uv_loop_t *loop, uv_work_t *request, uv_work_cb work, uv_after_work_cb after) {
    ebb__net_request *r = ebb__net_request_new(loop, request, work_act, work_back);
    if (r == NULL) return UV_ENOMEM;
    request->loop = loop;
    r->as.work.work = work;
    r->as.work.after = after;
    return 0;
}

/* ---- names --------------------------------------------------------------------------------------------- */

typedef struct found {
    struct addrinfo info;
    struct sockaddr_storage address;
} found;

static bool parse(const char *text, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    return uv_ip4_addr(text, 0, (struct sockaddr_in *)(void *)out) == 0 ||
           uv_ip6_addr(text, 0, (struct sockaddr_in6 *)(void *)out) == 0;
}

static bool look_up(ebb__net *net, const char *name, struct sockaddr_storage *out) {
    const ebb__net_program *p = ebb__net_program_named(net, name);
    if (p != NULL) *out = p->ip;
    return p != NULL || parse(strcmp(name, "localhost") == 0 ? "127.0.0.1" : name, out);
}

static void dns_act(ebb__net_request *r) {
    ebb__net *net = r->loop->program->net;
    found *f = ebb_lab_alloc(net->lab, sizeof *f);
    if (f == NULL) r->as.dns.code = UV_EAI_MEMORY;
    else if (ebb__net_fault_now(net, EBB__NET_NAME_ERROR)) r->as.dns.code = UV_EAI_AGAIN;
    else if (!look_up(net, r->as.dns.name, &f->address)) r->as.dns.code = UV_EAI_NONAME;
    if (r->as.dns.code != 0) return;
    int family = f->address.ss_family;
    f->info = (struct addrinfo){.ai_family = family, .ai_socktype = SOCK_STREAM};
    f->info.ai_addrlen = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    f->info.ai_addr = (struct sockaddr *)&f->address;
    r->as.dns.found = &f->info;
}

static void dns_back(ebb__net_request *r) {
    int code = r->cancelled ? UV_EAI_CANCELED : r->as.dns.code;
    r->as.dns.callback((uv_getaddrinfo_t *)r->uv, code, r->as.dns.found);
}

int ebb__net_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb callback,
                         const char *node, const char *service, const struct addrinfo *hints) {
    ebb__net_request *r = ebb__net_request_new(loop, request, dns_act, dns_back);
    (void)service;
    (void)hints;
    if (r == NULL) return UV_ENOMEM;
    r->as.dns.callback = callback;
    r->as.dns.name = ebb__net_copy(r->loop->program->net, node);
    return r->as.dns.name == NULL ? ebb__net_request_drop(r) : 0;
}

/* The list lives until the end of the run. */
void ebb__net_freeaddrinfo(struct addrinfo *list) {
    (void)list;
}
