/* Work in the lab provider: fetched, ended, given back; and sessions. */
#include "durable/lab_rows.h"

/* ---- sessions ----------------------------------------------------------------------------------------------------- */

static ebb__lab_session *find_session(const ebb__lab_data *d, const char *name) {
    for (ebb__lab_links *at = d->sessions.first; at != NULL; at = at->next) {
        ebb__lab_session *x = EBB__LAB_OF(ebb__lab_session, links, at);
        if (strcmp(x->name, name) == 0) return x;
    }
    return NULL;
}

static bool session_allows(const ebb__lab_data *d, const ebb__lab_work *w, ebb_provider_node node) {
    const ebb__lab_session *x = *w->session != 0 ? find_session(d, w->session) : NULL;
    if (x == NULL || (x->node.id == node.id && x->node.epoch == node.epoch)) return true;
    return !ebb__lab_is_live(d, x->node);
}

/* Room for the session of a row, if it is new. False: no memory. */
static bool make_session(ebb__lab_data *d, const ebb__lab_work *w) {
    ebb__lab_batch b = {.data = d};
    if (*w->session == 0 || find_session(d, w->session) != NULL) return true;
    ebb__lab_session *x = ebb__lab_make(&b, sizeof *x + strlen(w->session) + 1);
    if (x == NULL) return false;
    strcpy(x->name, w->session);
    ebb__lab_append(&d->sessions, &x->links);
    return true;
}

static void take_session(ebb__lab_data *d, const ebb__lab_work *w, ebb_provider_node node) {
    ebb__lab_session *x = *w->session != 0 ? find_session(d, w->session) : NULL;
    if (x != NULL) x->node = node;
}

/* ---- fetched ---------------------------------------------------------------------------------------------------------- */

static ebb__lab_queue *queue_of(const ebb__lab_data *d, const char *name) {
    ebb__lab_queue *q = d->queues;
    while (q != NULL && strcmp(q->name, name) != 0) q = q->next;
    return q;
}

/* Where a fetch stands in one queue: first what is idle, then what was claimed and has lapsed. */
typedef struct place {
    ebb__lab_links *idle, *claimed;
    uint32_t left;
} place;

static bool is_visible(ebb__lab_self *s, const ebb_provider_fetch_work_call *c, const ebb__lab_work *w) {
    const uint64_t now = s->data->now;
    if (w->visible > now || (!ebb__token_is_none(w->claim.token) && w->until > now)) return false;
    return ebb__lab_is_among(c->only, c->only_n, w->instance->key) && session_allows(s->data, w, c->node);
}

static ebb__lab_work *next_visible(ebb__lab_self *s, const ebb_provider_fetch_work_call *c, place *p) {
    while (p->idle != NULL || p->claimed != NULL) {
        ebb__lab_links **at = p->idle != NULL ? &p->idle : &p->claimed;
        ebb__lab_work *w = EBB__LAB_OF(ebb__lab_work, queue_links, *at);
        *at = (*at)->next;
        if (is_visible(s, c, w)) return w;
    }
    return NULL;
}

static ebb__lab_work *next_of(ebb__lab_self *s, ebb_provider_fetch_work_call *c, place *p,
                              ebb__lab_work **suspect) {
    ebb__lab_work *w = NULL;
    if (p->left == 0) return NULL;
    while ((w = next_visible(s, c, p)) != NULL && w->attempts >= EBB__LAB_SUSPECT)
        if (*suspect == NULL) *suspect = w;
    p->left = w != NULL ? p->left - 1 : 0;
    return w;
}

/* One row of each queue in turn, so that none keeps the others away. */
static size_t choose(ebb__lab_self *s, ebb_provider_fetch_work_call *c, place *places, ebb__lab_work **to) {
    ebb__lab_work *suspect = NULL;
    size_t found = 0, before;
    do {
        before = found;
        for (size_t k = 0; k < c->queues_n && found < c->most; k++) {
            ebb__lab_work *w = next_of(s, c, &places[k], &suspect);
            if (w != NULL) to[found++] = w;
        }
    } while (found > before);
    c->suspects_wait = suspect != NULL && !c->suspects;
    if (suspect == NULL || !c->suspects) return found;
    to[0] = suspect;
    return 1;
}

static bool put_item(ebb__lab_self *s, ebb_provider_fetch_work_call *c, const ebb__lab_work *w,
                     ebb_provider_work_item *item) {
    const ebb__lab_bytes *id = w->instance->id;
    *item = (ebb_provider_work_item){.token = ebb__token_new(s->host),
                                     .key = w->instance->key,
                                     .id = ebb_provider_copy(&c->call, id->at, id->n),
                                     .execution = w->execution,
                                     .activity = w->activity,
                                     .name = ebb_provider_copy(&c->call, w->name, strlen(w->name)),
                                     .attempt = w->attempt,
                                     .attempts = w->attempts + 1,
                                     .waited = s->data->now - w->visible};
    item->input = (ebb_blob){ebb_provider_copy(&c->call, w->input.at, w->input.n), w->input.n};
    return item->id != NULL && item->name != NULL && item->input.at != NULL && make_session(s->data, w);
}

static uint64_t again(const ebb__lab_self *s, const ebb_provider_fetch_work_call *c) {
    uint64_t at = EBB_FOREVER;
    const uint64_t now = s->data->now;
    for (size_t k = 0; k < c->queues_n; k++) {
        const ebb__lab_queue *q = queue_of(s->data, c->queues[k].name);
        for (ebb__lab_links *l = q != NULL ? q->idle.first : NULL; l != NULL; l = l->next) {
            const uint64_t visible = EBB__LAB_OF(ebb__lab_work, queue_links, l)->visible;
            if (visible > now && visible < at) at = visible;
        }
        for (ebb__lab_links *l = q != NULL ? q->claimed.first : NULL; l != NULL; l = l->next) {
            const uint64_t until = EBB__LAB_OF(ebb__lab_work, queue_links, l)->until;
            if (until > now && until < at) at = until;
        }
    }
    return at == EBB_FOREVER ? EBB_FOREVER : at - now;
}

