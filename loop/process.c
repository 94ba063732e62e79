/* Child processes. A process is asked to end by SIGTERM, and killed when its grace period is over. */
#define _POSIX_C_SOURCE 200809L
#include "loop/process.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>

#include "base/opts.h"
#include "future/promise.h"
#include "loop/stream.h"

#define GRACE (2 * EBB_SECOND)

/* ---- ending a process ----------------------------------------------------------------------------------- */

static void kill_by(ebb__handle *h, uint64_t at) {
    h->as.child.kill_at = at;
    if (at < h->loop->kill_at) h->loop->kill_at = at;
}

/* When to kill the process if its region is cancelled: a little before the end of the cleanup budget, so that the
 * waiting task learns of the exit in time. */
static uint64_t budget_of(const ebb__handle *h) {
    const ebb_runtime *rt = h->loop->rt;
    ebb__region *r;
    if (ebb__region_get(rt, h->list->region, &r) != EBB_OK) return EBB_FOREVER;
    if (ebb__region_request(r) == 0) return EBB_FOREVER;
    uint64_t now = ebb__now(rt), force_at = ebb__region_force_at(r);
    uint64_t end = force_at > now ? force_at : ebb__region_deadline(r);
    return end > now ? end - (end - now) / 8 : now;
}

/* To a process that has not been waited for: its pid, and so its group, is still its own. */
static int send_signal(ebb__handle *h, int signum) {
    assert(!h->as.child.exited);
    const ebb__platform *os = h->loop->os;
    int group = h->as.child.group;
    return group != 0 ? os->group_kill(group, signum) : os->process_kill(&h->uv.process, signum);
}

static void request_end(ebb__handle *h) {
    ebb__child *c = &h->as.child;
    if (c->exited || c->end_requested) return;
    c->end_requested = true;
    (void)send_signal(h, SIGTERM);
    uint64_t now = ebb__loop_now(h->loop), budget = budget_of(h);
    uint64_t at = c->grace < EBB_FOREVER - now ? now + c->grace : EBB_FOREVER;
    kill_by(h, at < budget ? at : budget);
}

static void kill_now(ebb__handle *h) {
    h->as.child.end_requested = true;
    h->as.child.kill_at = EBB_FOREVER;
    (void)send_signal(h, SIGKILL);
}

void ebb__processes_kill(ebb_loop *l) {
    l->kill_at = EBB_FOREVER;
    for (uint32_t i = 1; i < l->handles.used; i++) {
        ebb__handle *h = ebb__slab_at(&l->handles, i);
        if (h->state == EBB__HANDLE_FREE || h->kind != EBB__PROCESS || h->as.child.exited) continue;
        if (h->as.child.kill_at <= ebb__now(l->rt)) kill_now(h);
        else kill_by(h, h->as.child.kill_at);
    }
}

/* The record stays until the process has exited. */
void ebb__process_stop(ebb__handle *h) {
    if (h->as.child.exited) ebb__handle_let_go(h);
    else request_end(h);
}

void ebb__process_force(ebb__handle *h) {
    if (!h->as.child.exited) kill_now(h);
}

/* The handle closes once a wait has received the exit status. After a cancelled wait the status is kept for the next
 * wait. */
static void on_exit_of(uv_process_t *uv, int64_t code, int signum) {
    ebb__handle *h = uv->data;
    ebb__child *c = &h->as.child;
    ebb_future *f = c->waiter;
    assert(!c->exited && h->state != EBB__HANDLE_FREE); /* the record stays until then */
    c->exited = true;
    /* A group that is not empty keeps its number, and libuv has only just waited for the leader. */
    if (c->group != 0) (void)h->loop->os->group_kill(c->group, SIGKILL);
    c->exit = (uint64_t)signum << 32 | (uint32_t)code;
    ebb__note_event(h->loop->rt, EBB_EV_PROCESS_EXITED, .other = ebb__handle_id(h),
                    .value = (uint32_t)signum << 16 | ((uint32_t)code & 0xffff), .text = c->name);
    c->waiter = NULL;
    bool received = false;
    if (f != NULL && ebb__is_wanted(f))
        received = ebb__settle(h->loop, f, ebb_value_int((int64_t)c->exit)) == EBB_OK;
    else if (f != NULL) ebb__reject(h->loop, f, EBB_CANCELLED);
    if (h->state == EBB__HANDLE_CLOSING) ebb__handle_let_go(h);
    else if (received) ebb__handle_close(h);
}

