/* Turns in the lab provider: fetched, committed, given back. */
#include "durable/lab_rows.h"

/* ---- what may be fetched ---------------------------------------------------------------------------------------- */

static bool lists(const ebb__lab_node *n, const ebb__lab_instance *i) {
    for (size_t k = 0; k < n->runs_n; k++) {
        if (strcmp(n->runs[k].name, i->name->at) != 0) continue;
        if (n->runs[k].version != 0 && (i->version == 0 || n->runs[k].version == i->version)) return true;
    }
    return false;
}

static bool fetches_from(const ebb__lab_node *n, const char *queue) {
    size_t k = 0;
    while (k < n->runs_n && (n->runs[k].version != 0 || strcmp(n->runs[k].name, queue) != 0)) k++;
    return k < n->runs_n;
}

/* A live node lists the queue; NULL: the instance. */
static bool is_listed(const ebb__lab_data *d, const ebb__lab_instance *i, const char *queue) {
    for (ebb__lab_links *at = d->nodes.first; at != NULL; at = at->next) {
        const ebb__lab_node *n = EBB__LAB_OF(ebb__lab_node, links, at);
        if (n->epoch == 0 || n->until <= d->now) continue;
        if (queue != NULL ? fetches_from(n, queue) : lists(n, i)) return true;
    }
    return false;
}

bool ebb__lab_is_unserved(const ebb__lab_data *d, const ebb__lab_instance *i) {
    if (i->state != EBB_INSTANCE_RUNNING) return false;
    if (i->messages.n != 0 && !is_listed(d, i, NULL)) return true;
    for (ebb__lab_links *at = i->work.first; at != NULL; at = at->next) {
        const ebb__lab_work *w = EBB__LAB_OF(ebb__lab_work, links, at);
        if (ebb__token_is_none(w->claim.token) && !is_listed(d, i, w->queue->name)) return true;
    }
    return false;
}

bool ebb__lab_is_among(const uint64_t *only, size_t n, uint64_t key) {
    for (size_t k = 0; only != NULL && k < n; k++) {
        if (only[k] == key) return true;
    }
    return only == NULL;
}

static bool is_node(ebb_provider_node a, ebb_provider_node b) {
    return a.id == b.id && a.epoch == b.epoch;
}

static bool may_have(const ebb__lab_self *s, const ebb_provider_fetch_turns_call *c, const ebb__lab_node *n,
                     const ebb__lab_instance *i) {
    if (i->state != EBB_INSTANCE_RUNNING || i->chosen || !lists(n, i)) return false;
    if (!ebb__lab_is_among(c->only, c->only_n, i->key)) return false;
    if (ebb__token_is_none(i->claim.token)) return true;
    if (is_node(i->claim.node, c->node)) return i->kept;
    return !ebb__lab_is_live(s->data, i->claim.node);
}

/* Instances in the order in which they wait: those with messages, merged with those of timers that are due. */
typedef struct walk {
    ebb__lab_links *ready, *due;
    uint64_t now;
} walk;

static ebb__lab_instance *next_of(walk *w) {
    ebb__lab_instance *i = w->ready != NULL ? EBB__LAB_OF(ebb__lab_instance, ready_links, w->ready) : NULL;
    const ebb__lab_timer *t = w->due != NULL ? EBB__LAB_OF(ebb__lab_timer, due_links, w->due) : NULL;
    if (t != NULL && t->due > w->now) t = NULL;
    if (t != NULL && (i == NULL || t->due < i->waits_since)) {
        w->due = w->due->next;
        return t->instance;
    }
    if (i != NULL) w->ready = w->ready->next;
    return i;
}

