/* lang/exec.h - how a function of a program is executed: the one interface between the adapter to the runtime of machines
 * (host_*.c), which knows nothing of code, and what runs the code (vm.c).
 *
 * The adapter calls `call` for handlers, timers, entries, exits, invariants, times and main. The code
 * has effects only through the functions below, which are the same for every way of executing.
 *
 * Arguments. First self, a state object that the function may change, if the kind of the function has one (METHOD,
 * HANDLER, TIMER, ENTRY, EXIT, INVARIANT, TIME); then the parameters in order. Of a METHOD self is parameter 0. In
 * a handler the value of SELF is the word run->self; as the first argument of the CALL of a method it is the state
 * object.
 *
 * Budgets. run->budget falls by one at every call of a function and every turn of a loop (at the back edge, `continue`
 * included); where it would fall below 0 the function traps. Calls nest at most EBB__CALL_DEPTH deep. */
#ifndef EBB_LANG_EXEC_H
#define EBB_LANG_EXEC_H

#include "lang/value.h"
#include <ebb/machine.h>

enum { EBB__CALL_DEPTH = 256 };
enum { EBB__DISPATCH_BUDGET = 1000000 };
enum { EBB__MAIN_FACTOR = 64 }; /* main may take that many times the budget and the memory of a dispatch */

/* What went wrong in a handler. Each has a name in trap.def. */
typedef enum ebb__trap_kind {
#define EBB_TRAP(name, text) EBB__TRAP_##name,
#include "lang/trap.def"
#undef EBB_TRAP
    EBB__TRAPS
} ebb__trap_kind;

typedef struct ebb__trap {
    uint8_t kind;            /* ebb__trap_kind; NONE: nothing */
    ebb__span span;          /* where */
    const ebb__object *text; /* of ASSERT, EXPLICIT, ERROR and SPEC: what it says; may be NULL */
} ebb__trap;

/* What runs now: a dispatch, or main. It ends with the dispatch. */
struct ebb__run {
    ebb_program *program;
    const ebb__shape *shapes; /* of the program */
    ebb_machines *ms;
    const ebb_message *message; /* NULL: main */
    uint64_t self;              /* id of the machine; 0: main */
    int64_t budget;
    uint32_t depth; /* calls */
    ebb__trap trap;
};

typedef struct ebb__exec {
    /* Calls a function of the program by its id. `out` gets the result. False: it trapped, and run->trap says how. */
    bool (*call)(void *ctx, ebb__run *run, uint32_t fn, const ebb__value *args, ebb__value *out);
    void *ctx;
} ebb__exec;

/* Sets the trap unless there is one, and returns false. */
bool ebb__run_trap(ebb__run *run, ebb__trap_kind kind, ebb__span at);

/* ---- effects: of a dispatch they are staged, of main they act at once. False: a trap ---- */

/* The result is the value of the expression: () | MachineError, RequestId | MachineError, Pending<..> | MachineError. */
bool ebb__do_send(ebb__run *run, uint64_t to, ebb__object *message, ebb__object **out);
/* `token`: the type of the good result, REQUEST_ID or a Pending. */
bool ebb__do_request(ebb__run *run, uint64_t to, ebb__object *message, uint32_t label, uint32_t token,
                     ebb__object **out);
bool ebb__do_reply(ebb__run *run, uint64_t cap, ebb__object *response); /* cap 0: the implicit one */
bool ebb__do_forget(ebb__run *run, uint64_t pending);                   /* FORGET and CANCEL */
bool ebb__do_spawn(ebb__run *run, ebb__object *state, uint64_t *out);
bool ebb__do_start(ebb__run *run, uint64_t machine);
bool ebb__do_stop(ebb__run *run, uint64_t machine);
bool ebb__do_publish(ebb__run *run, ebb__object *message, const ebb__object *key);
bool ebb__do_subscribe(ebb__run *run, uint32_t kind, const ebb__object *key, bool on);
bool ebb__do_print(ebb__run *run, const ebb__object *text); /* staged too: a rollback prints nothing */
uint64_t ebb__do_now(ebb__run *run);                        /* ms */

/* ---- for a way of executing ---- */

struct ebb_program_opts;

/* A program with another way of executing than the VM; `exec` is copied. Else as ebb_program_new. */
ebb_status ebb__program_new(ebb_lang *c, const struct ebb_program_opts *opts, const ebb__exec *exec,
                            ebb_program **out);
const ebb__program *ebb__program_ir(const ebb_program *p);

#endif
