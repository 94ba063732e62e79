/* trace/check.h - the state of the checker, shared by its rules.
 *
 * Each kind of object has a map by slot (the id without its generation). An entry stays after its object has
 * ended, until another object takes the slot. So memory is bounded by the number of live objects, and an event
 * that comes too late finds an entry that has ended. */
#ifndef EBB_TRACE_CHECK_H
#define EBB_TRACE_CHECK_H

#include "base/map.h"

#include <ebb/trace.h>

/* The cancel request of a task or region; `kind` 0: none yet. */
typedef struct ebb__request_entry {
    uint64_t deadline;
    uint32_t polls;
    uint8_t kind, severity, epoch;
} ebb__request_entry;

/* Every entry except a finalizer's starts with its id. */
typedef struct ebb__task_entry {
    uint64_t id, region;
    uint64_t finalizer; /* the finalizer that must run next; 0: none left */
    ebb__request_entry request;
    uint32_t held;  /* obligations that it holds, neither resolved nor leaked */
    int32_t status; /* at its end */
    uint8_t phase, depth;
    bool adopted : 1; /* it began before the capture: its events are not checked */
    bool keep : 1, closer : 1, apart : 1, forced : 1, faulted : 1, abandoned : 1, runnable : 1, joined : 1;
} ebb__task_entry;

typedef struct ebb__region_entry {
    uint64_t id, parent, owner;
    uint64_t finalizer;
    ebb__request_entry request;
    uint32_t tasks;       /* alive, including closers */
    uint32_t closers;     /* alive */
    uint32_t children;    /* not closed */
    uint32_t obligations; /* neither committed nor aborted */
    uint32_t leaked, abandoned;
    int32_t status; /* the outcome of its own tasks so far; once it is closed, the status it closed with */
    uint8_t state;
    bool adopted : 1; /* as of a task */
    bool cleanup : 1, unit : 1, stopping : 1, forced : 1, joined : 1;
    bool no_memory : 1, at_limit : 1; /* a refusal for this reason happened in it */
} ebb__region_entry;

typedef struct ebb__obligation_entry {
    uint64_t id, task, region;
    uint32_t kind;
    uint8_t state;
} ebb__obligation_entry;

enum { EBB__RESERVED = 1, EBB__LEAKED, EBB__COMMITTED, EBB__ABORTED };

typedef struct ebb__finalizer_entry {
    uint64_t task, region; /* of its owner; task 0: the region */
    uint64_t below;        /* the finalizer of the same owner that was added before; 0: none */
} ebb__finalizer_entry;

typedef struct ebb__timer_entry {
    uint64_t id, task;
    bool over; /* fired or disarmed */
} ebb__timer_entry;

/* A future stays until its number is used again. */
typedef struct ebb__future_entry {
    uint64_t number;
    uint8_t operation; /* what is known of the operation that will end it */
    bool ended, won;
} ebb__future_entry;

/* A connection, an exchange or a process that is open. */
typedef struct ebb__span_entry {
    uint64_t key;
    uint64_t inside; /* the connection of an exchange */
    uint32_t within; /* open exchanges of a connection */
} ebb__span_entry;

/* A machine, and the messages in its mailbox: a list in the order of their numbers. */
typedef struct ebb__machine_entry {
    uint64_t id;
    uint64_t first, last; /* numbers; 0: empty */
    uint64_t next;        /* the first that is not deferred; 0: none */
    uint32_t state;
    uint8_t lifecycle; /* ebb_machine_lifecycle */
} ebb__machine_entry;

typedef struct ebb__message_entry {
    uint64_t machine;    /* its id */
    uint64_t next, prev; /* in the mailbox */
} ebb__message_entry;

typedef struct ebb__pending_entry {
    uint64_t id;
    bool ended;
} ebb__pending_entry;

struct ebb_checker {
    ebb_allocator allocator;
    ebb__map tasks, regions, obligations, timers;        /* by slot */
    ebb__map finalizers;                                 /* by id; only those that have not run */
    ebb__map futures, connections, exchanges, processes; /* by number */
    uint32_t strings;                                    /* so far */
    uint64_t polled, poll_end;   /* the task that was polled last; when the last poll ended */
    ebb__map machines, pendings; /* by slot */
    ebb__map messages;           /* by number; only those in mailboxes */
    uint64_t message;            /* the highest number so far */
    uint64_t root, events, seq, time, turn, batch;
    uint64_t unexplained; /* closed because of a refusal whose event is still to come; 0: none */
    int32_t refusal;      /* the status of that refusal */
    bool partial;         /* a capture: check_partial.c */
    bool begun;           /* something has happened */
    uint32_t runnable;    /* tasks that must be polled before the next idle event */
    const ebb_event *at;  /* the event being checked; NULL at the end of the run */
    ebb_status status;    /* keeps the first error */
    ebb_violation violation;
};

