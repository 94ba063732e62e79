/* Providers with a planted bug each: the lab provider, with something done to a call before it sees it, or to its answer.
 * Every one has to be found by a case of the conformance suite. */
#include "durable/lab_rows.h"
#include "tests/support/suite_run.h"

typedef struct plant {
    const char *name;
    ebb_provider_op op;
    void (*before)(ebb__lab_self *s, void *call);
    void (*after)(ebb__lab_self *s, void *call);
} plant;

static const plant *planted;
static ebb_provider_hint_kind deaf_to; /* hints of this kind are lost */

/* ---- helpers ------------------------------------------------------------------------------------------------------ */

static ebb__lab_work *row_of(ebb__lab_self *s, const ebb_provider_ack_work_call *c) {
    return ebb__lab_find_work(s->data, c->key, c->execution, c->activity);
}

static ebb__lab_instance *only_of(ebb__lab_self *s, const ebb_provider_fetch_turns_call *c) {
    return c->only != NULL && c->only_n == 1 ? ebb__lab_find_key(s->data, c->only[0]) : NULL;
}

static void delete_message(ebb__lab_self *s, ebb__lab_instance *i, ebb__lab_links *at) {
    ebb__lab_delete_message(s->data, i, EBB__LAB_OF(ebb__lab_message, links, at));
}

/* ---- acks of work ---------------------------------------------------------------------------------------------------- */

static void gone_is_ok(ebb__lab_self *s, void *call) {
    ebb_provider_ack_work_call *c = call;
    (void)s;
    if (c->call.status == EBB_ERR_GONE) c->call.status = EBB_OK;
}
static void any_token(ebb__lab_self *s, void *call) {
    ebb_provider_ack_work_call *c = call;
    const ebb__lab_work *w = row_of(s, c);
    if (w != NULL) c->token = w->claim.token;
}
static void low_half_of_a_token(ebb__lab_self *s, void *call) {
    ebb_provider_ack_work_call *c = call;
    const ebb__lab_work *w = row_of(s, c);
    if (w != NULL && w->claim.token.lo == c->token.lo) c->token = w->claim.token;
}
static void high_half_of_a_token(ebb__lab_self *s, void *call) {
    ebb_provider_ack_work_call *c = call;
    const ebb__lab_work *w = row_of(s, c);
    if (w != NULL && w->claim.token.hi == c->token.hi) c->token = w->claim.token;
}
static void no_lease(ebb__lab_self *s, void *call) {
    ebb__lab_work *w = row_of(s, call);
    if (w != NULL) w->until = UINT64_MAX;
}
static void none_is_empty(ebb__lab_self *s, void *call) {
    static const ebb_blob empty;
    ebb_provider_ack_work_call *c = call;
    (void)s;
    if (c->message == NULL) c->message = &empty;
}
static void forgets_ack_id(ebb__lab_self *s, void *call) {
    ((ebb_provider_ack_work_call *)call)->ack_id = ebb__token_new(s->host);
}
static void no_ack_id_at_all(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_work_call *)call)->ack_id = (ebb_provider_token){1, 1};
}
static void never_dropped(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_work_call *)call)->dropped = false;
}
static void row_stays(ebb__lab_self *s, void *call) { /* the message comes, and the row is not deleted */
    ebb_provider_ack_work_call *c = call;
    ebb__lab_work *w = row_of(s, c);
    if (w != NULL && c->message != NULL) c->message = NULL;
}

/* ---- acks of turns ------------------------------------------------------------------------------------------------------- */

