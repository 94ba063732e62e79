/* cli/daemon.c - `ebb serve`: the daemon, with the API for its operators, and a worker for what it loads. */
#define _DEFAULT_SOURCE /* getentropy */
#include "cli/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/app.h"
#include "cli/cli.h"
#include "cli/daemon_programs.h"

static const char usage[] =
    "usage: ebb serve [--listen ADDRESS:PORT] [--store URL] [--load FILE] [--activity NAME=COMMAND]...\n"
    "                 [--programs DIR] [--dir DIR] [--host NAME]...\n"
    "\n"
    "Serves an API over HTTP for the operators of a store: durable instances, what lives in the process, "
    "metrics\n"
    "(docs/serve.md). With --load or --activity it runs instances too, as `ebb worker` does.\n"
    "\n"
    "--listen    127.0.0.1:7070 by default; port 0 takes a free one. On an address that is not a loopback "
    "address\n"
    "            every request needs the token\n"
    "--store     sqlite:PATH, postgres://USER@HOST:PORT/DATABASE or lab:; by default ebb.db in DIR\n"
    "--load      a shared library; its function ebb_app registers what it has (docs/durable.md)\n"
    "--activity  a shell command as an activity, as of `ebb worker`\n"
    "--programs  runs each file of DIR that ends in .ebb, as `ebb run` does without stdin; what their "
    "protocols "
    "take from\n"
    "            System can be sent over HTTP (docs/language.md)\n"
    "--dir       where it keeps the token, the audit log and by default the store; .ebb by default. It is "
    "made if\n"
    "            it is not there, and so is the token\n"
    "--host      a name by which it is reached, beside localhost and addresses\n"
    "\n"
    "SIGTERM or SIGINT (Ctrl-C) stops it: requests that were accepted are answered, activities may finish, "
    "those\n"
    "that do not are cancelled and handed over. A second one stops it at once.\n"
    "Exit code 0: it was stopped; 2: wrong arguments, or something can't be used; 3, 4, 5: as of any "
    "service, see\n"
    "docs/workflow.md.\n";

/* ---- the directory ----------------------------------------------------------------------------------- */

enum { RANDOM_BYTES = 32 };

static bool write_token(const char *path, int fd) {
    uint8_t random[RANDOM_BYTES];
    char text[2 * RANDOM_BYTES + 2];
    if (getentropy(random, sizeof random) != 0) return false;
    for (size_t i = 0; i < sizeof random; i++) (void)snprintf(text + 2 * i, 3, "%02x", random[i]);
    text[sizeof text - 2] = '\n';
    if (write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1) return true;
    (void)unlink(path);
    return false;
}

/* An existing one stays: ebb_dashboard_mount checks it. */
static bool make_token(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool made = fd >= 0 ? write_token(path, fd) : errno == EEXIST;
    if (!made) ebb__cli_error("can't make the token file %s: %s", path, strerror(errno));
    if (fd >= 0) (void)close(fd);
    return made;
}

/* Whoever may write there may put another token in its place. */
static bool check_directory(const char *path) {
    struct stat is;
    if (stat(path, &is) != 0) ebb__cli_error("can't use the directory %s: %s", path, strerror(errno));
    else if (!S_ISDIR(is.st_mode)) ebb__cli_error("%s is not a directory", path);
    else if (is.st_uid != geteuid())
        ebb__cli_error("the directory %s is owned by user %u, not by user %u", path, (unsigned)is.st_uid,
                       (unsigned)geteuid());
    else if ((is.st_mode & 022) != 0)
        ebb__cli_error("the directory %s has mode %04o: others may write there; make it 0700", path,
                       (unsigned)is.st_mode & 07777);
    else return true;
    return false;
}

bool ebb__daemon_prepare(ebb__daemon *d) {
    if (mkdir(d->dir, 0700) == 0 || errno == EEXIST) return check_directory(d->dir) && make_token(d->token);
    ebb__cli_error("can't make the directory %s: %s", d->dir, strerror(errno));
    return false;
}

/* ---- the service ------------------------------------------------------------------------------------- */

static ebb_status open_worker(ebb_cx *cx, ebb__daemon *d, ebb_store *store, ebb_worker **out) {
    ebb_worker *w = NULL;
    *out = NULL;
    if (d->app == NULL && d->activities_n == 0) return EBB_OK;
    ebb_status st = ebb_worker_open(cx, store, NULL, &w);
    if (st != EBB_OK) {
        ebb__durable_print_error("the worker can't be opened", st);
        return st;
    }
    if (d->app != NULL) st = ebb__app_register(cx, w, d->load, d->app);
    for (size_t i = 0; i < d->activities_n && st == EBB_OK; i++) st = ebb__app_command(w, d->activities[i]);
    if (st != EBB_OK) return st;
    st = ebb_worker_begin(w);
    if (st != EBB_OK) ebb__durable_print_error("the worker can't begin", st);
    *out = w;
    return st;
}

