/* Steps: what an orchestration asks for. Each function makes one action, or an id that carries the error. */
#include "durable/run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/opts.h"

/* An id: the tag of the run in the top 16 bits, the event number below; or ERROR and a status. */
enum { TAG_SHIFT = 48, ERROR = 0xFFFF };

uint16_t ebb__run_tag(const ebb_orch *r) {
    uint64_t x = UINT64_C(1469598103934665603) ^ r->opts.execution;
    for (const char *p = r->opts.id; *p != 0; p++) x = (x ^ (uint8_t)*p) * UINT64_C(1099511628211);
    return (uint16_t)(1 + (x ^ x >> 32) % (ERROR - 1));
}

static ebb_step id_of(const ebb_orch *r, const ebb__step *s) {
    return (ebb_step){(uint64_t)ebb__run_tag(r) << TAG_SHIFT | s->id};
}

static ebb_step failed(ebb_status st) {
    return (ebb_step){(uint64_t)ERROR << TAG_SHIFT | (uint32_t)st};
}

ebb_status ebb__step_find(const ebb_orch *r, ebb_step id, ebb__step **out) {
    const uint64_t tag = id.id >> TAG_SHIFT, number = id.id & ((UINT64_C(1) << TAG_SHIFT) - 1);
    *out = NULL;
    if (tag == ERROR) return (ebb_status)(int32_t)(uint32_t)number;
    if (tag == 0) return EBB_ERR_STALE;
    if (tag != ebb__run_tag(r)) return EBB_ERR_FOREIGN;
    *out = ebb__run_step(r, number);
    return *out != NULL && (*out)->id == number ? EBB_OK : EBB_ERR_STALE;
}

/* ---- the tables of a run -------------------------------------------------------------------------------------------- */

ebb__step *ebb__run_step(const ebb_orch *r, uint64_t number) {
    const ebb__target *all = r->targets.at;
    size_t low = 0, high = r->targets.n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (all[middle].number < number) low = middle + 1;
        else high = middle;
    }
    return low < r->targets.n && all[low].number == number ? all[low].step : NULL;
}

bool ebb__run_target(ebb_orch *r, ebb__step *s, uint64_t number) {
    ebb__target *t = ebb__run_add(r, &r->memory, &r->targets, sizeof *t);
    if (t == NULL) return false;
    *t = (ebb__target){number, s};
    return true;
}

ebb__want *ebb__run_want(ebb_orch *r, ebb__want_kind kind, ebb__step *s, uint64_t number, uint64_t due) {
    if (r->replaying) return NULL;
    ebb__want *w = ebb__run_add(r, &r->scratch, &r->wants, sizeof *w);
    if (w != NULL) *w = (ebb__want){.kind = kind, .number = number, .step = s, .due = due};
    return w;
}

static void link(ebb_orch *r, ebb__step *s) {
    s->state = EBB__STEP_OUTSTANDING;
    s->prev = r->outstanding_last;
    if (s->prev != NULL) s->prev->next = s;
    else r->outstanding = s;
    r->outstanding_last = s;
    if (s->kind == EBB__STEP_EVENT) r->waits++;
}

static void unlink(ebb_orch *r, ebb__step *s) {
    if (s->prev != NULL) s->prev->next = s->next;
    else r->outstanding = s->next;
    if (s->next != NULL) s->next->prev = s->prev;
    else r->outstanding_last = s->prev;
    s->next = s->prev = NULL;
    if (s->kind == EBB__STEP_EVENT) r->waits--;
}

/* `e` (NULL: none) has the value or the failure. */
void ebb__step_end(ebb_orch *r, ebb__step *s, uint64_t at, ebb_status st, const ebb__event *e) {
    assert(s->state == EBB__STEP_OUTSTANDING);
    unlink(r, s);
    s->state = EBB__STEP_ENDED;
    s->ended_at = at;
    s->status = st;
    if (e == NULL) return;
    if (st == EBB_OK) {
        s->value = e->body;
        return;
    }
    if (e->code.n != 0) s->why.code = ebb__run_text(r, e->code.at, e->code.n);
    if (e->text.n != 0) s->why.message = ebb__run_text(r, e->text.at, e->text.n);
    s->why.details = e->details;
    s->why.final = (e->flags & EBB__FLAG_FINAL) != 0;
}

/* ---- made ---------------------------------------------------------------------------------------------------------------- */

bool ebb__name_is_valid(const char *name) {
    if (name == NULL || *name == 0) return false;
    size_t n = 0;
    for (; name[n] != 0; n++) {
        if ((uint8_t)name[n] < 32 || n >= EBB_DURABLE_ID) return false;
    }
    return true;
}

bool ebb__id_may_start(const char *id) {
    return ebb__name_is_valid(id) && strcmp(id, ".") != 0 && strcmp(id, "..") != 0;
}

