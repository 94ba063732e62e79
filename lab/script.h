/* A runtime driven by lines of text: fixtures, the lab's random programs and its replay files.
 *
 * docs/script.md describes the language. Names in a script stand for ids. The tasks that it spawns interpret their
 * own few steps, so a script needs no code. */
#ifndef EBB__SCRIPT_H
#define EBB__SCRIPT_H

#include <ebb/sched.h>

typedef struct ebb__script ebb__script;

/* Limits of every script. */
enum {
    EBB__SCRIPT_NAME = 63,      /* bytes of a name */
    EBB__SCRIPT_BODY = 1024,    /* steps of a body, and as many after its `|` */
    EBB__SCRIPT_THINGS = 65536, /* tasks, regions, obligations and finalizers; more are EBB_ERR_LIMIT */
    EBB__SCRIPT_PUMP = 10000,   /* polls of one `pump` */
    EBB__SCRIPT_STEPS = 64      /* steps of a task in one poll before other tasks run */
};

/* NULL: no memory. The runtime must outlive the script, and must not be pumped or dumped after the script is
 * freed, since the script owns the states and sites of its tasks. */
ebb__script *ebb__script_new(ebb_runtime *rt, ebb_allocator a);
void ebb__script_free(ebb__script *s);

/* Has the sites copied by `keep`, so that the runtime may go on after the script is freed. The recorder of the runtime
 * keeps them by pointer: equal texts must give the same string, and it must outlive the runtime. */
typedef const char *ebb__script_keep_fn(void *ctx, const char *text);
void ebb__script_keep_sites(ebb__script *s, ebb__script_keep_fn *keep, void *ctx);

/* Executes one line. EBB_ERR_SYNTAX: nothing is done, and the message says what was found at which word and what
 * was expected; EBB_ERR_NOMEM; otherwise EBB_OK, and ebb__script_result is the status from the runtime. A refusal
 * is a result, not an error. */
#define EBB__SCRIPT_MESSAGE 160
ebb_status ebb__script_line(ebb__script *s, const char *line, size_t n, char message[EBB__SCRIPT_MESSAGE]);
ebb_status ebb__script_result(const ebb__script *s);

/* The result of the last line if it was a `chain`: its links, and their number. */
const ebb_region_cause *ebb__script_chain(const ebb__script *s, uint32_t *n);

/* What a script has made, in this order. Ids of different kinds may be equal. */
typedef enum ebb__thing_kind { EBB__TASK = 1, EBB__REGION = 2, EBB__OBLIGATION = 3 } ebb__thing_kind;

typedef struct ebb__thing {
    struct ebb__thing *next;
    const char *name;
    uint64_t id;
    ebb__thing_kind kind;
    uint32_t aborts; /* how often the abort hook of an obligation has run */
} ebb__thing;

const ebb__thing *ebb__script_things(const ebb__script *s);

/* The id that a name stands for now, 0 if none; and the name of an id, NULL if it has none. */
uint64_t ebb__script_id(const ebb__script *s, const char *name);
const char *ebb__script_name(const ebb__script *s, ebb__thing_kind kind, uint64_t id);

#endif
