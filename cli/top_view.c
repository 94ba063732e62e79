/* cli/top_view.c - a snapshot of a service as lines of text: the numbers of each loop, then its tree or its tasks. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top.h"

static json_int_t number(const json_t *o, const char *key) {
    return json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    return s == NULL ? "?" : s;
}

/* Milliseconds as people read them: "12 ms", "3.4 s", "2 h 05 min". */
static const char *span(char out[32], json_int_t ms) {
    long long t = ms;
    if (t < 1000) snprintf(out, 32, "%lld ms", t);
    else if (t < 120000) snprintf(out, 32, "%lld.%lld s", t / 1000, t % 1000 / 100);
    else if (t < 7200000) snprintf(out, 32, "%lld min", t / 60000);
    else snprintf(out, 32, "%lld h %02lld min", t / 3600000, t % 3600000 / 60000);
    return out;
}

static double us(json_int_t ns) {
    return (double)ns / 1000;
}

/* ---- one loop ------------------------------------------------------------------------------------------ */

static void write_numbers(FILE *out, const json_t *loop) {
    const json_t *lanes = json_object_get(loop, "lanes"), *fibers = json_object_get(loop, "fibers"),
                 *heap = json_object_get(loop, "heap"), *polls = json_object_get(loop, "measured");
    char gone[32], budget[32], since[80] = "";
    if (number(loop, "elapsed_ms") > 0)
        snprintf(since, sizeof since, " %s of %s", span(gone, number(loop, "elapsed_ms")),
                 span(budget, number(loop, "budget_ms")));
    fprintf(out,
            "loop %lld  %s%s  tasks %lld  regions %lld  obligations %lld  timers %lld  leaks %lld  abandoned "
            "%lld\n",
            (long long)number(loop, "loop"), text(loop, "state"), since, (long long)number(loop, "tasks"),
            (long long)number(loop, "regions"), (long long)number(loop, "obligations"),
            (long long)number(loop, "timers"), (long long)number(loop, "leaks"),
            (long long)number(loop, "abandoned"));
    fprintf(
        out,
        "  lanes: cancel %lld, timed %lld, ready %lld  fibers %lld (%lld KiB)  heap %lld objects, %lld KiB\n",
        (long long)number(lanes, "cancel"), (long long)number(lanes, "timed"),
        (long long)number(lanes, "ready"), (long long)number(fibers, "alive"),
        (long long)number(fibers, "bytes") / 1024, (long long)number(heap, "live"),
        (long long)number(heap, "bytes") / 1024);
    if (number(polls, "polls") > 0)
        fprintf(out, "  polls %lld, %.1f us on average, longest %.1f us: %s\n",
                (long long)number(polls, "polls"),
                us(number(polls, "total_ns")) / (double)number(polls, "polls"),
                us(number(polls, "longest_ns")), text(polls, "longest_site"));
}

/* Counters that are 0 are left out. */
static void write_counters(FILE *out, const json_t *loop) {
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(loop, "counters"), i, c) {
        const char *key;
        json_t *value;
        fprintf(out, "  %s %s:", text(c, "what"), text(c, "name"));
        json_object_foreach(c, key, value) {
            if (json_is_integer(value) && json_integer_value(value) != 0)
                fprintf(out, " %s %lld", key, (long long)json_integer_value(value));
        }
        fputc('\n', out);
    }
}

/* ---- the tree ------------------------------------------------------------------------------------------ */

static void write_region(FILE *out, const json_t *r) {
    char left[32];
    fprintf(out, "  %*sregion %s %s", 2 * (int)(number(r, "depth") % 24), "", text(r, "region"),
            text(r, "state"));
    if (number(r, "tasks") > 0) fprintf(out, ", %lld tasks", (long long)number(r, "tasks"));
    if (number(r, "obligations") > 0) fprintf(out, ", %lld obligations", (long long)number(r, "obligations"));
    if (json_object_get(r, "request") != NULL)
        fprintf(out, ", %s \"%s\"", text(r, "request"), text(r, "message"));
    if (json_object_get(r, "left_ms") != NULL) fprintf(out, ", %s left", span(left, number(r, "left_ms")));
    fprintf(out, ", %s\n", text(r, "site"));
}

