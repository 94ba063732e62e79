/* service.h - what main.c runs on the machine, and the test in the lab. */
#ifndef SERVICE_H
#define SERVICE_H

#include <ebb/ebb.h>

/* ebb_service_run calls it on the service's loop: it listens on the ebb_address that `arg` points to. */
ebb_status service_begin(ebb_cx *cx, void *arg);

#endif
