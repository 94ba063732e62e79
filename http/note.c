/* What a trace has of connections and exchanges. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>

#include "http/http.h"

void ebb__note_connection(ebb__conn *c, bool opened) {
    if (!opened && c->number == 0) return; /* nothing recorded its begin */
    char peer[96];
    if (opened) {
        c->number = ++c->loop->numbered;
        snprintf(peer, sizeof peer, "%s:%u", c->peer.ip, c->peer.port);
    }
    ebb__note_event(c->loop->rt, opened ? EBB_EV_CONNECTION_OPENED : EBB_EV_CONNECTION_CLOSED,
                    .region = c->region.id, .other = c->number,
                    .what = !opened             ? NULL
                            : c->server != NULL ? "connection of a client"
                                                : "connection to a server",
                    .text = opened ? peer : NULL);
    if (!opened) c->number = 0;
}

static uint64_t name_of(const ebb_http *x) {
    return (uint64_t)x->number << 32 | x->conn->number;
}

void ebb__note_exchange_begun(ebb_http *x) {
    char head[EBB__NOTE_TEXT + 1];
    if (x->number != 0) return;
    if (x->conn->number == 0) ebb__note_connection(x->conn, true); /* it was open before the recording */
    x->number = ++x->loop->numbered;
    snprintf(head, sizeof head, "%s %.*s", x->method, (int)(x->path_n < 200 ? x->path_n : 200), x->path);
    ebb__note_event(x->loop->rt, EBB_EV_EXCHANGE_BEGUN, .region = x->region.id, .other = name_of(x),
                    .text = head);
    if (x->trace != NULL)
        ebb__note_trace(x->loop->rt, false, EBB__TRACE_REQUEST, x->task.id, x->region, name_of(x),
                        &x->trace->at);
}

void ebb__note_exchange_ended(ebb_http *x) {
    if (x->number == 0) return;
    ebb__note_event(x->loop->rt, EBB_EV_EXCHANGE_ENDED, .region = x->region.id, .other = name_of(x),
                    .value = (ebb__exchange_is_lost(x) ? 1u << 16 : 0u) | (uint32_t)(x->status & 0xffff));
    x->number = 0;
}
