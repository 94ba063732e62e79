/* durable/event.h - the events of a history and their bytes.
 *
 * One codec, driven by the table in event.def, serves the engine, the tools and the double run. A body of a turn is
 *
 *     0xEB, 0x01          what it is, and the version of this layout
 *     varint              the engine's semantics version
 *     varint              the number of the first event
 *     event...            inputs first, then what the code did, in order
 *     4 bytes             CRC-32C of all before, little-endian
 *
 * and an event is
 *
 *     1 byte              its kind
 *     varint              bytes of its fields
 *     field...            as event.def lists them
 *
 * A number is a varint (LEB128, the shortest form). A text, blob or list of events is a varint and its bytes. A status is
 * the text of its name, so that it outlives a renumbering (of a program or the system: its number). A seed is 16 bytes. Fields that are missing at the end are
 * empty: an older Ebb wrote the event. More bytes than fields, or an unknown kind: a newer one did; tools show what they
 * know, the engine refuses it with EBB_ERR_VERSION.
 *
 * The form is canonical: equal events have equal bytes on every machine, compiler and byte order. So the double run
 * compares bytes, and histories of a cache of no size and of any size are compared by cmp. Binary and not JSON, since
 * a turn is written on every step and read as a whole: it is a third of the size, has no numbers that change when they
 * are printed, and carries inputs that are not text. `ebb durable history` prints it as JSON by the same table.
 *
 * A body of a message (ebb/provider.h) is one event without a frame; the result of an instance is its END event. So a
 * turn takes its inputs over as they are.
 *
 * Pure: no allocation but in the arena that is passed in, no clock, no store. */
#ifndef EBB_DURABLE_EVENT_H
#define EBB_DURABLE_EVENT_H

#include <ebb/durable.h>

#include "base/arena.h"

/* What the engine does with the same history: raised when replaying an old one would go another way. */
#define EBB__SEMANTICS 1u

typedef enum ebb__event_kind {
#define EBB__KIND(NAME, value, name, class, fields) EBB__EVENT_##NAME = (value),
#include "durable/event.def"
#undef EBB__KIND
    EBB__EVENT_KINDS = 256
} ebb__event_kind;

typedef enum ebb__event_class {
    EBB__CLASS_INPUT = 1,
    EBB__CLASS_ACTION = 2,
    EBB__CLASS_MARK = 3,
    EBB__CLASS_END = 4
} ebb__event_class;

/* The cause of a step_cancelled that says the contrary: the step was shielded, and runs on after the end of its execution. */
enum { EBB__CAUSE_SHIELDED = 255 };

/* Bits of `flags`. */
enum {
    EBB__FLAG_FINAL = 1,     /* a failure: no other attempt */
    EBB__FLAG_DETACHED = 2,  /* a child */
    EBB__FLAG_REMOVED = 4,   /* a value: the key is removed */
    EBB__FLAG_PATCHED = 8,   /* a patch marker: the answer was true */
    EBB__FLAG_RETRIED = 16,  /* an attempt after the first: `step` is the first one's number */
    EBB__FLAG_BACKOFF = 32,  /* a timer: the pause before the next attempt of `step` */
    EBB__FLAG_DEADLINE = 64, /* a timer: the timeout of the attempt `step` */
    EBB__FLAG_CLEANUP = 128, /* a timer: cleanup_by */
    EBB__FLAGS = 8
};
extern const char *const ebb__flag_names[EBB__FLAGS];

typedef struct ebb__event_text { /* not 0-terminated */
    const char *at;
    size_t n;
} ebb__event_text;

typedef struct ebb__event_seed {
    uint8_t at[16];
} ebb__event_seed;

/* One event. Which fields are set is the table's; others are 0. Texts and blobs point into the bytes that it was read
 * from, or are the caller's. Invariant: `kind` is in the table, `number` is 0 for a body of a message. */
typedef struct ebb__event {
    ebb__event_kind kind;
    uint64_t number;
#define EBB__TYPE_NUMBER             uint64_t
#define EBB__TYPE_TEXT               ebb__event_text
#define EBB__TYPE_STATUS             ebb_status
#define EBB__TYPE_BLOB               ebb_blob
#define EBB__TYPE_EVENTS             ebb_blob
#define EBB__TYPE_SEED               ebb__event_seed
#define EBB__FIELD(name, NAME, type) EBB__TYPE_##type name;
#include "durable/event.def"
#undef EBB__FIELD
} ebb__event;

const char *ebb__event_name(ebb__event_kind kind);          /* "activity_scheduled"; "unknown" */
ebb__event_class ebb__event_class_of(ebb__event_kind kind); /* 0: unknown */

/* A turn that is being written, or the body of a message. Zeroed: empty, with `arena` set. Invariant: `at` has n bytes
 * of whole events; after a failure (`status`) it stays as it was, and every call does nothing. */
typedef struct ebb__event_writer {
    ebb__arena *arena;
    uint8_t *at;
    size_t n, room;
    uint64_t first, events; /* number of the first event; events so far */
    ebb_status status;      /* EBB_OK; EBB_ERR_NOMEM; EBB_ERR_LIMIT: past the limits of ebb/durable.h */
} ebb__event_writer;

/* Adds an event and returns its number; 0: failed, see `status`. */
uint64_t ebb__event_write(ebb__event_writer *w, const ebb__event *e);
/* Adds an event that is encoded already (a message's body), as it is. Checks its frame and kind: EBB_ERR_CORRUPT. */
uint64_t ebb__event_write_encoded(ebb__event_writer *w, ebb_blob one);
/* Frames the events to the body of a turn. at NULL: failed, see `status`. */
ebb_blob ebb__event_turn(ebb__event_writer *w, uint32_t semantics);
/* Encodes one event as the body of a message, in the arena. at NULL: no memory. */
ebb_blob ebb__event_encode(ebb__arena *arena, const ebb__event *e);

/* Reads events one after the other. */
typedef struct ebb__event_reader {
    const uint8_t *at, *end;
    uint64_t next; /* number of the next event */
    uint32_t semantics;
    bool lenient;   /* for tools: an unknown kind is read as kind 0 with its bytes in `body` */
    char text[160]; /* of a failure: "turn 4, byte 17: event kind 99 is not known" */
} ebb__event_reader;

/* Checks the frame of a turn. EBB_ERR_CORRUPT, EBB_ERR_VERSION: `text` says what. */
ebb_status ebb__event_reader_open(ebb__event_reader *r, ebb_blob turn);
/* The same for the body of a message, or a list in a field. */
void ebb__event_reader_list(ebb__event_reader *r, ebb_blob events);
/* Reads the next event. EBB_ERR_EOF: none is left. EBB_ERR_CORRUPT, EBB_ERR_VERSION. */
ebb_status ebb__event_read(ebb__event_reader *r, ebb__event *out);

/* Whether the code's action matches the recorded one in what a replay compares. */
bool ebb__event_matches(const ebb__event *recorded, const ebb__event *asked);
/* Writes an event for people, in one line: `#12 activity_scheduled "charge" input {"amount":7}`, cut to room. */
size_t ebb__event_say(const ebb__event *e, char *out, size_t room);
/* The fields of an event as a JSON object, 0-terminated, in the arena. Blobs that are JSON stand as they are, UTF-8 as a
 * string, others as {"base64":"..."}. NULL: no memory. */
const char *ebb__event_json(ebb__arena *arena, const ebb__event *e);
/* A blob as tools show it: what it says if it is JSON of at most EBB__JSON_DEPTH levels, else a string, else {"base64": ...}. NULL: no memory. */
struct json_t;
struct json_t *ebb__blob_json(ebb_blob b);

#endif
