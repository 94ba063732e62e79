/* Hints as lines: from a commit to this store, to others by NOTIFY, and from them. */
#define _POSIX_C_SOURCE 200809L
#include "durable/postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    PAYLOAD_MOST = 7900, /* bytes of a notification; the server takes 7,999 */
    KEPT_MOST = 65536    /* bytes of hints; with more, others are told to look at everything */
};

static void tell_line(ebb__postgres *s, const char *line, const char *end, uint64_t committed) {
    char text[2 * EBB_DURABLE_ID + 8]; /* the name of a queue may have a tag */
    unsigned cause = 0;
    ebb_provider_hint h = {.queue = "", .committed = committed};
    const size_t n = (size_t)(end - line);
    if (n == 0 || n >= sizeof text) return;
    memcpy(text, line, n);
    text[n] = 0;
    const char *rest = n > 2 ? text + 2 : "";
    switch (text[0]) {
    case 'T': ebb__postgres_floors_reset(s); EBB_FALLTHROUGH;
    case 't': h.kind = EBB_PROVIDER_HINT_TURNS; break;
    case 'W': ebb__postgres_floors_reset(s); EBB_FALLTHROUGH;
    case 'w':
        h.kind = EBB_PROVIDER_HINT_WORK;
        h.queue = rest;
        break;
    case 'g': h.kind = EBB_PROVIDER_HINT_GONE; break;
    case 'e': h.kind = EBB_PROVIDER_HINT_ENDED; break;
    case 'l':
        ebb__postgres_floors_reset(s);
        h.kind = EBB_PROVIDER_HINT_LOST;
        break;
    default: return; /* of a later version */
    }
    if (text[0] != 'w' && text[0] != 'W')
        (void)sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %u", &h.key, &h.execution, &h.activity,
                     &cause);
    if (cause < EBB_CANCEL_KINDS) h.cause = (ebb_cancel_kind)cause; /* anybody may notify */
    s->host->hint(s->host->ctx, &h);
}

/* `committed`: 0 if it was another process's. */
static void tell(ebb__postgres *s, const char *lines, uint64_t committed) {
    for (const char *end; (end = strchr(lines, '\n')) != NULL; lines = end + 1)
        tell_line(s, lines, end, committed);
}

void ebb__postgres_hint_lost(ebb__postgres *s) {
    tell(s, "l\n", 0);
}

static void keep(ebb__postgres *s, const char *lines, size_t n) {
    if (s->notify_lost) return;
    if (s->notify_room - s->notify_n < n) {
        size_t room = s->notify_room != 0 ? s->notify_room * 2 : 1024;
        while (room - s->notify_n < n) room *= 2;
        char *at = room <= KEPT_MOST ? ebb__resize(&s->allocator, s->notify, s->notify_room, room) : NULL;
        s->notify_lost = at == NULL;
        if (at == NULL) return;
        s->notify = at;
        s->notify_room = room;
    }
    memcpy(s->notify + s->notify_n, lines, n);
    s->notify_n += n;
}

void ebb__postgres_hint(ebb__postgres *s, const char *lines) {
    const size_t n = strlen(lines);
    if (n == 0) return;
    tell(s, lines, s->host->boot(s->host->ctx));
    keep(s, lines, n);
}

static uint32_t notify(ebb__postgres *s, PGconn *pg, const char *lines, size_t n) {
    char payload[PAYLOAD_MOST + 64];
    (void)snprintf(payload, sizeof payload, "%s\n%.*s", s->sender, (int)n, lines);
    ebb__postgres_args_clear(&s->args);
    ebb__postgres_text(&s->args, payload);
    return !s->args.failed && ebb__postgres_args_send(&s->args, pg, "SELECT pg_notify('ebb', $1)");
}

/* As many whole lines as a notification takes. */
static size_t part(const char *lines, size_t n) {
    if (n <= PAYLOAD_MOST) return n;
    n = PAYLOAD_MOST;
    while (n > 0 && lines[n - 1] != '\n') n--;
    return n;
}

uint32_t ebb__postgres_notify(ebb__postgres *s, PGconn *pg) {
    uint32_t sent = 0;
    if (s->notify_lost) sent += notify(s, pg, "l\n", 2);
    for (size_t at = 0, n; !s->notify_lost && at < s->notify_n; at += n) {
        n = part(s->notify + at, s->notify_n - at);
        if (n == 0) break;
        sent += notify(s, pg, s->notify + at, n);
    }
    s->notify_lost = false;
    s->notify_n = 0;
    return sent;
}

void ebb__postgres_heard(ebb__postgres *s, const PGnotify *n) {
    const size_t id = strlen(s->sender);
    const char *lines = strchr(n->extra, '\n');
    if (lines == NULL || strcmp(n->relname, "ebb") != 0) return;
    const bool own = (size_t)(lines - n->extra) == id && memcmp(n->extra, s->sender, id) == 0;
    if (!own) tell(s, lines + 1, 0);
}