/* ---- starting a process ------------------------------------------------------------------------------------ */

static ebb_status check(const ebb_process_opts *o, const ebb_stream *pipes) {
    if (o->file == NULL) return EBB_ERR_INVALID;
    for (int i = 0; i < 3; i++) {
        uint32_t most = i == 2 ? EBB_PROCESS_STDIO_STDOUT : EBB_PROCESS_STDIO_PIPE;
        if ((uint32_t)o->stdio[i] > most || (o->stdio[i] == EBB_PROCESS_STDIO_PIPE && pipes == NULL)) {
            return EBB_ERR_INVALID;
        }
    }
    return EBB_OK;
}

/* Descriptor i of the child, in libuv's form. What shares the pipe of another is left to share_pipe. */
static uv_stdio_container_t stdio_of(const ebb_process_opts *o, int i, ebb__handle *pipe) {
    uv_stdio_container_t c = {.flags = UV_IGNORE};
    if (o->stdio[i] == EBB_PROCESS_STDIO_STDOUT) i = 1;
    if (o->stdio[i] == EBB_PROCESS_STDIO_INHERIT) {
        c.flags = UV_INHERIT_FD;
        c.data.fd = i;
    } else if (pipe != NULL) {
        c.flags = (uv_stdio_flags)(UV_CREATE_PIPE | (i == 0 ? UV_READABLE_PIPE : UV_WRITABLE_PIPE));
        c.data.stream = &pipe->uv.stream;
    }
    return c;
}

/* Standard output and error go to one pipe. libuv would make one for each, so it is made here. The caller closes the
 * child's end, *end. */
static int share_pipe(ebb__handle *reader, uv_stdio_container_t stdio[3], uv_file *end) {
    const ebb__platform *os = reader->loop->os;
    uv_file fds[2];
    int code = os->pipe_pair(fds, UV_NONBLOCK_PIPE, 0);
    if (code != 0) return code;
    code = os->pipe_open(&reader->uv.pipe, fds[0]);
    if (code != 0) {
        os->close_descriptor(fds[0]);
        os->close_descriptor(fds[1]);
        return code;
    }
    stdio[1] = stdio[2] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = fds[1]};
    *end = fds[1];
    return 0;
}

static ebb_status start(ebb__handle *h, const ebb_process_opts *o, ebb__handle *const pipes[3]) {
    const char *alone[] = {o->file, NULL};
    uv_stdio_container_t stdio[3];
    for (int i = 0; i < 3; i++) stdio[i] = stdio_of(o, i, pipes[i]);
    /* libuv changes neither the arguments nor the environment. */
    uv_process_options_t options = {
        .exit_cb = on_exit_of,
        .file = o->file,
        .args = (char **)(uintptr_t)(o->args != NULL ? o->args : alone),
        .env = (char **)(uintptr_t)o->env,
        .cwd = o->cwd,
        .stdio_count = 3,
        .stdio = stdio,
    };
    if (o->group) options.flags = UV_PROCESS_DETACHED;
    uv_file end = -1;
    bool shares = o->stdio[2] == EBB_PROCESS_STDIO_STDOUT && pipes[1] != NULL;
    int code = shares ? share_pipe(pipes[1], stdio, &end) : 0;
    if (code == 0) code = h->loop->os->spawn(h->loop->uv, &h->uv.process, &options);
    if (end >= 0) h->loop->os->close_descriptor(end);
    h->as.child.exited = code != 0;
    h->as.child.group = code == 0 && o->group ? uv_process_get_pid(&h->uv.process) : 0;
    h->as.child.grace = o->grace != 0 ? o->grace : GRACE;
    h->as.child.kill_at = EBB_FOREVER;
    ebb__message_copy(h->as.child.name, o->file);
    ebb__handle_ready(h);
    if (code == 0)
        ebb__note_event(h->loop->rt, EBB_EV_PROCESS_STARTED, .region = h->list->region.id,
                        .other = ebb__handle_id(h), .what = "process", .site = h->site, .text = o->file);
    return code == 0 ? EBB_OK : ebb__uv_status(code);
}

static void close_all(ebb__handle *h, ebb__handle *const pipes[3]) {
    for (int i = 0; i < 3; i++) {
        if (pipes[i] != NULL) ebb__handle_close(pipes[i]);
    }
    if (h != NULL) ebb__handle_close(h);
}

