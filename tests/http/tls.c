/* TLS: handshakes, bytes, and what is neither. OpenSSL's memory is counted, and fails on demand. */
#include "tests/http/tls_ends.h"

enum { TOTAL = 1 << 20 };

/* ---- OpenSSL's memory ---------------------------------------------------------------------------------- */

/* Each block has its size in front of it. */
enum { HEAD = 16 };
static struct {
    int64_t bytes;
    uint64_t calls, fail_at;
} openssl_memory;

static bool refused(void) {
    return ++openssl_memory.calls == openssl_memory.fail_at;
}

static void *counted_realloc(void *p, size_t n, const char *file, int line) {
    (void)file;
    (void)line;
    char *block = p != NULL ? (char *)p - HEAD : NULL;
    size_t old = 0;
    if (block != NULL) memcpy(&old, block, sizeof old);
    if (n == 0) free(block);
    else if (refused()) return NULL;
    else block = realloc(block, n + HEAD);
    openssl_memory.bytes += (int64_t)n - (int64_t)old;
    if (n == 0) return NULL;
    memcpy(block, &n, sizeof n);
    return block + HEAD;
}

static void *counted_malloc(size_t n, const char *file, int line) {
    return n > 0 ? counted_realloc(NULL, n, file, line) : NULL;
}

static void counted_free(void *p, const char *file, int line) {
    if (p != NULL) (void)counted_realloc(p, 0, file, line);
}

/* ---- handshakes ---------------------------------------------------------------------------------------- */

static void ours_meet_and_choose_h2_however_the_bytes_come(void **state) {
    static const size_t pieces[] = {1, 2, 7, 100, 1460, 65536};
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        end client = client_with("localhost", NULL, "ca.pem"), server = server_with("leaf", NULL);
        assert_false(ebb__tls_is_ready(client.tls));
        shake(&client, &server, pieces[i]);
        assert_ready(&client, &server);
        assert_true(ebb__tls_is_h2(client.tls) && ebb__tls_is_h2(server.tls));
        end_free(&client);
        end_free(&server);
    }
}

static const unsigned char ONLY_HTTP1[] = "\x08http/1.1", BOTH[] = "\x08http/1.1\x02h2",
                           NEITHER[] = "\x06spdy/3";

static end raw_client(const unsigned char *protocols, size_t n) {
    SSL_CTX *c = raw_context(false);
    if (n > 0) assert_int_equal(SSL_CTX_set_alpn_protos(c, protocols, (unsigned)n), 0);
    return raw_over(c, false);
}

static void expect_chosen(end client, bool h2, const char *name) {
    end server = server_with("leaf", NULL);
    const unsigned char *chosen;
    unsigned n;
    shake(&client, &server, 1000);
    assert_ready(&client, &server);
    assert_true(ebb__tls_is_h2(server.tls) == h2);
    SSL_get0_alpn_selected(client.raw, &chosen, &n);
    assert_int_equal(n, strlen(name));
    assert_memory_equal(chosen, name, n);
    assert_int_equal(SSL_version(client.raw), TLS1_3_VERSION);
    end_free(&client);
    end_free(&server);
}

static void the_server_chooses_among_what_the_client_speaks(void **state) {
    (void)state;
    expect_chosen(raw_client(ONLY_HTTP1, sizeof ONLY_HTTP1 - 1), false, "http/1.1");
    expect_chosen(raw_client(BOTH, sizeof BOTH - 1), true, "h2"); /* though it stands last */
    expect_chosen(raw_client(NULL, 0), false, "");
}

static void a_client_that_speaks_neither_is_told_so(void **state) {
    (void)state;
    end client = raw_client(NEITHER, sizeof NEITHER - 1), server = server_with("leaf", NULL);
    shake(&client, &server, 1000);
    assert_failed(&server, "the client: no application protocol");
    assert_failed(&client, "no application protocol");
    end_free(&client);
    end_free(&server);
}

