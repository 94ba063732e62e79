/* Loops and handles in memory, with libuv's contract: its phases in their order, its rules for what keeps a loop alive,
 * its two steps of closing. Only the poll phase differs: there the program yields, and what is ready is taken in an
 * order that the chooser decides. */
#define _POSIX_C_SOURCE 200809L
#include "lab/network.h"

#include <assert.h>
#include <errno.h>

enum {
    TAKEN = 64,
    WALL = 946684800
}; /* events that one poll phase takes; the lab's time begins in the year 2000 */

/* ---- loops --------------------------------------------------------------------------------------------- */

ebb__net_loop *ebb__net_loop_of(const uv_loop_t *uv) {
    for (uint32_t i = 0; i < ebb__net_here()->n; i++) {
        ebb__net_loop *l = ebb__net_here()->program[i]->loops;
        while (l != NULL && l->uv != uv) l = l->next;
        if (l != NULL) return l;
    }
    return NULL;
}

static int loop_init(uv_loop_t *uv) {
    ebb__net_program *p = ebb__net_running();
    ebb__net_loop *l = ebb_lab_alloc(p->net->lab, sizeof *l);
    if (l == NULL) return UV_ENOMEM;
    memset(uv, 0, sizeof *uv);
    l->uv = uv;
    l->program = p;
    l->time_ms = p->net->lab->now / EBB_MS;
    l->next = p->loops;
    p->loops = l;
    return 0;
}

static int loop_close(uv_loop_t *uv) {
    ebb__net_loop *l = ebb__net_loop_of(uv), **at = &l->program->loops;
    if (l->first != NULL || l->requests > 0) return UV_EBUSY;
    while (*at != l) at = &(*at)->next;
    *at = l->next;
    return 0;
}

static void loop_stop(uv_loop_t *uv) {
    ebb__net_loop_of(uv)->stopped = true;
}

static uint64_t loop_now(const uv_loop_t *uv) {
    return ebb__net_loop_of(uv)->time_ms;
}

static void update_time(ebb__net_loop *l) {
    l->time_ms = l->program->net->lab->now / EBB_MS;
}

/* ---- handles ------------------------------------------------------------------------------------------- */

int ebb__net_handle_new(uv_loop_t *loop, void *uv, uv_handle_type type) {
    ebb__net_loop *l = ebb__net_loop_of(loop);
    ebb__net_handle *h = l == NULL ? NULL : ebb_lab_alloc(l->program->net->lab, sizeof *h);
    uv_handle_t *any = uv;
    if (h == NULL) return l == NULL ? UV_EINVAL : UV_ENOMEM;
    h->uv = any;
    h->loop = l;
    h->prev = l->last;
    if (l->last != NULL) l->last->next = h;
    else l->first = h;
    l->last = h;
    any->loop = loop;
    any->type = type;
    any->u.reserved[0] = h;
    return 0;
}

static void unlink_handle(ebb__net_handle *h) {
    assert(h->closing && !h->active && (h->prev != NULL ? h->prev->next == h : h->loop->first == h));
    if (h->prev != NULL) h->prev->next = h->next;
    else h->loop->first = h->next;
    if (h->next != NULL) h->next->prev = h->prev;
    else h->loop->last = h->prev;
}

static void handle_close(uv_handle_t *uv, uv_close_cb closed) {
    ebb__net_handle *h = ebb__net_handle_of(uv);
    assert(!h->closing); /* libuv aborts, too */
    h->closing = true;
    h->active = false;
    h->closed = closed;
    h->next_closing = h->loop->closing;
    h->loop->closing = h;
    if (uv->type == UV_TCP || uv->type == UV_NAMED_PIPE) ebb__net_stream_close(h);
}

static void handle_ref(uv_handle_t *uv) {
    ebb__net_handle_of(uv)->unreferenced = false;
}

static void handle_unref(uv_handle_t *uv) {
    ebb__net_handle_of(uv)->unreferenced = true;
}

