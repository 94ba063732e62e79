/* cli/io.c - files, errors, memory and progress for the subcommands. */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void ebb__cli_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("ebb: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

static void *libc_memory(void *ctx, void *p, size_t old_size, size_t new_size) {
    (void)ctx;
    (void)old_size;
    if (new_size != 0) return realloc(p, new_size);
    free(p);
    return NULL;
}

ebb_allocator ebb__cli_allocator(void) {
    return (ebb_allocator){libc_memory, NULL};
}

bool ebb__cli_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out) {
    char *end;
    errno = 0;
    unsigned long long x = strtoull(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9' && *end == 0;
    if (digits && errno == 0 && x >= least && x <= most) {
        *out = x;
        return true;
    }
    ebb__cli_error("%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'", option, least, most,
                   text);
    return false;
}

/* Reads to the end, or to one byte more than `most`, instead of asking for a size, so that pipes work too. */
static bool read_stream(FILE *in, size_t most, ebb__cli_file *out) {
    size_t room = 0;
    for (;;) {
        if (out->n > most) return true;
        if (out->n == room) {
            room = room == 0 ? 1 << 16 : room * 2;
            uint8_t *bigger = realloc(out->bytes, room);
            if (bigger == NULL) {
                errno = ENOMEM;
                return false;
            }
            out->bytes = bigger;
        }
        size_t got = fread(out->bytes + out->n, 1, room - out->n, in);
        out->n += got;
        if (got == 0) return ferror(in) == 0;
    }
}

bool ebb__cli_read_most(const char *path, size_t most, ebb__cli_file *out) {
    *out = (ebb__cli_file){.path = path};
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        ebb__cli_error("can't open %s: %s", path, strerror(errno));
        return false;
    }
    bool ok = read_stream(in, most, out);
    if (!ok) {
        ebb__cli_error("can't read %s: %s", path, strerror(errno));
        free(out->bytes);
        out->bytes = NULL;
    }
    fclose(in);
    return ok;
}

bool ebb__cli_read(const char *path, ebb__cli_file *out) {
    return ebb__cli_read_most(path, SIZE_MAX - 1, out);
}

void ebb__buffer_add(void *buffer, const char *s, size_t n) {
    ebb__buffer *b = buffer;
    if (b->room - b->n < n) {
        size_t room = (b->n + n) * 2 + 256;
        char *bytes = b->failed ? NULL : realloc(b->bytes, room);
        if (bytes == NULL) {
            b->failed = true;
            return;
        }
        b->bytes = bytes;
        b->room = room;
    }
    memcpy(b->bytes + b->n, s, n);
    b->n += n;
}

void ebb__cli_quote(FILE *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%=,";
    if (word[0] != 0 && word[strspn(word, plain)] == 0) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word != 0; word++) {
        if (*word == '\'') fputs("'\\''", out);
        else fputc(*word, out);
    }
    fputc('\'', out);
}

bool ebb__cli_is_other_kind(ebb_status st, const ebb_trace_reader *r) {
    return st == EBB_ERR_FORMAT && r->error_offset == 0;
}

static uint64_t clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

ebb__progress ebb__progress_begin(const char *what, bool requested) {
    uint64_t now = clock_ms();
    bool wanted = requested || isatty(STDERR_FILENO) != 0;
    return (ebb__progress){.what = what, .wanted = wanted, .start_ms = now, .last_ms = now};
}

void ebb__progress_step(ebb__progress *p, uint64_t done, uint64_t of) {
    enum { CALLS_A_LOOK = 1 << 14, FIRST_AFTER_MS = 1000, THEN_EVERY_MS = 200 };
    if (!p->wanted || ++p->calls % CALLS_A_LOOK != 0) return;
    uint64_t now = clock_ms();
    if (now - p->start_ms < FIRST_AFTER_MS || now - p->last_ms < THEN_EVERY_MS) return;
    p->last_ms = now;
    p->shown = true;
    uint64_t percent = of == 0 ? 100 : (done / (of / 100 + 1));
    fprintf(stderr, "\r%s: %llu %%", p->what, (unsigned long long)percent);
    fflush(stderr);
}

void ebb__progress_end(ebb__progress *p) {
    if (p->shown) fputc('\n', stderr);
}
