#include "tests/future/stage/stage.h"

#include <stdio.h>
#include <string.h>

enum { SPAN_MS = 5 };

bool plan_is_now(plan p) {
    return p == COMPLETES_NOW || p == FAILS_NOW || p == CANCELLED_NOW;
}

bool plan_is_later(plan p) {
    return p == COMPLETES_LATER || p == FAILS_LATER || p == CANCELLED_LATER;
}

/* ---- hearing --------------------------------------------------------------------------------------------------- */

static void note_end(heard *h, ebb_status st, ebb_cancel_kind kind, const void *value) {
    h->ends++;
    h->status = st;
    h->kind = kind;
    h->value = value;
    h->order = ++h->stage->order;
    if (h->stage->ended != NULL) h->stage->ended(h->stage, h->slot);
}

static int word_of(const stage *s, const void *p) {
    for (int i = 0; i < SLOTS; i++) {
        if (p == &s->slot[i].freed) return i;
    }
    return NOBODY;
}

static void look_into(stage *s, const ebb_value *v) {
    size_t n = 0;
    const ebb_outcome *o = ebb_outcomes_of(v, &n);
    const ebb_selected *sel = ebb_selected_of(v);
    s->is_list = o != NULL;
    s->list_n = n;
    for (size_t i = 0; o != NULL && i < n && i < INPUTS; i++) {
        s->list[i] = (ending){.status = o[i].status, .value = word_of(s, o[i].value.as.p)};
    }
    s->is_selected = sel != NULL;
    if (sel == NULL) return;
    s->selected = sel->index;
    s->result_heard.value = sel->value.as.p;
}

static void on_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    heard *h = arg;
    (void)cx;
    note_end(h, st, EBB_CANCEL_NONE, v->as.p);
    if (h->slot == NOBODY && st == EBB_OK) look_into(h->stage, v);
}

static void on_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)cx;
    note_end(arg, EBB_CANCELLED, kind, NULL);
}

static void on_cleanup(ebb_cx *cx, void *arg) {
    (void)cx;
    ((heard *)arg)->cleanups++;
}

static ebb_future *listen(heard *h, ebb_future *f) {
    h->status = EBB_PENDING;
    ebb_status st = ebb_future_on_cleanup(f, on_cleanup, h);
    if (st == EBB_OK) st = ebb_future_on_done(f, on_done, h);
    if (st == EBB_OK) st = ebb_future_on_cancel(f, on_cancel, h);
    if (st != EBB_OK) h->stage->refused++;
    return f;
}

/* ---- slots ------------------------------------------------------------------------------------------------------ */

static void let_go_of_word(void *p) {
    ++*(uint8_t *)p;
}

static const ebb_type word_type = {"word", 0, NULL, let_go_of_word, 0};

static ebb_value word(slot *l) {
    l->valued = 1;
    return ebb_value_owned(&word_type, &l->freed);
}

/* From the other runtime: what ends there ends here, and a cancel here is one there. */
static void forward_done(ebb_cx *cx, ebb_status st, ebb_value *v, void *arg) {
    slot *l = arg;
    if (st == EBB_OK) (void)ebb_remote_settle(l->near, ebb_value_take(cx, v));
    else (void)ebb_remote_reject(l->near, st);
}

static void forward_cancel(ebb_cx *cx, ebb_cancel_kind kind, void *arg) {
    (void)cx;
    (void)kind;
    (void)ebb_remote_reject(((slot *)arg)->near, EBB_CANCELLED);
}

static void cancel_there(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)ebb_remote_cancel(((slot *)arg)->far, ebb_future_cancel_kind_of(f));
}

static const ebb_operation from_there = {"there", cancel_there, NULL};

/* The other runtime is ending. */
static ebb_future *refused(stage *s, slot *l, ebb_future *f) {
    s->refused++;
    l->settled = true;
    (void)ebb_promise_reject(f, EBB_CANCELLED);
    return f;
}

static ebb_future *slot_by_remote(stage *s, slot *l, ebb_cx *cx) {
    l->producer = ebb_promise_new(s->there, NULL, NULL);
    ebb_future *f = ebb_promise_new(cx, &from_there, l);
    ebb_status st = ebb_remote_new(l->producer, &l->far);
    if (st == EBB_OK) st = ebb_remote_new(f, &l->near);
    if (st == EBB_OK) st = ebb_future_on_done(l->producer, forward_done, l);
    if (st == EBB_OK) st = ebb_future_on_cancel(l->producer, forward_cancel, l);
    return st == EBB_OK ? f : refused(s, l, f);
}

static ebb_future *slot_by_import(stage *s, slot *l, ebb_cx *cx) {
    ebb_remote *there;
    l->producer = ebb_promise_new(s->there, NULL, NULL);
    if (ebb_remote_new(l->producer, &there) != EBB_OK) return refused(s, l, ebb_promise_new(cx, NULL, NULL));
    ebb_future *f = ebb_remote_import(cx, there);
    ebb_future_drop(l->producer); /* so that its word moves */
    if (ebb_remote_new(f, &l->near) != EBB_OK) s->refused++;
    return f;
}

