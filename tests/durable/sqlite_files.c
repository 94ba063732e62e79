/* Files of SQLite: who owns one, who shares it, and which are refused. */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/sqlite_scene.h"

/* ---- processes ------------------------------------------------------------------------------------------------------- */

typedef void (*child_fn)(scene *s, int out);

/* What other processes do, by name: they run this program again, since a thread sanitizer follows no fork. */
static void expect_busy(scene *s, int out);
static void work_until_killed(scene *s, int out);
static void claim_and_wait(scene *s, int out);
static void claim_work_and_wait(scene *s, int out);
static void ask_the_owner(scene *s, int out);
static const struct {
    const char *name;
    child_fn body;
} children[] = {{"busy", expect_busy},
                {"work", work_until_killed},
                {"claim", claim_and_wait},
                {"claim work", claim_work_and_wait},
                {"ask", ask_the_owner}};

/* Runs a child's body in another process, on the same directory. It writes to `out`. */
static pid_t other_process(scene *s, int out, const char *name) {
    char fd[16], *argv[] = {(char[]){"child"}, (char[]){""}, s->dir, fd, NULL}, what[16];
    (void)snprintf(what, sizeof what, "%s", name);
    (void)snprintf(fd, sizeof fd, "%d", out);
    argv[1] = what;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child != 0) return child;
    (void)execv("/proc/self/exe", argv);
    _exit(127);
}

static int child_main(char **argv) {
    scene *s = scene_at(world_new(NULL, false), argv[2]);
    for (size_t i = 0; i < sizeof children / sizeof children[0]; i++)
        if (strcmp(children[i].name, argv[1]) == 0) children[i].body(s, atoi(argv[3]));
    _exit(0);
}

static void expect_busy(scene *s, int out) {
    char pid[32];
    (void)out;
    (void)snprintf(pid, sizeof pid, "process %ld", (long)getppid());
    if (scene_open(s, "a.db", EBB_DURABILITY_FULL) != EBB_ERR_BUSY) _exit(1);
    if (strstr(s->text, pid) == NULL) _exit(2);
}

static void a_second_process_is_refused_by_name(void **state) {
    int status = 0;
    scene *s = scene_new(*state);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_FULL), EBB_OK);
    const pid_t child = other_process(s, -1, "busy");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(scene_join(s), EBB_OK); /* it has lost nothing */
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    scene_close(s);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_FULL), EBB_OK);
    scene_end(s);
}

/* Starts instances, runs a turn of each, and says so, until it is killed. */
static void work_until_killed(scene *s, int out) {
    if (scene_open(s, "a.db", EBB_DURABILITY_NORMAL) != EBB_OK || scene_join(s) != EBB_OK) _exit(1);
    for (uint32_t i = 0;; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "p%ld-%u", (long)getpid(), i);
        if (scene_start(s, id) != EBB_OK) _exit(1);
        ebb_provider_fetch_turns_call *f = scene_fetch(s, 4);
        for (size_t k = 0; k < f->items_n; k++) {
            const ebb_status st = scene_status(s, scene_ack(s, &f->items[k], "turn"));
            if (st != EBB_OK) _exit(1);
            if (write(out, &f->items[k].key, sizeof f->items[k].key) != sizeof f->items[k].key) _exit(1);
        }
        ebb__call_free(&f->call);
    }
}

static void killed_processes_lose_nothing(void **state) {
    enum { KILLS = 10 };
    scene *s = scene_new(*state);
    uint64_t acked = 0;
    for (int i = 0; i < KILLS; i++) {
        int ends[2], status = 0;
        uint64_t key;
        char sql[128];
        assert_int_equal(pipe(ends), 0);
        const pid_t child = other_process(s, ends[1], "work");
        (void)close(ends[1]);
        for (int k = 0; k < 3 + 7 * i; k++) assert_int_equal(read(ends[0], &key, sizeof key), sizeof key);
        const struct timespec nap = {0, 1000000L * (i % 5)};
        (void)nanosleep(&nap, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
        acked += (uint64_t)(3 + 7 * i);
        (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM hist WHERE turn = 1 AND inst = %llu",
                       (unsigned long long)key);
        assert_int_equal(scene_number(s, "a.db", sql), 1);
        while (read(ends[0], &key, sizeof key) == sizeof key) acked++;
        (void)close(ends[0]);
        assert_true((uint64_t)scene_number(s, "a.db", "SELECT count(*) FROM hist") >= acked);
        assert_int_equal(scene_number(s, "a.db", "SELECT count(*) FROM hist JOIN inbox USING(inst)"), 0);
        scene_close(s);
    }
    scene_end(s);
}

static void claim_and_wait(scene *s, int out) {
    if (scene_open(s, "a.db", EBB_DURABILITY_NORMAL) != EBB_OK || scene_join(s) != EBB_OK) _exit(1);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 1);
    if (f->items_n != 1 || write(out, &f->items[0].key, sizeof f->items[0].key) != sizeof f->items[0].key)
        _exit(1);
    for (;;) (void)pause();
}