static void keeps_cancelled(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->cancelled_n = 0;
}
static void keeps_claimed_of_all(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->all_work = false;
}
static void all_work_of_every_execution(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i == NULL || !c->all_work) return;
    for (uint64_t e = 1; e <= i->execution; e++) ebb__lab_delete_all_work(s, i, e, EBB_CANCEL_USER);
}
static void cancels_first_and_inserts_then(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL && c->all_work) ebb__lab_delete_all_work(s, i, i->execution, EBB_CANCEL_USER);
    c->all_work = false;
}
static void keeps_cancelled_timers(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->timers_cancelled_n = 0;
}
static void keeps_all_timers(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->all_timers = false;
}
static void acks_a_range(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    uint64_t last = 0;
    for (size_t k = 0; k < c->acked_n; k++)
        if (c->acked[k].kind != EBB_PROVIDER_MESSAGE_TIMER && c->acked[k].seq > last) last = c->acked[k].seq;
    while (i != NULL && i->messages.first != NULL &&
           EBB__LAB_OF(ebb__lab_message, links, i->messages.first)->seq <= last)
        delete_message(s, i, i->messages.first);
}
static void acks_the_whole_inbox(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    while (i != NULL && c->acked_n > 0 && i->messages.first != NULL) delete_message(s, i, i->messages.first);
}
static void acks_nothing(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->acked_n = 0;
}
static void commits_any_turn(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    const ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL && c->turn > i->turn) c->turn = i->turn + 1;
}
static void commits_any_execution(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    const ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL) c->execution = i->execution;
}
static void forgets_turns(ebb__lab_self *s, void *call) {
    ((ebb_provider_ack_turn_call *)call)->ack_id = ebb__token_new(s->host);
}
static void fenced_is_ok(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    (void)s;
    if (c->call.status == EBB_ERR_FENCED) c->call.status = EBB_OK;
}
static void fences_by_token(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    const ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL && !ebb__token_is(i->claim.token, c->token)) c->turn = UINT64_MAX;
}
static void a_fenced_ack_deletes_messages(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i == NULL || c->call.status != EBB_ERR_FENCED) return;
    while (i->messages.first != NULL) delete_message(s, i, i->messages.first);
}
static void a_fenced_ack_ends_the_claim(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL && c->call.status == EBB_ERR_FENCED) ebb__lab_release_instance(s, i);
}
static void a_gone_ack_deletes_its_work(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    if (c->call.status != EBB_ERR_GONE) return;
    for (size_t k = 0; k < c->gone_at; k++) {
        ebb__lab_work *w = ebb__lab_find_work(s->data, c->key, c->done[k].execution, c->done[k].activity);
        if (w != NULL) ebb__lab_delete_work(s, w, EBB_CANCEL_NONE);
    }
}
static void ignores_done(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->done_n = 0;
}
static void done_without_a_lease(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    for (size_t k = 0; k < c->done_n; k++) {
        ebb__lab_work *w = ebb__lab_find_work(s->data, c->key, c->done[k].execution, c->done[k].activity);
        if (w != NULL) w->until = UINT64_MAX;
    }
}
static void gone_at_0(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->gone_at = 0;
}
static void timers_are_due_at_once(ebb__lab_self *s, void *call) {
    static ebb_provider_timer timers[8];
    ebb_provider_ack_turn_call *c = call;
    (void)s;
    for (size_t k = 0; k < c->timers_n && k < 8; k++) timers[k] = (ebb_provider_timer){c->timers[k].step, 1};
    if (c->timers_n <= 8) c->timers = timers;
}
static void timers_are_lost(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->timers_n = 0;
}
static void status_does_not_stay(ebb__lab_self *s, void *call) {
    static const ebb_blob empty = {"", 0};
    ebb_provider_ack_turn_call *c = call;
    (void)s;
    if (c->custom == NULL) c->custom = &empty;
}
static void keep_is_ignored(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->keep = false;
}
static void drops_are_not_counted(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->dropped = 0;
}
static void children_that_exist_are_forgotten(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    for (size_t k = 0; k < c->outgoing_n; k++)
        if (c->outgoing[k].kind == EBB_PROVIDER_MESSAGE_START && ebb__lab_find(s->data, c->outgoing[k].id))
            c->outgoing_n = 0;
}
static void outgoing_is_lost(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->outgoing_n = 0;
}
static void next_takes_no_signals(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL && c->next != NULL) acks_the_whole_inbox(s, call);
}
static void next_keeps_old_messages(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    for (ebb__lab_links *at = i != NULL && c->next != NULL ? i->messages.first : NULL; at != NULL;
         at = at->next)
        EBB__LAB_OF(ebb__lab_message, links, at)->execution = 0;
}
static void next_has_the_old_version(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->next_version = 0;
}
static void results_are_lost(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->result = (ebb_blob){NULL, 0};
}
static void texts_are_lost(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->text = "";
}
static void values_are_never_removed(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    (void)s;
    while (c->values_n > 0 && c->values[c->values_n - 1].value.at == NULL) c->values_n--;
}
static void the_version_is_not_chosen(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->version = 0;
}
static void claimed_work_is_not_claimed(ebb__lab_self *s, void *call) {
    static ebb_provider_work work;
    ebb_provider_ack_turn_call *c = call;
    (void)s;
    if (c->work_n != 1) return;
    work = c->work[0];
    work.token = (ebb_provider_token){0, 0};
    c->work = &work;
}
static void time_of_a_turn_is_lost(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->at = 0;
}
static void bodies_end_at_a_0(ebb__lab_self *s, void *call) {
    ebb_provider_ack_turn_call *c = call;
    (void)s;
    if (c->body.n > 0) c->body.n = strnlen(c->body.at, c->body.n);
}

