/* The PostgreSQL provider in trouble: whoever refuses, says nothing, answers nonsense or takes what was sent back, each call ends
 * with an error that names it, or it is done after all. */
#include "tests/durable/postgres_world.h"

#include <netdb.h>

static void nap(ebb_cx *cx) {
    (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

typedef struct attempt {
    char url[400];
    ebb_status expected;
    const char *text;
} attempt;

static ebb_status attempt_main(ebb_cx *cx, void *arg) {
    const attempt *a = arg;
    ebb_value v;
    const ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = a->url}), &v);
    if (st == EBB_OK) close_store(cx, ebb_store_of(&v));
    else if (strstr(ebb_durable_error(), a->text) == NULL) print_error("said: %s\n", ebb_durable_error());
    assert_int_equal(st, a->expected);
    if (st == EBB_OK) return EBB_OK;
    assert_non_null(strstr(ebb_durable_error(), a->text));
    assert_null(strstr(ebb_durable_error(), "opensesame"));
    return EBB_OK;
}

static void open_is(void **state, const char *user, const char *option, ebb_status expected,
                    const char *text) {
    attempt a = {.expected = expected, .text = text};
    snprintf(a.url, sizeof a.url, "postgres://%s@:%u/postgres?host=%s%s", user, server.port, server.dir,
             option);
    assert_int_equal(run_fiber(*state, attempt_main, &a), EBB_OK);
}

/* The file that says who needs a password. */
static void write_hba(const char *line) {
    char sql[300];
    snprintf(sql, sizeof sql,
             "COPY (VALUES ('%s'), ('local all all trust'), ('host all all 127.0.0.1/32 trust'))"
             " TO PROGRAM 'cat > pg_hba.conf'",
             line);
    (void)pg_ask(observer, sql);
    (void)pg_ask(observer, "SELECT pg_reload_conf()");
    while (strcmp(pg_ask(observer, "SELECT count(*) FROM pg_hba_file_rules"), "3") != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void a_wrong_password_or_none_is_permanent(void **state) {
    (void)pg_ask(observer, "CREATE ROLE locked SUPERUSER LOGIN PASSWORD 'right'");
    write_hba("local all locked scram-sha-256");
    open_is(state, "locked:right", "", EBB_OK, "");
    open_is(state, "locked:opensesame", "", EBB_ERR_STORE, "password authentication failed");
    open_is(state, "locked", "", EBB_ERR_STORE, "no password supplied");
    write_hba("local all nobody trust");
}

/* Connects are accepted by the kernel, and nobody says anything. */
static void a_server_that_says_nothing_is_given_up(void **state) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    attempt a = {.expected = EBB_ERR_UNAVAILABLE, .text = "did not answer a connect within 1 s"};
    assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    snprintf(a.url, sizeof a.url, "postgres://ebb@127.0.0.1:%u/postgres?connect_timeout=1",
             ntohs(at.sin_port));
    assert_int_equal(run_fiber(*state, attempt_main, &a), EBB_OK);
    close(fd);
}

enum { POOL = 4 };

static void hold_thread(uv_work_t *work) {
    const atomic_bool *held = work->data;
    while (atomic_load(held)) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void hold_pool(loop_world *w, atomic_bool *held) {
    static uv_work_t work[POOL];
    atomic_store(held, true);
    for (int i = 0; i < POOL; i++) {
        work[i].data = held;
        assert_int_equal(uv_queue_work(&w->uv, &work[i], hold_thread, NULL), 0);
    }
}

typedef struct lookup {
    loop_world *world;
    atomic_bool held;
} lookup;

static ebb_status let_threads_go(ebb_cx *cx, void *arg) {
    (void)ebb_await(cx, ebb_after(cx, 2 * EBB_SECOND), NULL);
    atomic_store(&((lookup *)arg)->held, false);
    return EBB_OK;
}

/* All threads of the pool are busy; the close of the store waits for the lookup, and so until they are not. */
static ebb_status late_open(ebb_cx *cx, void *arg) {
    lookup *l = arg;
    attempt a = {.expected = EBB_ERR_UNAVAILABLE, .text = "host 'localhost' was not found within 1 s"};
    snprintf(a.url, sizeof a.url, "%s?connect_timeout=1", server.tcp_url);
    hold_pool(l->world, &l->held);
    assert_int_not_equal(ebb_fiber_spawn(cx, ebb_cx_region(cx), let_threads_go, l).id, 0);
    return attempt_main(cx, &a);
}

/* The connection of a store that is open waits for the one lookup again and again, and goes on with its answer. */
static ebb_status late_again(ebb_cx *cx, void *arg) {
    lookup *l = arg;
    char url[400];
    snprintf(url, sizeof url, "%s?connect_timeout=1", server.tcp_url);
    ebb_store *s = open_url(cx, url);
    ebb__postgres_conn *k = &provider_of(s)->writer.conn;
    wait_ready(cx, s);
    hold_pool(l->world, &l->held);
    ebb__postgres_conn_lose(k, "lost by the test");
    while (strstr(k->text, "within 1 s") == NULL) nap(cx);
    assert_int_equal(k->state, EBB__CONN_DOWN);
    while (k->state == EBB__CONN_DOWN) nap(cx);
    assert_int_equal(k->state, EBB__CONN_RESOLVING);
    atomic_store(&l->held, false);
    wait_ready(cx, s);
    end_call(insist(cx, start_call(s, "late")), EBB_OK);
    close_store(cx, s);
    return EBB_OK;
}

static void a_lookup_that_takes_too_long_is_given_up(void **state) {
    lookup l = {.world = *state};
    assert_int_equal(run_fiber(*state, late_open, &l), EBB_OK);
    while (atomic_load(&l.held)) loop_turns(*state, 1);
    assert_int_equal(run_fiber(*state, late_again, &l), EBB_OK);
    wipe();
}

/* The server has 127.0.0.1 alone. */
static ebb_status address_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.tcp_url);
    ebb__postgres_conn *k = &provider_of(s)->writer.conn;
    struct addrinfo *list;
    uint32_t pause = 0;
    (void)arg;
    wait_ready(cx, s);
    const struct addrinfo numeric = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *last;
    assert_int_equal(getaddrinfo("127.0.0.2", NULL, &numeric, &list), 0);
    assert_int_equal(getaddrinfo("127.0.0.1", NULL, &numeric, &last), 0);
    list->ai_next = last;
    k->next = list;
    ebb__postgres_conn_lose(k, "lost by the test");
    while (!provider_of(s)->writer.ready) {
        pause = k->pause_ms > pause ? k->pause_ms : pause;
        nap(cx);
    }
    assert_int_equal(pause, 50); /* of the loss alone */
    list->ai_next = NULL;
    freeaddrinfo(list);
    freeaddrinfo(last);
    close_store(cx, s);
    return EBB_OK;
}

