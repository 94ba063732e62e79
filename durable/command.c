/* Programs as activities: JSON on standard input, the result from standard output, how it went from the exit code. */
#define _GNU_SOURCE /* environ */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/opts.h"
#include "durable/run.h"
#include "durable/worker.h"

enum { LINE = 480, PIECE = 4096 };

/* What a program writes to standard error: the last bytes of it. */
typedef struct tail {
    ebb_stream from;
    char at[LINE];
    size_t n;
} tail;

static void keep_last(tail *t, const char *bytes, size_t n) {
    if (n > sizeof t->at) {
        bytes += n - sizeof t->at;
        n = sizeof t->at;
    }
    const size_t over = t->n + n > sizeof t->at ? t->n + n - sizeof t->at : 0;
    memmove(t->at, t->at + over, t->n - over);
    memcpy(t->at + t->n - over, bytes, n);
    t->n += n - over;
}

static ebb_status read_errors(ebb_cx *cx, void *arg) {
    tail *t = arg;
    char piece[PIECE];
    for (;;) {
        ebb_value v;
        ebb_status st = ebb_await(cx, ebb_stream_read(cx, t->from, piece, sizeof piece), &v);
        if (st != EBB_OK) return st == EBB_ERR_EOF ? EBB_OK : st;
        keep_last(t, piece, v.as.u);
    }
}

static const char *last_line(tail *t, char out[LINE + 1]) {
    while (t->n > 0 && (t->at[t->n - 1] == '\n' || t->at[t->n - 1] == '\r')) t->n--;
    size_t from = t->n;
    while (from > 0 && t->at[from - 1] != '\n') from--;
    memcpy(out, t->at + from, t->n - from);
    out[t->n - from] = 0;
    return out;
}

/* The result, in the memory of the activity. */
static ebb_status read_result(ebb_cx *cx, ebb_activity *a, ebb_stream from, ebb_blob *out) {
    size_t n = 0, room = PIECE;
    char *at = ebb_activity_alloc(a, room);
    while (at != NULL) {
        ebb_value v;
        ebb_status st = ebb_await(cx, ebb_stream_read(cx, from, at + n, room - n), &v);
        if (st == EBB_ERR_EOF) {
            *out = (ebb_blob){at, n};
            return EBB_OK;
        }
        if (st != EBB_OK) return st;
        n += v.as.u;
        if (n > EBB_DURABLE_PAYLOAD)
            return ebb__durable_say(EBB_ERR_LIMIT, "result of %s: more than %d bytes", ebb_activity_name(a),
                                    EBB_DURABLE_PAYLOAD);
        if (n < room) continue;
        char *wide = ebb_activity_alloc(a, 2 * room);
        if (wide != NULL) memcpy(wide, at, n);
        at = wide;
        room *= 2;
    }
    return EBB_ERR_NOMEM;
}

/* NULL: no memory. An input that is not JSON is a string; one that is no text either is left out. */
static const char *request_of(ebb_activity *a, ebb_blob in) {
    json_t *input = json_loadb(in.n != 0 ? in.at : "null", in.n != 0 ? in.n : 4, JSON_DECODE_ANY, NULL);
    if (input == NULL) input = json_stringn(in.at, in.n);
    if (input == NULL) input = json_null();
    json_t *all = json_pack("{s:o,s:s,s:I}", "input", input, "key", ebb_activity_key(a), "attempt",
                            (json_int_t)ebb_activity_attempt(a));
    char *text = all != NULL ? json_dumps(all, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    char *copy = text != NULL ? ebb_activity_alloc(a, strlen(text) + 1) : NULL;
    if (copy != NULL) memcpy(copy, text, strlen(text) + 1);
    free(text);
    json_decref(all);
    return copy;
}

static ebb_status outcome(ebb_activity *a, ebb_value exit, tail *errors) {
    char line[LINE + 1], code[32];
    const int number = ebb_process_exit_code(exit), signum = ebb_process_exit_signal(exit);
    if (number == 0 && signum == 0) return EBB_OK;
    (void)snprintf(code, sizeof code, signum != 0 ? "signal_%d" : "exit_%d", signum != 0 ? signum : number);
    const ebb_failure why = {
        .code = code, .message = last_line(errors, line), .final = signum != 0 || number != EX_TEMPFAIL};
    return ebb_activity_fail(a, &why);
}

/* The environment with TRACEPARENT, in the memory of the activity. NULL: no memory. */
static const char *const *env_with(ebb_activity *a, const char *const *env, const ebb_traceparent *t) {
    static const char name[] = "TRACEPARENT=";
    size_t n = 0, kept = 0;
    if (env == NULL) env = (const char *const *)environ;
    while (env[n] != NULL) n++;
    const char **to = ebb_activity_alloc(a, (n + 2) * sizeof *to);
    char *own = ebb_activity_alloc(a, sizeof name + EBB_TRACEPARENT_TEXT);
    if (to == NULL || own == NULL) return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(env[i], name, sizeof name - 1) != 0) to[kept++] = env[i];
    }
    memcpy(own, name, sizeof name - 1);
    ebb_traceparent_text(t, own + sizeof name - 1);
    to[kept++] = own;
    to[kept] = NULL;
    return to;
}