static ebb_future *slot_make(stage *s, int i, ebb_cx *cx) {
    slot *l = &s->slot[i];
    ebb_future *f;
    l->heard = (heard){.stage = s, .slot = i};
    l->made = true;
    switch (s->scene->where) {
    case BY_REMOTE: f = slot_by_remote(s, l, cx); break;
    case BY_IMPORT: f = slot_by_import(s, l, cx); break;
    default: f = l->producer = ebb_promise_new(cx, NULL, NULL); break;
    }
    (void)listen(&l->heard, f);
    if (plan_is_now(s->scene->plan[i])) stage_end_slot(s, i);
    return f;
}

void stage_end_slot(stage *s, int i) {
    slot *l = &s->slot[i];
    if (!l->made || l->settled) return;
    l->settled = true;
    switch (s->scene->plan[i]) {
    case COMPLETES_NOW:
    case COMPLETES_LATER: (void)ebb_promise_settle(l->producer, word(l)); break;
    case FAILS_NOW:
    case FAILS_LATER: (void)ebb_promise_reject(l->producer, slot_failure(i)); break;
    default: (void)ebb_promise_reject(l->producer, EBB_CANCELLED); break;
    }
}

/* ---- callbacks ---------------------------------------------------------------------------------------------------- */

static ebb_future *inner(stage *s, ebb_cx *cx) {
    s->calls++;
    return s->scene->plan[INNER] == NOTHING ? NULL : slot_make(s, INNER, cx);
}
static ebb_future *then(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return inner(arg, cx);
}
static ebb_value map(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return ebb_value_future(inner(arg, cx));
}
static ebb_future *caught(ebb_cx *cx, ebb_status st, void *arg) {
    (void)st;
    return inner(arg, cx);
}
static ebb_future *delayed(ebb_cx *cx, void *arg) {
    return inner(arg, cx);
}
static ebb_future *repeated(ebb_cx *cx, uint64_t n, void *arg) {
    (void)n;
    return inner(arg, cx);
}
static ebb_future *at_last(ebb_cx *cx, void *arg) {
    stage *s = arg;
    s->releases++;
    return s->scene->plan[RELEASE] == NOTHING ? NULL : slot_make(s, RELEASE, cx);
}
static ebb_future *release(ebb_cx *cx, ebb_value *v, void *arg) {
    (void)v;
    return at_last(cx, arg);
}
static ebb_future *each(ebb_cx *cx, size_t i, void *arg) {
    stage *s = arg;
    s->calls++;
    return slot_make(s, (int)i, cx);
}
static ebb_future *attempt(ebb_cx *cx, uint32_t i, void *arg) {
    return each(cx, i, arg);
}

/* ---- the result ------------------------------------------------------------------------------------------------------ */

static ebb_future *make(stage *s, ebb_future **fs) {
    ebb_cx *cx = s->cx;
    const size_t n = (size_t)s->scene->inputs;
    const ebb_retry_opts retries = {.attempts = INPUTS};
    ebb_future *f;
    switch (s->scene->what) {
    case THEN: return ebb_then(cx, fs[0], then, s);
    case MAP: return ebb_map(cx, fs[0], map, s);
    case CATCH: return ebb_catch(cx, fs[0], caught, s);
    case FINALLY: return ebb_finally(cx, fs[0], at_last, s);
    case BRACKET: return ebb_bracket(cx, fs[0], then, release, s);
    case WITHIN: return ebb_within(cx, fs[0], SPAN_MS * EBB_MS);
    case NESTED:
        f = ebb_promise_new(cx, NULL, NULL);
        (void)ebb_promise_settle(f, ebb_value_future(fs[0]));
        return f;
    case DELAY: return ebb_future_delay(cx, SPAN_MS * EBB_MS, delayed, s);
    case SCHEDULE: return ebb_future_repeat(cx, SPAN_MS * EBB_MS, repeated, s);
    case ALL: return ebb_all(cx, n, fs);
    case ALL_SETTLED: return ebb_all_settled(cx, n, fs);
    case RACE: return ebb_race(cx, n, fs);
    case ANY: return ebb_any(cx, n, fs);
    case SELECT: return ebb_select(cx, n, fs);
    case TRAVERSE: return ebb_traverse(cx, INPUTS, (size_t)s->scene->at_once, each, s);
    default: return ebb_retry(cx, &retries, attempt, s);
    }
}

static ebb_future *input_future[SLOTS];

void stage_inputs(stage *s, const scene *sc, ebb_cx *cx, ebb_cx *there) {
    s->scene = sc;
    s->cx = cx;
    s->there = there;
    for (int i = 0; i < sc->inputs; i++) input_future[i] = slot_make(s, i, cx);
}