/* ---- fetches of turns ------------------------------------------------------------------------------------------------------ */

static void ignores_claims(ebb__lab_self *s, void *call) {
    ebb__lab_instance *i = only_of(s, call);
    if (i != NULL) memset(&i->claim, 0, sizeof i->claim);
}
static void gives_again_to_the_same_node(ebb__lab_self *s, void *call) {
    const ebb_provider_fetch_turns_call *c = call;
    ebb__lab_instance *i = only_of(s, c);
    if (i != NULL && i->claim.node.id == c->node.id) i->kept = true;
}
static void charges_nothing(ebb__lab_self *s, void *call) {
    ebb__lab_instance *i = only_of(s, call);
    if (i != NULL && ((ebb_provider_fetch_turns_call *)call)->items_n > 0) i->attempts = 0;
}
static void gives_suspects(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_turns_call *)call)->suspects = true;
}
static void hides_suspects(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_turns_call *)call)->suspects_wait = false;
}
static void turns_messages_round(ebb__lab_self *s, void *call) {
    ebb_provider_fetch_turns_call *c = call;
    (void)s;
    for (size_t k = 0; k < c->items_n; k++) {
        ebb_provider_message *m = (ebb_provider_message *)(uintptr_t)c->items[k].messages;
        for (size_t a = 0, b = c->items[k].messages_n; a + 1 < b; a++) {
            const ebb_provider_message swap = m[a];
            m[a] = m[--b];
            m[b] = swap;
        }
    }
}
static void turns_items_round(ebb__lab_self *s, void *call) {
    ebb_provider_fetch_turns_call *c = call;
    (void)s;
    for (size_t a = 0, b = c->items_n; a + 1 < b; a++) {
        const ebb_provider_turn_item swap = c->items[a];
        c->items[a] = c->items[--b];
        c->items[b] = swap;
    }
}
static void gives_all_messages(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_turns_call *)call)->messages = 100000;
}
static void gives_all_items(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_turns_call *)call)->most = 1000;
}
static void gives_the_suspended(ebb__lab_self *s, void *call) {
    ebb__lab_instance *i = only_of(s, call);
    if (i != NULL && i->state == EBB_INSTANCE_SUSPENDED) i->state = EBB_INSTANCE_RUNNING;
}
static void gives_every_version(ebb__lab_self *s, void *call) {
    ebb__lab_instance *i = only_of(s, call);
    if (i != NULL) i->version = i->version > 3 ? 1 : i->version;
}
static void ignores_only(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_turns_call *)call)->only = NULL;
}
static void fetches_in_one_token(ebb__lab_self *s, void *call) {
    ebb__lab_instance *i = only_of(s, call);
    ebb_provider_fetch_turns_call *c = call;
    if (i == NULL || c->items_n == 0) return;
    i->claim.token = c->items[0].token = (ebb_provider_token){7, 7};
}
static void a_clock_since_the_boot(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_turns_call *)call)->now %= EBB_SECOND;
}

/* ---- fetches of work, abandons, nodes ------------------------------------------------------------------------------------------ */

