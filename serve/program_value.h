/* JSON as values of a program of typestate machines. */
#ifndef EBB__SERVE_PROGRAM_VALUE_H
#define EBB__SERVE_PROGRAM_VALUE_H

#include "serve/machines.h"

/* The message of this type with the members of an object, which `run` has until ebb__host_end. NULL: there is a problem,
 * which says where and what was expected. */
ebb__object *ebb__program_message(ebb__ask *a, ebb__run *run, uint32_t type, const struct json_t *fields);

#endif
