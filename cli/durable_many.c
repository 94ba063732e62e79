/* cli/durable_many.c - `ebb durable` with many instances. */
#include "cli/durable.h"

#include <ebb/ebb.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- pages ------------------------------------------------------------------------------------------- */

enum { PAGE = 100 };

/* Calls `each` with every instance that matches, page by page, `most` of them at most. Its false ends it. */
static ebb_status each_instance(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter, uint64_t most,
                                bool (*each)(void *arg, const ebb_instance_info *i), void *arg) {
    char last[EBB_DURABLE_ID + 1];
    ebb_instance_filter f = *filter;
    for (size_t n = PAGE; n == PAGE && most > 0;) {
        ebb_value v;
        f.most = most < PAGE ? (uint32_t)most : PAGE;
        const ebb_status st = ebb_await(cx, ebb_instance_list(cx, s, &f), &v);
        if (st != EBB_OK) return st;
        const ebb_instance_info *at = ebb_instances_of(&v, &n);
        bool more = true;
        for (size_t i = 0; i < n && more; i++) more = each(arg, &at[i]);
        if (n != 0) (void)snprintf(last, sizeof last, "%s", at[n - 1].id);
        ebb_value_discard(cx, v);
        if (!more) return EBB_ERR_NOMEM;
        f.after = last;
        most -= n;
    }
    return EBB_OK;
}

static bool show_row(void *arg, const ebb_instance_info *i) {
    ebb__durable_show_row(i, 0, *(const bool *)arg);
    return true;
}

int ebb__durable_list(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    if (!a->json) ebb__durable_show_header();
    const ebb_status st =
        each_instance(cx, s, &a->filter, a->most != 0 ? a->most : EBB_FOREVER, show_row, &a->json);
    return st == EBB_OK ? EBB__EXIT_OK : ebb__durable_failed("the list", st);
}

/* ---- trees ------------------------------------------------------------------------------------------- */

/* An instance of a tree; its texts are its own. `next` are brothers, by id. */
typedef struct node {
    ebb_instance_info info;
    struct node *up, *down, *last, *next;
} node;

typedef struct tree {
    node *all;
    size_t n, room;
} tree;

/* What a row of a table shows. */
static bool keep(void *arg, const ebb_instance_info *i) {
    tree *t = arg;
    if (t->n == t->room) {
        const size_t room = t->room != 0 ? 2 * t->room : 64;
        node *all = realloc(t->all, room * sizeof *all);
        if (all == NULL) return false;
        t->all = all;
        t->room = room;
    }
    node *at = &t->all[t->n++];
    *at = (node){.info = *i};
    at->info.id = strdup(i->id);
    at->info.name = strdup(i->name);
    at->info.parent = strdup(i->parent);
    at->info.text = strdup(i->text);
    at->info.custom = (ebb_blob){NULL, 0};
    return at->info.id != NULL && at->info.name != NULL && at->info.parent != NULL && at->info.text != NULL;
}

static void tree_free(tree *t) {
    for (size_t i = 0; i < t->n; i++) {
        const char *const texts[] = {t->all[i].info.id, t->all[i].info.name, t->all[i].info.parent,
                                     t->all[i].info.text};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) free((void *)(uintptr_t)texts[k]);
    }
    free(t->all);
}

/* Nodes by their id, sorted. */
typedef struct entry {
    const char *id;
    node *of;
} entry;

static int by_id(const void *a, const void *b) {
    return strcmp(((const entry *)a)->id, ((const entry *)b)->id);
}

static node *find(const entry *sorted, size_t n, const char *id) {
    const entry key = {id, NULL}, *found = bsearch(&key, sorted, n, sizeof key, by_id);
    return found != NULL ? found->of : NULL;
}

