/* future/machine.h - requests to machines as futures, for those who must know what became of the payload. */
#ifndef EBB_FUTURE_MACHINE_H
#define EBB_FUTURE_MACHINE_H

#include <ebb/future.h>

struct ebb__parcel;

/* What is asked: the arguments of ebb_machine_ask. */
typedef struct ebb__question {
    ebb_machine to;
    const void *payload;
    size_t size;
    uint64_t within;
    uint16_t kind;
} ebb__question;

/* As ebb_machine_ask. `taken`: what the payload refers to is the machines' now, whatever becomes of the request. */
ebb_future *ebb__machine_ask(ebb_cx *cx, ebb_machines *ms, const ebb__question *q, const char *site,
                             bool *taken);

/* As ebb_program_ask, of a message that is made; it is given up if that fails. */
ebb_future *ebb__program_ask(ebb_cx *cx, struct ebb_program *p, ebb_machine to, const struct ebb__parcel *x,
                             uint64_t within, const char *site);

#endif
