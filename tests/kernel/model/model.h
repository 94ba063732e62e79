/* A reference model of the kernel: plain arrays and linear scans, no regard for speed, nothing shared
 * with kernel/ but the public headers. It is told every operation that the kernel is told, answers
 * with the status that it expects, and holds the state that it expects.
 *
 * Objects are numbered from 1 in the order of their making and never reused; 0 is the host, or none.
 * Where the specification leaves an order open (which of two tasks of a region is asked first) the
 * model follows the kernel and says so at the place. */
#ifndef EBB_TESTS_MODEL_H
#define EBB_TESTS_MODEL_H

#include <ebb/sched.h>

enum { M_TASKS = 1024, M_REGIONS = 512, M_OWED = 1024, M_TIMERS = 2048, M_MEMBERS = 256, M_LOG = 256 };

/* What a task or region was told. kind 0: nothing. */
typedef struct m_told {
    uint8_t kind, severity, epoch;
} m_told;

/* A list of object numbers in order. */
typedef struct m_list {
    int n, at[M_MEMBERS];
} m_list;

typedef struct m_task {
    bool visible; /* its id names something */
    int region;
    int waiter; /* the task which joins it */
    ebb_task_phase phase;
    m_told told;
    uint8_t mask, priority;
    bool polling, rewake, returned, forced, fin_forced, in_finalizer, abandoned, closer, timed, joining, keep;
    bool stop;    /* it was told that its region closes */
    bool has_due; /* spawned with a deadline */
    bool own;     /* cancelled by itself: `due` is when it is forced, `kept` what follows for finalizers */
    uint64_t due, kept;
    uint32_t polls;
    int force_left;
    ebb_status status;
    m_list owes;   /* in the order of their making; the last is first */
    m_list scopes; /* regions that it opened; likewise */
    int joins;     /* what it waits for, if it is `joining`: a task, 0 (a region), or M_SEVERAL */
    /* Its place in a lane. */
    ebb_lane lane;
    uint64_t bucket, key, arrival;
} m_task;

typedef struct m_region {
    bool visible;
    int parent, owner;
    ebb_region_state state;
    ebb_failure_policy policy;
    m_told told;
    uint8_t priority;
    bool cleanup, unit, bounded, joining, forced, swept, has_note;
    bool left;              /* its task has returned, and told it so */
    m_list tasks, children; /* the last takes the place of one that leaves */
    m_list owes, kept, closed;
    int obligations, closer;
    uint32_t abandoned, leaked, polls;
    ebb_status status;
    uint64_t deadline, force_at;
} m_region;

typedef struct m_owed {
    int task, region; /* task 0: the region's own */
    bool finalizer, open;
} m_owed;

typedef enum m_source { M_TIMER, M_TASK, M_REGION } m_source;

typedef struct m_armed {
    m_source source;
    int number;
    uint64_t tick, order, suborder;
} m_armed;

typedef struct m_timer {
    int task;
    bool armed;
} m_timer;

/* The user's code that has to be called next. */
typedef enum m_what { M_NOTHING, M_POLL, M_FINALIZER } m_what;
typedef struct m_call {
    m_what what;
    int task, owed;
} m_call;

typedef struct model {
    uint64_t now, tick;
    m_task task[M_TASKS];
    m_region region[M_REGIONS];
    m_owed owed[M_OWED];
    m_timer timer[M_TIMERS];
    int tasks, regions, n_owed, timers;
    m_armed armed[M_TIMERS];
    int armed_n;
    uint64_t firing; /* the order of the timer that fires right now; 0: none */
    uint64_t order;  /* of arming and of arrival in lanes */
    m_list sweep, runnable;
    int cycle;
    uint64_t bucket_base;
    m_call call;
    /* Abort hooks and on_closed calls since the log was cleared: obligations as they are, regions negated. */
    int log[M_LOG], log_n;
    ebb_runtime_stats stats;
} model;

#define M_ROOT 1

void model_init(model *m, uint64_t now);

/* ---- operations. `who` is the task that asks, 0 the host. ---------------------------------------- */

