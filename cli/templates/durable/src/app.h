/* app.h - what the worker finds in app.so, and what the test runs. */
#ifndef APP_H
#define APP_H

#include <ebb/durable.h>
#include <ebb/ebb.h>

ebb_status order(ebb_orch *o, ebb_blob in, ebb_blob *out);

/* `ebb serve` and `ebb worker` look for it by this name: it registers what the library has. */
ebb_status ebb_app(ebb_cx *cx, ebb_worker *w);

#endif