static void claim_work_and_wait(scene *s, int out) {
    if (scene_open(s, "a.db", EBB_DURABILITY_NORMAL) != EBB_OK || scene_join(s) != EBB_OK) _exit(1);
    ebb_provider_fetch_work_call *w = scene_fetch_work(s, 1);
    if (w->items_n != 1 || write(out, &w->items[0].key, sizeof w->items[0].key) != sizeof w->items[0].key)
        _exit(1);
    for (;;) (void)pause();
}

/* What a dead process had claimed is visible at the next open, and the claim was charged. */
static void work_of_a_dead_process_is_given_again(void **state) {
    static const ebb_provider_work work = {.activity = 2, .queue = "charge", .session = "", .name = "charge"};
    scene *s = scene_new(*state);
    int ends[2], status = 0;
    uint64_t key = 0;
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 1);
    ebb_provider_ack_turn_call *c = scene_ack(s, &f->items[0], "turn");
    c->work = &work;
    c->work_n = 1;
    assert_int_equal(scene_status(s, c), EBB_OK);
    ebb__call_free(&f->call);
    scene_close(s);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = other_process(s, ends[1], "claim work");
    assert_int_equal(read(ends[0], &key, sizeof key), sizeof key);
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    ebb_provider_fetch_work_call *w = scene_fetch_work(s, 1);
    assert_int_equal(w->items_n, 1);
    assert_int_equal(w->items[0].attempts, 2);
    ebb__call_free(&w->call);
    scene_end(s);
}

/* Whoever was running when the process died is charged; bystanders are not. */
static void an_instance_that_kills_its_process_is_a_suspect(void **state) {
    scene *s = scene_new(*state);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_start(s, "bad"), EBB_OK);
    assert_int_equal(scene_start(s, "good"), EBB_OK);
    scene_close(s);
    for (int i = 0; i < 2; i++) {
        int ends[2], status = 0;
        uint64_t key = 0;
        assert_int_equal(pipe(ends), 0);
        const pid_t child = other_process(s, ends[1], "claim");
        assert_int_equal(read(ends[0], &key, sizeof key), sizeof key);
        (void)close(ends[0]);
        (void)close(ends[1]);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 10);
    assert_int_equal(f->items_n, 1);
    assert_string_equal(f->items[0].id, "good");
    assert_int_equal(f->items[0].attempts, 1);
    assert_true(f->suspects_wait);
    ebb__call_free(&f->call);
    f = scene_call(s, EBB_PROVIDER_FETCH_TURNS);
    f->node = s->node;
    f->most = 10;
    f->messages = 10;
    f->suspects = true;
    f = scene_ask(s, f);
    assert_int_equal(f->items_n, 1);
    assert_string_equal(f->items[0].id, "bad");
    assert_int_equal(f->items[0].attempts, 3);
    assert_int_equal(scene_status(s, scene_ack(s, &f->items[0], "turn")), EBB_OK);
    ebb__call_free(&f->call);
    assert_int_equal(scene_number(s, "a.db", "SELECT sum(attempts) FROM inst"), 0);
    scene_end(s);
}

