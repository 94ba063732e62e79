/* `ebb durable`.
 *
 * durable.c            the commands: the table, the store, the loop
 *   durable_args.c     options and filters
 *   durable_one.c      one instance: start, signal, status, wait, cancel, terminate, delete, reset, resume
 *   durable_many.c     many: list, tree, cancel and prune by filter
 *   durable_history.c  history, replay
 *     durable_show.c   instances and events as tables and as JSON */
#ifndef EBB__CLI_DURABLE_H
#define EBB__CLI_DURABLE_H

#include <ebb/durable.h>

#include "cli/cli.h"

/* Options, as bits of what a command takes. */
enum {
    EBB__DURABLE_INPUT = 1 << 0,
    EBB__DURABLE_NEW_ID = 1 << 1,
    EBB__DURABLE_VERSION = 1 << 2,
    EBB__DURABLE_REUSE = 1 << 3,
    EBB__DURABLE_BODY = 1 << 4,
    EBB__DURABLE_DEDUP = 1 << 5,
    EBB__DURABLE_REASON = 1 << 6,
    EBB__DURABLE_FILTER = 1 << 7, /* --name, --prefix, --parent, --state, --started-after, --ended-before */
    EBB__DURABLE_BULK = 1 << 8,   /* --all, --dry-run, --progress */
    EBB__DURABLE_FORCE = 1 << 9,
    EBB__DURABLE_EXECUTION = 1 << 10,
    EBB__DURABLE_VERIFY = 1 << 11,
    EBB__DURABLE_LOAD = 1 << 12,
    EBB__DURABLE_MOST = 1 << 13,
};

typedef struct ebb__durable_args {
    const char *command, *url;
    const char *words[2]; /* what is no option: an id, a name, an event */
    size_t words_n;
    bool json, reuse, all, dry_run, progress, force, verify;
    bool filtered; /* an option of a filter was given */
    const char *id, *dedup, *reason, *load;
    uint64_t version, execution, most; /* most: EBB_FOREVER: all */
    ebb_blob body;                     /* input of a start, body of a signal */
    ebb__cli_file file;                /* where it may lie; free(bytes) */
    ebb_instance_filter filter;
    bool again; /* out: the instance has not ended, look again later. See ebb__durable_wait */
} ebb__durable_args;

/* Reads options and words, of which there are from `least` to `most`. False: an error was printed. */
bool ebb__durable_parse(ebb__durable_args *a, int argc, char **argv, uint32_t takes, size_t least,
                        size_t most);

/* Commands: they return an exit code, and run on a fiber. */
typedef int ebb__durable_fn(ebb_cx *cx, ebb_store *s, ebb__durable_args *a);
ebb__durable_fn ebb__durable_start, ebb__durable_signal, ebb__durable_status, ebb__durable_wait,
    ebb__durable_cancel, ebb__durable_terminate, ebb__durable_delete, ebb__durable_reset, ebb__durable_resume;
ebb__durable_fn ebb__durable_list, ebb__durable_tree, ebb__durable_cancel_all, ebb__durable_prune;
ebb__durable_fn ebb__durable_history, ebb__durable_replay;

/* Prints why something could not be done with a thing, and returns the exit code. */
int ebb__durable_failed(const char *thing, ebb_status st);

/* Waits for a future and reads its info. False: an error was printed, *code has the exit code. Discard *v. */
bool ebb__durable_info(ebb_cx *cx, ebb_future *f, const char *thing, ebb_value *v, int *code);

/* ---- durable_show.c ---- */
/* All about one instance: lines for people, or one JSON object in a line. */
void ebb__durable_show(const ebb_instance_info *i, bool json);
/* A row of a table, or one JSON object in a line; `depth` of it in a tree. */
void ebb__durable_show_header(void);
void ebb__durable_show_row(const ebb_instance_info *i, uint32_t depth, bool json);
void ebb__durable_show_event(const ebb_history_event *e, bool json);
/* {"NAME": number} in a line; with `dry_run` beside it. */
void ebb__durable_show_count(const char *name, uint64_t n, bool dry_run);
/* {"id":...,"turns":...,"difference":...} in a line; "": there is none. */
void ebb__durable_show_replay(const char *id, uint64_t turns, const char *difference);
/* Text that may control a terminal, with '?' in the place of that, at most `most` characters; "...": cut. */
void ebb__durable_print_text(const char *s, size_t n, size_t most);

#endif
