/* Failures with a text: the value of such a future is an object of the heap, which each future that ends as it does
 * shares. An await that returns the failure leaves the text with the thread. */
#define _POSIX_C_SOURCE 200809L
#include "future/future.h"

#include <string.h>

typedef struct failure {
    ebb_status status;
    char text[EBB__FAILURE_TEXT];
} failure;

static const ebb_type failure_type = {"failure", sizeof(failure), NULL, NULL, EBB__TYPE_OWN};

static _Thread_local char said[EBB__FAILURE_TEXT];

/* ---- on a thread -------------------------------------------------------------------------------------------- */

const char *ebb__failure_said(void) {
    return said;
}

void ebb__failure_say(const char *text) {
    const size_t n = strnlen(text, sizeof said - 1);
    memmove(said, text, n);
    said[n] = 0;
}

/* ---- in a future -------------------------------------------------------------------------------------------- */

static const failure *failure_of(const ebb_value *v) {
    return v->type == &failure_type ? v->as.p : NULL;
}

ebb_status ebb__failure_status(const ebb_value *v) {
    const failure *f = failure_of(v);
    return f != NULL ? f->status : (ebb_status)v->as.i;
}

const char *ebb__failure_text(const ebb_future *f) {
    const failure *of = ebb__state_of(f) == EBB_FUTURE_FAILED ? failure_of(&f->value) : NULL;
    return of != NULL ? of->text : "";
}

bool ebb__fail_because(ebb_future *f, ebb_status st, const char *text) {
    ebb__heap *h = ebb__heap_of(f);
    ebb__cell *c = NULL;
    if (*text != 0 && st != EBB_CANCELLED && !ebb__has_ended(f))
        c = ebb__heap_alloc(h, &failure_type, sizeof(ebb__cell) + sizeof(failure));
    if (c == NULL) return ebb__fail_with(f, st);
    failure *of = (failure *)(void *)(c + 1);
    const size_t n = strnlen(text, sizeof of->text - 1);
    of->status = st;
    memcpy(of->text, text, n);
    of->text[n] = 0;
    return ebb__fail_as(f, (ebb_value){&failure_type, {of}});
}