static int is_active(const uv_handle_t *uv) {
    return ebb__net_handle_of(uv)->active;
}

static int handle_fileno(const uv_handle_t *uv, uv_os_fd_t *fd) {
    const ebb__net_handle *h = ebb__net_handle_of(uv);
    bool is_stream = uv->type == UV_TCP || uv->type == UV_NAMED_PIPE;
    if (!is_stream || h->as.stream.socket == NULL || h->as.stream.socket->fd == 0) return UV_EBADF;
    *fd = h->as.stream.socket->fd;
    return 0;
}

static int async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb woken) {
    int code = ebb__net_handle_new(loop, async, UV_ASYNC);
    if (code != 0) return code;
    ebb__net_handle *h = ebb__net_handle_of(async);
    h->active = true;
    h->as.async.woken = woken;
    return 0;
}

static int async_send(uv_async_t *async) {
    ebb__net_handle_of(async)->as.async.pending = true;
    return 0;
}

static int timer_init(uv_loop_t *loop, uv_timer_t *timer) {
    return ebb__net_handle_new(loop, timer, UV_TIMER);
}

static int timer_start(uv_timer_t *timer, uv_timer_cb expired, uint64_t after_ms, uint64_t every_ms) {
    ebb__net_handle *h = ebb__net_handle_of(timer);
    if (h->closing || every_ms != 0) return UV_EINVAL;
    h->active = true;
    h->as.timer.due_ms = h->loop->time_ms + after_ms;
    h->as.timer.number = h->loop->timers++;
    h->as.timer.expired = expired;
    return 0;
}

static int prepare_init(uv_loop_t *loop, uv_prepare_t *prepare) {
    return ebb__net_handle_new(loop, prepare, UV_PREPARE);
}

static int check_init(uv_loop_t *loop, uv_check_t *check) {
    return ebb__net_handle_new(loop, check, UV_CHECK);
}

static int idle_init(uv_loop_t *loop, uv_idle_t *idle) {
    return ebb__net_handle_new(loop, idle, UV_IDLE);
}

static int prepare_start(uv_prepare_t *prepare, uv_prepare_cb callback) {
    ebb__net_handle *h = ebb__net_handle_of(prepare);
    h->active = true;
    h->as.phase.prepare = callback;
    return 0;
}

static int check_start(uv_check_t *check, uv_check_cb callback) {
    ebb__net_handle *h = ebb__net_handle_of(check);
    h->active = true;
    h->as.phase.check = callback;
    return 0;
}

static int idle_start(uv_idle_t *idle, uv_idle_cb callback) {
    ebb__net_handle *h = ebb__net_handle_of(idle);
    h->active = true;
    h->as.phase.idle = callback;
    return 0;
}

static int idle_stop(uv_idle_t *idle) {
    ebb__net_handle_of(idle)->active = false;
    return 0;
}

static int signal_init(uv_loop_t *loop, uv_signal_t *signal) {
    return ebb__net_handle_new(loop, signal, UV_SIGNAL);
}

static int signal_start(uv_signal_t *signal, uv_signal_cb caught, int signum) {
    ebb__net_handle *h = ebb__net_handle_of(signal);
    h->active = true;
    h->as.signal.caught = caught;
    h->as.signal.signum = signum;
    if (h->loop->program->signals >> signum & 1) h->as.signal.times++;
    h->loop->program->signals &= ~(UINT64_C(1) << signum);
    return 0;
}

/* Every handler of the signal is called; without one the signal waits for the first. */
void ebb__net_signal_raise(ebb__net_program *p, int signum) {
    bool taken = false;
    for (ebb__net_loop *l = p->loops; l != NULL; l = l->next) {
        for (ebb__net_handle *h = l->first; h != NULL; h = h->next) {
            if (h->uv->type != UV_SIGNAL || !h->active || h->as.signal.signum != signum) continue;
            h->as.signal.times++;
            taken = true;
        }
    }
    if (!taken) p->signals |= UINT64_C(1) << signum;
}

/* ---- what there is not --------------------------------------------------------------------------------- */

