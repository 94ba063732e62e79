/* The examples in the lab, each with clients, as they are: their files are compiled with another name for `main`.
 *
 *   lab_stories list | run STORY | explore STORY | inject STORY | replay FILE */
#include <ebb/ebb.h>
#include <ebb/lab.h>
#include <stdio.h>
#include <string.h>

enum { BODY = 40000, URL = 80, GUESTS = 2, LINES = 3, PATIENCE_S = 20 };

int web_main(int argc, char **argv);
int proxy_main(int argc, char **argv);
int upload_main(int argc, char **argv);
int service_main(int argc, char **argv);
int chat_main(int argc, char **argv);

/* An error is a bug unless something has disturbed the run. */
static bool is_fine(ebb_status st, const char *what) {
    char text[120];
    if (st == EBB_OK || ebb_lab_disturbed(ebb_lab_here())) return st == EBB_OK;
    snprintf(text, sizeof text, "%s: %s", what, ebb_status_name(st));
    ebb_lab_fail(ebb_lab_here(), text);
    return false;
}

static void must(bool holds, const char *what) {
    if (!holds) ebb_lab_fail(ebb_lab_here(), what);
}

/* ---- HTTP ---------------------------------------------------------------------------------------------- */

typedef struct browser {
    const char *origin;
    bool h2;
} browser;

/* One call. A whole response must be the right one, whatever has happened. */
static bool ask(ebb_cx *cx, ebb_http_client *c, const ebb_http_call *call, int status, const char *body,
                size_t n) {
    ebb_http_call bounded = *call;
    ebb_value v;
    bounded.deadline = ebb_now(cx) + PATIENCE_S * EBB_SECOND;
    if (!is_fine(ebb_await(cx, ebb_http_fetch(cx, c, &bounded), &v), call->url)) return false;
    const ebb_http_response *r = ebb_http_response_of(&v);
    bool right = r->status == status;
    must(right || ebb_lab_disturbed(ebb_lab_here()), "another status than expected");
    if (right) must(r->body_n == n && memcmp(r->body, body, n) == 0, "another body than expected");
    ebb_value_discard(cx, v);
    return right;
}

static ebb_status client_of(ebb_cx *cx, const browser *b, ebb_http_client **out) {
    return ebb_http_client_new(cx, &(ebb_http_client_opts){.prior_knowledge = b->h2}, out);
}

static ebb_status browse_web(ebb_cx *cx, void *arg) {
    const browser *b = arg;
    ebb_http_client *c;
    char url[URL];
    if (!is_fine(client_of(cx, b, &c), "client")) return EBB_OK;
    snprintf(url, sizeof url, "%s/", b->origin);
    (void)ask(cx, c, &(ebb_http_call){.url = url}, 200, "hello, world\n", 13);
    snprintf(url, sizeof url, "%s/ebb", b->origin);
    (void)ask(cx, c, &(ebb_http_call){.url = url}, 200, "hello, ebb\n", 11);
    return EBB_OK;
}

/* Sends a file up, and gets it back. Both ways it is longer than any buffer on the way. */
static ebb_status browse_files(ebb_cx *cx, void *arg) {
    const browser *b = arg;
    ebb_http_client *c;
    static char body[BODY]; /* the same for all */
    char url[URL];
    if (!is_fine(client_of(cx, b, &c), "client")) return EBB_OK;
    for (size_t i = 0; i < BODY; i++) body[i] = (char)('a' + i % 23);
    snprintf(url, sizeof url, "%s/files/%s", b->origin, b->h2 ? "two" : "one");
    ebb_http_call post = {.method = "POST", .url = url, .body = body, .body_n = BODY};
    if (ask(cx, c, &post, 201, "kept\n", 5)) (void)ask(cx, c, &(ebb_http_call){.url = url}, 200, body, BODY);
    return EBB_OK;
}

