/* cli/help_command.c - `ebb help`: a command's help, and the man pages and completions that packages install. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/help.h"

const ebb__help ebb__help_help = {
    .name = "help",
    .what = "what a command takes; man pages and completions",
    .text = "Without an argument it lists the commands. The man pages and completions are made of the same "
            "tables.",
    .forms = (const ebb__help_form[]){{NULL, "[COMMAND]", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--completion", "bash|zsh|fish", NULL, 0, "Prints the completions for a shell."},
            {"--write", "DIR", NULL, 0,
             "Writes the man pages and the completions of all shells below DIR, as below /usr/share. "
             "$SOURCE_DATE_EPOCH is their date; without it, today is."},
            {0}},
    .exits = (const ebb__help_row[]){{"0", "it was printed or written"},
                                     {"2", "wrong arguments, or a file that can't be written"},
                                     {0}},
    .examples = (const ebb__help_row[]){{"source <(ebb help --completion bash)",
                                         "Completions in this shell, where no package has installed them."},
                                        {0}},
};

/* ---- files ------------------------------------------------------------------------------------------- */

/* What stands in a file below DIR: the page of a command, or that of `ebb`, or the completions for a shell. */
typedef struct page {
    const char *directory, *shell;
    const ebb__help *help;
    const char *date;
} page;

static bool make_directories(char *path) {
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = 0;
        const bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        *at = '/';
        if (!made) return false;
    }
    return true;
}

static bool write_page(const page *p, const char *name) {
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", p->directory, name);
    errno = ENAMETOOLONG;
    FILE *out = n > 0 && n < (int)sizeof path && make_directories(path) ? fopen(path, "w") : NULL;
    if (out != NULL && p->shell != NULL) (void)ebb__help_completion(out, p->shell);
    else if (out != NULL) ebb__help_man(out, p->help, p->date);
    bool ok = out != NULL && ferror(out) == 0;
    if (out != NULL && fclose(out) != 0) ok = false;
    if (!ok) ebb__cli_error("can't write %s/%s: %s", p->directory, name, strerror(errno));
    return ok;
}

static bool write_shells(page p) {
    static const struct {
        const char *shell, *name;
    } files[] = {{"bash", "bash-completion/completions/ebb"},
                 {"zsh", "zsh/vendor-completions/_ebb"},
                 {"fish", "fish/vendor_completions.d/ebb.fish"}};
    bool ok = true;
    for (size_t i = 0; i < sizeof files / sizeof *files && ok; i++) {
        p.shell = files[i].shell;
        ok = write_page(&p, files[i].name);
    }
    return ok;
}

static bool write_pages(page p) {
    char name[64];
    bool ok = write_page(&p, "man/man1/ebb.1");
    for (const ebb__command *c = ebb__commands; c->help != NULL && ok; c++) {
        p.help = c->help;
        (void)snprintf(name, sizeof name, "man/man1/ebb-%s.1", c->help->name);
        ok = write_page(&p, name);
    }
    return ok;
}

static bool find_date(char *text, size_t room) {
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    uint64_t seconds = (uint64_t)time(NULL);
    struct tm tm;
    if (epoch != NULL && !ebb__cli_number("SOURCE_DATE_EPOCH", epoch, 0, 253402300799, &seconds))
        return false;
    const time_t at = (time_t)seconds;
    return gmtime_r(&at, &tm) != NULL && strftime(text, room, "%Y-%m-%d", &tm) > 0;
}

static int write_all(const char *directory) {
    char date[16];
    const page p = {.directory = directory, .date = date};
    return find_date(date, sizeof date) && write_pages(p) && write_shells(p) ? EBB__EXIT_OK : EBB__EXIT_USAGE;
}

/* ---- arguments --------------------------------------------------------------------------------------- */

static int show(const char *name) {
    const ebb__command *c = ebb__command_find(name);
    if (c != NULL) return ebb__help_show(c->help);
    ebb__cli_error("unknown command '%s'", name);
    ebb__help_list(stderr);
    return EBB__EXIT_USAGE;
}

static int complete(const char *shell) {
    if (ebb__help_completion(stdout, shell)) return EBB__EXIT_OK;
    ebb__cli_error("--completion takes bash, zsh or fish, not '%s'", shell);
    return EBB__EXIT_USAGE;
}

int ebb__cmd_help(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    const bool shell = strcmp(word, "--completion") == 0, write = strcmp(word, "--write") == 0;
    if (argc == 1) {
        ebb__help_list(stdout);
        return EBB__EXIT_OK;
    }
    if (ebb__help_wanted(argc, argv)) return ebb__help_show(&ebb__help_help);
    if ((shell || write) && argc == 2) ebb__cli_error("%s needs a value", word);
    else if (word[0] == '-' && !shell && !write) ebb__cli_error("unknown option '%s'", word);
    else if (argc > (shell || write ? 3 : 2)) ebb__cli_error("unexpected argument '%s'", argv[argc - 1]);
    else return shell ? complete(argv[2]) : write ? write_all(argv[2]) : show(word);
    return EBB__EXIT_USAGE;
}
