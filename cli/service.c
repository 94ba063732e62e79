/* cli/service.c - how the services of the command begin and stop.
 *
 * Phases are shown where they begin, by on_state. The time between them is shown by the watcher, a task in the operators'
 * region: nothing waits for it, and no stop reaches it before the drain has ended. Whatever is shown is written only if it
 * can be at once: a terminal that is stopped must not hold up the stop. One that takes a byte may not take a picture, so
 * terminals are opened once more, to be written without waiting; of what is no terminal, PIPE_BUF bytes fit if one does. */
#define _DEFAULT_SOURCE /* TIOCGWINSZ */
#include "cli/service.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/notify.h"
#include "serve/line.h"
#include "workflow/workflow.h"

enum { HOLDERS = 6, CROWD = 500, BAR = 30, WIDTH = 80, WIDTH_MOST = 200, PICTURE = (HOLDERS + 2) * 256 };
#define TICK  (200 * EBB_MS)
#define SLACK (10 * EBB_SECOND) /* of the service manager, beyond the budget: for the finalizers */

/* ---- text -------------------------------------------------------------------------------------------- */

typedef struct text {
    char at[PICTURE];
    size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void say(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at + t->n, sizeof t->at - t->n, format, args);
    va_end(args);
    t->n += n < 0 ? 0 : (size_t)n < sizeof t->at - t->n ? (size_t)n : sizeof t->at - t->n - 1;
}

_Static_assert(PICTURE <= PIPE_BUF, "a pipe takes all of it, or none");

static bool would_wait(void) {
    struct pollfd at = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&at, 1, 0) != 1 || (at.revents & POLLOUT) == 0;
}

/* `rows`: of the picture at its end. */
static void show(ebb__cli_service *s, const text *t, uint32_t rows) {
    if (!s->terminal && would_wait()) return;
    const ssize_t n = write(s->terminal ? s->screen : STDERR_FILENO, t->at, t->n);
    if (n >= 0) s->rows = (size_t)n == t->n ? rows : 0; /* a picture that was cut stays where it is */
}

/* Takes the picture from the screen; the cursor is below it. */
static void erase(const ebb__cli_service *s, text *t) {
    if (s->rows > 0) say(t, "\x1b[%" PRIu32 "A\r\x1b[J", s->rows);
}

/* Tenths of a second, rounded down. */
static const char *seconds(char out[32], uint64_t ns) {
    (void)snprintf(out, 32, "%" PRIu64 ".%" PRIu64 " s", ns / EBB_SECOND, ns / (EBB_SECOND / 10) % 10);
    return out;
}

/* ---- the picture of a drain ---------------------------------------------------------------------------- */

static size_t width(void) {
    struct winsize w;
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0;
    return !known ? WIDTH : w.ws_col < WIDTH_MOST ? w.ws_col : WIDTH_MOST;
}

/* The lines of an explanation after its title. */
typedef struct holders {
    text *to;
    size_t width;
    char line[WIDTH_MOST + 1];
    size_t n, lines;
} holders;

static void end_line(holders *h) {
    h->line[h->n < h->width ? h->n : h->width - 1] = 0; /* a line that wraps would have two rows */
    ebb__make_plain(h->line);
    if (h->lines > 0 && h->lines <= HOLDERS) say(h->to, "%s\n", h->line);
    h->lines++;
    h->n = 0;
}

static void write_holders(void *ctx, const char *at, size_t n) {
    holders *h = ctx;
    for (size_t i = 0; i < n; i++) {
        if (at[i] == '\n') end_line(h);
        else if (h->n < WIDTH_MOST) h->line[h->n++] = at[i];
    }
}

/* Returns the number of lines. Of a crowd only the number is worth the walk. */
static uint32_t say_holders(ebb__cli_service *s, ebb_cx *cx, text *t, uint64_t in_flight) {
    holders h = {.to = t, .width = width()};
    if (in_flight > CROWD) return 0;
    (void)ebb_workflow_explain(cx, s->shutdown, write_holders, &h);
    const size_t n = h.lines > 0 ? h.lines - 1 : 0;
    if (n > HOLDERS) say(t, "  and %zu more\n", n - HOLDERS);
    return (uint32_t)(n > HOLDERS ? HOLDERS + 1 : n);
}

static uint64_t in_flight_of(const ebb__cli_service *s) {
    ebb__wf *wf = NULL;
    return ebb__wf_find(ebb_runtime_host(s->rt), s->shutdown, &wf) == EBB_OK ? ebb__wf_in_flight(wf) : 0;
}

/* A row of the screen: one that wraps would be two. */
static void say_bar(text *t, const ebb_workflow_report *now, uint64_t in_flight) {
    static const char empty[BAR + 1] = "..............................",
                                  full[BAR + 1] = "##############################";
    char rest[128], line[BAR + 256], elapsed[32], budget[32];
    const int left = (int)width() - 1;
    int n = snprintf(rest, sizeof rest, "%s of %s, %" PRIu64 " in flight%s", seconds(elapsed, now->elapsed),
                     seconds(budget, now->budget), in_flight, now->cancelled ? ", cancelled" : "");
    n = left - n - (int)strlen("drain [] ");
    const int cells = n < 0 ? 0 : n < BAR ? n : BAR;
    const uint64_t part =
        now->elapsed < now->budget ? now->elapsed * (uint64_t)cells / now->budget : (uint64_t)cells;
    (void)snprintf(line, sizeof line, "drain [%.*s%.*s] %s", (int)part, full, cells - (int)part, empty, rest);
    say(t, "%.*s\n", left, line);
}