static void a_server_without_alpn_is_not_h2(void **state) {
    (void)state;
    end client = client_with("localhost", NULL, "ca.pem"), server = raw_over(raw_context(true), true);
    shake(&client, &server, 1000);
    assert_ready(&client, &server);
    assert_false(ebb__tls_is_h2(client.tls));
    end_free(&client);
    end_free(&server);
}

static end raw_client_up_to(int version, const char *ciphers) {
    SSL_CTX *c = raw_context(false);
    SSL_CTX_set_min_proto_version(c, TLS1_VERSION);
    assert_int_equal(SSL_CTX_set_max_proto_version(c, version), 1);
    assert_int_equal(SSL_CTX_set_cipher_list(c, ciphers), 1);
    return raw_over(c, false);
}

static void tls_1_2_is_the_least_and_only_with_ciphers_that_http2_allows(void **state) {
    (void)state;
    end client = raw_client_up_to(TLS1_2_VERSION, "DEFAULT"), server = server_with("leaf", NULL);
    shake(&client, &server, 1000);
    assert_ready(&client, &server);
    assert_int_equal(SSL_version(client.raw), TLS1_2_VERSION);
    end_free(&client);
    end_free(&server);
    client = raw_client_up_to(TLS1_1_VERSION, "ALL:@SECLEVEL=0"), server = server_with("leaf", NULL);
    shake(&client, &server, 1000);
    assert_failed(&server, "the client: unsupported protocol");
    end_free(&client);
    end_free(&server);
    client = raw_client_up_to(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA256"),
    server = server_with("leaf", NULL);
    shake(&client, &server, 1000);
    assert_failed(&server, "the client: no shared cipher");
    end_free(&client);
    end_free(&server);
}

static void renegotiation_is_refused(void **state) {
    char text[64];
    (void)state;
    end client = raw_client_up_to(TLS1_2_VERSION, "DEFAULT"), server = server_with("leaf", NULL);
    shake(&client, &server, 1000);
    assert_int_equal(SSL_renegotiate(client.raw), 1);
    assert_int_equal(SSL_do_handshake(client.raw), -1);
    assert_true(carry(&client, &server, 1000) > 0);
    assert_int_equal(read_text(&server, text, sizeof text), EBB_OK);
    carry(&server, &client, 1000);
    assert_failed(&client, "no renegotiation");
    end_free(&client);
    end_free(&server);
}

/* It asks, is told no, and goes on. */
static void a_server_can_not_renegotiate_with_us_either(void **state) {
    char text[64];
    (void)state;
    SSL_CTX *c = raw_context(true);
    SSL_CTX_set_max_proto_version(c, TLS1_2_VERSION);
    end client = client_with("localhost", NULL, "ca.pem"), server = raw_over(c, true);
    shake(&client, &server, 1000);
    assert_ready(&client, &server);
    assert_int_equal(SSL_renegotiate(server.raw), 1);
    assert_int_equal(SSL_do_handshake(server.raw), 1);
    assert_true(carry(&server, &client, 1000) > 0);
    assert_int_equal(read_text(&client, text, sizeof text), EBB_OK);
    size_t n = take(&client, text, sizeof text);
    assert_true(n > 0 && text[0] == 21); /* a record that is an alert, not a hello */
    end_free(&client);
    end_free(&server);
}

static void keys_may_be_renewed(void **state) {
    char text[64];
    (void)state;
    end client = raw_client(NULL, 0), server = server_with("leaf", NULL);
    shake(&client, &server, 1000);
    assert_int_equal(SSL_key_update(client.raw, SSL_KEY_UPDATE_REQUESTED), 1);
    assert_int_equal(SSL_write(client.raw, "with new keys", 13), 13);
    carry(&client, &server, 1000);
    assert_int_equal(read_text(&server, text, sizeof text), EBB_OK);
    assert_string_equal(text, "with new keys");
    assert_int_equal(ebb__tls_write(server.tls, "and back", 8), EBB_OK);
    carry(&server, &client, 1000);
    assert_int_equal(SSL_read(client.raw, text, sizeof text), 8);
    end_free(&client);
    end_free(&server);
}

/* ---- bytes --------------------------------------------------------------------------------------------- */

static char byte_at(size_t i, bool of_client) {
    return (char)(i * 7 + i / 251 + i / 65521 + of_client);
}

typedef struct flow {
    end *from, *to;
    bool of_client;
    size_t written, seen, turn;
} flow;

/* The next piece, of each size class in turn. */
static void flow_write(flow *f) {
    static const size_t sizes[] = {1, 2, 15, 16, 17, 255, 256, 1000, 4096, 16383, 16384, 16385, 40000, 65536};
    static char buffer[65536];
    size_t n = sizes[f->turn++ % (sizeof sizes / sizeof *sizes)];
    if (n > TOTAL - f->written) n = TOTAL - f->written;
    for (size_t i = 0; i < n; i++) buffer[i] = byte_at(f->written + i, f->of_client);
    assert_int_equal(ebb__tls_write(f->from->tls, buffer, n), EBB_OK);
    f->written += n;
    assert_true((ebb__tls_pending(f->from->tls) > n) == (n > 0));
}

static void flow_read(flow *f) {
    static char buffer[20000];
    size_t n;
    do {
        size_t room = 1 + f->seen % sizeof buffer;
        assert_int_equal(ebb__tls_read(f->to->tls, buffer, room, &n), EBB_OK);
        for (size_t i = 0; i < n; i++) assert_int_equal(buffer[i], byte_at(f->seen + i, f->of_client));
        f->seen += n;
    } while (n > 0);
}

static void flow_carry(flow *f, size_t piece) {
    static char buffer[1 << 16];
    for (size_t n; (n = take(f->from, buffer, piece)) > 0;) {
        give(f->to, buffer, n);
        flow_read(f);
    }
    assert_int_equal(ebb__tls_pending(f->from->tls), 0);
}

static void bytes_come_as_they_went_in_any_pieces(void **state) {
    static const size_t pieces[] = {1, 5, 22, 1460, 16384, 65536};
    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        end client = client_with("localhost", NULL, "ca.pem"), server = server_with("leaf", NULL);
        shake(&client, &server, 65536);
        flow there = {&client, &server, true, 0, 0, 0}, back = {&server, &client, false, 0, 0, i};
        while (there.written < TOTAL || back.written < TOTAL) {
            flow_write(&there);
            flow_write(&back);
            flow_carry(&there, pieces[i]);
            flow_carry(&back, pieces[i]);
        }
        assert_int_equal(there.seen, TOTAL);
        assert_int_equal(back.seen, TOTAL);
        end_free(&client);
        end_free(&server);
    }
}

