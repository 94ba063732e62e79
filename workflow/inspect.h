/* The socket at which `ebb top` looks at a running service.
 *
 * inspect.c           the socket and its readers
 *   inspect_tree.c      one loop as JSON
 *   inspect_drains.c    its workflows
 *
 * A reader sends the line EBB__INSPECT_REQUEST and gets one line, a JSON object; it may ask again. The answer has a
 * bounded size for each loop, and says what it has left out. Nothing here is a task: readers are no work, so that
 * they neither keep the service from stopping nor see themselves. */
#ifndef EBB__INSPECT_H
#define EBB__INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ebb/workflow.h>

#define EBB__INSPECT_REQUEST "snapshot 1\n"
enum { EBB__INSPECT_PATH = 108 }; /* as in sockaddr_un */

typedef struct ebb__inspect ebb__inspect;
struct ebb__service;
struct ebb__share;

/* A growing text. After a failed allocation it stays as it is, and `failed` says so. */
typedef struct ebb__inspect_text {
    const ebb_allocator *allocator;
    char *at;
    size_t n, room;
    bool failed;
} ebb__inspect_text;
__attribute__((format(printf, 2, 3))) void ebb__inspect_say(ebb__inspect_text *t, const char *format, ...);
/* Bytes as they are. */
void ebb__inspect_add(ebb__inspect_text *t, const char *at, size_t n);
/* A JSON string; null for NULL. */
void ebb__inspect_string(ebb__inspect_text *t, const char *s);
void ebb__inspect_text_free(ebb__inspect_text *t);

/* How many took how long: entry i those that took less than 2^i ns, and not less than half of that. */
enum { EBB__TIMES = 32 };
void ebb__inspect_times(ebb__inspect_text *t, const uint64_t times[EBB__TIMES]);

/* The members "workflows" and "workflows_left_out" of a loop: what each workflow does, and a drain's time and handlers. */
void ebb__inspect_workflows(ebb__inspect_text *t, const ebb_runtime *rt);
/* The members of one of them. */
struct ebb__wf;
void ebb__inspect_workflow(ebb__inspect_text *t, struct ebb__wf *wf);

/* A region, a task, as JSON objects. */
struct ebb__region;
struct ebb__task_view;
void ebb__inspect_region(ebb__inspect_text *t, const ebb_runtime *rt, const struct ebb__region *r);
void ebb__inspect_task(ebb__inspect_text *t, const ebb_runtime *rt, const struct ebb__task_view *v,
                       uint32_t depth);
/* The members of the loop of `cx` without its tree. Measures its polls from now on, for a while. */
void ebb__inspect_numbers(ebb__inspect_text *t, ebb_cx *cx, ebb_workflow wf, uint32_t position);
/* The loop of `cx` as a JSON object. Measures its polls from now on, for a while. */
void ebb__inspect_loop(ebb__inspect_text *t, ebb_cx *cx, ebb_workflow wf, uint32_t position);

/* The well-known place of a process's socket. False: the path is too long. */
bool ebb__inspect_path(uint64_t pid, char out[EBB__INSPECT_PATH]);

/* Opens the socket at `path`; see ebb_service_opts.inspect. */
ebb_status ebb__inspect_open(struct ebb__service *s, const char *path);
/* The loop after the first has answered; on its thread. */
void ebb__inspect_answer(ebb__inspect *i, ebb_cx *cx, ebb_workflow wf, uint32_t position);
/* Closes the socket and its readers; libuv has to run once more before the record may be freed. */
void ebb__inspect_close(ebb__inspect *i);
void ebb__inspect_free(ebb__inspect *i);

#endif
