/* What operators ask of the lab provider: mark, reset, remove, and lists of instances. */
#include <stdlib.h>

#include "durable/lab_rows.h"

static void fail_fenced(ebb_provider_call *c, uint64_t key, uint64_t execution, uint64_t turn) {
    ebb__provider_fail(c, EBB_ERR_FENCED, "turn %llu of execution %llu is not the last of instance %llu",
                       (unsigned long long)turn, (unsigned long long)execution, (unsigned long long)key);
}

/* ---- mark ------------------------------------------------------------------------------------------------------- */

void ebb__lab_mark(ebb__lab_self *s, ebb_provider_mark_call *c) {
    ebb__lab_batch b = {.data = s->data};
    (void)ebb__lab_now(s);
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i == NULL || ebb__lab_has_ended(i) || i->execution != c->execution || i->turn != c->turn) {
        fail_fenced(&c->call, c->key, c->execution, c->turn);
        return;
    }
    ebb__lab_bytes *text = ebb__lab_bytes_new(&b, ebb_blob_text(c->text != NULL ? c->text : ""));
    if (text == NULL) {
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the reason");
        return;
    }
    i->state = c->state;
    if (c->state == EBB_INSTANCE_RUNNING) i->attempts = 0;
    ebb__lab_bytes_set(s->data, &i->text, text);
    ebb__lab_release_instance(s, i);
    if (c->state == EBB_INSTANCE_SUSPENDED) ebb__lab_hint(s, EBB_PROVIDER_HINT_ENDED, i);
    ebb__lab_done(s, &c->call);
}

/* ---- reset ------------------------------------------------------------------------------------------------------ */

typedef struct made {
    ebb__lab_turn **turns;
    ebb__lab_work **work;
    ebb__lab_timer **timers;
    ebb__lab_message **messages;
    ebb__lab_value **values;
    ebb__lab_outbox out;
} made;

static void copy_turns(ebb__lab_batch *b, const ebb_provider_reset_call *c, const ebb__lab_instance *i,
                       made *m) {
    for (ebb__lab_links *at = i->turns.first; at != NULL && !b->failed; at = at->next) {
        const ebb__lab_turn *t = EBB__LAB_OF(ebb__lab_turn, links, at);
        if (t->execution != c->execution || t->turn > c->keep) continue;
        ebb__lab_turn *copy = m->turns[t->turn - 1] = ebb__lab_turn_new(b, t->body);
        if (copy == NULL) return;
        copy->execution = c->execution + 1;
        copy->turn = t->turn;
        copy->at = t->at;
    }
}

static bool make(ebb__lab_self *s, ebb_provider_reset_call *c, const ebb__lab_instance *i, made *m) {
    ebb__lab_batch b = {.data = s->data};
    m->turns = ebb__lab_array(&b, &c->call, (size_t)c->keep);
    m->work = ebb__lab_array(&b, &c->call, c->work_n);
    m->timers = ebb__lab_array(&b, &c->call, c->timers_n);
    m->messages = ebb__lab_array(&b, &c->call, c->messages_n);
    m->values = ebb__lab_array(&b, &c->call, c->values_n);
    if (!b.failed) copy_turns(&b, c, i, m);
    for (size_t k = 0; k < c->work_n && !b.failed; k++) m->work[k] = ebb__lab_work_new(&b, &c->work[k]);
    for (size_t k = 0; k < c->timers_n && !b.failed; k++) m->timers[k] = ebb__lab_timer_new(&b);
    for (size_t k = 0; k < c->values_n && !b.failed; k++)
        m->values[k] = ebb__lab_value_new(&b, &c->values[k]);
    for (size_t k = 0; k < c->messages_n && !b.failed; k++)
        m->messages[k] =
            ebb__lab_message_new(&b, (ebb_provider_message_kind)c->messages[k].at.kind, c->messages[k].body);
    ebb__lab_outbox_make(&b, &c->call, i, c->outgoing, c->outgoing_n, &m->out);
    if (b.failed) ebb__lab_undo(&b);
    return !b.failed;
}

static void insert(ebb__lab_self *s, const ebb_provider_reset_call *c, ebb__lab_instance *i, made *m) {
    for (size_t k = 0; k < c->keep; k++) ebb__lab_add_turn(i, m->turns[k]);
    for (size_t k = 0; k < c->work_n; k++) {
        m->work[k]->execution = i->execution;
        ebb__lab_add_work(s, i, m->work[k]);
        ebb__lab_hint_work(s, c->work[k].queue);
    }
    for (size_t k = 0; k < c->timers_n; k++) {
        m->timers[k]->execution = i->execution;
        m->timers[k]->step = c->timers[k].step;
        m->timers[k]->due = c->timers[k].due;
        ebb__lab_add_timer(s, i, m->timers[k]);
    }
    for (size_t k = 0; k < c->values_n; k++) ebb__lab_add_value(s->data, i, m->values[k]);
    for (size_t k = c->messages_n; k-- > 0;) { /* at the front, so the last one first */
        m->messages[k]->execution = c->messages[k].execution;
        m->messages[k]->step = c->messages[k].step;
        ebb__lab_add_message(s, i, m->messages[k], true);
    }
}

