/* The live tree as text. */
#ifndef EBB__SERVE_LIVE_H
#define EBB__SERVE_LIVE_H

#include "serve/serve.h"
#include "workflow/inspect.h"

/* Writes the snapshot of this loop to *t, which is to be freed. */
void ebb__live_say(const ebb__ask *a, ebb__inspect_text *t);
/* The same without the tree, and with the counters of the server and the worker. */
void ebb__live_numbers(const ebb__ask *a, ebb__inspect_text *t);

/* The workflow around the server was requested to stop. A server in the operators' region goes on all the same. */
bool ebb__service_stops(const ebb__ask *a);

#endif
