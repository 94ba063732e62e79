/* cli/main.c - the `ebb` command: finds and calls the subcommand. */
#include "cli/cli.h"
#include "cli/help.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
const ebb__command ebb__commands[] = {
    {&ebb__help_audit, ebb__cmd_audit},
    {&ebb__help_check, ebb__cmd_check},
    {&ebb__help_doctor, ebb__cmd_doctor},
    {&ebb__help_durable, ebb__cmd_durable},
    {&ebb__help_explain, ebb__cmd_explain},
    {&ebb__help_files, ebb__cmd_files},
    {&ebb__help_fixture, ebb__cmd_fixture},
    {&ebb__help_fmt, ebb__cmd_fmt},
    {&ebb__help_help, ebb__cmd_help},
    {&ebb__help_init, ebb__cmd_init},
    {&ebb__help_journal, ebb__cmd_journal},
    {&ebb__help_lab, ebb__cmd_lab},
    {&ebb__help_provider, ebb__cmd_provider},
    {&ebb__help_run, ebb__cmd_run},
    {&ebb__help_serve, ebb__cmd_serve},
    {&ebb__help_test, ebb__cmd_test},
    {&ebb__help_top, ebb__cmd_top},
    {&ebb__help_trace, ebb__cmd_trace},
    {&ebb__help_worker, ebb__cmd_worker},
    {0},
};
/* clang-format on */

static int run(int argc, char **argv) {
    if (argc < 2) {
        ebb__help_list(stderr);
        return EBB__EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        ebb__help_list(stdout);
        return EBB__EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("ebb %s (%s)\n", ebb_version(), EBB_CONTRACT);
        return EBB__EXIT_OK;
    }
    const ebb__command *c = ebb__command_find(argv[1]);
    if (c != NULL) return c->run(argc - 1, argv + 1);
    ebb__cli_error("unknown command '%s'", argv[1]);
    ebb__help_list(stderr);
    return EBB__EXIT_USAGE;
}

/* Standard streams that were closed are held, so that no log, store or connection gets their numbers, and with them what is
 * printed. They are opened the other way round: their use fails as before. */
static bool hold_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

/* The exit code reports a failed write of the output: otherwise the reader of a truncated file would see 0. */
int main(int argc, char **argv) {
    if (!hold_streams()) return EBB__EXIT_USAGE;
    int code = run(argc, argv);
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed) return code;
    ebb__cli_error("can't write the output: %s", strerror(errno));
    return EBB__EXIT_USAGE;
}
