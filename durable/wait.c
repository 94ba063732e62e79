/* How an orchestration waits: await, join, select. The only places where its fiber is parked. */
#include "durable/run.h"

#include <string.h>

static void remember(ebb_orch *r, ebb_status st, const ebb__step *s) {
    const ebb_failure none = {NULL, NULL, {NULL, 0}, false};
    if (st == EBB_OK) return;
    r->failure = s != NULL ? s->why : none;
    if (r->failure.code == NULL) r->failure.code = ebb_status_name(st);
    if (r->failure.message == NULL) r->failure.message = ebb_status_text(st);
}

const ebb_failure *ebb_orch_failure(const ebb_orch *r) {
    return &r->failure;
}

/* A cancel came before the code has run: its first wait returns it, and loses what it waits for. */
static bool is_untold(ebb_orch *r, size_t n, const ebb_step *steps) {
    if (!r->cancel_untold) return false;
    r->cancel_untold = false;
    for (size_t i = 0; i < n; i++) {
        ebb__step *s;
        if (ebb__step_find(r, steps[i], &s) != EBB_OK || s->state != EBB__STEP_OUTSTANDING || s->shielded)
            continue;
        ebb__step_end(r, s, r->event, EBB_CANCELLED, NULL);
        ebb__turn_cancel(r, s, EBB_CANCEL_USER);
    }
    return true;
}

static ebb_status cancelled(ebb_orch *r) {
    remember(r, EBB_CANCELLED, NULL);
    return EBB_CANCELLED;
}

static ebb__signal *signal_of(const ebb_orch *r, const ebb__step *s) {
    ebb__signal *g = s->kind == EBB__STEP_EVENT ? r->signals : NULL;
    while (g != NULL && g->taken != s) g = g->next;
    return g;
}

static void use(ebb_orch *r, ebb__step *s) {
    ebb__signal *g = signal_of(r, s);
    if (g != NULL) ebb__run_use_signal(r, g);
    s->state = EBB__STEP_USED;
    s->cancelled = false;
}

ebb_status ebb_orch_await_site(ebb_orch *r, ebb_step step, ebb_blob *out, const char *site) {
    ebb__step *s;
    (void)site;
    if (out != NULL) *out = (ebb_blob){NULL, 0};
    ebb_status st = ebb__step_find(r, step, &s);
    if (st == EBB_OK && s->state == EBB__STEP_USED) st = EBB_ERR_CONSUMED;
    if (st != EBB_OK) {
        remember(r, st, NULL);
        return st;
    }
    if (is_untold(r, 1, &step)) return cancelled(r);
    while (s->state == EBB__STEP_OUTSTANDING) ebb__run_pause(r);
    use(r, s);
    if (out != NULL && s->status == EBB_OK) *out = s->value;
    remember(r, s->status, s);
    return s->status;
}

/* ---- several ----------------------------------------------------------------------------------------------------------- */

/* EBB_OK: they may be waited for. Ids that carry an error of their making have ended with it. */
static ebb_status check(ebb_orch *r, size_t n, const ebb_step *steps) {
    ebb__step *s;
    if (n == 0) return ebb__durable_say(EBB_ERR_INVALID, "no step to wait for");
    for (size_t i = 0; i < n; i++) {
        const ebb_status st = ebb__step_find(r, steps[i], &s);
        if (st == EBB_ERR_STALE || st == EBB_ERR_FOREIGN) return st;
        if (st == EBB_OK && s->state == EBB__STEP_USED) return EBB_ERR_CONSUMED;
    }
    return EBB_OK;
}

/* One of them was cancelled with the instance, and no wait has returned that. */
static bool takes_cancel(ebb_orch *r, size_t n, const ebb_step *steps) {
    ebb__step *s;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (ebb__step_find(r, steps[i], &s) != EBB_OK || !s->cancelled) continue;
        s->cancelled = false;
        any = true;
    }
    return any;
}

