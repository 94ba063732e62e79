/* lang/host.h - a running program: the adapter between its functions and the runtime of machines.
 *
 *   program.c       making, freeing, running main, how it ended
 *   host_type.c     the table that each typestate becomes
 *   host_dispatch.c what the table's functions do: handler, entry with timers, exit, check, settle
 *   host_effect.c   what the code asks for: ebb__do_*
 *   host_send.c     messages from the host
 *
 * What must hold:
 *  - A machine's fields are a state object without flags; outside of a dispatch each of its references is NULL, a
 *    constant, or counts one of a block.
 *  - In a dispatch the copy of the fields has borrowed references, until `check` has sealed it: then each counts one, and
 *    `settle` lets go of the old ones (commit) or of the new ones (rollback).
 *  - The payload of a message is nothing (a record without fields), the object (a record without references), or the
 *    pointer to a block, of which it counts one.
 *  - What a dispatch prints is kept in `printed`, and reaches the host when it commits. */
#ifndef EBB_LANG_HOST_H
#define EBB_LANG_HOST_H

#include "lang/exec.h"
#include "lang/image.h"
#include "machine/machine.h"
#include <ebb/program.h>

/* A state of a typestate; `arg` of ebb_machine_state. */
typedef struct ebb__host_state {
    struct ebb__host_type *of;
    const ebb__ir_state *ir;
    uint32_t type; /* of its objects */
} ebb__host_state;

/* What a state does with a kind; `arg` of ebb_machine_rule. */
typedef struct ebb__host_rule {
    const ebb__host_state *state;
    const ebb__ir_entry *entries; /* all of the kind */
    uint32_t n;
    const ebb__ir_fn *timer; /* of a timer's kind */
} ebb__host_rule;

typedef struct ebb__host_type {
    ebb_machine_type type; /* first: the runtime gives it back */
    ebb_program *program;
    const ebb__ir_machine *ir;
    ebb__host_state *states;
    uint32_t n_refs; /* of its objects */
} ebb__host_type;

/* A monitor: what it is in, and its fields, a state object whose references are counted. */
typedef struct ebb__spec {
    const ebb__ir_machine *ir;
    uint32_t state;
    ebb__object *fields;
} ebb__spec;

enum { EBB__WHY_MAX = 256, EBB__FAULTS_KEPT = 32 };

/* A fault that was reported; `text` of the event is in it. */
typedef struct ebb__past_fault {
    ebb_program_event event;
    char text[EBB__WHY_MAX];
} ebb__past_fault;

struct ebb_program {
    ebb_program_opts opts;
    ebb_allocator allocator;
    ebb__image image;
    ebb__exec exec;
    struct ebb__vm *vm; /* of the VM; NULL: another way of executing */
    ebb_machines *ms;
    ebb__run run;
    int64_t budget;   /* of a dispatch; EBB__DISPATCH_BUDGET, but for tests */
    bool dispatching; /* `run` is that of a dispatch that is not decided */
    ebb__arena arena; /* of main */
    size_t main_bytes;
    uint32_t blocks; /* alive */

    ebb__host_type *types; /* by number in the program */
    ebb_machine_kind *kinds;
    uint32_t n_kinds; /* of the runtime of machines: those of the program, then timers */
    ebb__object *failures[EBB_REQUEST_UNHANDLED + 1]; /* RequestFailed, by ebb_request_failure */
    ebb__object *mailbox_full, *not_running, *unknown, *unit;
    ebb__spec *specs;
    uint32_t n_specs;

    char *printed; /* lines of the dispatch: a uint32_t of bytes, then the text */
    size_t printed_n, printed_room;
    ebb__trap fault;     /* of the dispatch that was rolled back last */
    bool fault_on_start; /* of an entry at the start of a machine: of no message */
    char fault_text[EBB__WHY_MAX];
    ebb__past_fault faults[EBB__FAULTS_KEPT]; /* the last ones, by n_faults */
    uint64_t n_faults;
    ebb_program_end end;
};

/* ---- run.c ---- */

/* The program whose machines they are; NULL: they are not a program's. */
ebb_program *ebb__program_of(const ebb_machines *ms);

/* ---- host_type.c ---- */

ebb_status ebb__host_types_make(ebb_program *p);

/* ---- host_dispatch.c ---- */

ebb_status ebb__host_on_message(ebb_machines *ms, void *self, const ebb_message *m);
ebb_status ebb__host_on_timer(ebb_machines *ms, void *self, const ebb_message *m);
ebb_status ebb__host_on_entry(ebb_machines *ms, void *self, const ebb_message *m);
ebb_status ebb__host_on_exit(ebb_machines *ms, void *self, const ebb_message *m);
ebb_status ebb__host_check(ebb_machines *ms, void *self, const ebb_message *m);
void ebb__host_settle(const ebb_machine_type *type, bool committed, uint32_t old_state, void *old,
                      uint32_t now_state, void *now);

/* Replaces the references of a state object by counted ones. On failure none is. */
ebb_status ebb__host_seal(ebb_program *p, ebb__object *o, uint32_t n_refs);
void ebb__host_unseal(ebb__object *o, uint32_t n_refs);

/* The object that a payload of a kind stands for. */
ebb__object *ebb__host_payload(ebb_program *p, uint32_t kind, const void *payload);

/* Remembers the trap of `run` for the report, and returns the status of the fault. */
ebb_status ebb__host_fault(ebb_program *p);
void ebb__host_report_fault(ebb_program *p, ebb_machine machine, const char *name, const char *kind,
                            bool goes_on, ebb_status st);

/* ---- host_effect.c ---- */

void ebb__host_keep(void *payload);
void ebb__host_drop(void *payload);

/* What is given to the runtime of machines for a message. */
typedef struct ebb__parcel {
    const void *payload;
    size_t size;
    uint16_t kind;
    ebb__object *block;   /* counted for it; NULL: none */
    uint64_t room[2 + 8]; /* for a copy of a small one */
} ebb__parcel;
ebb_status ebb__parcel_make(ebb__run *run, ebb__object *message, ebb__parcel *out);

uint64_t ebb__key_of(const void *bytes, size_t n);

/* ---- host_send.c ---- */

/* The host works on values of the program, which are gone at the end. Not in a handler. */
ebb__run ebb__host_begin(ebb_program *p);
void ebb__host_end(ebb_program *p);

/* The type of a message; 0: there is none, or more than one. */
uint32_t ebb__message_named(const ebb_program *p, const char *name);
/* Whether the id is that of a machine that a handle of this type may stand for. */
bool ebb__handle_fits(const ebb_program *p, uint32_t type, uint64_t id);
/* A message of the fields. EBB_ERR_INVALID, EBB_ERR_NOMEM, EBB_ERR_LIMIT. */
ebb_status ebb__host_message(ebb__run *run, const char *kind, const ebb_program_field *fields, size_t n,
                             ebb__parcel *out);
/* Sends it, and gives it up if that fails. */
ebb_status ebb__host_send(ebb_program *p, ebb_machine to, const ebb__parcel *x);

/* ---- spec.c ---- */

ebb_status ebb__specs_make(ebb_program *p);
void ebb__specs_free(ebb_program *p);
/* Shows a message to the monitors that observe its kind. False: one of them does not hold; run->trap. */
bool ebb__specs_observe(ebb_program *p, uint32_t kind, ebb__object *payload);
/* Counts those in a hot state, and names the first. */
void ebb__specs_hot(const ebb_program *p, ebb_program_end *out);

#endif
