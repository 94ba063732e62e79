/* Looking at the rows of the lab provider: whether they agree with each other, and all of them as text. */
#include <stdarg.h>
#include <stdio.h>

#include "durable/lab_rows.h"

/* ---- checked --------------------------------------------------------------------------------------------------- */

typedef struct check {
    const ebb__lab_data *data;
    char *text;
    size_t room;
    bool failed;
} check;

static void need(check *c, bool holds, const ebb__lab_instance *i, const char *what) {
    if (holds || c->failed) return;
    c->failed = true;
    (void)snprintf(c->text, c->room, "store '%s', instance '%s': %s", c->data->name,
                   i != NULL ? i->id->at : "", what);
}

static bool is_in(const ebb__lab_list *l, const ebb__lab_links *at) {
    for (const ebb__lab_links *k = l->first; k != NULL; k = k->next)
        if (k == at) return true;
    return false;
}

static void check_list(check *c, const ebb__lab_list *l, const ebb__lab_instance *i) {
    uint64_t n = 0;
    const ebb__lab_links *last = NULL;
    for (const ebb__lab_links *at = l->first; at != NULL; last = at, at = at->next, n++)
        need(c, at->prev == last, i, "a list is broken");
    need(c, l->last == last && l->n == n, i, "a list has another end or number");
}

static void check_work(check *c, const ebb__lab_instance *i) {
    for (ebb__lab_links *at = i->work.first; at != NULL; at = at->next) {
        const ebb__lab_work *w = EBB__LAB_OF(const ebb__lab_work, links, at);
        const bool claimed = !ebb__token_is_none(w->claim.token);
        need(c, w->instance == i && w->execution <= i->execution, i, "work of another instance or execution");
        need(c, ebb__lab_find_work(c->data, i->key, w->execution, w->activity) == w, i,
             "work is not found by its key, or is there twice");
        need(c, is_in(claimed ? &w->queue->claimed : &w->queue->idle, &w->queue_links), i,
             "work stands in the wrong list of its queue");
        need(c, claimed || w->until == 0, i, "unclaimed work has a lease");
    }
}

static void check_messages(check *c, const ebb__lab_instance *i) {
    uint64_t last = 0;
    for (ebb__lab_links *at = i->messages.first; at != NULL; at = at->next) {
        const ebb__lab_message *m = EBB__LAB_OF(const ebb__lab_message, links, at);
        need(c, m->seq > last, i, "messages are not in order");
        need(c, m->execution == 0 || m->execution == i->execution, i, "a message of another execution");
        last = m->seq;
    }
    need(c, is_in(&c->data->ready, &i->ready_links) == (i->messages.n > 0), i,
         "the list of those with messages is wrong");
}

static void check_timers(check *c, const ebb__lab_instance *i) {
    for (ebb__lab_links *at = i->timers.first; at != NULL; at = at->next) {
        const ebb__lab_timer *t = EBB__LAB_OF(const ebb__lab_timer, links, at);
        need(c, t->instance == i && is_in(&c->data->due, &t->due_links), i,
             "a timer is not in the store's list");
    }
}

static void check_turns(check *c, const ebb__lab_instance *i) {
    uint64_t execution = 0, turn = 0;
    for (ebb__lab_links *at = i->turns.first; at != NULL; at = at->next) {
        const ebb__lab_turn *t = EBB__LAB_OF(const ebb__lab_turn, links, at);
        const bool next =
            t->execution == execution ? t->turn == turn + 1 : t->turn == 1 && t->execution > execution;
        need(c, next, i, "turns have a gap, or one is there twice");
        execution = t->execution;
        turn = t->turn;
    }
    need(c, execution <= i->execution && i->turn == (execution == i->execution ? turn : 0), i,
         "the last turn is another");
}

static void check_due(check *c) {
    uint64_t last = 0;
    for (ebb__lab_links *at = c->data->due.first; at != NULL; at = at->next) {
        const ebb__lab_timer *t = EBB__LAB_OF(const ebb__lab_timer, due_links, at);
        need(c, t->due >= last, t->instance, "timers are not in the order of their time");
        last = t->due;
    }
    check_list(c, &c->data->due, NULL);
    check_list(c, &c->data->ready, NULL);
    check_list(c, &c->data->instances, NULL);
}

