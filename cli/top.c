/* cli/top.c - `ebb top`: looks at a running service through the socket that it has opened for that. */
#define _GNU_SOURCE /* TIOCGWINSZ, struct ucred */
#include "cli/top.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "workflow/inspect.h"

const ebb__help ebb__help_top = {
    .name = "top",
    .what = "look at a running service",
    .text =
        "Shows what a service does now: its regions and tasks with their phases, what each waits for, ages "
        "and "
        "poll times, lanes, fibers, heap and counters. The service must have been started with `inspect` "
        "among "
        "its options (docs/guide.md). A PID is looked for in $XDG_RUNTIME_DIR/ebb and /tmp/ebb-UID.\n\n"
        "Keys: q quit; s sort by tree, age or poll time; f fold tasks; space, b page; j, k or arrows scroll; "
        "p pause.",
    .forms = (const ebb__help_form[]){{NULL, "PID|SOCKET", ""}, {0}},
    .options = (const ebb__help_option[]){{"--once", NULL, NULL, 0, "One snapshot, as text."},
                                          {"--json", NULL, NULL, 0, "One snapshot, as JSON."},
                                          {0}},
    .exits = (const ebb__help_row[]){{"0", "it was quit, or the snapshot was printed"},
                                     {"1", "the service has ended"},
                                     {"2", "no such service"},
                                     {0}},
};

enum { REFRESH_MS = 1000, LATE_MS = 2000, PATIENCE_MS = 5000, PIECE = 32768, LINE_MOST = 64 << 20 };

/* An answer is read in pieces, as they come: a service that is held up, or drips, does not hold up the keys. */
typedef struct top {
    int fd;
    ebb__top_view view;
    bool paused;
    bool alone;        /* the service has ended, or answers nonsense */
    bool asked;        /* a request is under way */
    uint64_t asked_at; /* ms */
    char *line;        /* what has come of the answer */
    size_t n, room;
    size_t first; /* line at the top of the screen, below the header */
    char why[96]; /* the error that was answered; "": none */
    json_t *snapshot;
    struct termios before;
} top;

static volatile sig_atomic_t stopped; /* SIGWINCH only interrupts the wait */

/* ---- the socket ---------------------------------------------------------------------------------------- */

/* Anybody could have made the well-known place of a service that has none. */
static bool is_mine(int fd) {
    struct ucred peer;
    socklen_t n = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0) return false;
    if (peer.uid != geteuid()) errno = EACCES;
    return peer.uid == geteuid();
}