/* Returns how many are in `to`. A suspect comes alone. */
static size_t choose(ebb__lab_self *s, ebb_provider_fetch_turns_call *c, const ebb__lab_node *n,
                     ebb__lab_instance **to) {
    walk w = {s->data->ready.first, s->data->due.first, s->data->now};
    ebb__lab_instance *i, *suspect = NULL;
    size_t found = 0;
    while (found < c->most && (i = next_of(&w)) != NULL) {
        if (!may_have(s, c, n, i)) continue;
        if (i->attempts < EBB__LAB_SUSPECT) {
            i->chosen = true;
            to[found++] = i;
        } else if (suspect == NULL) suspect = i;
    }
    for (size_t k = 0; k < found; k++) to[k]->chosen = false;
    c->suspects_wait = suspect != NULL && !c->suspects;
    if (suspect == NULL || !c->suspects) return found;
    to[0] = suspect;
    return 1;
}

/* ---- an item ------------------------------------------------------------------------------------------------------ */

static bool put_message(ebb_provider_fetch_turns_call *c, ebb_provider_message *to,
                        const ebb__lab_message *m) {
    const void *body = ebb_provider_copy(&c->call, m->body.at, m->body.n);
    *to = (ebb_provider_message){{(uint8_t)m->kind, m->seq}, m->execution, m->step, {body, m->body.n}};
    return body != NULL;
}

static const ebb__lab_timer *next_due(const ebb__lab_instance *i, uint64_t now, const ebb__lab_timer *after) {
    const ebb__lab_timer *first = NULL;
    for (ebb__lab_links *at = i->timers.first; at != NULL; at = at->next) {
        const ebb__lab_timer *t = EBB__LAB_OF(ebb__lab_timer, links, at);
        if (t->due > now) continue;
        if (after != NULL && (t->due < after->due || (t->due == after->due && t->step <= after->step)))
            continue;
        if (first == NULL || t->due < first->due || (t->due == first->due && t->step < first->step))
            first = t;
    }
    return first;
}

static bool put_messages(ebb__lab_self *s, ebb_provider_fetch_turns_call *c, const ebb__lab_instance *i,
                         ebb_provider_turn_item *item) {
    const size_t most = c->messages != 0 ? c->messages : EBB_DURABLE_BATCH;
    const size_t room = i->messages.n + i->timers.n < most ? i->messages.n + i->timers.n : most;
    ebb_provider_message *to = ebb_provider_alloc(&c->call, room * sizeof *to);
    if (to == NULL) return false;
    size_t n = 0;
    for (ebb__lab_links *at = i->messages.first; at != NULL && n < most; at = at->next)
        if (!put_message(c, &to[n++], EBB__LAB_OF(ebb__lab_message, links, at))) return false;
    for (const ebb__lab_timer *t = NULL; n < most && (t = next_due(i, s->data->now, t)) != NULL;)
        to[n++] =
            (ebb_provider_message){{EBB_PROVIDER_MESSAGE_TIMER, t->step}, t->execution, t->step, {NULL, 0}};
    item->messages = to;
    item->messages_n = n;
    return true;
}

static bool put_item(ebb__lab_self *s, ebb_provider_fetch_turns_call *c, const ebb__lab_instance *i,
                     ebb_provider_turn_item *item) {
    *item = (ebb_provider_turn_item){.token = ebb__token_new(s->host),
                                     .key = i->key,
                                     .id = ebb_provider_copy(&c->call, i->id->at, i->id->n),
                                     .name = ebb_provider_copy(&c->call, i->name->at, i->name->n),
                                     .version = i->version,
                                     .execution = i->execution,
                                     .turn = i->turn,
                                     .attempts = i->attempts + 1};
    return item->id != NULL && item->name != NULL && put_messages(s, c, i, item);
}

/* The epoch of a node whose instances are taken ends: it may be alive, and is told by its renewal. */
static void take(ebb__lab_self *s, ebb__lab_instance *i, ebb_provider_node node, ebb_provider_token token) {
    ebb__lab_node *old =
        ebb__token_is_none(i->claim.token) ? NULL : ebb__lab_find_node(s->data, i->claim.node);
    if (old != NULL && !is_node(i->claim.node, node)) ebb__lab_end_node(s, old, false);
    i->claim = (ebb__lab_claim){token, node};
    i->kept = false;
    i->attempts++;
}

