/* lang/diag.h - reporting a mistake.
 *
 * ebb__diag_report never fails. A diagnostic that is not to be shown (a second mistake at the same place, a consequence of
 * a syntax error, one past the limit) is a scratch record, so that callers add labels and fixes to each. */
#ifndef EBB_LANG_DIAG_H
#define EBB_LANG_DIAG_H

#include "lang/lang.h"

typedef enum ebb__code {
#define EBB_DIAG(code, title, text) EBB__##code,
#include "lang/diag.def"
#undef EBB_DIAG
    EBB__CODES
} ebb__code;

typedef struct ebb__diag {
    ebb_lang_diagnostic out; /* first: what is handed out */
    ebb__code code;
    uint32_t source;
} ebb__diag;

/* A diagnostic whose message is the title of the code. `format` is the text of the primary label. */
ebb__diag *ebb__diag_report(ebb_lang *c, ebb__code code, ebb__span at, const char *format, ...);

/* Another message than the title. */
void ebb__diag_message(ebb_lang *c, ebb__diag *d, const char *format, ...);

void ebb__diag_label(ebb_lang *c, ebb__diag *d, ebb__span at, const char *format, ...);
void ebb__diag_note(ebb_lang *c, ebb__diag *d, const char *format, ...);

/* A sentence that says what to do. With the edits that follow it, a tool can apply the fix. */
void ebb__diag_help(ebb_lang *c, ebb__diag *d, const char *format, ...);
void ebb__diag_edit(ebb_lang *c, ebb__diag *d, ebb__span at, const char *format, ...);

/* Whether there is an error in the span already. */
bool ebb__has_error_in(const ebb_lang *c, ebb__span at);

/* Sorts what was reported, by file and offset. */
void ebb__diag_sort(ebb_lang *c);

#endif
