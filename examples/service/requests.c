/* What can be asked of the service, one line each:
 *
 *   work MS         "done" after so long
 *   health          the last evaluation that was good
 *   rollout NAME, publish NAME, epoch      how it ended, when it has
 *   cancel NAME     calls one of these off
 *   stuck           never answers, and does not hear a cancel: for tests of force */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

/* ---- answers ----------------------------------------------------------------------------------------- */

/* Masked: a cancel waits until the answer is out. */
ebb_status say(ebb_cx *cx, ebb_stream to, const char *format, ...) {
    char text[LINE_BYTES + 64];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    if (n < 0) return EBB_FAILED;
    size_t length = (size_t)n < sizeof text - 2 ? (size_t)n : sizeof text - 2;
    text[length++] = '\n';
    (void)ebb_mask(cx);
    ebb_status st = ebb_await(cx, ebb_stream_write(cx, to, text, length), NULL);
    (void)ebb_unmask(cx);
    return st;
}

ebb_status say_closed(ebb_cx *cx, service *s, ebb_stream to) {
    char why[LINE_BYTES];
    (void)ebb_region_closed_text(cx, s->region, why, sizeof why);
    return say(cx, to, "closed: %s", why);
}

/* ---- requests ---------------------------------------------------------------------------------------- */

static ebb_status do_work(ebb_cx *cx, service *s, ebb_stream to, const char *argument) {
    ebb_sleeper nap = {0};
    char *end;
    (void)s;
    unsigned long ms = strtoul(argument, &end, 10);
    if (end == argument || *end != 0 || ms > 3600000)
        return say(cx, to, "error: work '%s': expected milliseconds, 0 to 3600000", argument);
    ebb_status st = ebb_sleep(cx, &nap, ms * EBB_MS);
    return say(cx, to, st == EBB_OK ? "done" : "cancelled");
}

static ebb_status do_health(ebb_cx *cx, service *s, ebb_stream to, const char *argument) {
    char text[80];
    (void)argument;
    health_last_known_good(&s->health, text, sizeof text);
    return say(cx, to, "last known good: %s", text);
}

static ebb_status run_operation(ebb_cx *cx, service *s, ebb_stream to, const operation_kind *kind,
                                const char *name) {
    operation *op;
    ebb_workflow_report report;
    char state[80];
    if (name[0] == 0 || strlen(name) >= NAME_MAX_BYTES)
        return say(cx, to, "error: %s: expected a name of 1 to %d bytes", kind->name, NAME_MAX_BYTES - 1);
    if (operation_find(s, name) != NULL)
        return say(cx, to, "error: %s %s: there is one of that name already", kind->name, name);
    ebb_status st = operation_begin(cx, s, kind, name, &op);
    if (st == EBB_ERR_CLOSED) return say_closed(cx, s, to);
    if (st != EBB_OK) return say(cx, to, "error: %s %s: %s", kind->name, name, ebb_status_text(st));
    st = operation_join(cx, op, &report);
    operation_state(op, state, sizeof state);
    return say(cx, to, "%s %s: %s%s%s", kind->name, name, state, st == EBB_OK ? "" : ", ",
               st == EBB_OK ? "" : ebb_status_text(st));
}

static ebb_status do_rollout(ebb_cx *cx, service *s, ebb_stream to, const char *name) {
    return run_operation(cx, s, to, &rollout, name);
}

static ebb_status do_publish(ebb_cx *cx, service *s, ebb_stream to, const char *name) {
    return run_operation(cx, s, to, &publish, name);
}

static ebb_status do_epoch(ebb_cx *cx, service *s, ebb_stream to, const char *argument) {
    char name[NAME_MAX_BYTES];
    (void)argument;
    snprintf(name, sizeof name, "epoch-%" PRIu64, s->epoch + 1);
    return run_operation(cx, s, to, &epoch_transition, name);
}

static ebb_status do_cancel(ebb_cx *cx, service *s, ebb_stream to, const char *name) {
    operation *op = operation_find(s, name);
    if (op == NULL) return say(cx, to, "error: cancel: nothing of the name '%s' runs", name);
    ebb_status st = ebb_workflow_request(cx, op->workflow, EBB_CANCEL_USER, "called off");
    return say(cx, to, "cancel %s: %s", name, ebb_status_text(st));
}

static ebb_status do_stuck(ebb_cx *cx, service *s, ebb_stream to, const char *argument) {
    (void)s;
    (void)argument;
    (void)say(cx, to, "stuck");
    while (ebb_fiber_park(cx) == EBB_OK) {} /* is woken by a cancel, and does not look */
    return EBB_FAILED;
}

ebb_status request_answer(ebb_cx *cx, service *s, ebb_stream to, char *line) {
    static const struct {
        const char *verb;
        ebb_status (*run)(ebb_cx *cx, service *s, ebb_stream to, const char *argument);
    } verbs[] = {{"work", do_work},   {"health", do_health}, {"rollout", do_rollout}, {"publish", do_publish},
                 {"epoch", do_epoch}, {"cancel", do_cancel}, {"stuck", do_stuck}};
    size_t n = strcspn(line, " ");
    const char *argument = line[n] == 0 ? "" : line + n + 1;
    line[n] = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(line, verbs[i].verb) == 0) return verbs[i].run(cx, s, to, argument);
    }
    return say(cx, to, "error: '%s': expected work, health, rollout, publish, epoch, cancel or stuck", line);
}