static uint64_t sooner(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Until a timer is due or a claim lapses that somebody waits for. */
static uint64_t again(const ebb__lab_self *s) {
    const ebb__lab_data *d = s->data;
    uint64_t at = EBB_FOREVER;
    for (ebb__lab_links *l = d->due.first; l != NULL && at == EBB_FOREVER; l = l->next) {
        const uint64_t due = EBB__LAB_OF(ebb__lab_timer, due_links, l)->due;
        if (due > d->now) at = due;
    }
    for (ebb__lab_links *l = d->nodes.first; l != NULL; l = l->next) {
        const ebb__lab_node *n = EBB__LAB_OF(ebb__lab_node, links, l);
        if (n->epoch != 0 && n->until > d->now) at = sooner(at, n->until);
    }
    return at == EBB_FOREVER ? EBB_FOREVER : at - d->now;
}

void ebb__lab_fetch_turns(ebb__lab_self *s, ebb_provider_fetch_turns_call *c) {
    c->now = ebb__lab_now(s);
    c->again = again(s);
    ebb__lab_node *n = ebb__lab_find_node(s->data, c->node);
    if (n == NULL || n->until <= c->now || c->most == 0) {
        ebb__lab_read(&c->call);
        return;
    }
    const uint64_t waiting = s->data->ready.n + s->data->due.n;
    const size_t room = waiting < c->most ? (size_t)waiting + 1 : c->most;
    ebb__lab_instance **chosen = ebb_provider_alloc(&c->call, room * sizeof(void *));
    c->items = ebb_provider_alloc(&c->call, room * sizeof *c->items);
    const size_t found = chosen != NULL && c->items != NULL ? choose(s, c, n, chosen) : 0;
    bool whole = chosen != NULL && c->items != NULL;
    for (size_t k = 0; k < found && whole; k++) whole = put_item(s, c, chosen[k], &c->items[k]);
    if (!whole) {
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the turns");
        return;
    }
    for (size_t k = 0; k < found; k++) take(s, chosen[k], c->node, c->items[k].token);
    c->items_n = found;
    if (found != 0) ebb__lab_done(s, &c->call);
    else ebb__lab_read(&c->call);
}

/* ---- committed --------------------------------------------------------------------------------------------------- */

static const ebb__lab_turn *find_turn(const ebb__lab_instance *i, uint64_t execution, uint64_t turn) {
    for (ebb__lab_links *at = i->turns.last; at != NULL; at = at->prev) {
        const ebb__lab_turn *t = EBB__LAB_OF(ebb__lab_turn, links, at);
        if (t->execution == execution && t->turn == turn) return t;
        if (t->execution < execution || (t->execution == execution && t->turn < turn)) return NULL;
    }
    return NULL;
}

/* EBB_PENDING: the turn is to be committed. */
static ebb_status is_fenced(ebb__lab_self *s, ebb_provider_ack_turn_call *c, ebb__lab_instance *i) {
    const ebb__lab_turn *t = i != NULL ? find_turn(i, c->execution, c->turn) : NULL;
    if (t != NULL && ebb__token_is(t->ack_id, c->ack_id)) {
        if (ebb__token_is(i->claim.token, c->token)) ebb__lab_release_instance(s, i);
        return EBB_OK;
    }
    if (i == NULL || t != NULL || ebb__lab_has_ended(i)) return EBB_ERR_FENCED;
    return c->execution != i->execution || c->turn != i->turn + 1 ? EBB_ERR_FENCED : EBB_PENDING;
}

/* The row of a claim that still holds. NULL: it does not. */
ebb__lab_work *ebb__lab_held(const ebb__lab_data *d, uint64_t key, uint64_t execution, uint64_t activity,
                             ebb_provider_token token) {
    ebb__lab_work *w = ebb__lab_find_work(d, key, execution, activity);
    if (w == NULL || ebb__token_is_none(token) || !ebb__token_is(w->claim.token, token)) return NULL;
    return w->until > d->now ? w : NULL;
}

static bool all_held(const ebb__lab_data *d, ebb_provider_ack_turn_call *c) {
    for (c->gone_at = 0; c->gone_at < c->done_n; c->gone_at++) {
        const ebb_provider_work_done *w = &c->done[c->gone_at];
        if (ebb__lab_held(d, c->key, w->execution, w->activity, w->token) == NULL) return false;
    }
    return true;
}

/* All that an ack inserts, made before anything is changed. The arrays are of the call's memory. */
typedef struct made {
    ebb__lab_turn *turn;
    ebb__lab_work **work;
    ebb__lab_timer **timers;
    ebb__lab_value **values;
    ebb__lab_message *next;
    ebb__lab_bytes *name, *custom, *result, *text, *input;
    ebb__lab_outbox out;
} made;

void *ebb__lab_array(ebb__lab_batch *b, ebb_provider_call *c, size_t n) {
    void *at = ebb_provider_alloc(c, (n != 0 ? n : 1) * sizeof(void *));
    if (at == NULL) b->failed = true;
    return at;
}

static void make_rows(ebb__lab_batch *b, ebb_provider_ack_turn_call *c, made *m) {
    m->work = ebb__lab_array(b, &c->call, c->work_n);
    m->timers = ebb__lab_array(b, &c->call, c->timers_n);
    m->values = ebb__lab_array(b, &c->call, c->values_n);
    if (b->failed) return;
    for (size_t k = 0; k < c->work_n; k++) m->work[k] = ebb__lab_work_new(b, &c->work[k]);
    for (size_t k = 0; k < c->timers_n; k++) m->timers[k] = ebb__lab_timer_new(b);
    for (size_t k = 0; k < c->values_n; k++) m->values[k] = ebb__lab_value_new(b, &c->values[k]);
}

static bool make(ebb__lab_self *s, ebb_provider_ack_turn_call *c, const ebb__lab_instance *i, made *m) {
    ebb__lab_batch b = {.data = s->data};
    memset(m, 0, sizeof *m);
    m->turn = ebb__lab_turn_new(&b, c->body);
    make_rows(&b, c, m);
    if (i->version == 0 && c->version != 0 && c->name != NULL)
        m->name = ebb__lab_bytes_new(&b, ebb_blob_text(c->name));
    if (c->custom != NULL) m->custom = ebb__lab_bytes_new(&b, *c->custom);
    if (c->ends != 0) {
        m->result = ebb__lab_bytes_new(&b, c->result);
        m->text = ebb__lab_bytes_new(&b, ebb_blob_text(c->text != NULL ? c->text : ""));
    }
    if (c->next != NULL) {
        m->next = ebb__lab_message_new(&b, EBB_PROVIDER_MESSAGE_START, *c->next);
        m->input = ebb__lab_bytes_new(&b, c->next_input);
    }
    ebb__lab_outbox_make(&b, &c->call, i, c->outgoing, c->outgoing_n, &m->out);
    if (b.failed) ebb__lab_undo(&b);
    return !b.failed;
}

static ebb__lab_timer *find_timer(const ebb__lab_instance *i, uint64_t execution, uint64_t step) {
    for (ebb__lab_links *at = i->timers.first; at != NULL; at = at->next) {
        ebb__lab_timer *t = EBB__LAB_OF(ebb__lab_timer, links, at);
        if (t->step == step && (execution == 0 || t->execution == execution)) return t;
    }
    return NULL;
}

static void delete_acked(ebb__lab_data *d, const ebb_provider_ack_turn_call *c, ebb__lab_instance *i) {
    for (size_t k = 0; k < c->acked_n; k++) {
        const bool is_timer = c->acked[k].kind == EBB_PROVIDER_MESSAGE_TIMER;
        ebb__lab_timer *t = is_timer ? find_timer(i, c->execution, c->acked[k].seq) : NULL;
        ebb__lab_message *m = is_timer ? NULL : ebb__lab_find_message(i, c->acked[k].seq);
        if (t != NULL) ebb__lab_delete_timer(d, t);
        if (m != NULL) ebb__lab_delete_message(d, i, m);
    }
}

void ebb__lab_delete_all_work(ebb__lab_self *s, ebb__lab_instance *i, uint64_t execution,
                              ebb_cancel_kind cause) {
    ebb__lab_links *next;
    for (ebb__lab_links *at = i->work.first; at != NULL; at = next) {
        ebb__lab_work *w = EBB__LAB_OF(ebb__lab_work, links, at);
        next = at->next;
        if (w->execution == execution)
            ebb__lab_delete_work(s, w, cause != EBB_CANCEL_NONE ? cause : EBB_CANCEL_USER);
    }
}

void ebb__lab_delete_all_timers(ebb__lab_data *d, ebb__lab_instance *i, uint64_t execution) {
    ebb__lab_links *next;
    for (ebb__lab_links *at = i->timers.first; at != NULL; at = next) {
        ebb__lab_timer *t = EBB__LAB_OF(ebb__lab_timer, links, at);
        next = at->next;
        if (t->execution == execution) ebb__lab_delete_timer(d, t);
    }
}

static void delete_rows(ebb__lab_self *s, const ebb_provider_ack_turn_call *c, ebb__lab_instance *i) {
    ebb__lab_data *d = s->data;
    for (size_t k = 0; k < c->done_n; k++) {
        ebb__lab_work *w = ebb__lab_find_work(d, i->key, c->done[k].execution, c->done[k].activity);
        if (w != NULL) ebb__lab_delete_work(s, w, EBB_CANCEL_NONE); /* the same one twice in `done` */
    }
    delete_acked(d, c, i);
    for (size_t k = 0; k < c->cancelled_n; k++) {
        ebb__lab_work *w = ebb__lab_find_work(d, i->key, c->execution, c->cancelled[k].activity);
        const ebb_cancel_kind cause = c->cancelled[k].cause;
        if (w != NULL) ebb__lab_delete_work(s, w, cause != EBB_CANCEL_NONE ? cause : EBB_CANCEL_USER);
    }
    for (size_t k = 0; k < c->timers_cancelled_n; k++) {
        ebb__lab_timer *t = find_timer(i, c->execution, c->timers_cancelled[k]);
        if (t != NULL) ebb__lab_delete_timer(d, t);
    }
}

static void insert_work(ebb__lab_self *s, const ebb_provider_ack_turn_call *c, ebb__lab_instance *i,
                        made *m) {
    for (size_t k = 0; k < c->work_n; k++) {
        const ebb_provider_token token = c->work[k].token;
        m->work[k]->execution = c->execution;
        ebb__lab_add_work(s, i, m->work[k]);
        if (ebb__token_is_none(token)) ebb__lab_hint_work(s, c->work[k].queue);
        else ebb__lab_claim_work(m->work[k], c->node, token, s->data->now + c->lease);
    }
}

static void insert_rows(ebb__lab_self *s, const ebb_provider_ack_turn_call *c, ebb__lab_instance *i,
                        made *m) {
    insert_work(s, c, i, m);
    for (size_t k = 0; k < c->timers_n; k++) {
        m->timers[k]->execution = c->execution;
        m->timers[k]->step = c->timers[k].step;
        m->timers[k]->due = c->timers[k].due;
        ebb__lab_add_timer(s, i, m->timers[k]);
    }
    for (size_t k = 0; k < c->values_n; k++) ebb__lab_add_value(s->data, i, m->values[k]);
    if (c->all_work) ebb__lab_delete_all_work(s, i, c->execution, c->cause);
    if (c->all_timers) ebb__lab_delete_all_timers(s->data, i, c->execution);
}

static void set_instance(ebb__lab_self *s, const ebb_provider_ack_turn_call *c, ebb__lab_instance *i,
                         made *m) {
    ebb__lab_data *d = s->data;
    i->turn = c->turn;
    i->unread = c->unread;
    i->attempts = 0;
    if (c->turn == 1) i->semantics = c->semantics;
    if (m->name != NULL) {
        ebb__lab_bytes_set(d, &i->name, m->name);
        i->version = c->version;
    }
    if (m->custom != NULL) ebb__lab_bytes_set(d, &i->custom, m->custom);
    if (c->ends == 0) return;
    i->state = c->ends;
    i->ended = d->now;
    ebb__lab_bytes_set(d, &i->result, m->result);
    ebb__lab_bytes_set(d, &i->text, m->text);
    ebb__lab_hint(s, EBB_PROVIDER_HINT_ENDED, i);
}

void ebb__lab_next_execution(ebb__lab_self *s, ebb__lab_instance *i, uint32_t version) {
    ebb__lab_drop_messages(s, i, i->execution);
    ebb__lab_delete_dedups(s->data, i);
    i->execution++;
    i->turn = 0;
    i->version = version;
    i->attempts = 0;
}

static void end_claim(ebb__lab_self *s, const ebb_provider_ack_turn_call *c, ebb__lab_instance *i) {
    const bool holds = !ebb__token_is_none(c->token) && ebb__token_is(i->claim.token, c->token);
    if (holds && c->keep && !ebb__lab_has_ended(i) && ebb__lab_is_live(s->data, c->node)) i->kept = true;
    else if (holds || ebb__lab_has_ended(i)) ebb__lab_release_instance(s, i);
    if (i->messages.n > 0 && i->state == EBB_INSTANCE_RUNNING) ebb__lab_hint(s, EBB_PROVIDER_HINT_TURNS, i);
}

static void commit(ebb__lab_self *s, ebb_provider_ack_turn_call *c, ebb__lab_instance *i, made *m) {
    m->turn->execution = c->execution;
    m->turn->turn = c->turn;
    m->turn->at = c->at;
    m->turn->ack_id = c->ack_id;
    ebb__lab_add_turn(i, m->turn);
    s->stats.bytes += c->body.n;
    delete_rows(s, c, i);
    insert_rows(s, c, i, m);
    set_instance(s, c, i, m);
    if (m->next != NULL) {
        ebb__lab_next_execution(s, i, c->next_version != 0 ? c->next_version : i->version);
        ebb__lab_bytes_set(s->data, &i->input, m->input);
        m->next->execution = i->execution;
        ebb__lab_add_message(s, i, m->next, true);
    }
    c->dropped = ebb__lab_outbox_deliver(s, i, c->execution, &m->out);
    end_claim(s, c, i);
}

void ebb__lab_ack_turn(ebb__lab_self *s, ebb_provider_ack_turn_call *c) {
    (void)ebb__lab_now(s);
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    made m;
    const ebb_status st = is_fenced(s, c, i);
    if (st == EBB_OK) ebb__lab_done(s, &c->call);
    else if (st == EBB_ERR_FENCED)
        ebb__provider_fail(
            &c->call, st, "turn %llu of execution %llu of instance %llu can't be committed any more",
            (unsigned long long)c->turn, (unsigned long long)c->execution, (unsigned long long)c->key);
    else if (!all_held(s->data, c))
        ebb__provider_fail(&c->call, EBB_ERR_GONE,
                           "work %zu of %zu that the turn would end is not held any more", c->gone_at,
                           c->done_n);
    else if (!make(s, c, i, &m)) ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the turn");
    else {
        commit(s, c, i, &m);
        ebb__lab_done(s, &c->call);
    }
}

/* ---- given back ---------------------------------------------------------------------------------------------------- */

static ebb__lab_instance *find_claim(const ebb__lab_data *d, ebb_provider_token token) {
    for (ebb__lab_links *at = d->instances.first; at != NULL && !ebb__token_is_none(token); at = at->next) {
        ebb__lab_instance *i = EBB__LAB_OF(ebb__lab_instance, links, at);
        if (ebb__token_is(i->claim.token, token)) return i;
    }
    return NULL;
}

void ebb__lab_abandon_turns(ebb__lab_self *s, ebb_provider_abandon_turns_call *c) {
    (void)ebb__lab_now(s);
    for (size_t k = 0; k < c->tokens_n; k++) {
        ebb__lab_instance *i = find_claim(s->data, c->tokens[k]);
        if (i == NULL) continue;
        if (!i->kept && i->attempts > 0) i->attempts--;
        ebb__lab_release_instance(s, i);
    }
    ebb__lab_done(s, &c->call);
}
