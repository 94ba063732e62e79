/* cli/durable_history.c - what an instance has done: shown, verified, run again. */
#include "cli/durable.h"

#include <ebb/ebb.h>

#include <inttypes.h>
#include <string.h>

#include "cli/app.h"
#include "durable/rerun.h"

int ebb__durable_history(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    const ebb_history_opts opts = {.execution = a->execution, .verify = a->verify};
    ebb_value v;
    size_t n;
    const ebb_status st = ebb_await(cx, ebb_instance_history(cx, s, a->words[0], &opts), &v);
    if (st != EBB_OK) return ebb__durable_failed(a->words[0], st);
    const ebb_history_event *e = ebb_history_of(&v, &n);
    if (!a->json) printf(" EVENT   TURN  AT                    KIND\n");
    for (size_t i = 0; i < n; i++) ebb__durable_show_event(&e[i], a->json);
    if (a->verify && !a->json) printf("sound: %zu events\n", n);
    ebb_value_discard(cx, v);
    return EBB__EXIT_OK;
}

/* ---- replay ------------------------------------------------------------------------------------------ */

/* A worker for what the library registers. It never begins, so its store is never asked. */
static ebb_status open_registry(ebb_cx *cx, const char *path, ebb_app_fn app, ebb_worker **out) {
    ebb_value v;
    ebb_status st = ebb_await(cx, ebb_store_open(cx, &(ebb_store_opts){.url = "lab:"}), &v);
    if (st == EBB_OK) st = ebb_worker_open(cx, ebb_store_of(&v), NULL, out);
    if (st != EBB_OK) {
        ebb__durable_print_error(path, st);
        return st;
    }
    return ebb__app_register(cx, *out, path, app);
}

/* `difference` "": there is none. */
static int show_replay(const ebb__durable_args *a, const ebb__rerun *r, const char *difference) {
    const int code = *difference == 0 ? EBB__EXIT_OK : EBB__EXIT_BAD;
    if (a->json) {
        ebb__durable_show_replay(a->words[0], r->turns, difference);
        return code;
    }
    ebb__durable_print_text(a->words[0], strlen(a->words[0]), SIZE_MAX);
    if (code == EBB__EXIT_OK)
        printf(": %" PRIu64 " turns, %s version %" PRIu32 " does what is recorded\n", r->turns, r->name,
               r->version);
    else fputs(": differs: ", stdout);
    ebb__durable_print_text(difference, strlen(difference), SIZE_MAX);
    fputs(code == EBB__EXIT_OK ? "" : "\n", stdout);
    return code;
}

int ebb__durable_replay(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    ebb__rerun r;
    ebb_worker *w;
    const ebb_app_fn app = a->load != NULL ? ebb__app_load(a->load) : NULL;
    if (a->load == NULL) ebb__cli_error("ebb durable replay needs --load FILE, with the code to run");
    if (app == NULL || open_registry(cx, a->load, app, &w) != EBB_OK) return EBB__EXIT_USAGE;
    const ebb_status st = ebb__rerun_instance(cx, s, w, a->words[0], &r);
    ebb_region_close(cx, ebb_worker_region(w)); /* else it goes on */
    if (st == EBB_OK || st == EBB_ERR_NONDETERMINISM) return show_replay(a, &r, r.text);
    return ebb__durable_failed(a->words[0], st);
}