static int thread_create(uv_thread_t *thread, uv_thread_cb entry, void *arg) {
    (void)thread;
    (void)entry;
    (void)arg;
    return UV_ENOSYS;
}

static int spawn(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options) {
    (void)options;
    int code = ebb__net_handle_new(loop, process, UV_PROCESS);
    return code == 0 ? UV_ENOSYS : code;
}

static int process_kill(uv_process_t *process, int signum) {
    (void)process;
    (void)signum;
    return UV_ESRCH;
}

static int group_kill(int group, int signum) {
    (void)group;
    (void)signum;
    return UV_ESRCH;
}

static int pipe_pair(uv_file fds[2], int read_flags, int write_flags) {
    (void)fds;
    (void)read_flags;
    (void)write_flags;
    return UV_ENOTSUP;
}

/* ---- phases -------------------------------------------------------------------------------------------- */

static bool is_alive(const ebb__net_loop *l) {
    bool alive = l->requests > 0 || l->closing != NULL;
    for (const ebb__net_handle *h = l->first; h != NULL && !alive; h = h->next)
        alive = h->active && !h->unreferenced && !h->closing;
    return alive;
}

/* The active timer that expires first; of several at the same time the one that was started first. */
static ebb__net_handle *first_timer(const ebb__net_loop *l) {
    ebb__net_handle *first = NULL;
    for (ebb__net_handle *h = l->first; h != NULL; h = h->next) {
        if (h->uv->type != UV_TIMER || !h->active) continue;
        if (first == NULL || h->as.timer.due_ms < first->as.timer.due_ms ||
            (h->as.timer.due_ms == first->as.timer.due_ms && h->as.timer.number < first->as.timer.number))
            first = h;
    }
    return first;
}

static void run_timers(ebb__net_loop *l) {
    for (ebb__net_handle *h; (h = first_timer(l)) != NULL && h->as.timer.due_ms <= l->time_ms;) {
        h->active = false;
        h->as.timer.expired((uv_timer_t *)h->uv);
    }
}

/* Calls the started handles of a phase. A callback may start and stop others, and close them; it frees none. */
static void run_phase(ebb__net_loop *l, uv_handle_type phase) {
    for (ebb__net_handle *h = l->first; h != NULL; h = h->next) {
        if (h->uv->type != phase || !h->active) continue;
        if (phase == UV_IDLE) h->as.phase.idle((uv_idle_t *)h->uv);
        else if (phase == UV_PREPARE) h->as.phase.prepare((uv_prepare_t *)h->uv);
        else h->as.phase.check((uv_check_t *)h->uv);
        ebb__net_polled(l);
    }
}

static void run_closing(ebb__net_loop *l) {
    ebb__net_handle *h = l->closing, *next;
    l->closing = NULL;
    for (; h != NULL; h = next) {
        next = h->next_closing;
        unlink_handle(h);
        if (h->uv->type == UV_TCP || h->uv->type == UV_NAMED_PIPE) ebb__net_stream_closed(h);
        if (h->closed != NULL) h->closed(h->uv);
    }
}

/* When the poll phase has to end at the latest. */
static uint64_t timeout_of(const ebb__net_loop *l, uv_run_mode mode) {
    uint64_t now = l->program->net->lab->now;
    bool waits = mode != UV_RUN_NOWAIT && !l->stopped && l->closing == NULL && is_alive(l);
    for (const ebb__net_handle *h = l->first; h != NULL && waits; h = h->next)
        waits = h->uv->type != UV_IDLE || !h->active;
    if (!waits) return now;
    const ebb__net_handle *timer = first_timer(l);
    if (timer == NULL) return EBB_FOREVER;
    return timer->as.timer.due_ms > l->time_ms ? now + (timer->as.timer.due_ms - l->time_ms) * EBB_MS : now;
}

/* ---- the poll phase ------------------------------------------------------------------------------------ */

