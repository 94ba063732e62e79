/* cli/durable_one.c - `ebb durable` with one instance. */
#include "cli/durable.h"

#include <ebb/ebb.h>

#include <string.h>

#include "durable/store.h"

bool ebb__durable_info(ebb_cx *cx, ebb_future *f, const char *thing, ebb_value *v, int *code) {
    const ebb_status st = ebb_await(cx, f, v);
    if (st == EBB_OK) return true;
    *code = ebb__durable_failed(thing, st);
    return false;
}

static int show(ebb_cx *cx, const ebb__durable_args *a, ebb_value v, int code) {
    ebb__durable_show(ebb_instance_info_of(&v), a->json);
    ebb_value_discard(cx, v);
    return code;
}

/* What was asked for without an answer: programs get the object {}. */
static int done(ebb_cx *cx, const ebb__durable_args *a, ebb_future *f, const char *what) {
    const ebb_status st = ebb_await(cx, f, NULL);
    if (st != EBB_OK) return ebb__durable_failed(a->words[0], st);
    if (a->json) {
        puts("{}");
        return EBB__EXIT_OK;
    }
    ebb__durable_print_text(a->words[0], strlen(a->words[0]), SIZE_MAX);
    printf(": %s\n", what);
    return EBB__EXIT_OK;
}

int ebb__durable_start(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    int code = EBB__EXIT_OK;
    ebb_value v;
    const ebb_start_opts opts = {.id = a->id,
                                 .name = a->words[0],
                                 .version = (uint32_t)a->version,
                                 .input = a->body,
                                 .reuse = a->reuse};
    const char *thing = a->id != NULL ? a->id : a->words[0];
    return ebb__durable_info(cx, ebb_instance_start(cx, s, &opts), thing, &v, &code) ? show(cx, a, v, code)
                                                                                     : code;
}

int ebb__durable_signal(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    const ebb_signal_opts opts = {.id = a->words[0], .name = a->words[1], .body = a->body, .dedup = a->dedup};
    return done(cx, a, ebb_instance_signal(cx, s, &opts), "signalled");
}

int ebb__durable_status(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    int code = EBB__EXIT_OK;
    ebb_value v;
    return ebb__durable_info(cx, ebb_instance_status(cx, s, a->words[0]), a->words[0], &v, &code)
               ? show(cx, a, v, code)
               : code;
}

static bool has_ended(const ebb_instance_info *i) {
    return i->state != EBB_INSTANCE_RUNNING && i->state != EBB_INSTANCE_SUSPENDED;
}

static int exit_code(const ebb_instance_info *i) {
    return i->state == EBB_INSTANCE_COMPLETED ? EBB__EXIT_OK : EBB__EXIT_BAD;
}

/* The command must not own a SQLite file for as long as it waits: no worker could open it. So there it only looks, and
 * is called again, with the store closed in between. */
int ebb__durable_wait(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    const bool looks = strncmp(a->url, "sqlite:", 7) == 0;
    ebb_value v;
    const ebb_status st = ebb_await(
        cx, looks ? ebb_instance_status(cx, s, a->words[0]) : ebb_instance_wait(cx, s, a->words[0]), &v);
    a->again = looks && st == EBB_ERR_UNAVAILABLE; /* the owner of the file has ended */
    if (a->again) return EBB__EXIT_OK;
    if (st != EBB_OK) return ebb__durable_failed(a->words[0], st);
    const ebb_instance_info *i = ebb_instance_info_of(&v);
    a->again = i->state == EBB_INSTANCE_RUNNING;
    if (has_ended(i)) return show(cx, a, v, exit_code(i));
    if (!a->again) (void)ebb__durable_say(EBB_ERR_SUSPENDED, "%s is suspended: %s", a->words[0], i->text);
    ebb_value_discard(cx, v);
    return a->again ? EBB__EXIT_OK : ebb__durable_failed(a->words[0], EBB_ERR_SUSPENDED);
}

int ebb__durable_cancel(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    const bool one = a->words_n == 1, many = a->filtered || a->all;
    if (one == many || (one && a->dry_run)) {
        ebb__cli_error("ebb durable cancel takes the id of an instance, or a filter or --all");
        return EBB__EXIT_USAGE;
    }
    if (many) return ebb__durable_cancel_all(cx, s, a);
    return done(cx, a, ebb_instance_cancel(cx, s, a->words[0], a->reason), "cancel requested");
}

int ebb__durable_terminate(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    return done(cx, a, ebb_instance_terminate(cx, s, a->words[0], a->reason), "terminated");
}

int ebb__durable_delete(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    return done(cx, a, ebb_instance_delete(cx, s, a->words[0], a->force), "deleted");
}

int ebb__durable_resume(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    return done(cx, a, ebb_instance_resume(cx, s, a->words[0]), "resumed");
}

int ebb__durable_reset(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    uint64_t event;
    if (!ebb__cli_number("the event of a reset", a->words[1], 1, EBB_DURABLE_EVENTS, &event))
        return EBB__EXIT_USAGE;
    return done(cx, a, ebb_instance_reset(cx, s, a->words[0], event), "reset");
}