/* Another process asks the owner: reads, starts, a cancel, and what only a worker may. */
static void ask_the_owner(scene *s, int out) {
    char url[600];
    int bad = 0;
    (void)out;
    (void)snprintf(url, sizeof url, "sqlite:%s", scene_path(s, "a.db"));
    if (scene_open_with(s, &(ebb_store_opts){.url = url, .client = true}) != EBB_OK) _exit(1);
    if (scene_start(s, "of a client") != EBB_OK) _exit(2);
    if (scene_start(s, "a") != EBB_OK) _exit(3);
    if (scene_signal(s, "nobody", "x", NULL) != EBB_ERR_UNKNOWN_INSTANCE) _exit(4);
    if (strstr(s->text, "no instance nobody") == NULL) _exit(5);
    if (scene_signal(s, "a", "x", NULL) != EBB_OK) _exit(6);
    if (scene_join(s) != EBB_ERR_CLOSED) _exit(7);
    ebb_provider_instance_call *i = scene_call(s, EBB_PROVIDER_INSTANCE);
    i->id = "a";
    i = scene_ask(s, i);
    bad |= i->call.status != EBB_OK || strcmp(i->row.name, "pay") != 0 || i->row.turn != 1;
    const uint64_t key = i->row.key;
    ebb_provider_history_call *h = scene_call(s, EBB_PROVIDER_HISTORY);
    h->id = "a";
    h = scene_ask(s, h);
    bad |= h->call.status != EBB_OK || h->turns_n != 1 || h->turns[0].body.n != 4 ||
           memcmp(h->turns[0].body.at, "turn", 4) != 0;
    ebb_provider_list_call *l = scene_call(s, EBB_PROVIDER_LIST);
    const ebb_instance_filter by = {.most = 10};
    l->filter = &by;
    l = scene_ask(s, l);
    bad |= l->call.status != EBB_OK || l->rows_n != 2 || strcmp(l->rows[1].id, "of a client") != 0;
    ebb_provider_ack_turn_call *t = scene_call(s, EBB_PROVIDER_ACK_TURN); /* as a terminate does */
    t->ack_id = (ebb_provider_token){5, 5};
    t->key = key;
    t->execution = 1;
    t->turn = 2;
    t->body = ebb_blob_text("end");
    t->all_work = t->all_timers = true;
    t->ends = EBB_INSTANCE_TERMINATED;
    t->text = "enough";
    bad |= scene_status(s, t) != EBB_OK;
    ebb_provider_remove_call *r = scene_call(s, EBB_PROVIDER_REMOVE);
    r->keys = &key;
    r->keys_n = 1;
    r = scene_ask(s, r);
    bad |= r->call.status != EBB_OK || r->removed != 1;
    scene_close(s);
    _exit(bad != 0 ? 8 : 0);
}

static void another_process_asks_the_owner(void **state) {
    int status = 0;
    scene *s = scene_new(*state);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(s), EBB_OK);
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    ebb_provider_fetch_turns_call *f = scene_fetch(s, 1);
    assert_int_equal(scene_status(s, scene_ack(s, &f->items[0], "turn")), EBB_OK);
    ebb__call_free(&f->call);
    const pid_t child = other_process(s, -1, "ask");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(atomic_load(&s->hints[EBB_PROVIDER_HINT_ENDED]) > 0);
    f = scene_fetch(s, 10);
    assert_int_equal(f->items_n, 1);
    assert_string_equal(f->items[0].id, "of a client");
    ebb__call_free(&f->call);
    scene_end(s);
}

/* Bytes of nobody: each bad frame ends its connection, and nothing else. */
static void a_socket_bears_any_bytes(void **state) {
    scene *s = scene_new(*state);
    struct sockaddr_un at;
    uint32_t seed = 1;
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_true(ebb__sqlite_socket_name(scene_path(s, "a.db"), &at));
    for (int i = 0; i < 200; i++) {
        uint8_t frame[96];
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
        for (size_t k = 0; k < sizeof frame; k++)
            frame[k] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
        for (size_t k = 8; k < sizeof frame && i % 2 == 0; k++)
            frame[k] &= k % 8 == 0 ? 31 : 0; /* small numbers */
        const uint32_t n = sizeof frame - 8;
        const uint16_t head[2] = {1, (uint16_t)(i % 23)};
        memcpy(frame, &n, 4);
        memcpy(frame + 4, head, 4);
        assert_int_equal(send(fd, frame, sizeof frame, MSG_NOSIGNAL), sizeof frame);
        (void)shutdown(fd, SHUT_WR);
        while (recv(fd, frame, sizeof frame, 0) > 0) {}
        (void)close(fd);
    }
    assert_int_equal(scene_start(s, "a"), EBB_OK);
    scene_end(s);
}

