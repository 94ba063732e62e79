/* The SQLite provider asked directly. */
#include "tests/support/sqlite_scene.h"

#include <dirent.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t real_ns(clockid_t id) {
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * EBB_SECOND + (uint64_t)t.tv_nsec;
}

static uint64_t host_wall(void *ctx) {
    scene *s = ctx;
    return atomic_load(&s->wall) + real_ns(CLOCK_REALTIME);
}

static uint64_t host_boot(void *ctx) {
    scene *s = ctx;
    return atomic_load(&s->boot) + real_ns(CLOCK_MONOTONIC);
}

static void host_random(void *ctx, void *into, size_t n) {
    scene *s = ctx;
    const uint64_t words[2] = {++s->acks, (uintptr_t)s};
    assert_int_equal(n, sizeof words);
    memcpy(into, words, n);
}

static void host_hint(void *ctx, const ebb_provider_hint *h) {
    scene *s = ctx;
    atomic_fetch_add(&s->hints[h->kind], 1);
    if (h->kind == EBB_PROVIDER_HINT_GONE) atomic_store(&s->gone_cause, h->cause);
}

static scene *make(world *w) {
    scene *s = world_keep(w, sizeof *s);
    (void)ebb_future_failed(w->host, EBB_FAILED); /* the heap is made with the first future */
    s->w = w;
    s->host = (ebb_provider_host){.allocator = ebb_libc_allocator(),
                                  .runtime = w->rt,
                                  .region = w->root,
                                  .hint = host_hint,
                                  .wall = host_wall,
                                  .boot = host_boot,
                                  .random = host_random,
                                  .ctx = s};
    s->gate.provider = &ebb__provider_sqlite;
    s->gate.heap = ebb__heap_at(w->rt);
    s->gate.allocator = ebb_libc_allocator();
    s->gate.most = 4096;
    s->gate.reserve = 512;
    return s;
}

