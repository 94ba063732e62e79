/* cli/help.h - what a command takes, written once: `--help`, the man pages and the completions of shells are made of
 * it. */
#ifndef EBB_CLI_HELP_H
#define EBB_CLI_HELP_H

#include <stdbool.h>
#include <stdio.h>

/* One way to call a command. */
typedef struct ebb__help_form {
    const char *verb; /* NULL: the command has none */
    const char *args; /* as FILE...; "" for none */
    const char *text; /* a sentence; "" where the command has one form */
} ebb__help_form;

enum { EBB__HELP_NEEDED = 1, EBB__HELP_REPEATS = 2 }; /* flags of an option */

typedef struct ebb__help_option {
    const char *name;  /* with its dashes */
    const char *value; /* NULL: a flag. FILE and DIR are paths, a|b is one of these words */
    const char *verbs; /* the verbs that take it, with a space between; NULL: all */
    unsigned flags;
    const char *text;
} ebb__help_option;

typedef struct ebb__help_row {
    const char *name, *text;
} ebb__help_row;

/* Arrays end with a row of zeros; NULL is an empty one. Of a text, an empty line parts paragraphs, a line that begins
 * with two spaces stays as it is, and what stands between backticks is what somebody types. */
typedef struct ebb__help {
    const char *name, *what;
    const char *text;
    const ebb__help_form *forms;
    const ebb__help_option *options;
    const ebb__help_row *exits;    /* code, what it means */
    const ebb__help_row *examples; /* command, what it does */
} ebb__help;

typedef struct ebb__command {
    const ebb__help *help;
    int (*run)(int argc, char **argv);
} ebb__command;

extern const ebb__command ebb__commands[]; /* by name; the last is zeros */
const ebb__command *ebb__command_find(const char *name);

/* Whether one of the arguments is --help or -h. */
bool ebb__help_wanted(int argc, char **argv);
/* To stdout; returns EBB__EXIT_OK. */
int ebb__help_show(const ebb__help *h);
/* To stderr; returns EBB__EXIT_USAGE. */
int ebb__help_refuse(const ebb__help *h);

/* A list of all commands. */
void ebb__help_list(FILE *out);
/* In lines of at most 80 characters, each behind `indent` spaces. */
void ebb__help_wrap(FILE *out, const char *text, size_t indent);

/* Whether an option belongs to a form. */
bool ebb__help_takes(const ebb__help_form *f, const ebb__help_option *o);
/* Whether FILE or DIR stand for paths in a word. */
bool ebb__help_is_path(const char *word);

/* The man page of a command; h NULL: that of `ebb`. The date is as 2026-11-19. */
void ebb__help_man(FILE *out, const ebb__help *h, const char *date);
/* The completions for a shell: bash, zsh or fish. False: there is no such shell. */
bool ebb__help_completion(FILE *out, const char *shell);

extern const ebb__help ebb__help_audit, ebb__help_check, ebb__help_doctor, ebb__help_durable,
    ebb__help_explain, ebb__help_files, ebb__help_fixture, ebb__help_fmt, ebb__help_help, ebb__help_init,
    ebb__help_journal, ebb__help_lab, ebb__help_provider, ebb__help_run, ebb__help_serve, ebb__help_test,
    ebb__help_top, ebb__help_trace, ebb__help_worker;

#endif
