/* cli/durable.c - `ebb durable`: the clients and operators of a store, from the command line. */
#include "cli/durable.h"

#include <stdlib.h>
#include <string.h>

#include <ebb/ebb.h>

#include "cli/app.h"

static const char usage[] =
    "usage: ebb durable COMMAND ... --store URL [--json]\n"
    "\n"
    "  start NAME [--id ID] [--input JSON] [--version N] [--reuse]   starts an instance; prints it\n"
    "  signal ID NAME [--body JSON] [--dedup KEY]                    sends it a signal\n"
    "  status ID                                                     how it is now\n"
    "  wait ID                                                       until it has ended; prints it\n"
    "  cancel ID [--reason TEXT]                                     asks it to end; its code may clean up\n"
    "  cancel FILTER|--all [--reason TEXT] [--dry-run] [--progress]  asks all that match\n"
    "  terminate ID [--reason TEXT]                                  ends it now; its code does not run\n"
    "  list [FILTER] [--most N]                                      a line an instance\n"
    "  tree ID                                                       it and its children\n"
    "  history ID [--execution N] [--verify]                         its events; proves that they are sound\n"
    "  replay ID --load FILE                                         runs its history with the code of FILE\n"
    "  delete ID [--force]                                           what is stored of it, if it has ended\n"
    "  prune FILTER|--all [--dry-run] [--progress]                   deletes all that match and have ended\n"
    "  reset ID EVENT                                                goes on from the turn of that event\n"
    "  resume ID                                                     lets a suspended one go on\n"
    "\n"
    "FILTER: --name NAME, --prefix TEXT (of ids), --parent ID, --state STATE (may be repeated),\n"
    "        --started-after TIME, --ended-before TIME (2026-11-19T16:00:00Z, or 15m, 2h, 7d ago); all hold\n"
    "JSON:   a value, or @FILE\n"
    "URL:    sqlite:PATH, postgres://USER@HOST:PORT/DATABASE. A process that has the SQLite file is asked\n"
    "        over its socket, PATH.sock.\n"
    "--json  one JSON object a line, for programs\n"
    "\n"
    "Exit code 0: done; 1: refused, as for an instance that is not there, or it has not completed, its "
    "history\n"
    "is not sound, or the code differs; 2: wrong arguments, or a store or library that can't be used.\n";

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

static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    }
    return false;
}

int ebb__cmd_durable(int argc, char **argv) {
    const command *c = argc > 1 ? find(argv[1]) : NULL;
    if (wants_help(argc, argv)) {
        fputs(usage, stdout);
        return EBB__EXIT_OK;
    }
    if (c == NULL) {
        if (argc > 1) ebb__cli_error("ebb durable has no command '%s'", argv[1]);
        fputs(usage, stderr);
        return EBB__EXIT_USAGE;
    }
    ebb__durable_args a = {.command = c->name};
    const bool read = ebb__durable_parse(&a, argc - 2, argv + 2, c->takes, c->least, c->most);
    const int code = read ? run_command(c, &a) : EBB__EXIT_USAGE;
    free(a.file.bytes);
    return code;
}
