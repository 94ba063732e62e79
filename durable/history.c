/* The history of an instance: as JSON, and verified. */
#include "durable/history.h"

#include <stdio.h>
#include <string.h>

#include "base/opts.h"

enum { PAGE_TURNS = 1000, PAGE_BYTES = 1 << 20 };

static ebb_provider_history_call *page(ebb_cx *cx, ebb__client_op *op, const ebb_provider_instance_row *row,
                                       uint64_t after, ebb_status *st) {
    ebb_provider_history_call *c = ebb__call_new(ebb__store_gate(op->store), EBB_PROVIDER_HISTORY);
    *st = EBB_ERR_NOMEM;
    if (c == NULL) return NULL;
    c->key = row->key;
    c->id = ebb__call_text(&c->call, row->id);
    c->execution = row->execution;
    c->after = after;
    c->most = PAGE_TURNS;
    c->bytes = PAGE_BYTES;
    return ebb__client_ask(cx, &c->call, st);
}

static ebb_status damaged(const ebb_provider_instance_row *of, const ebb_provider_turn_row *row,
                          ebb_status st, const char *text) {
    return ebb__durable_say(st, "%s, execution %llu, turn %llu: %s", of->id,
                            (unsigned long long)row->execution, (unsigned long long)row->turn, text);
}

static ebb_status turn(const ebb_provider_instance_row *of, const ebb_provider_turn_row *row,
                       ebb__outstanding *o,
                       void (*each)(void *arg, const ebb_provider_turn_row *row, const ebb__event *e),
                       void *arg) {
    ebb__event_reader r;
    ebb__event e;
    ebb_status st = o != NULL ? ebb__outstanding_add(o, row) : EBB_OK;
    if (st != EBB_OK) return damaged(of, row, st, st != EBB_ERR_NOMEM ? o->text : "no memory");
    if (each == NULL) return EBB_OK;
    st = ebb__event_reader_open(&r, row->body);
    r.lenient = true;
    while (st == EBB_OK) {
        st = ebb__event_read(&r, &e);
        if (st == EBB_OK) each(arg, row, &e);
    }
    return st == EBB_ERR_EOF ? EBB_OK : damaged(of, row, st, r.text);
}

/* The turns after `read`, up to *upto, which `each` may lower. */
static ebb_status read_turns(ebb_cx *cx, ebb__client_op *op, const ebb_provider_instance_row *row,
                             uint64_t read, const uint64_t *upto, ebb__outstanding *o,
                             void (*each)(void *arg, const ebb_provider_turn_row *row, const ebb__event *e),
                             void *arg) {
    ebb_status st = EBB_OK;
    while (st == EBB_OK && read < *upto) {
        ebb_provider_history_call *c = page(cx, op, row, read, &st);
        if (c == NULL) return st;
        if (c->turns_n == 0)
            st = ebb__durable_say(EBB_ERR_CORRUPT, "%s, execution %llu: turn %llu is not there", row->id,
                                  (unsigned long long)row->execution, (unsigned long long)read + 1);
        for (size_t i = 0; st == EBB_OK && i < c->turns_n && read < *upto; i++) {
            st = turn(row, &c->turns[i], o, each, arg);
            read = c->turns[i].turn;
        }
        ebb__call_free(&c->call);
    }
    return st;
}

ebb_status ebb__history_read(ebb_cx *cx, ebb__client_op *op, const ebb_provider_instance_row *row,
                             uint64_t upto, ebb__outstanding *o,
                             void (*each)(void *arg, const ebb_provider_turn_row *row, const ebb__event *e),
                             void *arg) {
    return read_turns(cx, op, row, 0, &upto, o, each, arg);
}

/* ---- for programs ---------------------------------------------------------------------------------------------------- */

typedef struct reading {
    ebb__client_op op;
    ebb_history_opts opts;
    ebb_history_event *events;
    size_t n, room;
    uint64_t upto;  /* the last turn that is wanted */
    uint64_t bytes; /* of the events so far */
    bool failed;
} reading;

static void reading_free(void *p) {
    ebb__client_op_free(p);
}

static const ebb_type history_type = {"history", 0, NULL, reading_free, 0};

const ebb_history_event *ebb_history_of(const ebb_value *v, size_t *n) {
    const reading *r = v->type == &history_type ? v->as.p : NULL;
    static const ebb_history_event none;
    *n = r != NULL ? r->n : 0;
    if (r == NULL) return NULL;
    return r->n != 0 ? r->events : &none;
}

