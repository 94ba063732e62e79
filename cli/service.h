/* cli/service.h - the services of the command, `ebb serve`, `ebb worker` and `ebb files`: how they show that they run, and
 * how they stop.
 *
 * On a terminal a stop is a line a phase, and during the drain a bar of the budget with what is waited for. Elsewhere it is
 * the lines alone, without control characters. Both are on standard error. A service manager (cli/notify.h) hears of the
 * begin, of the stop, and of a drain that an operator has extended. A service that has not begun says nothing of its end:
 * its error has been printed. */
#ifndef EBB_CLI_SERVICE_H
#define EBB_CLI_SERVICE_H

#include <ebb/ebb.h>

/* Zero it. `begun` is for its owner to read; the rest is of cli/service.c. */
typedef struct ebb__cli_service {
    bool begun;
    bool terminal; /* stderr is one */
    int screen;    /* that terminal, written without waiting */
    ebb_fiber_fn fn;
    void *arg;
    ebb_runtime *rt; /* NULL: its first fiber has not run */
    ebb_workflow shutdown;
    ebb_task watcher; /* in the operators' region; id 0: nobody is to be shown a drain */
    ebb_timer tick;
    uint64_t next;   /* when the picture is drawn again */
    uint32_t rows;   /* of the picture that the screen shows */
    uint64_t budget; /* of the drain, as the service manager knows it */
} ebb__cli_service;

/* As ebb_service_run. `shutdown.on_state` of the options, and its argument, are this function's. */
int ebb__cli_service_run(ebb__cli_service *s, const ebb_service_opts *opts, ebb_fiber_fn fn, void *arg);
/* It serves from now on. `what` is a line for the service manager. */
void ebb__cli_service_begin(ebb__cli_service *s, const char *what);

#endif
