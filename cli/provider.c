/* cli/provider.c - `ebb provider test`: the conformance suite against the store of a URL. */
#include "cli/cli.h"
#include "cli/help.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <ebb/provider.h>

const ebb__help ebb__help_provider = {
    .name = "provider",
    .what = "test a store of durable orchestrations",
    .text = "URL is sqlite:PATH, postgres://USER@HOST:PORT/DATABASE or lab:.",
    .forms = (const ebb__help_form[]){{"test", "URL",
                                       "Holds the store to the contract of ebb/provider.h: a line a case. It "
                                       "deletes what it has made, so the "
                                       "store may be in use."},
                                      {"cases", "", "The cases, and what each holds."},
                                      {0}},
    .options =
        (const ebb__help_option[]){{"--match", "TEXT", "test", 0, "Only cases with TEXT in their name."},
                                   {0}},
    .exits = (const ebb__help_row[]){{"0", "all have passed"},
                                     {"1", "some have failed"},
                                     {"2", "the store can't be opened, or the arguments are wrong"},
                                     {0}},
};

typedef struct testing {
    const char *url, *match;
    ebb_status status;
    char text[512];
    uint32_t passed, failed;
} testing;

static void show(void *arg, const char *name, ebb_status st, const char *text) {
    (void)arg;
    if (st == EBB_OK) printf("ok    %s\n", name);
    else printf("FAIL  %s: %s\n", name, text);
    (void)fflush(stdout);
}

static ebb_status run(ebb_cx *cx, void *arg) {
    testing *t = arg;
    const ebb_provider_test_opts opts = {
        .size = sizeof opts, .url = t->url, .match = t->match, .result = show};
    t->status = ebb_provider_test(cx, &opts, &t->passed, &t->failed);
    (void)snprintf(t->text, sizeof t->text, "%s", ebb_durable_error());
    return EBB_OK;
}

static int test(testing *t) {
    ebb_loop *l;
    const ebb_loop_opts opts = {.runtime.allocator = ebb__cli_allocator()};
    ebb_status st = ebb_loop_new(&opts, run, t, &l);
    if (st == EBB_OK) st = ebb_loop_join(l);
    if (st == EBB_OK) st = t->status;
    if (t->passed + t->failed > 0) printf("%" PRIu32 " passed, %" PRIu32 " failed\n", t->passed, t->failed);
    if (st == EBB_OK) return EBB__EXIT_OK;
    if (t->failed > 0) return EBB__EXIT_BAD;
    ebb__cli_error("%s", t->text[0] != 0 ? t->text : ebb_status_text(st));
    return EBB__EXIT_USAGE;
}

static int cases(void) {
    const char *name, *about;
    for (size_t i = 0; (name = ebb_provider_case_at(i, &about)) != NULL; i++)
        printf("%s\n    %s\n", name, about);
    return EBB__EXIT_OK;
}

static int refuse(const char *what, const char *word) {
    ebb__cli_error("%s '%s'", what, word);
    return ebb__help_refuse(&ebb__help_provider);
}

static int parse_test(int argc, char **argv) {
    testing t = {NULL, NULL, EBB_OK, "", 0, 0};
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--match") == 0 && i + 1 < argc) t.match = argv[++i];
        else if (argv[i][0] == '-' || t.url != NULL) return refuse("unexpected argument", argv[i]);
        else t.url = argv[i];
    }
    if (t.url != NULL) return test(&t);
    ebb__cli_error("ebb provider test needs a URL");
    return ebb__help_refuse(&ebb__help_provider);
}

int ebb__cmd_provider(int argc, char **argv) {
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return ebb__help_show(&ebb__help_provider);
    if (argc >= 2 && strcmp(argv[1], "test") == 0) return parse_test(argc, argv);
    if (argc >= 2 && strcmp(argv[1], "cases") == 0)
        return argc == 2 ? cases() : refuse("unexpected argument", argv[2]);
    if (argc >= 2) return refuse("unknown command", argv[1]);
    return ebb__help_refuse(&ebb__help_provider);
}
