/* durable/suite_case.h - what the cases of the conformance suite are written with.
 *
 * A case makes instances whose ids begin with its name and a number of the run, asks with calls that are kept until its end, and
 * compares. ebb__t_* are the verbs. Each returns EBB_OK, or EBB_ERR_ORACLE with `text` set; TRY ends the case then.
 * Fetches are for the case's own instances (`only`) and its own queues, so that other work in the store does not matter.
 * Which node gets an instance is the provider's choice: ebb__t_take asks all nodes of the case until one has it.
 *
 * Time: EBB__T_LEASE is a lease that is to lapse; ebb__t_lapse waits until it has. On a real store that is real time. */
#ifndef EBB_DURABLE_SUITE_CASE_H
#define EBB_DURABLE_SUITE_CASE_H

#include <string.h>

#include "durable/suite.h"

#define EBB__T_LEASE (300 * EBB_MS)
#define EBB__T_LONG  (600 * EBB_SECOND)
enum { EBB__T_NODES = 6 };

/* One instance of a case. */
typedef struct ebb__t_instance {
    const char *id;
    uint64_t key, execution, turn;
    const ebb_provider_turn_item *item; /* of the last fetch */
    size_t node;                        /* which of the case's nodes has it */
} ebb__t_instance;

/* What hints have come since the case began. */
typedef struct ebb__t_heard {
    uint32_t turns, work, gone, ended, lost;
    ebb_provider_hint last_gone;
} ebb__t_heard;

/* Where a case writes when there is no memory for a call: ebb__t_ask refuses it. */
typedef union ebb__t_spare {
    ebb_provider_call call;
    ebb_provider_join_call join;
    ebb_provider_fetch_turns_call fetch_turns;
    ebb_provider_ack_turn_call ack_turn;
    ebb_provider_fetch_work_call fetch_work;
    ebb_provider_ack_work_call ack_work;
    ebb_provider_start_call start;
    ebb_provider_send_call send;
    ebb_provider_history_call history;
    ebb_provider_instance_call instance;
    ebb_provider_list_call list;
    ebb_provider_outstanding_call outstanding;
    ebb_provider_reset_call reset;
} ebb__t_spare;

/* What a case runs in. Nodes 0 and 1 have a long lease and live as long as the suite; the others are the case's. */
struct ebb__suite {
    ebb_cx *cx;
    ebb_store *store, *other; /* two handles on the same data */
    const ebb__suite_case *now;
    uint64_t run; /* a number of this run, in ids */
    char name[64], queue[128];
    ebb_provider_node node[EBB__T_NODES];
    size_t nodes;
    bool away;               /* nodes 0 and 1 have left: see ebb__t_go_away */
    ebb_provider_call *kept; /* asked by this case: freed at its end */
    ebb__hint_listener listener;
    ebb__t_heard heard;
    ebb__t_spare spare;
    ebb__arena arena; /* of the case */
    char text[400];   /* of the failure */
};

#define TRY(what)                                                                                            \
    do {                                                                                                     \
        const ebb_status try_status = (what);                                                                \
        if (try_status != EBB_OK) return try_status;                                                         \
    } while (0)
