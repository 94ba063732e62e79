/* cli/help.c - the help of the commands, as plain text for a terminal. */
#include "cli/help.h"

#include <string.h>

#include "cli/cli.h"

/* ---- lines ------------------------------------------------------------------------------------------- */

enum { WIDTH = 80, MANY_FORMS = 6 };

/* Pieces are put one behind the other, with a space between; what does not fit begins a new line. */
typedef struct lines {
    FILE *out;
    size_t indent; /* of the next line */
    size_t column; /* 0: nothing is on the line, not even the indent */
    size_t pieces; /* on the line */
} lines;

static void end_line(lines *l) {
    if (l->column > 0) fputc('\n', l->out);
    l->column = l->pieces = 0;
}

static void put(lines *l, const char *s, size_t n) {
    if (l->pieces > 0 && l->column + 1 + n > WIDTH) end_line(l);
    if (l->column == 0) l->column = (size_t)fprintf(l->out, "%*s", (int)l->indent, "");
    else if (l->pieces > 0) l->column += (size_t)fprintf(l->out, " ");
    l->column += (size_t)fprintf(l->out, "%.*s", (int)n, s);
    l->pieces++;
}

static void put_words(lines *l, const char *s, const char *end) {
    while (s < end) {
        size_t n = strcspn(s, " \n");
        if (n > (size_t)(end - s)) n = (size_t)(end - s);
        if (n > 0) put(l, s, n);
        s += n + 1;
    }
}

void ebb__help_wrap(FILE *out, const char *text, size_t indent) {
    lines l = {out, indent, 0, 0};
    for (const char *s = text; *s != 0;) {
        size_t n = strcspn(s, "\n");
        bool as_it_is = strncmp(s, "  ", 2) == 0, empty = n == 0;
        if (as_it_is || empty) end_line(&l);
        if (as_it_is || empty) fprintf(out, "%*s%.*s\n", empty ? 0 : (int)indent, "", (int)n, s);
        else put_words(&l, s, s + n);
        s += n + (s[n] == '\n');
    }
    end_line(&l);
}

/* A name, and behind it or, if it is long, below it, its text. */
static void put_row(FILE *out, const char *name, size_t width, const char *text) {
    lines l = {out, width + 4, width + 4, 0};
    const bool fits = strlen(name) <= width;
    fprintf(out, fits ? "  %-*s  " : "  %-*s\n", (int)width, name);
    if (!fits) l.column = 0;
    put_words(&l, text, text + strlen(text));
    end_line(&l);
}

/* ---- a command --------------------------------------------------------------------------------------- */

bool ebb__help_takes(const ebb__help_form *f, const ebb__help_option *o) {
    if (o->verbs == NULL || f->verb == NULL) return true;
    size_t length = strlen(f->verb), n;
    for (const char *s = o->verbs; *s != 0; s += n + (s[n] == ' ')) {
        n = strcspn(s, " ");
        if (n == length && strncmp(s, f->verb, n) == 0) return true;
    }
    return false;
}

bool ebb__help_is_path(const char *word) {
    return word != NULL && (strstr(word, "FILE") != NULL || strstr(word, "DIR") != NULL);
}

static void put_option(lines *l, const ebb__help_option *o) {
    char text[128];
    const bool needed = (o->flags & EBB__HELP_NEEDED) != 0;
    int n = snprintf(text, sizeof text, "%s%s%s%s%s%s", needed ? "" : "[", o->name,
                     o->value != NULL ? " " : "", o->value != NULL ? o->value : "", needed ? "" : "]",
                     (o->flags & EBB__HELP_REPEATS) != 0 ? "..." : "");
    put(l, text, (size_t)n);
}

/* The options of a form; without a form, those of all verbs. */
static void put_options(lines *l, const ebb__help *h, const ebb__help_form *f) {
    for (const ebb__help_option *o = h->options; o != NULL && o->name != NULL; o++) {
        if (f == NULL ? o->verbs == NULL : ebb__help_takes(f, o)) put_option(l, o);
    }
}

static size_t count_forms(const ebb__help *h) {
    size_t n = 0;
    while (h->forms[n].args != NULL) n++;
    return n;
}

