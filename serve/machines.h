/* What machines.c, machine_types.c and programs.c share. */
#ifndef EBB__SERVE_MACHINES_H
#define EBB__SERVE_MACHINES_H

#include "lang/system.h"
#include "machine/machine.h"
#include "serve/serve.h"

/* The name of a runtime of machines; "": it has none. */
static inline const char *ebb__machines_name(const ebb_machines *ms) {
    return ms->opts.name != NULL ? ms->opts.name : "";
}

/* Sets a member, if `*ok`; without memory, or if j is NULL, it is false from then on. */
void ebb__json_put(bool *ok, struct json_t *object, const char *name, struct json_t *j);

/* The name of a kind: that of the program, or "kind 7". */
const char *ebb__kind_name(const ebb_machines *ms, uint16_t kind, char out[24]);

/* What has faulted, why and where: "Order faulted on Pay: overflow". */
void ebb__fault_say(const ebb_program_event *e, char *out, size_t room);
/* "orders.ebb:7:3"; "": nowhere. */
void ebb__fault_place(const ebb_program_event *e, char *out, size_t room);

#endif