static void one_write_may_be_large(void **state) {
    (void)state;
    end client = client_with("localhost", NULL, "ca.pem"), server = server_with("leaf", NULL);
    char *buffer = malloc(TOTAL);
    shake(&client, &server, 1000);
    for (size_t i = 0; i < TOTAL; i++) buffer[i] = byte_at(i, true);
    assert_int_equal(ebb__tls_write(client.tls, buffer, TOTAL), EBB_OK);
    flow there = {&client, &server, true, TOTAL, 0, 0};
    flow_carry(&there, 65536);
    assert_int_equal(there.seen, TOTAL);
    free(buffer);
    end_free(&client);
    end_free(&server);
}

static void nothing_is_written_before_the_handshake_is_over(void **state) {
    char text[8];
    (void)state;
    end client = client_with("localhost", NULL, "ca.pem"), server = server_with("leaf", NULL);
    assert_int_equal(ebb__tls_write(client.tls, "x", 1), EBB_ERR_INVALID);
    assert_int_equal(ebb__tls_write(server.tls, "x", 1), EBB_ERR_INVALID);
    assert_int_equal(read_text(&client, text, sizeof text), EBB_OK);
    assert_string_equal(text, "");
    ebb__tls_close(server.tls);
    assert_int_equal(ebb__tls_pending(server.tls), 0);
    shake(&client, &server, 1000);
    assert_ready(&client, &server);
    assert_int_equal(ebb__tls_write(client.tls, NULL, 0), EBB_OK);
    assert_int_equal(ebb__tls_pending(client.tls), 0);
    end_free(&client);
    end_free(&server);
    ebb__tls_free(NULL);
    ebb__tls_ctx_free(NULL);
}

