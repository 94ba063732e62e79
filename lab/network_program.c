/* Programs: a stack for each, and its end. */
#define _POSIX_C_SOURCE 200809L
#include "lab/network.h"

#include <assert.h>
#include <errno.h>

#include "fiber/stack.h"
#include "fiber/switch.h"
#include <ebb/workflow.h>

enum { STACK_BYTES = 1 << 20, ARGS = 64 };

/* ---- descriptors --------------------------------------------------------------------------------------- */

static bool is_taken(const ebb__net_descriptor *d) {
    return d->listener != NULL || d->socket != NULL || d->file != NULL;
}

int ebb__net_fd_new(ebb__net_program *p, ebb__net_descriptor d) {
    uint32_t most = ebb__net_platform.descriptors();
    for (uint32_t fd = EBB__NET_FIRST_FD; fd < most; fd++) {
        if (is_taken(&p->fds[fd])) continue;
        p->fds[fd] = d;
        p->open++;
        return (int)fd;
    }
    return -EMFILE;
}

ebb__net_descriptor *ebb__net_fd(ebb__net_program *p, int fd) {
    bool known = fd >= EBB__NET_FIRST_FD && fd < EBB__NET_FDS;
    return known && is_taken(&p->fds[fd]) ? &p->fds[fd] : NULL;
}

void ebb__net_fd_close(ebb__net_program *p, int fd) {
    ebb__net_descriptor *d = ebb__net_fd(p, fd);
    if (d == NULL) return;
    assert(p->open > 0);
    *d = (ebb__net_descriptor){.socket = NULL};
    p->open--;
}

/* ---- the program's side -------------------------------------------------------------------------------- */

static int run_main(ebb__net_program *p) {
    char *argv[ARGS + 2] = {ebb__net_copy(p->net, p->what->name)};
    int argc = 1;
    for (size_t i = 0; p->what->args != NULL && p->what->args[i] != NULL && i < ARGS; i++)
        argv[argc++] = ebb__net_copy(p->net, p->what->args[i]);
    return p->what->main(argc, argv);
}

static int run_client(ebb__net_program *p) {
    ebb_service_opts opts = {.loop.runtime.allocator = ebb_failing_allocator(&p->memory)};
    return ebb_service_run(&opts, p->what->fn, p->what->arg);
}

static void program_main(void *program) {
    ebb__net_program *p = program;
    ebb__note_runs(&p->notes);
    p->status = p->what->main != NULL ? run_main(p) : run_client(p);
    p->state = EBB__NET_ENDED;
    ebb__note_leaves(&p->notes, true);
    ebb__switch(&p->sp, p->caller);
}

void ebb__net_program_wait(ebb__net_program *p, ebb__net_loop *in, uint64_t until) {
    assert(p->net->running == p && p->polling == NULL);
    p->polling = in;
    p->until = until;
    p->state = EBB__NET_WAITS;
    ebb__note_leaves(&p->notes, false);
    ebb__switch(&p->sp, p->caller);
    ebb__note_runs(&p->notes);
    p->polling = NULL;
}

/* ---- the lab's side ------------------------------------------------------------------------------------ */

ebb_status ebb__net_program_start(ebb__net_program *p) {
    size_t bytes = ebb__stack_round(STACK_BYTES);
    if (!EBB__SWITCHES) return EBB_ERR_LIMIT;
    p->stack = ebb__stack_map(bytes);
    if (p->stack == NULL) return EBB_ERR_NOMEM;
    p->sp = ebb__switch_start(p->stack + bytes, program_main, p);
    return EBB_OK;
}

void ebb__net_program_resume(ebb__net_program *p) {
    size_t bytes = ebb__stack_round(STACK_BYTES);
    p->net->running = p;
    ebb__note_resume(&p->notes, p->stack, bytes);
    ebb__switch(&p->caller, p->sp);
    ebb__note_back(&p->notes);
    p->net->running = NULL;
}

static void nothing(uv_handle_t *uv) {
    (void)uv;
}

/* The frames of a program that has not ended are not unwound, so its own memory is lost. The runtimes that it has left
 * are freed, which gives their ids back. */
static void abandon(ebb__net_program *p) {
    p->net->running = p;
    for (ebb__net_loop *l = p->loops; l != NULL; l = l->next) {
        if (l->watched == NULL) continue;
        ebb_loop *loop = l->watched;
        ebb__lab_unwatch(p->net->lab, p->index);
        l->watched = NULL;
        ebb__loop_fini(loop, nothing);
        ebb_peer_release(loop->peer);
    }
    p->net->running = NULL;
}

void ebb__net_program_free(ebb__net_program *p) {
    size_t bytes = ebb__stack_round(STACK_BYTES);
    if (p->stack == NULL) return;
    abandon(p);
    ebb__note_ends(&p->notes, p->stack, bytes);
    ebb__stack_unmap(p->stack, bytes);
    p->stack = NULL;
}