static void gives_all_work(ebb__lab_self *s, void *call) {
    ebb_provider_fetch_work_call *c = call;
    (void)s;
    c->most = 1000;
    for (size_t k = 0; k < c->queues_n; k++) ((ebb_provider_queue *)(uintptr_t)c->queues)[k].most = 1000;
}
static void gives_one_queue(ebb__lab_self *s, void *call) {
    ebb_provider_fetch_work_call *c = call;
    (void)s;
    if (c->queues_n > 1) c->queues_n = 1;
}
static void turns_work_round(ebb__lab_self *s, void *call) {
    ebb_provider_fetch_work_call *c = call;
    (void)s;
    for (size_t a = 0, b = c->items_n; a + 1 < b; a++) {
        const ebb_provider_work_item swap = c->items[a];
        c->items[a] = c->items[--b];
        c->items[b] = swap;
    }
}
static void ignores_sessions(ebb__lab_self *s, void *call) {
    for (ebb__lab_links *at = s->data->sessions.first; at != NULL; at = at->next)
        EBB__LAB_OF(ebb__lab_session, links, at)->node = ((ebb_provider_fetch_work_call *)call)->node;
}
static void gives_suspect_work(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_work_call *)call)->suspects = true;
}
static void never_gives_suspect_work(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_work_call *)call)->suspects = false;
}
static void waits_for_0(ebb__lab_self *s, void *call) {
    ebb_provider_fetch_work_call *c = call;
    (void)s;
    for (size_t k = 0; k < c->items_n; k++) c->items[k].waited = 0;
}
static void forgets_the_attempt(ebb__lab_self *s, void *call) {
    ebb_provider_fetch_work_call *c = call;
    (void)s;
    for (size_t k = 0; k < c->items_n; k++) c->items[k].attempt = 1;
}
static void leases_never_end(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_work_call *)call)->lease = UINT64_C(1) << 60;
}
static void leases_end_at_once(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_work_call *)call)->lease = 0;
}
static void ignores_only_of_work(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_fetch_work_call *)call)->only = NULL;
}
static void charges_abandoned_turns(ebb__lab_self *s, void *call) {
    const ebb_provider_abandon_turns_call *c = call;
    for (ebb__lab_links *at = s->data->instances.first; at != NULL; at = at->next) {
        ebb__lab_instance *i = EBB__LAB_OF(ebb__lab_instance, links, at);
        if (c->tokens_n > 0 && ebb__token_is(i->claim.token, c->tokens[0])) i->attempts++;
    }
}
static void forgets_abandoned_turns(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_abandon_turns_call *)call)->tokens_n = 0;
}
static void charges_abandoned_work(ebb__lab_self *s, void *call) {
    const ebb_provider_abandon_work_call *c = call;
    ebb__lab_work *w = c->tokens_n > 0 ? ebb__lab_find_token(s->data, c->tokens[0]) : NULL;
    if (w != NULL) w->attempts++;
}
static void abandons_without_a_delay(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_abandon_work_call *)call)->delay = 0;
}
static void nothing_is_gone(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_renew_call *)call)->gone_n = 0;
}
static void all_is_gone(ebb__lab_self *s, void *call) {
    ebb_provider_renew_call *c = call;
    (void)s;
    memcpy(c->gone, c->tokens, c->tokens_n * sizeof *c->gone);
    c->gone_n = c->tokens_n;
}
static void renews_for_no_time(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_renew_call *)call)->lease = 0;
}
static void is_never_lost(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_renew_call *)call)->lost = false;
}
static void never_leaves(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_leave_call *)call)->node.id = UINT64_MAX;
}
static void charges_who_leaves(ebb__lab_self *s, void *call) {
    const ebb_provider_leave_call *c = call;
    for (ebb__lab_links *at = s->data->instances.first; at != NULL; at = at->next) {
        ebb__lab_instance *i = EBB__LAB_OF(ebb__lab_instance, links, at);
        if (!ebb__token_is_none(i->claim.token) && i->claim.node.id == c->node.id) i->attempts++;
    }
}
static void charges_work_of_who_leaves(ebb__lab_self *s, void *call) {
    const ebb_provider_leave_call *c = call;
    for (ebb__lab_queue *q = s->data->queues; q != NULL; q = q->next)
        for (ebb__lab_links *at = q->claimed.first; at != NULL; at = at->next) {
            ebb__lab_work *w = EBB__LAB_OF(ebb__lab_work, queue_links, at);
            if (w->claim.node.id == c->node.id) w->attempts++;
        }
}
static void nodes_run_everything(ebb__lab_self *s, void *call) {
    static ebb_provider_runs runs[8];
    ebb_provider_join_call *c = call;
    (void)s;
    if (c->runs_n == 0 || c->runs_n > 7) return;
    memcpy(runs, c->runs, c->runs_n * sizeof *runs);
    runs[c->runs_n++] = (ebb_provider_runs){"suite-nobody-runs-this", 1};
    c->runs = runs;
}

/* ---- clients and operators ------------------------------------------------------------------------------------------------------- */