static void a_close_ends_one_direction_after_what_was_written(void **state) {
    char text[16];
    (void)state;
    end client = client_with("localhost", NULL, "ca.pem"), server = server_with("leaf", NULL);
    shake(&client, &server, 1000);
    assert_int_equal(ebb__tls_write(client.tls, "the last", 8), EBB_OK);
    ebb__tls_close(client.tls);
    carry(&client, &server, 1000);
    assert_int_equal(read_text(&server, text, sizeof text), EBB_ERR_EOF);
    assert_string_equal(text, "the last");
    assert_int_equal(read_text(&server, text, sizeof text), EBB_ERR_EOF);
    assert_int_equal(ebb__tls_write(server.tls, "answer", 6), EBB_OK);
    ebb__tls_close(server.tls);
    carry(&server, &client, 1000);
    assert_int_equal(read_text(&client, text, sizeof text), EBB_ERR_EOF);
    assert_string_equal(text, "answer");
    assert_int_equal(ebb__tls_write(client.tls, "x", 1), EBB_ERR_TLS);
    assert_string_equal(ebb_http_error(), "localhost: protocol is shutdown");
    end_free(&client);
    end_free(&server);
}

/* The size of the record that the bytes begin with. */
static size_t record_size(const char *at) {
    return 5 + ((size_t)(unsigned char)at[3] << 8 | (unsigned char)at[4]);
}

/* A server with small records, and tickets that do not fit into one: they hold the client's certificate. */
static end raw_server_of_small_records(void) {
    SSL_CTX *c = raw_context(true);
    SSL_CTX_set_max_send_fragment(c, 512);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    assert_int_equal(SSL_CTX_load_verify_file(c, file("ca.pem")), 1);
    assert_int_equal(SSL_CTX_set_session_id_context(c, (const unsigned char *)"x", 1), 1);
    return raw_over(c, true);
}

/* Both are ready; the client has read a part of a ticket, and written `text`. `tickets` is all of them. */
static size_t write_amid_a_ticket(end *client, end *server, char *tickets, size_t room, const char *text) {
    char into[16];
    while (!SSL_is_init_finished(server->raw)) {
        carry(client, server, 1000);
        if (!SSL_is_init_finished(server->raw)) carry(server, client, 1000);
    }
    size_t n = take(server, tickets, room);
    assert_true(n > record_size(tickets));
    give(client, tickets, record_size(tickets));
    assert_int_equal(read_text(client, into, sizeof into), EBB_OK);
    assert_int_equal(ebb__tls_write(client->tls, text, strlen(text)), EBB_OK);
    return n;
}

