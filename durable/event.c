/* The bytes of events, by the table in event.def. */
#include "durable/event.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/crc.h"

enum { MAGIC = 0xEB, LAYOUT = 1, SUM = 4, VARINT = 10 };

/* ---- the table ------------------------------------------------------------------------------------------------ */

typedef enum field_type { NUMBER, TEXT, STATUS, BLOB, EVENTS, SEED } field_type;

typedef enum field {
    FIELD_NONE,
#define EBB__FIELD(name, NAME, type) FIELD_##NAME,
#include "durable/event.def"
#undef EBB__FIELD
    FIELDS
} field;

enum { MATCHED = 64 };

static const struct {
    const char *name;
    size_t offset;
    field_type type;
} fields[FIELDS] = {
#define EBB__FIELD(name, NAME, type) [FIELD_##NAME] = {#name, offsetof(ebb__event, name), type},
#include "durable/event.def"
#undef EBB__FIELD
};

typedef struct kind_row {
    const char *name;
    ebb__event_class class;
    uint8_t fields[12]; /* in order; 0 after the last */
} kind_row;

#define F(NAME) FIELD_##NAME,
#define M(NAME) FIELD_##NAME | MATCHED,
static const kind_row kinds[] = {
#define EBB__KIND(NAME, value, name, class, fields) [value] = {name, EBB__CLASS_##class, {fields}},
#include "durable/event.def"
#undef EBB__KIND
};
#undef F
#undef M

static const kind_row *row_of(unsigned kind) {
    return kind < sizeof kinds / sizeof kinds[0] && kinds[kind].name != NULL ? &kinds[kind] : NULL;
}

const char *ebb__event_name(ebb__event_kind kind) {
    const kind_row *row = row_of((unsigned)kind);
    return row != NULL ? row->name : "unknown";
}

ebb__event_class ebb__event_class_of(ebb__event_kind kind) {
    const kind_row *row = row_of((unsigned)kind);
    return row != NULL ? row->class : (ebb__event_class)0;
}

static const void *field_of(const ebb__event *e, unsigned f) {
    return (const char *)e + fields[f & (MATCHED - 1)].offset;
}

/* ---- statuses by name ------------------------------------------------------------------------------------------- */

static const struct {
    ebb_status status;
    const char *name;
} statuses[] = {
#define EBB_STATUS(name, value, text) {name, #name},
#include <ebb/status.def>
#undef EBB_STATUS
};

/* Statuses without a name of ours, of programs and of the system, stand as their number. */
static size_t status_text(ebb_status st, char out[32]) {
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status == st) return (size_t)snprintf(out, 32, "%s", statuses[i].name);
    }
    return (size_t)snprintf(out, 32, "%d", (int)st);
}

static bool status_of(const char *at, size_t n, ebb_status *out) {
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (strlen(statuses[i].name) != n || memcmp(statuses[i].name, at, n) != 0) continue;
        *out = statuses[i].status;
        return true;
    }
    int64_t number = 0;
    if (n < 2 || n > 10 || at[0] != '-') return false;
    for (size_t i = 1; i < n; i++) {
        if (at[i] < '0' || at[i] > '9') return false;
        number = number * 10 + (at[i] - '0');
    }
    *out = (ebb_status)-number;
    return number <= INT32_MAX;
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

static bool grow(ebb__event_writer *w, size_t more) {
    if (w->status != EBB_OK) return false;
    if (more <= w->room - w->n) return true;
    if (more > EBB_DURABLE_TURN) {
        w->status = EBB_ERR_LIMIT;
        return false;
    }
    size_t room = w->room * 2 > w->n + more ? w->room * 2 : w->n + more + 256;
    uint8_t *at = ebb__arena_alloc(w->arena, room);
    if (at == NULL) {
        w->status = EBB_ERR_NOMEM;
        return false;
    }
    if (w->n != 0) memcpy(at, w->at, w->n);
    w->at = at;
    w->room = room;
    return true;
}

static void put(ebb__event_writer *w, const void *bytes, size_t n) {
    if (n == 0 || !grow(w, n)) return;
    memcpy(w->at + w->n, bytes, n);
    w->n += n;
}

static size_t varint(uint8_t out[VARINT], uint64_t x) {
    size_t n = 0;
    for (; x >= 0x80; x >>= 7) out[n++] = (uint8_t)(x | 0x80);
    out[n++] = (uint8_t)x;
    return n;
}

static void put_number(ebb__event_writer *w, uint64_t x) {
    uint8_t bytes[VARINT];
    put(w, bytes, varint(bytes, x));
}

static void put_bytes(ebb__event_writer *w, const void *at, size_t n) {
    put_number(w, n);
    put(w, at, n);
}

