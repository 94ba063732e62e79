/* A table: a column for each region or task that is shown, a row for each moment in which one of them
 * moved. A second move of the same column starts a new row, so no phase is skipped. */
#include "tour.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 4, TIME_WIDTH = 8, WIDTH = 11, NOTES = 80 };

typedef struct column {
    bool is_region;
    uint64_t id;
    const char *name;
    const char *phase; /* NULL: not begun */
    paint paint;
    bool moved, over, abandoned;
} column;

struct timeline {
    column columns[COLUMNS];
    unsigned n;
    bool begun;       /* the heading is printed */
    uint64_t time;    /* of the row in hand */
    uint64_t printed; /* the time that was printed last */
    char notes[NOTES];
};

timeline *timeline_new(void) {
    timeline *t = calloc(1, sizeof *t);
    if (t != NULL) t->printed = EBB_FOREVER;
    return t;
}

void timeline_free(timeline *t) {
    free(t);
}

void timeline_add_column(timeline *t, bool is_region, uint64_t id, const char *name) {
    if (t->n < COLUMNS) t->columns[t->n++] = (column){.is_region = is_region, .id = id, .name = name};
}

/* ---- printing ---------------------------------------------------------------------------------- */

static void print_heading(const timeline *t) {
    printf("%s%*s", paint_on(DIM), TIME_WIDTH, "");
    for (unsigned i = 0; i < t->n; i++) printf(" %-*s", i + 1 < t->n ? WIDTH : 0, t->columns[i].name);
    printf("%s\n", paint_off());
}

static const char *cell_text(const column *c) {
    if (c->moved) return c->phase;
    return c->phase == NULL || c->over ? "" : "|";
}

/* How many columns have something to say, so that no line ends in blanks. */
static unsigned used_columns(const timeline *t) {
    unsigned n = t->n;
    while (t->notes[0] == 0 && n > 0 && cell_text(&t->columns[n - 1])[0] == 0) n--;
    return n;
}

static void print_row(const timeline *t) {
    unsigned used = used_columns(t);
    if (t->time != t->printed) {
        printf("%*u ms", TIME_WIDTH - 3, (unsigned)(t->time / EBB_MS));
    } else {
        printf("%*s", TIME_WIDTH, "");
    }
    for (unsigned i = 0; i < used; i++) {
        const column *c = &t->columns[i];
        int width = i + 1 < used || t->notes[0] != 0 ? WIDTH : 0;
        printf(" %s%-*s%s", paint_on(c->moved ? c->paint : DIM), width, cell_text(c), paint_off());
    }
    printf("%s%s%s%s\n", paint_on(DIM), t->notes[0] == 0 ? "" : " ", t->notes, paint_off());
}

static bool has_news(const timeline *t) {
    bool news = t->notes[0] != 0;
    for (unsigned i = 0; i < t->n; i++) news = news || t->columns[i].moved;
    return news;
}

void timeline_flush(timeline *t) {
    if (!has_news(t)) return;
    if (!t->begun) print_heading(t);
    print_row(t);
    t->begun = true;
    t->printed = t->time;
    t->notes[0] = 0;
    for (unsigned i = 0; i < t->n; i++) {
        column *c = &t->columns[i];
        c->over = c->over || (c->moved && c->paint == DIM);
        c->moved = false;
    }
}

/* ---- what events mean -------------------------------------------------------------------------- */

typedef struct look {
    const char *text;
    paint paint;
} look;

static const look task_looks[] = {
    [EBB_TASK_RUNNING] = {"Running", GREEN}, /* nobody is shown before that */
    [EBB_TASK_CANCEL_REQUESTED] = {"Requested", RED},
    [EBB_TASK_CANCELLING] = {"Cancelling", YELLOW},
    [EBB_TASK_FINALIZING] = {"Finalizing", BLUE},
};

static const look region_looks[] = {
    [EBB_REGION_OPEN] = {"Open", GREEN},          [EBB_REGION_CLOSING] = {"Closing", RED},
    [EBB_REGION_DRAINING] = {"Draining", YELLOW}, [EBB_REGION_FINALIZING] = {"Finalizing", BLUE},
    [EBB_REGION_CLOSED] = {"Closed", DIM},
};

/* How a task ended stands in the event that ends it. */
static look look_of_end(const column *c, ebb_status st) {
    if (c->abandoned) return (look){"Abandoned", DIM};
    if (st == EBB_OK) return (look){"Completed", DIM};
    return (look){st == EBB_CANCELLED ? "Cancelled" : "Failed", DIM};
}

static look look_of(const column *c, const ebb_event *ev) {
    if (c->is_region) return region_looks[ev->phase];
    if (ev->phase == EBB_TASK_COMPLETED) return look_of_end(c, (ebb_status)(int32_t)ev->value);
    return task_looks[ev->phase];
}

/* Whose phase an event speaks of. Tasks and regions have ids of their own: the same number may be one
 * of each, so the type of the event has to say which is meant. */
static column *column_of(timeline *t, const ebb_event *ev) {
    bool of_region = ev->type >= EBB_EV_REGION_OPENED && ev->type <= EBB_EV_CHAIN_TRUNCATED;
    uint64_t id = of_region ? ev->region_id : ev->task_id;
    for (unsigned i = 0; i < t->n; i++) {
        column *c = &t->columns[i];
        if (c->is_region == of_region && c->id == id) return c;
    }
    return NULL;
}

/* The same word of two tasks in one row is said once. */
static void note(timeline *t, const char *text) {
    size_t n = strlen(t->notes);
    if (strstr(t->notes, text) == NULL) snprintf(t->notes + n, NOTES - n, "%s%s", n == 0 ? "" : ", ", text);
}

/* What is worth a word beside the phases. */
static void note_event(timeline *t, const ebb_event *ev) {
    switch (ev->type) {
    case EBB_EV_REGION_CANCELLED:
    case EBB_EV_CANCEL_REQUESTED: note(t, ebb_cancel_kind_name((ebb_cancel_kind)ev->cancel_kind)); break;
    case EBB_EV_MASKED:
    case EBB_EV_UNMASKED:
        if (ev->phase <= EBB_TASK_CANCEL_REQUESTED)
            note(t, ebb_event_name(ev->type)); /* cleanups always mask */
        break;
    case EBB_EV_TASK_FORCED: note(t, "forced"); break;
    case EBB_EV_OBLIGATION_RESERVED: note(t, "reserved"); break;
    case EBB_EV_OBLIGATION_COMMITTED: note(t, "committed"); break;
    case EBB_EV_OBLIGATION_LEAKED: note(t, "leaked"); break;
    case EBB_EV_OBLIGATION_ABORTED: note(t, "aborted"); break;
    default: break;
    }
}

static void move(timeline *t, column *c, look l) {
    if (c->phase == l.text) return;
    if (c->moved) timeline_flush(t);
    c->phase = l.text;
    c->paint = l.paint;
    c->moved = true;
}

void timeline_event(timeline *t, const ebb_event *ev) {
    column *c = column_of(t, ev);
    if (c == NULL) return;
    if (ev->time != t->time) timeline_flush(t);
    t->time = ev->time;
    if (ev->type == EBB_EV_ABANDONED) c->abandoned = true;
    look l = look_of(c, ev);
    if (l.text != NULL) move(t, c, l);
    note_event(t, ev);
}
