/* cli/cli.h - what the subcommands of `ebb` share. */
#ifndef EBB_CLI_H
#define EBB_CLI_H

#include <ebb/trace.h>
#include <stdio.h>

/* Exit codes, the same for every subcommand. */
enum {
    EBB__EXIT_OK = 0,
    EBB__EXIT_BAD = 1,  /* the checked file breaks a rule, or the compared files differ */
    EBB__EXIT_USAGE = 2 /* wrong arguments, or a file that is of another kind or can't be read or written */
};

/* Subcommands: argv[0] is their name. They return an exit code. A new one is declared here and gets a row in the
 * table of cli/main.c. */
int ebb__cmd_audit(int argc, char **argv);
int ebb__cmd_check(int argc, char **argv);
int ebb__cmd_doctor(int argc, char **argv);
int ebb__cmd_durable(int argc, char **argv);
int ebb__cmd_explain(int argc, char **argv);
int ebb__cmd_files(int argc, char **argv);
int ebb__cmd_fixture(int argc, char **argv);
int ebb__cmd_fmt(int argc, char **argv);
int ebb__cmd_help(int argc, char **argv);
int ebb__cmd_init(int argc, char **argv);
int ebb__cmd_journal(int argc, char **argv);
int ebb__cmd_lab(int argc, char **argv);
int ebb__cmd_provider(int argc, char **argv);
int ebb__cmd_run(int argc, char **argv);
int ebb__cmd_serve(int argc, char **argv);
int ebb__cmd_test(int argc, char **argv);
int ebb__cmd_top(int argc, char **argv);
int ebb__cmd_trace(int argc, char **argv);
int ebb__cmd_worker(int argc, char **argv);

/* "ebb: ..." and a newline to stderr. */
__attribute__((format(printf, 1, 2))) void ebb__cli_error(const char *format, ...);

ebb_allocator ebb__cli_allocator(void);

/* The value of an option: a whole number from `least` to `most`. False: an error was printed. */
bool ebb__cli_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out);

/* A whole file in memory; free(bytes). On failure an error is printed and false is returned. */
typedef struct ebb__cli_file {
    const char *path;
    uint8_t *bytes;
    size_t n;
} ebb__cli_file;
bool ebb__cli_read(const char *path, ebb__cli_file *out);
/* Of a file of more than `most` bytes, the beginning, which is longer than that. */
bool ebb__cli_read_most(const char *path, size_t most, ebb__cli_file *out);

/* A text that grows; zeroed, it is empty. free(bytes). `failed`: there was no memory, and a part is missing. */
typedef struct ebb__buffer {
    char *bytes;
    size_t n, room;
    bool failed;
} ebb__buffer;
void ebb__buffer_add(void *buffer, const char *s, size_t n); /* also as a function that writes */

/* Prints a word, quoted for the shell if it needs to be. */
void ebb__cli_quote(FILE *out, const char *word);

/* Whether a reader could not be opened because the file is of another kind, rather than damaged. */
bool ebb__cli_is_other_kind(ebb_status st, const ebb_trace_reader *r);

/* Progress on stderr for work that takes a second or more, if stderr is a terminal or the user asks for it. Call
 * `step` often; it reads the clock only now and then. */
typedef struct ebb__progress {
    const char *what;
    bool wanted, shown;
    uint64_t calls, start_ms, last_ms;
} ebb__progress;
ebb__progress ebb__progress_begin(const char *what, bool requested);
void ebb__progress_step(ebb__progress *p, uint64_t done, uint64_t of);
void ebb__progress_end(ebb__progress *p);

#endif