/* -1: there is none, and errno says why. */
static int look_for(const char *where) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char *end;
    unsigned long pid = strtoul(where, &end, 10);
    char path[EBB__INSPECT_PATH];
    bool is_pid = end != where && *end == 0;
    if (is_pid && !ebb__inspect_path(pid, path)) return -1;
    const char *found = is_pid ? path : where;
    if (strlen(found) >= sizeof at.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(at.sun_path, found, strlen(found) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    bool there = fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0;
    if (fd >= 0 && (!there || (is_pid && !is_mine(fd)))) {
        int why = errno;
        (void)close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static uint64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A service that refuses has said why, and may have closed already: what it said is read all the same. */
static void ask(top *t) {
    (void)send(t->fd, EBB__INSPECT_REQUEST, sizeof EBB__INSPECT_REQUEST - 1, MSG_NOSIGNAL);
    t->asked = true;
    t->asked_at = now_ms();
    t->n = 0;
}

/* The line has come. */
static void take(top *t) {
    json_t *now = json_loadb(t->line, t->n, 0, NULL);
    const char *error = json_string_value(json_object_get(now, "error"));
    if (error != NULL) snprintf(t->why, sizeof t->why, "%s", error);
    t->asked = false;
    t->alone = now == NULL || error != NULL;
    if (t->alone) {
        json_decref(now);
        return;
    }
    json_decref(t->snapshot);
    t->snapshot = now;
}

static bool has_room(top *t) {
    if (t->room - t->n >= PIECE) return true;
    size_t room = t->room == 0 ? 2 * PIECE : 2 * t->room;
    char *more = room > LINE_MOST ? NULL : realloc(t->line, room);
    if (more == NULL) return false;
    t->line = more;
    t->room = room;
    return true;
}

/* The socket can be read. */
static void receive(top *t) {
    ssize_t got = has_room(t) ? recv(t->fd, t->line + t->n, t->room - t->n, MSG_DONTWAIT) : 0;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
        t->alone = true;
        return;
    }
    t->n += (size_t)got;
    if (t->line[t->n - 1] == '\n') take(t);
}

/* Asks, and waits for the answer. */
static bool refresh(top *t) {
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    ask(t);
    for (uint64_t gone = 0; t->asked && !t->alone && gone < PATIENCE_MS; gone = now_ms() - t->asked_at) {
        if (poll(&p, 1, (int)(PATIENCE_MS - gone)) > 0) receive(t);
    }
    return !t->asked && !t->alone;
}

/* ---- the terminal -------------------------------------------------------------------------------------- */

static void on_signal(int sig) {
    if (sig != SIGWINCH) stopped = 1;
}

static void terminal_enter(top *t) {
    struct sigaction a = {.sa_handler = on_signal};
    (void)sigaction(SIGWINCH, &a, NULL);
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
    (void)tcgetattr(STDIN_FILENO, &t->before);
    struct termios raw = t->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\033[?1049h\033[?25l", stdout);
}

static void terminal_leave(const top *t) {
    fputs("\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

static struct winsize size_now(void) {
    struct winsize w = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_row < 3 || w.ws_col < 10) {
        w.ws_row = 24;
        w.ws_col = 80;
    }
    return w;
}

static void header(const top *t, char *out, size_t room) {
    uint64_t gone = t->asked ? now_ms() - t->asked_at : 0;
    if (gone >= LATE_MS)
        snprintf(out, room, "ebb top: no answer for %" PRIu64 " s, its first loop may be held up. q quit",
                 gone / 1000);
    else
        snprintf(out, room, "ebb top: %s",
                 t->paused ? "paused. q quit, p go on" : "q quit, s sort, f fold, space/b page, p pause");
}

/* Lines longer than the screen is wide are cut; the terminal never wraps or scrolls. */
static void draw(top *t) {
    static const char *const sorts[] = {"tree", "age", "poll time"};
    struct winsize w = size_now();
    char *text = NULL;
    size_t n = 0, line = 0, shown = 0, rows = (size_t)w.ws_row - 2;
    FILE *f = open_memstream(&text, &n);
    if (f == NULL) return;
    ebb__top_write(f, t->snapshot, &t->view);
    if (fclose(f) != 0) return;
    size_t lines = 0;
    for (const char *c = text; *c != 0; c++) lines += *c == '\n';
    if (t->first + rows > lines) t->first = lines > rows ? lines - rows : 0;
    char head[128];
    header(t, head, sizeof head);
    printf("\033[H\033[7m%-*.*s\033[0m\033[K\n", w.ws_col, w.ws_col, head);
    for (const char *at = text; *at != 0; line++) {
        size_t length = strcspn(at, "\n"), most = length < w.ws_col ? length : w.ws_col;
        if (line >= t->first && shown < rows) {
            printf("%.*s\033[K\n", (int)most, at);
            shown++;
        }
        at += length + (at[length] == '\n');
    }
    printf("\033[Jline %zu of %zu, by %s%s", lines == 0 ? 0 : t->first + 1, lines, sorts[t->view.sort],
           t->view.folded ? ", folded" : "");
    (void)fflush(stdout);
    free(text);
}

/* False: quit. */
static bool key(top *t, char c) {
    size_t page = size_now().ws_row - 3u;
    switch (c) {
    case 'q': return false;
    case 's': t->view.sort = (t->view.sort + 1) % EBB__TOP_SORTS; break;
    case 'f': t->view.folded = !t->view.folded; break;
    case 'p': t->paused = !t->paused; break;
    case ' ': t->first += page; break;
    case 'b': t->first -= t->first < page ? t->first : page; break;
    case 'j':
    case 'B': t->first++; break; /* B and A end the arrows' sequences */
    case 'k':
    case 'A': t->first -= t->first > 0; break;
    default: break;
    }
    return true;
}

static bool keys(top *t) {
    char typed[64];
    ssize_t n = read(STDIN_FILENO, typed, sizeof typed);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return false; /* the terminal is gone */
    for (ssize_t i = 0; i < n; i++) {
        if (!key(t, typed[i])) return false;
    }
    return true;
}

/* How long it may sleep: until it has to ask, or to say again how late the answer is. */
static int sleep_ms(const top *t, uint64_t due) {
    uint64_t now = now_ms();
    if (t->asked || t->paused) return REFRESH_MS;
    return due > now ? (int)(due - now) : 0;
}

/* Returns when the user quits or the service has ended. */
static void show(top *t) {
    uint64_t due = now_ms() + REFRESH_MS;
    for (draw(t); !stopped; draw(t)) {
        struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = t->fd, .events = POLLIN}};
        int n = poll(p, 2, sleep_ms(t, due));
        if (n > 0 && p[0].revents != 0 && !keys(t)) return;
        if (n > 0 && p[1].revents != 0) receive(t);
        if (t->alone) return;
        if (t->asked || t->paused || now_ms() < due) continue;
        ask(t);
        due = now_ms() + REFRESH_MS;
    }
}

/* ---- the command --------------------------------------------------------------------------------------- */

/* What has answered may put anything into its text. */
static int complain(const top *t, const char *where) {
    char why[sizeof t->why];
    size_t n = strlen(t->why);
    for (size_t i = 0; i <= n; i++)
        why[i] = i == n || (t->why[i] >= ' ' && t->why[i] <= '~') ? t->why[i] : '?';
    if (n > 0) ebb__cli_error("%s: %s", where, why);
    else ebb__cli_error("%s does not answer", where);
    return EBB__EXIT_USAGE;
}

static int print_once(top *t, const char *where, bool as_json) {
    /* The first snapshot switches the measuring of polls on. */
    bool there = as_json || refresh(t);
    struct timespec pause = {.tv_nsec = 300000000};
    if (there && !as_json) (void)nanosleep(&pause, NULL);
    there = there && refresh(t);
    if (!there) return complain(t, where);
    if (as_json) (void)json_dumpf(t->snapshot, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    else ebb__top_write(stdout, t->snapshot, &t->view);
    if (as_json) fputc('\n', stdout);
    return EBB__EXIT_OK;
}

static int watch(top *t, const char *where) {
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        ebb__cli_error("top needs a terminal; --once and --json do not");
        return EBB__EXIT_USAGE;
    }
    if (!refresh(t)) return complain(t, where);
    terminal_enter(t);
    show(t);
    terminal_leave(t);
    if (t->alone) ebb__cli_error("%s has ended", where);
    return t->alone ? EBB__EXIT_BAD : EBB__EXIT_OK;
}

int ebb__cmd_top(int argc, char **argv) {
    bool once = false, as_json = false;
    const char *where = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return ebb__help_show(&ebb__help_top);
        if (strcmp(argv[i], "--once") == 0) once = true;
        else if (strcmp(argv[i], "--json") == 0) as_json = true;
        else if (where == NULL && argv[i][0] != '-') where = argv[i];
        else {
            ebb__cli_error("unexpected argument '%s'", argv[i]);
            return EBB__EXIT_USAGE;
        }
    }
    if (where == NULL || (once && as_json)) return ebb__help_refuse(&ebb__help_top);
    top t = {.fd = look_for(where)};
    if (t.fd < 0) {
        ebb__cli_error("no service at %s: %s", where, strerror(errno));
        return EBB__EXIT_USAGE;
    }
    int code = once || as_json ? print_once(&t, where, as_json) : watch(&t, where);
    json_decref(t.snapshot);
    free(t.line);
    (void)close(t.fd);
    return code;
}
