/* Machines as text, for people: all of them, and what one waits for. */
#include "machine/machine.h"

#include "base/text.h"

typedef struct sink {
    const ebb_machines *ms;
    void (*write)(void *ctx, const char *text, size_t n);
    void *ctx;
    char line[256];
    ebb__text text;
} sink;

static void begin(sink *s, const char *first) {
    s->text = ebb__text_in(s->line, sizeof s->line - 1);
    ebb__text_str(&s->text, first);
}

static void end(sink *s) {
    s->line[s->text.n] = '\n';
    s->write(s->ctx, s->line, s->text.n + 1);
}

static void add_count(sink *s, const char *before, uint64_t n, const char *what) {
    if (n == 0) return;
    ebb__text_str(&s->text, before);
    ebb__text_u64(&s->text, n);
    ebb__text_str(&s->text, what);
}

static void add_kind(sink *s, uint16_t kind) {
    const ebb_machines_opts *o = &s->ms->opts;
    const char *name = o->kinds != NULL && kind < o->n_kinds ? o->kinds[kind].name : NULL;
    if (kind == EBB_MACHINE_REQUEST_FAILED) name = "RequestFailed";
    if (name != NULL) {
        ebb__text_str(&s->text, name);
    } else {
        ebb__text_str(&s->text, "kind ");
        ebb__text_u64(&s->text, kind);
    }
}

/* "Light#1.2.1" */
static void add_machine(sink *s, uint32_t index) {
    const ebb__machine *m = ebb__machine_at(s->ms, index);
    const char *name = m->type == NULL ? NULL : m->type->t.name;
    ebb__text_str(&s->text, name == NULL ? "machine" : name);
    ebb__text_str(&s->text, "#");
    ebb__text_id(&s->text, ebb__machine_id(s->ms, index));
}

static const char *lifecycle_name(uint8_t lifecycle) {
    static const char *const names[] = {"?", "Created", "Running", "Faulted", "Stopped"};
    return names[lifecycle <= EBB_MACHINE_STOPPED ? lifecycle : 0];
}

static void dump_machine(sink *s, uint32_t index) {
    const ebb__machine *m = ebb__machine_at(s->ms, index);
    ebb_machine_info info;
    if (ebb_machine_info_of(s->ms, (ebb_machine){ebb__machine_id(s->ms, index)}, &info) != EBB_OK) return;
    begin(s, "  ");
    add_machine(s, index);
    ebb__text_str(&s->text, " ");
    ebb__text_str(&s->text, lifecycle_name(m->lifecycle));
    ebb__text_str(&s->text, " in ");
    const char *state = m->type->t.states[m->state].name;
    if (state != NULL) ebb__text_str(&s->text, state);
    else ebb__text_u64(&s->text, m->state);
    add_count(s, ", ", info.queued, " queued");
    add_count(s, " (", info.deferred, " deferred)");
    add_count(s, ", waits for ", info.pending, " replies");
    add_count(s, ", owes ", info.held, " replies");
    add_count(s, ", ", info.timers, " timers");
    if (s->ms->running == m) ebb__text_str(&s->text, ", being dispatched");
    else if (m->flags & EBB__M_READY) ebb__text_str(&s->text, ", about to be dispatched");
    end(s);
}

static uint32_t oldest(const ebb_machines *ms) {
    uint32_t i = ms->youngest;
    while (i != 0 && ebb__machine_at(ms, i)->older != 0) i = ebb__machine_at(ms, i)->older;
    return i;
}

void ebb_machines_dump(const ebb_machines *ms, void (*write)(void *ctx, const char *text, size_t n),
                       void *ctx) {
    sink s = {.ms = ms, .write = write, .ctx = ctx};
    if (ms->rt == NULL) return;
    begin(&s, "machines: ");
    ebb__text_u64(&s.text, ms->n_machines);
    add_count(&s, ", ", ms->queued, " messages queued");
    add_count(&s, ", ", ms->pendings.live, " requests pending");
    end(&s);
    for (uint32_t i = oldest(ms); i != 0; i = ebb__machine_at(ms, i)->newer) dump_machine(&s, i);
}

