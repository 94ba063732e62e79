/* TLS: with whom one speaks, and the files that say so. */
#include <pthread.h>

#include "tests/http/tls_ends.h"

/* ---- whom one trusts ----------------------------------------------------------------------------------- */

static void a_name_or_an_address_of_the_certificate_is_right(void **state) {
    static const char *const hosts[] = {"localhost", "LOCALHOST",       "localhost.", "127.0.0.1",
                                        "::1",       "www.example.org", "0:0::1"};
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        end client = client_with(hosts[i], NULL, "ca.pem"), server = server_with("leaf", NULL);
        shake(&client, &server, 1000);
        assert_ready(&client, &server);
        end_free(&client);
        end_free(&server);
    }
}

/* Names only: RFC 6066 has no addresses. */
static void a_server_hears_the_name_that_is_wanted(void **state) {
    static const struct {
        const char *host, *heard;
    } names[] = {{"localhost", "localhost"},
                 {"www.example.org.", "www.example.org"},
                 {"127.0.0.1", NULL},
                 {"::1", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        end client = client_with(names[i].host, NULL, "ca.pem"), server = raw_over(raw_context(true), true);
        carry(&client, &server, 1000);
        const char *heard = SSL_get_servername(server.raw, TLSEXT_NAMETYPE_host_name);
        if (names[i].heard == NULL) assert_null(heard);
        else assert_string_equal(heard, names[i].heard);
        end_free(&client);
        end_free(&server);
    }
}

static const struct {
    const char *host, *cert, *ca, *client, *server;
} STRANGERS[] = {
    {"example.org", "leaf", "ca.pem", "example.org: hostname mismatch", "bad certificate"},
    {"a.b.example.org", "leaf", "ca.pem", "a.b.example.org: hostname mismatch", "bad certificate"},
    {"localhost.example.com", "leaf", "ca.pem", "hostname mismatch", "bad certificate"},
    {"127.0.0.2", "leaf", "ca.pem", "127.0.0.2: IP address mismatch", "bad certificate"},
    {"::2", "leaf", "ca.pem", "::2: IP address mismatch", "bad certificate"},
    {"localhost", "localhost", "ca.pem", "localhost: hostname mismatch", "bad certificate"},
    {"localhost", "expired", "ca.pem", "localhost: certificate has expired", "certificate expired"},
    {"localhost", "early", "ca.pem", "localhost: certificate is not yet valid", "bad certificate"},
    {"localhost", "foreign", "ca.pem", "localhost: unable to get local issuer certificate", "unknown ca"},
    {"localhost", "leaf", "other-ca.pem", "localhost: unable to get local issuer certificate", "unknown ca"},
    {"localhost", "leaf", NULL, "localhost: unable to get local issuer certificate", "unknown ca"},
};

static void a_client_does_not_speak_with_strangers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof STRANGERS / sizeof *STRANGERS; i++) {
        end client = client_with(STRANGERS[i].host, NULL, STRANGERS[i].ca);
        end server = server_with(STRANGERS[i].cert, NULL);
        shake(&client, &server, 1000);
        assert_failed(&client, STRANGERS[i].client);
        assert_false(ebb__tls_is_ready(client.tls));
        assert_failed(&server, STRANGERS[i].server); /* the last alert went out */
        end_free(&client);
        end_free(&server);
    }
}

static void a_client_needs_a_host(void **state) {
    char host[300];
    (void)state;
    ebb__tls_ctx *c = context(false, NULL, "ca.pem");
    memset(host, 'a', sizeof host);
    host[256] = 0;
    assert_null(ebb__tls_new(c, NULL));
    assert_null(ebb__tls_new(c, ""));
    assert_null(ebb__tls_new(c, host));
    host[255] = 0;
    ebb__tls *t = ebb__tls_new(c, host);
    assert_non_null(t);
    ebb__tls_free(t);
    ebb__tls_ctx_free(c);
}

static const struct {
    const char *cert;
    bool trusted;
    const char *server, *client;
} CLIENTS[] = {
    {"someone", true, "", ""},
    {NULL, false, "the client: peer did not return a certificate",
     "localhost: tlsv13 alert certificate required"},
    {"foreign", false, "the client: unable to get local issuer certificate",
     "localhost: tlsv1 alert unknown ca"},
    {"expired", false, "the client: certificate has expired", "localhost: sslv3 alert certificate expired"},
};