/* ---- loops of one process --------------------------------------------------------------------------------------------- */

static void loops_of_a_process_share_a_file(void **state) {
    scene *a = scene_new(*state), *b = scene_beside(a);
    assert_int_equal(scene_open(a, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    char link_to[600];
    (void)snprintf(link_to, sizeof link_to, "%s", scene_path(a, "b.db"));
    assert_int_equal(link(scene_path(a, "a.db"), link_to), 0); /* another name of the same inode */
    assert_int_equal(scene_open(b, "b.db", EBB_DURABILITY_FULL), EBB_OK);
    assert_ptr_equal(((ebb__sqlite_store *)a->gate.self)->file, ((ebb__sqlite_store *)b->gate.self)->file);
    assert_int_equal(scene_join(a), EBB_OK);
    assert_int_equal(scene_join(b), EBB_OK);
    for (int i = 0; i < 8; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "i%d", i);
        assert_int_equal(scene_start(i % 2 == 0 ? a : b, id), EBB_OK);
    }
    assert_true(atomic_load(&a->hints[EBB_PROVIDER_HINT_TURNS]) >= 8);
    assert_true(atomic_load(&b->hints[EBB_PROVIDER_HINT_TURNS]) >= 8);
    ebb_provider_fetch_turns_call *fa = scene_fetch(a, 4), *fb = scene_fetch(b, 10);
    assert_int_equal(fa->items_n, 4);
    assert_int_equal(fb->items_n, 4);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) assert_true(fa->items[i].key != fb->items[k].key);
    ebb_provider_leave_call *l = scene_call(a, EBB_PROVIDER_LEAVE);
    l->node = a->node;
    assert_int_equal(scene_status(a, l), EBB_OK);
    ebb__call_free(&fb->call);
    fb = scene_fetch(b, 10);
    assert_int_equal(fb->items_n, 4);
    assert_int_equal(fb->items[0].attempts, 1); /* a leave charges none */
    assert_string_equal(fb->items[0].id, fa->items[0].id);
    ebb__call_free(&fa->call);
    ebb__call_free(&fb->call);
    scene_close(a);
    assert_int_equal(scene_start(b, "later"), EBB_OK);
    scene_close(b);
    scene_end(a);
}

static void a_lapsed_loop_loses_what_it_was_running(void **state) {
    scene *a = scene_new(*state), *b = scene_beside(a);
    assert_int_equal(scene_open(a, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_open(b, "a.db", EBB_DURABILITY_NORMAL), EBB_OK);
    assert_int_equal(scene_join(a), EBB_OK);
    assert_int_equal(scene_start(a, "i"), EBB_OK);
    ebb_provider_fetch_turns_call *fa = scene_fetch(a, 4);
    assert_int_equal(fa->items_n, 1);
    atomic_fetch_add(&a->boot, 31 * EBB_SECOND);
    atomic_fetch_add(&b->boot, 31 * EBB_SECOND);
    assert_int_equal(scene_join(b), EBB_OK);
    ebb_provider_fetch_turns_call *fb = scene_fetch(b, 4);
    assert_int_equal(fb->items_n, 1);
    assert_int_equal(fb->items[0].attempts, 2);
    ebb_provider_renew_call *r = scene_call(a, EBB_PROVIDER_RENEW);
    r->node = a->node;
    r->lease = 30 * EBB_SECOND;
    r = scene_ask(a, r);
    assert_true(r->lost);
    ebb__call_free(&r->call);
    assert_int_equal(scene_status(b, scene_ack(b, &fb->items[0], "of b")), EBB_OK);
    assert_int_equal(scene_status(a, scene_ack(a, &fa->items[0], "of a")), EBB_ERR_FENCED);
    ebb__call_free(&fa->call);
    ebb__call_free(&fb->call);
    scene_close(b);
    scene_end(a);
}

/* ---- files that are refused ----------------------------------------------------------------------------------------------- */

static void put_file(scene *s, const char *name, const char *text, size_t n) {
    FILE *f = fopen(scene_path(s, name), "wb");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) assert_int_equal(fputs(text, f) >= 0, 1);
    (void)fclose(f);
}

