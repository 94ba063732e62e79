/* cli/durable.c - `ebb durable`: the clients and operators of a store, from the command line. */
#include "cli/durable.h"

#include <stdlib.h>
#include <string.h>

#include <ebb/ebb.h>

#include "cli/app.h"

#include "cli/help.h"

#define MATCHING "cancel list prune" /* the verbs that take a filter */
#define BULK     "cancel prune"

const ebb__help ebb__help_durable = {
    .name = "durable",
    .what = "start, look at and steer durable orchestrations",
    .text =
        "Works on the instances of a store, beside the workers that run them. A process that has the SQLite "
        "file is asked over its socket, PATH.sock.\n\n"
        "The options --name, --prefix, --parent, --state, --started-after and --ended-before are a filter: "
        "all that are given must hold. A time is as 2026-11-19T16:00:00Z, or how long ago as 90s, 15m, 2h or "
        "7d. A JSON is a value, or @FILE with it.",
    .forms =
        (const ebb__help_form[]){
            {"start", "NAME", "Starts an instance, and prints its id."},
            {"signal", "ID NAME", "Sends it a signal."},
            {"status", "ID", "How it is now."},
            {"wait", "ID", "Waits until it has ended, and prints how."},
            {"cancel", "[ID]", "Asks it, or all that match a filter, to end; its code may clean up."},
            {"terminate", "ID", "Ends it now; its code does not run."},
            {"list", "", "A line an instance."},
            {"tree", "ID", "It and its children."},
            {"history", "ID", "Its events."},
            {"replay", "ID", "Runs its history with the code of a library, and changes nothing."},
            {"delete", "ID", "Deletes what is stored of it, if it has ended."},
            {"prune", "", "Deletes all that match a filter and have ended."},
            {"reset", "ID EVENT", "Goes on from the turn of that event."},
            {"resume", "ID", "Lets a suspended one go on."},
            {0}},
    .options =
        (const ebb__help_option[]){
            {"--store", "URL", NULL, EBB__HELP_NEEDED, "sqlite:PATH or postgres://USER@HOST:PORT/DATABASE."},
            {"--json", NULL, NULL, 0, "One JSON object a line, for programs."},
            {"--id", "ID", "start", 0, "The instance's id; without it, a new one."},
            {"--input", "JSON", "start", 0, "What the orchestration gets."},
            {"--version", "N", "start", 0,
             "The version of its code; without it, the highest that the worker has."},
            {"--reuse", NULL, "start", 0, "If the instance of that id has ended: a new execution of it."},
            {"--body", "JSON", "signal", 0, "What the signal carries."},
            {"--dedup", "KEY", "signal", 0, "A second signal with the same key is dropped."},
            {"--reason", "TEXT", "cancel terminate", 0, "Why; it is kept in the history."},
            {"--name", "NAME", MATCHING, 0, "Instances of this orchestration."},
            {"--prefix", "TEXT", MATCHING, 0, "Instances whose id begins with it."},
            {"--parent", "ID", MATCHING, 0, "Children of this instance."},
            {"--state", "Running|Suspended|Completed|Failed|Cancelled|Terminated", MATCHING,
             EBB__HELP_REPEATS, "Instances in one of these states."},
            {"--started-after", "TIME", MATCHING, 0, "Instances that were started later."},
            {"--ended-before", "TIME", MATCHING, 0, "Instances that had ended by then."},
            {"--most", "N", "list", 0, "At most that many lines."},
            {"--all", NULL, BULK, 0, "All instances, in place of a filter."},
            {"--dry-run", NULL, BULK, 0, "Changes nothing; says what it would change."},
            {"--progress", NULL, BULK, 0, "Shows progress, also if stderr is not a terminal."},
            {"--execution", "N", "history", 0, "That execution; without it, the last."},
            {"--verify", NULL, "history", 0, "Proves from the events that they are sound."},
            {"--load", "FILE", "replay", EBB__HELP_NEEDED, "The shared library with the code."},
            {"--force", NULL, "delete", 0, "Also if it has not ended."},
            {0}},
    .exits = (const ebb__help_row[]){{"0", "done"},
                                     {"1", "refused: the instance is not there, it has not completed, its "
                                           "history is not sound, or the code "
                                           "differs"},
                                     {"2", "wrong arguments, or a store or a library that can't be used"},
                                     {0}},
    .examples =
        (const ebb__help_row[]){
            {"ebb durable list --store sqlite:.ebb/ebb.db --state failed", "What has failed."},
            {"ebb durable cancel --store sqlite:.ebb/ebb.db --prefix order- --dry-run",
             "What a cancel of all whose id begins with order- would cancel."},
            {0}},
};