static void exists_is_ok(ebb__lab_self *s, void *call) {
    ebb_provider_start_call *c = call;
    (void)s;
    if (c->call.status == EBB_ERR_EXISTS) c->call.status = EBB_OK;
}
static void every_start_reuses(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_start_call *)call)->reuse = true;
}
static void no_start_reuses(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_start_call *)call)->reuse = false;
}
static void inputs_are_not_compared(ebb__lab_self *s, void *call) {
    ebb_provider_start_call *c = call;
    const ebb__lab_instance *i = ebb__lab_find(s->data, c->id);
    if (i != NULL) c->input = ebb__lab_blob(i->input);
}
static void ids_are_cut(ebb__lab_self *s, void *call) {
    static char id[EBB_DURABLE_ID + 1];
    ebb_provider_start_call *c = call;
    (void)s;
    if (strlen(c->id) < EBB_DURABLE_ID) return;
    memcpy(id, c->id, EBB_DURABLE_ID - 1);
    c->id = id;
}
static void existed_is_not_said(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_start_call *)call)->existed = false;
}
static void no_dedup(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_send_call *)call)->dedup = "";
}
static void no_limit_of_signals(ebb__lab_self *s, void *call) {
    ebb__lab_instance *i = ebb__lab_find(s->data, ((ebb_provider_send_call *)call)->id);
    if (i != NULL) i->unread = 0;
}
static void to_nobody_is_ok(ebb__lab_self *s, void *call) {
    ebb_provider_send_call *c = call;
    (void)s;
    if (c->call.status == EBB_ERR_UNKNOWN_INSTANCE) c->call.status = EBB_OK;
}
static void many_cancels(ebb__lab_self *s, void *call) {
    const ebb_provider_send_call *c = call;
    ebb__lab_instance *i = ebb__lab_find(s->data, c->id);
    if (i == NULL || c->kind != EBB_PROVIDER_MESSAGE_CANCEL) return;
    for (ebb__lab_links *at = i->messages.first; at != NULL; at = at->next)
        EBB__LAB_OF(ebb__lab_message, links, at)->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
}
static void sends_start_nothing(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_send_call *)call)->start = NULL;
}
static void history_from_the_start(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_history_call *)call)->after = 0;
}
static void history_at_once(ebb__lab_self *s, void *call) {
    ebb_provider_history_call *c = call;
    (void)s;
    c->bytes = 0;
    c->most = 0;
}
static void history_of_the_last(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_history_call *)call)->execution = 0;
}
static void no_more(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_history_call *)call)->more = false;
}
static void always_served(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_instance_call *)call)->row.unserved = false;
}
/* As if only messages could wait for a worker. */
static void work_is_always_served(ebb__lab_self *s, void *call) {
    ebb_provider_instance_row *row = &((ebb_provider_instance_call *)call)->row;
    const ebb__lab_instance *i = ebb__lab_find_key(s->data, row->key);
    if (i != NULL && i->messages.n == 0) row->unserved = false;
}
static void queues_are_orchestrations(ebb__lab_self *s, void *call) {
    static ebb_provider_runs runs[8];
    ebb_provider_join_call *c = call;
    (void)s;
    if (c->runs_n > 8) return;
    for (size_t i = 0; i < c->runs_n; i++) {
        runs[i] = c->runs[i];
        if (runs[i].version == 0) runs[i].version = 1;
    }
    c->runs = runs;
}

#define WITHOUT(name, change)                                                                                \
    static void name(ebb__lab_self *s, void *call) {                                                         \
        static ebb_instance_filter f;                                                                        \
        ebb_provider_list_call *c = call;                                                                    \
        (void)s;                                                                                             \
        f = *c->filter;                                                                                      \
        change;                                                                                              \
        c->filter = &f;                                                                                      \
    }
WITHOUT(lists_every_name, f.name = NULL)
WITHOUT(lists_every_state, f.states = 0)
WITHOUT(lists_the_first_page, f.after = NULL)
WITHOUT(lists_every_time, f.started_after = 0)
WITHOUT(lists_every_end, f.ended_before = 0)
WITHOUT(lists_children_only, f.tree = false)
WITHOUT(lists_a_thousand, f.most = 1000)

