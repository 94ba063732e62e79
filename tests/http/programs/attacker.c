/* http_attacker [-s SECONDS] [-c CONNECTIONS] [-k TURNS] [-1drwhx] PORT < script
 *
 * Sends what a script says to a server of HTTP/2, as fast as the server takes it. What an attack is made of is
 * told by whoever writes the script; this only repeats it, because that has to be fast.
 *
 * A script is big-endian: four words (how many bytes the greeting has, how many a turn, how many marks there are,
 * by how much the ids of streams rise with a turn), the marks (where in a turn the id of a stream stands, and
 * what is added to that of the turn), the greeting, the turn. The first turn's id is the last word plus 1.
 *
 *   -s SECONDS  goes on so long (3)
 *   -c N        so many connections at once (1)
 *   -k N        so many turns a connection, and then it only listens
 *   -r          connects again whenever a connection has ended
 *   -w          waits after each turn until a PING is answered
 *   -x          ends a connection itself when all its turns are sent
 *   -d          deaf: never reads
 *   -h          holds on: sends until the system says that nobody is there, whatever it was told
 *   -1          what comes is no HTTP/2: it is not looked at
 *
 * Prints one line of JSON: what was sent, the codes of GOAWAY and RST_STREAM that came, the frames of each other
 * type, and how the connections ended: "eof", "reset", "left" if they were ended here, "open" if not at all. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_CONNECTIONS = 4096,
    BATCH = 65536,
    FRAME_HEAD = 9,
    TYPES = 11,
    CODES = 16,
    LAST_WORDS_MS = 500,
    NS_PER_MS = 1000000
};
enum { RST_STREAM = 3, PING = 6, GOAWAY = 7, ACK = 1 };

typedef struct mark {
    uint32_t at;
    int32_t plus;
} mark;

/* `out` holds whole turns, of which `out_n - out_at` bytes are left to send. */
typedef struct connection {
    int fd; /* -1: there is none */
    bool told;
    bool waits;
    uint64_t turns;
    uint8_t *out;
    size_t out_at, out_n;
    uint8_t head[FRAME_HEAD + 8]; /* of the frame that comes, with the first bytes of its payload */
    size_t head_n, skip;
} connection;

static struct {
    uint64_t seconds, connections, turns;
    bool deaf, again, waits, holds, leaves, no_frames;
    uint16_t port;
} opts = {.seconds = 3, .connections = 1};

static struct {
    uint8_t *greeting, *turn;
    mark *marks;
    uint32_t greeting_n, turn_n, marks_n, step;
} script;

static struct {
    uint64_t connections, turns, sent, received, eof, reset, left, open, refused;
    uint64_t goaway[CODES], rst[CODES], frames[TYPES];
} seen;

static connection all[MAX_CONNECTIONS];
static bool stopping;