static void give_up(ebb_future *f) {
    (void)ebb_future_cancel(f, EBB_CANCEL_USER);
    ebb_future_drop(f);
}

/* The cancel of a wait ends the program by SIGTERM, then SIGKILL; so does the end of the activity's region. */
static ebb_status run(ebb_cx *cx, ebb_activity *a, ebb_blob in, ebb_blob *out) {
    ebb_process_opts own = *(const ebb_process_opts *)ebb_activity_arg(a), *opts = &own;
    ebb_traceparent trace;
    const char *request = request_of(a, in);
    ebb_stream io[3];
    ebb_value exit;
    tail *errors = ebb_activity_alloc(a, sizeof *errors);
    if (request == NULL || errors == NULL) return EBB_ERR_NOMEM;
    if (ebb_cx_traceparent(cx, &trace)) {
        own.env = env_with(a, own.env, &trace);
        if (own.env == NULL) return EBB_ERR_NOMEM;
    }
    const ebb_process p = ebb_process_spawn(cx, io, opts);
    ebb_status st = ebb_id_status(p.id);
    if (st != EBB_OK) return ebb__durable_say(st, "%s can't be started: %s", opts->file, ebb_status_text(st));
    errors->from = io[2];
    ebb_future *reader = ebb_fiber_go(cx, ebb_cx_region(cx), read_errors, errors);
    ebb_future *writes[] = {ebb_stream_write(cx, io[0], request, strlen(request)),
                            ebb_stream_shutdown(cx, io[0])};
    ebb_future *written = ebb_all_settled(cx, 2, writes); /* a program need not read what it gets */
    st = read_result(cx, a, io[1], out);
    if (st == EBB_OK) st = ebb_await(cx, reader, NULL);
    else give_up(reader);
    if (st == EBB_OK) st = ebb_await(cx, ebb_process_wait(cx, p), &exit);
    else give_up(ebb_process_wait(cx, p));
    if (st == EBB_OK) st = outcome(a, exit, errors);
    give_up(written);
    return st;
}

/* ---- registered ---------------------------------------------------------------------------------------------------- */

static const char *keep(ebb_worker *w, const char *text, bool *failed) {
    const size_t n = text != NULL ? strlen(text) + 1 : 0;
    char *to = n != 0 ? ebb__arena_alloc(&w->arena, n) : NULL;
    *failed |= n != 0 && to == NULL;
    if (to != NULL) memcpy(to, text, n);
    return to;
}

static const char *const *keep_all(ebb_worker *w, const char *const *texts, bool *failed) {
    size_t n = 0;
    if (texts == NULL) return NULL;
    while (texts[n] != NULL) n++;
    const char **to = ebb__arena_zero(&w->arena, (n + 1) * sizeof *to);
    *failed |= to == NULL;
    for (size_t i = 0; to != NULL && i < n; i++) to[i] = keep(w, texts[i], failed);
    return to;
}

ebb_status ebb_worker_command(ebb_worker *w, const char *name, const ebb_process_opts *process,
                              const ebb_activity_opts *opts) {
    bool failed = false;
    if (process == NULL || process->file == NULL)
        return ebb__durable_say(EBB_ERR_INVALID, "activity %s: no program", name != NULL ? name : "");
    ebb_process_opts *o = ebb__arena_zero(&w->arena, sizeof *o);
    if (o == NULL) return EBB_ERR_NOMEM;
    ebb_status st = EBB__OPTS_COPY(o, process);
    if (st != EBB_OK) return st;
    o->file = keep(w, o->file, &failed);
    o->cwd = keep(w, o->cwd, &failed);
    o->args = keep_all(w, o->args, &failed);
    o->env = keep_all(w, o->env, &failed);
    o->group = true;
    for (int i = 0; i < 3; i++) o->stdio[i] = EBB_PROCESS_STDIO_PIPE;
    return failed ? EBB_ERR_NOMEM : ebb_worker_activity(w, name, run, o, opts);
}