static bool make_room(ebb__lab_self *s, ebb_provider_fetch_work_call *c, place **places,
                      ebb__lab_work ***to) {
    uint64_t most = 1;
    *places = ebb_provider_alloc(&c->call, (c->queues_n + 1) * sizeof **places);
    if (*places == NULL) return false;
    for (size_t k = 0; k < c->queues_n; k++) {
        const ebb__lab_queue *q = queue_of(s->data, c->queues[k].name);
        (*places)[k] =
            q != NULL ? (place){q->idle.first, q->claimed.first, c->queues[k].most} : (place){NULL, NULL, 0};
        if (q != NULL) most += q->idle.n + q->claimed.n;
    }
    if (most > c->most) most = c->most;
    *to = ebb_provider_alloc(&c->call, (size_t)most * sizeof(void *));
    c->items = ebb_provider_alloc(&c->call, (size_t)most * sizeof *c->items);
    return *to != NULL && c->items != NULL;
}

void ebb__lab_fetch_work(ebb__lab_self *s, ebb_provider_fetch_work_call *c) {
    ebb__lab_work **chosen = NULL;
    place *places = NULL;
    c->now = ebb__lab_now(s);
    c->again = again(s, c);
    if (!ebb__lab_is_live(s->data, c->node) || c->most == 0) {
        ebb__lab_read(&c->call);
        return;
    }
    bool whole = make_room(s, c, &places, &chosen);
    const size_t found = whole ? choose(s, c, places, chosen) : 0;
    for (size_t k = 0; k < found && whole; k++) whole = put_item(s, c, chosen[k], &c->items[k]);
    if (!whole) {
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the work");
        return;
    }
    for (size_t k = 0; k < found; k++) {
        chosen[k]->attempts++;
        take_session(s->data, chosen[k], c->node);
        ebb__lab_claim_work(chosen[k], c->node, c->items[k].token, c->now + c->lease);
    }
    c->items_n = found;
    if (found != 0) ebb__lab_done(s, &c->call);
    else ebb__lab_read(&c->call);
}

/* ---- ended -------------------------------------------------------------------------------------------------------------- */

static bool is_repeated(const ebb__lab_instance *i, const ebb_provider_ack_work_call *c) {
    if (i == NULL || c->message == NULL) return false;
    for (ebb__lab_links *at = i->messages.last; at != NULL; at = at->prev)
        if (ebb__token_is(EBB__LAB_OF(ebb__lab_message, links, at)->ack_id, c->ack_id)) return true;
    return false;
}

static void end_work(ebb__lab_self *s, ebb_provider_ack_work_call *c, ebb__lab_work *w) {
    ebb__lab_instance *i = w->instance;
    ebb__lab_batch b = {.data = s->data};
    ebb__lab_message *m = NULL;
    c->dropped = c->message != NULL && (ebb__lab_has_ended(i) || i->execution != c->execution);
    if (c->message != NULL && !c->dropped)
        m = ebb__lab_message_new(&b, EBB_PROVIDER_MESSAGE_ACTIVITY, *c->message);
    if (b.failed) {
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the end of the work");
        return;
    }
    ebb__lab_delete_work(s, w, EBB_CANCEL_NONE);
    if (c->dropped) s->stats.dropped++;
    if (m != NULL) {
        m->execution = c->execution;
        m->step = c->activity;
        m->ack_id = c->ack_id;
        ebb__lab_add_message(s, i, m, false);
    }
    ebb__lab_done(s, &c->call);
}

void ebb__lab_ack_work(ebb__lab_self *s, ebb_provider_ack_work_call *c) {
    (void)ebb__lab_now(s);
    ebb__lab_work *w = ebb__lab_held(s->data, c->key, c->execution, c->activity, c->token);
    if (w != NULL) end_work(s, c, w);
    else if (is_repeated(ebb__lab_find_key(s->data, c->key), c)) ebb__lab_read(&c->call);
    else
        ebb__provider_fail(
            &c->call, EBB_ERR_GONE, "activity %llu of execution %llu of instance %llu is not held",
            (unsigned long long)c->activity, (unsigned long long)c->execution, (unsigned long long)c->key);
}

/* ---- given back ------------------------------------------------------------------------------------------------------------ */

ebb__lab_work *ebb__lab_find_token(const ebb__lab_data *d, ebb_provider_token token) {
    for (ebb__lab_queue *q = d->queues; q != NULL && !ebb__token_is_none(token); q = q->next) {
        for (ebb__lab_links *at = q->claimed.first; at != NULL; at = at->next) {
            ebb__lab_work *w = EBB__LAB_OF(ebb__lab_work, queue_links, at);
            if (ebb__token_is(w->claim.token, token)) return w;
        }
    }
    return NULL;
}

void ebb__lab_abandon_work(ebb__lab_self *s, ebb_provider_abandon_work_call *c) {
    const uint64_t now = ebb__lab_now(s);
    for (size_t k = 0; k < c->tokens_n; k++) {
        ebb__lab_work *w = ebb__lab_find_token(s->data, c->tokens[k]);
        if (w == NULL) continue;
        if (w->attempts > 0) w->attempts--;
        ebb__lab_release_work(s, w, now + c->delay);
    }
    ebb__lab_done(s, &c->call);
}
