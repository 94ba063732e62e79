#include "tests/future/stage/model.h"

const char *const combinator_names[COMBINATORS] = {
    "then",     "map", "catch",       "finally", "bracket", "within", "nested",   "delay",
    "schedule", "all", "all_settled", "race",    "any",     "select", "traverse", "retry"};
const char *const plan_names[PLANS] = {"completes_now", "completes_later", "fails_now", "fails_later",
                                       "cancelled_now", "cancelled_later", "never",     "nothing"};

ebb_status slot_failure(int slot) {
    return (ebb_status)(EBB_STATUS_USER - 10 - slot);
}

static const ending pending = {EBB_FUTURE_PENDING, EBB_PENDING, EBB_CANCEL_NONE, NOBODY};

static ending completed(int value) {
    return (ending){EBB_FUTURE_COMPLETED, EBB_OK, EBB_CANCEL_NONE, value};
}
static ending failed(ebb_status st) {
    return (ending){EBB_FUTURE_FAILED, st, EBB_CANCEL_NONE, NOBODY};
}
static ending cancelled(ebb_cancel_kind kind) {
    return (ending){EBB_FUTURE_CANCELLED, EBB_CANCELLED, kind, NOBODY};
}

static bool is_pending(const ending *e) {
    return e->state == EBB_FUTURE_PENDING;
}

/* ---- the parts --------------------------------------------------------------------------------------------- */

/* Whatever is still pending and the result's is cancelled. */
static void cancel_the_others(model *m, ebb_cancel_kind kind) {
    for (int i = 0; i < SLOTS; i++) {
        if (m->waited[i] && is_pending(&m->slot[i])) m->slot[i] = cancelled(kind);
        m->waited[i] = false;
    }
}

static void end_result(model *m, ending how) {
    if (is_pending(&m->result)) m->result = how;
}

/* A callback makes slot i. One that ends now has ended when it is returned, but for one that lives in another
 * loop: that has to be told first. */
static void made(model *m, int i) {
    plan p = m->scene->plan[i];
    m->made[i] = true;
    if (m->scene->where == HERE && (p == COMPLETES_NOW || p == FAILS_NOW || p == CANCELLED_NOW))
        model_ends(m, i);
}

/* A callback returns slot i: the result waits for it, if it still waits for anything. */
static void callback_returns(model *m, int i) {
    if (m->scene->plan[i] == NOTHING) {
        end_result(m, failed(EBB_ERR_INVALID));
        return;
    }
    made(m, i);
    m->waited[i] = true;
}

/* finally and release: NULL is nothing to wait for. */
static void release(model *m, ending before) {
    m->releases++;
    m->releasing = true;
    m->before = before;
    if (m->scene->plan[RELEASE] == NOTHING) {
        end_result(m, before);
        return;
    }
    made(m, RELEASE);
    m->waited[RELEASE] = is_pending(&m->result);
}

