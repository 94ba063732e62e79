/* A run in a process of its own. The child plays it and writes to a pipe: pieces of traces as they come, and at its end
 * the result. Its decisions are in memory that both processes share, so that they survive a crash. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "lab/network.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

enum { DECISIONS = 1 << 20, PIECE = 65536 };

typedef enum message_kind { TRACE, JOURNAL, RESULT } message_kind;

typedef struct message {
    message_kind kind;
    uint32_t runtime;
    size_t n; /* bytes that follow */
} message;

/* ---- the child ----------------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *bytes, size_t n) {
    for (const char *at = bytes; n > 0;) {
        ssize_t got = write(fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static void send_message(int fd, message_kind kind, uint32_t runtime, const void *bytes, size_t n) {
    message m = {kind, runtime, n};
    if (!write_all(fd, &m, sizeof m) || !write_all(fd, bytes, n)) _exit(1);
}

static void send_trace(void *fd, uint32_t runtime, const void *bytes, size_t n) {
    send_message(*(int *)fd, TRACE, runtime, bytes, n);
}

static void send_journal(void *fd, uint32_t runtime, const void *bytes, size_t n) {
    send_message(*(int *)fd, JOURNAL, runtime, bytes, n);
}

static _Noreturn void play_as_child(ebb_lab *lab, int fd) {
    if (lab->opts.trace != NULL) lab->opts.trace = send_trace;
    if (lab->opts.journal != NULL) lab->opts.journal = send_journal;
    lab->opts.ctx = &fd;
    ebb__net_play(lab);
    (void)fflush(NULL); /* the output of the programs */
    send_message(fd, RESULT, 0, &lab->result, sizeof lab->result);
    _exit(0);
}

/* ---- the parent ---------------------------------------------------------------------------------------- */

/* False: the end, or less than n bytes. */
static bool read_all(int fd, void *to, size_t n) {
    for (char *at = to; n > 0;) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool pass_on(ebb_lab *lab, int fd, const message *m, char *piece) {
    size_t left = m->n;
    while (left > 0) {
        size_t n = left < PIECE ? left : PIECE;
        if (!read_all(fd, piece, n)) return false;
        if (m->kind == TRACE) lab->opts.trace(lab->opts.ctx, m->runtime, piece, n);
        else lab->opts.journal(lab->opts.ctx, m->runtime, piece, n);
        left -= n;
    }
    return true;
}

/* Whether the result has come. */
static bool listen_to(ebb_lab *lab, int fd, char *piece) {
    message m;
    while (read_all(fd, &m, sizeof m)) {
        if (m.kind == RESULT) return read_all(fd, &lab->result, sizeof lab->result);
        if (!pass_on(lab, fd, &m, piece)) return false;
    }
    return false;
}

static void crashed(ebb_lab *lab, int status) {
    char text[80];
    if (WIFSIGNALED(status)) snprintf(text, sizeof text, "the run has died of signal %d", WTERMSIG(status));
    else snprintf(text, sizeof text, "the run has ended its process with the status %d", WEXITSTATUS(status));
    ebb__lab_stop(lab, EBB_FAILED, "crash", text);
}

static void attend(ebb_lab *lab, pid_t child, int fd) {
    char *piece = ebb_lab_alloc(lab, PIECE);
    bool whole = piece != NULL && listen_to(lab, fd, piece);
    int status = 0;
    (void)close(fd); /* a child that still writes ends */
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (!whole && piece != NULL) crashed(lab, status);
}

static void play_with(ebb_lab *lab, ebb__decisions *shown) {
    int ends[2];
    if (pipe(ends) != 0) {
        ebb__lab_stop(lab, EBB_ERRNO(errno), "", NULL);
        return;
    }
    (void)fflush(NULL); /* or both processes would write it */
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        lab->chooser.shown = shown;
        lab->chooser.shown_room = DECISIONS;
        play_as_child(lab, ends[1]);
    }
    int error = errno;
    (void)close(ends[1]);
    if (child > 0) attend(lab, child, ends[0]);
    else (void)close(ends[0]);
    if (child < 0) ebb__lab_stop(lab, EBB_ERRNO(error), "", NULL);
    for (size_t i = 0; i < shown->n; i++) ebb__chosen(lab, shown->at[i].taken, shown->at[i].of);
}

void ebb__net_play_apart(ebb_lab *lab) {
    size_t bytes = sizeof(ebb__decisions) + DECISIONS * sizeof((ebb__decisions *)NULL)->at[0];
    ebb__decisions *shown = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shown == MAP_FAILED) {
        ebb__lab_stop(lab, EBB_ERR_NOMEM, "", NULL);
        return;
    }
    play_with(lab, shown);
    (void)munmap(shown, bytes);
}
