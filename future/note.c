/* What a trace has of futures. A future has no id: its number is its place in the heap, which the event of its making
 * gives to it. So a future costs nothing for that while nothing records. */
#include "future/promise.h"

uint64_t ebb__future_number(const ebb_future *f) {
    const ebb__page *b = ebb__page_of(f);
    return ebb__is_static(f) ? 0 : (uint64_t)b->number << 10 | ebb__cell_index(b, f);
}
_Static_assert(EBB__PAGE_SIZE / EBB__CELL_MIN <= 1 << 10, "an index in a page has 10 bits");

static ebb_runtime *runtime_of(const ebb_future *f) {
    return ebb__heap_of(f)->rt;
}

void ebb__note_future_made(const ebb_cx *cx, const ebb__region_futures *s, const ebb_future *f) {
    ebb__note_event(s->heap->rt, EBB_EV_FUTURE_MADE, .task = ebb_cx_task(cx).id, .region = s->region.id,
                    .other = ebb__future_number(f), .what = f->cell.type->name, .site = f->site);
}

void ebb__note_future_ended(const ebb_future *f) {
    ebb_cancel_kind kind = ebb__kind_of_cancel(f);
    if (ebb__state_of(f) != EBB_FUTURE_CANCELLED) {
        ebb__note_event(runtime_of(f), EBB_EV_FUTURE_SETTLED, .value = (uint32_t)ebb__status_of(f),
                        .other = ebb__future_number(f));
    } else if (kind == EBB_CANCEL_DROPPED) {
        ebb__note_event(runtime_of(f), EBB_EV_FUTURE_DROPPED, .other = ebb__future_number(f));
    } else {
        ebb__note_event(runtime_of(f), EBB_EV_FUTURE_CANCELLED, .value = (uint32_t)kind,
                        .other = ebb__future_number(f));
    }
}

void ebb__note_operation(const ebb_future *f, bool begun) {
    ebb__note_event(runtime_of(f), begun ? EBB_EV_OPERATION_BEGUN : EBB_EV_OPERATION_ENDED,
                    .other = ebb__future_number(f), .what = begun ? ebb__future_name(f) : NULL);
}
