/* cli/help_man.c - the help of the commands as man pages, in the macros of man(7). */
#include <ctype.h>
#include <ebb/base.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"

/* ---- text -------------------------------------------------------------------------------------------- */

/* What stands between backticks is bold. */
static void put_char(FILE *out, char c, bool *bold) {
    switch (c) {
    case '`':
        *bold = !*bold;
        fputs(*bold ? "\\fB" : "\\fR", out);
        return;
    case '\\': fputs("\\e", out); return;
    case '-': fputs("\\-", out); return;
    case '\'': fputs("\\(aq", out); return;
    case '~': fputs("\\(ti", out); return;
    case '^': fputs("\\(ha", out); return;
    default: fputc(c, out); return;
    }
}

static void put(FILE *out, const char *s, size_t n) {
    bool bold = false;
    if (n > 0 && s[0] == '.') fputs("\\&", out);
    for (size_t i = 0; i < n; i++) put_char(out, s[i], &bold);
}

static void put_string(FILE *out, const char *s) {
    put(out, s, strlen(s));
}

/* A sentence a line would be the custom; a paragraph a line is what a generator can do. */
static void put_text(FILE *out, const char *text, bool in_list) {
    bool literal = false;
    for (const char *s = text; *s != 0;) {
        size_t n = strcspn(s, "\n");
        const bool as_it_is = strncmp(s, "  ", 2) == 0;
        if (as_it_is != literal) fputs(as_it_is ? ".nf\n" : ".fi\n", out);
        literal = as_it_is;
        if (n == 0) fputs(in_list ? ".IP\n" : ".PP\n", out);
        else put(out, s, n), fputc('\n', out);
        s += n + (s[n] == '\n');
    }
    if (literal) fputs(".fi\n", out);
}

static void put_upper(FILE *out, const char *s) {
    for (; *s != 0; s++) fputc(toupper((unsigned char)*s), out);
}

/* ---- a command --------------------------------------------------------------------------------------- */

static void put_option(FILE *out, const ebb__help_option *o) {
    fputs("\\fB", out);
    put_string(out, o->name);
    fputs("\\fR", out);
    if (o->value == NULL) return;
    fputs(" \\fI", out);
    put_string(out, o->value);
    fputs("\\fR", out);
}

static void put_synopsis(FILE *out, const ebb__help *h, const ebb__help_form *f) {
    fprintf(out, ".TP\n\\fBebb %s%s%s\\fR", h->name, f->verb != NULL ? " " : "",
            f->verb != NULL ? f->verb : "");
    if (f->args[0] != 0) {
        fputs(" \\fI", out);
        put_string(out, f->args);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    for (const ebb__help_option *o = h->options; o != NULL && o->name != NULL; o++) {
        if (!ebb__help_takes(f, o)) continue;
        const bool needed = (o->flags & EBB__HELP_NEEDED) != 0;
        fputs(needed ? "" : "[", out);
        put_option(out, o);
        fprintf(out, "%s%s\n", needed ? "" : "]", (o->flags & EBB__HELP_REPEATS) != 0 ? "..." : "");
    }
}

static void put_rows(FILE *out, const char *title, const ebb__help_row *rows) {
    if (rows == NULL) return;
    fprintf(out, ".SH %s\n", title);
    for (const ebb__help_row *r = rows; r->name != NULL; r++) {
        fputs(".TP\n\\fB", out);
        put_string(out, r->name);
        fputs("\\fR\n", out);
        put_text(out, r->text, true);
    }
}

static void put_verbs(FILE *out, const ebb__help *h) {
    if (h->forms->verb == NULL) return;
    fputs(".SH COMMANDS\n", out);
    for (const ebb__help_form *f = h->forms; f->args != NULL; f++) {
        fprintf(out, ".TP\n\\fB%s\\fR", f->verb);
        if (f->args[0] != 0) fputs(" \\fI", out), put_string(out, f->args), fputs("\\fR", out);
        fputc('\n', out);
        put_text(out, f->text, true);
    }
}

static void put_options(FILE *out, const ebb__help *h) {
    if (h->options == NULL) return;
    fputs(".SH OPTIONS\n", out);
    for (const ebb__help_option *o = h->options; o->name != NULL; o++) {
        fputs(".TP\n", out);
        put_option(out, o);
        fputc('\n', out);
        put_text(out, o->text, true);
    }
}

static void put_head(FILE *out, const char *name, const char *what, const char *date) {
    fputs(".TH EBB", out);
    if (name != NULL) fputs("\\-", out), put_upper(out, name);
    fprintf(out, " 1 %s \"ebb %s\" Ebb\n.SH NAME\nebb%s%s \\- ", date, ebb_version(),
            name != NULL ? "\\-" : "", name != NULL ? name : "");
    put_string(out, what);
    fputs("\n.SH SYNOPSIS\n", out);
}

static void put_command(FILE *out, const ebb__help *h, const char *date) {
    put_head(out, h->name, h->what, date);
    for (const ebb__help_form *f = h->forms; f->args != NULL; f++) put_synopsis(out, h, f);
    fputs(".SH DESCRIPTION\n", out);
    put_text(out, h->text, false);
    put_verbs(out, h);
    put_options(out, h);
    put_rows(out, "EXIT STATUS", h->exits);
    put_rows(out, "EXAMPLES", h->examples);
    fputs(".SH SEE ALSO\n.BR ebb (1)\n", out);
}

/* ---- all of them ------------------------------------------------------------------------------------- */

static void put_all(FILE *out, const char *date) {
    static const ebb__help_row exits[] = {
        {"0", "Success."},
        {"1", "What was looked at is wrong: a file breaks a rule, a check or a program has failed."},
        {"2", "Wrong arguments, or a file or a store that can't be used."},
        {"3-5", "A service could not stop in order."},
        {0}};
    static const ebb__help_row environment[] = {
        {"XDG_RUNTIME_DIR", "Where `ebb top` looks for services first."},
        {"EBB_FIXTURES", "The directory of `ebb fixture`."},
        {0}};
    put_head(out, NULL, "work with programs of the Ebb runtime, and run the daemon", date);
    fputs(".B ebb\n.I COMMAND\n\\&...\n.PP\n.B ebb \\-\\-version\n.SH DESCRIPTION\n", out);
    put_text(
        out,
        "Ebb is a C runtime in which stopping is as well defined as starting: tasks, futures, requests, "
        "workflows, durable activities and machines end by one protocol, request, drain, finalize, with a "
        "reason, a budget and a trace.\n\nThe commands, each with a page of its own and with --help:",
        false);
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++) {
        fprintf(out, ".TP\n.BR ebb\\-%s (1)\n", c->help->name);
        put_text(out, c->help->what, true);
    }
    put_rows(out, "EXIT STATUS", exits);
    put_rows(out, "ENVIRONMENT", environment);
    fputs(".SH SEE ALSO\n", out);
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++)
        fprintf(out, ".BR ebb\\-%s (1)%s\n", c->help->name, c[1].help != NULL ? "," : "");
}

void ebb__help_man(FILE *out, const ebb__help *h, const char *date) {
    if (h != NULL) put_command(out, h, date);
    else put_all(out, date);
}
