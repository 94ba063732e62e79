/* The SQLite provider: the functions of ebb_provider, which queue calls for the threads of their file. */
#define _POSIX_C_SOURCE 200809L
#include "durable/sqlite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- open and close: each on a thread of its own, since they may take as long as a disk does ------------------------- */

typedef struct opening {
    ebb_provider_open_call *call;
    ebb__sqlite_store *store;
    ebb__sqlite_wish wish;
} opening;

static bool start_thread(void *(*fn)(void *), void *arg) {
    pthread_attr_t detached;
    pthread_t t;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&t, &detached, fn, arg) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&detached);
    return started;
}

static void *open_there(void *arg) {
    opening *o = arg;
    ebb_provider_open_call *c = o->call;
    ebb_allocator a = c->host->allocator;
    ebb_status st = ebb__sqlite_file_open(o->store, &o->wish);
    if (st == EBB_ERR_BUSY && o->wish.client) st = ebb__sqlite_remote_open(o->store, &o->wish);
    if (st == EBB_OK) c->self = o->store;
    else ebb__free(&a, o->store, sizeof *o->store);
    ebb_provider_done(&c->call, st, o->wish.text);
    return NULL;
}

static ebb_status read_url(ebb_provider_open_call *c, ebb__sqlite_wish *w) {
    ebb__arena arena;
    ebb__store_url url;
    ebb__arena_init(&arena, c->host->allocator, 1024);
    ebb_status st = ebb__store_url_parse(&arena, c->opts->url, &url, w->text, sizeof w->text);
    const char *path = st == EBB_OK ? url.path : "",
               *level = st == EBB_OK ? ebb__store_url_option(&url, "durability") : NULL;
    w->full = c->opts->durability == EBB_DURABILITY_FULL;
    w->read_only = c->opts->read_only;
    w->no_create = c->opts->no_create;
    w->client = c->opts->client;
    if (st == EBB_OK && *path == 0) {
        st = EBB_ERR_INVALID;
        (void)snprintf(w->text, sizeof w->text,
                       "the URL of a store: it has no path, as \"sqlite:orders.db\"");
    }
    if (level != NULL) w->full = strcmp(level, "full") == 0;
    if (level != NULL && !w->full && strcmp(level, "normal") != 0) {
        st = EBB_ERR_INVALID;
        (void)snprintf(w->text, sizeof w->text,
                       "the URL of a store: durability \"%.40s\" is neither full nor normal", level);
    }
    w->path = st == EBB_OK ? ebb_provider_copy(&c->call, path, strlen(path)) : NULL;
    if (st == EBB_OK && w->path == NULL) st = EBB_ERR_NOMEM;
    ebb__arena_free(&arena);
    return st;
}

static void on_open(ebb_provider_open_call *c) {
    ebb_allocator a = c->host->allocator;
    opening *o = ebb_provider_alloc(&c->call, sizeof *o);
    ebb__sqlite_store *s = o != NULL ? ebb__alloc(&a, sizeof *s) : NULL;
    if (s == NULL) {
        ebb_provider_done(&c->call, EBB_ERR_NOMEM, NULL);
        return;
    }
    memset(o, 0, sizeof *o);
    memset(s, 0, sizeof *s);
    o->call = c;
    o->store = s;
    s->host = c->host;
    s->read_only = c->opts->read_only;
    ebb_status st = read_url(c, &o->wish);
    if (st == EBB_OK && start_thread(open_there, o)) return;
    ebb__free(&a, s, sizeof *s);
    ebb_provider_done(&c->call, st != EBB_OK ? st : EBB_ERR_UNAVAILABLE,
                      st != EBB_OK ? o->wish.text : "there is no thread to open the file on");
}

static void *close_there(void *arg) {
    ebb_provider_close_call *c = arg;
    ebb__sqlite_store *s = c->call.mine;
    ebb_allocator a = s->host->allocator;
    if (s->remote != NULL) ebb__sqlite_remote_close(s);
    else ebb__sqlite_file_close(s);
    ebb__free(&a, s, sizeof *s);
    ebb_provider_done(&c->call, EBB_OK, NULL);
    return NULL;
}

static void on_close(void *self, ebb_provider_close_call *c) {
    c->call.mine = self;
    if (!start_thread(close_there, c)) (void)close_there(c); /* it blocks, but nothing is left behind */
}

/* ---- the others ------------------------------------------------------------------------------------------------------- */

static void queue(ebb__sqlite_store *s, ebb_provider_call *c) {
    if (s->remote != NULL) ebb__sqlite_remote_queue(s, c);
    else ebb__sqlite_queue(s, c);
}

#define QUEUED(name)                                                                                         \
    static void on_##name(void *self, ebb_provider_##name##_call *c) {                                       \
        queue(self, &c->call);                                                                               \
    }
QUEUED(join)
QUEUED(renew)
QUEUED(leave)
QUEUED(fetch_turns)
QUEUED(ack_turn)
QUEUED(abandon_turns)
QUEUED(fetch_work)
QUEUED(ack_work)
QUEUED(abandon_work)
QUEUED(start)
QUEUED(send)
QUEUED(history)
QUEUED(instance)
QUEUED(list)
QUEUED(value)
QUEUED(outstanding)
QUEUED(mark)
QUEUED(reset)
QUEUED(remove)

static void stats(const void *self, ebb_provider_stats *out) {
    ebb__sqlite_file *f = ((const ebb__sqlite_store *)self)->file;
    memset(out, 0, sizeof *out);
    if (f == NULL) return;
    (void)pthread_mutex_lock(&f->lock);
    *out = f->shown;
    (void)pthread_mutex_unlock(&f->lock);
}

const ebb_provider ebb__provider_sqlite = {
    .size = sizeof(ebb_provider),
    .scheme = "sqlite",
    .about = "SQLite " SQLITE_VERSION,
    .open = on_open,
    .close = on_close,
    .join = on_join,
    .renew = on_renew,
    .leave = on_leave,
    .fetch_turns = on_fetch_turns,
    .ack_turn = on_ack_turn,
    .abandon_turns = on_abandon_turns,
    .fetch_work = on_fetch_work,
    .ack_work = on_ack_work,
    .abandon_work = on_abandon_work,
    .start = on_start,
    .send = on_send,
    .history = on_history,
    .instance = on_instance,
    .list = on_list,
    .value = on_value,
    .outstanding = on_outstanding,
    .mark = on_mark,
    .reset = on_reset,
    .remove = on_remove,
    .stats = stats,
};