/* The read that takes the rest of the ticket may have something else to tell, or not. */
static void expect_to_wait_for_a_ticket(const char *data) {
    char tickets[4096], text[32];
    size_t got, data_n = strlen(data);
    end client = client_with("localhost", "someone", "ca.pem"), server = raw_server_of_small_records();
    size_t n = write_amid_a_ticket(&client, &server, tickets, sizeof tickets, "hello, ");
    size_t first = record_size(tickets);
    assert_int_equal(ebb__tls_write(client.tls, "world", 5), EBB_OK);
    assert_int_equal(read_text(&client, text, sizeof text), EBB_OK);
    assert_int_equal(ebb__tls_pending(client.tls), 12);
    assert_false(ebb__tls_is_ready(client.tls));
    assert_int_equal(carry(&client, &server, 1000), 0);
    give(&client, tickets + first, n - first);
    assert_int_equal(ebb__tls_write(client.tls, "!", 1), EBB_OK); /* may not overtake the others */
    if (data_n > 0) assert_int_equal(SSL_write(server.raw, data, (int)data_n), data_n);
    carry(&server, &client, 1000);
    assert_int_equal(ebb__tls_read(client.tls, text, sizeof text, &got), EBB_OK);
    assert_int_equal(got, data_n);
    assert_true(ebb__tls_is_ready(client.tls));
    carry(&client, &server, 1000);
    assert_int_equal(ebb__tls_pending(client.tls), 0);
    assert_int_equal(SSL_read(server.raw, text, sizeof text), 13);
    assert_memory_equal(text, "hello, world!", 13);
    end_free(&client);
    end_free(&server);
}

static void what_is_written_amid_a_ticket_waits_for_its_rest(void **state) {
    (void)state;
    expect_to_wait_for_a_ticket("");
    expect_to_wait_for_a_ticket("data");
}

/* What OpenSSL has, but for what it keeps for the thread: errors, and random numbers. */
static int64_t lasting_bytes(void) {
    OPENSSL_thread_stop();
    return openssl_memory.bytes;
}

static void what_waits_for_a_ticket_goes_with_its_connection(void **state) {
    char tickets[4096], text[16];
    int64_t lasting = lasting_bytes();
    (void)state;
    end client = client_with("localhost", "someone", "ca.pem"), server = raw_server_of_small_records();
    size_t n = write_amid_a_ticket(&client, &server, tickets, sizeof tickets, "hello");
    size_t first = record_size(tickets);
    tickets[first + 20] = (char)(tickets[first + 20] ^ 1);
    give(&client, tickets + first, n - first);
    assert_int_equal(read_text(&client, text, sizeof text), EBB_ERR_TLS);
    assert_int_equal(ebb__tls_write(client.tls, "hello", 5), EBB_ERR_TLS);
    end_free(&client);
    end_free(&server);
    assert_int_equal(lasting_bytes(), lasting);
}

/* ---- what is not TLS ----------------------------------------------------------------------------------- */

#define BYTES(text) (text), sizeof(text) - 1

static void what_is_not_tls_is_named_and_the_error_is_final(void **state) {
    static const struct {
        bool server;
        const char *bytes;
        size_t n;
        const char *text;
    } garbage[] = {
        {true, BYTES("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"), "the client: http request"},
        {true, BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "the client: wrong version number"},
        {true, BYTES("\x16\x03\x01\xff\xff rubbish"), "the client: packet length too long"},
        {true, BYTES("\x16\x03\x01\x00\x04\x01\x00\x00\x00"), "the client: length too short"},
        {false, BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"), "localhost: wrong version number"},
        {false, BYTES("\x17\x03\x03\x00\x05hello"), "localhost: "},
        {false, BYTES("\x15\x03\x03\x00\x02\x02\x28"), "localhost: sslv3 alert handshake failure"},
    };
    size_t n;
    char byte;
    (void)state;
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        end e = garbage[i].server ? server_with("leaf", NULL) : client_with("localhost", NULL, "ca.pem");
        give(&e, garbage[i].bytes, garbage[i].n);
        assert_failed(&e, garbage[i].text);
        assert_int_equal(ebb__tls_input(e.tls, "x", 1), EBB_ERR_TLS);
        assert_int_equal(ebb__tls_start(e.tls), EBB_ERR_TLS);
        assert_int_equal(ebb__tls_read(e.tls, &byte, 1, &n), EBB_ERR_TLS);
        assert_int_equal(ebb__tls_write(e.tls, "x", 1), EBB_ERR_TLS);
        ebb__tls_close(e.tls);
        assert_false(ebb__tls_is_ready(e.tls) || ebb__tls_is_h2(e.tls));
        end_free(&e);
    }
}

