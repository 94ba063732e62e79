/* cli/durable_args.c - the options of `ebb durable`. */
#define _GNU_SOURCE /* strptime, timegm */
#include "cli/durable.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* ---- values ------------------------------------------------------------------------------------------ */

/* JSON, or @FILE with it. */
static bool read_body(ebb__durable_args *a, const char *option, const char *text) {
    json_error_t error;
    a->body = ebb_blob_text(text);
    if (text[0] == '@') {
        free(a->file.bytes);
        if (!ebb__cli_read_most(text + 1, EBB_DURABLE_PAYLOAD, &a->file)) return false;
        a->body = (ebb_blob){a->file.bytes, a->file.n};
    }
    if (a->body.n > EBB_DURABLE_PAYLOAD) {
        ebb__cli_error("%s has more than %d bytes", option, EBB_DURABLE_PAYLOAD);
        return false;
    }
    json_t *j = json_loadb(a->body.n != 0 ? a->body.at : "", a->body.n,
                           JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
    json_decref(j);
    if (j == NULL)
        ebb__cli_error("%s is not JSON: line %d, column %d: %s", option, error.line, error.column,
                       error.text);
    return j != NULL;
}

/* A time of the past: 2026-11-19T16:00:00Z, or how long ago: 90s, 15m, 2h, 7d. */
static bool read_time(const char *option, const char *text, uint64_t *out) {
    static const struct {
        char name;
        uint64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    struct tm tm = {0};
    char *end;
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    const time_t at = rest != NULL && *rest == 0 ? timegm(&tm) : -1, now = time(NULL);
    if (at > 0) *out = (uint64_t)at * EBB_SECOND;
    if (at > 0) return true;
    const unsigned long long n = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units && text[0] >= '0' && text[0] <= '9'; i++) {
        if (end[0] != units[i].name || end[1] != 0 || n > (uint64_t)now / units[i].seconds) continue;
        *out = ((uint64_t)now - n * units[i].seconds) * EBB_SECOND;
        return true;
    }
    ebb__cli_error("%s takes a time as 2026-11-19T16:00:00Z, or how long ago as 90s, 15m, 2h or 7d, not '%s'",
                   option, text);
    return false;
}

static bool read_state(const char *text, uint32_t *states) {
    for (ebb_instance_state s = EBB_INSTANCE_RUNNING; s <= EBB_INSTANCE_TERMINATED; s++) {
        if (strcasecmp(text, ebb_instance_state_name(s)) != 0) continue;
        *states |= UINT32_C(1) << s;
        return true;
    }
    ebb__cli_error("--state takes Running, Suspended, Completed, Failed, Cancelled or Terminated, not '%s'",
                   text);
    return false;
}

/* ---- options ----------------------------------------------------------------------------------------- */

typedef enum kind { FLAG, TEXT, NUMBER, BODY, STATE, TIME } kind;

#define AT(field) offsetof(ebb__durable_args, field)
static const struct option {
    const char *name;
    uint32_t takes; /* the bit that a command needs for it; 0: all have it */
    kind kind;
    size_t at;
} options[] = {
    {"--store", 0, TEXT, AT(url)},
    {"--json", 0, FLAG, AT(json)},
    {"--id", EBB__DURABLE_NEW_ID, TEXT, AT(id)},
    {"--input", EBB__DURABLE_INPUT, BODY, 0},
    {"--body", EBB__DURABLE_BODY, BODY, 0},
    {"--version", EBB__DURABLE_VERSION, NUMBER, AT(version)},
    {"--reuse", EBB__DURABLE_REUSE, FLAG, AT(reuse)},
    {"--dedup", EBB__DURABLE_DEDUP, TEXT, AT(dedup)},
    {"--reason", EBB__DURABLE_REASON, TEXT, AT(reason)},
    {"--name", EBB__DURABLE_FILTER, TEXT, AT(filter.name)},
    {"--prefix", EBB__DURABLE_FILTER, TEXT, AT(filter.prefix)},
    {"--parent", EBB__DURABLE_FILTER, TEXT, AT(filter.parent)},
    {"--state", EBB__DURABLE_FILTER, STATE, AT(filter.states)},
    {"--started-after", EBB__DURABLE_FILTER, TIME, AT(filter.started_after)},
    {"--ended-before", EBB__DURABLE_FILTER, TIME, AT(filter.ended_before)},
    {"--all", EBB__DURABLE_BULK, FLAG, AT(all)},
    {"--dry-run", EBB__DURABLE_BULK, FLAG, AT(dry_run)},
    {"--progress", EBB__DURABLE_BULK, FLAG, AT(progress)},
    {"--force", EBB__DURABLE_FORCE, FLAG, AT(force)},
    {"--execution", EBB__DURABLE_EXECUTION, NUMBER, AT(execution)},
    {"--verify", EBB__DURABLE_VERIFY, FLAG, AT(verify)},
    {"--load", EBB__DURABLE_LOAD, TEXT, AT(load)},
    {"--most", EBB__DURABLE_MOST, NUMBER, AT(most)},
};

static bool set(ebb__durable_args *a, const struct option *o, const char *value) {
    void *at = (char *)a + o->at;
    a->filtered |= o->takes == EBB__DURABLE_FILTER;
    switch (o->kind) {
    case FLAG: *(bool *)at = true; return true;
    case TEXT: *(const char **)at = value; return true;
    case NUMBER: return ebb__cli_number(o->name, value, 1, UINT32_MAX, at);
    case BODY: return read_body(a, o->name, value);
    case STATE: return read_state(value, at);
    case TIME: return read_time(o->name, value, at);
    }
    return false;
}

/* NULL: the command does not take it. */
static const struct option *find(const char *name, uint32_t takes) {
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const bool may = options[i].takes == 0 || (options[i].takes & takes) != 0;
        if (may && strcmp(options[i].name, name) == 0) return &options[i];
    }
    return NULL;
}

static bool take_word(ebb__durable_args *a, const char *word, size_t most) {
    if (a->words_n < most) {
        a->words[a->words_n++] = word;
        return true;
    }
    ebb__cli_error("unexpected argument '%s'", word);
    return false;
}

bool ebb__durable_parse(ebb__durable_args *a, int argc, char **argv, uint32_t takes, size_t least,
                        size_t most) {
    for (int i = 0; i < argc; i++) {
        const struct option *o = argv[i][0] == '-' ? find(argv[i], takes) : NULL;
        if (argv[i][0] != '-') {
            if (!take_word(a, argv[i], most)) return false;
            continue;
        }
        const bool has = o != NULL && (o->kind == FLAG || i + 1 < argc);
        if (o == NULL) ebb__cli_error("ebb durable %s has no option '%s'", a->command, argv[i]);
        else if (!has) ebb__cli_error("%s needs a value", argv[i]);
        if (!has || !set(a, o, o->kind == FLAG ? NULL : argv[++i])) return false;
    }
    if (a->url == NULL) ebb__cli_error("ebb durable %s needs --store URL", a->command);
    else if (a->words_n < least)
        ebb__cli_error("ebb durable %s needs %s", a->command,
                       a->words_n + 1 < least ? "two arguments" : "an argument more");
    else return true;
    return false;
}
