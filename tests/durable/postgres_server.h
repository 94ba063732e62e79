/* A real PostgreSQL server of a test: made in a directory of its own, on a Unix socket and a free port of the loopback,
 * run by an unprivileged user (root may not run one), and gone with the test, however that ends.
 *
 * A *guardian* process is the server's parent. It obeys bytes on a pipe: 'u' start, 'q' stop without a farewell (as a crash).
 * The end of the pipe is the end of the test, killed or not: it stops the server by its process id and deletes the
 * directory. */
#ifndef EBB_TESTS_POSTGRES_SERVER_H
#define EBB_TESTS_POSTGRES_SERVER_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct pg_server {
    char dir[64], bin[128], url[256], tcp_url[256];
    uint16_t port;
    bool durable; /* with fsync, as in production */
    int orders, answers;
    pid_t guardian;
} pg_server;

#define PG_UNUSED __attribute__((unused)) static

PG_UNUSED void pg_drop_root(void) {
    const struct passwd *nobody = getpwnam("nobody");
    if (geteuid() != 0) return;
    if (nobody == NULL || setgid(nobody->pw_gid) != 0 || setuid(nobody->pw_uid) != 0) _exit(126);
}

PG_UNUSED void pg_silence(const char *file) {
    const int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0) _exit(125);
}

PG_UNUSED pid_t pg_run(const pg_server *s, const char *program, const char *const args[]) {
    char path[256], log[128];
    snprintf(path, sizeof path, "%s/%s", s->bin, program);
    snprintf(log, sizeof log, "%s/log", s->dir);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    for (int fd = 3; fd < 1024; fd++) close(fd); /* the pipes of the test above all */
    pg_drop_root();
    pg_silence(log);
    if (chdir(s->dir) != 0) _exit(124);
    const char *preload = getenv("EBB_PG_PRELOAD"); /* a library for the server alone */
    if (preload != NULL) setenv("LD_PRELOAD", preload, 1);
    else unsetenv("LD_PRELOAD");
    const union {
        const char *const *from;
        char *const *to;
    } u = {args};
    execv(path, u.to);
    _exit(127);
}

PG_UNUSED pid_t pg_start_server(const pg_server *s) {
    char port[16], data[128];
    snprintf(port, sizeof port, "%u", s->port);
    snprintf(data, sizeof data, "%s/data", s->dir);
    char dir[64];
    snprintf(dir, sizeof dir, "%s", s->dir);
    const char *args[] = {"postgres",
                          "-D",
                          data,
                          "-k",
                          dir,
                          "-h",
                          "127.0.0.1",
                          "-p",
                          port,
                          "-c",
                          s->durable ? "fsync=on" : "fsync=off",
                          "-c",
                          "max_connections=60",
                          "-c",
                          "authentication_timeout=3",
                          "-c",
                          "shared_buffers=32MB",
                          "-c",
                          "log_min_messages=fatal",
                          NULL};
    const pid_t pid = pg_run(s, "postgres", args);
    char conninfo[256];
    snprintf(conninfo, sizeof conninfo, "host=%s port=%u user=ebb dbname=postgres connect_timeout=2", s->dir,
             s->port);
    for (int i = 0; i < 600 && waitpid(pid, NULL, WNOHANG) == 0; i++) {
        if (PQping(conninfo) == PQPING_OK) return pid;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return -1;
}

/* SIGQUIT ends the server at once, but for connections that it accepts after the signal and that say nothing: it waits for
 * them for as long as an authentication may take, a minute by default. A store of the test's whose loop waits for the end of
 * the server has such connections. A server that is killed would leave its children's shared memory behind, so that is only
 * for a server that is stuck. */
enum { PG_STOP_MS = 30000 };

PG_UNUSED void pg_stop_server(pid_t *pid) {
    if (*pid <= 0) return;
    kill(*pid, SIGQUIT);
    for (int ms = 0; waitpid(*pid, NULL, WNOHANG) == 0; ms += 20) {
        if (ms == PG_STOP_MS) kill(*pid, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    *pid = 0;
}

PG_UNUSED void pg_guard(const pg_server *s, int orders, int answers) {
    char order, command[128];
    pid_t server = 0;
    setsid();
    while (read(orders, &order, 1) == 1) {
        if (order == 'q') pg_stop_server(&server);
        else server = pg_start_server(s);
        order = server >= 0 ? 'y' : 'n';
        if (write(answers, &order, 1) != 1) break;
    }
    pg_stop_server(&server);
    snprintf(command, sizeof command, "rm -rf %s", s->dir);
    _exit(system(command) != 0);
}

PG_UNUSED bool pg_order(pg_server *s, char order) {
    char answer = 'n';
    return write(s->orders, &order, 1) == 1 && read(s->answers, &answer, 1) == 1 && answer == 'y';
}

/* A port that nobody has at the moment. */
PG_UNUSED uint16_t pg_free_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, n) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0)
        return 0;
    close(fd);
    return ntohs(at.sin_port);
}