static void refused_files_are_named(void **state) {
    scene *s = scene_new(*state);
    put_file(s, "text.db", "this is no database at all\n", 100);
    assert_int_equal(scene_open(s, "text.db", EBB_DURABILITY_FULL), EBB_ERR_STORE);
    assert_non_null(strstr(s->text, "text.db is no SQLite database"));

    put_file(s, "other.db", "", 0);
    (void)scene_number(s, "other.db", "CREATE TABLE theirs(x)");
    assert_int_equal(scene_open(s, "other.db", EBB_DURABILITY_FULL), EBB_ERR_STORE);
    assert_non_null(strstr(s->text, "other.db is a database of another program"));
    assert_int_equal(scene_number(s, "other.db", "SELECT count(*) FROM sqlite_schema"), 1);
    assert_int_equal(scene_number(s, "other.db", "SELECT journal_mode = 'delete' FROM pragma_journal_mode"),
                     1);

    assert_int_equal(scene_open(s, "newer.db", EBB_DURABILITY_FULL), EBB_OK);
    scene_close(s);
    (void)scene_number(s, "newer.db", "UPDATE meta SET v = 7 WHERE k = 'schema'");
    assert_int_equal(scene_open(s, "newer.db", EBB_DURABILITY_FULL), EBB_OK); /* it has only been expanded */
    scene_close(s);
    (void)scene_number(s, "newer.db", "UPDATE meta SET v = 6 WHERE k = 'min_reader'");
    assert_int_equal(scene_open(s, "newer.db", EBB_DURABILITY_FULL), EBB_ERR_SCHEMA);
    assert_non_null(strstr(s->text, "has schema 7, which needs a reader of schema 6; this one reads 1"));

    assert_int_equal(scene_open(s, "no/such/directory.db", EBB_DURABILITY_FULL), EBB_ERR_STORE);
    assert_int_equal(scene_open(s, ".", EBB_DURABILITY_FULL), EBB_ERR_STORE);
    assert_int_equal(scene_open_with(s, &(ebb_store_opts){.url = "sqlite:"}), EBB_ERR_INVALID);
    assert_int_equal(scene_open_with(s, &(ebb_store_opts){.url = "sqlite:x?durability=some"}),
                     EBB_ERR_INVALID);
    assert_non_null(strstr(s->text, "\"some\" is neither full nor normal"));
    char url[600];
    (void)snprintf(url, sizeof url, "sqlite:%s", scene_path(s, "none.db"));
    assert_int_equal(scene_open_with(s, &(ebb_store_opts){.url = url, .no_create = true}), EBB_ERR_SCHEMA);
    assert_int_equal(access(scene_path(s, "none.db"), F_OK), -1);
    scene_end(s);
}

static void a_damaged_file_is_named(void **state) {
    scene *s = scene_new(*state);
    assert_int_equal(scene_open(s, "a.db", EBB_DURABILITY_FULL), EBB_OK);
    for (int i = 0; i < 50; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "i%d", i);
        assert_int_equal(scene_start(s, id), EBB_OK);
    }
    scene_close(s);
    FILE *f = fopen(scene_path(s, "a.db"), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 4096, SEEK_SET), 0);
    for (int i = 0; i < 200000; i++) (void)fputc(0x5a, f);
    (void)fclose(f);
    const ebb_status st = scene_open(s, "a.db", EBB_DURABILITY_FULL);
    assert_int_equal(st, EBB_ERR_STORE);
    assert_non_null(strstr(s->text, "a.db"));
    scene_end(s);
}

int main(int argc, char **argv) {
    if (argc == 4) return child_main(argv);
    (void)signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        IN_UNTRACED_WORLD(a_second_process_is_refused_by_name),
        IN_UNTRACED_WORLD(killed_processes_lose_nothing),
        IN_UNTRACED_WORLD(an_instance_that_kills_its_process_is_a_suspect),
        IN_UNTRACED_WORLD(work_of_a_dead_process_is_given_again),
        IN_UNTRACED_WORLD(another_process_asks_the_owner),
        IN_UNTRACED_WORLD(a_socket_bears_any_bytes),
        IN_UNTRACED_WORLD(loops_of_a_process_share_a_file),
        IN_UNTRACED_WORLD(a_lapsed_loop_loses_what_it_was_running),
        IN_UNTRACED_WORLD(refused_files_are_named),
        IN_UNTRACED_WORLD(a_damaged_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
