/* kernel/journal_op.h - the operations of a journal. The recorder writes them, trace/journal.c reads them. */
#ifndef EBB_KERNEL_JOURNAL_OP_H
#define EBB_KERNEL_JOURNAL_OP_H

#include <ebb/kernel.h>

/* Operations. A record's `phase` is 1 if the host is the caller; otherwise the caller is the task being polled, or
 * the task of a preceding ASKER record. An operation with a result is recorded after it; one without, and ABORT
 * and PUMP, which call user code, before it. CALL and RETURN records enclose the operations of that user code. The
 * first five records are START, LIMITS and CLEANUP for each severity. */
typedef enum ebb__op {
    J_TEXT = EBB_EV_TEXT, /* a site or message of the preceding record */
    J_ARGS = 5,           /* more arguments: task: deadline, value: polls, kind: priority */
    J_START = 6,          /* task: turn, region: batch, other: now, value: 1 if it is not the first thing */
    J_LIMITS = 7,         /* value: max_tasks, region: max_regions, other: tick of the wheel, kind: patient,
                           * task: chain_depth << 32 | chain_bytes */
    J_CLEANUP = 8,        /* kind: severity, task: time_ns, value: polls */
    J_ASKER = 9,          /* task: the caller of the next operation */
    J_OPEN = 10,          /* region: parent, other: new id, value: flags; then ARGS, TEXT */
    J_CLOSE,              /* region */
    J_CANCEL,             /* region, kind; then TEXT */
    J_CANCEL_WITHIN,      /* region, kind; then ARGS, TEXT */
    J_FORCE,              /* region */
    J_REGION_JOIN,        /* region, value: result */
    J_SPAWN,              /* region, other: the new task, value: flags; then ARGS, TEXT */
    J_TASK_JOIN,          /* task, value: result */
    J_WAKE,               /* task */
    J_TASK_CANCEL,        /* task, kind; then TEXT */
    J_TASK_FORCE,         /* task */
    J_CHECKPOINT,         /* value: result */
    J_MASK,               /* value: result */
    J_UNMASK,             /* value: result */
    J_RESERVE,            /* kind, region (0: of the task), value: has a hook, other: new id; then TEXT */
    J_COMMIT,             /* other, value: result */
    J_ABORT,              /* other, value: result */
    J_DEFER,     /* region (0: of the task), kind: 1 if it is the runtime's own, value: result; then TEXT */
    J_ADVANCE,   /* other: now */
    J_PUMP,      /* value: polls allowed */
    J_TURN,      /* task: turn, region: batch */
    J_TIMER_ARM, /* task, region: due, other: the new one */
    J_TIMER_DISARM, /* other, value: result */
    J_RECEIVE,      /* value: verb, task or region, other: word; then the operation that the message causes */
    J_CHOICE,       /* value: which, other: of how many */
    J_CHAIN,        /* region, value: room */
    J_WAIT_BEGIN,   /* value: its number */
    J_WAIT_END,     /* value: its number */
    J_CALL,         /* a call of user code begins: value: what (EBB__CALL_*), task, region, other */
    J_RETURN,       /* the call has returned: value: status */
    J_SUPERVISOR,   /* region, other: the new task, value: 1: the root's, with on_closed; then TEXT */
    J_ALARM,        /* task: the supervisor, other: due */
    J_JOINING,      /* region */
    J_NOTE,         /* kind: type of the event, task, region, other, value */
    J_ADMIT,        /* an operation was refused: kind: 1 if it brings work in, value: result */
    J_CLOCK,        /* other: now, as read where the kernel started a budget */
    J_OPERATORS,    /* region: the drain region, other: new id; then TEXT */
    J_RELEASE,      /* region: the operators', other: due */
    J_OPERATION,    /* region: one of its operations was abandoned; result: was it kept; then TEXT */
    J_OBSERVE,      /* task or region: a layer is called at its end */
    J_DISCARD,      /* task, value: result; then the calls of its waits' hooks */
    J_END
} ebb__op;

enum {
    EBB__CALL_POLL = 1,
    EBB__CALL_FINALIZER,
    EBB__CALL_ABORT,
    EBB__CALL_CLOSED,
    EBB__CALL_WAIT,
    EBB__CALL_FUTURES, /* a callback runner has ended, or the region releases its callbacks */
    EBB__CALL_OBSERVED /* a task or region has ended that a layer observes */
};

#endif