static browser web_h1 = {"http://127.0.0.1:8080", false}, web_h2 = {"http://localhost:8080", true};
static browser files_h1 = {"http://127.0.0.1:8082", false}, files_h2 = {"http://localhost:8082", true};
static browser proxy_h1 = {"http://127.0.0.1:8081", false}, proxy_h2 = {"http://localhost:8081", true};
static const char *const web_args[] = {"8080", NULL}, *const upload_args[] = {"8082", ".", NULL},
                         *const proxy_args[] = {"8081", "http://127.0.0.1:8082", NULL};

static const ebb_lab_program web_programs[] = {{.name = "web", .main = web_main, .args = web_args},
                                               {.name = "h1", .fn = browse_web, .arg = &web_h1},
                                               {.name = "h2", .fn = browse_web, .arg = &web_h2}},
                             upload_programs[] = {{.name = "upload",
                                                   .main = upload_main,
                                                   .args = upload_args},
                                                  {.name = "h1", .fn = browse_files, .arg = &files_h1},
                                                  {.name = "h2", .fn = browse_files, .arg = &files_h2}},
                             proxy_programs[] = {{.name = "upload", .main = upload_main, .args = upload_args},
                                                 {.name = "proxy", .main = proxy_main, .args = proxy_args},
                                                 {.name = "h1", .fn = browse_files, .arg = &proxy_h1},
                                                 {.name = "h2", .fn = browse_files, .arg = &proxy_h2}};

/* A file has its name only when it is whole, and nothing temporary is left. */
static void check_files(ebb_lab *lab) {
    const char *const names[] = {"one", "two"};
    for (int i = 0; i < 2; i++) {
        size_t n;
        const char *bytes = ebb_lab_file_get(lab, "upload", names[i], &n);
        if (bytes != NULL && n != BODY) ebb_lab_fail(lab, "half of a file is left");
        if (bytes == NULL && !ebb_lab_disturbed(lab)) ebb_lab_fail(lab, "a file is lost");
    }
}

/* ---- the chat ------------------------------------------------------------------------------------------ */

/* Says its lines and hears those of the other. Lines must come whole and in order. */
static ebb_status guest(ebb_cx *cx, void *arg) {
    const char *name = arg;
    char out[16], in[64];
    int heard = 0;
    ebb_value v;
    if (!is_fine(ebb_await(cx, ebb_tcp_connect(cx, &(ebb_address){"127.0.0.1", 7000}), &v), "connect"))
        return EBB_OK;
    ebb_stream s = ebb_stream_of(v);
    for (int i = 0; i < LINES; i++) {
        int n = snprintf(out, sizeof out, "%s %d\n", name, i);
        if (!is_fine(ebb_await(cx, ebb_stream_write(cx, s, out, (size_t)n), NULL), "say")) return EBB_OK;
        ebb_future *read = ebb_within(cx, ebb_stream_read(cx, s, in, sizeof in), EBB_SECOND);
        ebb_status st = ebb_await(cx, read, &v);
        if (st == EBB_TIMEOUT) continue; /* the other has not come, or has left */
        if (!is_fine(st == EBB_ERR_EOF ? EBB_OK : st, "hear") || st != EBB_OK) return EBB_OK;
        for (uint64_t k = 0; k < v.as.u; k++) heard += in[k] == '\n';
        must(heard <= LINES, "more lines than were said");
    }
    return EBB_OK;
}

static const char *const chat_args[] = {"7000", NULL};
static char anna[] = "anna", bert[] = "bert";
static const ebb_lab_program chat_programs[] = {{.name = "chat", .main = chat_main, .args = chat_args},
                                                {.name = "anna", .fn = guest, .arg = anna},
                                                {.name = "bert", .fn = guest, .arg = bert}};

/* ---- the service --------------------------------------------------------------------------------------- */