/* Compares; the text names what was compared. */
#define CHECK(s, condition)                                                                                  \
    do {                                                                                                     \
        if (!(condition)) return ebb__t_fail((s), "not so: %s (%s)", #condition, EBB_SITE);                  \
    } while (0)
#define SAME(s, what, expected) TRY(ebb__t_same((s), #what, (uint64_t)(what), (uint64_t)(expected), EBB_SITE))

ebb_status ebb__t_fail(ebb__suite *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
ebb_status ebb__t_same(ebb__suite *s, const char *what, uint64_t found, uint64_t expected, const char *site);
ebb_status ebb__t_blob(ebb__suite *s, ebb_blob found, ebb_blob expected, const char *site);
#define SAME_BLOB(s, found, expected) TRY(ebb__t_blob((s), (found), (expected), EBB_SITE))

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* Memory of a call; of the case, if the call is the spare one. NULL: no memory. */
void *ebb__t_room(ebb__suite *s, void *call, size_t n);
/* A call of the case's store, or of the second handle on it. */
void *ebb__t_new(ebb__suite *s, ebb_provider_op op);
void *ebb__t_new_other(ebb__suite *s, ebb_provider_op op);
/* Asks, waits, and expects this answer. The call stays valid until the end of the case. */
ebb_status ebb__t_ask(ebb__suite *s, void *call, ebb_status expected, const char *site);
#define ASK(s, call, expected) TRY(ebb__t_ask((s), (call), (expected), EBB_SITE))
/* Asks all of them before it waits for any, and expects the same answer of all. */
ebb_status ebb__t_ask_all(ebb__suite *s, ebb_provider_call *const *calls, size_t n, ebb_status expected,
                          const char *site);
#define ASK_ALL(s, calls, n, expected) TRY(ebb__t_ask_all((s), (calls), (n), (expected), EBB_SITE))
/* The same; the answers are for the case to look at. */
ebb_status ebb__t_ask_each(ebb__suite *s, ebb_provider_call *const *calls, size_t n);
/* A row of the table of cases. */
#define CASE(name, about)                                                                                    \
    { #name, about, name }
#define LAST                                                                                                 \
    { NULL, NULL, NULL }

const char *ebb__t_id(ebb__suite *s, const char *what); /* an id of the case's own */
ebb_blob ebb__t_bytes(ebb__suite *s, size_t n);         /* n bytes of every value */
ebb_provider_token ebb__t_token(ebb__suite *s);         /* one that was never given */
void ebb__t_wait(ebb__suite *s, uint64_t ns);
void ebb__t_lapse(ebb__suite *s);
/* Waits until a hint of this kind has come, for a second at most. */
ebb_status ebb__t_hear(ebb__suite *s, const uint32_t *count, const char *what);

/* ---- nodes -------------------------------------------------------------------------------------------------------- */

/* Joins a node of the case's, which runs versions 1 to 3 of its name, and puts it at the end of `node`. */
ebb_status ebb__t_join(ebb__suite *s, uint64_t lease, size_t *which);
ebb_status ebb__t_join_runs(ebb__suite *s, uint64_t lease, const ebb_provider_runs *runs, size_t n,
                            size_t *which);
ebb_status ebb__t_leave(ebb__suite *s, size_t which);
/* Nodes 0 and 1 leave, so that what a node of the case lets lapse goes to no node with a long lease; and join again, which
 * the end of the case does too. */
ebb_status ebb__t_go_away(ebb__suite *s);
ebb_status ebb__t_come_back(ebb__suite *s);
ebb_provider_renew_call *ebb__t_renew(ebb__suite *s, size_t which, const ebb_provider_token *tokens, size_t n,
                                      uint64_t lease); /* is not asked yet */

/* ---- instances ------------------------------------------------------------------------------------------------------ */

ebb_provider_start_call *ebb__t_start_call(ebb__suite *s, const char *what);
ebb_status ebb__t_start(ebb__suite *s, const char *what, ebb__t_instance *x);
ebb_provider_send_call *ebb__t_send_call(ebb__suite *s, const char *id, const char *body);
ebb_status ebb__t_send(ebb__suite *s, const ebb__t_instance *x, const char *body);
ebb_status ebb__t_row(ebb__suite *s, const ebb__t_instance *x, const ebb_provider_instance_row **out);
ebb_status ebb__t_left(ebb__suite *s, const ebb__t_instance *x, ebb_provider_outstanding_call **out);
/* Expects that so much is outstanding. */
ebb_status ebb__t_has(ebb__suite *s, const ebb__t_instance *x, uint64_t work, uint64_t timers,
                      uint64_t messages);

/* ---- turns ------------------------------------------------------------------------------------------------------------ */

ebb_provider_fetch_turns_call *ebb__t_fetch_call(ebb__suite *s, size_t node, const ebb__t_instance *x);
/* Fetches the instance by whichever node may have it, waiting a second at most. */
ebb_status ebb__t_take(ebb__suite *s, ebb__t_instance *x);
/* Starts instances until this node is given one of them. */
ebb_status ebb__t_take_by(ebb__suite *s, size_t node, ebb__t_instance *x);
/* Fetches an instance that may be a suspect. */
ebb_status ebb__t_take_suspect(ebb__suite *s, ebb__t_instance *x);
/* Expects that no node is given the instance. */
ebb_status ebb__t_idle(ebb__suite *s, const ebb__t_instance *x);
/* The ack of what was taken, as yet without rows: all messages are acked. */
ebb_provider_ack_turn_call *ebb__t_turn(ebb__suite *s, const ebb__t_instance *x);
/* Asks it, expects success, and moves on by a turn. */
ebb_status ebb__t_commit(ebb__suite *s, ebb__t_instance *x, ebb_provider_ack_turn_call *c);
/* n rows of work, activities `first`, `first` + 1, ... in the case's queue. */
const ebb_provider_work *ebb__t_work(ebb__suite *s, uint64_t first, size_t n);
/* Starts an instance and commits its first turn, with n rows of work. */
ebb_status ebb__t_begin(ebb__suite *s, const char *what, size_t work, ebb__t_instance *x);
/* Takes the instance and commits a turn that does nothing but end it. */
ebb_status ebb__t_end(ebb__suite *s, ebb__t_instance *x, ebb_instance_state state);
/* Sends a signal, so that there is something to take. */
ebb_status ebb__t_poke(ebb__suite *s, ebb__t_instance *x);

/* ---- work ---------------------------------------------------------------------------------------------------------------- */

ebb_provider_fetch_work_call *ebb__t_work_call(ebb__suite *s, size_t node, uint64_t lease, uint32_t most);
/* Fetches work of the case's queue by a node: expects this many. */
ebb_status ebb__t_claim(ebb__suite *s, size_t node, uint64_t lease, size_t expected,
                        ebb_provider_work_item **out);
ebb_provider_ack_work_call *ebb__t_done(ebb__suite *s, size_t node, const ebb_provider_work_item *item,
                                        const char *message); /* NULL: none */
ebb_status ebb__t_abandon(ebb__suite *s, size_t node, ebb_provider_token token, uint64_t delay);
ebb_status ebb__t_abandon_turn(ebb__suite *s, size_t node, ebb_provider_token token);

#endif