static void draw(ebb__cli_service *s, ebb_cx *cx, const ebb_workflow_report *now) {
    text t = {.n = 0};
    const uint64_t in_flight = in_flight_of(s);
    erase(s, &t);
    say_bar(&t, now, in_flight);
    const uint32_t rows = 1 + say_holders(s, cx, &t, in_flight);
    show(s, &t, rows);
}

/* ---- the watcher --------------------------------------------------------------------------------------- */

static void tell_extended(ebb__cli_service *s, const ebb_workflow_report *now) {
    if (now->budget > s->budget && s->budget != 0)
        ebb__notify("EXTEND_TIMEOUT_USEC=%" PRIu64 "\nSTATUS=Draining, extended by an operator",
                    (now->budget - now->elapsed + SLACK) / EBB_US);
    s->budget = now->budget;
}

/* Woken by on_state and by its timer. */
static ebb_status watch(ebb_cx *cx, void *arg) {
    ebb__cli_service *s = arg;
    ebb_workflow_report now;
    const ebb_status st = ebb_workflow_report_of(cx, s->shutdown, &now);
    if (st != EBB_OK || now.state > EBB_WORKFLOW_DRAINING) {
        (void)ebb_timer_disarm(cx, s->tick);
        return EBB_OK;
    }
    if (now.state != EBB_WORKFLOW_DRAINING || ebb_now(cx) < s->next) return EBB_PENDING;
    tell_extended(s, &now);
    if (s->terminal) draw(s, cx, &now);
    s->next = ebb_now(cx) + TICK;
    s->tick = ebb_timer_arm(cx, ebb_cx_task(cx), s->next);
    return EBB_PENDING;
}

/* ---- phases -------------------------------------------------------------------------------------------- */

static void say_drained(text *t, const ebb_workflow_report *now) {
    char elapsed[32];
    seconds(elapsed, now->elapsed);
    if (now->drain_timed_out) say(t, "finalize: forced after %s", elapsed);
    else
        say(t, "finalize: drained after %s%s", elapsed,
            now->cancelled ? ", what was late was cancelled" : "");
}

/* One line for each phase. False: the phase has none. */
static bool say_phase(const ebb__cli_service *s, text *t, const ebb_workflow_report *now) {
    char span[32];
    switch (now->state) {
    case EBB_WORKFLOW_CANCEL_REQUESTED: say(t, "request: %s", now->reason.message); break;
    case EBB_WORKFLOW_DRAINING:
        say(t, "drain: %" PRIu64 " in flight, at most %s", in_flight_of(s), seconds(span, now->budget));
        break;
    case EBB_WORKFLOW_FINALIZING: say_drained(t, now); break;
    case EBB_WORKFLOW_FINALIZED:
        say(t, "end: %s after %s", now->drain_timed_out ? "nothing left behind" : "in order",
            seconds(span, now->elapsed));
        break;
    case EBB_WORKFLOW_LEAK_DETECTED:
        say(t, "end: %" PRIu32 " left behind after %s", now->leaks, seconds(span, now->elapsed));
        break;
    default: return false;
    }
    return true;
}

static void on_state(void *arg, ebb_workflow wf, ebb_workflow_state from, ebb_workflow_state to) {
    ebb__cli_service *s = arg;
    ebb_workflow_report now;
    text line = {.n = 0}, t = {.n = 0};
    if (!s->begun || ebb_workflow_report_of(ebb_runtime_host(s->rt), wf, &now) != EBB_OK) return;
    if (s->watcher.id != 0) (void)ebb_task_wake(ebb_runtime_host(s->rt), s->watcher);
    if (!say_phase(s, &line, &now)) return;
    ebb__make_plain(line.at);
    ebb__notify("%sSTATUS=%s", from == EBB_WORKFLOW_IDLE ? "STOPPING=1\n" : "", line.at);
    erase(s, &t);
    if (!s->terminal || to != EBB_WORKFLOW_DRAINING) say(&t, "ebb: %s\n", line.at); /* the bar says it */
    show(s, &t, 0);
}

/* ---- one run --------------------------------------------------------------------------------------------- */

/* Without memory for the watcher, a drain is not shown. */
static ebb_status first(ebb_cx *cx, void *arg) {
    ebb__cli_service *s = arg;
    s->rt = ebb_cx_runtime(cx);
    s->shutdown = ebb_workflow_of(cx);
    if (s->terminal || ebb__notify_is_wanted()) {
        const ebb_task t = ebb_spawn(cx, ebb_workflow_operator_region(cx, s->shutdown), watch, s);
        if (ebb_id_status(t.id) == EBB_OK) s->watcher = t;
    }
    return s->fn(cx, s->arg);
}

/* -1: stderr is no terminal, or one that this process may not open. */
static int open_screen(void) {
    if (!isatty(STDERR_FILENO)) return -1;
    return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int ebb__cli_service_run(ebb__cli_service *s, const ebb_service_opts *opts, ebb_fiber_fn fn, void *arg) {
    ebb_service_opts o = *opts;
    *s = (ebb__cli_service){.screen = open_screen(), .fn = fn, .arg = arg};
    s->terminal = s->screen >= 0;
    o.shutdown.on_state = on_state;
    o.shutdown.arg = s;
    const int code = ebb_service_run(&o, first, s);
    if (s->terminal) (void)close(s->screen);
    return code;
}

void ebb__cli_service_begin(ebb__cli_service *s, const char *what) {
    s->begun = true;
    ebb__notify("READY=1\nSTATUS=%s", what);
}
