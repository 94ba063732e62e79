/* Calls as bytes. */
#define _POSIX_C_SOURCE 200809L
#include "durable/sqlite_codec.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- bytes -------------------------------------------------------------------------------------------------------- */

static void put(ebb__sqlite_codec *k, const void *from, size_t n) {
    if (k->failed) return;
    if (n > k->room - k->n) {
        const size_t room = 2 * (k->n + n) + 256;
        uint8_t *more = realloc(k->at, room);
        if (more == NULL) {
            k->failed = true;
            return;
        }
        k->at = more;
        k->room = room;
    }
    if (n != 0) memcpy(k->at + k->n, from, n);
    k->n += n;
}

static const uint8_t *take(ebb__sqlite_codec *k, size_t n) {
    const uint8_t *at = k->at + k->done;
    if (k->failed || n > k->n - k->done) {
        k->failed = true;
        return NULL;
    }
    k->done += n;
    return at;
}

static uint64_t number(ebb__sqlite_codec *k, uint64_t x) {
    if (k->writes) {
        put(k, &x, sizeof x);
        return x;
    }
    const uint8_t *at = take(k, sizeof x);
    if (at != NULL) memcpy(&x, at, sizeof x);
    return at != NULL ? x : 0;
}

/* A field that is a number of any width, or a flag. */
#define NUMBER(field) ((field) = (__typeof__(field))number(k, (uint64_t)(field)))

/* A number that stands for something: no other may come in. */
static void expect(ebb__sqlite_codec *k, uint64_t x, uint64_t least, uint64_t most) {
    if (x < least || x > most) k->failed = true;
}

static void blob(ebb__sqlite_codec *k, ebb_blob *b) {
    const bool there = number(k, b->at != NULL) != 0;
    const size_t n = (size_t)number(k, b->n);
    if (k->writes) {
        if (there) put(k, b->at, n);
        return;
    }
    const uint8_t *at = there ? take(k, n) : NULL;
    b->at = at != NULL ? ebb_provider_copy(k->into, at, n) : NULL;
    b->n = b->at != NULL ? n : 0;
    if (there && b->at == NULL) k->failed = true;
}

static void text(ebb__sqlite_codec *k, const char **t) {
    ebb_blob b = {*t, *t != NULL ? strlen(*t) : 0};
    blob(k, &b);
    if (!k->writes) *t = b.at != NULL ? b.at : ""; /* nobody has to expect NULL of another process */
}

/* Of an instance, or of what it runs: as ids of programs are. */
static void id(ebb__sqlite_codec *k, const char **t) {
    text(k, t);
    if (!k->writes) expect(k, strlen(*t), 1, EBB_DURABLE_ID);
}

static void token(ebb__sqlite_codec *k, ebb_provider_token *t) {
    NUMBER(t->hi);
    NUMBER(t->lo);
}

static void *unconst(const void *from) {
    union {
        const void *from;
        void *to;
    } u = {from};
    return u.to;
}

/* The bytes that an element of a list has at least in a frame: a number has 8, a text or blob 16. So a list takes no more
 * memory than a few times its frame. */
enum {
    LEAST_key = 8,
    LEAST_work = 96,
    LEAST_timer = 16,
    LEAST_message = 48,
    LEAST_outgoing = 112,
    LEAST_value = 32,
    LEAST_cancelled = 16,
    LEAST_row = 184,
    LEAST_turn_row = 40
};

/* The elements of a list: those that are there, or room for those that come. */
static void *list(ebb__sqlite_codec *k, const void *at, size_t *n, size_t size, size_t least) {
    *n = (size_t)number(k, *n);
    if (k->writes) return unconst(at);
    void *room =
        !k->failed && *n <= (k->n - k->done) / least ? ebb_provider_alloc(k->into, (*n + 1) * size) : NULL;
    if (room == NULL) {
        k->failed = true;
        *n = 0;
        return NULL;
    }
    memset(room, 0, (*n + 1) * size);
    return room;
}

