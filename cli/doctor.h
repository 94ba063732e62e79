/* cli/doctor.h - `ebb doctor`: its report, and the checks that write it. */
#ifndef EBB_CLI_DOCTOR_H
#define EBB_CLI_DOCTOR_H

#include "cli/daemon.h"

typedef enum ebb__verdict { EBB__DOCTOR_OK, EBB__DOCTOR_WARN, EBB__DOCTOR_FAIL } ebb__verdict;

typedef struct ebb__doctor {
    ebb__daemon daemon; /* what `ebb serve` would be, by the same arguments */
    bool json;
    ebb__verdict worst;
} ebb__doctor;

/* Prints the result of a check. `advice` is what to do about it: with EBB__DOCTOR_OK it is not shown. */
void ebb__doctor_say(ebb__doctor *d, ebb__verdict v, const char *check, const char *advice,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The machine: libraries, limits of the process, memory maps of fibers, the clock. */
void ebb__doctor_machine(ebb__doctor *d);
/* The directory, the token, the address and the store of a service. */
void ebb__doctor_service(ebb__doctor *d);
/* A store in PostgreSQL. */
void ebb__doctor_postgres(ebb__doctor *d);

#endif
