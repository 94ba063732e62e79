/* durable/sqlite.h - the SQLite provider inside: one *file*, its writer thread, and what its functions share.
 *
 * Who has what:
 *  - A *file* is one database that this process owns, by its lock. All stores of the process on it share it.
 *  - The *writer* is the one thread that writes and checkpoints. It takes what is queued as one commit: calls that come
 *    while a commit runs are the next batch, so there is no timer. Each member has a savepoint; one that fails is undone
 *    alone. Callers learn their outcome after the sync.
 *  - *Effects* are what members want done after the commit: claims, ready instances, hints. They are dropped with the
 *    member or the batch, so that memory never says more than the file.
 *  - *Readers* have a connection each, and one snapshot a call. They never checkpoint.
 *
 * Rows have no clock but the store's: `clock` of meta is above every time that a commit has used, so that time never
 * goes back, whatever happens to the clock of the machine. Keys, sequence numbers and orders are made of it too, so they are
 * never used again. */
#ifndef EBB_DURABLE_SQLITE_H
#define EBB_DURABLE_SQLITE_H

#include <pthread.h>
#include <sys/types.h>

#include "durable/provider.h"
#include "durable/sqlite_db.h"
#include "durable/sqlite_ready.h"

enum {
    EBB__SQLITE_BATCH = 256,           /* members of a commit */
    EBB__SQLITE_BATCH_BYTES = 1 << 20, /* of them */
    EBB__SQLITE_READERS = 2,
    EBB__SQLITE_WAL_PASSIVE = 1000, /* frames of the log at which the writer checkpoints */
    EBB__SQLITE_WAL_MOST = 8000,    /* frames at which readers wait until it has */
    EBB__SQLITE_BALLAST = 1 << 20,  /* bytes that are given up when the disk is full */
    EBB__SQLITE_SCHEMA = 1,
    EBB__SQLITE_SUSPECT = 2 /* claims without an end */
};
#define EBB__SQLITE_APPLICATION 0x45626273 /* "Ebbs" */

typedef struct ebb__sqlite_file ebb__sqlite_file;
typedef struct ebb__sqlite_server ebb__sqlite_server;
typedef struct ebb__sqlite_remote ebb__sqlite_remote;

/* What data.what is. */
enum { EBB__DATA_INPUT = 1, EBB__DATA_RESULT = 2, EBB__DATA_CUSTOM = 3 };

/* One open of a file: the `self` of the provider's functions. */
typedef struct ebb__sqlite_store {
    struct ebb__sqlite_store *next;
    ebb__sqlite_file *file;
    ebb__sqlite_remote *remote; /* not NULL: another process has the file, and `file` is NULL */
    const ebb_provider_host *host;
    bool read_only;
} ebb__sqlite_store;

/* A call on its way through the writer; in `mine` of the call. */
typedef struct ebb__sqlite_member {
    ebb__sqlite_store *store;
    uint64_t cursor; /* of a call that takes several commits: where it goes on */
    bool more;       /* it is queued again after this commit */
    char text[200];  /* of its failure */
} ebb__sqlite_member;

/* ---- effects -------------------------------------------------------------------------------------------------- */

typedef enum ebb__sqlite_effect_kind {
    EBB__EFFECT_MESSAGE = 1, /* key, at: seq; charged: look for timers too */
    EBB__EFFECT_TIMER = 2,   /* key, at: due */
    EBB__EFFECT_WORK = 3,    /* queue */
    EBB__EFFECT_HELD = 4,    /* key, execution, activity, token, node, at: until, charged */
    EBB__EFFECT_UNHELD = 5,  /* token */
    EBB__EFFECT_GONE = 6,    /* key, execution, activity, cause */
    EBB__EFFECT_ENDED = 7,   /* key: it has ended, or is suspended, or was removed */
    EBB__EFFECT_ACKED =
        8, /* key, token, charged: keep; at: messages acked; activity: unread; execution; node: turn */
    EBB__EFFECT_RETYPED = 9, /* key: it has another version */
    EBB__EFFECT_FREED = 10,  /* key: no claim holds it any more */
    EBB__EFFECT_LEFT = 11    /* node: it has left */
} ebb__sqlite_effect_kind;
typedef struct ebb__sqlite_effect {
    uint8_t kind;
    bool charged;
    ebb_cancel_kind cause;
    uint64_t key, execution, activity, node, at;
    ebb_provider_token token;
    const char *queue; /* of the call, or of the batch's arena */
} ebb__sqlite_effect;