static void a_server_may_want_certificates_of_its_clients(void **state) {
    char text[16];
    (void)state;
    for (size_t i = 0; i < sizeof CLIENTS / sizeof *CLIENTS; i++) {
        end client = client_with("localhost", CLIENTS[i].cert, "ca.pem"),
            server = server_with("leaf", "ca.pem");
        shake(&client, &server, 1000);
        ebb_status st = read_text(&client, text, sizeof text);
        if (CLIENTS[i].trusted) {
            assert_ready(&client, &server);
            assert_int_equal(st, EBB_OK);
        } else {
            assert_failed(&server, CLIENTS[i].server);
            assert_int_equal(st, EBB_ERR_TLS); /* its own half of the handshake was over before */
            assert_string_equal(ebb_http_error(), CLIENTS[i].client);
        }
        end_free(&client);
        end_free(&server);
    }
}

/* Or a client with several certificates could not know which to send. */
static void a_server_says_whose_certificates_it_trusts(void **state) {
    (void)state;
    end client = raw_over(raw_context(false), false), server = server_with("leaf", "ca.pem");
    shake(&client, &server, 1000);
    const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(client.raw);
    char text[64];
    assert_int_equal(sk_X509_NAME_num(names), 1);
    X509_NAME_oneline(sk_X509_NAME_value(names, 0), text, sizeof text);
    assert_string_equal(text, "/CN=a CA");
    end_free(&client);
    end_free(&server);
}

/* A ticket is good for another connection of the same server, one that wants certificates too. */
static void sessions_are_resumed(void **state) {
    char byte;
    (void)state;
    ebb__tls_ctx *c = context(true, "leaf", "ca.pem");
    SSL_SESSION *session = NULL;
    for (int i = 0; i < 2; i++) {
        SSL_CTX *raw = raw_context(false);
        assert_int_equal(SSL_CTX_use_certificate_chain_file(raw, file("someone.pem")), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(raw, file("someone.key"), SSL_FILETYPE_PEM), 1);
        end client = raw_over(raw, false), server = {.tls = ebb__tls_new(c, NULL)};
        if (i > 0) assert_int_equal(SSL_set_session(client.raw, session), 1);
        shake(&client, &server, 1000);
        assert_ready(&client, &server);
        assert_int_equal(SSL_session_reused(client.raw), i);
        assert_int_equal(SSL_read(client.raw, &byte, 1), -1); /* takes the tickets */
        SSL_SESSION_free(session);
        session = SSL_get1_session(client.raw);
        SSL_set_quiet_shutdown(client.raw, 1); /* or the session is not good any more */
        assert_int_equal(SSL_shutdown(client.raw), 1);
        end_free(&client);
        end_free(&server);
    }
    SSL_SESSION_free(session);
    ebb__tls_ctx_free(c);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static const struct {
    bool server;
    const char *cert, *key, *ca;
    const char *named, *why; /* the file that is to be named, and what is wrong with it */
} FILES[] = {
    {true, NULL, NULL, NULL, NULL, "TLS: a server needs cert_file and key_file"},
    {true, "missing.pem", "leaf.key", NULL, "missing.pem", ": No such file or directory"},
    {true, "leaf.pem", "missing.key", NULL, "missing.key", ": No such file or directory"},
    {true, "leaf.pem", "leaf.key", "missing.pem", "missing.pem", ": No such file or directory"},
    {true, "leaf.pem", "foreign.key", NULL, "foreign.key", ": key values mismatch"},
    {true, "garbage.pem", "leaf.key", NULL, "garbage.pem", ": "},
    {true, "empty.pem", "leaf.key", NULL, "empty.pem", ": no start line"},
    {true, "leaf.pem", "garbage.pem", NULL, "garbage.pem", ": "},
    {true, "leaf.pem", "leaf.pem", NULL, "leaf.pem", ": "},
    {true, "leaf.pem", "leaf.key", "garbage.pem", "garbage.pem", ": "},
    {true, "leaf.pem", "leaf.key", "empty.pem", "empty.pem", ": "},
    {true, "leaf.pem", "leaf.key", "leaf.key", "leaf.key", ": "},
    {true, "secret.pem", "secret.key", NULL, "secret.key", ": "},
    {true, "leaf.pem", NULL, NULL, "leaf.pem", ": a certificate without a key_file"},
    {true, NULL, "leaf.key", NULL, "leaf.key", ": a key without a cert_file"},
    {true, "", "leaf.key", NULL, "", ": "}, /* the directory */
    {false, NULL, NULL, "missing.pem", "missing.pem", ": No such file or directory"},
    {false, "leaf.pem", "foreign.key", NULL, "foreign.key", ": key values mismatch"},
    {false, "leaf.pem", NULL, NULL, "leaf.pem", ": a certificate without a key_file"},
};

static const char *file_or_null(const char *name) {
    return name != NULL ? file(name) : NULL;
}

static void each_wrong_file_is_named_with_what_is_wrong(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        ebb_tls_opts o = {.cert_file = file_or_null(FILES[i].cert),
                          .key_file = file_or_null(FILES[i].key),
                          .ca_file = file_or_null(FILES[i].ca)};
        ebb_failing memory = {.inner = libc_allocator()};
        ebb__tls_ctx *c = (ebb__tls_ctx *)&o;
        char text[512];
        assert_int_equal(ebb__tls_ctx_new(ebb_failing_allocator(&memory), &o, FILES[i].server, &c),
                         EBB_ERR_TLS);
        assert_null(c);
        assert_int_equal(memory.live, 0);
        snprintf(text, sizeof text, "%s%s", FILES[i].named != NULL ? file(FILES[i].named) : "", FILES[i].why);
        if (strncmp(ebb_http_error(), text, strlen(text)) != 0)
            fail_msg("%zu: '%s' does not begin with '%s'", i, ebb_http_error(), text);
        assert_true(strlen(ebb_http_error()) > strlen(text) || FILES[i].why[2] != 0);
    }
}

