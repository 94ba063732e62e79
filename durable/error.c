/* The text of the last failure of this layer on a thread, and what else is said of statuses. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "durable/store.h"

static _Thread_local char said[512];

const char *ebb_durable_error(void) {
    return said;
}

ebb_status ebb__durable_say(ebb_status st, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(said, sizeof said, format, args);
    va_end(args);
    return st;
}

ebb_blob ebb_blob_text(const char *text) {
    ebb_blob b = {text, strlen(text)};
    return b;
}
