/* cli/export.h - traces in the formats of other tools. */
#ifndef EBB_CLI_EXPORT_H
#define EBB_CLI_EXPORT_H

#include "serve/chrome.h"

/* Called for the start (line NULL, first true), each line, and the end (line NULL, first false). It passes
 * each line to the story. */
typedef void ebb__export_fn(FILE *out, ebb__story *s, const ebb__line *line, bool first);

/* The function of "jsonl" or "chrome"; NULL: unknown format. */
ebb__export_fn *ebb__export_format(const char *name);

#endif