static void a_peer_that_closes_in_the_handshake_has_failed_it(void **state) {
    static const char close_notify[] = "\x15\x03\x01\x00\x02\x01";
    (void)state;
    end server = server_with("leaf", NULL);
    give(&server, close_notify, sizeof close_notify);
    assert_failed(&server, "the client: ");
    end_free(&server);
    end client = client_with("localhost", NULL, "ca.pem");
    give(&client, close_notify, sizeof close_notify);
    assert_failed(&client, "localhost: ");
    end_free(&client);
}

/* Every byte of the client's first message is wrong once. */
static void a_wrong_byte_in_a_hello_is_refused_or_goes_on(void **state) {
    char hello[2048];
    size_t refused_n = 0;
    (void)state;
    end client = client_with("localhost", NULL, "ca.pem");
    size_t n = take(&client, hello, sizeof hello);
    ebb__tls_ctx *c = context(true, "leaf", NULL);
    assert_in_range(n, 100, sizeof hello - 1);
    for (size_t i = 0; i < n; i++) {
        end server = {.tls = ebb__tls_new(c, NULL)};
        hello[i] = (char)(hello[i] ^ 0x41);
        give(&server, hello, n);
        hello[i] = (char)(hello[i] ^ 0x41);
        if (server.st != EBB_OK) assert_failed(&server, "the client: ");
        refused_n += server.st != EBB_OK;
        end_free(&server);
    }
    assert_in_range(refused_n, 20, n - 20);
    ebb__tls_ctx_free(c);
    end_free(&client);
}

static void a_record_that_is_cut_waits_for_its_rest(void **state) {
    char record[64], text[16];
    (void)state;
    end client = client_with("localhost", NULL, "ca.pem"), server = server_with("leaf", NULL);
    shake(&client, &server, 1000);
    assert_int_equal(ebb__tls_write(client.tls, "whole", 5), EBB_OK);
    size_t n = take(&client, record, sizeof record);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(read_text(&server, text, sizeof text), EBB_OK);
        assert_string_equal(text, "");
        give(&server, record + i, 1);
    }
    assert_int_equal(read_text(&server, text, sizeof text), EBB_OK);
    assert_string_equal(text, "whole");
    end_free(&client);
    end_free(&server);
}