/* ---- claims of work ------------------------------------------------------------------------------------------- */

/* A row with a token. node 0: given back, visible at `until`. */
typedef struct ebb__sqlite_held {
    ebb_provider_token token;
    uint64_t key, execution, activity, node, until;
    bool charged; /* the claim has counted an attempt */
} ebb__sqlite_held;

/* ---- the file ------------------------------------------------------------------------------------------------- */

typedef struct ebb__sqlite_lock {
    int fd;
    uint32_t *free; /* slots that are free, as a stack */
    uint32_t free_n;
} ebb__sqlite_lock;

struct ebb__sqlite_file {
    ebb__sqlite_file *next; /* of the process */
    char *path;             /* canonical */
    const char *vfs;        /* NULL, or that of a test */
    uint64_t dev, ino;
    pid_t owner;   /* a child of a fork has the record, but neither the lock nor the threads */
    uint32_t refs; /* stores, and opens that wait; of the registry */

    /* Shared by threads, under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t written; /* for the writer: something is queued */
    pthread_cond_t asked;   /* for readers: something is queued, or they may go on */
    pthread_cond_t idle;    /* for the writer: no reader is at work */
    ebb__call_queue writes, reads;
    ebb__sqlite_store *stores;
    bool stopping, held_back; /* held_back: readers wait for a checkpoint */
    bool full_sync;           /* what durability the stores ask for */
    uint32_t reading;
    ebb_provider_stats shown;
    char fatal[256]; /* why the file is not used any more; "": it is */
    uint64_t clock_base, boot_base;

    pthread_t writer, readers[EBB__SQLITE_READERS];
    ebb__sqlite_server *server; /* NULL: there is no socket */
    uint32_t threads;           /* that were started: the writer first */

    /* The writer's. */
    ebb__sqlite_db db;
    ebb__sqlite_lock claims;
    ebb__sqlite_ready ready;
    ebb__map held;                /* hash of the token -> ebb__sqlite_held */
    ebb__map sessions;            /* hash of a session's name -> node */
    uint64_t held_next;           /* no claim of work lapses before */
    uint64_t timer_seen;          /* timers up to here are noticed */
    uint64_t timer_next;          /* no later timer is due before */
    uint64_t committed;           /* when the last commit was done, by the host's boot clock */
    uint64_t now, last, reserved; /* time of the batch; the last number made; `clock` of meta */
    ebb__sqlite_effect *effects;
    size_t effects_n, effects_room;
    bool effects_lost; /* there was no memory for one: the member fails */
    ebb__arena arena;  /* of the batch */
    ebb_provider_stats stats;
    int wal_frames, wal_next;  /* of the log; when to checkpoint */
    int wal_passive, wal_most; /* its limits */
    uint64_t ballast_next;     /* when to try to make the ballast again */
    bool syncs, full;          /* syncs: as the connection does; full: the disk is, and the ballast is used */
    uint32_t damaged;          /* times that the file looked damaged in a row, and was not */
    uint8_t random[512];
    size_t random_left;
};

/* ---- what functions of calls use ------------------------------------------------------------------------------ */

