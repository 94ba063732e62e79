/* The streams that an HTTP/2 client has opened, and those that it has ended. nghttp2 forgets a stream when it closes,
 * and so can't distinguish a frame on a stream that the client has ended from a frame that crossed our reset.
 *
 * Invariants: `last` is the largest id with which the client has opened a stream, and ids only rise. The bits are for
 * the last EBB__H2_PAST ids; older streams are forgotten. */
#ifndef EBB__HTTP_H2_CLOSED_H
#define EBB__HTTP_H2_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

enum { EBB__H2_PAST = 512 }; /* ids: more than five times the default limit of streams */

typedef struct ebb__h2_past {
    int32_t last; /* 0: none was opened */
    uint64_t opened[EBB__H2_PAST / 64], ended[EBB__H2_PAST / 64];
} ebb__h2_past;

typedef enum ebb__h2_was {
    EBB__H2_WAS_IDLE,      /* the id is larger than `last` */
    EBB__H2_WAS_SKIPPED,   /* a larger id was opened, and this one never was */
    EBB__H2_WAS_OPENED,    /* opened, and not ended by the client */
    EBB__H2_WAS_ENDED,     /* ended by the client, with END_STREAM or RST_STREAM */
    EBB__H2_WAS_FORGOTTEN, /* too old to say */
} ebb__h2_was;

/* Ids are odd and positive. An id that was opened or skipped before is not opened again. */
void ebb__h2_past_open(ebb__h2_past *p, int32_t id);
/* Does nothing for ids that are idle, skipped or forgotten. */
void ebb__h2_past_end(ebb__h2_past *p, int32_t id);
ebb__h2_was ebb__h2_past_of(const ebb__h2_past *p, int32_t id);

#endif
