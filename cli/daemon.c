/* cli/daemon.c - `ebb serve`: the daemon, with the API for its operators, and a worker for what it loads.
 *
 *     root region             the store, the worker: what a stop drains
 *       operators' region     the server of the API: it answers until all of that has ended
 *
 * The finalizers of the root close the store, and run when both regions have nothing left: it outlives the API. What a
 * loaded program serves belongs into the root region, with a listener of its own: that one closes with the request. */
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
#include "cli/help.h"

const ebb__help ebb__help_serve = {
    .name = "serve",
    .what = "serve a store and what runs it to operators, over HTTP",
    .text =
        "Serves an API over HTTP for the operators of a store: durable instances, what lives in the process, "
        "metrics (docs/serve.md). With --load or --activity it runs instances too, as `ebb worker` does.\n\n"
        "SIGTERM or SIGINT (Ctrl-C) stops it: requests that were accepted are answered, activities may "
        "finish, "
        "those that do not are cancelled and handed over. A second one stops it at once.",
    .forms = (const ebb__help_form[]){{NULL, "", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--config", "FILE", NULL, 0,
             "A file with options as lines, `listen = 127.0.0.1:7070`; those of the command line win."},
            {"--listen", "ADDRESS:PORT", NULL, 0,
             "127.0.0.1:7070 by default; port 0 takes a free one. On an address that is not a loopback "
             "address every "
             "request needs the token."},
            {"--store", "URL", NULL, 0,
             "sqlite:PATH, postgres://USER@HOST:PORT/DATABASE or lab:; by default ebb.db in DIR."},
            {"--load", "FILE", NULL, 0,
             "A shared library; its function ebb_app registers what it has (docs/durable.md), and "
             "ebb_app_http, "
             "if it is there, adds routes to a server of its own (docs/serve.md)."},
            {"--app-listen", "ADDRESS:PORT", NULL, 0,
             "Where that server listens; 127.0.0.1:7071 by default."},
            {"--activity", "NAME=COMMAND", NULL, EBB__HELP_REPEATS,
             "A shell command as an activity, as of `ebb worker`."},
            {"--programs", "DIR", NULL, 0,
             "Runs each file of DIR that ends in .ebb, as `ebb run` does without stdin; what their protocols "
             "take from System can be sent over HTTP (docs/language.md)."},
            {"--dir", "DIR", NULL, 0,
             "Where it keeps the token, the audit log and by default the store; .ebb by default. It is made "
             "if it is "
             "not there, and so is the token."},
            {"--host", "NAME", NULL, EBB__HELP_REPEATS,
             "A name by which it is reached, beside localhost and addresses."},
            {0}},
    .exits = (const ebb__help_row[]){{"0", "it was stopped"},
                                     {"2", "wrong arguments, or something can't be used"},
                                     {"3-5", "as of any service, see docs/workflow.md"},
                                     {0}},
    .examples =
        (const ebb__help_row[]){
            {"ebb serve --load ./app.so", "Runs the orchestrations of app.so on .ebb/ebb.db."},
            {"ebb serve --listen 0.0.0.0:7070 --host ebb.example.net --store postgres://ebb@db/ebb",
             "For other machines, on PostgreSQL; put a proxy with TLS before it."},
            {0}},
};

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

static ebb_status open_worker(ebb_cx *cx, ebb__daemon *d) {
    ebb_worker *w = NULL;
    if (d->app == NULL && d->activities.n == 0) return EBB_OK;
    ebb_status st = ebb_worker_open(cx, d->open_store, NULL, &w);
    if (st != EBB_OK) {
        ebb__durable_print_error("the worker can't be opened", st);
        return st;
    }
    if (d->app != NULL) st = ebb__app_register(cx, w, d->load, d->app);
    for (size_t i = 0; i < d->activities.n && st == EBB_OK; i++)
        st = ebb__app_command(w, d->activities.at[i]);
    if (st != EBB_OK) return st;
    st = ebb_worker_begin(w);
    if (st != EBB_OK) ebb__durable_print_error("the worker can't begin", st);
    d->worker = w;
    return st;
}

static ebb_status listen_at(ebb_cx *cx, ebb__daemon *d, ebb_http_server **out) {
    ebb_status st = ebb_http_listen(cx, &(ebb_http_server_opts){.address = d->address}, out);
    if (st == EBB_OK) return ebb_http_server_address(cx, *out, &d->address);
    ebb__cli_error("can't listen on %s port %u: %s", d->address.ip, d->address.port, ebb_status_text(st));
    return st;
}