void stage_result(stage *s) {
    s->result_heard = (heard){.stage = s, .slot = NOBODY};
    s->result = listen(&s->result_heard, make(s, input_future));
}

void stage_close(stage *s) {
    for (int i = 0; i < SLOTS; i++) {
        slot *l = &s->slot[i];
        if (!l->made) continue;
        if (!l->settled) (void)ebb_promise_reject(l->producer, EBB_CANCELLED);
        l->settled = true;
        if (s->scene->where == BY_REMOTE && !l->dropped) ebb_future_drop(l->producer);
        l->dropped = true;
    }
    if (s->result != NULL) ebb_future_drop(s->result);
    s->result = NULL;
}

void stage_free(stage *s) {
    for (int i = 0; i < SLOTS; i++) {
        ebb_remote_release(s->slot[i].near);
        ebb_remote_release(s->slot[i].far);
    }
}

/* ---- comparing ---------------------------------------------------------------------------------------------------------- */

void scene_text(const scene *s, char *text, size_t room) {
    static const char *const moments[MOMENTS] = {"not cancelled", "cancelled before", "cancelled between",
                                                 "cancelled after"};
    static const char *const places[PLACES] = {"here", "by remote", "by import"};
    int n = snprintf(text, room, "%s (", combinator_names[s->what]);
    for (int i = 0; i < SLOTS; i++) {
        n += snprintf(text + n, room - (size_t)n, "%s%s", i > 0 ? ", " : "", plan_names[s->plan[i]]);
    }
    (void)snprintf(text + n, room - (size_t)n, ")%s%s, %d at once, %s, %s", s->late ? " late" : "",
                   s->backwards ? " backwards" : "", s->at_once, moments[s->cancel], places[s->where]);
}

static const char *differs(char *text, size_t room, const char *what, int which, int64_t expected,
                           int64_t found) {
    (void)snprintf(text, room, "%s of %d: %lld expected, %lld found", what, which, (long long)expected,
                   (long long)found);
    return text;
}

static const char *heard_differs(const stage *s, const heard *h, const ending *e, char *text, size_t room) {
    bool ended = e->state != EBB_FUTURE_PENDING;
    if (h->ends != ended) return differs(text, room, "ends", h->slot, ended, h->ends);
    if (h->cleanups != ended) return differs(text, room, "cleanups", h->slot, ended, h->cleanups);
    if (h->status != e->status) return differs(text, room, "status", h->slot, e->status, h->status);
    if (h->kind != e->kind) return differs(text, room, "kind", h->slot, e->kind, h->kind);
    int value = ended && e->state == EBB_FUTURE_COMPLETED ? word_of(s, h->value) : NOBODY;
    if (value != e->value) return differs(text, room, "value", h->slot, e->value, value);
    return NULL;
}

static const char *list_differs(const stage *s, const model *m, char *text, size_t room) {
    if (s->is_list != m->is_list) return differs(text, room, "list", NOBODY, m->is_list, s->is_list);
    if (!m->is_list) return NULL;
    if (s->list_n != INPUTS) return differs(text, room, "length", NOBODY, INPUTS, (int64_t)s->list_n);
    for (int i = 0; i < INPUTS; i++) {
        const ending *a = &m->list[i], *b = &s->list[i];
        if (a->status != b->status) return differs(text, room, "outcome", i, a->status, b->status);
        if (a->value != b->value) return differs(text, room, "outcome's value", i, a->value, b->value);
    }
    return NULL;
}

const char *stage_differs(const stage *s, const model *m, char *text, size_t room) {
    const char *wrong = heard_differs(s, &s->result_heard, &m->result, text, room);
    if (wrong == NULL) wrong = list_differs(s, m, text, room);
    if (wrong != NULL) return wrong;
    if (s->is_selected != m->is_selected)
        return differs(text, room, "selected", NOBODY, m->is_selected, s->is_selected);
    if (m->is_selected && (int)s->selected != m->result.value)
        return differs(text, room, "index", NOBODY, m->result.value, (int64_t)s->selected);
    if (s->calls != m->calls) return differs(text, room, "calls", NOBODY, m->calls, s->calls);
    if (s->releases != m->releases) return differs(text, room, "releases", NOBODY, m->releases, s->releases);
    for (int i = 0; i < SLOTS; i++) {
        if (s->slot[i].made != m->made[i])
            return differs(text, room, "making", i, m->made[i], s->slot[i].made);
        if (m->made[i]) wrong = heard_differs(s, &s->slot[i].heard, &m->slot[i], text, room);
        if (wrong != NULL) return wrong;
    }
    return NULL;
}

const char *stage_leaks(const stage *s, char *text, size_t room) {
    for (int i = 0; i < SLOTS; i++) {
        const slot *l = &s->slot[i];
        if (l->freed != l->valued) return differs(text, room, "word let go of", i, l->valued, l->freed);
    }
    return NULL;
}
