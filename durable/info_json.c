/* durable/info_json.c - instances and events as JSON objects. */
#define _POSIX_C_SOURCE 200809L
#include "durable/info_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "durable/event.h"

bool ebb__json_is_shallow(const char *at, size_t n) {
    bool text = false;
    uint32_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (text && at[i] == '\\') i++;
        else if (at[i] == '"') text = !text;
        else if (!text && (at[i] == '[' || at[i] == '{') && ++depth > EBB__JSON_DEPTH) return false;
        else if (!text && (at[i] == ']' || at[i] == '}') && depth > 0) depth--;
    }
    return true;
}

json_t *ebb__text_json(const char *s) {
    json_t *j = json_string(s);
    char *copy = j == NULL ? strdup(s) : NULL;
    if (copy == NULL) return j;
    for (char *c = copy; *c != 0; c++) {
        if (*c < ' ' || *c > '~') *c = '?';
    }
    j = json_string(copy);
    free(copy);
    return j;
}

/* Adds a member. False, and so on for all later ones: no memory. */
static bool put(bool before, json_t *to, const char *name, json_t *value) {
    return (json_object_set_new(to, name, value) == 0) & before;
}

static json_t *number(uint64_t n) {
    return json_integer((json_int_t)n);
}

static json_t *failure_json(const ebb_failure *f) {
    json_t *j = json_object();
    bool ok = put(j != NULL, j, "code", ebb__text_json(f->code));
    ok = put(ok, j, "message", ebb__text_json(f->message));
    ok = put(ok, j, "details", ebb__blob_json(f->details));
    if (!ok) json_decref(j);
    return ok ? j : NULL;
}

json_t *ebb__info_json(const ebb_instance_info *i, bool whole) {
    json_t *j = json_object();
    bool ok = put(j != NULL, j, "id", ebb__text_json(i->id));
    ok = put(ok, j, "name", ebb__text_json(i->name));
    ok = put(ok, j, "parent", ebb__text_json(i->parent));
    ok = put(ok, j, "version", number(i->version));
    ok = put(ok, j, "state", json_string(ebb_instance_state_name(i->state)));
    ok = put(ok, j, "unserved", json_boolean(i->unserved));
    ok = put(ok, j, "execution", number(i->execution));
    ok = put(ok, j, "turn", number(i->turn));
    ok = put(ok, j, "started", number(i->started));
    ok = put(ok, j, "ended", number(i->ended));
    ok = put(ok, j, "text", ebb__text_json(i->text));
    ok = put(ok, j, "custom", ebb__blob_json(i->custom));
    if (whole) {
        ok = put(ok, j, "input", ebb__blob_json(i->input));
        ok = put(ok, j, "output", ebb__blob_json(i->output));
        if (i->failure.code != NULL) ok = put(ok, j, "failure", failure_json(&i->failure));
    }
    if (!ok) json_decref(j);
    return ok ? j : NULL;
}

json_t *ebb__history_event_json(const ebb_history_event *e) {
    json_t *j = json_object();
    bool ok = put(j != NULL, j, "number", number(e->number));
    ok = put(ok, j, "turn", number(e->turn));
    ok = put(ok, j, "at", number(e->at));
    ok = put(ok, j, "kind", json_string(e->kind));
    ok = put(ok, j, "event", json_loads(e->json, JSON_ALLOW_NUL, NULL));
    if (!ok) json_decref(j);
    return ok ? j : NULL;
}
