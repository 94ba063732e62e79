/* The streams of an HTTP/2 client that were opened, and those that the client has ended. nghttp2 forgets a stream
 * when it closes, and so can't tell a frame of a stream that the client has ended from one that crossed our reset.
 *
 * What holds: `last` is the largest id of the client that opened a stream, and ids only rise. The bits are of the
 * EBB__H2_PAST last ids up to that; older streams are forgotten. */
#ifndef EBB__HTTP_H2_CLOSED_H
#define EBB__HTTP_H2_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

enum { EBB__H2_PAST = 512 }; /* ids: more than five times the streams of a connection, by default */

typedef struct ebb__h2_past {
    int32_t last; /* 0: none was opened */
    uint64_t opened[EBB__H2_PAST / 64], ended[EBB__H2_PAST / 64];
} ebb__h2_past;

typedef enum ebb__h2_was {
    EBB__H2_WAS_IDLE,      /* its id is past the last */
    EBB__H2_WAS_SKIPPED,   /* a larger id was used before this one ever was */
    EBB__H2_WAS_OPENED,    /* and the client has not ended it */
    EBB__H2_WAS_ENDED,     /* by END_STREAM or RST_STREAM of the client */
    EBB__H2_WAS_FORGOTTEN, /* it is too long ago to say */
} ebb__h2_was;

/* Ids are odd and positive. One that was opened before, or skipped, is not opened again. */
void ebb__h2_past_open(ebb__h2_past *p, int32_t id);
/* Says nothing of ids that are idle, skipped or forgotten. */
void ebb__h2_past_end(ebb__h2_past *p, int32_t id);
ebb__h2_was ebb__h2_past_of(const ebb__h2_past *p, int32_t id);

#endif