static ebb_status may_act(ebb_orch *r, const char *what, const char *name, ebb_blob in) {
    if (!ebb__name_is_valid(name))
        return ebb__durable_say(EBB_ERR_INVALID, "%s: the name is not valid", what);
    if (in.n > EBB_DURABLE_PAYLOAD)
        return ebb__durable_say(EBB_ERR_LIMIT, "%s %s: %zu bytes (%d)", what, name, in.n,
                                EBB_DURABLE_PAYLOAD);
    if (r->actions >= EBB_DURABLE_ACTIONS)
        return ebb__durable_say(EBB_ERR_LIMIT, "%s %s: %u actions in this turn (%d)", what, name, r->actions,
                                EBB_DURABLE_ACTIONS);
    r->actions++;
    return EBB_OK;
}

/* NULL: the run fails with EBB_ERR_NOMEM. */
static ebb__step *step_new(ebb_orch *r, ebb__step_kind kind, const char *name, const char *site) {
    ebb__step *s = ebb__run_new(r, sizeof *s);
    s->kind = kind;
    s->site = site;
    s->name = ebb__text_of(ebb__run_text(r, name, strlen(name)));
    return s;
}

static ebb_step made(ebb_orch *r, ebb__step *s, uint64_t number) {
    s->id = number;
    (void)ebb__run_target(r, s, number);
    link(r, s);
    return id_of(r, s);
}

static ebb_status read_policy(ebb_orch *r, const ebb_call_opts *opts, ebb_call_opts *out) {
    ebb_status st = EBB__OPTS_COPY(out, opts);
    if (st != EBB_OK) return st;
    if (out->tag != NULL && !ebb__name_is_valid(out->tag)) return EBB_ERR_INVALID;
    if (out->session != NULL && !ebb__name_is_valid(out->session)) return EBB_ERR_INVALID;
    if ((unsigned)out->backoff > EBB_BACKOFF_EXPONENTIAL) return EBB_ERR_INVALID;
    if (out->attempts == 0) out->attempts = 1;
    if (out->pause == 0) out->pause = EBB_SECOND;
    if (out->tag != NULL) out->tag = ebb__run_text(r, out->tag, strlen(out->tag));
    if (out->session != NULL) out->session = ebb__run_text(r, out->session, strlen(out->session));
    return EBB_OK;
}

ebb_step ebb_orch_call_site(ebb_orch *r, const char *name, ebb_blob in, const ebb_call_opts *opts,
                            const char *site) {
    ebb_call_opts policy;
    ebb_status st = read_policy(r, opts, &policy);
    if (st == EBB_OK) st = may_act(r, "call of", name, in);
    if (st != EBB_OK) return failed(st);
    ebb__step *s = step_new(r, EBB__STEP_CALL, name, site);
    s->policy = policy;
    s->input = ebb__run_copy(r, in);
    link(r, s);
    ebb__call_attempt(r, s);
    return id_of(r, s);
}

uint64_t ebb__run_due(const ebb_orch *r, uint64_t span) {
    return span < INT64_MAX - r->now ? r->now + span : INT64_MAX;
}

ebb_step ebb_orch_timer_site(ebb_orch *r, uint64_t span, const char *site) {
    ebb_status st = may_act(r, "timer", "timer", (ebb_blob){NULL, 0});
    if (st != EBB_OK) return failed(st);
    ebb__step *s = step_new(r, EBB__STEP_TIMER, "timer", site);
    ebb__event e = {.kind = EBB__EVENT_TIMER_CREATED, .due = ebb__run_due(r, span)};
    const ebb_step id = made(r, s, ebb__run_emit(r, &e, site));
    (void)ebb__run_want(r, EBB__WANT_TIMER, s, s->id, e.due);
    return id;
}

ebb_step ebb_orch_event_site(ebb_orch *r, const char *name, const char *site) {
    ebb_status st = may_act(r, "wait for", name, (ebb_blob){NULL, 0});
    if (st != EBB_OK) return failed(st);
    ebb__step *s = step_new(r, EBB__STEP_EVENT, name, site);
    ebb__event e = {.kind = EBB__EVENT_EVENT_AWAITED, .name = s->name};
    const ebb_step id = made(r, s, ebb__run_emit(r, &e, site));
    ebb__run_serve(r, s->name);
    return id;
}

ebb_status ebb_orch_receive_site(ebb_orch *r, const char *name, ebb_blob *out, const char *site) {
    *out = (ebb_blob){NULL, 0};
    if (!ebb__name_is_valid(name))
        return ebb__durable_say(EBB_ERR_INVALID, "a receive: the name is not valid");
    ebb__signal *g = ebb__run_signal(r, ebb__text_of(name));
    if (g == NULL) return EBB_PENDING;
    ebb_status st = may_act(r, "receive of", name, (ebb_blob){NULL, 0});
    if (st != EBB_OK) return st;
    ebb__event e = {.kind = EBB__EVENT_EVENT_TAKEN, .name = ebb__text_of(name)};
    (void)ebb__run_emit(r, &e, site);
    *out = g->event.body;
    ebb__run_use_signal(r, g);
    return EBB_OK;
}

