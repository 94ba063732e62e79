/* A scene of model.h, played with real futures, in one runtime or with the slots in a second one. Whoever
 * drives it decides when slots end and when the runtimes run; then stage_differs() compares what was seen with
 * a model that was told the same. */
#ifndef EBB_TESTS_FUTURE_STAGE_H
#define EBB_TESTS_FUTURE_STAGE_H

#include "tests/future/stage/model.h"

typedef struct stage stage;

/* What was heard of a future. `order` counts all ends of a stage. */
typedef struct heard {
    stage *stage;
    int slot; /* NOBODY: the result */
    uint32_t ends, cleanups, order;
    ebb_status status;
    ebb_cancel_kind kind;
    const void *value;
} heard;

typedef struct slot {
    heard heard;
    bool made, settled, dropped;
    ebb_future *producer;   /* whom to settle: here, or in the other runtime */
    ebb_remote *near, *far; /* the future here, and the one there, as others know them */
    uint8_t freed, valued;  /* its word: how often let go of, whether it was made */
} slot;

struct stage {
    const scene *scene;
    ebb_cx *cx;    /* in whose name inputs and the result are made */
    ebb_cx *there; /* the same in the other runtime */
    slot slot[SLOTS];
    ebb_future *result;
    heard result_heard;
    int calls, releases;
    uint32_t order;
    uint32_t refused; /* callbacks that could not be attached: no memory */
    ending list[INPUTS];
    size_t list_n, selected;
    bool is_list, is_selected;
    /* Tells the driver that a slot, or the result, has ended. May be NULL. */
    void (*ended)(stage *s, int slot);
    void *driver;
};

/* Makes the slots that are inputs. Those with a plan of NOW end at once. */
void stage_inputs(stage *s, const scene *scene, ebb_cx *cx, ebb_cx *there);
/* Makes the result of them. */
void stage_result(stage *s);
/* A slot that was made and not settled ends as its plan says. */
void stage_end_slot(stage *s, int i);
/* Producers that have not settled do; the result is let go of. Then run the runtimes; a callback may make one
 * more, so do it again, as often as callbacks can. Then stage_free. */
void stage_close(stage *s);
void stage_free(stage *s);

bool plan_is_now(plan p);
bool plan_is_later(plan p);

/* NULL, or what is not as the model says; in `text`. */
const char *stage_differs(const stage *s, const model *m, char *text, size_t room);
/* NULL, or the word that was not let go of exactly once. After all is collected. */
const char *stage_leaks(const stage *s, char *text, size_t room);
void scene_text(const scene *s, char *text, size_t room);

#endif
