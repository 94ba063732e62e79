/* http_test_client: our client as a program, for tests against servers that are not ours. It uses the public
 * headers alone, asks for each URL, and says of each in the order in which they end
 *
 *   INDEX STATUS               it failed: "3 EBB_ERR_HTTP_RETRY"
 *   INDEX HTTP LENGTH ADLER32  the status and the body: "0 200 5 062c0215"
 *
 * and with --open before that "INDEX version V", and after it "INDEX trailer VALUE" if x-sum was one.
 *
 * usage: http_test_client [--prior-knowledge] [--ca FILE] [--connections N] [--at-once N] [--times N]
 *                         [--method METHOD] [--header NAME VALUE]... [--body BYTES] [--open] [--streams]
 *                         [--cancel-ms N] [--deadline-ms N] URL...
 *
 * --times asks for each so often. --body is how many bytes are sent, each an 'e'. --open takes the answer piece by
 * piece; --streams sends the body so too. --cancel-ms gives each up after that: "INDEX EBB_CANCELLED". */
#include <ebb/ebb.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 16, PIECE = 10000 };

static struct setup {
    ebb_http_client_opts opts;
    ebb_http_call call;
    ebb_http_field fields[FIELDS];
    uint64_t cancel_ns, deadline_ns;
    uint32_t at_once, times;
    bool open;
    size_t body_n;
    char *body;
    char **urls;
    uint32_t urls_n, next;
    ebb_http_client *client;
} setup = {.at_once = 100, .times = 1};