/* ---- children --------------------------------------------------------------------------------------------------------------- */

uint64_t ebb__mixed(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Of the seed and the number alone, so that a child more changes no random number of the code. */
ebb__event_seed ebb__run_seed(const ebb_orch *r, uint64_t number) {
    uint64_t of[2];
    ebb__event_seed seed;
    ebb__seed_words(&r->seed, of);
    of[0] = ebb__mixed(of[0] + (number + 1) * UINT64_C(0x9e3779b97f4a7c15));
    of[1] = ebb__mixed(of[1] ^ of[0]);
    for (size_t i = 0; i < sizeof seed.at; i++) seed.at[i] = (uint8_t)(of[i / 8] >> i % 8 * 8);
    return seed;
}

static ebb_status child_id(ebb_orch *r, const ebb_child_opts *o, const char **out) {
    char text[EBB_DURABLE_ID + 64];
    if (o->id != NULL) {
        if (!ebb__id_may_start(o->id))
            return ebb__durable_say(EBB_ERR_INVALID, "the id of a child is not valid");
        *out = ebb__run_text(r, o->id, strlen(o->id));
        return EBB_OK;
    }
    const uint64_t number = r->event + 1;
    uint64_t seed[2];
    ebb__seed_words(&r->seed, seed);
    const int n = snprintf(text, sizeof text, "%s/%llu-%08x", r->opts.id, (unsigned long long)number,
                           (unsigned)(seed[0] & UINT32_MAX));
    if (n > EBB_DURABLE_ID)
        return ebb__durable_say(EBB_ERR_LIMIT, "the id of a child: %d bytes (%d)", n, EBB_DURABLE_ID);
    *out = ebb__run_text(r, text, (size_t)n);
    return EBB_OK;
}

static void want_child(ebb_orch *r, ebb__step *s, ebb_blob in, const ebb_child_opts *o) {
    ebb__want *w = ebb__run_want(r, EBB__WANT_CHILD, s, s->id, 0);
    if (w == NULL) return;
    const ebb__event exists = {.kind = EBB__EVENT_CHILD_FAILED,
                               .step = s->id,
                               .id = ebb__text_of(s->child),
                               .status = EBB_ERR_EXISTS};
    const ebb__event start = {.kind = EBB__EVENT_STARTED,
                              .name = s->name,
                              .version = o->version,
                              .body = in,
                              .id = ebb__text_of(r->opts.id),
                              .execution = o->detached ? 0 : r->opts.execution,
                              .step = o->detached ? 0 : s->id,
                              .seed = ebb__run_seed(r, s->id)};
    w->start = (ebb_provider_outgoing){.id = s->child,
                                       .kind = EBB_PROVIDER_MESSAGE_START,
                                       .step = s->id,
                                       .body = ebb__event_encode(&r->scratch, &start),
                                       .name = s->name.at,
                                       .version = o->version,
                                       .input = in,
                                       .exists = ebb__event_encode(&r->scratch, &exists)};
    if (w->start.body.at == NULL || w->start.exists.at == NULL) ebb__run_fail(r, EBB_ERR_NOMEM);
}

ebb_step ebb_orch_child_site(ebb_orch *r, const char *name, ebb_blob in, const ebb_child_opts *opts,
                             const char *site) {
    ebb_child_opts o;
    const char *id = "";
    ebb_status st = EBB__OPTS_COPY(&o, opts);
    if (st == EBB_OK) st = child_id(r, &o, &id);
    if (st == EBB_OK) st = may_act(r, "child", name, in);
    if (st != EBB_OK) return failed(st);
    ebb__step *s = step_new(r, EBB__STEP_CHILD, name, site);
    s->child = id;
    in = ebb__run_copy(r, in);
    ebb__event e = {.kind = EBB__EVENT_CHILD_STARTED,
                    .name = s->name,
                    .body = in,
                    .id = ebb__text_of(id),
                    .version = o.version,
                    .flags = o.detached ? EBB__FLAG_DETACHED : 0};
    const ebb_step step = made(r, s, ebb__run_emit(r, &e, site));
    want_child(r, s, in, &o);
    if (o.detached) ebb__step_end(r, s, s->id, EBB_OK, NULL);
    return step;
}

/* ---- kept and shielded ------------------------------------------------------------------------------------------------------- */

ebb_step ebb_orch_keep(ebb_orch *r, ebb_step step) {
    ebb__step *s;
    if (ebb__step_find(r, step, &s) == EBB_OK) s->kept = true;
    return step;
}

ebb_step ebb_orch_shield(ebb_orch *r, ebb_step step) {
    ebb__step *s;
    if (ebb__step_find(r, step, &s) == EBB_OK) s->shielded = true;
    return step;
}