static void write_task(FILE *out, const json_t *t, bool indent) {
    char age[32];
    bool waits = json_is_true(json_object_get(t, "waits"));
    fprintf(out, "  %*stask %s %s%s", indent ? 2 * (int)(number(t, "depth") % 24) : 0, "", text(t, "task"),
            text(t, "phase"), json_is_true(json_object_get(t, "masked")) ? ", masked" : "");
    fprintf(out, ", %s%s", waits ? "waits for " : "", text(t, "doing"));
    if (json_object_get(t, "begun_at") != NULL) fprintf(out, " begun at %s", text(t, "begun_at"));
    if (json_object_get(t, "age_ms") != NULL) fprintf(out, ", %s old", span(age, number(t, "age_ms")));
    if (number(t, "polls") > 0)
        fprintf(out, ", %lld polls, longest %.1f us", (long long)number(t, "polls"),
                us(number(t, "poll_max_ns")));
    fprintf(out, ", %s\n", text(t, "site"));
}

/* A task that is named both in the tree and beside it is shown once. */
static bool is_in(const json_t *tree, const json_t *task) {
    size_t i;
    json_t *node;
    json_array_foreach(tree, i, node) {
        if (json_equal(json_object_get(node, "task"), json_object_get(task, "task"))) return true;
    }
    return false;
}

static int older(const void *a, const void *b) {
    json_int_t x = number(*(json_t *const *)a, "age_ms"), y = number(*(json_t *const *)b, "age_ms");
    return (x < y) - (x > y);
}

static int slower(const void *a, const void *b) {
    json_int_t x = number(*(json_t *const *)a, "poll_total_ns"),
               y = number(*(json_t *const *)b, "poll_total_ns");
    return (x < y) - (x > y);
}

/* The tasks of the tree, and the busiest that are not in it. Without memory for the order they stay as they are. */
static void write_sorted(FILE *out, const json_t *tree, const json_t *busiest, ebb__top_sort sort) {
    size_t n = 0, i;
    json_t *node, **tasks = calloc(json_array_size(tree) + json_array_size(busiest) + 1, sizeof(json_t *));
    json_array_foreach(tree, i, node) {
        if (json_object_get(node, "task") == NULL) continue;
        if (tasks == NULL) write_task(out, node, false);
        else tasks[n++] = node;
    }
    json_array_foreach(busiest, i, node) {
        if (tasks != NULL && !is_in(tree, node)) tasks[n++] = node;
    }
    if (n > 0) qsort((void *)tasks, n, sizeof(json_t *), sort == EBB__TOP_AGE ? older : slower);
    for (i = 0; i < n; i++) write_task(out, tasks[i], false);
    free((void *)tasks);
}

static void write_tree(FILE *out, const json_t *tree, bool folded) {
    size_t i;
    json_t *node;
    json_array_foreach(tree, i, node) {
        if (json_object_get(node, "region") != NULL) write_region(out, node);
        else if (!folded) write_task(out, node, true);
    }
}

static void write_loop(FILE *out, const json_t *loop, const ebb__top_view *view) {
    const json_t *tree = json_object_get(loop, "tree"), *left = json_object_get(loop, "left_out");
    write_numbers(out, loop);
    write_counters(out, loop);
    if (view->sort == EBB__TOP_TREE) write_tree(out, tree, view->folded);
    else write_sorted(out, tree, json_object_get(loop, "busiest"), view->sort);
    if (number(left, "regions") + number(left, "tasks") > 0)
        fprintf(out, "  left out: %lld regions, %lld tasks\n", (long long)number(left, "regions"),
                (long long)number(left, "tasks"));
}

static void write_all(FILE *out, const json_t *snapshot, const ebb__top_view *view) {
    size_t i;
    json_t *loop;
    fprintf(out, "process %lld, Ebb %s\n", (long long)number(snapshot, "pid"), text(snapshot, "version"));
    json_array_foreach(json_object_get(snapshot, "loops"), i, loop) {
        if (json_object_get(loop, "error") != NULL)
            fprintf(out, "loop %lld  %s\n", (long long)number(loop, "loop"), text(loop, "error"));
        else write_loop(out, loop, view);
    }
}

/* Whoever answers at a socket may put control sequences for the terminal into its texts. */
void ebb__top_write(FILE *out, const json_t *snapshot, const ebb__top_view *view) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f == NULL) return;
    write_all(f, snapshot, view);
    if (fclose(f) == 0) {
        for (size_t i = 0; i < n; i++)
            fputc(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~') ? text[i] : '?', out);
    }
    free(text);
}