/* The password stands ready, for an OpenSSL that would ask for it. */
static void a_key_with_a_password_is_refused_without_asking(void **state) {
    ebb_tls_opts o = {.cert_file = file("secret.pem"), .key_file = file("secret.key")};
    ebb__tls_ctx *c;
    int fd[2], was = dup(0);
    (void)state;
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], "open sesame\n", 12), 12);
    assert_int_equal(dup2(fd[0], 0), 0);
    clearerr(stdin);
    close(fd[0]);
    close(fd[1]);
    ebb_status st = ebb__tls_ctx_new(libc_allocator(), &o, true, &c);
    assert_int_equal(dup2(was, 0), 0);
    close(was);
    assert_int_equal(st, EBB_ERR_TLS);
    assert_non_null(strstr(ebb_http_error(), "secret.key: "));
}

static void a_name_of_any_length_is_told_as_far_as_there_is_room(void **state) {
    static char name[5000];
    ebb_tls_opts o = {.ca_file = name};
    ebb__tls_ctx *c;
    (void)state;
    memset(name, 'a', sizeof name - 1);
    assert_int_equal(ebb__tls_ctx_new(libc_allocator(), &o, false, &c), EBB_ERR_TLS);
    assert_in_range(strlen(ebb_http_error()), 500, 2000);
    assert_non_null(strstr(ebb_http_error(), "aaa..."));
}

static void options_of_another_version_are_refused(void **state) {
    ebb_tls_opts o = {.size = sizeof o - 1};
    ebb__tls_ctx *c;
    (void)state;
    assert_int_equal(ebb__tls_ctx_new(libc_allocator(), &o, false, &c), EBB_ERR_VERSION);
    o.size = sizeof o;
    assert_int_equal(ebb__tls_ctx_new(libc_allocator(), &o, false, &c), EBB_OK);
    ebb__tls_ctx_free(c);
}

static void *error_of_another_thread(void *out) {
    return strcpy(out, ebb_http_error());
}

static void each_thread_has_its_own_error(void **state) {
    ebb_tls_opts o = {0};
    ebb__tls_ctx *c;
    pthread_t thread;
    char text[1024] = "x";
    (void)state;
    assert_int_equal(ebb__tls_ctx_new(libc_allocator(), &o, true, &c), EBB_ERR_TLS);
    assert_int_equal(pthread_create(&thread, NULL, error_of_another_thread, text), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(text, "");
    assert_string_not_equal(ebb_http_error(), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_or_an_address_of_the_certificate_is_right),
        cmocka_unit_test(a_server_hears_the_name_that_is_wanted),
        cmocka_unit_test(a_client_does_not_speak_with_strangers),
        cmocka_unit_test(a_client_needs_a_host),
        cmocka_unit_test(a_server_may_want_certificates_of_its_clients),
        cmocka_unit_test(a_server_says_whose_certificates_it_trusts),
        cmocka_unit_test(sessions_are_resumed),
        cmocka_unit_test(each_wrong_file_is_named_with_what_is_wrong),
        cmocka_unit_test(a_key_with_a_password_is_refused_without_asking),
        cmocka_unit_test(a_name_of_any_length_is_told_as_far_as_there_is_room),
        cmocka_unit_test(options_of_another_version_are_refused),
        cmocka_unit_test(each_thread_has_its_own_error),
    };
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