static void check_instance(check *c, const ebb__lab_instance *i) {
    const ebb__lab_list *lists[] = {&i->turns, &i->messages, &i->timers, &i->work, &i->values, &i->dedups};
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) check_list(c, lists[k], i);
    need(c, ebb__lab_find(c->data, i->id->at) == i, i, "it is not found by its id, or is there twice");
    need(c, ebb__lab_find_key(c->data, i->key) == i, i, "it is not found by its key");
    need(c, !i->kept || !ebb__token_is_none(i->claim.token), i, "it is kept by nobody");
    need(c, !i->chosen, i, "a fetch has not ended");
    check_turns(c, i);
    check_messages(c, i);
    check_timers(c, i);
    check_work(c, i);
}

bool ebb__lab_world_check(const ebb__lab_world *w, char *text, size_t room) {
    for (const ebb__lab_data *d = ebb__lab_world_stores(w); d != NULL; d = d->next) {
        check c = {d, text, room, false};
        check_due(&c);
        for (ebb__lab_links *at = d->instances.first; at != NULL && !c.failed; at = at->next)
            check_instance(&c, EBB__LAB_OF(const ebb__lab_instance, links, at));
        if (c.failed) return false;
    }
    return true;
}

/* ---- printed ----------------------------------------------------------------------------------------------------- */

typedef struct out {
    void (*write)(void *ctx, const char *text, size_t n);
    void *ctx;
} out;

static void __attribute__((format(printf, 2, 3))) say(const out *o, const char *format, ...) {
    char text[600];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    o->write(o->ctx, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

static void say_hex(const out *o, ebb_blob b) {
    const uint8_t *at = b.at;
    for (size_t i = 0; i < b.n; i++) say(o, "%02x", at[i]);
    say(o, "\n");
}

#define LLU(x) ((unsigned long long)(x))

static void say_rows(const out *o, const ebb__lab_instance *i) {
    for (ebb__lab_links *at = i->turns.first; at != NULL; at = at->next) {
        const ebb__lab_turn *t = EBB__LAB_OF(const ebb__lab_turn, links, at);
        say(o, "  turn %llu/%llu ", LLU(t->execution), LLU(t->turn));
        say_hex(o, t->body);
    }
    for (ebb__lab_links *at = i->messages.first; at != NULL; at = at->next) {
        const ebb__lab_message *m = EBB__LAB_OF(const ebb__lab_message, links, at);
        say(o, "  message %d for %llu step %llu ", (int)m->kind, LLU(m->execution), LLU(m->step));
        say_hex(o, m->body);
    }
    for (ebb__lab_links *at = i->timers.first; at != NULL; at = at->next) {
        const ebb__lab_timer *t = EBB__LAB_OF(const ebb__lab_timer, links, at);
        say(o, "  timer %llu/%llu at %llu\n", LLU(t->execution), LLU(t->step), LLU(t->due));
    }
    for (ebb__lab_links *at = i->work.first; at != NULL; at = at->next) {
        const ebb__lab_work *w = EBB__LAB_OF(const ebb__lab_work, links, at);
        say(o, "  work %llu/%llu %s in %s, %s ", LLU(w->execution), LLU(w->activity), w->name, w->queue->name,
            ebb__token_is_none(w->claim.token) ? "idle" : "claimed");
        say_hex(o, w->input);
    }
    for (ebb__lab_links *at = i->values.first; at != NULL; at = at->next) {
        const ebb__lab_value *v = EBB__LAB_OF(const ebb__lab_value, links, at);
        say(o, "  value %s ", v->key);
        say_hex(o, v->value);
    }
}

void ebb__lab_world_dump(const ebb__lab_world *w, void (*write)(void *ctx, const char *text, size_t n),
                         void *ctx) {
    const out o = {write, ctx};
    for (const ebb__lab_data *d = ebb__lab_world_stores(w); d != NULL; d = d->next) {
        say(&o, "store '%s'\n", d->name);
        for (ebb__lab_links *at = d->instances.first; at != NULL; at = at->next) {
            const ebb__lab_instance *i = EBB__LAB_OF(const ebb__lab_instance, links, at);
            say(&o, " instance %s %s %u %s execution %llu turn %llu\n", i->id->at, i->name->at, i->version,
                ebb_instance_state_name(i->state), LLU(i->execution), LLU(i->turn));
            say_rows(&o, i);
        }
    }
}