#define LIST(type, field, count, visit)                                                                      \
    do {                                                                                                     \
        type *all = list(k, (field), &(count), sizeof(type), LEAST_##visit);                                 \
        for (size_t i = 0; i < (count); i++) visit(k, &all[i]);                                              \
        if (!k->writes) (field) = all;                                                                       \
    } while (0)

/* ---- parts ---------------------------------------------------------------------------------------------------------- */

static void key(ebb__sqlite_codec *k, uint64_t *x) {
    NUMBER(*x);
}

static void work(ebb__sqlite_codec *k, ebb_provider_work *w) {
    NUMBER(w->activity);
    text(k, &w->queue);
    text(k, &w->session);
    text(k, &w->name);
    NUMBER(w->attempt);
    blob(k, &w->input);
    token(k, &w->token);
}

static void timer(ebb__sqlite_codec *k, ebb_provider_timer *t) {
    NUMBER(t->step);
    NUMBER(t->due);
}

static void message(ebb__sqlite_codec *k, ebb_provider_message *m) {
    NUMBER(m->at.kind);
    expect(k, m->at.kind, EBB_PROVIDER_MESSAGE_START, EBB_PROVIDER_MESSAGE_CANCEL);
    NUMBER(m->at.seq);
    NUMBER(m->execution);
    NUMBER(m->step);
    blob(k, &m->body);
}

static void outgoing(ebb__sqlite_codec *k, ebb_provider_outgoing *o) {
    id(k, &o->id);
    NUMBER(o->execution);
    NUMBER(o->kind);
    expect(k, o->kind, EBB_PROVIDER_MESSAGE_START, EBB_PROVIDER_MESSAGE_CANCEL);
    NUMBER(o->step);
    blob(k, &o->body);
    text(k, &o->name);
    NUMBER(o->version);
    blob(k, &o->input);
    blob(k, &o->exists);
}

static void value(ebb__sqlite_codec *k, ebb_provider_value *v) {
    text(k, &v->key);
    blob(k, &v->value);
}

static void cancelled(ebb__sqlite_codec *k, ebb_provider_cancelled *c) {
    NUMBER(c->activity);
    NUMBER(c->cause);
    expect(k, c->cause, EBB_CANCEL_NONE, EBB_CANCEL_SHUTDOWN);
}

static void row(ebb__sqlite_codec *k, ebb_provider_instance_row *r) {
    NUMBER(r->key);
    text(k, &r->id);
    text(k, &r->name);
    text(k, &r->parent);
    NUMBER(r->version);
    NUMBER(r->semantics);
    NUMBER(r->execution);
    NUMBER(r->turn);
    NUMBER(r->state);
    NUMBER(r->started);
    NUMBER(r->ended);
    blob(k, &r->input);
    blob(k, &r->result);
    blob(k, &r->custom);
    text(k, &r->text);
    NUMBER(r->unserved);
}

static void turn_row(ebb__sqlite_codec *k, ebb_provider_turn_row *t) {
    NUMBER(t->execution);
    NUMBER(t->turn);
    NUMBER(t->at);
    blob(k, &t->body);
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

static void ask_start(ebb__sqlite_codec *k, ebb_provider_start_call *c) {
    id(k, &c->id);
    id(k, &c->name);
    NUMBER(c->version);
    blob(k, &c->input);
    blob(k, &c->message);
    NUMBER(c->reuse);
}

static void ask_send(ebb__sqlite_codec *k, ebb_provider_send_call *c) {
    text(k, &c->id);
    NUMBER(c->kind);
    expect(k, c->kind, EBB_PROVIDER_MESSAGE_SIGNAL, EBB_PROVIDER_MESSAGE_CANCEL);
    text(k, &c->dedup);
    blob(k, &c->body);
    if (number(k, c->start != NULL) == 0) return;
    ebb_provider_start_call *s = k->writes ? unconst(c->start) : ebb_provider_alloc(k->into, sizeof *s);
    if (s == NULL) {
        k->failed = true;
        return;
    }
    if (!k->writes) memset(s, 0, sizeof *s);
    ask_start(k, s);
    c->start = s;
}

static void ask_history(ebb__sqlite_codec *k, ebb_provider_history_call *c) {
    NUMBER(c->key);
    text(k, &c->id);
    NUMBER(c->execution);
    NUMBER(c->after);
    NUMBER(c->most);
    NUMBER(c->bytes);
}

static void ask_list(ebb__sqlite_codec *k, ebb_provider_list_call *c) {
    ebb_instance_filter *f = k->writes ? unconst(c->filter) : ebb_provider_alloc(k->into, sizeof *f);
    if (f == NULL) {
        k->failed = true;
        return;
    }
    if (!k->writes) memset(f, 0, sizeof *f);
    text(k, &f->name);
    text(k, &f->prefix);
    text(k, &f->parent);
    NUMBER(f->tree);
    NUMBER(f->states);
    NUMBER(f->started_after);
    NUMBER(f->ended_before);
    text(k, &f->after);
    NUMBER(f->most);
    c->filter = f;
}

/* A turn of an operator: it has no claim, no messages and no work of its own. */
static void ask_ack_turn(ebb__sqlite_codec *k, ebb_provider_ack_turn_call *c) {
    token(k, &c->ack_id);
    NUMBER(c->key);
    NUMBER(c->execution);
    NUMBER(c->turn);
    NUMBER(c->at);
    blob(k, &c->body);
    NUMBER(c->version);
    NUMBER(c->semantics);
    LIST(ebb_provider_cancelled, c->cancelled, c->cancelled_n, cancelled);
    LIST(uint64_t, c->timers_cancelled, c->timers_cancelled_n, key);
    NUMBER(c->all_work);
    NUMBER(c->all_timers);
    NUMBER(c->cause);
    expect(k, c->cause, EBB_CANCEL_NONE, EBB_CANCEL_SHUTDOWN);
    LIST(ebb_provider_outgoing, c->outgoing, c->outgoing_n, outgoing);
    LIST(ebb_provider_value, c->values, c->values_n, value);
    NUMBER(c->unread);
    NUMBER(c->ends);
    expect(k, c->ends, 0, EBB_INSTANCE_TERMINATED);
    blob(k, &c->result);
    text(k, &c->text);
}

static void ask_mark(ebb__sqlite_codec *k, ebb_provider_mark_call *c) {
    NUMBER(c->key);
    NUMBER(c->execution);
    NUMBER(c->turn);
    NUMBER(c->state);
    expect(k, c->state, EBB_INSTANCE_RUNNING, EBB_INSTANCE_SUSPENDED);
    text(k, &c->text);
}

static void ask_reset(ebb__sqlite_codec *k, ebb_provider_reset_call *c) {
    NUMBER(c->key);
    NUMBER(c->execution);
    NUMBER(c->turn);
    NUMBER(c->keep);
    LIST(ebb_provider_work, c->work, c->work_n, work);
    LIST(ebb_provider_timer, c->timers, c->timers_n, timer);
    LIST(ebb_provider_message, c->messages, c->messages_n, message);
    LIST(ebb_provider_value, c->values, c->values_n, value);
    LIST(ebb_provider_outgoing, c->outgoing, c->outgoing_n, outgoing);
}

static void ask_remove(ebb__sqlite_codec *k, ebb_provider_remove_call *c) {
    LIST(uint64_t, c->keys, c->keys_n, key);
    NUMBER(c->force);
}

bool ebb__sqlite_codec_has(ebb_provider_op op) {
    return op == EBB_PROVIDER_ACK_TURN || (op >= EBB_PROVIDER_START && op < EBB_PROVIDER_OPS);
}

void ebb__sqlite_codec_ask(ebb__sqlite_codec *k, ebb_provider_call *c) {
    switch (c->op) {
    case EBB_PROVIDER_ACK_TURN: ask_ack_turn(k, (ebb_provider_ack_turn_call *)c); break;
    case EBB_PROVIDER_START: ask_start(k, (ebb_provider_start_call *)c); break;
    case EBB_PROVIDER_SEND: ask_send(k, (ebb_provider_send_call *)c); break;
    case EBB_PROVIDER_HISTORY: ask_history(k, (ebb_provider_history_call *)c); break;
    case EBB_PROVIDER_INSTANCE: text(k, &((ebb_provider_instance_call *)c)->id); break;
    case EBB_PROVIDER_LIST: ask_list(k, (ebb_provider_list_call *)c); break;
    case EBB_PROVIDER_VALUE:
        text(k, &((ebb_provider_value_call *)c)->id);
        text(k, &((ebb_provider_value_call *)c)->key);
        break;
    case EBB_PROVIDER_OUTSTANDING: text(k, &((ebb_provider_outstanding_call *)c)->id); break;
    case EBB_PROVIDER_MARK: ask_mark(k, (ebb_provider_mark_call *)c); break;
    case EBB_PROVIDER_RESET: ask_reset(k, (ebb_provider_reset_call *)c); break;
    case EBB_PROVIDER_REMOVE: ask_remove(k, (ebb_provider_remove_call *)c); break;
    default: k->failed = true; break;
    }
    if (!k->writes && k->done != k->n) k->failed = true;
}

static void answer_history(ebb__sqlite_codec *k, ebb_provider_history_call *c) {
    LIST(ebb_provider_turn_row, c->turns, c->turns_n, turn_row);
    NUMBER(c->more);
}

static void answer_list(ebb__sqlite_codec *k, ebb_provider_list_call *c) {
    LIST(ebb_provider_instance_row, c->rows, c->rows_n, row);
}

static void answer_outstanding(ebb__sqlite_codec *k, ebb_provider_outstanding_call *c) {
    NUMBER(c->work);
    NUMBER(c->claimed);
    NUMBER(c->timers);
    NUMBER(c->messages);
}

void ebb__sqlite_codec_answer(ebb__sqlite_codec *k, ebb_provider_call *c, ebb_status *status,
                              const char **said) {
    *status = (ebb_status)(int64_t)number(k, (uint64_t)(int64_t)*status);
    text(k, said);
    if (*status != EBB_OK) return;
    switch (c->op) {
    case EBB_PROVIDER_ACK_TURN: NUMBER(((ebb_provider_ack_turn_call *)c)->dropped); break;
    case EBB_PROVIDER_START:
        row(k, &((ebb_provider_start_call *)c)->row);
        NUMBER(((ebb_provider_start_call *)c)->existed);
        break;
    case EBB_PROVIDER_HISTORY: answer_history(k, (ebb_provider_history_call *)c); break;
    case EBB_PROVIDER_INSTANCE: row(k, &((ebb_provider_instance_call *)c)->row); break;
    case EBB_PROVIDER_LIST: answer_list(k, (ebb_provider_list_call *)c); break;
    case EBB_PROVIDER_VALUE: blob(k, &((ebb_provider_value_call *)c)->value); break;
    case EBB_PROVIDER_OUTSTANDING: answer_outstanding(k, (ebb_provider_outstanding_call *)c); break;
    case EBB_PROVIDER_REMOVE: NUMBER(((ebb_provider_remove_call *)c)->removed); break;
    default: break;
    }
}

/* ---- frames --------------------------------------------------------------------------------------------------------- */

static uint64_t now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Waits until the other end has sent, or takes, something. False: it is too late, or nobody wants it any more. */
static bool wait_for(const ebb__sqlite_line *l, short what, uint64_t until) {
    for (;;) {
        struct pollfd fds[2] = {{l->fd, what, 0}, {l->stop, POLLIN, 0}};
        const uint64_t now = now_ms();
        const int n = now < until ? poll(fds, 2, (int)(until - now)) : 0;
        if (n < 0 && errno == EINTR) continue;
        return n > 0 && fds[1].revents == 0;
    }
}

static bool is_passing(void) {
    return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

static bool send_all(const ebb__sqlite_line *l, const uint8_t *at, size_t n, uint64_t until) {
    while (n > 0) {
        const ssize_t sent = send(l->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && is_passing()) {
            if (!wait_for(l, POLLOUT, until)) return false;
            continue;
        }
        if (sent <= 0) return false;
        at += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* How many came before the end of the stream. */
static size_t receive_all(const ebb__sqlite_line *l, uint8_t *at, size_t n, uint64_t until) {
    size_t have = 0;
    while (have < n && wait_for(l, POLLIN, until)) {
        const ssize_t got = recv(l->fd, at + have, n - have, MSG_DONTWAIT);
        if (got < 0 && is_passing()) continue;
        if (got <= 0) break;
        have += (size_t)got;
    }
    return have;
}

bool ebb__sqlite_frame_write(const ebb__sqlite_line *l, ebb__sqlite_codec *k, ebb_provider_op op) {
    const uint64_t until = now_ms() + l->patience;
    uint8_t head[EBB__SQLITE_FRAME];
    const uint32_t n = (uint32_t)k->n;
    const uint16_t version = EBB__SQLITE_CODEC, what = (uint16_t)op;
    if (k->failed || k->n > EBB__SQLITE_FRAME_MOST) return false;
    memcpy(head, &n, 4);
    memcpy(head + 4, &version, 2);
    memcpy(head + 6, &what, 2);
    return send_all(l, head, sizeof head, until) && send_all(l, k->at, k->n, until);
}

bool ebb__sqlite_frame_read(const ebb__sqlite_line *l, ebb__sqlite_codec *k, ebb_provider_op *op) {
    const uint64_t until = now_ms() + l->patience;
    uint8_t head[EBB__SQLITE_FRAME];
    uint32_t n = 0;
    uint16_t version = 0, what = 0;
    memset(k, 0, sizeof *k);
    *op = (ebb_provider_op)0;
    const size_t got = receive_all(l, head, sizeof head, until);
    if (got == 0) return true;
    memcpy(&n, head, 4);
    memcpy(&version, head + 4, 2);
    memcpy(&what, head + 6, 2);
    if (got != sizeof head || n > EBB__SQLITE_FRAME_MOST || version != EBB__SQLITE_CODEC) return false;
    k->at = malloc(n + 1u);
    k->n = n;
    *op = (ebb_provider_op)what;
    return k->at != NULL && receive_all(l, k->at, n, until) == n;
}