static void add(void *arg, const ebb_provider_turn_row *row, const ebb__event *e) {
    reading *r = arg;
    if (row->turn <= r->opts.after || row->turn > r->upto) return;
    if (r->n == r->room) {
        const size_t room = r->room != 0 ? 2 * r->room : 64;
        ebb_history_event *at = ebb__arena_alloc(&r->op.arena, room * sizeof *at);
        r->failed |= at == NULL;
        if (at == NULL) return;
        if (r->n != 0) memcpy(at, r->events, r->n * sizeof *at);
        r->events = at;
        r->room = room;
    }
    const char *json = ebb__event_json(&r->op.arena, e);
    r->failed |= json == NULL;
    r->events[r->n++] = (ebb_history_event){e->number, row->turn, row->at, ebb__event_name(e->kind), json};
    r->bytes += json != NULL ? strlen(json) : 0;
    if (r->opts.bytes != 0 && r->bytes > r->opts.bytes) r->upto = row->turn;
}

static ebb_status read_all(ebb_cx *cx, reading *r, const ebb_provider_instance_row *row) {
    ebb__outstanding o = {.arena = &r->op.arena};
    const uint64_t left = row->turn > r->opts.after ? row->turn - r->opts.after : 0;
    r->upto = r->opts.most != 0 && r->opts.most < left ? r->opts.after + r->opts.most : row->turn;
    ebb_status st = r->opts.verify ? read_turns(cx, &r->op, row, 0, &row->turn, &o, add, r)
                                   : read_turns(cx, &r->op, row, r->opts.after, &r->upto, NULL, add, r);
    if (st == EBB_OK && r->opts.verify && ebb__outstanding_check_end(&o) != EBB_OK)
        st = ebb__durable_say(EBB_ERR_ORACLE, "%s, execution %llu: %s", row->id,
                              (unsigned long long)row->execution, o.text);
    return st == EBB_OK && r->failed ? EBB_ERR_NOMEM : st;
}

/* Of an execution before the last, how many turns there are is not known: as many as are read. */
static ebb_status count_turns(ebb_cx *cx, reading *r, ebb_provider_instance_row *row) {
    ebb_status st = EBB_OK;
    row->turn = 0;
    for (bool more = true; st == EBB_OK && more;) {
        ebb_provider_history_call *c = page(cx, &r->op, row, row->turn, &st);
        if (c == NULL) break;
        if (c->turns_n != 0) row->turn = c->turns[c->turns_n - 1].turn;
        more = c->more && c->turns_n != 0;
        ebb__call_free(&c->call);
    }
    return st;
}

static ebb_status run(ebb_cx *cx, ebb__client_op *op) {
    reading *r = (reading *)(void *)op;
    ebb_status st = EBB_ERR_NOMEM;
    ebb_provider_instance_call *i = ebb__call_new(ebb__store_gate(op->store), EBB_PROVIDER_INSTANCE);
    if (i == NULL) return st;
    i->id = ebb__call_text(&i->call, op->id);
    i = ebb__client_ask(cx, &i->call, &st);
    if (i == NULL) return st;
    if (r->opts.execution > i->row.execution) {
        st = ebb__durable_say(EBB_ERR_INVALID, "execution %llu of %s is not there: its last is %llu",
                              (unsigned long long)r->opts.execution, op->id,
                              (unsigned long long)i->row.execution);
    } else if (r->opts.execution != 0 && r->opts.execution != i->row.execution) {
        i->row.execution = r->opts.execution;
        st = count_turns(cx, r, &i->row);
    }
    if (st == EBB_OK) st = read_all(cx, r, &i->row);
    ebb__call_free(&i->call);
    return st;
}

static ebb_value value(ebb_cx *cx, ebb__client_op *op) {
    (void)cx;
    op->kept = true;
    return ebb_value_owned(&history_type, op);
}

ebb_future *ebb_instance_history_site(ebb_cx *cx, ebb_store *s, const char *id, const ebb_history_opts *opts,
                                      const char *site) {
    ebb_history_opts o;
    ebb_status st = ebb__client_check_id(id);
    if (st == EBB_OK) st = EBB__DURABLE_OPTS(&o, opts);
    reading *r = st == EBB_OK ? ebb__client_op_new(s, sizeof *r) : NULL;
    if (r == NULL) return ebb__durable_future_failed(cx, st != EBB_OK ? st : EBB_ERR_NOMEM, site);
    r->opts = o;
    r->op.run = run;
    r->op.value = value;
    r->op.id = ebb__client_op_text(&r->op, id);
    if (r->op.id != NULL) return ebb__client_op_begin(cx, r, site);
    ebb__client_op_free(r);
    return ebb__durable_future_failed(cx, EBB_ERR_NOMEM, site);
}
