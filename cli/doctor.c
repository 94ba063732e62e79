/* cli/doctor.c - `ebb doctor`: whether a machine and a directory are fit for a service, and what to do if not. */
#include "cli/doctor.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/help.h"
#include "serve/line.h"

const ebb__help ebb__help_doctor = {
    .name = "doctor",
    .what = "check whether a machine is fit for a service",
    .text = "Checks what `ebb serve` with the same options would need, and changes nothing: the libraries "
            "against "
            "those of the build, limits of the process, memory maps for fibers, the clock, the directory (it "
            "writes a "
            "file there, syncs it and removes it), the token, the address and the store. Each line is ok, "
            "warn or "
            "fail; behind the last two stands what to do.\n\n"
            "While the service runs, its address is taken, which is a fail: check another with --listen.",
    .forms = (const ebb__help_form[]){{NULL, "", ""}, {0}},
    .options =
        (const ebb__help_option[]){
            {"--config", "FILE", NULL, 0, "The options of the service, as of `ebb serve`."},
            {"--dir", "DIR", NULL, 0, "The directory of the service; .ebb by default."},
            {"--store", "URL", NULL, 0,
             "Its store; by default ebb.db in DIR. Of PostgreSQL it checks the version, a "
             "notification, and the difference of the clocks."},
            {"--listen", "ADDRESS:PORT", NULL, 0, "Its address; 127.0.0.1:7070 by default."},
            {"--json", NULL, NULL, 0,
             "One JSON object a line: check, verdict, text and, if there is any, advice."},
            {0}},
    .exits = (const ebb__help_row[]){{"0", "nothing fails; there may be warnings"},
                                     {"1", "something fails"},
                                     {"2", "wrong arguments"},
                                     {0}},
    .examples = (const ebb__help_row[]){{"ebb doctor --dir /var/lib/ebb --store postgres://ebb@db/ebb",
                                         "What a service on PostgreSQL needs."},
                                        {0}},
};

/* ---- the report -------------------------------------------------------------------------------------- */

static const char *const verdicts[] = {"ok", "warn", "fail"};

static void print_json(const char *verdict, const char *check, const char *text, const char *advice) {
    printf("{\"check\":\"%s\",\"verdict\":\"%s\",\"text\":", check, verdict);
    ebb__print_json_string(stdout, text);
    if (advice != NULL) fputs(",\"advice\":", stdout);
    if (advice != NULL) ebb__print_json_string(stdout, advice);
    puts("}");
}

void ebb__doctor_say(ebb__doctor *d, ebb__verdict v, const char *check, const char *advice,
                     const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ebb__make_plain(text); /* there are texts of the system and of servers in it */
    if (v > d->worst) d->worst = v;
    if (v == EBB__DOCTOR_OK) advice = NULL;
    if (d->json) {
        print_json(verdicts[v], check, text, advice);
        return;
    }
    printf("%-4s  %-12s %s\n", verdicts[v], check, text);
    if (advice != NULL) ebb__help_wrap(stdout, advice, 19);
}

/* ---- arguments --------------------------------------------------------------------------------------- */

static bool is_of_serve(const char *word) {
    static const char *const names[] = {"--config", "--dir", "--store", "--listen"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(word, names[i]) == 0) return true;
    }
    return false;
}

/* What is the daemon's is left in argv for its parser, which knows defaults and forms. */
static bool parse(ebb__doctor *d, int argc, char **argv) {
    int n = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            d->json = true;
            continue;
        }
        if (!is_of_serve(argv[i])) {
            ebb__cli_error("unexpected argument '%s'", argv[i]);
            return false;
        }
        argv[n++] = argv[i];
        if (i + 1 < argc) argv[n++] = argv[++i];
    }
    return ebb__daemon_parse(&d->daemon, n, argv);
}

int ebb__cmd_doctor(int argc, char **argv) {
    ebb__doctor d = {0};
    int code = EBB__EXIT_USAGE;
    if (ebb__help_wanted(argc, argv)) return ebb__help_show(&ebb__help_doctor);
    if (parse(&d, argc - 1, argv + 1)) {
        (void)signal(SIGXFSZ, SIG_IGN); /* a limit of the size of files is to be found, not to end this */
        ebb__doctor_machine(&d);
        ebb__doctor_service(&d);
        code = d.worst == EBB__DOCTOR_FAIL ? EBB__EXIT_BAD : EBB__EXIT_OK;
    }
    ebb__daemon_free(&d.daemon);
    return code;
}
