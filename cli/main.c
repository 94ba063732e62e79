/* cli/main.c - the `ebb` command: finds and calls the subcommand. */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

typedef struct command {
    const char *name, *what;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"audit", "show and verify audit logs of workflows", ebb__cmd_audit},
    {"check", "check programs of typestate machines (.ebb)", ebb__cmd_check},
    {"durable", "start, look at and steer durable orchestrations", ebb__cmd_durable},
    {"explain", "what a diagnostic of the compiler means", ebb__cmd_explain},
    {"files", "serve the files of a directory over HTTP", ebb__cmd_files},
    {"fixture", "run the fixtures of the cancel contract", ebb__cmd_fixture},
    {"fmt", "format .ebb files", ebb__cmd_fmt},
    {"journal", "show and replay journals", ebb__cmd_journal},
    {"lab", "run and explore scenarios, replay what failed", ebb__cmd_lab},
    {"provider", "test a store of durable orchestrations", ebb__cmd_provider},
    {"run", "run a program of typestate machines (.ebb)", ebb__cmd_run},
    {"serve", "serve a store and what runs it to operators, over HTTP", ebb__cmd_serve},
    {"test", "test programs of typestate machines in the lab", ebb__cmd_test},
    {"top", "look at a running service", ebb__cmd_top},
    {"trace", "show, verify, compare and export traces", ebb__cmd_trace},
    {"worker", "run orchestrations and activities of a store", ebb__cmd_worker},
};

static void print_commands(FILE *out) {
    fputs("usage: ebb COMMAND ...\n\ncommands:\n", out);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
    }
    fputs(
        "  help       this list; `ebb COMMAND --help` says more\n  --version  the version and its contract\n",
        out);
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        print_commands(stderr);
        return EBB__EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_commands(stdout);
        return EBB__EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("ebb %s (%s)\n", ebb_version(), EBB_CONTRACT);
        return EBB__EXIT_OK;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    }
    ebb__cli_error("unknown command '%s'", argv[1]);
    print_commands(stderr);
    return EBB__EXIT_USAGE;
}

/* The exit code reports a failed write of the output: otherwise the reader of a truncated file would see 0. */
int main(int argc, char **argv) {
    int code = run(argc, argv);
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed) return code;
    ebb__cli_error("can't write the output: %s", strerror(errno));
    return EBB__EXIT_USAGE;
}
