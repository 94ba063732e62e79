/* Instances and events as JSON objects, for tools: the command prints them, the daemon sends them. */
#ifndef EBB__INFO_JSON_H
#define EBB__INFO_JSON_H

#include <ebb/durable.h>

struct json_t;

/* NULL: no memory. Without `whole` the input, the output and the failure are left out, as a list leaves them out. */
struct json_t *ebb__info_json(const ebb_instance_info *i, bool whole);
struct json_t *ebb__history_event_json(const ebb_history_event *e);

/* A text as a JSON string; bytes that are no printable ASCII become question marks in one that is not UTF-8. */
struct json_t *ebb__text_json(const char *s);

/* JSON is parsed and written by recursion, and a fiber's stack is small: what is nested deeper than this is not parsed.
 * Measured: 128 levels fit into 48 KiB, three quarters of a fiber's stack. */
enum { EBB__JSON_DEPTH = 64 };
/* Whether n bytes of JSON, or of anything else, open at most EBB__JSON_DEPTH arrays and objects in one another. */
bool ebb__json_is_shallow(const char *at, size_t n);

#endif