static void fail(const char *what) {
    fprintf(stderr, "http_attacker: %s\n", what);
    exit(2);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- the script ------------------------------------------------------------------------------------------- */

static uint8_t *read_bytes(size_t n) {
    uint8_t *at = malloc(n + 1);
    if (at == NULL) fail("no memory");
    if (fread(at, 1, n, stdin) != n) fail("the script is too short");
    return at;
}

static uint32_t word(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t read_word(void) {
    uint8_t *at = read_bytes(4);
    uint32_t w = word(at);
    free(at);
    return w;
}

static void script_read(void) {
    script.greeting_n = read_word();
    script.turn_n = read_word();
    script.marks_n = read_word();
    script.step = read_word();
    script.marks = calloc(script.marks_n + 1, sizeof *script.marks);
    if (script.marks == NULL) fail("no memory");
    for (uint32_t i = 0; i < script.marks_n; i++) {
        script.marks[i].at = read_word();
        script.marks[i].plus = (int32_t)read_word();
        if (script.marks[i].at + 4 > script.turn_n) fail("a mark is not in the turn");
    }
    script.greeting = read_bytes(script.greeting_n);
    script.turn = read_bytes(script.turn_n);
}

/* ---- what goes -------------------------------------------------------------------------------------------- */

static void turn_put(connection *c, uint8_t *to) {
    int64_t id = (int64_t)(c->turns + 1) * script.step + 1;
    memcpy(to, script.turn, script.turn_n);
    for (uint32_t i = 0; i < script.marks_n; i++) {
        uint32_t of = (uint32_t)((id + script.marks[i].plus) & INT32_MAX);
        for (unsigned k = 0; k < 4; k++) to[script.marks[i].at + k] = (uint8_t)(of >> (24 - 8 * k));
    }
    c->turns++;
    seen.turns++;
}

static bool is_due(const connection *c) {
    if (opts.turns > 0 && c->turns >= opts.turns) return false;
    return script.turn_n > 0 && !(opts.waits && c->waits);
}

/* One turn at a time if it is to wait; else as many as fit. */
static void batch(connection *c) {
    c->out_at = c->out_n = 0;
    while (is_due(c) && (c->out_n == 0 || (!opts.waits && c->out_n + script.turn_n <= BATCH))) {
        turn_put(c, c->out + c->out_n);
        c->out_n += script.turn_n;
        c->waits = opts.waits;
    }
}

static void connection_open(connection *c);

static void connection_end(connection *c, uint64_t *how) {
    (*how)++;
    close(c->fd);
    c->fd = -1;
    if (opts.again && !stopping) connection_open(c);
}

static bool is_all_said(const connection *c) {
    return c->out_at == c->out_n && !c->waits &&
           (script.turn_n == 0 || (opts.turns > 0 && c->turns >= opts.turns));
}

/* ---- what comes ------------------------------------------------------------------------------------------- */

static void frame_seen(connection *c) {
    uint8_t type = c->head[3], flags = c->head[4];
    uint32_t code = word(c->head + FRAME_HEAD + (type == GOAWAY ? 4 : 0));
    if (type == GOAWAY) c->told = true;
    if (type == GOAWAY) seen.goaway[code % CODES]++;
    else if (type == RST_STREAM) seen.rst[code % CODES]++;
    else if (type < TYPES) seen.frames[type]++;
    if (type == PING && (flags & ACK)) c->waits = false;
}

/* A frame's head, and up to eight bytes of its payload; the rest is skipped. */
static void parse(connection *c, const uint8_t *at, size_t n) {
    while (n > 0 && !opts.no_frames) {
        if (c->skip > 0) {
            size_t k = c->skip < n ? c->skip : n;
            c->skip -= k;
            at += k;
            n -= k;
            continue;
        }
        c->head[c->head_n++] = *at++;
        n--;
        if (c->head_n < FRAME_HEAD) continue;
        size_t payload = (size_t)word(c->head) >> 8, wanted = payload < 8 ? payload : 8;
        if (c->head_n < FRAME_HEAD + wanted) continue;
        frame_seen(c);
        c->skip = payload - wanted;
        c->head_n = 0;
        memset(c->head, 0, sizeof c->head);
    }
}

static ssize_t hear(connection *c) {
    static uint8_t in[1 << 18];
    ssize_t n = recv(c->fd, in, sizeof in, MSG_DONTWAIT);
    if (n <= 0) return n;
    seen.received += (size_t)n;
    parse(c, in, (size_t)n);
    return n;
}

static void receive(connection *c) {
    ssize_t n = hear(c);
    if (n == 0 && (!opts.holds || stopping)) connection_end(c, &seen.eof);
    else if (n < 0 && errno != EAGAIN) connection_end(c, &seen.reset);
}

/* What came before the end of a connection that was reset is still there. */
static void send_some(connection *c) {
    if (c->out_at == c->out_n) batch(c);
    if (c->out_at == c->out_n) return;
    ssize_t n = send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
        c->out_at += (size_t)n;
        seen.sent += (size_t)n;
    } else if (errno != EAGAIN) {
        while (hear(c) > 0) {}
        connection_end(c, &seen.reset);
    }
}

/* ---- connections ------------------------------------------------------------------------------------------ */

/* A connection that nobody takes is waited for: the server may be full, and that is no error here. */
static void connection_open(connection *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(opts.port)};
    uint8_t *out = c->out;
    int one = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) fail("no socket");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *c = (connection){.fd = fd, .out = out, .out_n = script.greeting_n};
    memcpy(out, script.greeting, script.greeting_n);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS) {
        seen.refused++;
        close(fd);
        c->fd = -1;
        return;
    }
    seen.connections++;
}

static void open_all(void) {
    size_t room = script.greeting_n > BATCH ? script.greeting_n : BATCH;
    if (script.turn_n > room) room = script.turn_n;
    for (uint64_t i = 0; i < opts.connections; i++) {
        all[i].out = malloc(room);
        if (all[i].out == NULL) fail("no memory");
        connection_open(&all[i]);
    }
}