PG_UNUSED bool pg_find(pg_server *s) {
    glob_t found;
    if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) != 0) return false;
    snprintf(s->bin, sizeof s->bin, "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return true;
}

PG_UNUSED bool pg_make(pg_server *s) {
    char data[128];
    int status = -1;
    snprintf(s->dir, sizeof s->dir, "/tmp/ebb-postgres-XXXXXX");
    const struct passwd *nobody = getpwnam("nobody");
    if (mkdtemp(s->dir) == NULL) return false;
    if (geteuid() == 0 && (nobody == NULL || chown(s->dir, nobody->pw_uid, nobody->pw_gid) != 0))
        return false;
    snprintf(data, sizeof data, "%s/data", s->dir);
    const char *args[] = {"initdb", "-D", data,         "-U", "ebb",  "-A",
                          "trust",  "-N", "--locale=C", "-E", "UTF8", NULL};
    const pid_t pid = pg_run(s, "initdb", args);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* False: it can't be had; what was made is gone, or goes with the process. */
PG_UNUSED bool pg_server_begin(pg_server *s, bool durable) {
    int orders[2], answers[2];
    memset(s, 0, sizeof *s);
    s->durable = durable;
    if (!pg_find(s) || pipe(orders) != 0 || pipe(answers) != 0) return false;
    s->port = pg_free_port();
    signal(SIGPIPE, SIG_IGN);
    const bool made = pg_make(s);
    s->guardian = fork();
    if (s->guardian == 0) {
        close(orders[1]);
        close(answers[0]);
        pg_guard(s, orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    s->orders = orders[1];
    s->answers = answers[0];
    fcntl(s->orders, F_SETFD, FD_CLOEXEC);
    snprintf(s->url, sizeof s->url, "postgres://ebb@:%u/postgres?host=%s", s->port, s->dir);
    snprintf(s->tcp_url, sizeof s->tcp_url, "postgres://ebb@localhost:%u/postgres", s->port);
    return made && pg_order(s, 'u');
}

PG_UNUSED bool pg_server_crash(pg_server *s) {
    return pg_order(s, 'q');
}

PG_UNUSED bool pg_server_up(pg_server *s) {
    return pg_order(s, 'u');
}

/* Sends a signal to the process `pid` or, with `children`, to all whose parent it is. */
PG_UNUSED void pg_signal(long pid, bool children, int signum) {
    glob_t all;
    if (!children) (void)kill((pid_t)pid, signum);
    if (!children || glob("/proc/[0-9]*/stat", 0, NULL, &all) != 0) return;
    for (size_t i = 0; i < all.gl_pathc; i++) {
        FILE *f = fopen(all.gl_pathv[i], "r");
        long child = 0, parent = 0;
        const bool read = f != NULL && fscanf(f, "%ld (%*[^)]) %*c %ld", &child, &parent) == 2;
        if (f != NULL) fclose(f);
        if (read && parent == pid) (void)kill((pid_t)child, signum);
    }
    globfree(&all);
}

/* Stops all processes of the server where they are, or lets them go on: connections stay, and nobody answers. */
PG_UNUSED bool pg_server_freeze(const pg_server *s, bool frozen) {
    char file[128];
    long pid = 0;
    snprintf(file, sizeof file, "%s/data/postmaster.pid", s->dir);
    FILE *f = fopen(file, "r");
    const bool read = f != NULL && fscanf(f, "%ld", &pid) == 1 && pid > 1;
    if (f != NULL) fclose(f);
    if (!read) return false;
    if (frozen) pg_signal(pid, false, SIGSTOP); /* first, so that it makes no more */
    pg_signal(pid, true, frozen ? SIGSTOP : SIGCONT);
    if (!frozen) pg_signal(pid, false, SIGCONT);
    return true;
}

PG_UNUSED void pg_server_end(pg_server *s) {
    close(s->orders);
    close(s->answers);
    waitpid(s->guardian, NULL, 0);
}

/* ---- a second opinion: a connection of libpq's own ------------------------------------------------------------ */

PG_UNUSED PGconn *pg_open(const pg_server *s) {
    char conninfo[256];
    snprintf(conninfo, sizeof conninfo, "host=%s port=%u user=ebb dbname=postgres", s->dir, s->port);
    return PQconnectdb(conninfo);
}

/* The first value of the answer, "" if there is none, "?" and the text on standard error if it fails. */
PG_UNUSED const char *pg_ask(PGconn *c, const char *sql) {
    static char answer[65536];
    PGresult *r = PQexec(c, sql);
    const ExecStatusType status = PQresultStatus(r);
    const bool good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    if (!good) fprintf(stderr, "%s: %s", sql, PQresultErrorMessage(r));
    snprintf(answer, sizeof answer, "%s", !good ? "?" : PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    return answer;
}

#endif