static void the_next_address_is_tried_when_one_is_refused(void **state) {
    assert_int_equal(run_fiber(*state, address_main, NULL), EBB_OK);
}

static ebb_status few_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, arg);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    (void)start(cx, s, "few");
    while (provider_of(s)->reader.conn.state != EBB__CONN_DOWN) nap(cx);
    ebb_provider_instance_call *c = new_call(s, EBB_PROVIDER_INSTANCE);
    c->id = "few";
    c = ask(cx, c);
    assert_non_null(strstr(c->call.text, "too many connections"));
    end_call(c, EBB_ERR_UNAVAILABLE);
    (void)pg_ask(observer, "ALTER ROLE few CONNECTION LIMIT 9");
    c = new_call(s, EBB_PROVIDER_INSTANCE);
    c->id = "few";
    end_call(insist(cx, c), EBB_OK);
    wait_ready(cx, s);
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void without_connections_for_all_it_writes_with_the_first(void **state) {
    char url[400];
    (void)pg_ask(observer,
                 "CREATE ROLE few LOGIN CONNECTION LIMIT 1;"
                 "GRANT ALL ON SCHEMA ebb, ebb_v1 TO few; GRANT ALL ON ALL TABLES IN SCHEMA ebb TO few;"
                 "GRANT ALL ON ALL SEQUENCES IN SCHEMA ebb TO few");
    snprintf(url, sizeof url, "postgres://few@:%u/postgres?host=%s", server.port, server.dir);
    assert_int_equal(run_fiber(*state, few_main, url), EBB_OK);
    wipe();
}

/* ---- TLS -------------------------------------------------------------------------------------------------------- */

