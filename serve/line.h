/* serve/line.h - a trace as lines: each event together with the text records that belong to it. */
#ifndef EBB_SERVE_LINE_H
#define EBB_SERVE_LINE_H

#include <ebb/trace.h>
#include <stdio.h>

enum { EBB__LINE_TEXT_MAX = 1023 };

typedef struct ebb__line {
    ebb_event event;
    uint32_t records;                  /* of the trace: the event and its texts */
    char text[EBB__LINE_TEXT_MAX + 1]; /* joined, truncated to fit; "": none */
} ebb__line;

/* The next event that is not a text, with the texts after it. Returns as ebb_trace_reader_next. An error in the
 * records after the event is returned by the next call. A text without an event before it is a line of its own. */
ebb_status ebb__line_next(ebb_trace_reader *r, ebb__line *out);

/* As readable text, without the newline. */
void ebb__line_print(FILE *out, const ebb__line *line);

/* A JSON string in quotes. Controls, and bytes that are no UTF-8, are escaped. */
void ebb__print_json_string(FILE *out, const char *s);

/* Puts question marks in the places of these: a text may not control the terminal that shows it. */
void ebb__make_plain(char *s);

/* runtime.index.generation */
void ebb__print_id(FILE *out, uint64_t id);

#endif