/* ---- the commands ------------------------------------------------------------------------------------ */

typedef struct command {
    const char *name;
    size_t least, most; /* words */
    uint32_t takes;
    enum { READS, WRITES, CREATES } access;
    ebb__durable_fn *run;
} command;

static const command commands[] = {
    {"start", 1, 1, EBB__DURABLE_NEW_ID | EBB__DURABLE_INPUT | EBB__DURABLE_VERSION | EBB__DURABLE_REUSE,
     CREATES, ebb__durable_start},
    {"signal", 2, 2, EBB__DURABLE_BODY | EBB__DURABLE_DEDUP, WRITES, ebb__durable_signal},
    {"status", 1, 1, 0, READS, ebb__durable_status},
    {"wait", 1, 1, 0, READS, ebb__durable_wait},
    {"cancel", 0, 1, EBB__DURABLE_REASON | EBB__DURABLE_FILTER | EBB__DURABLE_BULK, WRITES,
     ebb__durable_cancel},
    {"terminate", 1, 1, EBB__DURABLE_REASON, WRITES, ebb__durable_terminate},
    {"list", 0, 0, EBB__DURABLE_FILTER | EBB__DURABLE_MOST, READS, ebb__durable_list},
    {"tree", 1, 1, 0, READS, ebb__durable_tree},
    {"history", 1, 1, EBB__DURABLE_EXECUTION | EBB__DURABLE_VERIFY, READS, ebb__durable_history},
    {"replay", 1, 1, EBB__DURABLE_LOAD, READS, ebb__durable_replay},
    {"delete", 1, 1, EBB__DURABLE_FORCE, WRITES, ebb__durable_delete},
    {"prune", 0, 0, EBB__DURABLE_FILTER | EBB__DURABLE_BULK, WRITES, ebb__durable_prune},
    {"reset", 2, 2, 0, WRITES, ebb__durable_reset},
    {"resume", 1, 1, 0, WRITES, ebb__durable_resume},
};

static const command *find(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    }
    return NULL;
}

int ebb__durable_failed(const char *thing, ebb_status st) {
    ebb__durable_print_error(thing, st);
    return EBB__EXIT_BAD;
}

/* ---- the store --------------------------------------------------------------------------------------- */

static const uint64_t look_again_ns = 200 * EBB_MS;

typedef struct session {
    const command *command;
    ebb__durable_args *args;
    int code;
} session;

static ebb_status once(ebb_cx *cx, session *s) {
    const ebb_store_opts opts = {.url = s->args->url,
                                 .client = true,
                                 .read_only = s->command->access == READS,
                                 .no_create = s->command->access != CREATES};
    ebb_store *store = NULL;
    ebb_status st = ebb__durable_open(cx, &opts, &store);
    s->code = EBB__EXIT_USAGE;
    if (st != EBB_OK) return st;
    s->args->again = false;
    s->code = s->command->run(cx, store, s->args);
    return ebb_await(cx, ebb_store_close(cx, store), NULL);
}

static ebb_status run(ebb_cx *cx, void *arg) {
    session *s = arg;
    ebb_status st = once(cx, s);
    while (st == EBB_OK && s->args->again) {
        ebb_sleeper nap = {0};
        st = ebb_sleep(cx, &nap, look_again_ns);
        if (st == EBB_OK) st = once(cx, s);
    }
    return EBB_OK;
}

static int run_command(const command *c, ebb__durable_args *a) {
    session s = {c, a, EBB__EXIT_USAGE};
    ebb_loop *l;
    const ebb_loop_opts opts = {.runtime.allocator = ebb__cli_allocator()};
    ebb_status st = ebb_loop_new(&opts, run, &s, &l);
    if (st == EBB_OK) st = ebb_loop_join(l);
    if (st == EBB_OK) return s.code;
    ebb__cli_error("%s", ebb_status_text(st));
    return EBB__EXIT_USAGE;
}

/* ---- arguments --------------------------------------------------------------------------------------- */

int ebb__cmd_durable(int argc, char **argv) {
    const command *c = argc > 1 ? find(argv[1]) : NULL;
    if (ebb__help_wanted(argc, argv)) return ebb__help_show(&ebb__help_durable);
    if (c == NULL) {
        if (argc > 1) ebb__cli_error("ebb durable has no command '%s'", argv[1]);
        return ebb__help_refuse(&ebb__help_durable);
    }
    ebb__durable_args a = {.command = c->name};
    const bool read = ebb__durable_parse(&a, argc - 2, argv + 2, c->takes, c->least, c->most);
    const int code = read ? run_command(c, &a) : EBB__EXIT_USAGE;
    free(a.file.bytes);
    return code;
}