static ebb_status listen_at(ebb_cx *cx, ebb__daemon *d, ebb_http_server **out) {
    ebb_status st = ebb_http_listen(cx, &(ebb_http_server_opts){.address = d->address}, out);
    if (st == EBB_OK) return ebb_http_server_address(cx, *out, &d->address);
    ebb__cli_error("can't listen on %s port %u: %s", d->address.ip, d->address.port, ebb_status_text(st));
    return st;
}

static ebb_status mount(ebb_cx *cx, const ebb__daemon *d, ebb_http_server *server, ebb_store *store,
                        ebb_worker *w) {
    const ebb_dashboard_opts opts = {
        .prefix = "", .token_file = d->token, .hosts = d->hosts, .store = store, .worker = w};
    ebb_status st = ebb_dashboard_mount(cx, server, &opts);
    const char *text = ebb_dashboard_error();
    if (st != EBB_OK) ebb__cli_error("%s", text[0] != 0 ? text : ebb_status_text(st));
    return st;
}

static void print_begun(const ebb__daemon *d) {
    const bool v6 = strchr(d->address.ip, ':') != NULL;
    printf("http://%s%s%s:%u/\n", v6 ? "[" : "", d->address.ip, v6 ? "]" : "", d->address.port);
    printf("token: %s\n", d->token);
    (void)fflush(stdout); /* main reports a failure of stdout */
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    ebb__daemon *d = arg;
    ebb_store *store = NULL;
    ebb_worker *w;
    ebb_http_server *server;
    ebb_status st = ebb__durable_open(cx, &(ebb_store_opts){.url = d->url}, &store);
    if (st == EBB_OK) st = ebb__programs_begin(cx, d->programs);
    if (st == EBB_OK) st = open_worker(cx, d, store, &w);
    if (st == EBB_OK) st = listen_at(cx, d, &server);
    if (st == EBB_OK) st = mount(cx, d, server, store, w);
    d->begun = st == EBB_OK;
    if (d->begun) print_begun(d);
    if (d->begun) ebb__programs_wait(cx, d->programs);
    return st;
}

static int run_with(ebb__daemon *d, ebb_audit *audit) {
    ebb_workflow_report report = {0};
    ebb_service_opts opts = {
        .loop.runtime.allocator = ebb__cli_allocator(), .report = &report, .inspect = ""};
    opts.shutdown.audit = audit;
    const int code = ebb_service_run(&opts, serve, d);
    if (!d->begun && report.state == 0) ebb__cli_error("it can't start: %s", ebb_status_text(report.status));
    return d->begun || code == EBB_SERVICE_OK ? code : EBB__EXIT_USAGE;
}

static int run(ebb__daemon *d) {
    ebb_audit *audit = NULL;
    if (d->load != NULL && (d->app = ebb__app_load(d->load)) == NULL) return EBB__EXIT_USAGE;
    if (d->programs_dir != NULL && (d->programs = ebb__programs_compile(d->programs_dir)) == NULL)
        return EBB__EXIT_USAGE;
    if (!ebb__daemon_prepare(d)) return EBB__EXIT_USAGE;
    const ebb_status st = ebb_audit_open(ebb__cli_allocator(), d->log, &audit);
    if (st != EBB_OK) {
        ebb__cli_error("can't use the audit log %s: %s", d->log,
                       st == EBB_ERR_BUSY ? "another process has it; a second daemon needs a --dir of its own"
                                          : ebb_status_text(st));
        return EBB__EXIT_USAGE;
    }
    const int code = run_with(d, audit);
    ebb_audit_close(audit);
    return code;
}

/* ---- the command ------------------------------------------------------------------------------------- */

static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    }
    return false;
}

int ebb__cmd_serve(int argc, char **argv) {
    ebb__daemon d = {0};
    if (wants_help(argc, argv)) {
        fputs(usage, stdout);
        return EBB__EXIT_OK;
    }
    const int code = ebb__daemon_parse(&d, argc - 1, argv + 1) ? run(&d) : EBB__EXIT_USAGE;
    ebb__programs_free(d.programs);
    ebb__daemon_free(&d);
    return code;
}
