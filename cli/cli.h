/* cli/cli.h - what the subcommands of `ebb` share. */
#ifndef EBB_CLI_H
#define EBB_CLI_H

#include <ebb/kernel.h>
#include <stdio.h>

/* Exit codes, the same for every subcommand. */
enum {
    EBB__EXIT_OK = 0,
    EBB__EXIT_BAD = 1,  /* what was checked or compared is not right */
    EBB__EXIT_USAGE = 2 /* wrong arguments, or a file can't be read or written */
};

/* Subcommands: argv[0] is their name. They return an exit code. A new one is declared here and gets a
 * row in the table of cli/main.c. */
int ebb__cmd_fixture(int argc, char **argv);
int ebb__cmd_journal(int argc, char **argv);
int ebb__cmd_lab(int argc, char **argv);
int ebb__cmd_trace(int argc, char **argv);

/* "ebb: ..." and a newline to stderr. */
__attribute__((format(printf, 1, 2))) void ebb__cli_error(const char *format, ...);

ebb_allocator ebb__cli_allocator(void);

/* A whole file in memory; free(bytes). An error is printed and false returned. */
typedef struct ebb__cli_file {
    const char *path;
    uint8_t *bytes;
    size_t n;
} ebb__cli_file;
bool ebb__cli_read(const char *path, ebb__cli_file *out);

/* Progress on stderr for work that takes a second or more, when that is a terminal or the user asks
 * for it. Call `step` often; it looks at the clock now and then. */
typedef struct ebb__progress {
    const char *what;
    bool wanted, shown;
    uint64_t calls, start_ms, last_ms;
} ebb__progress;
ebb__progress ebb__progress_begin(const char *what, bool asked);
void ebb__progress_step(ebb__progress *p, uint64_t done, uint64_t of);
void ebb__progress_end(ebb__progress *p);

#endif
