/* A crawler: fetches a page and all that it leads to on the same server, at most four at a time and a hundred in all.
 *
 *   build/release/examples/crawler http://127.0.0.1:8080/
 *
 * Each page is a fiber of one region, and so is each page that it finds: the join waits for all of them. Ctrl-C ends
 * the crawl when the pages under way are there. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>

enum { AT_ONCE = 4, PAGES = 100, URL_BYTES = 512 };

typedef struct crawler {
    ebb_http_client *client;
    ebb_region pages;
    ebb_sem slots;
    char origin[URL_BYTES]; /* "http://127.0.0.1:8080" */
    int seen, left_out;
    char url[PAGES][URL_BYTES]; /* the seen ones */
} crawler;

static crawler c;

static ebb_status visit(ebb_cx *cx, void *url);

/* Visits a path of the server, unless it was seen before. */
static void visit_once(ebb_cx *cx, const char *path, size_t n) {
    char url[URL_BYTES];
    bool fits = snprintf(url, sizeof url, "%s%.*s", c.origin, (int)n, path) < URL_BYTES;
    for (int i = 0; fits && i < c.seen; i++)
        if (strcmp(c.url[i], url) == 0) return;
    if (!fits || c.seen == PAGES) {
        c.left_out++;
        return;
    }
    memcpy(c.url[c.seen], url, sizeof url);
    ebb_fiber_spawn(cx, c.pages, visit, c.url[c.seen++]);
}

static void follow(ebb_cx *cx, const char *page) {
    static const char mark[] = "href=\"/";
    while ((page = strstr(page, mark)) != NULL) {
        page += sizeof mark - 2; /* at the '/' */
        visit_once(cx, page, strcspn(page, "\"#"));
    }
}

static ebb_status fetch(ebb_cx *cx, const char *url) {
    ebb_http_call call = {.url = url, .deadline = ebb_now(cx) + 10 * EBB_SECOND};
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_http_fetch(cx, c.client, &call), &v);
    if (st != EBB_OK) return st;
    const ebb_http_response *r = ebb_http_response_of(&v);
    printf("%d %s\n", r->status, url);
    if (r->status == 200) follow(cx, r->body);
    ebb_value_discard(cx, v);
    return EBB_OK;
}

static ebb_status visit(ebb_cx *cx, void *url) {
    ebb_wait turn = {0};
    ebb_status st = ebb_sem_acquire(cx, &c.slots, &turn);
    if (st != EBB_OK) return st;
    st = fetch(cx, url);
    ebb_sem_release(cx, &c.slots);
    if (st == EBB_OK || st == EBB_CANCELLED) return st;
    printf("%s: %s\n", (const char *)url, ebb_status_text(st));
    return EBB_OK; /* a page that does not come does not end the others */
}

static ebb_status crawl(ebb_cx *cx, void *arg) {
    const char *url = arg, *host = strstr(url, "://");
    const char *path = host == NULL ? NULL : strchr(host + 3, '/');
    if (path == NULL || strlen(url) >= URL_BYTES) return EBB_ERR_INVALID;
    memcpy(c.origin, url, (size_t)(path - url));
    ebb_sem_init(&c.slots, AT_ONCE);
    ebb_status st = ebb_http_client_new(cx, NULL, &c.client);
    if (st != EBB_OK) return st;
    c.pages = ebb_region_open(cx, NULL);
    visit_once(cx, path, strlen(path));
    st = ebb_region_join(cx, c.pages);
    printf("%d pages, %d links left out\n", c.seen, c.left_out);
    return st;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: crawler http://HOST/PATH\n");
        return 2;
    }
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_libc_allocator()};
    return ebb_service_run(&opts, crawl, argv[1]);
}