static void empty_is_none(ebb__lab_self *s, void *call) {
    ebb_provider_value_call *c = call;
    (void)s;
    if (c->value.n == 0) c->value.at = NULL;
}
static void claims_never_lapse_in_counts(ebb__lab_self *s, void *call) {
    ebb_provider_outstanding_call *c = call;
    (void)s;
    c->claimed = c->work;
}
static void marks_any_turn(ebb__lab_self *s, void *call) {
    ebb_provider_mark_call *c = call;
    const ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL) c->turn = i->turn;
}
static void a_resume_keeps_attempts(ebb__lab_self *s, void *call) {
    ebb_provider_mark_call *c = call;
    ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL) i->attempts = 2;
}
static void resets_any_turn(ebb__lab_self *s, void *call) {
    ebb_provider_reset_call *c = call;
    const ebb__lab_instance *i = ebb__lab_find_key(s->data, c->key);
    if (i != NULL) c->turn = i->turn;
}
static void resets_to_the_start(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_reset_call *)call)->keep = 0;
}
static void resets_keep_messages(ebb__lab_self *s, void *call) {
    ebb__lab_instance *i = ebb__lab_find_key(s->data, ((ebb_provider_reset_call *)call)->key);
    for (ebb__lab_links *at = i != NULL ? i->messages.first : NULL; at != NULL; at = at->next)
        EBB__LAB_OF(ebb__lab_message, links, at)->execution = 0;
}
static void resets_send_nothing(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_reset_call *)call)->outgoing_n = 0;
}
static void removes_what_runs(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_remove_call *)call)->force = true;
}
static void removes_one(ebb__lab_self *s, void *call) {
    ebb_provider_remove_call *c = call;
    (void)s;
    if (c->keys_n > 1) c->keys_n = 1;
}
static void texts_are_missing(ebb__lab_self *s, void *call) {
    (void)s;
    ((ebb_provider_ack_turn_call *)call)->call.text = "";
}