static bool is_ready(const ebb__net_handle *h) {
    if (h->closing) return false;
    switch (h->uv->type) {
    case UV_ASYNC: return h->as.async.pending;
    case UV_SIGNAL: return h->as.signal.times > 0;
    case UV_POLL: return ebb__net_listener_is_ready(h);
    case UV_TCP:
    case UV_NAMED_PIPE: return ebb__net_stream_is_ready(h);
    default: return false;
    }
}

bool ebb__net_loop_is_ready(const ebb__net_loop *l) {
    bool ready = l->done != NULL;
    for (const ebb__net_handle *h = l->first; h != NULL && !ready; h = h->next) ready = is_ready(h);
    return ready;
}

static void take(ebb__net_handle *h) {
    h->round = h->loop->round;
    switch (h->uv->type) {
    case UV_ASYNC:
        h->as.async.pending = false;
        h->as.async.woken((uv_async_t *)h->uv);
        break;
    case UV_SIGNAL:
        h->as.signal.times--;
        h->as.signal.caught((uv_signal_t *)h->uv, h->as.signal.signum);
        break;
    case UV_POLL: h->as.poll.readable((uv_poll_t *)h->uv, 0, UV_READABLE); break;
    default: ebb__net_stream_poll(h); break;
    }
}

/* Each handle once, in any order. The last alternative, once something was taken, leaves the rest for the next turn. */
static void poll_events(ebb__net_loop *l) {
    ebb_lab *lab = l->program->net->lab;
    l->round++;
    for (uint32_t taken = 0; taken < TAKEN; taken++) {
        uint32_t n = l->done != NULL;
        for (const ebb__net_handle *h = l->first; h != NULL; h = h->next)
            n += h->round != l->round && is_ready(h);
        if (n == 0) return;
        uint32_t which = ebb__choose(lab, n + (taken > 0));
        if (which == n) return;
        if (l->done != NULL && which-- == 0) {
            (void)ebb__net_request_finish(l);
            continue;
        }
        ebb__net_handle *h = l->first;
        while (h->round == l->round || !is_ready(h) || which-- > 0) h = h->next;
        take(h);
    }
}

static int run(uv_loop_t *uv, uv_run_mode mode) {
    ebb__net_loop *l = ebb__net_loop_of(uv);
    bool alive = is_alive(l);
    if (!alive) update_time(l);
    while (alive && !l->stopped) {
        update_time(l);
        run_timers(l);
        run_phase(l, UV_IDLE);
        run_phase(l, UV_PREPARE);
        ebb__net_program_wait(l->program, l, timeout_of(l, mode));
        update_time(l);
        poll_events(l);
        run_phase(l, UV_CHECK);
        run_closing(l);
        if (mode == UV_RUN_ONCE) {
            update_time(l);
            run_timers(l);
        }
        alive = is_alive(l);
        if (mode != UV_RUN_DEFAULT) break;
    }
    l->stopped = false;
    return alive;
}

/* ---- time, chance and loops with a runtime ------------------------------------------------------------- */

static uint64_t hrtime(void) {
    return ebb__net_here()->lab->now;
}

static void wall_clock(struct timespec *out) {
    uint64_t now = ebb__net_here()->lab->now;
    *out = (struct timespec){WALL + (time_t)(now / EBB_SECOND), (long)(now % EBB_SECOND)};
}

/* The same bytes in every run: they are no decision. */
static void random_bytes(void *out, size_t n) {
    ebb__net_program *p = ebb__net_running();
    for (size_t i = 0; i < n; i++) ((unsigned char *)out)[i] = (unsigned char)ebb__random(&p->random);
}

static unsigned available_parallelism(void) {
    return 1;
}

static uint32_t descriptors(void) {
    uint32_t most = ebb__net_here()->limits->descriptors;
    return most == 0 || most > EBB__NET_FDS ? EBB__NET_FDS : most;
}

