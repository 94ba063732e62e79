/* durable/lab_rows.h - the rows of the lab provider.
 *
 * A row is one block with its bytes behind it. A call first looks, then makes all rows that it will insert (ebb__lab_batch), and
 * only then changes what is stored, which can't fail. So a call without memory has changed nothing.
 *
 * Invariants (ebb__lab_world_check): every row is in the lists of its instance and of its store; a claimed row has a token that is
 * not 0; an instance is in `ready` if and only if it has messages; work without a claim stands in the `idle` list of its
 * queue in the order of `number`, claimed work in the `claimed` list. */
#ifndef EBB_DURABLE_LAB_ROWS_H
#define EBB_DURABLE_LAB_ROWS_H

#include <string.h>

#include "durable/lab_store.h"

typedef struct ebb__lab_data ebb__lab_data;
typedef struct ebb__lab_instance ebb__lab_instance;
typedef struct ebb__lab_queue ebb__lab_queue;

/* A doubly linked list of rows, each with its `links` as the first member of what the list is of. */
typedef struct ebb__lab_links {
    struct ebb__lab_links *next, *prev;
} ebb__lab_links;
typedef struct ebb__lab_list {
    ebb__lab_links *first, *last;
    uint64_t n;
} ebb__lab_list;
void ebb__lab_append(ebb__lab_list *l, ebb__lab_links *at);
void ebb__lab_insert(ebb__lab_list *l, ebb__lab_links *at, ebb__lab_links *before); /* NULL: at the end */
void ebb__lab_unlink(ebb__lab_list *l, ebb__lab_links *at);

/* The record that has these links as its member `m`. */
#define EBB__LAB_OF(type, m, at) ((type *)(void *)((char *)(at)-offsetof(type, m)))

typedef struct ebb__lab_turn {
    ebb__lab_links links; /* of the instance, in order */
    uint64_t execution, turn, at;
    ebb_provider_token ack_id;
    ebb_blob body;
} ebb__lab_turn;

typedef struct ebb__lab_message {
    ebb__lab_links links; /* of the instance, by seq */
    uint64_t seq, execution, step, at;
    ebb_provider_message_kind kind;
    ebb_provider_token ack_id; /* of the ack of work that has made it */
    ebb_blob body;
} ebb__lab_message;

typedef struct ebb__lab_timer {
    ebb__lab_links links;     /* of the instance */
    ebb__lab_links due_links; /* of the store, by `due` */
    ebb__lab_instance *instance;
    uint64_t execution, step, due;
} ebb__lab_timer;

/* Who has claimed a row. token 0: nobody. */
typedef struct ebb__lab_claim {
    ebb_provider_token token;
    ebb_provider_node node;
} ebb__lab_claim;

typedef struct ebb__lab_work {
    ebb__lab_links links; /* of the instance */
    ebb__lab_links queue_links;
    struct ebb__lab_work *same_hash;
    ebb__lab_instance *instance;
    ebb__lab_queue *queue;
    uint64_t execution, activity, number, visible, until;
    uint32_t attempt, attempts;
    ebb__lab_claim claim;
    const char *session, *name;
    ebb_blob input;
} ebb__lab_work;

struct ebb__lab_queue { /* stays as long as the store */
    ebb__lab_queue *next;
    ebb__lab_list idle, claimed;
    char name[];
};

typedef struct ebb__lab_value {
    ebb__lab_links links;
    ebb_blob value;
    char key[];
} ebb__lab_value;

typedef struct ebb__lab_dedup {
    ebb__lab_links links;
    char id[];
} ebb__lab_dedup;

typedef struct ebb__lab_session {
    ebb__lab_links links;
    ebb_provider_node node;
    char name[];
} ebb__lab_session;

/* A blob or text that an instance has, replaced as a whole. */
typedef struct ebb__lab_bytes {
    size_t n;
    char at[]; /* n bytes and a 0 */
} ebb__lab_bytes;