static void put_field(ebb__event_writer *w, const ebb__event *e, unsigned f) {
    const void *at = field_of(e, f);
    const ebb__event_text *text = at;
    const ebb_blob *blob = at;
    char name[32];
    switch (fields[f & (MATCHED - 1)].type) {
    case NUMBER: put_number(w, *(const uint64_t *)at); break;
    case TEXT: put_bytes(w, text->at, text->n); break;
    case STATUS: put_bytes(w, name, status_text(*(const ebb_status *)at, name)); break;
    case BLOB:
    case EVENTS: put_bytes(w, blob->at, blob->n); break;
    case SEED: put(w, at, sizeof(ebb__event_seed)); break;
    }
}

/* The fields are written first, then moved behind their length: nobody has to count them before. */
static void put_event(ebb__event_writer *w, const ebb__event *e) {
    const kind_row *row = row_of((unsigned)e->kind);
    const size_t start = w->n;
    uint8_t head[1 + VARINT] = {(uint8_t)e->kind};
    if (row == NULL) {
        w->status = EBB_ERR_INVALID;
        return;
    }
    for (const uint8_t *f = row->fields; *f != 0; f++) {
        if (*f == FIELD_TRACE && e->trace.n == 0)
            break; /* the last: histories without it stay as they were */
        put_field(w, e, *f);
    }
    const size_t fields_n = w->n - start;
    const size_t n = 1 + varint(head + 1, fields_n);
    if (!grow(w, n)) return;
    memmove(w->at + start + n, w->at + start, fields_n);
    memcpy(w->at + start, head, n);
    w->n += n;
}

static uint64_t added(ebb__event_writer *w, size_t start) {
    if (w->status != EBB_OK) {
        w->n = start;
        return 0;
    }
    return w->first + w->events++;
}

uint64_t ebb__event_write(ebb__event_writer *w, const ebb__event *e) {
    const size_t start = w->n;
    if (w->status == EBB_OK) put_event(w, e);
    return added(w, start);
}

uint64_t ebb__event_write_encoded(ebb__event_writer *w, ebb_blob one) {
    const size_t start = w->n;
    ebb__event_reader r;
    ebb__event e;
    if (w->status != EBB_OK) return 0;
    ebb__event_reader_list(&r, one);
    if (ebb__event_read(&r, &e) != EBB_OK || r.at != r.end) w->status = EBB_ERR_CORRUPT;
    put(w, one.at, one.n);
    return added(w, start);
}

ebb_blob ebb__event_turn(ebb__event_writer *w, uint32_t semantics) {
    ebb__event_writer body = {.arena = w->arena, .status = w->status};
    static const uint8_t magic[] = {MAGIC, LAYOUT};
    put(&body, magic, sizeof magic);
    put_number(&body, semantics);
    put_number(&body, w->first);
    put(&body, w->at, w->n);
    const uint32_t sum = ebb__crc(0, body.at, body.n);
    const uint8_t bytes[SUM] = {(uint8_t)sum, (uint8_t)(sum >> 8), (uint8_t)(sum >> 16),
                                (uint8_t)(sum >> 24)};
    put(&body, bytes, SUM);
    w->status = body.status;
    ebb_blob out = {body.at, body.n};
    return body.status == EBB_OK ? out : (ebb_blob){NULL, 0};
}

ebb_blob ebb__event_encode(ebb__arena *arena, const ebb__event *e) {
    ebb__event_writer w = {.arena = arena};
    (void)ebb__event_write(&w, e);
    return w.status == EBB_OK ? (ebb_blob){w.at, w.n} : (ebb_blob){NULL, 0};
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static ebb_status wrong(ebb__event_reader *r, ebb_status st, const char *what) {
    (void)snprintf(r->text, sizeof r->text, "event %llu: %s", (unsigned long long)r->next, what);
    r->at = r->end;
    return st;
}

/* The shortest form alone: one event has one form. */
static bool get_number(const uint8_t **at, const uint8_t *end, uint64_t *out) {
    uint64_t x = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const uint8_t b = *(*at)++;
        if (shift == 63 && b > 1) return false;
        x |= (uint64_t)(b & 0x7f) << shift;
        if (b & 0x80) continue;
        *out = x;
        return b != 0 || shift == 0;
    }
    return false;
}

static bool get_bytes(const uint8_t **at, const uint8_t *end, const uint8_t **out, size_t *n) {
    uint64_t size;
    if (!get_number(at, end, &size) || size > (uint64_t)(end - *at)) return false;
    *out = *at;
    *n = (size_t)size;
    *at += size;
    return true;
}

