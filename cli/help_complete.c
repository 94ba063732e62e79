/* cli/help_complete.c - completions of the commands for bash, zsh and fish. */
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"

static bool has_options(const ebb__help *h) {
    return h->options != NULL;
}

static bool has_verbs(const ebb__help *h) {
    return h->forms->verb != NULL;
}

/* A value that is one of several words: a|b. */
static bool is_choice(const char *value) {
    return value != NULL && strchr(value, '|') != NULL;
}

static void put_choices(FILE *out, const char *value) {
    for (; *value != 0; value++) fputc(*value == '|' ? ' ' : *value, out);
}

/* Between single quotes: '\'' is a quote. What is in `escaped` gets a backslash. */
static void put_quoted(FILE *out, const char *s, const char *escaped) {
    for (; *s != 0; s++) {
        if (strchr(escaped, *s) != NULL) fputc('\\', out);
        if (*s == '\'') fputs("'\\''", out);
        else fputc(*s, out);
    }
}

/* ---- bash -------------------------------------------------------------------------------------------- */

static void bash_values(FILE *out, const ebb__help *h) {
    fputs("        case $prev in\n", out);
    for (const ebb__help_option *o = h->options; o->name != NULL; o++) {
        if (o->value == NULL) continue;
        fprintf(out, "        %s)", o->name);
        if (is_choice(o->value)) {
            fputs(" words='", out);
            put_choices(out, o->value);
            fputs("' ;;\n", out);
        } else {
            fputs(ebb__help_is_path(o->value) ? " paths=1 ;;\n" : " return ;;\n", out);
        }
    }
    fputs("        *) prev= ;;\n        esac\n        [[ $prev ]] ||\n    ", out);
}

static void bash_options(FILE *out, const ebb__help *h, const ebb__help_form *f) {
    fputs("words='", out);
    for (const ebb__help_option *o = h->options; o != NULL && o->name != NULL; o++) {
        if (ebb__help_takes(f, o)) fprintf(out, "%s ", o->name);
    }
    fprintf(out, "--help'%s", ebb__help_is_path(f->args) ? " paths=1" : "");
}

static void bash_verbs(FILE *out, const ebb__help *h) {
    fputs("        case $COMP_CWORD:${COMP_WORDS[2]} in\n        2:*) words='", out);
    for (const ebb__help_form *f = h->forms; f->args != NULL; f++) fprintf(out, "%s ", f->verb);
    fputs("--help' ;;\n", out);
    for (const ebb__help_form *f = h->forms; f->args != NULL; f++) {
        fprintf(out, "        *:%s) ", f->verb);
        bash_options(out, h, f);
        fputs(" ;;\n", out);
    }
    fputs("        esac\n", out);
}

static void bash(FILE *out) {
    fputs("# Completions of ebb for bash, made by `ebb help --completion bash`.\n_ebb() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words='' paths=''\n"
          "    case $COMP_CWORD:${COMP_WORDS[1]} in\n    1:*) words='",
          out);
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++) fprintf(out, "%s ", c->help->name);
    fputs("--help --version' ;;\n", out);
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++) {
        fprintf(out, "    *:%s)\n", c->help->name);
        if (has_options(c->help)) bash_values(out, c->help);
        if (has_verbs(c->help)) bash_verbs(out, c->help);
        else fputs("        ", out), bash_options(out, c->help, c->help->forms), fputc('\n', out);
        fputs("        ;;\n", out);
    }
    fputs("    esac\n"
          "    COMPREPLY=()\n"
          "    [[ $words ]] && mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
          "    [[ $paths ]] || return 0\n"
          "    local -a found\n"
          "    mapfile -t found < <(compgen -f -- \"$cur\")\n"
          "    ((${#found[@]} == 0)) || compopt -o filenames 2>/dev/null\n"
          "    COMPREPLY+=(\"${found[@]}\")\n"
          "}\n"
          "complete -F _ebb ebb\n",
          out);
}

/* ---- zsh --------------------------------------------------------------------------------------------- */

static void zsh_arguments(FILE *out, const ebb__help *h, const ebb__help_form *f) {
    fputs("_arguments", out);
    for (const ebb__help_option *o = h->options; o != NULL && o->name != NULL; o++) {
        if (!ebb__help_takes(f, o)) continue;
        fprintf(out, " \\\n            '%s%s[", (o->flags & EBB__HELP_REPEATS) != 0 ? "*" : "", o->name);
        put_quoted(out, o->text, "[]:\\");
        fputc(']', out);
        if (o->value != NULL) {
            fputs(":value:", out);
            if (is_choice(o->value)) fputc('(', out), put_choices(out, o->value), fputc(')', out);
            else if (ebb__help_is_path(o->value)) fputs("_files", out);
        }
        fputc('\'', out);
    }
    fprintf(out, " \\\n            '--help[what it takes]'%s",
            ebb__help_is_path(f->args) ? " '*:file:_files'" : "");
}

static void zsh_described(FILE *out, const char *name, const char *what) {
    fprintf(out, "            '%s:", name);
    put_quoted(out, what, "\\");
    fputs("'\n", out);
}

