/* A runtime driven by lines of text: fixtures, the lab's random programs and its replay files.
 *
 * The language is described in docs/script.md. Names in a script stand for ids; the tasks it spawns
 * are interpreters of their own few steps, so a script needs no code. */
#ifndef EBB__SCRIPT_H
#define EBB__SCRIPT_H

#include <ebb/sched.h>

typedef struct ebb__script ebb__script;

/* Every script is bounded, whatever its lines say. */
enum {
    EBB__SCRIPT_NAME = 63,      /* bytes of a name */
    EBB__SCRIPT_BODY = 1024,    /* steps of a body, and as many after its `|` */
    EBB__SCRIPT_THINGS = 65536, /* tasks, regions, obligations and finalizers; then EBB_ERR_LIMIT */
    EBB__SCRIPT_PUMP = 10000,   /* polls of one `pump` */
    EBB__SCRIPT_STEPS = 64      /* steps that a task does in one poll before it lets others run */
};

/* NULL: no memory. The runtime must outlive it, and must not be pumped or dumped after the script is
 * freed: the tasks' states and sites are the script's. */
ebb__script *ebb__script_new(ebb_runtime *rt, ebb_allocator a);
void ebb__script_free(ebb__script *s);

/* Does what one line says. EBB_ERR_SYNTAX with a message that says what was found at which word and
 * what was expected (nothing is done then); EBB_ERR_NOMEM; else EBB_OK, and ebb__script_result is what
 * the runtime answered: being refused is a result, not an error. */
#define EBB__SCRIPT_MESSAGE 160
ebb_status ebb__script_line(ebb__script *s, const char *line, size_t n, char message[EBB__SCRIPT_MESSAGE]);
ebb_status ebb__script_result(const ebb__script *s);

/* What the last line read, if it was a `chain`: its links, and how many. */
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

/* The id that a name stands for now, 0 if none; and back: the name of an id, NULL if it has none. */
uint64_t ebb__script_id(const ebb__script *s, const char *name);
const char *ebb__script_name(const ebb__script *s, ebb__thing_kind kind, uint64_t id);

#endif
