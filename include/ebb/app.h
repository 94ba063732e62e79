/* ebb/app.h - programs that `ebb serve` loads: shared libraries, linked without libebb, whose functions the command
 * brings (cc -shared -fPIC). They export
 *
 *     ebb_app        registers orchestrations and activities: ebb_app_fn of ebb/durable.h
 *     ebb_app_http   adds the routes of an application to a server: the type below. It may be left out
 *
 * in C++ as extern "C". examples/shop is one. */
#ifndef EBB_APP_H
#define EBB_APP_H

#include <ebb/durable.h>
#include <ebb/http.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The function "ebb_app_http" of a program. It is called once, on a fiber of the service's root region (the region of
 * cx), after ebb_app and before the worker claims anything, unless it waits. It adds handlers to `server` by
 * ebb_http_on, and starts what else the application needs in the region of cx. What a fiber opens ends with it: for
 * what is to stay, open with ebb_runtime_host(ebb_cx_runtime(cx)) as the caller.
 *
 *  - `server` is the application's alone: an address of its own, whose paths are not behind the token of the
 *    operators. It is work of the service: a stop closes it (requests that were accepted are answered, and hold the
 *    drain up), while the API of the operators goes on.
 *  - `store` is that of the worker, open as long as the region of cx.
 *
 * Not EBB_OK: the command says so and ends. */
typedef ebb_status (*ebb_app_http_fn)(ebb_cx *cx, ebb_http_server *server, ebb_store *store);

#ifdef __cplusplus
}
#endif
#endif