static bool wants_to_send(const connection *c) {
    if (stopping || (c->told && !opts.holds)) return false;
    return c->out_at < c->out_n || is_due(c);
}

static short events_of(const connection *c) {
    bool listens = (!opts.deaf && !opts.holds) || stopping || opts.waits;
    return (short)((listens ? POLLIN : 0) | (wants_to_send(c) ? POLLOUT : 0));
}

static void serve(connection *c, short events) {
    if (opts.leaves && is_all_said(c)) {
        connection_end(c, &seen.left);
        return;
    }
    if ((events & POLLOUT) && c->fd >= 0 && wants_to_send(c)) send_some(c);
    if ((events & POLLIN) && c->fd >= 0) receive(c);
    else if ((events & (POLLERR | POLLHUP)) && c->fd >= 0) receive(c);
}

/* How many are left. */
static int step(int ms) {
    static struct pollfd fds[MAX_CONNECTIONS];
    int left = 0;
    for (uint64_t i = 0; i < opts.connections; i++) {
        if (all[i].fd < 0 && opts.again && !stopping) connection_open(&all[i]);
        fds[i] = (struct pollfd){all[i].fd, all[i].fd < 0 ? 0 : events_of(&all[i]), 0};
    }
    (void)poll(fds, opts.connections, ms);
    for (uint64_t i = 0; i < opts.connections; i++) {
        if (all[i].fd >= 0) serve(&all[i], fds[i].revents);
        left += all[i].fd >= 0;
    }
    return left;
}

/* The attack; and then what the server has to say. */
static void run(void) {
    uint64_t until = now_ns() + opts.seconds * 1000000000;
    int left = 1, ms = opts.leaves ? 1 : 20;
    while (now_ns() < until && (left > 0 || opts.again)) left = step(ms);
    stopping = true;
    until = now_ns() + (uint64_t)LAST_WORDS_MS * NS_PER_MS;
    while (now_ns() < until && left > 0) left = step(20);
    seen.open = (uint64_t)left;
}

/* ---- the line --------------------------------------------------------------------------------------------- */

static void put_counts(const char *name, const uint64_t *n, size_t most) {
    const char *comma = "";
    printf(", \"%s\": {", name);
    for (size_t i = 0; i < most; i++) {
        if (n[i] == 0) continue;
        printf("%s\"%zu\": %llu", comma, i, (unsigned long long)n[i]);
        comma = ", ";
    }
    printf("}");
}

static void report(void) {
    printf("{\"connections\": %llu, \"refused\": %llu, \"turns\": %llu, \"sent\": %llu, \"received\": %llu",
           (unsigned long long)seen.connections, (unsigned long long)seen.refused,
           (unsigned long long)seen.turns, (unsigned long long)seen.sent, (unsigned long long)seen.received);
    put_counts("goaway", seen.goaway, CODES);
    put_counts("rst", seen.rst, CODES);
    put_counts("frames", seen.frames, TYPES);
    printf(", \"eof\": %llu, \"reset\": %llu, \"left\": %llu, \"open\": %llu}\n",
           (unsigned long long)seen.eof, (unsigned long long)seen.reset, (unsigned long long)seen.left,
           (unsigned long long)seen.open);
}

static uint64_t number(const char *text, uint64_t most) {
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != 0 || n == 0 || n > most) fail("not a number, or too large");
    return n;
}

static void parse_opts(int argc, char **argv) {
    for (int option; (option = getopt(argc, argv, "1s:c:k:drwhx")) != -1;) {
        if (option == 's') opts.seconds = number(optarg, 3600);
        else if (option == 'c') opts.connections = number(optarg, MAX_CONNECTIONS);
        else if (option == 'k') opts.turns = number(optarg, INT32_MAX);
        else if (option == 'd') opts.deaf = true;
        else if (option == 'r') opts.again = true;
        else if (option == 'w') opts.waits = true;
        else if (option == 'h') opts.holds = true;
        else if (option == 'x') opts.leaves = true;
        else if (option == '1') opts.no_frames = true;
        else fail("no such option");
    }
    if (argc - optind != 1) fail("a port is wanted");
    opts.port = (uint16_t)number(argv[optind], UINT16_MAX);
}

int main(int argc, char **argv) {
    parse_opts(argc, argv);
    script_read();
    open_all();
    run();
    report();
    return 0;
}