scene *scene_new(world *w) {
    scene *s = make(w);
    (void)snprintf(s->dir, sizeof s->dir, "/tmp/ebb-sqlite-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    return s;
}

scene *scene_at(world *w, const char *dir) {
    scene *s = make(w);
    (void)snprintf(s->dir, sizeof s->dir, "%s", dir);
    return s;
}

scene *scene_beside(scene *s) {
    scene *other = make(s->w);
    memcpy(other->dir, s->dir, sizeof s->dir);
    return other;
}

void scene_end(scene *s) {
    char name[512];
    scene_close(s);
    DIR *d = opendir(s->dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        (void)snprintf(name, sizeof name, "%s/%s", s->dir, e->d_name);
        (void)unlink(name);
    }
    if (d != NULL) (void)closedir(d);
    (void)rmdir(s->dir);
}

const char *scene_path(const scene *s, const char *name) {
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", s->dir, name);
    return path;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

void *scene_call(scene *s, ebb_provider_op op) {
    void *c = ebb__call_new(&s->gate, op);
    assert_non_null(c);
    return c;
}

ebb_future *scene_begin(scene *s, void *call) {
    return ebb__call_begin(s->w->host, call, EBB_SITE);
}

void *scene_end_call(scene *s, ebb_future *f) {
    ebb_value v;
    const uint64_t until = real_ns(CLOCK_MONOTONIC) + 240 * EBB_SECOND;
    while (ebb_future_state_of(f) == EBB_FUTURE_PENDING) {
        const struct timespec nap = {0, 20000};
        ebb_inbox_receive(s->w->rt);
        if (ebb_future_state_of(f) != EBB_FUTURE_PENDING) break;
        assert_true(real_ns(CLOCK_MONOTONIC) < until);
        (void)nanosleep(&nap, NULL);
    }
    world_settle(s->w);
    assert_int_equal(ebb_await(s->w->host, f, &v), EBB_OK);
    ebb_provider_call *c = ebb__call_of(&v);
    assert_non_null(c);
    if (c->status != EBB_OK) (void)snprintf(s->text, sizeof s->text, "%s", c->text);
    return c;
}

void *scene_ask(scene *s, void *call) {
    return scene_end_call(s, scene_begin(s, call));
}

ebb_status scene_status(scene *s, void *call) {
    ebb_provider_call *c = scene_ask(s, call);
    const ebb_status st = c->status;
    ebb__call_free(c);
    return st;
}

ebb_status scene_open_with(scene *s, const ebb_store_opts *opts) {
    ebb_provider_open_call *c = scene_call(s, EBB_PROVIDER_OPEN);
    c->host = &s->host;
    c->opts = opts;
    s->text[0] = 0;
    c = scene_ask(s, c);
    const ebb_status st = c->call.status;
    s->gate.self = c->self;
    s->open = st == EBB_OK;
    ebb__call_free(&c->call);
    return st;
}

ebb_status scene_open(scene *s, const char *name, ebb_durability d) {
    char url[600];
    (void)snprintf(url, sizeof url, "sqlite:%s", scene_path(s, name));
    return scene_open_with(s, &(ebb_store_opts){.url = url, .durability = d});
}

void scene_close(scene *s) {
    if (!s->open) return;
    assert_int_equal(scene_status(s, scene_call(s, EBB_PROVIDER_CLOSE)), EBB_OK);
    s->open = false;
}

ebb_status scene_join(scene *s) {
    static const ebb_provider_runs runs[] = {{"pay", 1}};
    ebb_provider_join_call *c = scene_call(s, EBB_PROVIDER_JOIN);
    c->name = "w";
    c->lease = 30 * EBB_SECOND;
    c->runs = runs;
    c->runs_n = 1;
    c = scene_ask(s, c);
    const ebb_status st = c->call.status;
    s->node = c->node;
    ebb__call_free(&c->call);
    return st;
}

ebb_status scene_start(scene *s, const char *id) {
    ebb_provider_start_call *c = scene_call(s, EBB_PROVIDER_START);
    c->id = id;
    c->name = "pay";
    c->message = ebb_blob_text("begin");
    return scene_status(s, c);
}

ebb_status scene_signal(scene *s, const char *id, const char *body, const char *dedup) {
    ebb_provider_send_call *c = scene_call(s, EBB_PROVIDER_SEND);
    c->id = id;
    c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
    c->dedup = dedup;
    c->body = ebb_blob_text(body);
    return scene_status(s, c);
}

ebb_provider_fetch_turns_call *scene_fetch(scene *s, uint32_t most) {
    ebb_provider_fetch_turns_call *c = scene_call(s, EBB_PROVIDER_FETCH_TURNS);
    c->node = s->node;
    c->most = most;
    c->messages = 1000;
    return scene_ask(s, c);
}

ebb_provider_fetch_work_call *scene_fetch_work(scene *s, uint32_t most) {
    ebb_provider_fetch_work_call *c = scene_call(s, EBB_PROVIDER_FETCH_WORK);
    ebb_provider_queue *queue = ebb__call_room(&c->call, sizeof *queue);
    *queue = (ebb_provider_queue){"charge", most};
    c->node = s->node;
    c->queues = queue;
    c->queues_n = 1;
    c->most = most;
    c->lease = 30 * EBB_SECOND;
    return scene_ask(s, c);
}

ebb_provider_ack_turn_call *scene_ack(scene *s, const ebb_provider_turn_item *item, const char *body) {
    ebb_provider_ack_turn_call *c = scene_call(s, EBB_PROVIDER_ACK_TURN);
    ebb_provider_message_key *acked = ebb__call_room(&c->call, (item->messages_n + 1) * sizeof *acked);
    for (size_t i = 0; i < item->messages_n; i++) acked[i] = item->messages[i].at;
    c->node = s->node;
    c->token = item->token;
    c->ack_id = ebb__token_new(&s->host);
    c->key = item->key;
    c->execution = item->execution;
    c->turn = item->turn + 1;
    c->name = item->name;
    c->version = 1;
    c->semantics = 1;
    c->body = ebb__call_blob(&c->call, ebb_blob_text(body));
    c->acked = acked;
    c->acked_n = item->messages_n;
    c->lease = 30 * EBB_SECOND;
    return c;
}

ebb_provider_ack_work_call *scene_ack_work(scene *s, const ebb_provider_work_item *item,
                                           const ebb_blob *message) {
    ebb_provider_ack_work_call *c = scene_call(s, EBB_PROVIDER_ACK_WORK);
    c->node = s->node;
    c->token = item->token;
    c->ack_id = ebb__token_new(&s->host);
    c->key = item->key;
    c->execution = item->execution;
    c->activity = item->activity;
    c->message = message;
    return c;
}

int64_t scene_number(scene *s, const char *name, const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *at = NULL;
    int64_t n = -1;
    assert_int_equal(sqlite3_open_v2(scene_path(s, name), &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &at, NULL), SQLITE_OK);
    if (sqlite3_step(at) == SQLITE_ROW) n = sqlite3_column_int64(at, 0);
    (void)sqlite3_finalize(at);
    (void)sqlite3_close(db);
    return n;
}