static void zsh_verbs(FILE *out, const ebb__help *h) {
    fputs("        if ((CURRENT == 2)); then\n            found=(\n", out);
    for (const ebb__help_form *f = h->forms; f->args != NULL; f++) zsh_described(out, f->verb, f->text);
    fputs("            )\n            _describe command found\n            return\n        fi\n"
          "        shift words; ((CURRENT--))\n        case $words[1] in\n",
          out);
    for (const ebb__help_form *f = h->forms; f->args != NULL; f++) {
        fprintf(out, "        %s) ", f->verb);
        zsh_arguments(out, h, f);
        fputs(" ;;\n", out);
    }
    fputs("        esac\n", out);
}

static void zsh(FILE *out) {
    fputs("#compdef ebb\n# Completions of ebb for zsh, made by `ebb help --completion zsh`.\n_ebb() {\n"
          "    local -a found\n    if ((CURRENT == 2)); then\n        found=(\n",
          out);
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++)
        zsh_described(out, c->help->name, c->help->what);
    fputs("        )\n        _describe command found\n        return\n    fi\n"
          "    shift words; ((CURRENT--))\n    case $words[1] in\n",
          out);
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++) {
        fprintf(out, "    %s)\n", c->help->name);
        if (has_verbs(c->help)) zsh_verbs(out, c->help);
        else fputs("        ", out), zsh_arguments(out, c->help, c->help->forms), fputc('\n', out);
        fputs("        ;;\n", out);
    }
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _ebb ]]; then _ebb \"$@\"; else compdef _ebb ebb; fi\n",
          out);
}

/* ---- fish -------------------------------------------------------------------------------------------- */

static void fish_option(FILE *out, const ebb__help *h, const ebb__help_option *o) {
    const bool is_long = strncmp(o->name, "--", 2) == 0;
    fprintf(out, "complete -c ebb -n '__ebb_is %s%s%s' -%c %s", h->name, o->verbs != NULL ? " " : "",
            o->verbs != NULL ? o->verbs : "", is_long ? 'l' : 's', o->name + (is_long ? 2 : 1));
    if (is_choice(o->value)) fputs(" -x -a '", out), put_choices(out, o->value), fputc('\'', out);
    else if (o->value != NULL) fputs(ebb__help_is_path(o->value) ? " -r -F" : " -x", out);
    fputs(" -d '", out);
    for (const char *s = o->text; *s != 0; s++)
        fprintf(out, "%s%c", *s == '\'' || *s == '\\' ? "\\" : "", *s);
    fputs("'\n", out);
}

static void fish_words(FILE *out, const char *condition, const char *word, const char *what) {
    fprintf(out, "complete -c ebb -n '%s' -a %s -d '", condition, word);
    for (const char *s = what; *s != 0; s++) fprintf(out, "%s%c", *s == '\'' || *s == '\\' ? "\\" : "", *s);
    fputs("'\n", out);
}

static void fish_command(FILE *out, const ebb__help *h) {
    char condition[64];
    fish_words(out, "__ebb_is", h->name, h->what);
    for (const ebb__help_form *f = h->forms; f->args != NULL; f++) {
        (void)snprintf(condition, sizeof condition, "__ebb_begins %s", h->name);
        if (f->verb != NULL) fish_words(out, condition, f->verb, f->text);
        (void)snprintf(condition, sizeof condition, "__ebb_is %s %s", h->name,
                       f->verb != NULL ? f->verb : "");
        if (ebb__help_is_path(f->args)) fprintf(out, "complete -c ebb -n '%s' -F\n", condition);
    }
    for (const ebb__help_option *o = h->options; o != NULL && o->name != NULL; o++) fish_option(out, h, o);
}

static void fish(FILE *out) {
    fputs("# Completions of ebb for fish, made by `ebb help --completion fish`.\n"
          "# The words so far are those of a command and one of its verbs; without a command, there are none "
          "yet.\n"
          "function __ebb_is\n"
          "    set -l words (commandline -opc)\n"
          "    if not set -q argv[1]\n        test (count $words) -eq 1\n        return\n    end\n"
          "    test (count $words) -ge 2; and test \"$words[2]\" = $argv[1]; or return\n"
          "    not set -q argv[2]; or contains -- \"$words[3]\" $argv[2..-1]\n"
          "end\n"
          "# A command, and no verb yet.\n"
          "function __ebb_begins\n"
          "    set -l words (commandline -opc)\n"
          "    test (count $words) -eq 2; and test \"$words[2]\" = $argv[1]\n"
          "end\n"
          "complete -c ebb -f\n",
          out);
    for (const ebb__command *c = ebb__commands; c->help != NULL; c++) fish_command(out, c->help);
    fputs("complete -c ebb -l help -d 'what it takes'\n"
          "complete -c ebb -n __ebb_is -l version -d 'the version and its contract'\n",
          out);
}

bool ebb__help_completion(FILE *out, const char *shell) {
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shell, shells[i].name) != 0) continue;
        shells[i].write(out);
        return true;
    }
    return false;
}
