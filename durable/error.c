/* The text of the last failure of this layer on a thread, and what else is said of statuses. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "durable/store.h"
#include "future/future.h"

/* What was said last, until a future has it. */
static _Thread_local ebb_status unsent;

const char *ebb_durable_error(void) {
    return ebb__failure_said();
}

ebb_status ebb__durable_say(ebb_status st, const char *format, ...) {
    char text[EBB__FAILURE_TEXT];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ebb__failure_say(text);
    unsent = st;
    return st;
}

ebb_status ebb__durable_options(ebb_status st) {
    return st == EBB_OK ? st : ebb__durable_say(st, "the options are of a later version than this library");
}

const char *ebb__durable_said(ebb_status st) {
    const bool is = unsent == st && st != EBB_ERR_NOMEM;
    unsent = EBB_OK;
    return is ? ebb__failure_said() : "";
}

ebb_future *ebb__durable_future_failed(ebb_cx *cx, ebb_status st, const char *site) {
    return ebb__future_failed_because(cx, st, ebb__durable_said(st), site);
}

ebb_blob ebb_blob_text(const char *text) {
    ebb_blob b = {text, strlen(text)};
    return b;
}