struct ebb__lab_instance {
    ebb__lab_links links;       /* of the store, in the order of `key` */
    ebb__lab_links ready_links; /* of the store's `ready`, by `waits_since` */
    ebb__lab_instance *same_id, *same_key;
    uint64_t hash, key;
    ebb__lab_bytes *id, *name, *parent, *input, *result, *custom,
        *text; /* result, custom, text: NULL: none */
    uint32_t version, semantics, attempts, unread;
    uint64_t execution, turn, started, ended, waits_since;
    uint64_t next_seq, first_seq; /* of a message at the end; of the last that was put at the front */
    ebb_instance_state state;
    ebb__lab_claim claim;
    bool kept;   /* the claim outlived its turn */
    bool chosen; /* by the fetch that is going on */
    ebb__lab_list turns, messages, timers, work, values, dedups;
};

typedef struct ebb__lab_node {
    ebb__lab_links links;
    uint64_t id, epoch, until; /* epoch 0: it has left, or was taken over */
    ebb_provider_runs *runs;   /* their names are behind them, in the same block */
    size_t runs_n;
} ebb__lab_node;

/* A handle on the data: one open store. */
typedef struct ebb__lab_self {
    ebb__lab_links links;
    ebb__lab_data *data;
    const ebb_provider_host *host;
    ebb_provider_stats stats;
    bool read_only;
} ebb__lab_self;

/* What one name stands for, shared by the stores of a world. */
struct ebb__lab_data {
    ebb__lab_world *world;
    ebb__lab_data *next;
    ebb_allocator allocator;
    ebb__lab_list stores; /* that are open */
    ebb__lab_list instances, ready, due, nodes, sessions;
    ebb__lab_queue *queues;
    /* Hash tables, whose room is a power of two: instances by id, and behind that by key; work. */
    ebb__lab_instance **ids;
    ebb__lab_work **by_work;
    size_t ids_room, by_work_room, by_work_n;
    uint64_t base; /* ns since 1970 at the boot of the first host's clock */
    uint64_t now;  /* the last time that was given */
    uint64_t last_key, last_node, last_number;
    char name[];
};

/* Its tables, with `allocator` set; after a failure it is to be finished too. */
ebb_status ebb__lab_data_init(ebb__lab_data *d);
void ebb__lab_data_fini(ebb__lab_data *d);
/* Reads the clock, and sets `now` of the data. */
uint64_t ebb__lab_now(ebb__lab_self *s);

/* ---- found ----------------------------------------------------------------------------------------------------- */

ebb__lab_instance *ebb__lab_find(const ebb__lab_data *d, const char *id);
ebb__lab_instance *ebb__lab_find_key(const ebb__lab_data *d, uint64_t key);
ebb__lab_work *ebb__lab_find_work(const ebb__lab_data *d, uint64_t key, uint64_t execution,
                                  uint64_t activity);
ebb__lab_message *ebb__lab_find_message(const ebb__lab_instance *i, uint64_t seq);
ebb__lab_value *ebb__lab_find_value(const ebb__lab_instance *i, const char *key);
/* The node, if this is its epoch. NULL: it has left, or was taken over. */
ebb__lab_node *ebb__lab_find_node(const ebb__lab_data *d, ebb_provider_node node);
bool ebb__lab_is_live(const ebb__lab_data *d, ebb_provider_node node); /* by d->now */
static inline bool ebb__lab_has_ended(const ebb__lab_instance *i) {
    return i->state >= EBB_INSTANCE_COMPLETED;
}

/* ---- made -------------------------------------------------------------------------------------------------------- */

/* Blocks that are made and not inserted yet. A failure sticks: `failed`, and all later ones are NULL. */
typedef struct ebb__lab_batch {
    ebb__lab_data *data;
    struct ebb__lab_block *made;
    bool failed;
} ebb__lab_batch;
/* Frees all that was made, after a failure. */
void ebb__lab_undo(ebb__lab_batch *b);
void *ebb__lab_make(ebb__lab_batch *b, size_t n); /* zeroed */
ebb__lab_turn *ebb__lab_turn_new(ebb__lab_batch *b, ebb_blob body);
ebb__lab_message *ebb__lab_message_new(ebb__lab_batch *b, ebb_provider_message_kind kind, ebb_blob body);
ebb__lab_timer *ebb__lab_timer_new(ebb__lab_batch *b);
ebb__lab_work *ebb__lab_work_new(ebb__lab_batch *b, const ebb_provider_work *w);
ebb__lab_value *ebb__lab_value_new(ebb__lab_batch *b, const ebb_provider_value *v);
ebb__lab_dedup *ebb__lab_dedup_new(ebb__lab_batch *b, const char *id);
ebb__lab_instance *ebb__lab_instance_new(ebb__lab_batch *b, const char *id, const char *name,
                                         const char *parent, ebb_blob input);