static void released(model *m) {
    bool spoils = m->before.state == EBB_FUTURE_COMPLETED && m->slot[RELEASE].state != EBB_FUTURE_COMPLETED;
    end_result(m, spoils ? m->slot[RELEASE] : m->before);
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

static void race_hears(model *m, int i, bool skips_failures) {
    const ending *e = &m->slot[i];
    bool skipped = e->state == EBB_FUTURE_CANCELLED || (skips_failures && e->state == EBB_FUTURE_FAILED);
    if (!skipped) {
        end_result(m, *e);
        m->is_selected = m->scene->what == SELECT && e->state == EBB_FUTURE_COMPLETED;
        cancel_the_others(m, EBB_CANCEL_RACE_LOST);
        return;
    }
    if (e->state == EBB_FUTURE_FAILED) m->failure = e->status;
    if (--m->left > 0) return;
    end_result(m, m->failure != EBB_OK ? failed(m->failure) : *e);
}

static void note(model *m, int i) {
    m->list[i] = m->slot[i];
    if (--m->left > 0) return;
    m->is_list = true;
    end_result(m, completed(NOBODY));
}

static void all_hears(model *m, int i) {
    if (m->slot[i].state == EBB_FUTURE_COMPLETED) {
        note(m, i);
        return;
    }
    end_result(m, m->slot[i]);
    cancel_the_others(m, EBB_CANCEL_SIBLING_FAILED);
}

static void make_next(model *m) {
    int i = m->next++;
    m->calls++;
    made(m, i);
    m->waited[i] = true;
}

static void retry_hears(model *m, int i) {
    if (m->slot[i].state == EBB_FUTURE_FAILED && m->next < INPUTS) make_next(m);
    else end_result(m, m->slot[i]);
}

/* The only input of those that have one. */
static void single_hears(model *m, const ending *e) {
    ebb_future_state calls = m->scene->what == CATCH ? EBB_FUTURE_FAILED : EBB_FUTURE_COMPLETED;
    switch (m->scene->what) {
    case THEN:
    case MAP:
    case CATCH:
    case BRACKET:
        if (e->state != calls) {
            end_result(m, *e);
            break;
        }
        m->calls++;
        if (m->scene->what == BRACKET && m->scene->plan[INNER] == NOTHING)
            release(m, failed(EBB_ERR_INVALID));
        else callback_returns(m, INNER);
        break;
    case FINALLY: release(m, *e); break;
    default: end_result(m, *e); break;
    }
}

/* ---- what happens ------------------------------------------------------------------------------------------------ */

void model_start(model *m, const scene *s) {
    *m = (model){.scene = s, .result = pending, .left = INPUTS, .failure = EBB_OK};
    for (int i = 0; i < SLOTS; i++) {
        m->slot[i] = pending;
        m->made[i] = m->waited[i] = i < s->inputs;
    }
}

void model_ends(model *m, int i) {
    if (!is_pending(&m->slot[i])) return;
    switch (m->scene->plan[i]) {
    case COMPLETES_NOW:
    case COMPLETES_LATER: m->slot[i] = completed(i); break;
    case FAILS_NOW:
    case FAILS_LATER: m->slot[i] = failed(slot_failure(i)); break;
    case CANCELLED_NOW:
    case CANCELLED_LATER: m->slot[i] = cancelled(EBB_CANCEL_USER); break;
    default: break;
    }
}

void model_hears(model *m, int i) {
    model_ends(m, i);
    if (!m->waited[i] || !is_pending(&m->result)) return;
    m->waited[i] = false;
    if (i == RELEASE) {
        released(m);
        return;
    }
    if (i == INNER) {
        if (m->scene->what == BRACKET) release(m, m->slot[i]);
        else end_result(m, m->slot[i]);
        return;
    }
    switch (m->scene->what) {
    case RACE:
    case SELECT: race_hears(m, i, false); break;
    case ANY: race_hears(m, i, true); break;
    case ALL_SETTLED: note(m, i); break;
    case ALL: all_hears(m, i); break;
    case TRAVERSE:
        all_hears(m, i);
        if (is_pending(&m->result) && m->next < INPUTS) make_next(m);
        break;
    case RETRY: retry_hears(m, i); break;
    default: single_hears(m, &m->slot[i]); break;
    }
}

void model_cancel(model *m, ebb_cancel_kind kind) {
    if (!is_pending(&m->result)) return;
    bool acquired = m->slot[0].state == EBB_FUTURE_COMPLETED;
    m->result = cancelled(kind);
    if (m->releasing) { /* what is releasing goes on */
        m->waited[RELEASE] = false;
        return;
    }
    cancel_the_others(m, kind);
    if (m->scene->what == FINALLY || (m->scene->what == BRACKET && acquired)) release(m, m->result);
}

void model_time_is_over(model *m) {
    if (!is_pending(&m->result)) return;
    if (m->scene->what == WITHIN) {
        end_result(m, failed(EBB_TIMEOUT));
        cancel_the_others(m, EBB_CANCEL_TIMEOUT);
    }
    if (m->scene->what == DELAY || m->scene->what == SCHEDULE) {
        m->calls++;
        callback_returns(m, INNER);
    }
}

void model_begins(model *m) {
    if (!is_pending(&m->result)) return;
    if (m->scene->what == RETRY) make_next(m);
    if (m->scene->what != TRAVERSE) return;
    while (m->next < INPUTS && m->next < m->scene->at_once) make_next(m);
}
