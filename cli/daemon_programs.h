/* cli/daemon_programs.h - the programs of typestate machines that `ebb serve --programs DIR` runs. */
#ifndef EBB_CLI_DAEMON_PROGRAMS_H
#define EBB_CLI_DAEMON_PROGRAMS_H

#include <ebb/ebb.h>

typedef struct ebb__programs ebb__programs;

/* Compiles each file of a directory that ends in ".ebb", and shows what the compiler says. NULL: an error was
 * printed. */
ebb__programs *ebb__programs_compile(const char *directory);
/* Opens them in the runtime of cx and runs their main. An error was reported. NULL is allowed. They belong to the calling
 * fiber, and close when it returns. */
ebb_status ebb__programs_begin(ebb_cx *cx, ebb__programs *ps);
/* The daemon has begun: shows what they have printed until now, and waits until the service closes. NULL is allowed: then
 * there is nothing to wait for. */
void ebb__programs_wait(ebb_cx *cx, ebb__programs *ps);
/* After the service has ended. NULL is allowed. */
void ebb__programs_free(ebb__programs *ps);

#endif
