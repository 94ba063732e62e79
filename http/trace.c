/* The header traceparent (W3C Trace Context): taken from a request, for the region of its exchange; given to the calls of
 * clients in that region. */
#define _POSIX_C_SOURCE 200809L
#include "http/client.h"

/* Two headers are no valid one. */
static bool is_repeated(const ebb__fields *f, const ebb__field *first) {
    for (const ebb__field *x = first + 1; x < f->at + f->n; x++) {
        if (ebb__same_name(x->name, x->name_n, EBB__TRACEPARENT, EBB__TRACEPARENT_N)) return true;
    }
    return false;
}

void ebb__exchange_take_trace(ebb_http *x) {
    const ebb__field *f = ebb__fields_search(&x->fields, EBB__TRACEPARENT, EBB__TRACEPARENT_N);
    ebb__trace_context c = {.given = 0};
    if (f == NULL) return;
    if (is_repeated(&x->fields, f) || ebb_traceparent_parse(f->value, f->value_n, &c.at) != EBB_OK) {
        x->conn->server->stats.bad_traces++;
        return;
    }
    x->trace = ebb__arena_alloc(&x->arena, sizeof *x->trace);
    if (x->trace == NULL) return; /* the request is more than its trace */
    *x->trace = c;
    ebb__region_set_trace(x->loop->rt, x->region, x->trace);
}

const ebb_traceparent *ebb_http_trace(const ebb_http *x) {
    return x->trace != NULL ? &x->trace->at : NULL;
}

/* A header that the caller has set stays. */
ebb_status ebb__call_give_trace(ebb__call *c, ebb_cx *cx) {
    ebb__trace_context *from = ebb__trace_of(cx);
    ebb__fields *out = &c->x.out_fields;
    char text[EBB_TRACEPARENT_TEXT + 1];
    if (from == NULL || ebb__fields_find(out, EBB__TRACEPARENT, EBB__TRACEPARENT_N) != NULL) return EBB_OK;
    const ebb_traceparent t = ebb__trace_next(c->x.loop->rt, from);
    ebb_traceparent_text(&t, text);
    ebb__note_trace(c->x.loop->rt, true, EBB__TRACE_REQUEST, ebb_cx_task(cx).id, ebb_cx_region(cx), 0, &t);
    return ebb__fields_add(out, &c->x.arena, EBB__TRACEPARENT, EBB__TRACEPARENT_N, text,
                           EBB_TRACEPARENT_TEXT);
}
