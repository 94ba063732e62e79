/* tests/workflow/audit_doctor.h - audit logs as lines that can be edited, dropped, doubled and swapped, and then
 * sealed again. */
#ifndef EBB_TESTS_AUDIT_DOCTOR_H
#define EBB_TESTS_AUDIT_DOCTOR_H

#include <openssl/evp.h>
#include <stdlib.h>

#include "tests/support/world.h"

enum { LINES = 64, ROOM = 4096 };

typedef struct lines {
    char text[LINES][ROOM];
    size_t n;
} lines;

static inline void split(lines *l, const char *log) {
    l->n = 0;
    for (const char *at = log, *stop; (stop = strchr(at, '\n')) != NULL; at = stop + 1) {
        assert_true(l->n < LINES && stop - at < ROOM);
        snprintf(l->text[l->n++], ROOM, "%.*s", (int)(stop - at), at);
    }
}

static inline char *join(const lines *l) {
    char *log = calloc(LINES + 1, ROOM);
    assert_non_null(log);
    for (size_t i = 0; i < l->n; i++) {
        strcat(log, l->text[i]);
        strcat(log, "\n");
    }
    return log;
}

static inline void hex(const unsigned char *bytes, char out[65]) {
    for (size_t i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Numbers and chains all lines again, as docs/workflow.md says. */
static inline void seal(lines *l) {
    char prev[65] = "0000000000000000000000000000000000000000000000000000000000000000";
    for (size_t i = 0; i < l->n; i++) {
        char body[ROOM], *at = strstr(l->text[i], ",\"at\""), *end = strstr(l->text[i], ",\"prev\":");
        unsigned char hash[32];
        assert_true(at != NULL && end != NULL);
        snprintf(body, sizeof body, "{\"seq\":%zu%.*s,\"prev\":\"%s\"", i + 1, (int)(end - at), at, prev);
        assert_int_equal(EVP_Digest(body, strlen(body), hash, NULL, EVP_sha256(), NULL), 1);
        hex(hash, prev);
        assert_true(snprintf(l->text[i], ROOM, "%s,\"hash\":\"%s\"}", body, prev) < ROOM);
    }
}

/* The nth line of an event, from 0; SIZE_MAX: there is none. */
static inline size_t find(const lines *l, const char *event, uint32_t nth) {
    char key[64];
    snprintf(key, sizeof key, "\"event\":\"%s\"", event);
    for (size_t i = 0; i < l->n; i++) {
        if (strstr(l->text[i], key) != NULL && nth-- == 0) return i;
    }
    return SIZE_MAX;
}

static inline void drop(lines *l, size_t i) {
    memmove(l->text[i], l->text[i + 1], (l->n - i - 1) * ROOM);
    l->n--;
}

/* A copy of line `i` that becomes line `to`. */
static inline void copy_to(lines *l, size_t i, size_t to) {
    char text[ROOM];
    assert_true(l->n < LINES);
    memcpy(text, l->text[i], ROOM);
    memmove(l->text[to + 1], l->text[to], (l->n - to) * ROOM);
    memcpy(l->text[to], text, ROOM);
    l->n++;
}

static inline void replace(lines *l, size_t i, const char *old, const char *new) {
    char text[ROOM], *at = strstr(l->text[i], old);
    if (at == NULL) fail_msg("there is no %s in %s", old, l->text[i]);
    assert_true(snprintf(text, ROOM, "%.*s%s%s", (int)(at - l->text[i]), l->text[i], new, at + strlen(old)) <
                ROOM);
    memcpy(l->text[i], text, ROOM);
}

/* ---- doctoring ------------------------------------------------------------------------------------ */

typedef enum how { AS_IT_IS, EDITED, DROPPED, DOUBLED, SWAPPED, COPIED } how;

typedef struct step {
    how how;
    const char *event;
    uint32_t nth;
    const char *old, *new; /* EDIT; of a copy too, which is what is edited then */
} step;

static inline void apply(lines *l, const step *s) {
    size_t i = find(l, s->event, s->nth);
    if (i == SIZE_MAX) fail_msg("there is no %s number %u", s->event, s->nth);
    switch (s->how) {
    case DROPPED: drop(l, i); return;
    case SWAPPED:
        copy_to(l, i, i + 2);
        drop(l, i);
        return;
    case DOUBLED: copy_to(l, i, i + 1); break;
    case COPIED: copy_to(l, i, l->n); break;
    default: break;
    }
    size_t edited = s->how == EDITED ? i : s->how == DOUBLED ? i + 1 : l->n - 1;
    if (s->old != NULL) replace(l, edited, s->old, s->new);
}

#endif
