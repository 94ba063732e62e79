/* retry: attempts with pauses between them, one input at a time. */
#include "base/opts.h"
#include "future/many.h"
#include "future/then.h"

/* EBB__F_STEP: the input is a pause, not an attempt. Every attempt is made in the pump, also the first. */
typedef struct retry {
    ebb__single single;
    ebb_attempt_fn make;
    ebb_retry_opts opts; /* `pause` is the next pause */
    uint32_t made;       /* attempts so far */
} retry;

static void attempt(ebb__region_futures *s, retry *r, ebb__edge *e) {
    ebb_future *f = &r->single.future;
    f->flags = (uint16_t)(f->flags & ~EBB__F_STEP);
    ebb_future *made = r->make(s->cx, r->made++, r->single.arg);
    if (made == NULL) (void)ebb__fail_with(f, EBB_ERR_INVALID);
    else ebb__become(f, e, made);
}

static uint64_t longer(const ebb_retry_opts *o) {
    uint64_t most = o->max_pause != 0 && o->max_pause < INT64_MAX ? o->max_pause : INT64_MAX;
    return o->pause > most / o->factor ? most : o->pause * o->factor;
}

static void sleep_first(ebb__region_futures *s, retry *r, ebb__edge *e) {
    ebb_future *f = &r->single.future;
    f->flags |= EBB__F_STEP;
    ebb__become(f, e, ebb_after_site(s->cx, r->opts.pause, f->site));
    r->opts.pause = longer(&r->opts);
}

/* The first input is a placeholder, not an attempt. */
static bool wants_another(const retry *r, const ebb_future *attempt_of) {
    bool asks = r->made > 0 && r->opts.again != NULL;
    return !asks || r->opts.again(ebb__status_of(attempt_of), r->single.arg);
}

static void retry_ended(ebb__region_futures *s, ebb_future *f, ebb__edge *e) {
    retry *r = (retry *)(void *)f;
    ebb_future *input = ebb__edge_input(e);
    ebb_future_state state = ebb__state_of(input);
    bool slept = f->flags & EBB__F_STEP;
    bool failed =
        !slept && state == EBB_FUTURE_FAILED && r->made < r->opts.attempts && wants_another(r, input);
    bool go_on = failed || (slept && state == EBB_FUTURE_COMPLETED);
    if (!go_on) {
        ebb__single_forward(s, f, e);
        return;
    }
    ebb__edge_drop(s->heap, e);
    if (!slept && r->made > 0 && r->opts.pause > 0) sleep_first(s, r, e);
    else attempt(s, r, e);
}

static const ebb__kind retry_kind = {
    .type = {"retry", sizeof(retry), ebb__trace_single, NULL,
             EBB__TYPE_OWN | EBB__TYPE_FUTURE | EBB__TYPE_SINGLE},
    .input_ended = retry_ended,
    .cancelled = ebb__single_cancelled,
};

static bool bad_span(uint64_t span) {
    return span > INT64_MAX && span != EBB_FOREVER;
}

static ebb_status check(const ebb_retry_opts *given, ebb_retry_opts *o) {
    if (given == NULL) return EBB_ERR_INVALID;
    ebb_status st = EBB__OPTS_COPY(o, given);
    if (st != EBB_OK) return st;
    return o->attempts == 0 || bad_span(o->pause) || bad_span(o->max_pause) ? EBB_ERR_INVALID : EBB_OK;
}

ebb_future *ebb_retry_site(ebb_cx *cx, const ebb_retry_opts *opts, ebb_attempt_fn make, void *arg,
                           const char *site) {
    ebb_retry_opts known;
    ebb_status st = make == NULL ? EBB_ERR_INVALID : check(opts, &known);
    ebb_future *f = st == EBB_OK ? ebb__future_new(cx, &retry_kind, site, &st) : NULL;
    if (f == NULL) return ebb__failed(st);
    retry *r = (retry *)(void *)f;
    r->make = make;
    r->single.arg = arg;
    r->opts = known;
    if (r->opts.factor == 0) r->opts.factor = 1;
    if (r->opts.max_pause != 0 && r->opts.pause > r->opts.max_pause) r->opts.pause = r->opts.max_pause;
    ebb__edge_attach(f, &r->single.edge, ebb__not_made_yet(), EBB__EDGE_NODE, site);
    return f;
}
