/* cli/summary.h - what one or several traces come to. */
#ifndef EBB_CLI_SUMMARY_H
#define EBB_CLI_SUMMARY_H

#include "serve/story.h"

typedef struct ebb__summary ebb__summary;
ebb__summary *ebb__summary_new(void); /* NULL: no memory */
/* Takes an event, and passes it to the story. */
void ebb__summary_take(ebb__summary *m, ebb__story *s, const ebb__line *line);
void ebb__summary_file(ebb__summary *m, ebb__story *s); /* the end of a file */
void ebb__summary_print(FILE *out, const ebb__summary *m, bool json);
void ebb__summary_free(ebb__summary *m); /* NULL is allowed */

#endif
