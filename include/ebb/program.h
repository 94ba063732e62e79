/* ebb/program.h - runs a program that ebb/lang.h compiled: its machines are machines of ebb/machine.h.
 *
 *     ebb_program_new(c, &opts, &p);      compiled once
 *     ebb_program_open(cx, p);            a runtime of machines for it
 *     ebb_program_start(p);               runs main; what it spawned and sent goes on in the dispatcher
 *     ... until ebb_program_is_quiet(p), or as long as the host sends ...
 *     ebb_region_close(cx, ebb_machines_region(ebb_program_machines(p)));
 *     ebb_program_end_of(p, &end);
 *     ebb_program_free(p);
 *
 * A program belongs to the thread of its runtime. It does no I/O: what it prints goes to the host. */
#ifndef EBB_PROGRAM_H
#define EBB_PROGRAM_H

#include <ebb/lang.h>
#include <ebb/machine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ebb_program ebb_program;

/* Something that went wrong while the program runs. The strings are valid until the call returns. */
typedef enum ebb_program_event_what {
    EBB_PROGRAM_FAULT =
        1, /* a handler was rolled back, or main ended early: `why`, at `file`:`line`:`column` */
    EBB_PROGRAM_DEAD = 2, /* a message was not handled: `kind`, `why` */
    EBB_PROGRAM_FULL = 3, /* a mailbox was full: `kind` */
    EBB_PROGRAM_LIMIT =
        4 /* ebb_program_new returns EBB_ERR_LIMIT: `name` has `why`, at `file`:`line`:`column` */
} ebb_program_event_what;

typedef struct ebb_program_event {
    ebb_program_event_what what;
    ebb_machine machine; /* of a dead letter, the receiver; id 0: none, or main */
    const char
        *name; /* the machine's typestate; "main"; "" if it is gone; of a limit, a function or typestate */
    const char *kind; /* the message; "" if there is none */
    const char *why;  /* "overflow"; "ByZero" */
    const char *text; /* what an assertion or trap says; "" if nothing */
    const char *file; /* "": no place */
    uint32_t line, column;
    bool goes_on; /* of a fault: the machine has a fault state, and is in it now */
    const char
        *broken; /* of a fault: "assert", "invariant" or "spec", which does not hold; "": another fault */
} ebb_program_event;

typedef struct ebb_program_opts {
    uint32_t size;           /* sizeof(ebb_program_opts) of the caller, or 0 */
    ebb_allocator allocator; /* required */
    ebb_region parent;       /* where the region of its machines is opened. 0: the region of cx */
    void (*print)(void *ctx, const char *text,
                  size_t n); /* a line that `print` says, without a newline. May be NULL */
    void (*report)(void *ctx, const ebb_program_event *e); /* may be NULL */
    void (*quiet)(void *ctx); /* the program has become quiet, see ebb_program_is_quiet. May be NULL */
    void *ctx; /* the first argument of these. `print` and `report` may not call functions of this header */
} ebb_program_opts;

/* Makes a program of a compilation without errors, which must outlive it. EBB_ERR_INVALID: there are errors, or no
 * `fn main`, or no allocator; EBB_ERR_LIMIT: `report` says which, for example a function that needs more than 250 registers
 * of a kind; EBB_ERR_NOMEM, EBB_ERR_VERSION. */
ebb_status ebb_program_new(ebb_lang *c, const ebb_program_opts *opts, ebb_program **out);
/* Frees it, after the region of its machines has closed or ebb_runtime_free. EBB_ERR_BUSY: it has not. */
ebb_status ebb_program_free(ebb_program *p);

/* Opens the runtime of machines of the program, once. Errors as ebb_machines_open; EBB_ERR_RESOLVED: it was opened. */
ebb_status ebb_program_open(ebb_cx *cx, ebb_program *p);
ebb_machines *ebb_program_machines(const ebb_program *p);

/* Runs main. Its effects act at once. EBB_FAILED: it returned an error, or trapped; what it has done stays done. */
ebb_status ebb_program_start(ebb_program *p);

/* A field of a message from the host. Its type is that of the message's field; a duration is an `i64` of ms. */
typedef struct ebb_program_field {
    const char *name;
    union {
        int64_t i64;
        uint64_t u64;
        bool boolean;
        const void *bytes; /* of a string or bytes */
    };
    size_t n; /* of `bytes` */
} ebb_program_field;

/* Sends a message of the program as System: `kind` is its name, "Toggle", with the protocol "Auth::IncomingRequest", or
 * with the module "std/console::Line"; `fields` gives each of its fields, which are numbers, bools, strings (UTF-8) or
 * bytes. Statuses as ebb_machine_send; EBB_ERR_INVALID: there is no
 * such message, or the fields are not its fields. */
ebb_status ebb_program_send(ebb_program *p, ebb_machine to, const char *kind, const ebb_program_field *fields,
                            size_t n);
/* The same to all who have subscribed to the kind and key. */
ebb_status ebb_program_publish(ebb_program *p, const char *kind, const char *key,
                               const ebb_program_field *fields, size_t n);

/* Whether the program has one message of this name that the host may send. */
bool ebb_program_has(const ebb_program *p, const char *kind);

/* True if nothing will happen any more unless the host sends something: no message that a machine could take, no timer,
 * and no request that will time out. */
bool ebb_program_is_quiet(const ebb_program *p);

/* How it has ended, or how it is. */
typedef struct ebb_program_end {
    ebb_status main;                  /* of ebb_program_start */
    uint64_t faults;                  /* machines that ended by a fault */
    uint64_t recovered;               /* handlers that were rolled back, of machines that went on */
    uint64_t dead;                    /* dead letters */
    uint32_t waiting;                 /* requests that have no reply, at the last time that it was quiet */
    uint32_t queued;                  /* messages that nobody took, then */
    uint32_t hot;                     /* specs that are in a hot state */
    const char *hot_spec, *hot_state; /* the first of them, valid as long as the program; "": none */
} ebb_program_end;
void ebb_program_end_of(const ebb_program *p, ebb_program_end *out);

#ifdef __cplusplus
}
#endif
#endif