static void commit(ebb__lab_self *s, const ebb_provider_reset_call *c, ebb__lab_instance *i, made *m) {
    ebb__lab_delete_all_work(s, i, i->execution, EBB_CANCEL_USER);
    ebb__lab_delete_all_timers(s->data, i, i->execution);
    ebb__lab_next_execution(s, i, i->version);
    ebb__lab_delete_values(s->data, i);
    ebb__lab_bytes_set(s->data, &i->result, NULL);
    ebb__lab_bytes_set(s->data, &i->text, NULL);
    i->state = EBB_INSTANCE_RUNNING;
    i->ended = 0;
    i->unread = 0;
    i->turn = c->keep;
    insert(s, c, i, m);
    ebb__lab_release_instance(s, i);
    (void)ebb__lab_outbox_deliver(s, i, i->execution, &m->out);
}

void ebb__lab_reset(ebb__lab_self *s, ebb_provider_reset_call *c) {
    made m;
    (void)ebb__lab_now(s);
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i == NULL || i->execution != c->execution || i->turn != c->turn || c->keep > i->turn)
        fail_fenced(&c->call, c->key, c->execution, c->turn);
    else if (!make(s, c, i, &m)) ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the reset");
    else {
        commit(s, c, i, &m);
        ebb__lab_done(s, &c->call);
    }
}

/* ---- remove ------------------------------------------------------------------------------------------------------- */

void ebb__lab_remove(ebb__lab_self *s, ebb_provider_remove_call *c) {
    (void)ebb__lab_now(s);
    c->removed = 0;
    for (size_t k = 0; k < c->keys_n; k++) {
        ebb__lab_instance *i = ebb__lab_find_key(s->data, c->keys[k]);
        if (i == NULL || (!c->force && !ebb__lab_has_ended(i))) continue;
        if (!ebb__lab_has_ended(i)) ebb__lab_hint(s, EBB_PROVIDER_HINT_ENDED, i);
        ebb__lab_delete_instance(s, i);
        c->removed++;
    }
    ebb__lab_done(s, &c->call);
}

/* ---- lists --------------------------------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b) {
    const ebb__lab_instance *const *x = a, *const *y = b;
    return strcmp((*x)->id->at, (*y)->id->at);
}

static bool matches(const ebb_instance_filter *f, const ebb__lab_instance *i) {
    if (f->name != NULL && strcmp(f->name, i->name->at) != 0) return false;
    if (f->prefix != NULL && strncmp(f->prefix, i->id->at, strlen(f->prefix)) != 0) return false;
    if (f->parent != NULL && !f->tree && strcmp(f->parent, i->parent->at) != 0) return false;
    if (f->states != 0 && (f->states & 1u << i->state) == 0) return false;
    if (f->started_after != 0 && i->started <= f->started_after) return false;
    return f->ended_before == 0 || (i->ended != 0 && i->ended < f->ended_before);
}

/* The instances below the first of `to`, parents first; each generation by id. Returns how many there are. */
static size_t tree_of(ebb__lab_instance *const *all, size_t n, ebb__lab_instance **to) {
    size_t found = 1;
    for (size_t k = 0; k < found; k++) {
        for (size_t j = 0; j < n; j++)
            if (strcmp(all[j]->parent->at, to[k]->id->at) == 0 && found < n) to[found++] = all[j];
    }
    return found;
}

/* Where a page begins. What it begins behind may have been deleted: then at the first that is not before it. */
static size_t begin(const ebb_instance_filter *f, ebb__lab_instance *const *of, size_t n) {
    if (f->after == NULL) return 0;
    for (size_t k = 0; k < n; k++) {
        const int order = strcmp(of[k]->id->at, f->after);
        if (order == 0) return k + 1;
        if (!f->tree && order > 0) return k;
    }
    return f->tree ? 0 : n;
}

static size_t gather(ebb__lab_self *s, const ebb_instance_filter *f, ebb__lab_instance **all,
                     ebb__lab_instance **tree, ebb__lab_instance ***from) {
    size_t n = 0;
    for (ebb__lab_links *at = s->data->instances.first; at != NULL; at = at->next)
        all[n++] = EBB__LAB_OF(ebb__lab_instance, links, at);
    qsort((void *)all, n, sizeof(void *), by_id);
    *from = all;
    if (f->parent == NULL || !f->tree) return n;
    *from = tree;
    tree[0] = ebb__lab_find(s->data, f->parent);
    return tree[0] != NULL ? tree_of(all, n, tree) : 0;
}

void ebb__lab_list_of(ebb__lab_self *s, ebb_provider_list_call *c) {
    const ebb_instance_filter *f = c->filter;
    const size_t room = (size_t)s->data->instances.n + 1, most = f->most != 0 ? f->most : 100;
    ebb__lab_instance **all = ebb_provider_alloc(&c->call, room * sizeof(void *)), **from;
    ebb__lab_instance **tree = ebb_provider_alloc(&c->call, room * sizeof(void *));
    c->rows = ebb_provider_alloc(&c->call, (room < most ? room : most) * sizeof *c->rows);
    c->rows_n = 0;
    (void)ebb__lab_now(s);
    bool whole = all != NULL && tree != NULL && c->rows != NULL;
    const size_t n = whole ? gather(s, f, all, tree, &from) : 0;
    for (size_t k = whole ? begin(f, from, n) : n; k < n && c->rows_n < most && whole; k++)
        if (matches(f, from[k])) whole = ebb__lab_row(s, &c->call, from[k], false, &c->rows[c->rows_n++]);
    if (whole) ebb__lab_read(&c->call);
    else ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the list");
}
