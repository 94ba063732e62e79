/* lang/system.h - what a program tells about itself: the messages that its host may send, and its typestates. */
#ifndef EBB_LANG_SYSTEM_H
#define EBB_LANG_SYSTEM_H

#include "lang/host.h"

/* The protocol in which a role takes this kind from System, or from any peer; NULL: there is none. */
const char *ebb__system_protocol(const ebb_program *p, uint32_t kind);

/* A type of machines that is a typestate of a program; NULL: it is another one. */
const ebb__host_type *ebb__typestate_of(const ebb_machine_type *type);

/* The fields of a machine of a program as JSON. NULL: it is none, they are too deep, or there is no memory. The text is
 * gone with ebb__host_end. */
ebb__object *ebb__machine_json(ebb__run *run, const ebb_machine_info *info);

/* The states that a function of a typestate may lead to, at most `room`. `stays`: or none. */
uint32_t ebb__targets_of(const ebb_program *p, const ebb__ir_fn *fn, uint32_t *states, uint32_t room,
                         bool *stays);

#endif