/* What does not fit in a line stands a little to the right of it. */
static void print_form(FILE *out, const ebb__help *h, const ebb__help_form *f, const char *before) {
    lines l = {out, 11, (size_t)fprintf(out, "%s", before), 0};
    put(&l, "ebb", 3);
    put(&l, h->name, strlen(h->name));
    if (f == NULL) put(&l, "COMMAND ...", strlen("COMMAND ..."));
    if (f != NULL && f->verb != NULL) put(&l, f->verb, strlen(f->verb));
    if (f != NULL) put_words(&l, f->args, f->args + strlen(f->args));
    put_options(&l, h, f);
    end_line(&l);
}

static void print_usage(FILE *out, const ebb__help *h) {
    const char *before = "usage: ";
    if (count_forms(h) > MANY_FORMS) print_form(out, h, NULL, before);
    for (size_t i = 0; i < count_forms(h) && count_forms(h) <= MANY_FORMS; i++) {
        print_form(out, h, &h->forms[i], before);
        before = "       ";
    }
}

static void print_verbs(FILE *out, const ebb__help *h) {
    const bool whole = count_forms(h) > MANY_FORMS;
    if (h->forms->verb == NULL) return;
    fputs("\ncommands:\n", out);
    for (const ebb__help_form *f = h->forms; f->args != NULL; f++) {
        if (!whole) {
            put_row(out, f->verb, 10, f->text);
            continue;
        }
        lines l = {out, 4, (size_t)fprintf(out, "  %s", f->verb), 1};
        put_words(&l, f->args, f->args + strlen(f->args));
        for (const ebb__help_option *o = h->options; o->name != NULL; o++) {
            if (o->verbs != NULL && ebb__help_takes(f, o)) put_option(&l, o);
        }
        end_line(&l);
        ebb__help_wrap(out, f->text, 6);
    }
}

static void print_options(FILE *out, const ebb__help *h) {
    char name[64];
    if (h->options == NULL) return;
    fputs("\noptions:\n", out);
    for (const ebb__help_option *o = h->options; o->name != NULL; o++) {
        const bool value = o->value != NULL;
        (void)snprintf(name, sizeof name, "%s%s%s", o->name, value ? " " : "", value ? o->value : "");
        put_row(out, name, 18, o->text);
    }
}

static void print_rows(FILE *out, const char *title, const ebb__help_row *rows) {
    if (rows == NULL) return;
    fprintf(out, "\n%s:\n", title);
    for (const ebb__help_row *r = rows; r->name != NULL; r++) put_row(out, r->name, 3, r->text);
}

static void print_examples(FILE *out, const ebb__help_row *rows) {
    if (rows == NULL) return;
    fputs("\nexamples:\n", out);
    for (const ebb__help_row *r = rows; r->name != NULL; r++) {
        fprintf(out, "  %s\n", r->name);
        ebb__help_wrap(out, r->text, 6);
    }
}

static void print(FILE *out, const ebb__help *h) {
    print_usage(out, h);
    fputc('\n', out);
    ebb__help_wrap(out, h->text, 0);
    print_verbs(out, h);
    print_options(out, h);
    print_rows(out, "exit codes", h->exits);
    print_examples(out, h->examples);
}

int ebb__help_show(const ebb__help *h) {
    print(stdout, h);
    return EBB__EXIT_OK;
}

int ebb__help_refuse(const ebb__help *h) {
    print(stderr, h);
    return EBB__EXIT_USAGE;
}

bool ebb__help_wanted(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    }
    return false;
}

/* ---- all commands ------------------------------------------------------------------------------------ */

const ebb__command *ebb__command_find(const char *name) {
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++) {
        if (strcmp(c->help->name, name) == 0) return c;
    }
    return NULL;
}

void ebb__help_list(FILE *out) {
    fputs("usage: ebb COMMAND ...\n\ncommands:\n", out);
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++)
        put_row(out, c->help->name, 10, c->help->what);
    put_row(out, "--version", 10, "the version and its contract");
    fputs("\n`ebb COMMAND --help` says more.\n", out);
}