static bool has_ended(const ebb_orch *r, ebb_step step) {
    ebb__step *s;
    return ebb__step_find(r, step, &s) != EBB_OK || s->state != EBB__STEP_OUTSTANDING;
}

static ebb_status first_failure(ebb_orch *r, size_t n, const ebb_step *steps) {
    ebb_status first = EBB_OK;
    uint64_t at = UINT64_MAX;
    const ebb__step *of = NULL;
    for (size_t i = 0; i < n; i++) {
        ebb__step *s;
        const ebb_status st = ebb__step_find(r, steps[i], &s);
        const ebb_status ended = st == EBB_OK ? s->status : st;
        const uint64_t when = st == EBB_OK ? s->ended_at : 0;
        if (ended == EBB_OK || (first != EBB_OK && when >= at)) continue;
        first = ended;
        at = when;
        of = s;
    }
    remember(r, first, of);
    return first;
}

ebb_status ebb_orch_join_site(ebb_orch *r, size_t n, const ebb_step *steps, const char *site) {
    (void)site;
    ebb_status st = n != 0 ? check(r, n, steps) : EBB_OK;
    if (st != EBB_OK) {
        remember(r, st, NULL);
        return st;
    }
    if (is_untold(r, n, steps)) return cancelled(r);
    bool was_cancelled = r->cancelled;
    if (takes_cancel(r, n, steps)) return cancelled(r);
    for (size_t i = 0; i < n;) {
        if (has_ended(r, steps[i])) {
            i++;
            continue;
        }
        ebb__run_pause(r);
        if (r->cancelled && !was_cancelled && takes_cancel(r, n, steps)) return cancelled(r);
        was_cancelled = r->cancelled;
    }
    if (r->cancelled && takes_cancel(r, n, steps)) return cancelled(r);
    return first_failure(r, n, steps);
}

/* The lowest event number; n: none has ended. */
static size_t winner(const ebb_orch *r, size_t n, const ebb_step *steps) {
    size_t won = n;
    uint64_t at = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        ebb__step *s;
        if (!has_ended(r, steps[i])) continue;
        const uint64_t when = ebb__step_find(r, steps[i], &s) == EBB_OK ? s->ended_at : 0;
        if (won != n && when >= at) continue;
        won = i;
        at = when;
    }
    return won;
}

static void lose(ebb_orch *r, ebb__step *s) {
    ebb__signal *g = signal_of(r, s);
    if (s->state == EBB__STEP_OUTSTANDING) {
        ebb__step_end(r, s, r->event, EBB_CANCELLED, NULL);
        ebb__turn_cancel(r, s, EBB_CANCEL_RACE_LOST);
        return;
    }
    s->status = EBB_CANCELLED;
    if (g == NULL) return;
    g->taken = NULL; /* the oldest again, by its place in the list */
    ebb__run_serve(r, s->name);
}

static void cancel_losers(ebb_orch *r, size_t n, const ebb_step *steps, size_t won) {
    ebb__step *first;
    (void)ebb__step_find(r, steps[won], &first);
    for (size_t i = 0; i < n; i++) {
        ebb__step *s;
        if (ebb__step_find(r, steps[i], &s) != EBB_OK || s == first || s->kept || s->shielded) continue;
        lose(r, s);
    }
}

ebb_status ebb_orch_select_site(ebb_orch *r, size_t n, const ebb_step *steps, size_t *won, const char *site) {
    (void)site;
    *won = 0;
    ebb_status st = check(r, n, steps);
    if (st != EBB_OK) {
        remember(r, st, NULL);
        return st;
    }
    if (is_untold(r, n, steps)) return cancelled(r);
    for (;;) {
        if (r->cancelled && takes_cancel(r, n, steps)) return cancelled(r);
        *won = winner(r, n, steps);
        if (*won < n) break;
        ebb__run_pause(r);
    }
    cancel_losers(r, n, steps, *won);
    return EBB_OK;
}
