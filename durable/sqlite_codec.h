/* durable/sqlite_codec.h - calls as bytes, for a client in another process: what is asked, and what is answered.
 *
 * One function a kind of call describes its fields, in order, for both directions. A frame is
 *
 *     4 bytes  how many follow        2 bytes  EBB__SQLITE_CODEC        2 bytes  the op
 *     fields...                       of an answer: the status and the text first
 *
 * Numbers are 8 bytes, as this machine has them, since both ends are on it. Texts and blobs are a number and their bytes. A frame
 * that ends early or is too long fails as a whole. */
#ifndef EBB_DURABLE_SQLITE_CODEC_H
#define EBB_DURABLE_SQLITE_CODEC_H

#include "durable/provider.h"

enum { EBB__SQLITE_CODEC = 1, EBB__SQLITE_FRAME = 8, EBB__SQLITE_FRAME_MOST = 256 << 20 };

typedef struct ebb__sqlite_codec {
    bool writes, failed;
    uint8_t *at;             /* writing: of malloc; reading: the caller's */
    size_t n, room, done;    /* bytes; room for them; read so far */
    ebb_provider_call *into; /* reading: whose memory the fields are */
} ebb__sqlite_codec;

/* Whether a client may ask it. */
bool ebb__sqlite_codec_has(ebb_provider_op op);
void ebb__sqlite_codec_ask(ebb__sqlite_codec *k, ebb_provider_call *c);
/* With the status and the text, which go to `status` and `text` in both directions. */
void ebb__sqlite_codec_answer(ebb__sqlite_codec *k, ebb_provider_call *c, ebb_status *status,
                              const char **text);

/* A connection, and how long its other end may take for a frame, however it divides it. */
typedef struct ebb__sqlite_line {
    int fd;
    int stop;          /* that has an end or a byte: give up at once. -1: none */
    uint32_t patience; /* ms */
} ebb__sqlite_line;
/* Writes a whole frame, or reads one; *op is 0 at the end of the stream. False: it failed, or has taken too long. The frame's
 * fields are in k->at, of malloc. */
bool ebb__sqlite_frame_write(const ebb__sqlite_line *l, ebb__sqlite_codec *k, ebb_provider_op op);
bool ebb__sqlite_frame_read(const ebb__sqlite_line *l, ebb__sqlite_codec *k, ebb_provider_op *op);

#endif
