/* Operations: parsed lines of a script, which the host executes at once and tasks as their steps. Private to
 * lab/script*.c. */
#ifndef EBB__SCRIPT_OP_H
#define EBB__SCRIPT_OP_H

#include "base/arena.h"
#include "base/map.h"
#include "lab/script.h"

typedef enum ebb__script_verb {
    V_ABORT,
    V_ADVANCE,
    V_BODY,
    V_CANCEL,
    V_CANCEL_TASK,
    V_CHAIN,
    V_CHECK,
    V_CHECKPOINT,
    V_CLOSE,
    V_COMMIT,
    V_DEFER,
    V_EXPECT,
    V_FAULT,
    V_FORCE,
    V_FORCE_TASK,
    V_IGNORE,
    V_JOIN,
    V_JOIN_TASK,
    V_LOOP,
    V_MASK,
    V_OPEN,
    V_PARK,
    V_PUMP,
    V_RESERVE,
    V_RETURN,
    V_SLEEP,
    V_SPAWN,
    V_TURN,
    V_UNMASK,
    V_WAKE,
    V_WITNESS,
    V_YIELD,
    V_NOTHING
} ebb__script_verb;

typedef struct ebb__script_op ebb__script_op;

/* The steps of a task, and its steps after it learns that it is cancelled. After the former it returns EBB_OK,
 * after the latter EBB_CANCELLED. */
typedef struct ebb__script_body {
    const ebb__script_op *steps, *cleanup;
    uint32_t n_steps, n_cleanup;
} ebb__script_body;

/* A name and its current id: of a task, region or obligation, or one that carries an error. */
typedef struct ebb__script_word {
    struct ebb__script_word *next; /* next name with the same hash */
    uint64_t id;
    ebb__thing_kind kind; /* of the id; 0: it has none */
    const ebb__script_body *body;
    const ebb_witness *witness;
    const char *site; /* see ebb__script_site */
    char text[];
} ebb__script_word;

struct ebb__script_op {
    ebb__script_verb verb;
    ebb__script_word *name, *other; /* the object; `other` is the second name of a `witness` or `check` */
    ebb__script_word *in, *as;
    const ebb__script_body *body;
    const char *message; /* NULL: none */
    uint64_t span;
    uint64_t number, second;
    uint32_t polls; /* 0: not given */
    int32_t status; /* of `return` and `expect` */
    uint8_t kind;   /* of a cancel or an obligation */
    uint8_t priority;
    bool collect, cleanup, unit, keep, stuck;
    bool timed; /* `span` is a deadline or a budget */
};

struct ebb__script {
    ebb_runtime *rt;
    ebb__arena arena;
    ebb__map names;                    /* by the hash of the text */
    ebb__map ids[EBB__OBLIGATION + 1]; /* things by id */
    ebb__thing *first, *last;
    uint32_t things;
    ebb_status result;
    uint32_t chain_n;
    ebb_region_cause chain[EBB_CHAIN_DEPTH];
    ebb__script_keep_fn *keep; /* NULL: sites live as long as the script */
    void *keep_ctx;
};

/* ---- parsing ---------------------------------------------------------------------------------- */

/* Parses one line into one operation, V_NOTHING for an empty one. Errors as for ebb__script_line. */
ebb_status ebb__script_parse(ebb__script *s, const char *line, size_t n, ebb__script_op *out,
                             char message[EBB__SCRIPT_MESSAGE]);

/* Finds the name with this text, or makes it. NULL: no memory. */
ebb__script_word *ebb__script_intern(ebb__script *s, const char *text, size_t n);

/* The name as the site of what is made under it. */
const char *ebb__script_site(const ebb__script *s, ebb__script_word *name);

/* ---- doing ------------------------------------------------------------------------------------ */

/* Executes an operation that host and tasks share, and returns the status from the runtime. */
ebb_status ebb__script_do(ebb__script *s, ebb_cx *cx, const ebb__script_op *op);

/* `spawn` and `defer`, which make new interpreters. */
ebb_status ebb__script_spawn(ebb__script *s, ebb_cx *cx, const ebb__script_op *op);
ebb_status ebb__script_defer(ebb__script *s, ebb_cx *cx, const ebb__script_op *op);

/* Makes room for one more object. EBB_ERR_LIMIT, EBB_ERR_NOMEM. */
ebb_status ebb__script_thing(ebb__script *s, ebb__thing **out);

/* Binds `name` to this id. An id that carries an error is a result, not an object. */
ebb_status ebb__script_bind(ebb__script *s, ebb__script_word *name, ebb__thing *thing, ebb__thing_kind kind,
                            uint64_t id);

/* The id that `name` stands for; EBB_ERR_INVALID if it is not of this kind. */
ebb_status ebb__script_find(const ebb__script_word *name, ebb__thing_kind kind, uint64_t *id);

#endif
