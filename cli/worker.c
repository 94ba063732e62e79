/* cli/worker.c - `ebb worker`: a service that runs orchestrations and activities of a store. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/ebb.h>

#include "cli/app.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/service.h"
#include "durable/worker.h"

const ebb__help ebb__help_worker = {
    .name = "worker",
    .what = "run orchestrations and activities of a store",
    .text = "Runs the orchestrations and activities of a store until it is stopped.\n\n"
            "A command of an activity has {\"input\":...,\"key\":\"...\",\"attempt\":N} as its standard "
            "input, and "
            "its standard output is the result; exit 75 asks for another attempt. A cancel sends SIGTERM to "
            "all its "
            "processes; when the shell has ended, or after 2 s, what is left is killed. Write `exec PROGRAM` "
            "if the "
            "program is to have that time.\n\n"
            "SIGTERM or SIGINT (Ctrl-C) hands its work over: it claims nothing more, activities may finish, "
            "those "
            "that do not are cancelled, and other workers get them. A second one stops it at once.",
    .forms = (const ebb__help_form[]){{NULL, "", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--store", "URL", NULL, EBB__HELP_NEEDED,
             "sqlite:PATH, postgres://USER@HOST:PORT/DATABASE or lab:."},
            {"--load", "FILE", NULL, 0,
             "A shared library; its function ebb_app registers what it has (docs/durable.md)."},
            {"--activity", "NAME=COMMAND", NULL, EBB__HELP_REPEATS, "A shell command as an activity."},
            {0}},
    .exits = (const ebb__help_row[]){{"0", "it was stopped"},
                                     {"2", "wrong arguments, a library or a store that can't be used"},
                                     {"3-5", "as of any service, see docs/workflow.md"},
                                     {0}},
    .examples =
        (const ebb__help_row[]){
            {"ebb worker --store sqlite:work.db --activity charge='./charge.sh'", "Runs one activity."}, {0}},
};

typedef struct service {
    const char *url, *app_path;
    const char **activities; /* NAME=COMMAND */
    size_t activities_n;
    ebb_app_fn app; /* NULL: none */
    ebb__cli_service run;
} service;

/* ---- the service ------------------------------------------------------------------------------------- */

static ebb_status add_commands(ebb_worker *w, const service *s) {
    ebb_status st = EBB_OK;
    for (size_t i = 0; i < s->activities_n && st == EBB_OK; i++) st = ebb__app_command(w, s->activities[i]);
    return st;
}

static void begin(service *s, const ebb_worker *w) {
    size_t activities = 0;
    char what[200];
    for (const ebb__registered_activity *a = w->handlers; a != NULL; a = a->next) activities++;
    (void)snprintf(what, sizeof what, "worker %s: orchestrations %zu, activities %zu", w->name, w->orchs_n,
                   activities);
    printf("%s\n", what);
    (void)fflush(stdout); /* main reports a failure of stdout */
    ebb__cli_service_begin(&s->run, what);
}

static ebb_status serve(ebb_cx *cx, void *arg) {
    service *s = arg;
    ebb_store *store = NULL;
    ebb_worker *w = NULL;
    ebb_status st = ebb__durable_open(cx, &(ebb_store_opts){.url = s->url}, &store);
    if (st != EBB_OK) return st;
    st = ebb_worker_open(cx, store, NULL, &w);
    if (st != EBB_OK) {
        ebb__durable_print_error("the worker can't be opened", st);
        return st;
    }
    if (s->app != NULL) st = ebb__app_register(cx, w, s->app_path, s->app);
    if (st == EBB_OK) st = add_commands(w, s);
    if (st != EBB_OK) return st;
    st = ebb_worker_begin(w);
    if (st != EBB_OK) {
        ebb__durable_print_error("the worker can't begin", st);
        return st;
    }
    begin(s, w);
    return EBB_OK;
}

static int run(service *s) {
    const ebb_service_opts opts = {.loop.runtime.allocator = ebb__cli_allocator()};
    if (s->app_path != NULL && (s->app = ebb__app_load(s->app_path)) == NULL) return EBB__EXIT_USAGE;
    const int code = ebb__cli_service_run(&s->run, &opts, serve, s);
    return s->run.begun || code == EBB_SERVICE_OK ? code : EBB__EXIT_USAGE;
}

/* ---- arguments --------------------------------------------------------------------------------------- */

static bool set(service *s, const char *option, const char *value) {
    const char **once = strcmp(option, "--store") == 0  ? &s->url
                        : strcmp(option, "--load") == 0 ? &s->app_path
                                                        : NULL;
    if (once == NULL) {
        s->activities[s->activities_n++] = value;
        const bool valid = ebb__app_is_command(value);
        if (!valid) ebb__cli_error("--activity takes NAME=COMMAND, not '%s'", value);
        return valid;
    }
    if (*once != NULL) ebb__cli_error("%s is given twice", option);
    if (*once != NULL) return false;
    *once = value;
    return true;
}

static bool parse(service *s, int argc, char **argv) {
    static const char *const options[] = {"--store", "--load", "--activity"};
    for (int i = 0; i < argc; i += 2) {
        bool known = false;
        for (size_t k = 0; k < sizeof options / sizeof *options; k++)
            known |= strcmp(argv[i], options[k]) == 0;
        if (!known) ebb__cli_error("unexpected argument '%s'", argv[i]);
        else if (i + 1 == argc) ebb__cli_error("%s needs a value", argv[i]);
        if (!known || i + 1 == argc || !set(s, argv[i], argv[i + 1])) return false;
    }
    if (s->url == NULL) ebb__cli_error("ebb worker needs --store URL");
    else if (s->app_path == NULL && s->activities_n == 0)
        ebb__cli_error("ebb worker needs --load FILE or --activity NAME=COMMAND: it has nothing to run");
    else return true;
    return false;
}

int ebb__cmd_worker(int argc, char **argv) {
    service s = {0};
    if (argc == 1) return ebb__help_refuse(&ebb__help_worker);
    if (ebb__help_wanted(argc, argv)) return ebb__help_show(&ebb__help_worker);
    s.activities = calloc((unsigned)argc, sizeof *s.activities);
    int code = EBB__EXIT_USAGE;
    if (s.activities == NULL) ebb__cli_error("no memory");
    else if (parse(&s, argc - 1, argv + 1)) code = run(&s);
    free(s.activities);
    return code;
}