ebb__lab_bytes *ebb__lab_bytes_new(ebb__lab_batch *b, ebb_blob from);
void ebb__lab_free(ebb__lab_data *d, void *at);
/* Frees the old one. */
void ebb__lab_bytes_set(ebb__lab_data *d, ebb__lab_bytes **at, ebb__lab_bytes *to);
static inline ebb_blob ebb__lab_blob(const ebb__lab_bytes *b) {
    return b != NULL ? (ebb_blob){b->at, b->n} : (ebb_blob){NULL, 0};
}

/* ---- inserted and deleted: these can't fail ------------------------------------------------------------------------ */

void ebb__lab_add_instance(ebb__lab_self *s, ebb__lab_instance *i); /* sets its key and time */
void ebb__lab_add_turn(ebb__lab_instance *i, ebb__lab_turn *t);
void ebb__lab_add_message(ebb__lab_self *s, ebb__lab_instance *i, ebb__lab_message *m, bool front);
void ebb__lab_add_timer(ebb__lab_self *s, ebb__lab_instance *i, ebb__lab_timer *t);
void ebb__lab_add_work(ebb__lab_self *s, ebb__lab_instance *i, ebb__lab_work *w);
void ebb__lab_add_value(ebb__lab_data *d, ebb__lab_instance *i, ebb__lab_value *v);
void ebb__lab_delete_instance(ebb__lab_self *s, ebb__lab_instance *i);
void ebb__lab_delete_message(ebb__lab_data *d, ebb__lab_instance *i, ebb__lab_message *m);
void ebb__lab_delete_timer(ebb__lab_data *d, ebb__lab_timer *t);
void ebb__lab_delete_work(ebb__lab_self *s, ebb__lab_work *w, ebb_cancel_kind cause); /* NONE: no hint */
void ebb__lab_delete_values(ebb__lab_data *d, ebb__lab_instance *i);
void ebb__lab_delete_dedups(ebb__lab_data *d, ebb__lab_instance *i);
/* Messages for an execution that is over. */
void ebb__lab_drop_messages(ebb__lab_self *s, ebb__lab_instance *i, uint64_t execution);
/* Frees all rows of a list; `links` is the offset of its links. */
void ebb__lab_free_list(ebb__lab_data *d, ebb__lab_list *l, size_t links);

/* Claims and lets go. */
void ebb__lab_claim_work(ebb__lab_work *w, ebb_provider_node node, ebb_provider_token token, uint64_t until);
void ebb__lab_release_work(ebb__lab_self *s, ebb__lab_work *w, uint64_t visible);
void ebb__lab_release_instance(ebb__lab_self *s, ebb__lab_instance *i);
/* The node's epoch ends, and so does all that it has claimed; with `refund` no attempt was charged. */
void ebb__lab_end_node(ebb__lab_self *s, ebb__lab_node *n, bool refund);

/* Hints to all stores on the same data. */
void ebb__lab_hint(ebb__lab_self *s, ebb_provider_hint_kind kind, const ebb__lab_instance *i);
void ebb__lab_hint_work(ebb__lab_self *s, const char *queue);

/* ---- calls, by file -------------------------------------------------------------------------------------------------- */

/* Each answers its call by ebb__lab_done. */
void ebb__lab_done(ebb__lab_self *s, ebb_provider_call *c); /* a commit */
void ebb__lab_read(ebb_provider_call *c);                   /* nothing was written */

