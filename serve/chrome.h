/* serve/chrome.h - what the files of the Chrome export share: how slices and flows are printed, and the picture of what is
 * asked for across tasks. */
#ifndef EBB_SERVE_CHROME_H
#define EBB_SERVE_CHROME_H

#include "serve/story.h"

enum { EBB__SHORT_NS = 500 }; /* of a slice whose length is not known */

/* Called for the start (line NULL, first true), each line, and the end (line NULL, first false). It passes each line to the
 * story. */
void ebb__chrome(FILE *out, ebb__story *s, const ebb__line *line, bool first);

/* The start of an event: its phase ("X"), category, thread and time. */
void ebb__chrome_head(FILE *out, const ebb__story *s, const char *phase, const char *category,
                      uint64_t thread, uint64_t at);
void ebb__chrome_name(FILE *out, const char *name);
/* A slice of a thread. `trace`: the id of its trace, an argument; "": none. */
void ebb__chrome_slice(FILE *out, const ebb__story *s, uint64_t thread, const char *category,
                       const char *name, uint64_t from, uint64_t to, const char *trace);
void ebb__chrome_thread_name(FILE *out, const ebb__story *s, uint64_t thread, const char *name);
/* The thread of a task, and of the task that is being polled; 0: the host. */
uint64_t ebb__chrome_thread(uint64_t id);
uint64_t ebb__chrome_running(const ebb__story *s);
/* The start ("s") or end ("f") of an arrow; it binds to the slice around it. `id`: the same at both ends. */
void ebb__chrome_arrow(FILE *out, const ebb__story *s, const char *phase, const char *category,
                       uint64_t thread, const char *id, uint64_t at);

/* ---- chrome_flow.c ---- */
/* A picture holds what is open: requests, turns, activities. It is the story's `picture`. */
void ebb__picture_begin(ebb__story *s);
/* What of an event belongs to the picture, after the story has taken it. */
void ebb__picture_take(FILE *out, ebb__story *s, const ebb__line *line, uint64_t at);
/* The first poll of a task that something has started. Before the story takes it. */
void ebb__picture_polled(FILE *out, ebb__story *s, uint64_t task, uint64_t at);
/* Shows what is still open, and frees the picture. */
void ebb__picture_end(FILE *out, ebb__story *s);

#endif