static uint32_t adler32(uint32_t sum, const char *bytes, size_t n) {
    uint32_t a = sum & 0xffff, b = sum >> 16;
    for (size_t i = 0; i < n; i++) {
        a = (a + (unsigned char)bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static ebb_http_call call_of(ebb_cx *cx, uint32_t i) {
    ebb_http_call call = setup.call;
    call.url = setup.urls[i % setup.urls_n];
    call.headers = setup.fields;
    if (!call.streams) call.body = setup.body;
    if (!call.streams) call.body_n = setup.body_n;
    if (setup.deadline_ns != 0) call.deadline = ebb_now(cx) + setup.deadline_ns;
    return call;
}

static ebb_future *for_a_while(ebb_cx *cx, ebb_future *f) {
    return setup.cancel_ns == 0 ? f : ebb_within(cx, f, setup.cancel_ns);
}

static ebb_status fetch(ebb_cx *cx, uint32_t i) {
    ebb_http_call call = call_of(cx, i);
    ebb_value v;
    ebb_status st = ebb_await(cx, for_a_while(cx, ebb_http_fetch(cx, setup.client, &call)), &v);
    if (st != EBB_OK) return st;
    const ebb_http_response *r = ebb_http_response_of(&v);
    printf("%" PRIu32 " %d %zu %08" PRIx32 "\n", i, r->status, r->body_n, adler32(1, r->body, r->body_n));
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status write_all(ebb_cx *cx, void *arg) {
    ebb_http *x = arg;
    for (size_t at = 0; at < setup.body_n; at += PIECE) {
        size_t n = setup.body_n - at < PIECE ? setup.body_n - at : PIECE;
        ebb_status st = ebb_await(cx, ebb_http_write(cx, x, setup.body + at, n), NULL);
        if (st != EBB_OK) return EBB_OK; /* the answer says why */
    }
    (void)ebb_http_end(cx, x);
    return EBB_OK;
}

static ebb_status read_all(ebb_cx *cx, ebb_http *x, uint32_t i) {
    char bytes[PIECE];
    size_t n = 0;
    uint32_t sum = 1;
    ebb_value v;
    ebb_status st;
    while ((st = ebb_await(cx, for_a_while(cx, ebb_http_read(cx, x, bytes, sizeof bytes)), &v)) == EBB_OK) {
        n += v.as.u;
        sum = adler32(sum, bytes, v.as.u);
    }
    if (st != EBB_ERR_EOF) return st;
    printf("%" PRIu32 " %d %zu %08" PRIx32 "\n", i, ebb_http_status(x), n, sum);
    const char *trailer = ebb_http_trailer(x, "x-sum");
    if (trailer != NULL) printf("%" PRIu32 " trailer %s\n", i, trailer);
    return EBB_OK;
}

static ebb_status open_one(ebb_cx *cx, uint32_t i) {
    ebb_http_call call = call_of(cx, i);
    ebb_value v;
    ebb_status st = ebb_await(cx, for_a_while(cx, ebb_http_open(cx, setup.client, &call)), &v);
    if (st != EBB_OK) return st;
    ebb_http *x = ebb_http_of(cx, v);
    printf("%" PRIu32 " version %d\n", i, ebb_http_version(x));
    ebb_region writing = ebb_region_open(cx, NULL);
    if (call.streams) (void)ebb_fiber_spawn(cx, writing, write_all, x);
    st = read_all(cx, x, i);
    ebb_region_cancel(cx, writing, EBB_CANCEL_USER, "answered before all was written");
    (void)ebb_region_join(cx, writing);
    ebb_http_close(cx, x);
    return st;
}

static ebb_status work(ebb_cx *cx, void *arg) {
    (void)arg;
    while (setup.next < setup.urls_n * setup.times) {
        uint32_t i = setup.next++;
        ebb_status st = setup.open ? open_one(cx, i) : fetch(cx, i);
        if (st == EBB_TIMEOUT && setup.cancel_ns != 0) st = EBB_CANCELLED;
        if (st != EBB_OK) printf("%" PRIu32 " %s\n", i, ebb_status_name(st));
        fflush(stdout);
    }
    return EBB_OK;
}

static ebb_status ask(ebb_cx *cx, void *arg) {
    (void)arg;
    ebb_status st = ebb_http_client_new(cx, &setup.opts, &setup.client);
    if (st != EBB_OK) fprintf(stderr, "%s %s\n", ebb_status_name(st), ebb_http_error());
    ebb_region r = ebb_region_open(cx, NULL);
    for (uint32_t i = 0; i < setup.at_once && st == EBB_OK; i++) (void)ebb_fiber_spawn(cx, r, work, NULL);
    ebb_status joined = ebb_region_join(cx, r);
    return st == EBB_OK ? joined : st;
}

static bool option(const char *name, char **value, int *used) {
    uint64_t n = value[0] != NULL ? strtoull(value[0], NULL, 10) : 0;
    *used = 2;
    if (strcmp(name, "--ca") == 0) setup.opts.tls.ca_file = value[0];
    else if (strcmp(name, "--connections") == 0) setup.opts.connections = (uint32_t)n;
    else if (strcmp(name, "--at-once") == 0) setup.at_once = (uint32_t)n;
    else if (strcmp(name, "--times") == 0) setup.times = (uint32_t)n;
    else if (strcmp(name, "--method") == 0) setup.call.method = value[0];
    else if (strcmp(name, "--body") == 0) setup.body_n = n;
    else if (strcmp(name, "--cancel-ms") == 0) setup.cancel_ns = n * EBB_MS;
    else if (strcmp(name, "--deadline-ms") == 0) setup.deadline_ns = n * EBB_MS;
    else if (strcmp(name, "--header") == 0) {
        setup.fields[setup.call.headers_n++] = (ebb_http_field){value[0], value[1]};
        *used = 3;
    } else {
        *used = 1;
        if (strcmp(name, "--prior-knowledge") == 0) setup.opts.prior_knowledge = true;
        else if (strcmp(name, "--open") == 0) setup.open = true;
        else if (strcmp(name, "--streams") == 0) setup.open = setup.call.streams = true;
        else return false;
    }
    return true;
}

int main(int argc, char **argv) {
    int i = 1, used;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i += used) {
        if (!option(argv[i], argv + i + 1, &used)) return 2;
    }
    setup.urls = argv + i;
    setup.urls_n = (uint32_t)(argc - i);
    setup.body = malloc(setup.body_n + 1);
    if (setup.body == NULL || setup.urls_n == 0) return 2;
    memset(setup.body, 'e', setup.body_n);
    int status =
        ebb_service_run(&(ebb_service_opts){.loop.runtime.allocator = ebb_libc_allocator()}, ask, NULL);
    free(setup.body);
    return status;
}
