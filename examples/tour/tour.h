/* The tour: five short chapters on how things stop. Each has a runtime of its own (a stage), does
 * something to it, and expects how it ends. What is printed in between is not written by the chapters:
 * it is read from the runtime's trace. */
#ifndef TOUR_H
#define TOUR_H

#include <ebb/ebb.h>

typedef struct stage stage;

typedef struct chapter {
    const char *name, *title;
    void (*play)(stage *s);
} chapter;

extern const chapter nested, masked, race, verbs, leak;

/* ---- stage.c: a runtime in virtual time, and whether all went as it should -------------------- */

/* Plays a chapter. False if something was not as expected, or its trace breaks a rule. With a
 * directory, the trace is kept there as NAME.trace. */
bool stage_play(const chapter *c, const char *directory);

ebb_runtime *stage_runtime(stage *s);
ebb_cx *stage_host(stage *s);

/* Gives a region or task a column in the timeline. Before time moves on. */
void stage_show_region(stage *s, ebb_region region, const char *name);
void stage_show_task(stage *s, ebb_task task, const char *name);

/* Lets time pass: to `ms`, or until nothing is left to happen. */
void stage_run_to(stage *s, unsigned ms);
void stage_run_out(stage *s);

void stage_expect(stage *s, bool is_so, const char *what);

/* ---- timeline.c: phases over time, from the events of a trace --------------------------------- */

typedef struct timeline timeline;

timeline *timeline_new(void); /* NULL: no memory */
void timeline_free(timeline *t);
void timeline_add_column(timeline *t, bool is_region, uint64_t id, const char *name);
void timeline_event(timeline *t, const ebb_event *ev);
void timeline_flush(timeline *t); /* prints the row in hand */

/* ---- paint.c: colours, on a terminal only ------------------------------------------------------ */

typedef enum paint { PLAIN, DIM, BOLD, RED, GREEN, YELLOW, BLUE } paint;

void paint_start(void);
const char *paint_on(paint p); /* "" where there are no colours */
const char *paint_off(void);

#endif