/* Makes all handles, or none. */
static ebb_status make(ebb_cx *cx, ebb_loop *l, const ebb_process_opts *o, const char *site,
                       ebb__handle *pipes[3], ebb__handle **out) {
    ebb_region region = ebb_cx_region(cx);
    ebb_status st = EBB_OK;
    for (int i = 0; i < 3 && st == EBB_OK; i++) {
        if (o->stdio[i] == EBB_PROCESS_STDIO_PIPE)
            pipes[i] = ebb__stream_new(l, region, EBB__PIPE, site, &st);
    }
    ebb__handle *h = st == EBB_OK ? ebb__handle_new(l, region, EBB__PROCESS, site, &st) : NULL;
    if (h != NULL) st = start(h, o, pipes);
    if (st != EBB_OK) close_all(h, pipes);
    *out = h;
    return st;
}

ebb_process ebb_process_spawn_site(ebb_cx *cx, ebb_stream pipes[3], const ebb_process_opts *opts,
                                   const char *site) {
    ebb__handle *h = NULL, *streams[3] = {NULL, NULL, NULL};
    ebb_process_opts o;
    ebb_loop *l;
    ebb_status st = ebb__loop_admit(cx, &l);
    if (st == EBB_OK) st = EBB__OPTS_COPY(&o, opts);
    if (st == EBB_OK) st = check(&o, pipes);
    if (st == EBB_OK) st = make(cx, l, &o, site, streams, &h);
    for (int i = 0; pipes != NULL && i < 3; i++) {
        ebb_status none = st == EBB_OK ? EBB_ERR_INVALID : st;
        bool there = st == EBB_OK && streams[i] != NULL;
        pipes[i].id = there ? ebb__handle_id(streams[i]) : ebb__handle_error(cx, none);
    }
    return (ebb_process){st == EBB_OK ? ebb__handle_id(h) : ebb__handle_error(cx, st)};
}

/* ---- waiting and signals ---------------------------------------------------------------------------------------- */

static ebb_status process_find(const ebb_cx *cx, ebb_process p, ebb__handle **out) {
    return ebb__handle_find(cx, p.id, EBB__PROCESS, EBB__PROCESS, out);
}

/* The future ends when the process has exited. */
static void wait_cancel(ebb_cx *cx, ebb_future *f, void *arg) {
    (void)cx;
    (void)f;
    request_end(arg);
}

static const ebb_operation wait_op = {"process", wait_cancel, ebb__only_waits};

/* A cancelled wait keeps its region open until the process has exited. The next wait takes over. */
static void replace_waiter(ebb__handle *h) {
    ebb_future *f = h->as.child.waiter;
    h->as.child.waiter = NULL;
    request_end(h); /* its cancel hook may not have run yet */
    ebb__reject(h->loop, f, EBB_CANCELLED);
}

ebb_future *ebb_process_wait_site(ebb_cx *cx, ebb_process p, const char *site) {
    ebb__handle *h;
    ebb_future *failed;
    ebb_status st = process_find(cx, p, &h);
    bool again = st == EBB_OK && h->as.child.waiter != NULL && !ebb__is_wanted(h->as.child.waiter);
    if (st == EBB_OK && h->as.child.waiter != NULL && !again) st = EBB_ERR_BUSY;
    if (st != EBB_OK) return ebb__loop_failed(cx, st, site);
    ebb_future *f = ebb__begin(h->loop, cx, &wait_op, h, site, &failed);
    if (f == NULL) return failed;
    if (again) replace_waiter(h);
    if (h->as.child.exited) {
        (void)ebb__settle(h->loop, f, ebb_value_int((int64_t)h->as.child.exit));
        ebb__handle_close(h);
    } else {
        h->as.child.waiter = f;
    }
    return f;
}

ebb_status ebb_process_kill(ebb_cx *cx, ebb_process p, int signum) {
    ebb__handle *h;
    ebb_status st = process_find(cx, p, &h);
    if (st != EBB_OK) return st;
    if (h->as.child.exited) return EBB_ERRNO(ESRCH);
    int code = send_signal(h, signum);
    return code == 0 ? EBB_OK : ebb__uv_status(code);
}

int ebb_process_pid(ebb_cx *cx, ebb_process p) {
    ebb__handle *h;
    return process_find(cx, p, &h) == EBB_OK && !h->as.child.exited ? uv_process_get_pid(&h->uv.process) : 0;
}