/* ---- one machine --------------------------------------------------------------------------------------------------- */

static const char *cell_name(uint8_t what) {
    static const char *const names[] = {"?", "message", "request", "reply",
                                        "?", "failure", "timer",   "stale timer"};
    return what < sizeof names / sizeof *names ? names[what] : "?";
}

enum { EXPLAIN_CELLS = 100 }; /* a mailbox may have 65,535 */

static void explain_mailbox(sink *s, const ebb__machine *m) {
    bool deferred = m->mark != NULL;
    const ebb__cell *c = m->last == NULL ? NULL : m->last->next;
    uint32_t n = 0;
    while (c != NULL) {
        if (n++ == EXPLAIN_CELLS) {
            begin(s, "  and more");
            end(s);
            return;
        }
        begin(s, deferred ? "  deferred " : "  queued ");
        ebb__text_str(&s->text, cell_name(c->what));
        ebb__text_str(&s->text, " ");
        add_kind(s, c->kind);
        if (c->from != 0) {
            ebb__text_str(&s->text, " from #");
            ebb__text_id(&s->text, c->from);
        }
        end(s);
        if (c == m->mark) deferred = false;
        c = c == m->last ? NULL : c->next;
    }
}

static void explain_pendings(sink *s, const ebb__machine *m) {
    for (uint32_t i = m->more->made; i != 0; i = ebb__pending_at(s->ms, i)->made_next) {
        const ebb__pending *p = ebb__pending_at(s->ms, i);
        if (p->flags & EBB__ENDED) continue; /* its answer is in the mailbox */
        begin(s, "  waits for the reply to ");
        add_kind(s, p->origin->kind);
        ebb__text_str(&s->text, " by ");
        add_machine(s, p->responder);
        if (p->node.links.next != 0) {
            ebb__text_str(&s->text, ", for ");
            uint64_t now = ebb__now(s->ms->rt);
            ebb__text_u64(&s->text, p->node.due > now ? (p->node.due - now) / EBB_MS : 0);
            ebb__text_str(&s->text, " ms more");
        }
        end(s);
    }
    for (uint32_t i = m->more->held; i != 0; i = ebb__pending_more_at(s->ms, i)->held_next) {
        const ebb__pending *p = ebb__pending_at(s->ms, i);
        begin(s, "  owes the reply to ");
        add_kind(s, p->origin->kind);
        if (p->requester != 0) {
            ebb__text_str(&s->text, " of ");
            add_machine(s, p->requester);
        }
        end(s);
    }
}

static void explain_alarms(sink *s, const ebb__machine *m) {
    uint64_t now = ebb__now(s->ms->rt);
    for (uint32_t i = m->more->alarms; i != 0; i = ebb__alarm_at(s->ms, i)->next) {
        const ebb__alarm *a = ebb__alarm_at(s->ms, i);
        begin(s, "  timer ");
        add_kind(s, a->cell->kind);
        ebb__text_str(&s->text, " in ");
        ebb__text_u64(&s->text, a->node.due > now ? (a->node.due - now) / EBB_MS : 0);
        ebb__text_str(&s->text, " ms");
        end(s);
    }
}

ebb_status ebb_machine_explain(const ebb_machines *ms, ebb_machine machine,
                               void (*write)(void *ctx, const char *text, size_t n), void *ctx) {
    sink s = {.ms = ms, .write = write, .ctx = ctx};
    ebb_machine_info info;
    ebb_status st = ebb_machine_info_of(ms, machine, &info);
    if (st != EBB_OK) return st;
    if (info.type == NULL) {
        begin(&s, "  stopped");
        end(&s);
        return EBB_OK;
    }
    uint32_t index = (uint32_t)(machine.id >> 32) & 0xffffff;
    const ebb__machine *m = ebb__machine_at(ms, index);
    dump_machine(&s, index);
    explain_mailbox(&s, m);
    if (m->more == NULL) return EBB_OK;
    explain_pendings(&s, m);
    explain_alarms(&s, m);
    return EBB_OK;
}
