/* Nodes of the lab provider: workers with a lease. */
#include "durable/lab_rows.h"

static size_t bytes_of(const ebb_provider_join_call *c) {
    size_t n = c->runs_n * sizeof *c->runs + 1;
    for (size_t k = 0; k < c->runs_n; k++) n += strlen(c->runs[k].name) + 1;
    return n;
}

static void copy_runs(ebb__lab_node *n, const ebb_provider_join_call *c) {
    char *end = (char *)(n->runs + c->runs_n);
    n->runs_n = c->runs_n;
    for (size_t k = 0; k < c->runs_n; k++) {
        n->runs[k] = (ebb_provider_runs){end, c->runs[k].version};
        strcpy(end, c->runs[k].name);
        end += strlen(end) + 1;
    }
}

void ebb__lab_join(ebb__lab_self *s, ebb_provider_join_call *c) {
    ebb__lab_data *d = s->data;
    ebb__lab_batch b = {.data = d};
    const uint64_t now = ebb__lab_now(s);
    ebb__lab_node *n = ebb__lab_make(&b, sizeof *n);
    ebb_provider_runs *runs = ebb__lab_make(&b, bytes_of(c));
    if (b.failed) {
        ebb__lab_undo(&b);
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for a node");
        return;
    }
    n->id = ++d->last_node;
    n->epoch = 1;
    n->until = now + c->lease;
    n->runs = runs;
    copy_runs(n, c);
    ebb__lab_append(&d->nodes, &n->links);
    c->node = (ebb_provider_node){n->id, n->epoch};
    ebb__lab_done(s, &c->call);
}

/* A row whose lease has lapsed is still the node's, as long as nobody else has claimed it. */
static bool renew(ebb__lab_self *s, ebb_provider_renew_call *c, ebb_provider_token token) {
    ebb__lab_work *w = ebb__lab_find_token(s->data, token);
    if (w == NULL) return false;
    w->until = s->data->now + c->lease;
    return true;
}

void ebb__lab_renew(ebb__lab_self *s, ebb_provider_renew_call *c) {
    const uint64_t now = ebb__lab_now(s);
    ebb__lab_node *n = ebb__lab_find_node(s->data, c->node);
    c->gone = ebb_provider_alloc(&c->call, (c->tokens_n + 1) * sizeof *c->gone);
    if (c->gone == NULL) {
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, "no memory for the tokens that are gone");
        return;
    }
    c->gone_n = 0;
    c->lost = n == NULL;
    if (n != NULL) n->until = now + c->lease;
    for (size_t k = 0; k < c->tokens_n; k++)
        if (n == NULL || !renew(s, c, c->tokens[k])) c->gone[c->gone_n++] = c->tokens[k];
    ebb__lab_done(s, &c->call);
}

void ebb__lab_leave(ebb__lab_self *s, ebb_provider_leave_call *c) {
    (void)ebb__lab_now(s);
    ebb__lab_node *n = ebb__lab_find_node(s->data, c->node);
    if (n != NULL) ebb__lab_end_node(s, n, true);
    ebb__lab_done(s, &c->call);
}