static ebb_status mount(ebb_cx *cx, const ebb__daemon *d, ebb_http_server *server) {
    const ebb_dashboard_opts opts = {.prefix = "",
                                     .token_file = d->token,
                                     .hosts = d->hosts.at,
                                     .store = d->open_store,
                                     .worker = d->worker};
    ebb_status st = ebb_dashboard_mount(cx, server, &opts);
    const char *text = ebb_dashboard_error();
    if (st != EBB_OK) ebb__cli_error("%s", text[0] != 0 ? text : ebb_status_text(st));
    return st;
}

/* In the root region: a stop closes it, and the API of the operators goes on. */
static ebb_status open_app(ebb_cx *cx, ebb__daemon *d) {
    if (d->app_http == NULL) return EBB_OK;
    return ebb__app_serve(cx, d->load, d->app_http, &d->app_address, d->open_store);
}

static void print_address(char url[96], const char *before, const ebb_address *at) {
    const bool v6 = strchr(at->ip, ':') != NULL;
    (void)snprintf(url, 96, "http://%s%s%s:%u/", v6 ? "[" : "", at->ip, v6 ? "]" : "", at->port);
    printf("%s%s\n", before, url);
}

static void begin(ebb__daemon *d) {
    char url[96], app[96];
    print_address(url, "", &d->address);
    printf("token: %s\n", d->token);
    if (d->app_http != NULL) print_address(app, "application: ", &d->app_address);
    (void)fflush(stdout); /* main reports a failure of stdout */
    ebb__cli_service_begin(&d->run, url);
}

/* A fiber in the operators' region: the server that it starts lives there too. */
static ebb_status serve_operators(ebb_cx *cx, void *arg) {
    ebb__daemon *d = arg;
    ebb_http_server *server;
    ebb_status st = listen_at(cx, d, &server);
    if (st == EBB_OK) st = mount(cx, d, server);
    if (st == EBB_OK) begin(d);
    return st;
}

static ebb_status open_operators(ebb_cx *cx, ebb__daemon *d) {
    const ebb_region region = ebb_workflow_operator_region(cx, ebb_workflow_of(cx));
    const ebb_task task = ebb_fiber_spawn(cx, region, serve_operators, d, &(ebb_task_opts){.keep = true});
    const ebb_status st = ebb_id_status(task.id);
    return st == EBB_OK ? ebb_task_join(cx, task) : st;
}

/* Operators are no work, and a service without work ends: this fiber stays until the stop. */
static ebb_status serve(ebb_cx *cx, void *arg) {
    ebb__daemon *d = arg;
    ebb_status st = ebb__durable_open(cx, &(ebb_store_opts){.url = d->url}, &d->open_store);
    if (st == EBB_OK) st = ebb__programs_begin(cx, d->programs);
    if (st == EBB_OK) st = open_worker(cx, d);
    if (st == EBB_OK) st = open_app(cx, d);
    if (st == EBB_OK) st = open_operators(cx, d);
    if (st == EBB_OK) ebb__programs_wait(cx, d->programs);
    return st == EBB_OK ? ebb_await(cx, ebb_closing(cx), NULL) : st;
}

static int run_with(ebb__daemon *d, ebb_audit *audit) {
    ebb_workflow_report report = {0};
    ebb_service_opts opts = {
        .loop.runtime.allocator = ebb__cli_allocator(), .report = &report, .inspect = ""};
    opts.shutdown.audit = audit;
    const int code = ebb__cli_service_run(&d->run, &opts, serve, d);
    if (!d->run.begun && report.state == 0)
        ebb__cli_error("it can't start: %s", ebb_status_text(report.status));
    return d->run.begun || code == EBB_SERVICE_OK ? code : EBB__EXIT_USAGE;
}

static int run(ebb__daemon *d) {
    ebb_audit *audit = NULL;
    if (d->load != NULL && (d->app = ebb__app_load(d->load)) == NULL) return EBB__EXIT_USAGE;
    if (d->load != NULL) d->app_http = ebb__app_load_http(d->load);
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

int ebb__cmd_serve(int argc, char **argv) {
    ebb__daemon d = {0};
    if (ebb__help_wanted(argc, argv)) return ebb__help_show(&ebb__help_serve);
    const int code = ebb__daemon_parse(&d, argc - 1, argv + 1) ? run(&d) : EBB__EXIT_USAGE;
    ebb__programs_free(d.programs);
    ebb__daemon_free(&d);
    return code;
}