/* Nothing of a record comes through that was changed anywhere, and the peer is told. */
static void a_record_that_was_changed_ends_the_connection(void **state) {
    char record[64], text[16];
    (void)state;
    for (size_t i = 0, n = 1; i < n; i++) {
        end client = client_with("localhost", NULL, "ca.pem"), server = server_with("leaf", NULL);
        shake(&client, &server, 1000);
        assert_int_equal(read_text(&client, text, sizeof text), EBB_OK);
        assert_int_equal(ebb__tls_write(client.tls, "whole", 5), EBB_OK);
        n = take(&client, record, sizeof record);
        record[i] = (char)(record[i] ^ 1);
        give(&server, record, n);
        ebb_status st = read_text(&server, text, sizeof text);
        assert_string_equal(text, "");
        if (i != 3 && i != 4) { /* those are its length */
            assert_int_equal(st, EBB_ERR_TLS);
            assert_memory_equal(ebb_http_error(), "the client: ", 12);
            assert_true(ebb__tls_pending(server.tls) > 0);
            carry(&server, &client, 1000);
            assert_int_equal(read_text(&client, text, sizeof text), EBB_ERR_TLS);
        }
        end_free(&client);
        end_free(&server);
    }
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void our_records_are_refused_without_memory_and_freed(void **state) {
    ebb_tls_opts o = {.cert_file = file("leaf.pem"), .key_file = file("leaf.key")};
    ebb_failing memory = {.inner = libc_allocator(), .fail_at = 1};
    ebb__tls_ctx *c;
    (void)state;
    ebb_allocator a = ebb_failing_allocator(&memory);
    assert_int_equal(ebb__tls_ctx_new(a, &o, true, &c), EBB_ERR_NOMEM);
    assert_null(c);
    assert_int_equal(ebb__tls_ctx_new(a, &o, true, &c), EBB_OK);
    memory.fail_at = memory.calls + 1;
    assert_null(ebb__tls_new(c, NULL));
    ebb__tls *t = ebb__tls_new(c, NULL);
    assert_non_null(t);
    ebb__tls_ctx_free(c);
    assert_int_equal(memory.live, 1);
    ebb__tls_free(t);
    assert_int_equal(memory.live, 0);
    assert_int_equal(memory.live_bytes, 0);
}

/* 15 KB of OpenSSL for a server's, 19 KB for a client's; twice as much would mean that it keeps its
 * buffers. */
static void an_idle_connection_is_small(void **state) {
    (void)state;
    ebb__tls_ctx *of_client = context(false, NULL, "ca.pem"), *of_server = context(true, "leaf", NULL);
    int64_t before = openssl_memory.bytes;
    end client = {.tls = ebb__tls_new(of_client, "localhost")},
        server = {.tls = ebb__tls_new(of_server, NULL)};
    assert_int_equal(ebb__tls_start(client.tls), EBB_OK);
    shake(&client, &server, 16384);
    assert_ready(&client, &server);
    int64_t both = openssl_memory.bytes;
    assert_true(both - before < 50000);
    end_free(&client);
    assert_true(openssl_memory.bytes - before < 25000);
    end_free(&server);
    ebb__tls_ctx_free(of_client);
    ebb__tls_ctx_free(of_server);
}

static void a_burst_does_not_stay_with_an_idle_connection(void **state) {
    (void)state;
    end client = client_with("localhost", NULL, "ca.pem"), server = server_with("leaf", NULL);
    char *buffer = calloc(1, TOTAL);
    shake(&client, &server, 16384);
    int64_t idle = openssl_memory.bytes;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ebb__tls_write(server.tls, buffer, TOTAL), EBB_OK);
        assert_true(openssl_memory.bytes > idle + TOTAL);
        for (size_t n; (n = take(&server, buffer, 16384)) > 0;) give(&client, buffer, n);
        for (size_t n = 1; n > 0;) assert_int_equal(ebb__tls_read(client.tls, buffer, TOTAL, &n), EBB_OK);
    }
    end_free(&client);
    assert_true(openssl_memory.bytes < idle + 65536);
    end_free(&server);
    free(buffer);
}

/* One whole life of two connections: a handshake, a few bytes each way, and the end. What comes is right, or
 * nothing comes. The worse of the two statuses. */
static ebb_status live(ebb__tls_ctx *of_client, ebb__tls_ctx *of_server) {
    end client = {.tls = ebb__tls_new(of_client, "localhost")},
        server = {.tls = ebb__tls_new(of_server, NULL)};
    char there[16] = "", back[16] = "";
    bool begun = client.tls != NULL && server.tls != NULL;
    if (begun) client.st = ebb__tls_start(client.tls);
    if (begun && client.st == EBB_OK) {
        shake(&client, &server, 65536);
        if (client.st == EBB_OK) client.st = ebb__tls_write(client.tls, "hello", 5);
        carry(&client, &server, 65536);
        if (server.st == EBB_OK) server.st = read_text(&server, there, sizeof there);
        if (server.st == EBB_OK) server.st = ebb__tls_write(server.tls, "hello", 5);
        carry(&server, &client, 65536);
        if (client.st == EBB_OK) client.st = read_text(&client, back, sizeof back);
        ebb__tls_close(client.tls);
        assert_true(there[0] == 0 || strcmp(there, "hello") == 0);
        assert_true(back[0] == 0 || strcmp(back, "hello") == 0);
    }
    end_free(&client);
    end_free(&server);
    if (begun && client.st == EBB_OK && server.st == EBB_OK) assert_string_equal(back, "hello");
    return begun ? client.st != EBB_OK ? client.st : server.st : EBB_ERR_NOMEM;
}