static inline uint64_t ebb__sqlite_number(ebb__sqlite_file *f) { /* unique, rising, about `now` */
    f->last = f->last + 1 > f->now ? f->last + 1 : f->now;
    return f->last;
}
ebb_provider_token ebb__sqlite_token_new(ebb__sqlite_file *f);
/* Adds an effect; the caller fills in what else it has. Never NULL. */
ebb__sqlite_effect *ebb__sqlite_effect_add(ebb__sqlite_file *f, ebb__sqlite_effect_kind kind, uint64_t key);
void ebb__sqlite_effects_apply(ebb__sqlite_file *f);
/* Sets the text of a call's failure, and returns its status. */
ebb_status ebb__sqlite_say(ebb_provider_call *c, ebb_status st, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Inserts a message at the end of an inbox, or at `seq` if that is not 0. `ack`: NULL, or of an ack of work. */
void ebb__sqlite_message(ebb__sqlite_file *f, uint64_t key, uint64_t seq, uint64_t execution,
                         ebb_provider_message_kind kind, uint64_t step, const ebb_blob *body);
void ebb__sqlite_work(ebb__sqlite_file *f, uint64_t key, uint64_t execution, const ebb_provider_work *w,
                      uint64_t node, uint64_t lease);
void ebb__sqlite_timer(ebb__sqlite_file *f, uint64_t key, uint64_t execution, const ebb_provider_timer *t);
/* Messages for others. `own`: the sender; returns how many were dropped. */
uint32_t ebb__sqlite_outgoing(ebb__sqlite_file *f, uint64_t own, uint64_t execution,
                              const ebb_provider_outgoing *out, size_t n);
void ebb__sqlite_values(ebb__sqlite_file *f, uint64_t key, const ebb_provider_value *values, size_t n);
/* Deletes the work that `sql` says (its RETURNING is exec, act, token). */
void ebb__sqlite_work_drop(ebb__sqlite_file *f, ebb__sqlite_sql sql, uint64_t key, uint64_t execution,
                           ebb_cancel_kind cause);
/* A claim of work that is live: of the node, and before its time. NULL: none. */
ebb__sqlite_held *ebb__sqlite_held_find(ebb__sqlite_file *f, ebb_provider_token token);
ebb__sqlite_held *ebb__sqlite_held_any(ebb__sqlite_file *f, ebb_provider_token token); /* lapsed or not */
/* Gives a claimed row back and refunds its attempt. The claim ends with the commit. */
void ebb__sqlite_held_free(ebb__sqlite_file *f, const ebb__sqlite_held *h);
/* Writes and removes claims of work, after a commit. False: no memory. */
bool ebb__sqlite_held_put(ebb__sqlite_file *f, const ebb__sqlite_effect *e);
void ebb__sqlite_held_remove(ebb__sqlite_file *f, ebb_provider_token token);
void ebb__sqlite_node_left(ebb__sqlite_file *f, uint64_t id);
/* Claims whose time has come are given back, and so is what nodes held that have lapsed. */
void ebb__sqlite_lapse_work(ebb__sqlite_file *f);
void ebb__sqlite_lapse_nodes(ebb__sqlite_file *f);
void ebb__sqlite_disown_lapsed(ebb__sqlite_file *f); /* sessions of nodes that have lapsed are free */
void ebb__sqlite_notice_timers(ebb__sqlite_file *f);
/* Reads what is ready from the file. */
void ebb__sqlite_ready_load(ebb__sqlite_file *f);
/* The node of a call, alive; NULL: it is not. */
ebb__sqlite_node *ebb__sqlite_node_alive(ebb__sqlite_file *f, ebb_provider_node n);
/* The row of an instance in the columns of ROW and LIST. `whole`: with input and result. EBB_ERR_NOMEM. */
ebb_status ebb__sqlite_row(ebb__sqlite_file *f, ebb__sqlite_db *db, ebb_provider_call *c, sqlite3_stmt *s,
                           bool whole, ebb_provider_instance_row *out);
/* The clock of the store; under the lock. */
uint64_t ebb__sqlite_clock(ebb__sqlite_file *f);
void ebb__sqlite_hint(ebb__sqlite_file *f, const ebb_provider_hint *h);

/* One function a kind of call. They run on the writer's thread, in its transaction; those of `later` after its commit;
 * those of `read` on a reader's, with its connection. */
ebb_status ebb__sqlite_ack_turn(ebb__sqlite_file *f, ebb_provider_ack_turn_call *c);
ebb_status ebb__sqlite_fetch_work(ebb__sqlite_file *f, ebb_provider_fetch_work_call *c);
ebb_status ebb__sqlite_ack_work(ebb__sqlite_file *f, ebb_provider_ack_work_call *c);
ebb_status ebb__sqlite_abandon_work(ebb__sqlite_file *f, ebb_provider_abandon_work_call *c);
ebb_status ebb__sqlite_leave(ebb__sqlite_file *f, ebb_provider_leave_call *c);
ebb_status ebb__sqlite_start(ebb__sqlite_file *f, ebb_provider_start_call *c);
ebb_status ebb__sqlite_send(ebb__sqlite_file *f, ebb_provider_send_call *c);
ebb_status ebb__sqlite_mark(ebb__sqlite_file *f, ebb_provider_mark_call *c);
ebb_status ebb__sqlite_reset(ebb__sqlite_file *f, ebb_provider_reset_call *c);
ebb_status ebb__sqlite_remove(ebb__sqlite_file *f, ebb_provider_remove_call *c);
ebb_status ebb__sqlite_join(ebb__sqlite_file *f, ebb_provider_join_call *c);
ebb_status ebb__sqlite_renew(ebb__sqlite_file *f, ebb_provider_renew_call *c);
ebb_status ebb__sqlite_fetch_turns(ebb__sqlite_file *f, ebb_provider_fetch_turns_call *c);
ebb_status ebb__sqlite_abandon_turns(ebb__sqlite_file *f, ebb_provider_abandon_turns_call *c);
ebb_status ebb__sqlite_outstanding(ebb__sqlite_file *f, ebb_provider_outstanding_call *c);
/* Runs a read. */
ebb_status ebb__sqlite_read(ebb__sqlite_file *f, ebb__sqlite_db *db, ebb_provider_call *c);

/* ---- threads -------------------------------------------------------------------------------------------------- */

void *ebb__sqlite_writer(void *file);
void *ebb__sqlite_reader(void *file);
/* Queues a call; on the loop's thread. */
void ebb__sqlite_queue(ebb__sqlite_store *s, ebb_provider_call *c);
void ebb__sqlite_count(ebb__sqlite_file *f); /* shows the writer's counters */

/* ---- schema, lock, disk --------------------------------------------------------------------------------------- */

/* Checks that the file is ours, and makes or upgrades its schema. Failures have a text. */
ebb_status ebb__sqlite_schema(ebb__sqlite_db *db, const char *path, bool may_make, char *text, size_t room);

/* Locks PATH.lock. EBB_ERR_BUSY: `text` names the process. */
ebb_status ebb__sqlite_lock_take(ebb__sqlite_lock *l, const char *path, char *text, size_t room);
/* Calls `fn` for each instance that was claimed when the last owner ended, and forgets them. */
void ebb__sqlite_lock_claimed(ebb__sqlite_lock *l, void (*fn)(void *arg, uint64_t key), void *arg);
uint32_t ebb__sqlite_lock_claim(ebb__sqlite_lock *l, uint64_t key); /* 0: no slot is left */
void ebb__sqlite_lock_release(ebb__sqlite_lock *l, uint32_t slot);
void ebb__sqlite_lock_drop(ebb__sqlite_lock *l);

/* The ballast: PATH.ballast, bytes on the disk that can be given up. True: it is there. */
bool ebb__sqlite_ballast_make(const char *path, const char *vfs);
void ebb__sqlite_ballast_use(const char *path, const char *vfs);
/* Whether a file may grow again: the ballast is back, or the file has free pages. */
bool ebb__sqlite_space(ebb__sqlite_file *f);
/* Opens the connection of the writer again and, with `check`, reads the whole file. EBB_ERR_STORE: it is damaged. */
ebb_status ebb__sqlite_reopen(ebb__sqlite_file *f, bool check);
int ebb__sqlite_open_writer(ebb__sqlite_file *f);
/* Copies the log to the database, as far as it has to be bounded. */
void ebb__sqlite_checkpoint(ebb__sqlite_file *f);

/* ---- files of the process ------------------------------------------------------------------------------------- */

typedef struct ebb__sqlite_wish {
    const char *path;
    bool full, read_only, no_create, client;
    char text[300]; /* of a failure */
} ebb__sqlite_wish;
/* Finds or opens the file, and adds the store to it. Blocks. */
ebb_status ebb__sqlite_file_open(ebb__sqlite_store *s, ebb__sqlite_wish *w);
/* Takes the store away; the last one closes the file. Blocks. */
void ebb__sqlite_file_close(ebb__sqlite_store *s);

/* ---- clients in other processes ------------------------------------------------------------------------------- */

struct sockaddr_un;
/* PATH.sock. False: it is too long for a socket. */
bool ebb__sqlite_socket_name(const char *path, struct sockaddr_un *at);
/* The owner's side. A file without a socket (a long path, no descriptors) works all the same. */
void ebb__sqlite_server_start(ebb__sqlite_file *f);
void ebb__sqlite_server_stop(ebb__sqlite_file *f);
/* The client's side. EBB_ERR_BUSY: nobody answers. */
ebb_status ebb__sqlite_remote_open(ebb__sqlite_store *s, ebb__sqlite_wish *w);
void ebb__sqlite_remote_close(ebb__sqlite_store *s);
void ebb__sqlite_remote_queue(ebb__sqlite_store *s, ebb_provider_call *c);

/* For tests: files that are opened from now on are on this VFS of SQLite. NULL: on the system's. */
void ebb__sqlite_use_vfs(const char *name);
/* For tests: the limits of the logs of files that are opened from now on. 0: those above. */
void ebb__sqlite_use_log(int passive, int most);
/* For tests: this is a later library, with `n` more versions of the schema. The texts must stay valid. */
void ebb__sqlite_use_schema(const char *const *later, int n);

#endif