ebb_status model_spawn(model *m, int who, int region, const ebb_task_opts *o, int *task);
ebb_status model_open(model *m, int who, int parent, const ebb_region_opts *o, int *region);
void model_close(model *m, int region);
void model_cancel(model *m, int region, ebb_cancel_kind kind, const ebb_budget *budget);
void model_force(model *m, int region);
void model_task_cancel(model *m, int task, ebb_cancel_kind kind);
void model_task_force(model *m, int task);
ebb_status model_discard(model *m, int task);
ebb_status model_wake(model *m, int task);
ebb_status model_checkpoint(model *m, int who);
ebb_status model_mask(model *m, int who);
ebb_status model_unmask(model *m, int who);
ebb_status model_reserve(model *m, int who, int region, int *owed);
ebb_status model_resolve(model *m, int owed, bool abort);
ebb_status model_defer(model *m, int who, int region, int *owed);
ebb_status model_region_join(model *m, int who, int region);
ebb_status model_task_join(model *m, int who, int task);
ebb_status model_timer_arm(model *m, int task, uint64_t due, int *timer);
ebb_status model_timer_disarm(model *m, int timer);
void model_advance(model *m, uint64_t now);

/* One poll at most. Afterwards `call` says whose code runs; model_returned() says what it returned,
 * and then `call` is the next (a poll may run several finalizers) or nothing. The kernel leaves its wheel
 * alone while it knows that nothing is due; that can only be seen in the order of timers which are armed
 * when they are already due, so the model is told. */
void model_pump(model *m, bool wheel_turns);
/* What has run may have armed something that is due already. */
void model_pump_end(model *m);
void model_returned(model *m, ebb_status st);
ebb_status model_pump_status(const model *m);

/* ---- shared by the model's own files --------------------------------------------------------------- */

void m_push(m_list *l, int x);
void m_drop(m_list *l, int x);        /* keeps the order */
void m_swap_remove(m_list *l, int x); /* the last takes its place */

/* May `who` add something to an existing region, or take on something of its own? A refusal is a checkpoint. */
ebb_status m_admit(model *m, int who, int region);
ebb_status m_admit_own(model *m, int who);
bool m_is_stopping(const model *m, int region); /* open in a unit, and closed around that */
void m_pass_deadlines(model *m, int region);

uint64_t m_cleanup_deadline(const model *m, int t);
void m_enqueue(model *m, int t);
void m_enqueue_cancelled(model *m, int t, uint64_t deadline);
void m_dequeue(model *m, int t);
bool m_due_sooner(model *m, int t, uint64_t deadline);
void m_wake(model *m, int t);
void m_rewoken(model *m, int t);
void m_arm(model *m, m_source source, int number, uint64_t due);
void m_disarm(model *m, m_source source, int number);
bool m_is_armed(const model *m, m_source source, int number);
void m_fired(model *m, const m_armed *a);
void m_sweep_later(model *m, int r);
void m_sweep_one(model *m);
void m_poll(model *m, int t);

void m_region_advance(model *m, int r);
void m_region_failed(model *m, int r, ebb_status st);
bool m_scopes_join(model *m, int t);
void m_log(model *m, int what);
void m_leak(model *m, int owed);
int m_next_finalizer(const model *m, int t);

void m_request(model *m, int t, m_told told, uint32_t polls, uint64_t deadline);
void m_overdue(model *m, int t);
void m_cancel_one(model *m, int t, ebb_cancel_kind kind);
void m_task_end(model *m, int t, ebb_status st);
void m_task_due(model *m, int t);
void m_region_due(model *m, int r);
void m_cancel_tree(model *m, int r, ebb_cancel_kind kind, const ebb_budget *budget);
void m_force_tree(model *m, int r);
uint64_t m_budget_end(const model *m, int severity);
uint32_t m_budget_polls(int severity);
uint64_t m_force_at(uint64_t now, uint64_t deadline);
/* A deadline of its own that is still to come bounds what a cancel gives. */
void m_cap(const model *m, uint64_t own, uint64_t *end, uint64_t *force_at);
enum { M_SEVERAL = -1 };
void m_joins(model *m, int who, int what);  /* it waits in a join */
bool m_is_overdue(const model *m, int who); /* its budget is over, and it hears it */

#endif