/* The n-th allocation of OpenSSL fails, for each n. It goes without what it may go without, as a ticket. */
static void a_connection_without_memory_fails_and_leaves_nothing(void **state) {
    (void)state;
    ebb__tls_ctx *client = context(false, NULL, "ca.pem"), *server = context(true, "leaf", NULL);
    assert_int_equal(live(client, server), EBB_OK);
    uint64_t before = openssl_memory.calls, failed = 0;
    assert_int_equal(live(client, server), EBB_OK);
    uint64_t calls = openssl_memory.calls - before;
    for (uint64_t n = 1; n <= calls; n++) {
        int64_t lasting = lasting_bytes();
        openssl_memory.fail_at = openssl_memory.calls + n;
        ebb_status st = live(client, server);
        openssl_memory.fail_at = 0;
        failed += st != EBB_OK;
        assert_true(st == EBB_OK || st == EBB_ERR_NOMEM || st == EBB_ERR_TLS || st == EBB_ERR_INVALID);
        assert_int_equal(lasting_bytes(), lasting);
    }
    assert_in_range(failed, calls / 4, calls);
    ebb__tls_ctx_free(client);
    ebb__tls_ctx_free(server);
}

static void nothing_of_openssl_is_left_behind(void **state) {
    int64_t before = 0;
    (void)state;
    for (int i = 0; i < 10; i++) {
        ebb__tls_ctx *client = context(false, "someone", "ca.pem"), *server = context(true, "leaf", "ca.pem");
        assert_int_equal(live(client, server), EBB_OK);
        ebb__tls_ctx_free(client);
        ebb__tls_ctx_free(server);
        if (i == 0) before = openssl_memory.bytes; /* it keeps what it has looked up */
    }
    assert_int_equal(openssl_memory.bytes, before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ours_meet_and_choose_h2_however_the_bytes_come),
        cmocka_unit_test(the_server_chooses_among_what_the_client_speaks),
        cmocka_unit_test(a_client_that_speaks_neither_is_told_so),
        cmocka_unit_test(a_server_without_alpn_is_not_h2),
        cmocka_unit_test(tls_1_2_is_the_least_and_only_with_ciphers_that_http2_allows),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(a_server_can_not_renegotiate_with_us_either),
        cmocka_unit_test(keys_may_be_renewed),
        cmocka_unit_test(bytes_come_as_they_went_in_any_pieces),
        cmocka_unit_test(one_write_may_be_large),
        cmocka_unit_test(nothing_is_written_before_the_handshake_is_over),
        cmocka_unit_test(a_close_ends_one_direction_after_what_was_written),
        cmocka_unit_test(what_is_written_amid_a_ticket_waits_for_its_rest),
        cmocka_unit_test(what_waits_for_a_ticket_goes_with_its_connection),
        cmocka_unit_test(what_is_not_tls_is_named_and_the_error_is_final),
        cmocka_unit_test(a_peer_that_closes_in_the_handshake_has_failed_it),
        cmocka_unit_test(a_wrong_byte_in_a_hello_is_refused_or_goes_on),
        cmocka_unit_test(a_record_that_is_cut_waits_for_its_rest),
        cmocka_unit_test(a_record_that_was_changed_ends_the_connection),
        cmocka_unit_test(our_records_are_refused_without_memory_and_freed),
        cmocka_unit_test(an_idle_connection_is_small),
        cmocka_unit_test(a_burst_does_not_stay_with_an_idle_connection),
        cmocka_unit_test(a_connection_without_memory_fails_and_leaves_nothing),
        cmocka_unit_test(nothing_of_openssl_is_left_behind),
    };
    if (CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free) != 1) return 1;
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
