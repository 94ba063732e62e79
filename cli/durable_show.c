/* cli/durable_show.c - instances and events: tables for people, a JSON object a line for programs. */
#define _GNU_SOURCE /* gmtime_r */
#include "cli/durable.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/line.h"
#include "durable/info_json.h"

enum { BLOB_SHOWN = 200, EVENT_SHOWN = 160, TIME_ROOM = 32 };

/* ---- texts ------------------------------------------------------------------------------------------- */

static size_t characters(const char *s, size_t n) {
    size_t all = 0;
    for (size_t i = 0; i < n; i++) all += ((unsigned char)s[i] & 0xc0) != 0x80;
    return all;
}

void ebb__durable_print_text(const char *s, size_t n, size_t most) {
    static const char blanks[] = " \t\r\n"; /* a blob may be of several lines */
    char *copy = n != 0 ? malloc(n + 1) : NULL;
    if (copy == NULL) return;
    memcpy(copy, s, n);
    for (size_t i = 0; i < n; i++) {
        if (copy[i] == 0) copy[i] = '?';
        else if (strchr(blanks, copy[i]) != NULL) copy[i] = ' ';
    }
    while (n > 0 && copy[n - 1] == ' ') n--;
    copy[n] = 0;
    ebb__make_plain(copy);
    size_t shown = 0, seen = 0;
    while (copy[shown] != 0 && (seen < most || ((unsigned char)copy[shown] & 0xc0) == 0x80))
        seen += ((unsigned char)copy[shown++] & 0xc0) != 0x80;
    printf("%.*s%s", (int)shown, copy, copy[shown] != 0 ? "..." : "");
    free(copy);
}

static void print_padded(const char *s, size_t width) {
    const size_t n = strlen(s), wide = characters(s, n);
    ebb__durable_print_text(s, n, SIZE_MAX);
    printf("%*s", wide < width ? (int)(width - wide) : 0, "");
}

static const char *time_text(uint64_t ns, char out[TIME_ROOM]) {
    const time_t s = (time_t)(ns / EBB_SECOND);
    struct tm tm;
    out[0] = '-';
    out[1] = 0;
    if (ns != 0 && gmtime_r(&s, &tm) != NULL) (void)strftime(out, TIME_ROOM, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return out;
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

static void put(json_t *to, const char *name, json_t *value) {
    (void)json_object_set_new(to, name, value);
}

static void put_number(json_t *to, const char *name, uint64_t n) {
    put(to, name, json_integer((json_int_t)n));
}

static void print_json(json_t *j) {
    if (j == NULL || json_dumpf(j, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) != 0)
        ebb__cli_error("no memory");
    putchar('\n');
    json_decref(j);
}

void ebb__durable_show_count(const char *name, uint64_t n, bool dry_run) {
    json_t *j = json_object();
    put_number(j, name, n);
    put(j, "dry_run", json_boolean(dry_run));
    print_json(j);
}

void ebb__durable_show_replay(const char *id, uint64_t turns, const char *difference) {
    json_t *j = json_object();
    put(j, "id", ebb__text_json(id));
    put_number(j, "turns", turns);
    put(j, "difference", ebb__text_json(difference));
    print_json(j);
}

/* ---- one instance ------------------------------------------------------------------------------------ */

static void print_blob(const char *name, ebb_blob b) {
    if (b.n == 0) return;
    printf("%-10s ", name);
    ebb__durable_print_text(b.at, b.n, BLOB_SHOWN);
    putchar('\n');
}

static void print_line(const char *name, const char *text) {
    if (*text != 0) print_blob(name, ebb_blob_text(text));
}

static void print_info(const ebb_instance_info *i) {
    char began[TIME_ROOM], ended[TIME_ROOM];
    print_line("id", i->id);
    print_line("name", i->name);
    if (i->version != 0) printf("version    %" PRIu32 "\n", i->version);
    print_line("parent", i->parent);
    printf("state      %s%s\n", ebb_instance_state_name(i->state),
           i->unserved ? ", and no live worker has what it needs" : "");
    print_line("because", i->text);
    printf("execution  %" PRIu64 ", turn %" PRIu64 "\n", i->execution, i->turn);
    printf("started    %s\n", time_text(i->started, began));
    if (i->ended != 0) printf("ended      %s\n", time_text(i->ended, ended));
    print_blob("status", i->custom);
    print_blob("input", i->input);
    print_blob("output", i->output);
    if (i->failure.code == NULL) return;
    print_line("failure", i->failure.code);
    print_line("message", i->failure.message);
    print_blob("details", i->failure.details);
}

void ebb__durable_show(const ebb_instance_info *i, bool json) {
    if (!json) {
        print_info(i);
        return;
    }
    print_json(ebb__info_json(i, true));
}

/* ---- tables ------------------------------------------------------------------------------------------ */

enum { WIDE_STATE = 11, WIDE_TIME = 20, WIDE_NAME = 20 };

void ebb__durable_show_header(void) {
    printf("%-*s %-*s %-*s %-*s ID\n", WIDE_STATE, "STATE", WIDE_TIME, "STARTED", WIDE_TIME, "ENDED",
           WIDE_NAME, "NAME");
}

/* The id is the last: it has any length. */
void ebb__durable_show_row(const ebb_instance_info *i, uint32_t depth, bool json) {
    char began[TIME_ROOM], ended[TIME_ROOM];
    if (json) {
        print_json(ebb__info_json(i, false));
        return;
    }
    printf("%-*s %-*s %-*s ", WIDE_STATE, ebb_instance_state_name(i->state), WIDE_TIME,
           time_text(i->started, began), WIDE_TIME, time_text(i->ended, ended));
    print_padded(i->name, WIDE_NAME);
    printf(" %*s", 2 * (int)(depth < 40 ? depth : 40), "");
    ebb__durable_print_text(i->id, strlen(i->id), SIZE_MAX);
    fputs(i->unserved ? "  (unserved)\n" : "\n", stdout);
}

void ebb__durable_show_event(const ebb_history_event *e, bool json) {
    char at[TIME_ROOM];
    if (!json) {
        printf("%6" PRIu64 "  %5" PRIu64 "  %s  %-20s ", e->number, e->turn, time_text(e->at, at), e->kind);
        ebb__durable_print_text(e->json, strlen(e->json), EVENT_SHOWN);
        putchar('\n');
        return;
    }
    print_json(ebb__history_event_json(e));
}