void ebb__lab_join(ebb__lab_self *s, ebb_provider_join_call *c);
void ebb__lab_renew(ebb__lab_self *s, ebb_provider_renew_call *c);
void ebb__lab_leave(ebb__lab_self *s, ebb_provider_leave_call *c);
void ebb__lab_fetch_turns(ebb__lab_self *s, ebb_provider_fetch_turns_call *c);
void ebb__lab_ack_turn(ebb__lab_self *s, ebb_provider_ack_turn_call *c);
void ebb__lab_abandon_turns(ebb__lab_self *s, ebb_provider_abandon_turns_call *c);
void ebb__lab_fetch_work(ebb__lab_self *s, ebb_provider_fetch_work_call *c);
void ebb__lab_ack_work(ebb__lab_self *s, ebb_provider_ack_work_call *c);
void ebb__lab_abandon_work(ebb__lab_self *s, ebb_provider_abandon_work_call *c);
void ebb__lab_start(ebb__lab_self *s, ebb_provider_start_call *c);
void ebb__lab_send(ebb__lab_self *s, ebb_provider_send_call *c);
void ebb__lab_history(ebb__lab_self *s, ebb_provider_history_call *c);
void ebb__lab_instance_of(ebb__lab_self *s, ebb_provider_instance_call *c);
void ebb__lab_list_of(ebb__lab_self *s, ebb_provider_list_call *c);
void ebb__lab_value_of(ebb__lab_self *s, ebb_provider_value_call *c);
void ebb__lab_outstanding(ebb__lab_self *s, ebb_provider_outstanding_call *c);
void ebb__lab_mark(ebb__lab_self *s, ebb_provider_mark_call *c);
void ebb__lab_reset(ebb__lab_self *s, ebb_provider_reset_call *c);
void ebb__lab_remove(ebb__lab_self *s, ebb_provider_remove_call *c);

/* The work that was claimed with this token. NULL: none. */
ebb__lab_work *ebb__lab_find_token(const ebb__lab_data *d, ebb_provider_token token);
/* Work whose claim still holds. NULL: it does not. */
ebb__lab_work *ebb__lab_held(const ebb__lab_data *d, uint64_t key, uint64_t execution, uint64_t activity,
                             ebb_provider_token token);
/* It has messages, and no live node lists it. */
bool ebb__lab_is_unserved(const ebb__lab_data *d, const ebb__lab_instance *i);
/* A filter of keys; NULL: any. */
bool ebb__lab_is_among(const uint64_t *only, size_t n, uint64_t key);
/* An array of n pointers, of the call's memory. */
void *ebb__lab_array(ebb__lab_batch *b, ebb_provider_call *c, size_t n);
void ebb__lab_delete_all_work(ebb__lab_self *s, ebb__lab_instance *i, uint64_t execution,
                              ebb_cancel_kind cause);
void ebb__lab_delete_all_timers(ebb__lab_data *d, ebb__lab_instance *i, uint64_t execution);
/* The current execution is over, and the next begins. */
void ebb__lab_next_execution(ebb__lab_self *s, ebb__lab_instance *i, uint32_t version);

enum { EBB__LAB_SUSPECT = 2 }; /* charged attempts from which on a row is claimed alone */

/* Copies an instance for an answer, with inputs and results if `whole`. False: no memory. */
bool ebb__lab_row(ebb__lab_self *s, ebb_provider_call *c, const ebb__lab_instance *i, bool whole,
                  ebb_provider_instance_row *out);

/* Outgoing messages of an ack or a reset: made first, then delivered. */
typedef struct ebb__lab_outbox {
    const ebb_provider_outgoing *outgoing;
    size_t n;
    ebb__lab_message **messages; /* of each; START: for the child */
    ebb__lab_message **exist;    /* of a START: for the sender, if the child exists. Else NULL */
    ebb__lab_instance **children;
} ebb__lab_outbox;
/* Its arrays are of the call's memory. */
void ebb__lab_outbox_make(ebb__lab_batch *b, ebb_provider_call *c, const ebb__lab_instance *from,
                          const ebb_provider_outgoing *outgoing, size_t n, ebb__lab_outbox *box);
/* Returns how many were dropped. `execution`: of the sender's turn. */
uint32_t ebb__lab_outbox_deliver(ebb__lab_self *s, ebb__lab_instance *from, uint64_t execution,
                                 ebb__lab_outbox *box);

#endif