/* One task is polled in a turn, so that anything may happen between two polls. */
static void attached(ebb_loop *loop) {
    ebb__net_program *p = ebb__net_running();
    ebb__net_loop *l = ebb__net_loop_of(loop->uv);
    bool watches = false;
    for (const ebb__net_loop *o = p->loops; o != NULL; o = o->next) watches |= o->watched != NULL;
    loop->polls = 1;
    if (l == NULL || watches) return;
    l->watched = loop;
    ebb_status st = ebb__lab_watch(p->net->lab, p->index, loop->rt);
    if (st != EBB_OK) ebb__lab_stop(p->net->lab, st, "", NULL);
}

static void detaching(ebb_loop *loop) {
    ebb__net_program *p = ebb__net_running();
    ebb__net_loop *l = ebb__net_loop_of(loop->uv);
    if (l == NULL || l->watched != loop) return;
    ebb__lab_check_quiet(p->net->lab, p->index);
    ebb__lab_unwatch(p->net->lab, p->index);
    l->watched = NULL;
}

const ebb__platform ebb__net_platform = {
    .hrtime = hrtime,
    .wall_clock = wall_clock,
    .random = random_bytes,
    .available_parallelism = available_parallelism,
    .descriptors = descriptors,
    .loop_init = loop_init,
    .loop_close = loop_close,
    .run = run,
    .stop = loop_stop,
    .now = loop_now,
    .attached = attached,
    .detaching = detaching,
    .thread_create = thread_create,
    .close = handle_close,
    .ref = handle_ref,
    .unref = handle_unref,
    .is_active = is_active,
    .fileno = handle_fileno,
    .async_init = async_init,
    .async_send = async_send,
    .timer_init = timer_init,
    .timer_start = timer_start,
    .prepare_init = prepare_init,
    .prepare_start = prepare_start,
    .check_init = check_init,
    .check_start = check_start,
    .idle_init = idle_init,
    .idle_start = idle_start,
    .idle_stop = idle_stop,
    .poll_init = ebb__net_poll_init,
    .poll_start = ebb__net_poll_start,
    .poll_stop = ebb__net_poll_stop,
    .signal_init = signal_init,
    .signal_start = signal_start,
    .guess_handle = ebb__net_guess_handle,
    .tcp_init = ebb__net_tcp_init,
    .tcp_open = ebb__net_tcp_open,
    .tcp_connect = ebb__net_tcp_connect,
    .tcp_getpeername = ebb__net_tcp_getpeername,
    .tcp_nodelay = ebb__net_tcp_nodelay,
    .pipe_init = ebb__net_pipe_init,
    .pipe_open = ebb__net_pipe_open,
    .pipe_connect = ebb__net_pipe_connect,
    .read_start = ebb__net_read_start,
    .read_stop = ebb__net_read_stop,
    .try_write = ebb__net_try_write,
    .write = ebb__net_write_to,
    .shutdown = ebb__net_shutdown,
    .peek = ebb__net_peek,
    .shut_writing = ebb__net_shut_writing,
    .listen_open = ebb__net_listen_open,
    .listen_drain = ebb__net_listen_drain,
    .listen_close = ebb__net_listen_close,
    .listen_name = ebb__net_listen_name,
    .accept = ebb__net_accept,
    .close_descriptor = ebb__net_close_descriptor,
    .cancel = ebb__net_cancel,
    .queue_work = ebb__net_queue_work,
    .getaddrinfo = ebb__net_getaddrinfo,
    .freeaddrinfo = ebb__net_freeaddrinfo,
    .fs_open = ebb__net_fs_open,
    .fs_close = ebb__net_fs_close,
    .fs_read = ebb__net_fs_read,
    .fs_write = ebb__net_fs_write,
    .fs_fsync = ebb__net_fs_fsync,
    .fs_rename = ebb__net_fs_rename,
    .fs_unlink = ebb__net_fs_unlink,
    .fs_stat = ebb__net_fs_stat,
    .fs_req_cleanup = ebb__net_fs_req_cleanup,
    .spawn = spawn,
    .process_kill = process_kill,
    .group_kill = group_kill,
    .pipe_pair = pipe_pair,
};
