/* ebb/program.h - runs a program that ebb/lang.h compiled: its machines are machines of ebb/machine.h.
 *
 *     ebb_program_new(c, &opts, &p);      from a compilation without errors
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
        *broken;      /* "assert", "invariant" or "spec", which does not hold; "": a fault of another kind */
    const char *code; /* of a fault, a name that stays: "DIVIDE", "ASSERT"; else NULL */
} ebb_program_event;

typedef struct ebb_program_opts {
    uint32_t size;           /* sizeof(ebb_program_opts) of the caller; 0: this one */
    ebb_allocator allocator; /* required */
    ebb_region parent;       /* where the region of its machines is opened. 0: the region of cx */
    /* Gets each line that the program prints, without its newline. May be NULL. */
    void (*print)(void *ctx, const char *text, size_t n);
    void (*report)(void *ctx, const ebb_program_event *e); /* may be NULL */
    void (*quiet)(void *ctx); /* the program has become quiet, see ebb_program_is_quiet. May be NULL */
    void *ctx; /* the first argument of these functions; `print` and `report` may call none of this header */
    const char *name; /* for ebb_program_find and for who looks at it; must outlive the program. NULL: none */
} ebb_program_opts;

/* Makes a program of a compilation, which must outlive the program. EBB_ERR_INVALID: the compilation has errors or no
 * `fn main`, or there is no allocator. EBB_ERR_LIMIT: `report` says which limit, for example that a function needs more
 * than 250 registers of a kind. EBB_ERR_NOMEM, EBB_ERR_VERSION. */
ebb_status ebb_program_new(ebb_lang *c, const ebb_program_opts *opts, ebb_program **out);
/* Frees a program, after the region of its machines has closed, or after ebb_runtime_free. EBB_ERR_BUSY: the region has
 * not closed, or a value of ebb_program_ask has not been discarded. */
ebb_status ebb_program_free(ebb_program *p);

/* Opens the runtime of machines of the program, once. Errors as ebb_machines_open. EBB_ERR_RESOLVED: it was opened
 * before. */
ebb_status ebb_program_open(ebb_cx *cx, ebb_program *p);
/* That runtime of machines; NULL: it was not opened. */
ebb_machines *ebb_program_machines(const ebb_program *p);

/* Finds the program of this name that is open in the runtime of cx; NULL: there is none. The daemon names each program
 * of its folder as its file is named, without ".ebb" (docs/serve.md). */
ebb_program *ebb_program_find(ebb_cx *cx, const char *name);

/* Runs main, once. Its effects act at once. EBB_FAILED: main returned an error, or trapped; its effects until then stay.
 * EBB_ERR_INVALID: the program is not open. EBB_ERR_RESOLVED: main was run before. */
ebb_status ebb_program_start(ebb_program *p);

/* A field of a message from the host, or an argument of `new`. Its type is that of the message's field; a duration is an
 * `i64` of ms, a handle the `u64` of a machine's id. */
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
 * with the module "std/console::Line"; `fields` gives each of its fields, which are numbers, bools, strings (UTF-8), bytes
 * or handles. Statuses as ebb_machine_send. EBB_ERR_INVALID: there is no such message, or the fields are not its fields. */
ebb_status ebb_program_send(ebb_program *p, ebb_machine to, const char *kind, const ebb_program_field *fields,
                            size_t n);
/* The same, to all machines that have subscribed to the kind and key. */
ebb_status ebb_program_publish(ebb_program *p, const char *kind, const char *key,
                               const ebb_program_field *fields, size_t n);

/* Spawns a machine, as `TYPESTATE::spawn(...)` does: `arguments` gives each parameter of its `new` by name. It is to be
 * started with ebb_machine_start; `ebb_program_machines` has it. Not in a handler. Returns its id, or an id that carries
 * an error: EBB_ERR_INVALID (there is no such typestate, or the arguments are not its arguments), EBB_ERR_CLOSED,
 * EBB_ERR_NOMEM; of a trap in `new`, which is reported, EBB_ERR_TRAP or EBB_FAILED. */
ebb_machine ebb_program_spawn(ebb_program *p, const char *typestate, const ebb_program_field *arguments,
                              size_t n);

/* Writes a message of the program as JSON, one object: its fields. `kind` and `payload` are those of
 * ebb_machine_answer, for example, which ebb_program_ask of ebb/future.h gives; ebb_machines_kind has the name of the
 * kind. A handle is the text of its id, bytes are hexadecimal, a duration is a number of ms. EBB_ERR_INVALID (the kind),
 * EBB_ERR_NOMEM. */
ebb_status ebb_program_json(ebb_program *p, uint16_t kind, const void *payload,
                            void (*write)(void *ctx, const char *text, size_t n), void *ctx);

/* The last fault of a machine, if it is among the last 32 of the program. The strings are valid until it faults
 * again. */
bool ebb_program_fault_of(const ebb_program *p, ebb_machine machine, ebb_program_event *out);

/* True if exactly one message of the program has this name, so that the host can send it. */
bool ebb_program_has(const ebb_program *p, const char *kind);

/* True if nothing will happen any more unless the host sends something: no message that a machine could take, no timer,
 * and no request that will time out. */
bool ebb_program_is_quiet(const ebb_program *p);

/* How a program has ended, or its state until now. */
typedef struct ebb_program_end {
    ebb_status main;                  /* of ebb_program_start */
    uint64_t faults;                  /* machines that ended by a fault */
    uint64_t recovered;               /* handlers that were rolled back, of machines that went on */
    uint64_t dead;                    /* dead letters */
    uint32_t waiting;                 /* requests without a reply when the program was last quiet */
    uint32_t queued;                  /* messages in mailboxes at that time */
    uint32_t hot;                     /* specs that are in a hot state */
    const char *hot_spec, *hot_state; /* the first of them, valid as long as the program; "": none */
} ebb_program_end;
void ebb_program_end_of(const ebb_program *p, ebb_program_end *out);

#ifdef __cplusplus
}
#endif
#endif
