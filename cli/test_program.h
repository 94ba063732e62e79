/* cli/test_program.h - a program of typestate machines as a scenario of the lab.
 *
 * A run opens a runtime of machines, calls main, and goes on until the program is quiet. The lab chooses the machine
 * that gets the next turn, when time moves on, and when a line is typed. Then the program is judged. */
#ifndef EBB_CLI_TEST_PROGRAM_H
#define EBB_CLI_TEST_PROGRAM_H

#include "cli/cli.h"
#include "cli/modules.h"
#include <ebb/lab.h>

typedef struct ebb__test_program {
    ebb__compiled compiled;
    ebb_lab_scenario scenario;
    char name[256];       /* of the scenario: that of the file */
    ebb__buffer expected; /* its lines "//> " */
    ebb__buffer input;    /* its lines "//< " */
    bool expects;         /* it has a line "//> " */
    bool compares;        /* what it says must be what is expected: in the plain schedule */

    ebb_lab *lab;         /* of the last run */
    ebb_program *program; /* of the last run */
    ebb__buffer
        said; /* what it has printed; lines about faults, dead letters and full mailboxes begin with "! " */
    ebb__buffer machines; /* if it waits for ever: all machines */
    bool judged;          /* and so what follows does not count */
    bool reads;           /* there may be more lines */
    ebb_task console;
    uint32_t typed; /* lines that were typed, and the end */

    unsigned ebb_line; /* of the console's task */
    ebb_sleeper nap;
    size_t read_to; /* in `input` */
    uint32_t read;  /* lines published */
} ebb__test_program;

/* Reads, compiles and checks a program. Returns the exit code; after each, close it. */
int ebb__test_program_open(ebb__test_program *t, const char *path);
void ebb__test_program_close(ebb__test_program *t);

#endif
