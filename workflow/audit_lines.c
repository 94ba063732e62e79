/* The lines of one workflow, read back from the file of its log, a piece at a time: whoever asks for a page of a log of any
 * size costs one read of PIECE bytes. */
#define _GNU_SOURCE /* memmem */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "workflow/audit.h"

enum { PIECE = 2 * EBB__AUDIT_LINE }; /* holds a line of any length */

/* Quotes in texts are escaped, and this is the first key of its name in a line that has it. */
static bool is_of(const char *line, size_t n, uint64_t number) {
    static const char key[] = ",\"id\":";
    const char *at = memmem(line, n, key, sizeof key - 1);
    return at != NULL && strtoull(at + sizeof key - 1, NULL, 10) == number;
}

/* From the byte before the first line on, which ends the line before it. */
static ebb_status read_piece(ebb_audit *a, const ebb__audit_page *p, char *piece, uint64_t *size, size_t *n) {
    (void)pthread_mutex_lock(&a->lock);
    *size = ebb__audit_file_size(a);
    (void)pthread_mutex_unlock(&a->lock);
    if (p->at > *size) return EBB_ERR_INVALID;
    const uint64_t from = p->at > 0 ? p->at - 1 : 0, left = *size - from;
    const ssize_t got = pread(a->fd, piece, left < PIECE ? (size_t)left : PIECE, (off_t)from);
    if (got < 0) return EBB_ERRNO(errno);
    *n = (size_t)got;
    return p->at > 0 && (got == 0 || piece[0] != '\n') ? EBB_ERR_INVALID : EBB_OK;
}

static void take_lines(ebb__audit_page *p, const char *at, const char *end) {
    const char *stop;
    for (uint32_t lines = 0; lines < p->most && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL;) {
        const size_t n = (size_t)(stop - at);
        if (is_of(at, n, p->number)) {
            p->line(p->ctx, at, n);
            lines++;
        }
        p->at += n + 1;
        at = stop + 1;
    }
}

ebb_status ebb__audit_lines(ebb_audit *a, ebb__audit_page *p) {
    char *piece = ebb__alloc(&a->allocator, PIECE);
    uint64_t size;
    size_t n = 0;
    if (piece == NULL) return EBB_ERR_NOMEM;
    ebb_status st = read_piece(a, p, piece, &size, &n);
    if (st == EBB_OK) {
        take_lines(p, piece + (p->at > 0), piece + n);
        p->end = p->at == size;
    }
    ebb__free(&a->allocator, piece, PIECE);
    return st;
}
