/* tests/machine/model/model.h - machines as plainly as possible, and programs for both.
 *
 * A program is what handlers do: each message has a script, a number from which its handler derives what to send, to
 * request, to spawn, and whether to fault. The same scripts run against the real machines and against the model, where
 * a dispatch is a copy of the whole world that is dropped at a fault. Machines, requests and results have ordinals, and
 * both sides keep a log of all that they saw; the logs and the worlds must be equal after every turn. */
#ifndef EBB_TESTS_MACHINE_MODEL_H
#define EBB_TESTS_MACHINE_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ebb/ebb.h>

enum {
    MACHINES = 120, /* ordinals */
    REQUESTS = 3000,
    LETTERS = 100, /* in one mailbox: places and answers and expiries */
    TOPICS = 6,
    SUBSCRIBERS = 16,
    ALARMS = 512,
    KINDS = 9,
    STATES = 4,
    TYPES = 3,
    PENDING_MAX = 2,
    TEXT = 1 << 21
};

typedef struct script {
    uint64_t seed;
    uint32_t energy;
    uint8_t pad[28]; /* so that some payloads have a block and some have none */
} script;

size_t script_size(script s);

/* What a handler knows of its message, in ordinals. */
typedef struct seen {
    int self, from; /* -1: outside */
    int kind, request, label, failure, origin_kind;
    uint64_t origin_seed; /* 0: none */
    script s;
    uint32_t state;
} seen;

/* What a script can do; statuses, or ordinals for what it makes. */
typedef struct api {
    void *ctx;
    int (*send)(void *ctx, int to, int kind, script s);
    int (*publish)(void *ctx, int kind, uint64_t key, script s);
    int (*request)(void *ctx, int to, int kind, script s, uint64_t within, uint32_t label);
    int (*call)(void *ctx, int to, int kind, script s, uint64_t within);
    int (*reply)(void *ctx, int request, int kind, script s); /* -1: the one that is handled */
    int (*hold)(void *ctx);
    int (*forget)(void *ctx, int request);
    int (*spawn)(void *ctx, int type, uint32_t state);
    int (*start)(void *ctx, int machine);
    int (*stop)(void *ctx, int machine);
    int (*become)(void *ctx, uint32_t state);
    int (*after)(void *ctx, uint64_t span, int kind);
    int (*subscribe)(void *ctx, int kind, uint64_t key);
    int (*unsubscribe)(void *ctx, int kind, uint64_t key);
    int machines, requests; /* ordinals so far */
    char *log;
    size_t n;
} api;

void say(api *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The handler of every message. */
ebb_status run_script(api *a, const seen *m);
/* What the host does between turns. */
void run_host(api *a, uint64_t seed);
uint64_t next_random(uint64_t *state);

/* The types, as both sides know them. */
extern const uint8_t rules[TYPES][STATES][KINDS]; /* ebb_machine_what */
extern const bool has_entry[TYPES][STATES], has_exit[TYPES][STATES], is_final[TYPES][STATES];
extern const int fault_states[TYPES]; /* -1: none */
extern const int mailboxes[TYPES];
ebb_status run_entry(api *a, int self, uint32_t state, bool entry);

typedef struct machine_view {
    int lifecycle;
    uint32_t state, queued, deferred, reserved, pending, held, timers, subscriptions, count;
} machine_view;

/* ---- the model ------------------------------------------------------------------------------------------ */

typedef struct model model;
model *model_new(uint32_t (*choose)(void *ctx, uint32_t n), void *choose_ctx);
void model_free(model *m);
api *model_api(model *m);
void model_advance(model *m, uint64_t now);
void model_turn(model *m); /* one poll of the dispatcher */
void model_close(model *m);
void model_cancel(model *m);
bool model_ended(const model *m);
machine_view model_view(const model *m, int machine);
ebb_machines_stats model_stats(const model *m);

/* ---- the real machines ------------------------------------------------------------------------------------ */

typedef struct real real;
real *real_new(ebb_runtime *rt);
void real_free(real *r);
api *real_api(real *r);
ebb_machines *real_machines(real *r);
machine_view real_view(const real *r, int machine);

#endif