/* Parents and children know each other; the root is the first. False: no memory. */
static bool link_up(tree *t) {
    entry *sorted = malloc((t->n != 0 ? t->n : 1) * sizeof *sorted);
    if (sorted == NULL) return false;
    for (size_t i = 0; i < t->n; i++) sorted[i] = (entry){t->all[i].info.id, &t->all[i]};
    qsort(sorted, t->n, sizeof *sorted, by_id);
    for (size_t i = 0; i < t->n; i++) {
        node *at = sorted[i].of, *up = at != t->all ? find(sorted, t->n, at->info.parent) : NULL;
        if (up == NULL) continue;
        at->up = up;
        if (up->last != NULL) up->last->next = at;
        else up->down = at;
        up->last = at;
    }
    free(sorted);
    return true;
}

static void print_tree(const tree *t, bool json) {
    uint32_t depth = 0;
    const node *at = t->n != 0 ? t->all : NULL;
    if (!json) ebb__durable_show_header();
    while (at != NULL) {
        ebb__durable_show_row(&at->info, depth, json);
        if (at->down != NULL) {
            at = at->down;
            depth++;
            continue;
        }
        while (at != NULL && at->next == NULL) {
            at = at->up;
            depth -= at != NULL;
        }
        at = at != NULL ? at->next : NULL;
    }
}

int ebb__durable_tree(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    tree t = {0};
    ebb_value v;
    int code = EBB__EXIT_OK;
    if (!ebb__durable_info(cx, ebb_instance_status(cx, s, a->words[0]), a->words[0], &v, &code)) return code;
    ebb_value_discard(cx, v);
    a->filter.parent = a->words[0];
    a->filter.tree = true;
    ebb_status st = each_instance(cx, s, &a->filter, EBB_FOREVER, keep, &t);
    if (st == EBB_OK && !link_up(&t)) st = EBB_ERR_NOMEM;
    if (st == EBB_OK) print_tree(&t, a->json);
    tree_free(&t);
    return st == EBB_OK ? EBB__EXIT_OK : ebb__durable_failed(a->words[0], st);
}

/* ---- bulk -------------------------------------------------------------------------------------------- */

typedef struct progress {
    const char *what;
    bool wanted, shown;
} progress;

static bool show_progress(void *arg, uint64_t done) {
    progress *p = arg;
    p->shown |= p->wanted;
    if (p->wanted) fprintf(stderr, "\r%s: %" PRIu64, p->what, done);
    (void)fflush(stderr);
    return true;
}

static int bulk(ebb_cx *cx, ebb_store *s, ebb__durable_args *a, const char *what,
                ebb_future *(*begin)(ebb_cx *cx, ebb_store *s, const ebb_instance_filter *filter,
                                     const ebb_bulk_opts *opts, const char *site)) {
    progress p = {.what = what, .wanted = a->progress || isatty(STDERR_FILENO) != 0};
    const ebb_bulk_opts opts = {
        .dry_run = a->dry_run, .reason = a->reason, .progress = show_progress, .arg = &p};
    ebb_value v;
    const ebb_status st = ebb_await(cx, begin(cx, s, &a->filter, &opts, EBB_SITE), &v);
    if (p.shown) fputc('\n', stderr);
    if (st != EBB_OK) return ebb__durable_failed(what, st);
    if (a->json) ebb__durable_show_count(what, (uint64_t)v.as.i, a->dry_run);
    else printf("%s%s: %" PRId64 "\n", a->dry_run ? "would be " : "", what, v.as.i);
    return EBB__EXIT_OK;
}

int ebb__durable_cancel_all(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    return bulk(cx, s, a, "cancelled", ebb_instance_cancel_all_site);
}

int ebb__durable_prune(ebb_cx *cx, ebb_store *s, ebb__durable_args *a) {
    if (a->filtered || a->all) return bulk(cx, s, a, "deleted", ebb_instance_prune_site);
    ebb__cli_error("ebb durable prune takes a filter, or --all for all that have ended");
    return EBB__EXIT_USAGE;
}
