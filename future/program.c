/* Requests to machines of a program as futures. lang/ knows no futures: this file joins the two. */
#include "future/machine.h"
#include "lang/host.h"

/* The shorter one; 0 is any time. */
static uint64_t limit_of(const ebb_program *p, uint16_t kind, uint64_t within) {
    uint64_t ms = p->image.ir->kinds[kind].within_ms,
             own = ms > EBB_FOREVER / EBB_MS ? EBB_FOREVER : ms * EBB_MS;
    return own == 0 || (within != 0 && within < own) ? within : own;
}

ebb_future *ebb__program_ask(ebb_cx *cx, ebb_program *p, ebb_machine to, const ebb__parcel *x,
                             uint64_t within, const char *site) {
    const ebb__question q = {.to = to,
                             .payload = x->payload,
                             .size = x->size,
                             .within = limit_of(p, x->kind, within),
                             .kind = x->kind};
    bool taken;
    ebb_future *f = ebb__machine_ask(cx, p->ms, &q, site, &taken);
    if (!taken) ebb__block_drop(x->block);
    return f;
}

ebb_future *ebb_program_ask_site(ebb_cx *cx, ebb_program *p, uint64_t to, const char *kind,
                                 const ebb_program_field *fields, size_t n, uint64_t within,
                                 const char *site) {
    if (p->dispatching) return ebb_future_failed_site(cx, EBB_ERR_INVALID, site);
    ebb__run run = ebb__host_begin(p);
    ebb__parcel x;
    ebb_status st = ebb__host_message(&run, kind, fields, n, &x);
    if (st == EBB_OK && p->image.ir->kinds[x.kind].responses == 0) {
        ebb__block_drop(x.block);
        st = EBB_ERR_INVALID;
    }
    ebb_future *f = st == EBB_OK ? ebb__program_ask(cx, p, (ebb_machine){to}, &x, within, site)
                                 : ebb_future_failed_site(cx, st, site);
    ebb__host_end(p);
    return f;
}
