/* The attempts of a call: each has an event number of its own, a timer if the policy has a timeout, and a durable timer
 * before it if the policy has a pause. */
#include "durable/run.h"

bool ebb__call_may_retry(const ebb__step *s, bool final) {
    return !final && s->attempt < s->policy.attempts;
}

static uint64_t times(uint64_t pause, uint64_t n) {
    return n != 0 && pause > INT64_MAX / n ? INT64_MAX : pause * n;
}

/* The pause after `failed` attempts. */
static uint64_t pause_after(const ebb_call_opts *o, uint32_t failed) {
    uint64_t span = 0;
    switch (o->backoff) {
    case EBB_BACKOFF_NONE: return 0;
    case EBB_BACKOFF_FIXED: span = o->pause; break;
    case EBB_BACKOFF_LINEAR: span = times(o->pause, failed); break;
    case EBB_BACKOFF_EXPONENTIAL:
        span = times(o->pause, failed < 63 ? UINT64_C(1) << (failed - 1) : INT64_MAX);
        break;
    }
    return o->max_pause != 0 && span > o->max_pause ? o->max_pause : span;
}

static uint64_t timer(ebb_orch *r, ebb__step *s, uint64_t span, uint64_t of, uint64_t flag) {
    ebb__event e = {
        .kind = EBB__EVENT_TIMER_CREATED, .due = ebb__run_due(r, span), .step = of, .flags = flag};
    const uint64_t number = ebb__run_emit(r, &e, s->site);
    if (number == 0 || !ebb__run_target(r, s, number)) return 0;
    (void)ebb__run_want(r, EBB__WANT_TIMER, s, number, e.due);
    return number;
}

void ebb__call_attempt(ebb_orch *r, ebb__step *s) {
    ebb__event e = {.kind = EBB__EVENT_ACTIVITY_SCHEDULED,
                    .name = s->name,
                    .body = s->input,
                    .step = s->id,
                    .attempt = s->attempt + 1,
                    .flags = s->attempt > 0 ? EBB__FLAG_RETRIED : 0};
    if (s->policy.tag != NULL) e.tag = ebb__text_of(s->policy.tag);
    if (s->policy.session != NULL) e.session = ebb__text_of(s->policy.session);
    const uint64_t number = ebb__run_emit(r, &e, s->site);
    if (number == 0) return;
    if (s->id == 0) s->id = number;
    s->attempt++;
    s->running = number;
    if (!ebb__run_target(r, s, number)) return;
    (void)ebb__run_want(r, EBB__WANT_WORK, s, number, 0);
    if (s->policy.timeout != 0) s->deadline = timer(r, s, s->policy.timeout, number, EBB__FLAG_DEADLINE);
}

void ebb__call_again(ebb_orch *r, ebb__step *s) {
    const uint64_t pause = pause_after(&s->policy, s->attempt);
    if (s->state != EBB__STEP_OUTSTANDING) return; /* a later input of this turn has ended it */
    if (pause == 0) ebb__call_attempt(r, s);
    else s->pause = timer(r, s, pause, s->id, EBB__FLAG_BACKOFF);
}
