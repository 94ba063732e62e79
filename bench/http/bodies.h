/* Routes that send and take large bodies, by each kind of handler:
 *
 *   GET  /body/fiber/:n    n bytes, written in pieces of 10 KB
 *   POST /upload/fiber     reads the body, answers with its length
 *
 * and the same under /body/poll, /body/future, /upload/poll and /upload/future. */
#ifndef BENCH_HTTP_BODIES_H
#define BENCH_HTTP_BODIES_H

#include <ebb/http.h>

ebb_status bodies_routes(ebb_http_server *s);

#endif