#define BEFORE(op, fn)                                                                                       \
    { #fn, EBB_PROVIDER_##op, fn, NULL }
#define AFTER(op, fn)                                                                                        \
    { #fn, EBB_PROVIDER_##op, NULL, fn }

static const plant plants[] = {
    AFTER(ACK_WORK, gone_is_ok),
    BEFORE(ACK_WORK, any_token),
    BEFORE(ACK_WORK, low_half_of_a_token),
    BEFORE(ACK_WORK, high_half_of_a_token),
    BEFORE(ACK_WORK, no_lease),
    BEFORE(ACK_WORK, none_is_empty),
    BEFORE(ACK_WORK, forgets_ack_id),
    BEFORE(ACK_WORK, no_ack_id_at_all),
    BEFORE(ACK_WORK, row_stays),
    AFTER(ACK_WORK, never_dropped),
    BEFORE(ACK_TURN, keeps_cancelled),
    BEFORE(ACK_TURN, keeps_claimed_of_all),
    BEFORE(ACK_TURN, all_work_of_every_execution),
    BEFORE(ACK_TURN, cancels_first_and_inserts_then),
    BEFORE(ACK_TURN, keeps_cancelled_timers),
    BEFORE(ACK_TURN, keeps_all_timers),
    BEFORE(ACK_TURN, acks_a_range),
    BEFORE(ACK_TURN, acks_the_whole_inbox),
    BEFORE(ACK_TURN, acks_nothing),
    BEFORE(ACK_TURN, commits_any_turn),
    BEFORE(ACK_TURN, commits_any_execution),
    BEFORE(ACK_TURN, forgets_turns),
    AFTER(ACK_TURN, fenced_is_ok),
    BEFORE(ACK_TURN, fences_by_token),
    AFTER(ACK_TURN, a_fenced_ack_deletes_messages),
    AFTER(ACK_TURN, a_fenced_ack_ends_the_claim),
    AFTER(ACK_TURN, a_gone_ack_deletes_its_work),
    BEFORE(ACK_TURN, ignores_done),
    BEFORE(ACK_TURN, done_without_a_lease),
    AFTER(ACK_TURN, gone_at_0),
    BEFORE(ACK_TURN, timers_are_due_at_once),
    BEFORE(ACK_TURN, timers_are_lost),
    BEFORE(ACK_TURN, status_does_not_stay),
    BEFORE(ACK_TURN, keep_is_ignored),
    AFTER(ACK_TURN, drops_are_not_counted),
    BEFORE(ACK_TURN, children_that_exist_are_forgotten),
    BEFORE(ACK_TURN, outgoing_is_lost),
    BEFORE(ACK_TURN, next_takes_no_signals),
    BEFORE(ACK_TURN, next_keeps_old_messages),
    BEFORE(ACK_TURN, next_has_the_old_version),
    BEFORE(ACK_TURN, results_are_lost),
    BEFORE(ACK_TURN, texts_are_lost),
    BEFORE(ACK_TURN, values_are_never_removed),
    BEFORE(ACK_TURN, the_version_is_not_chosen),
    BEFORE(ACK_TURN, claimed_work_is_not_claimed),
    BEFORE(ACK_TURN, time_of_a_turn_is_lost),
    BEFORE(ACK_TURN, bodies_end_at_a_0),
    AFTER(ACK_TURN, texts_are_missing),
    BEFORE(FETCH_TURNS, ignores_claims),
    BEFORE(FETCH_TURNS, gives_again_to_the_same_node),
    AFTER(FETCH_TURNS, charges_nothing),
    BEFORE(FETCH_TURNS, gives_suspects),
    AFTER(FETCH_TURNS, hides_suspects),
    AFTER(FETCH_TURNS, turns_messages_round),
    AFTER(FETCH_TURNS, turns_items_round),
    BEFORE(FETCH_TURNS, gives_all_messages),
    BEFORE(FETCH_TURNS, gives_all_items),
    BEFORE(FETCH_TURNS, gives_the_suspended),
    BEFORE(FETCH_TURNS, gives_every_version),
    BEFORE(FETCH_TURNS, ignores_only),
    AFTER(FETCH_TURNS, fetches_in_one_token),
    AFTER(FETCH_TURNS, a_clock_since_the_boot),
    BEFORE(FETCH_WORK, gives_all_work),
    BEFORE(FETCH_WORK, gives_one_queue),
    AFTER(FETCH_WORK, turns_work_round),
    BEFORE(FETCH_WORK, ignores_sessions),
    BEFORE(FETCH_WORK, gives_suspect_work),
    BEFORE(FETCH_WORK, never_gives_suspect_work),
    AFTER(FETCH_WORK, waits_for_0),
    AFTER(FETCH_WORK, forgets_the_attempt),
    BEFORE(FETCH_WORK, leases_never_end),
    BEFORE(FETCH_WORK, leases_end_at_once),
    BEFORE(FETCH_WORK, ignores_only_of_work),
    BEFORE(ABANDON_TURNS, charges_abandoned_turns),
    BEFORE(ABANDON_TURNS, forgets_abandoned_turns),
    BEFORE(ABANDON_WORK, charges_abandoned_work),
    BEFORE(ABANDON_WORK, abandons_without_a_delay),
    AFTER(RENEW, nothing_is_gone),
    AFTER(RENEW, all_is_gone),
    BEFORE(RENEW, renews_for_no_time),
    AFTER(RENEW, is_never_lost),
    BEFORE(LEAVE, never_leaves),
    BEFORE(LEAVE, charges_who_leaves),
    BEFORE(LEAVE, charges_work_of_who_leaves),
    BEFORE(JOIN, nodes_run_everything),
    AFTER(START, exists_is_ok),
    BEFORE(START, every_start_reuses),
    BEFORE(START, no_start_reuses),
    BEFORE(START, inputs_are_not_compared),
    BEFORE(START, ids_are_cut),
    AFTER(START, existed_is_not_said),
    BEFORE(SEND, no_dedup),
    BEFORE(SEND, no_limit_of_signals),
    AFTER(SEND, to_nobody_is_ok),
    BEFORE(SEND, many_cancels),
    BEFORE(SEND, sends_start_nothing),
    BEFORE(HISTORY, history_from_the_start),
    BEFORE(HISTORY, history_at_once),
    BEFORE(HISTORY, history_of_the_last),
    AFTER(HISTORY, no_more),
    AFTER(INSTANCE, always_served),
    AFTER(INSTANCE, work_is_always_served),
    BEFORE(JOIN, queues_are_orchestrations),
    BEFORE(LIST, lists_every_name),
    BEFORE(LIST, lists_every_state),
    BEFORE(LIST, lists_the_first_page),
    BEFORE(LIST, lists_every_time),
    BEFORE(LIST, lists_every_end),
    BEFORE(LIST, lists_children_only),
    BEFORE(LIST, lists_a_thousand),
    AFTER(VALUE, empty_is_none),
    AFTER(OUTSTANDING, claims_never_lapse_in_counts),
    BEFORE(MARK, marks_any_turn),
    AFTER(MARK, a_resume_keeps_attempts),
    BEFORE(RESET, resets_any_turn),
    BEFORE(RESET, resets_to_the_start),
    BEFORE(RESET, resets_keep_messages),
    BEFORE(RESET, resets_send_nothing),
    BEFORE(REMOVE, removes_what_runs),
    BEFORE(REMOVE, removes_one),
};

/* ---- the provider ------------------------------------------------------------------------------------------------------------------- */

/* What the lab does is done within the function, and nobody has read the answer when it returns. */
static void pass(void *self, ebb_provider_call *c, void (*fn)(void *self, void *call)) {
    const bool here = planted != NULL && planted->op == c->op;
    if (here && planted->before != NULL) planted->before(self, c);
    fn(self, c);
    if (here && planted->after != NULL) planted->after(self, c);
}

#define PASS(fn)                                                                                             \
    static void ask_##fn(void *self, void *call) {                                                           \
        ebb__provider_lab.fn(self, call);                                                                    \
    }                                                                                                        \
    static void bad_##fn(void *self, ebb_provider_##fn##_call *c) {                                          \
        pass(self, &c->call, ask_##fn);                                                                      \
    }
PASS(join)
PASS(renew)
PASS(leave)
PASS(fetch_turns)
PASS(ack_turn)
PASS(abandon_turns)
PASS(fetch_work)
PASS(ack_work)
PASS(abandon_work)
PASS(start)
PASS(send)
PASS(history)
PASS(instance)
PASS(list)
PASS(value)
PASS(outstanding)
PASS(mark)
PASS(reset)
PASS(remove)

static ebb_provider_host hosts[2];
static void (*real_hint)(void *ctx, const ebb_provider_hint *h);
static size_t opened;

static void deaf_hint(void *ctx, const ebb_provider_hint *h) {
    if (h->kind != deaf_to) real_hint(ctx, h);
}

static void bad_open(ebb_provider_open_call *c) {
    ebb_provider_host *h = &hosts[opened++ % 2];
    *h = *c->host;
    real_hint = h->hint;
    h->hint = deaf_hint;
    c->host = h;
    ebb__provider_lab.open(c);
}

static void bad_close(void *self, ebb_provider_close_call *c) {
    ebb__provider_lab.close(self, c);
}

static void bad_stats(const void *self, ebb_provider_stats *out) {
    ebb__provider_lab.stats(self, out);
}

static const ebb_provider bad = {
    .size = sizeof bad,
    .scheme = "bad",
    .about = "a provider with a bug",
    .open = bad_open,
    .close = bad_close,
    .join = bad_join,
    .renew = bad_renew,
    .leave = bad_leave,
    .fetch_turns = bad_fetch_turns,
    .ack_turn = bad_ack_turn,
    .abandon_turns = bad_abandon_turns,
    .fetch_work = bad_fetch_work,
    .ack_work = bad_ack_work,
    .abandon_work = bad_abandon_work,
    .start = bad_start,
    .send = bad_send,
    .history = bad_history,
    .instance = bad_instance,
    .list = bad_list,
    .value = bad_value,
    .outstanding = bad_outstanding,
    .mark = bad_mark,
    .reset = bad_reset,
    .remove = bad_remove,
    .stats = bad_stats,
};

/* ---- tests -------------------------------------------------------------------------------------------------------------------------- */

static bool is_found(const char *name) {
    world *w = world_new(NULL, false);
    suite_run *r = world_keep(w, sizeof *r);
    r->url = "bad:";
    r->provider = &bad;
    r->stops = true;
    run_suite(w, r);
    const bool found = r->failed > 0;
    if (found) print_message("%-36s %s\n", name, r->first);
    else print_message("%-36s NOT FOUND (%u cases)\n", name, r->passed);
    world_end(w);
    return found;
}

static void without_a_bug_all_passes(void **state) {
    (void)state;
    planted = NULL;
    deaf_to = 0;
    world *w = world_new(NULL, false);
    suite_run *r = world_keep(w, sizeof *r);
    r->url = "bad:";
    r->provider = &bad;
    run_suite(w, r);
    assert_int_equal(r->failed, 0);
    assert_true(r->passed > 0);
    world_end(w);
}

static void every_planted_bug_is_found(void **state) {
    size_t missed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        planted = &plants[i];
        missed += !is_found(planted->name);
    }
    planted = NULL;
    assert_int_equal(missed, 0);
}

static void every_lost_hint_is_found(void **state) {
    static const char *const names[] = {"", "no hints TURNS", "no hints WORK", "no hints GONE",
                                        "no hints ENDED"};
    size_t missed = 0;
    (void)state;
    for (int kind = EBB_PROVIDER_HINT_TURNS; kind <= EBB_PROVIDER_HINT_ENDED; kind++) {
        deaf_to = (ebb_provider_hint_kind)kind;
        missed += !is_found(names[kind]);
    }
    deaf_to = 0;
    assert_int_equal(missed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_bug_all_passes),
        cmocka_unit_test(every_planted_bug_is_found),
        cmocka_unit_test(every_lost_hint_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