static bool get_field(const uint8_t **at, const uint8_t *end, ebb__event *e, unsigned f) {
    void *to = (char *)e + fields[f & (MATCHED - 1)].offset;
    const field_type type = fields[f & (MATCHED - 1)].type;
    const uint8_t *bytes;
    size_t n;
    if (type == NUMBER) return get_number(at, end, to);
    if (type == SEED) {
        if (end - *at < (ptrdiff_t)sizeof(ebb__event_seed)) return false;
        memcpy(to, *at, sizeof(ebb__event_seed));
        *at += sizeof(ebb__event_seed);
        return true;
    }
    if (!get_bytes(at, end, &bytes, &n)) return false;
    if (type == STATUS) return status_of((const char *)bytes, n, to);
    if (type == TEXT) *(ebb__event_text *)to = (ebb__event_text){(const char *)bytes, n};
    else *(ebb_blob *)to = (ebb_blob){bytes, n};
    return true;
}

static ebb_status get_fields(ebb__event_reader *r, const uint8_t *at, const uint8_t *end, ebb__event *e) {
    const kind_row *row = row_of((unsigned)e->kind);
    if (row == NULL && !r->lenient) return wrong(r, EBB_ERR_VERSION, "a kind that this build does not know");
    if (row == NULL) {
        e->body = (ebb_blob){at, (size_t)(end - at)};
        e->kind = (ebb__event_kind)0;
        return EBB_OK;
    }
    for (const uint8_t *f = row->fields; *f != 0 && at < end; f++) {
        if (!get_field(&at, end, e, *f)) return wrong(r, EBB_ERR_CORRUPT, fields[*f & (MATCHED - 1)].name);
    }
    if (at < end && !r->lenient) return wrong(r, EBB_ERR_VERSION, "fields that this build does not know");
    return EBB_OK;
}

void ebb__event_reader_list(ebb__event_reader *r, ebb_blob events) {
    memset(r, 0, sizeof *r);
    r->at = events.at;
    r->end = r->at != NULL ? r->at + events.n : NULL;
}

ebb_status ebb__event_reader_open(ebb__event_reader *r, ebb_blob turn) {
    uint64_t semantics;
    ebb__event_reader_list(r, turn);
    if (turn.n < 2 + SUM || r->at[0] != MAGIC) return wrong(r, EBB_ERR_CORRUPT, "this is not a turn");
    if (r->at[1] != LAYOUT)
        return wrong(r, EBB_ERR_VERSION, "a turn of a layout that this build does not know");
    r->end -= SUM;
    const uint32_t sum = (uint32_t)r->end[0] | (uint32_t)r->end[1] << 8 | (uint32_t)r->end[2] << 16 |
                         (uint32_t)r->end[3] << 24;
    if (sum != ebb__crc(0, turn.at, turn.n - SUM))
        return wrong(r, EBB_ERR_CORRUPT, "the checksum does not match");
    r->at += 2;
    if (!get_number(&r->at, r->end, &semantics) || semantics > UINT32_MAX ||
        !get_number(&r->at, r->end, &r->next))
        return wrong(r, EBB_ERR_CORRUPT, "the head of the turn");
    r->semantics = (uint32_t)semantics;
    return EBB_OK;
}

ebb_status ebb__event_read(ebb__event_reader *r, ebb__event *out) {
    const uint8_t *bytes;
    size_t n;
    if (r->at == r->end) return EBB_ERR_EOF;
    memset(out, 0, sizeof *out);
    out->kind = (ebb__event_kind)*r->at++;
    out->number = r->next;
    if (!get_bytes(&r->at, r->end, &bytes, &n)) return wrong(r, EBB_ERR_CORRUPT, "it is cut short");
    ebb_status st = get_fields(r, bytes, bytes + n, out);
    if (st == EBB_OK && r->next != 0) r->next++;
    return st;
}

/* ---- comparing ------------------------------------------------------------------------------------------------------- */

static bool same(const ebb__event *a, const ebb__event *b, unsigned f) {
    const void *at = field_of(a, f), *bt = field_of(b, f);
    const ebb__event_text *ta = at, *tb = bt;
    const ebb_blob *ba = at, *bb = bt;
    switch (fields[f & (MATCHED - 1)].type) {
    case NUMBER: return *(const uint64_t *)at == *(const uint64_t *)bt;
    case STATUS: return *(const ebb_status *)at == *(const ebb_status *)bt;
    case TEXT: return ta->n == tb->n && (ta->n == 0 || memcmp(ta->at, tb->at, ta->n) == 0);
    case BLOB:
    case EVENTS: return ba->n == bb->n && (ba->n == 0 || memcmp(ba->at, bb->at, ba->n) == 0);
    case SEED: return memcmp(at, bt, sizeof(ebb__event_seed)) == 0;
    }
    return false;
}

bool ebb__event_matches(const ebb__event *recorded, const ebb__event *asked) {
    const kind_row *row = row_of((unsigned)recorded->kind);
    if (row == NULL || recorded->kind != asked->kind) return false;
    for (const uint8_t *f = row->fields; *f != 0; f++) {
        if ((*f & MATCHED) && !same(recorded, asked, *f)) return false;
    }
    return true;
}
