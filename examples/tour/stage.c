#include "tour.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a chapter is played on. The trace is taken whenever time has passed, and kept whole: the
 * timeline reads what is new in it, the check reads all of it at the end. */
struct stage {
    ebb_runtime *rt;
    timeline *timeline;
    uint8_t *trace;
    size_t n, room;
    uint64_t seen; /* decision_seq of the last event that the timeline has had */
    bool ok;
};

ebb_runtime *stage_runtime(stage *s) {
    return s->rt;
}

ebb_cx *stage_host(stage *s) {
    return ebb_runtime_host(s->rt);
}

void stage_show_region(stage *s, ebb_region region, const char *name) {
    timeline_add_column(s->timeline, true, region.id, name);
}

void stage_show_task(stage *s, ebb_task task, const char *name) {
    timeline_add_column(s->timeline, false, task.id, name);
}

void stage_expect(stage *s, bool is_so, const char *what) {
    printf("  %s%-5s%s %s\n", paint_on(is_so ? GREEN : RED), is_so ? "ok" : "WRONG", paint_off(), what);
    s->ok = s->ok && is_so;
}

/* ---- the trace --------------------------------------------------------------------------------- */

static void keep(void *ctx, const void *bytes, size_t n) {
    stage *s = ctx;
    if (s->n + n > s->room) {
        size_t room = 2 * (s->n + n);
        uint8_t *grown = realloc(s->trace, room);
        if (grown == NULL) {
            s->ok = false;
            return;
        }
        s->trace = grown;
        s->room = room;
    }
    memcpy(s->trace + s->n, bytes, n);
    s->n += n;
}

/* Hands the timeline what has happened since the last time. */
static void show_news(stage *s) {
    ebb_trace_reader reader;
    ebb_event ev;
    ebb_trace_take(s->rt, true, keep, s);
    if (ebb_trace_reader_open(&reader, s->trace, s->n) != EBB_OK) return;
    while (ebb_trace_reader_next(&reader, &ev) == EBB_OK) {
        if (ev.decision_seq <= s->seen) continue;
        s->seen = ev.decision_seq;
        timeline_event(s->timeline, &ev);
    }
    timeline_flush(s->timeline);
}

/* Every rule of the contract, from the events alone; and nothing may be left. */
static void check_trace(stage *s) {
    ebb_trace_reader reader;
    ebb_event ev;
    ebb_checker *check = ebb_checker_new(ebb_libc_allocator());
    ebb_status st = check == NULL ? EBB_ERR_NOMEM : ebb_trace_reader_open(&reader, s->trace, s->n);
    while (st == EBB_OK && (st = ebb_trace_reader_next(&reader, &ev)) == EBB_OK) {
        st = ebb_checker_event(check, &ev);
    }
    if (st == EBB_PENDING) st = ebb_checker_end(check, true);
    char line[256];
    const ebb_violation *v = check == NULL ? NULL : ebb_checker_violation(check);
    if (st == EBB_OK) {
        snprintf(line, sizeof line, "%" PRIu64 " events in the trace keep %d rules; nothing is left",
                 ebb_checker_events(check), (int)EBB_ORACLES);
    } else {
        snprintf(line, sizeof line, "%s: %s", v == NULL ? "the trace" : ebb_oracle_name(v->oracle),
                 v == NULL ? ebb_status_text(st) : v->text);
    }
    stage_expect(s, st == EBB_OK, line);
    if (check != NULL) ebb_checker_free(check);
}

static void write_trace(stage *s, const char *directory, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.trace", directory, name);
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(s->trace, 1, s->n, file) == s->n;
    if (file != NULL) written = fclose(file) == 0 && written;
    if (!written) stage_expect(s, false, path);
}

/* ---- time -------------------------------------------------------------------------------------- */

/* One moment: all that can happen now. */
static void settle(stage *s) {
    while (ebb_runtime_pump(s->rt, 100) == EBB_PENDING) {}
    show_news(s);
}

void stage_run_to(stage *s, unsigned ms) {
    settle(s);
    while (ebb_runtime_next_due(s->rt) < ms * EBB_MS) {
        ebb_runtime_advance(s->rt, ebb_runtime_next_due(s->rt));
        settle(s);
    }
    ebb_runtime_advance(s->rt, ms * EBB_MS);
    settle(s);
}

void stage_run_out(stage *s) {
    settle(s);
    while (ebb_runtime_next_due(s->rt) != EBB_FOREVER) {
        ebb_runtime_advance(s->rt, ebb_runtime_next_due(s->rt));
        settle(s);
    }
}

/* ---- a chapter --------------------------------------------------------------------------------- */

static bool stage_open(stage *s) {
    *s = (stage){.ok = true, .timeline = timeline_new()};
    return s->timeline != NULL &&
           ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &s->rt) == EBB_OK &&
           ebb_trace_start(s->rt, 1 << 16) == EBB_OK;
}

/* The root goes like any region: close it, and it is over when it says so. */
static void stage_end(stage *s) {
    ebb_region_state state;
    ebb_region_close(stage_host(s), ebb_runtime_root(s->rt));
    stage_run_out(s);
    s->ok = s->ok && ebb_region_state_of(stage_host(s), ebb_runtime_root(s->rt), &state) == EBB_OK &&
            state == EBB_REGION_CLOSED;
    check_trace(s);
}

bool stage_play(const chapter *c, const char *directory) {
    stage s;
    printf("%s%s%s\n", paint_on(BOLD), c->title, paint_off());
    if (stage_open(&s)) {
        c->play(&s);
        stage_end(&s);
        if (directory != NULL) write_trace(&s, directory, c->name);
    } else {
        stage_expect(&s, false, "no memory for a runtime");
    }
    printf("\n");
    ebb_runtime_free(s.rt);
    timeline_free(s.timeline);
    free(s.trace);
    return s.ok;
}
