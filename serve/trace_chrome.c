/* A capture in the format of Chrome and Perfetto, as it is read: so many lines at a time are put into a text, which is sent
 * before the next. What is needed for it is freed by a finalizer, also if the handler is forced. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "serve/chrome.h"
#include "serve/serve.h"

enum { LINES = 500, PIECE = 65536 };

typedef struct export {
    ebb__dashboard *dash;
    FILE *out; /* writes to `text` */
    char *text;
    size_t n;
    ebb__story story;
    ebb_trace_reader reader;
    ebb__line line;
}
export;

static ebb_status export_free(ebb_cx *cx, void *arg) {
    export *e = arg;
    (void)cx;
    e->dash->capture.readers--;
    if (e->out != NULL) ebb__picture_end(e->out, &e->story);
    if (e->out != NULL) (void)fclose(e->out);
    free(e->text);
    ebb__story_end(&e->story);
    ebb__free(e->dash->allocator, e, sizeof *e);
    return EBB_OK;
}

/* NULL: no memory. It is freed when the handler has ended. */
static export *export_new(ebb__ask *a, ebb_status *st) {
    ebb__dashboard *d = a->dash;
    export *e = ebb__alloc(d->allocator, sizeof *e);
    *st = EBB_ERR_NOMEM;
    if (e == NULL) return NULL;
    memset(e, 0, sizeof *e);
    e->dash = d;
    ebb__story_begin(&e->story, 0, *d->allocator);
    d->capture.readers++;
    *st = ebb_defer(a->cx, export_free, e);
    if (*st != EBB_OK) {
        (void)export_free(a->cx, e);
        return NULL;
    }
    e->out = open_memstream(&e->text, &e->n);
    if (e->out == NULL) *st = EBB_ERR_NOMEM;
    return e;
}

/* What was put into the text. Its bytes are sent from the exchange's memory: a write may outlive this handler. */
static ebb_status send(ebb__ask *a, export *e, char *piece) {
    ebb_status st = fflush(e->out) == 0 ? EBB_OK : EBB_ERR_NOMEM;
    for (size_t at = 0; at < e->n && st == EBB_OK; at += PIECE) {
        const size_t n = e->n - at < PIECE ? e->n - at : PIECE;
        memcpy(piece, e->text + at, n);
        st = ebb_await(a->cx, ebb_http_write(a->cx, a->x, piece, n), NULL);
    }
    rewind(e->out);
    return st;
}

static ebb_status send_all(ebb__ask *a, export *e, char *piece) {
    ebb_status st = EBB_OK, read = EBB_OK;
    ebb__chrome(e->out, &e->story, NULL, true);
    while (read == EBB_OK && st == EBB_OK) {
        for (size_t i = 0; i < LINES && (read = ebb__line_next(&e->reader, &e->line)) == EBB_OK; i++)
            ebb__chrome(e->out, &e->story, &e->line, false);
        if (read != EBB_OK) ebb__chrome(e->out, &e->story, NULL, false);
        st = send(a, e, piece);
    }
    return st;
}

ebb_status ebb__serve_trace_chrome(ebb__ask *a) {
    ebb__capture *c = &a->dash->capture;
    ebb_status st;
    if (c->running)
        return ebb__answer_refusal(a, 409, "is_recording", "the capture is being recorded: stop it");
    if (c->bytes == NULL) return ebb__answer_refusal(a, 404, "no_trace", "no capture was started");
    char *piece = ebb_http_alloc(a->x, PIECE);
    export *e = piece != NULL ? export_new(a, &st) : NULL;
    if (e == NULL || st != EBB_OK) return ebb__answer_failure(a, piece != NULL ? st : EBB_ERR_NOMEM, NULL);
    st = ebb_trace_reader_open(&e->reader, c->bytes, c->n);
    if (st != EBB_OK) return ebb__answer_failure(a, st, NULL);
    ebb__story_end(&e->story);
    ebb__story_begin(&e->story, e->reader.runtime_id, *a->dash->allocator);
    e->story.first_file = e->story.last_file = true;
    st = ebb_http_set_header(a->x, "content-type", "application/json");
    if (st == EBB_OK) st = ebb_http_start(a->cx, a->x, 200);
    return st == EBB_OK ? send_all(a, e, piece) : st;
}