/* Of a capture: an event of what began before it, which no rule is checked for. What the event names and was not known is
 * adopted. */
bool ebb__check_skips(ebb_checker *c, const ebb_event *ev);
bool ebb__check_present(ebb_checker *c, const ebb_event *ev);

/* The rules. Each returns false after a violation, or if there is no memory. */
bool ebb__check_task_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_region_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_obligation_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_finalizer_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_timer_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_string_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_poll_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_future_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_span_event(ebb_checker *c, const ebb_event *ev);
bool ebb__check_strings(ebb_checker *c, const ebb_event *ev); /* the strings that any event names are known */
bool ebb__check_layers_end(ebb_checker *c);                   /* of a quiescent run */
bool ebb__check_machine_event(ebb_checker *c, const ebb_event *ev);
/* At a quiescent end: all machines have stopped, all requests have ended. */
bool ebb__check_machines_end(ebb_checker *c);

/* Fails unless `asker`, a task or 0 for the host, may add `what` to an open region. */
bool ebb__check_admits(ebb_checker *c, const ebb__region_entry *r, uint64_t asker, const char *what);

/* Rules of statuses: trace/check_status.c. */
bool ebb__check_is_failure(int32_t status);
void ebb__check_ended(ebb__region_entry *r, int32_t status); /* a task of the region has ended */
bool ebb__check_refused(ebb_checker *c, const ebb_event *ev);
bool ebb__check_operation(ebb_checker *c, const ebb_event *ev); /* an operation was abandoned */
bool ebb__check_refusals_traced(ebb_checker *c);
bool ebb__check_closed_status(ebb_checker *c, const ebb__region_entry *r, int32_t status);
bool ebb__check_joined_status(ebb_checker *c, const char *noun, uint64_t id, int32_t ended, int32_t joined);

/* NULL: unknown, or the slot has another generation. These functions fail nothing. */
ebb__task_entry *ebb__check_task(const ebb_checker *c, uint64_t id);
ebb__region_entry *ebb__check_region(const ebb_checker *c, uint64_t id);
void *ebb__check_find(const ebb__map *map, uint64_t id);

/* The same, but an unknown id violates the format rule. */
ebb__task_entry *ebb__check_known_task(ebb_checker *c, uint64_t id);
ebb__region_entry *ebb__check_known_region(ebb_checker *c, uint64_t id);
bool ebb__check_fail_unknown(ebb_checker *c, const ebb__map *map, const char *noun, uint64_t id);

/* A zeroed entry for a new id. `live` says if the entry in the slot is still alive. NULL: failed. */
void *ebb__check_new_entry(ebb_checker *c, ebb__map *map, const char *noun, uint64_t id,
                           bool (*live)(const void *entry));

/* Checks a cancel request: the first one, a further one (never weaker), or one that repeats the current one. */
bool ebb__check_request_first(ebb_checker *c, const char *noun, uint64_t id, ebb__request_entry *request,
                              const ebb_event *ev);
bool ebb__check_request_again(ebb_checker *c, const char *noun, uint64_t id, ebb__request_entry *request,
                              const ebb_event *ev);
bool ebb__check_request_same(ebb_checker *c, const char *noun, uint64_t id, const ebb__request_entry *request,
                             const ebb_event *ev);
bool ebb__check_budget(ebb_checker *c, const char *noun, uint64_t id, const ebb__request_entry *request,
                       const ebb_event *ev);

/* Report a violation: the rule, the object and what was expected. All return false. */
bool ebb__check_fail(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what);
bool ebb__check_fail_id(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what,
                        uint64_t other);
bool ebb__check_fail_names(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what,
                           const char *expected, const char *found);
bool ebb__check_fail_numbers(ebb_checker *c, ebb_oracle o, const char *noun, uint64_t id, const char *what,
                             const char *relation, uint64_t expected, uint64_t found);
bool ebb__check_fail_phase(ebb_checker *c, const char *noun, uint64_t id, const char *event, uint32_t legal,
                           uint32_t found, const char *(*name)(uint32_t));

#endif
