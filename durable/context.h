/* durable/context.h - trace contexts of instances and activities.
 *
 * An instance has the context of its start: it stands in the event `started`, so each replay sees the same. What it starts
 * gets a span made of that and of the number of its event. The row of an activity has no place of its own for a context, so
 * its input is *wrapped*: a mark, the version 1, then trace, span and flags, then the input. Only an input that has a
 * context, or begins like the mark, is wrapped: then a trace of zeros says that there is none. */
#ifndef EBB_DURABLE_CONTEXT_H
#define EBB_DURABLE_CONTEXT_H

#include "base/arena.h"
#include "durable/event.h"
#include "kernel/layer.h"

enum { EBB__WRAP_BYTES = 28 };

/* The input as the row of an activity has it. `t` NULL: it has no context. at NULL, n not 0: no memory. */
ebb_blob ebb__context_wrap(ebb__arena *arena, const ebb_traceparent *t, ebb_blob input);
/* The inverse. True: there was a context. */
bool ebb__context_unwrap(ebb_blob row, ebb_traceparent *t, ebb_blob *input);
/* The context in an event; false: it has none. */
bool ebb__context_of(const ebb__event *e, ebb_traceparent *out);

/* What the trace has of an instance: the number, made of its key, and one above it (a turn, or an activity). */
uint64_t ebb__instance_name(uint64_t key, uint64_t upper);

#endif