static ebb_status tls_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, arg);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    wait_ready(cx, s);
    assert_string_equal(
        pg_ask(
            observer,
            "SELECT count(*) || ' ' || bool_and(t.ssl) FROM pg_stat_ssl t JOIN pg_stat_activity a USING (pid)"
            " WHERE a.application_name = 'ebb'"),
        "3 true");
    run_once(cx, s, node, "tls");
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

/* A certificate for localhost, made by the server's user in its directory. */
static void make_certificate(const char *name) {
    char sql[512];
    snprintf(sql, sizeof sql,
             "COPY (SELECT 1) TO PROGRAM 'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
             "-nodes"
             " -keyout %s.key -out ../%s.crt -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
             " 2>/dev/null && chmod 600 %s.key && chmod 644 ../%s.crt'",
             name, name, name, name);
    assert_string_equal(pg_ask(observer, sql), "");
}

static void connections_by_tls_check_the_server(void **state) {
    attempt a = {.expected = EBB_ERR_UNAVAILABLE, .text = "certificate verify failed"};
    char url[400];
    make_certificate("server");
    make_certificate("other");
    (void)pg_ask(observer, "ALTER SYSTEM SET ssl_cert_file = '../server.crt'");
    (void)pg_ask(observer, "ALTER SYSTEM SET ssl = on");
    (void)pg_ask(observer, "SELECT pg_reload_conf()");
    while (strcmp(pg_ask(observer, "SHOW ssl"), "on") != 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    snprintf(url, sizeof url, "%s?sslmode=verify-full&sslrootcert=%s/server.crt", server.tcp_url, server.dir);
    assert_int_equal(run_fiber(*state, tls_main, url), EBB_OK);
    check_ended("tls");
    snprintf(a.url, sizeof a.url, "%s?sslmode=verify-full&sslrootcert=%s/other.crt", server.tcp_url,
             server.dir);
    assert_int_equal(run_fiber(*state, attempt_main, &a), EBB_OK);
    (void)pg_ask(observer, "ALTER SYSTEM RESET ALL");
    (void)pg_ask(observer, "SELECT pg_reload_conf()");
    wipe();
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* One of two calls of a batch waits for a row that somebody has locked. */
static ebb_status locked_main(ebb_cx *cx, void *arg) {
    const char *state = arg;
    ebb_store *s = open_url(cx, server.url);
    PGconn *other = pg_open(&server);
    (void)start(cx, s, "locked");
    (void)pg_ask(other, "BEGIN");
    (void)pg_ask(other, "SELECT key FROM ebb.inst WHERE id = 'locked' FOR UPDATE");
    ebb_provider_send_call *c = new_call(s, EBB_PROVIDER_SEND);
    c->id = "locked";
    c->kind = EBB_PROVIDER_MESSAGE_SIGNAL;
    ebb_future *sent = ebb__call_begin(cx, &c->call, EBB_SITE);
    ebb_future *started = ebb__call_begin(cx, &start_call(s, "free")->call, EBB_SITE);
    end_call(answer(cx, started), EBB_OK);
    c = answer(cx, sent);
    assert_non_null(strstr(c->call.text, state));
    end_call(c, EBB_ERR_UNAVAILABLE);
    PQfinish(other);
    close_store(cx, s);
    return EBB_OK;
}

static void a_lock_is_waited_for_no_longer_than_a_call_may_take(void **state) {
    char lock[] = "55P03", statement[] = "57014";
    (void)pg_ask(observer, "ALTER ROLE ebb SET lock_timeout = '300ms'");
    assert_int_equal(run_fiber(*state, locked_main, lock), EBB_OK);
    (void)pg_ask(observer,
                 "ALTER ROLE ebb RESET lock_timeout; ALTER ROLE ebb SET statement_timeout = '300ms'");
    wipe();
    assert_int_equal(run_fiber(*state, locked_main, statement), EBB_OK);
    (void)pg_ask(observer, "ALTER ROLE ebb RESET statement_timeout");
    (void)pg_ask(observer, "BEGIN");
    (void)pg_ask(observer, "SELECT ebb_v1.clock()");
    assert_string_equal(pg_ask(observer, "SHOW lock_timeout"), "20s"); /* where nobody has said anything */
    (void)pg_ask(observer, "COMMIT");
    assert_string_equal(pg_ask(observer, "SHOW lock_timeout"), "0"); /* for the transaction alone */
    wipe();
}

/* ---- nonsense --------------------------------------------------------------------------------------------------- */

typedef struct told {
    ebb__hint_listener listener;
    uint32_t n;
    ebb_provider_hint last;
} told;

static void tell(void *arg, const ebb_provider_hint *h) {
    told *t = arg;
    t->n++;
    t->last = *h;
}

static ebb_status stranger_main(ebb_cx *cx, void *arg) {
    static const char *const payloads[] = {
        "",         "\n",        "x",      "\n\n\n",         "x\nt",
        "x\nt\n",   "x\nT -1\n", "x\nw\n", "x\nzzz 1 2 3\n", "x\nt 99999999999999999999999\n",
        "x\ng 1\n", "x\nno end", "x\n\t\n"};
    ebb_store *s = open_url(cx, server.url);
    told t = {.listener = {.hint = tell, .arg = &t}};
    char sql[9000];
    (void)arg;
    wait_ready(cx, s);
    ebb__store_listen(s, &t.listener);
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        snprintf(sql, sizeof sql, "SELECT pg_notify('ebb', E'%s')", payloads[i]);
        (void)pg_ask(observer, sql);
    }
    (void)pg_ask(observer, "SELECT pg_notify('ebb', E'x\\n' || repeat('w', 7900) || E'\\n')");
    (void)pg_ask(observer, "SELECT pg_notify('ebb', E'x\\ng 7 1 2 4000000000\\n')");
    while (t.last.key != 7) nap(cx);
    assert_int_equal(t.last.kind, EBB_PROVIDER_HINT_GONE);
    assert_int_equal(t.last.cause, EBB_CANCEL_NONE);
    (void)pg_ask(observer, "SELECT pg_notify('ebb', E'x\\ng 8 1 2 4\\n')");
    while (t.last.key != 8) nap(cx);
    assert_int_equal(t.last.cause, EBB_CANCEL_TIMEOUT);
    ebb__store_unlisten(s, &t.listener);
    close_store(cx, s);
    return EBB_OK;
}

static void notifications_of_strangers_harm_nobody(void **state) {
    assert_int_equal(run_fiber(*state, stranger_main, NULL), EBB_OK);
}

static ebb_status shape_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    (void)arg;
    (void)pg_ask(observer,
                 "ALTER FUNCTION ebb_v1.renew RENAME TO renew_kept;"
                 "CREATE FUNCTION ebb_v1.renew(bigint, bigint, bigint, uuid[]) RETURNS TABLE(a bigint)"
                 " LANGUAGE sql AS 'SELECT 1::bigint'");
    for (int i = 0; i < 2; i++) {
        ebb_provider_renew_call *c = new_call(s, EBB_PROVIDER_RENEW);
        c->node = node;
        ebb_future *renewed = ebb__call_begin(cx, &c->call, EBB_SITE);
        ebb_future *started = ebb__call_begin(cx, &start_call(s, "beside")->call, EBB_SITE);
        end_call(answer(cx, started), EBB_OK);
        c = answer(cx, renewed);
        assert_non_null(strstr(c->call.text, "ebb_v1.renew of the database answers with"));
        end_call(c, EBB_ERR_STORE);
        (void)pg_ask(
            observer,
            "DROP FUNCTION ebb_v1.renew;"
            "CREATE FUNCTION ebb_v1.renew(bigint, bigint, bigint, uuid[])"
            " RETURNS TABLE(a boolean, b uuid) LANGUAGE sql AS 'SELECT false, NULL::uuid WHERE false'");
    }
    (void)pg_ask(observer, "DROP FUNCTION ebb_v1.renew; ALTER FUNCTION ebb_v1.renew_kept RENAME TO renew");
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void answers_of_another_shape_are_named(void **state) {
    assert_int_equal(run_fiber(*state, shape_main, NULL), EBB_OK);
    wipe();
}

/* ---- given back ------------------------------------------------------------------------------------------------- */

enum { LOST = 3 };

/* Of a fetch that the server commits while nobody reads, the answer is lost. */
static void lose_fetch(ebb_cx *cx, ebb_store *s, ebb_provider_node node) {
    ebb__postgres_lane *writer = &provider_of(s)->writer;
    ebb_provider_fetch_turns_call *c = new_call(s, EBB_PROVIDER_FETCH_TURNS);
    c->node = node;
    c->most = 16;
    c->messages = 100;
    ebb_future *f = ebb__call_begin(cx, &c->call, EBB_SITE);
    writer->conn.reading = true;
    while (strcmp(pg_ask(observer, "SELECT count(*) FROM ebb.inst WHERE token IS NOT NULL"), "3") != 0)
        nap(cx);
    writer->conn.reading = false;
    ebb__postgres_conn_lose(&writer->conn, "cut by the test");
    end_call(answer(cx, f), EBB_ERR_UNAVAILABLE);
}

/* What is given back goes before a batch, in a transaction of its own, whose commit fails twice for a time: alone, and with the
 * starts behind it. */
static ebb_status back_main(ebb_cx *cx, void *arg) {
    ebb_store *s = open_url(cx, server.url);
    const ebb_provider_node node = join(cx, s, 600 * EBB_SECOND);
    ebb_future *f[LOST];
    char id[24], sql[128];
    (void)arg;
    for (int i = 0; i < LOST; i++) {
        snprintf(id, sizeof id, "back-%d", i);
        (void)start(cx, s, id);
    }
    lose_fetch(cx, s, node);
    for (int i = 0; i < LOST; i++) { /* in the batch behind it, each gets its own answer */
        snprintf(id, sizeof id, "behind-%d", i);
        f[i] = ebb__call_insist(cx, &start_call(s, id)->call, EBB_FOREVER, EBB_SITE);
    }
    for (int i = 0; i < LOST; i++) {
        ebb_provider_start_call *c = answer(cx, f[i]);
        snprintf(sql, sizeof sql, "SELECT key FROM ebb.inst WHERE id = 'behind-%d'", i);
        assert_int_equal(c->row.key, strtoull(pg_ask(observer, sql), NULL, 10));
        end_call(c, EBB_OK);
    }
    for (size_t n = 0; n < (size_t)2 * LOST;) {
        ebb_provider_fetch_turns_call *c = fetch_some(cx, s, node);
        n += c->items_n;
        for (size_t i = 0; i < c->items_n; i++) assert_int_equal(c->items[i].attempts, 1); /* refunded */
        end_call(c, EBB_OK);
    }
    leave(cx, s, node);
    close_store(cx, s);
    return EBB_OK;
}

static void claims_whose_answer_was_lost_are_given_back_though_that_fails_at_first(void **state) {
    wipe();
    (void)pg_ask(
        observer,
        "CREATE SEQUENCE failures;"
        "CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
        " IF nextval('failures') <= 2 THEN RAISE 'twice' USING ERRCODE = '40001'; END IF; RETURN NEW; END$$;"
        "CREATE CONSTRAINT TRIGGER fail_twice AFTER UPDATE ON ebb.inst DEFERRABLE INITIALLY DEFERRED FOR "
        "EACH "
        "ROW"
        " WHEN (OLD.token IS NOT NULL AND NEW.token IS NULL) EXECUTE FUNCTION fail_twice()");
    assert_int_equal(run_fiber(*state, back_main, NULL), EBB_OK);
    assert_string_not_equal(pg_ask(observer, "SELECT last_value FROM failures"), "1");
    (void)pg_ask(observer,
                 "DROP TRIGGER fail_twice ON ebb.inst; DROP FUNCTION fail_twice; DROP SEQUENCE failures");
    wipe();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_LOOP(a_wrong_password_or_none_is_permanent),
        ON_A_LOOP(a_server_that_says_nothing_is_given_up),
        ON_A_LOOP(a_lookup_that_takes_too_long_is_given_up),
        ON_A_LOOP(the_next_address_is_tried_when_one_is_refused),
        ON_A_LOOP(without_connections_for_all_it_writes_with_the_first),
        ON_A_LOOP(connections_by_tls_check_the_server),
        ON_A_LOOP(a_lock_is_waited_for_no_longer_than_a_call_may_take),
        ON_A_LOOP(notifications_of_strangers_harm_nobody),
        ON_A_LOOP(answers_of_another_shape_are_named),
        ON_A_LOOP(claims_whose_answer_was_lost_are_given_back_though_that_fails_at_first),
    };
    return RUN_ON_POSTGRES(tests);
}
