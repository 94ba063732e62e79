#include "workflow/audit_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/layer.h"

/* ---- errors --------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool wrong(char why[EBB__AUDIT_WHY], const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, EBB__AUDIT_WHY, format, args);
    va_end(args);
    return false;
}

/* ---- the hash, which covers bytes and is checked before they are parsed --------------------------- */

static const char tail_start[] = ",\"hash\":\"", tail_end[] = "\"}";
enum {
    HEX = 2 * EBB__AUDIT_HASH,
    TAIL_START = sizeof tail_start - 1,
    TAIL_END = sizeof tail_end - 1,
    TAIL = TAIL_START + HEX + TAIL_END
};

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool unhex(const char *text, uint8_t out[EBB__AUDIT_HASH]) {
    for (size_t i = 0; i < EBB__AUDIT_HASH; i++) {
        int high = digit(text[2 * i]), low = high < 0 ? -1 : digit(text[2 * i + 1]);
        if (low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool get_tail(const char *tail, uint8_t out[EBB__AUDIT_HASH]) {
    return memcmp(tail, tail_start, TAIL_START) == 0 && unhex(tail + TAIL_START, out) &&
           memcmp(tail + TAIL_START + HEX, tail_end, TAIL_END) == 0;
}

static ebb_status check_hash(const char *bytes, size_t n, uint8_t out[EBB__AUDIT_HASH], char *why) {
    uint8_t found[EBB__AUDIT_HASH];
    if (n >= EBB__AUDIT_LINE || n <= TAIL || !get_tail(bytes + n - TAIL, out)) {
        (void)wrong(why, "a line ends in ,\"hash\":\"%d hex digits\"}; this one, of %zu bytes, does not", HEX,
                    n);
        return EBB_ERR_CORRUPT;
    }
    if (!ebb__audit_hash(bytes, n - TAIL, found)) return EBB_ERR_NOMEM;
    if (memcmp(found, out, sizeof found) == 0) return EBB_OK;
    (void)wrong(
        why, "its hash is not that of its bytes: it says %02x%02x%02x%02x..., they have %02x%02x%02x%02x...",
        out[0], out[1], out[2], out[3], found[0], found[1], found[2], found[3]);
    return EBB_ERR_CORRUPT;
}

/* ---- values --------------------------------------------------------------------------------------- */

/* Times are in ms, with microseconds as decimals. A double holds that for more years than a log covers. */
static bool get_ms(const json_t *v, uint64_t *out) {
    double ms = json_real_value(v);
    if (!json_is_real(v) || !(ms >= 0 && ms <= (double)(UINT64_MAX / EBB_MS / 2))) return false;
    *out = (uint64_t)(ms * 1000 + 0.5) * EBB_US;
    return true;
}

static bool get_number(const json_t *v, uint64_t *out) {
    if (!json_is_integer(v) || json_integer_value(v) < 0) return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static bool get_hash(const json_t *v, uint8_t out[EBB__AUDIT_HASH]) {
    return json_is_string(v) && json_string_length(v) == HEX && unhex(json_string_value(v), out);
}

static bool get_state(const json_t *v, ebb_workflow_state *out) {
    if (!json_is_string(v)) return false;
    for (int s = EBB_WORKFLOW_IDLE; s < EBB__WF_STATES; s++) {
        if (strcmp(json_string_value(v), ebb_workflow_state_name((ebb_workflow_state)s)) != 0) continue;
        *out = (ebb_workflow_state)s;
        return true;
    }
    return false;
}

static bool get_event(const json_t *v, ebb__wf_event *out) {
    if (!json_is_string(v)) return false;
    for (int e = EBB__WE_STARTED; e < EBB__WF_EVENTS; e++) {
        if (strcmp(json_string_value(v), ebb__wf_events[e].name) != 0) continue;
        *out = (ebb__wf_event)e;
        return true;
    }
    return false;
}

static bool get_kind(const char *text, uint8_t *out) {
    for (int k = EBB_CANCEL_USER; k < EBB_CANCEL_KINDS; k++) {
        if (strcmp(text, ebb_cancel_kind_name((ebb_cancel_kind)k)) != 0) continue;
        *out = (uint8_t)k;
        return true;
    }
    return false;
}

/* 2026-01-31T23:59:59.999Z */
static bool get_date(const json_t *v, const char **out) {
    static const char shape[] = "0000-00-00T00:00:00.000Z";
    if (!json_is_string(v) || json_string_length(v) != sizeof shape - 1) return false;
    *out = json_string_value(v);
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        char c = (*out)[i];
        if (shape[i] == '0' ? c < '0' || c > '9' : c != shape[i]) return false;
    }
    return true;
}

static bool get_text(const json_t *v, const char **out) {
    if (!json_is_string(v)) return false;
    *out = json_string_value(v);
    return true;
}

static bool get_code(const json_t *v, const char **out) {
    *out = NULL;
    return json_is_null(v) || get_text(v, out);
}

static bool get_reason(json_t *v, json_t **out) {
    size_t i;
    json_t *r;
    uint8_t kind;
    if (!json_is_array(v) || json_array_size(v) > EBB_CHAIN_DEPTH) return false;
    json_array_foreach(v, i, r) {
        const json_t *severity = json_object_get(r, "severity");
        const char *text = json_string_value(json_object_get(r, "kind"));
        bool good = json_object_size(r) == 3 && text != NULL && get_kind(text, &kind) &&
                    json_is_string(json_object_get(r, "message")) && json_is_integer(severity) &&
                    json_integer_value(severity) >= EBB_SEVERITY_POLITE &&
                    json_integer_value(severity) <= EBB_SEVERITY_FORCED;
        if (!good) return false;
    }
    *out = v;
    return true;
}

static bool get_evidence(json_t *v, json_t **out) {
    const char *key;
    json_t *fact;
    uint64_t number;
    if (!json_is_object(v)) return false;
    json_object_foreach(v, key, fact) {
        if (!json_is_string(fact) && !get_number(fact, &number)) return false;
    }
    *out = v;
    return true;
}

/* ---- fields --------------------------------------------------------------------------------------- */

typedef enum shape { NUMBER, COUNT, MS, TEXT, DATE, CODE, EVENT, STATE, REASON, EVIDENCE, HASH } shape;

static const char *const shapes[] = {
    [NUMBER] = "a number from 1 on",
    [COUNT] = "a number from 0 on",
    [MS] = "a time in ms with a point",
    [TEXT] = "a text",
    [DATE] = "a time as 2026-01-31T23:59:59.999Z",
    [CODE] = "a text or null",
    [EVENT] = "the name of an event",
    [STATE] = "the name of a state",
    [REASON] = "a list of reasons with kind, severity, message",
    [EVIDENCE] = "an object of texts and numbers",
    [HASH] = "64 hex digits",
};

/* Which lines have a field. */
typedef enum whose { ALL, WORKFLOW, SOME } whose;

typedef struct field {
    const char *name;
    shape shape;
    whose whose;
    size_t at;
} field;

static const field fields[] = {
    {"seq", NUMBER, ALL, offsetof(ebb__audit_line, seq)},
    {"at", DATE, ALL, offsetof(ebb__audit_line, at)},
    {"event", EVENT, ALL, offsetof(ebb__audit_line, event)}, /* before the fields that depend on it */
    {"code", CODE, ALL, offsetof(ebb__audit_line, code)},
    {"workflow", TEXT, WORKFLOW, offsetof(ebb__audit_line, type)},
    {"name", TEXT, WORKFLOW, offsetof(ebb__audit_line, name)},
    {"id", NUMBER, WORKFLOW, offsetof(ebb__audit_line, number)},
    {"parent", COUNT, WORKFLOW, offsetof(ebb__audit_line, parent)},
    {"from", STATE, WORKFLOW, offsetof(ebb__audit_line, from)},
    {"to", STATE, WORKFLOW, offsetof(ebb__audit_line, to)},
    {"elapsed_ms", MS, WORKFLOW, offsetof(ebb__audit_line, elapsed)},
    {"budget_ms", MS, WORKFLOW, offsetof(ebb__audit_line, budget)},
    {"epoch", COUNT, WORKFLOW, offsetof(ebb__audit_line, epoch)},
    {"in_flight", COUNT, WORKFLOW, offsetof(ebb__audit_line, in_flight)},
    {"inside", COUNT, WORKFLOW, offsetof(ebb__audit_line, inside)},
    {"refused", COUNT, WORKFLOW, offsetof(ebb__audit_line, refused)},
    {"reason", REASON, WORKFLOW, offsetof(ebb__audit_line, reason)},
    {"evidence", EVIDENCE, ALL, offsetof(ebb__audit_line, evidence)},
    {"lost", NUMBER, SOME, offsetof(ebb__audit_line, lost)},
    {"prev", HASH, ALL, offsetof(ebb__audit_line, prev)},
    {"hash", HASH, ALL, offsetof(ebb__audit_line, hash)},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static bool get(shape s, json_t *v, void *to) {
    switch (s) {
    case NUMBER: return get_number(v, to) && *(uint64_t *)to > 0;
    case COUNT: return get_number(v, to);
    case MS: return get_ms(v, to);
    case TEXT: return get_text(v, to);
    case DATE: return get_date(v, to);
    case CODE: return get_code(v, to);
    case EVENT: return get_event(v, to);
    case STATE: return get_state(v, to);
    case REASON: return get_reason(v, to);
    case EVIDENCE: return get_evidence(v, to);
    case HASH: return get_hash(v, to);
    }
    return false;
}

static bool belongs(const field *f, const ebb__audit_line *line) {
    return f->whose != WORKFLOW || line->event != EBB__WE_STARTED;
}

static bool get_fields(ebb__audit_line *line, char *why) {
    for (size_t i = 0; i < FIELDS; i++) {
        const field *f = &fields[i];
        json_t *v = json_object_get(line->json, f->name);
        if (!belongs(f, line) || (f->whose == SOME && v == NULL)) continue;
        if (v == NULL) return wrong(why, "\"%s\" is missing: expected %s", f->name, shapes[f->shape]);
        if (!get(f->shape, v, (char *)line + f->at))
            return wrong(why, "\"%s\" is not %s", f->name, shapes[f->shape]);
    }
    return true;
}

static bool no_others(const ebb__audit_line *line, char *why) {
    const char *key;
    json_t *v;
    json_object_foreach(line->json, key, v) {
        size_t i = 0;
        while (i < FIELDS && (strcmp(key, fields[i].name) != 0 || !belongs(&fields[i], line))) i++;
        if (i == FIELDS) return wrong(why, "a line of this kind has no \"%.40s\"", key);
    }
    return true;
}

static ebb_status parse(const char *bytes, size_t n, json_t **out, char *why) {
    json_error_t error;
    *out = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &error);
    if (*out != NULL && json_is_object(*out)) return EBB_OK;
    bool memory = json_error_code(&error) == json_error_out_of_memory || error.text[0] == 0;
    if (*out == NULL && memory) return EBB_ERR_NOMEM;
    (void)wrong(why, "expected a JSON object: %s at byte %d", *out == NULL ? error.text : "another value",
                *out == NULL ? error.position : 0);
    json_decref(*out);
    return EBB_ERR_CORRUPT;
}

/* ---- lines ---------------------------------------------------------------------------------------- */

ebb_status ebb__audit_line_read(const char *bytes, size_t n, ebb__audit_line *out, char why[EBB__AUDIT_WHY]) {
    *out = (ebb__audit_line){.json = NULL};
    ebb_status st = check_hash(bytes, n, out->hash, why);
    if (st == EBB_OK) st = parse(bytes, n, &out->json, why);
    if (st != EBB_OK) return st;
    if (get_fields(out, why) && no_others(out, why)) return EBB_OK;
    ebb__audit_line_free(out);
    return EBB_ERR_CORRUPT;
}

void ebb__audit_line_free(ebb__audit_line *line) {
    json_decref(line->json);
    line->json = NULL;
}

bool ebb__audit_is_torn(const char *bytes, size_t n, uint64_t seq) {
    char start[40];
    int k = snprintf(start, sizeof start, "{\"seq\":%" PRIu64 ",\"at\":\"", seq + 1);
    return memcmp(bytes, start, n < (size_t)k ? n : (size_t)k) == 0;
}

bool ebb__audit_line_follows(const ebb__audit_line *line, uint64_t seq, const uint8_t hash[EBB__AUDIT_HASH],
                             char why[EBB__AUDIT_WHY]) {
    if (line->seq != seq + 1)
        return wrong(why, "\"seq\" should be %" PRIu64 ", found %" PRIu64, seq + 1, line->seq);
    if (memcmp(line->prev, hash, EBB__AUDIT_HASH) == 0) return true;
    return wrong(why,
                 "\"prev\" is not the hash of the line before: expected %02x%02x%02x%02x..., found "
                 "%02x%02x%02x%02x...",
                 hash[0], hash[1], hash[2], hash[3], line->prev[0], line->prev[1], line->prev[2],
                 line->prev[3]);
}

bool ebb__audit_fact(const ebb__audit_line *line, const char *key, uint64_t *out) {
    const json_t *v = json_object_get(line->evidence, key);
    return v != NULL && get_number(v, out);
}

bool ebb__audit_reason(const ebb__audit_line *line, size_t i, ebb_reason *out) {
    const json_t *r = json_array_get(line->reason, i);
    *out = (ebb_reason){.kind = 0};
    if (r == NULL || !get_kind(json_string_value(json_object_get(r, "kind")), &out->kind)) return false;
    out->severity = (uint8_t)json_integer_value(json_object_get(r, "severity"));
    ebb__message_copy(out->message, json_string_value(json_object_get(r, "message")));
    return true;
}