/* Asks for health and for work, a line each, and reads what comes until the end. */
static ebb_status operator(ebb_cx *cx, void *arg) {
    static const char lines[] = "health\nwork 20\nrollout v42\n";
    char in[256];
    size_t got = 0;
    ebb_value v;
    (void)arg;
    if (!is_fine(ebb_await(cx, ebb_tcp_connect(cx, &(ebb_address){"127.0.0.1", 7000}), &v), "connect"))
        return EBB_OK;
    ebb_stream s = ebb_stream_of(v);
    if (!is_fine(ebb_await(cx, ebb_stream_write(cx, s, lines, sizeof lines - 1), NULL), "ask")) return EBB_OK;
    if (!is_fine(ebb_await(cx, ebb_stream_shutdown(cx, s), NULL), "shutdown")) return EBB_OK;
    ebb_status st;
    do {
        st =
            ebb_await(cx, ebb_within(cx, ebb_stream_read(cx, s, in, sizeof in), PATIENCE_S * EBB_SECOND), &v);
        if (st == EBB_OK) got += v.as.u;
    } while (st == EBB_OK);
    if (is_fine(st == EBB_ERR_EOF ? EBB_OK : st, "answers"))
        must(got > 0 || ebb_lab_disturbed(ebb_lab_here()), "no answer");
    return EBB_OK;
}

static const char *const service_args[] = {"--port", "7000", NULL};
static const ebb_lab_program service_programs[] = {
    {.name = "service", .main = service_main, .args = service_args}, {.name = "operator", .fn = operator} };

/* ---- all ------------------------------------------------------------------------------------------------ */

enum { PROGRAMS_OF_PAIR = 2, PROGRAMS_OF_TRIO = 3, PROGRAMS_OF_PROXY = 4 };

#define FAULTS .resets = 2, .refusals = 1, .losses = 3, .partitions = 1, .name_errors = 1, .accept_errors = 2

static const ebb_lab_network
    web_net = {.programs = web_programs, .n = PROGRAMS_OF_TRIO},
    web_faulty = {.programs = web_programs, .n = PROGRAMS_OF_TRIO, FAULTS},
    upload_net = {.programs = upload_programs, .n = PROGRAMS_OF_TRIO},
    upload_faulty = {.programs = upload_programs, .n = PROGRAMS_OF_TRIO, .file_errors = 2, FAULTS},
    upload_full = {.programs = upload_programs,
                   .n = PROGRAMS_OF_TRIO,
                   .disk_bytes = BODY / 2,
                   .file_errors = 1},
    proxy_net = {.programs = proxy_programs, .n = PROGRAMS_OF_PROXY},
    proxy_faulty = {.programs = proxy_programs, .n = PROGRAMS_OF_PROXY, .file_errors = 2, FAULTS},
    chat_net = {.programs = chat_programs, .n = PROGRAMS_OF_TRIO},
    chat_faulty = {.programs = chat_programs, .n = PROGRAMS_OF_TRIO, FAULTS},
    service_net = {.programs = service_programs, .n = PROGRAMS_OF_PAIR, .forks = true},
    service_faulty = {.programs = service_programs, .n = PROGRAMS_OF_PAIR, .forks = true, FAULTS};

#define STORY(id, text, net, check_fn)                                                                       \
    static const ebb_lab_scenario id = {                                                                     \
        .name = #id, .about = text, .check = (check_fn), .play = ebb_lab_network_play, .network = &(net)}

STORY(web, "examples/web.c with two browsers", web_net, NULL);
STORY(web_faults, "the same, with faults", web_faulty, NULL);
STORY(upload, "examples/upload.c with two browsers", upload_net, check_files);
STORY(upload_faults, "the same, with faults", upload_faulty, check_files);
STORY(upload_full_disk, "the same, on a disk that is full", upload_full, check_files);
STORY(proxy, "examples/proxy.c before examples/upload.c with two browsers", proxy_net, check_files);
STORY(proxy_faults, "the same, with faults", proxy_faulty, check_files);
STORY(chat, "examples/chat.c with two guests", chat_net, NULL);
STORY(chat_faults, "the same, with faults", chat_faulty, NULL);
STORY(service, "examples/service with an operator", service_net, NULL);
STORY(service_faults, "the same, with faults", service_faulty, NULL);

int main(int argc, char **argv) {
    static const ebb_lab_scenario *const all[] = {
        &web,          &web_faults, &upload,      &upload_faults, &upload_full_disk, &proxy,
        &proxy_faults, &chat,       &chat_faults, &service,       &service_faults,   NULL};
    return ebb_lab_main(ebb_libc_allocator(), argc, argv, all);
}
