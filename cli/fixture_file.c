/* cli/fixture_file.c - reads a fixture, and reports what is wrong with an invalid one. */
#include "cli/fixture.h"

#include <stdlib.h>
#include <string.h>

typedef enum shape {
    TEXT,
    NUMBER,
    OBJECT,
    TEXTS,           /* an array of strings */
    OBJECT_OF_TEXT,  /* an object whose values are strings */
    OBJECT_OF_TEXTS, /* an object whose values are arrays of strings */
    HASH             /* 32 hex digits */
} shape;

static const char *const expected_of[] = {
    [TEXT] = "a string",
    [NUMBER] = "a whole number, 0 or more",
    [OBJECT] = "an object",
    [TEXTS] = "an array of strings",
    [OBJECT_OF_TEXT] = "an object of strings",
    [OBJECT_OF_TEXTS] = "an object of arrays of strings",
    [HASH] = "a string of 32 hex digits",
};

typedef struct field {
    const char *name;
    shape shape;
    bool optional;
} field;

static const field fields[] = {
    {"contract", TEXT, false}, {"id", TEXT, false},       {"about", TEXT, false},
    {"seed", NUMBER, false},   {"snapshot", TEXT, false}, {"script", TEXTS, false},
    {"watch", TEXTS, true},    {"expect", OBJECT, false}, {"repro", TEXT, false},
};

static const field expect_fields[] = {
    {"phases", OBJECT_OF_TEXTS, false},
    {"events", TEXTS, false},
    {"outcomes", OBJECT_OF_TEXT, false},
    {"closure", OBJECT_OF_TEXT, false},
    {"results", OBJECT_OF_TEXT, false},
    {"chains", OBJECT_OF_TEXTS, true},
    {"steps", TEXTS, false},
    {"fingerprint", HASH, false},
    {"parity", HASH, false},
};

/* ---- shapes ----------------------------------------------------------------------------------- */

static bool is_texts(const json_t *v) {
    size_t i;
    json_t *item;
    if (!json_is_array(v)) return false;
    json_array_foreach(v, i, item) {
        if (!json_is_string(item)) return false;
    }
    return true;
}

static bool is_hash(const json_t *v) {
    const char *s = json_string_value(v);
    return s != NULL && strlen(s) == 32 && strspn(s, "0123456789abcdef") == 32;
}

static bool is_object_of(json_t *v, bool (*is)(const json_t *item)) {
    const char *key;
    json_t *item;
    if (!json_is_object(v)) return false;
    json_object_foreach(v, key, item) {
        if (!is(item)) return false;
    }
    return true;
}

static bool is_text(const json_t *v) {
    return json_is_string(v);
}

static bool has_shape(json_t *v, shape s) {
    switch (s) {
    case TEXT: return json_is_string(v);
    case NUMBER: return json_is_integer(v) && json_integer_value(v) >= 0;
    case OBJECT: return json_is_object(v);
    case TEXTS: return is_texts(v);
    case OBJECT_OF_TEXT: return is_object_of(v, is_text);
    case OBJECT_OF_TEXTS: return is_object_of(v, is_texts);
    default: return is_hash(v);
    }
}

static const char *type_name(const json_t *v) {
    static const char *const names[] = {"an object", "an array",      "a string",      "a number",
                                        "a number",  "true or false", "true or false", "null"};
    return names[json_typeof(v)];
}

static bool check_field(const char *path, const char *above, json_t *in, const field *f) {
    json_t *v = json_object_get(in, f->name);
    if (v == NULL) {
        if (f->optional) return true;
        ebb__cli_error("%s: field '%s%s' is missing; expected %s", path, above, f->name,
                       expected_of[f->shape]);
        return false;
    }
    if (has_shape(v, f->shape)) return true;
    ebb__cli_error("%s: field '%s%s' is %s, and not valid; expected %s", path, above, f->name, type_name(v),
                   expected_of[f->shape]);
    return false;
}

/* All required fields exist and are valid, and there are no others: a misspelt optional field would be ignored. */
static bool check_fields(const char *path, const char *above, json_t *in, const field *list, size_t n) {
    const char *key;
    json_t *v;
    for (size_t i = 0; i < n; i++) {
        if (!check_field(path, above, in, &list[i])) return false;
    }
    json_object_foreach(in, key, v) {
        size_t i = 0;
        while (i < n && strcmp(list[i].name, key) != 0) i++;
        if (i < n) continue;
        ebb__cli_error("%s: unknown field '%s%s'", path, above, key);
        return false;
    }
    return true;
}

/* ---- checking values -------------------------------------------------------------------------- */

static bool check_text(const char *path, const char *name, const char *found, const char *expected) {
    if (strcmp(found, expected) == 0) return true;
    ebb__cli_error("%s: field '%s' is '%s'; expected '%s'", path, name, found, expected);
    return false;
}

static uint32_t event_type(const char *name) {
    for (uint32_t type = 1; type < EBB_EV_MAX; type++) {
        const char *known = ebb_event_name(type);
        if (known != NULL && strcmp(known, name) == 0) return type;
    }
    return 0;
}

static bool check_watch(const ebb__fixture *f) {
    size_t i;
    json_t *item;
    json_array_foreach(f->watch, i, item) {
        if (event_type(json_string_value(item)) != 0) continue;
        ebb__cli_error("%s: field 'watch' has '%s'; expected the name of an event", f->path,
                       json_string_value(item));
        return false;
    }
    return true;
}

/* The file's name without its directory and ".json". */
static bool check_id(const ebb__fixture *f) {
    const char *slash = strrchr(f->path, '/');
    const char *base = slash == NULL ? f->path : slash + 1;
    char name[256];
    snprintf(name, sizeof name, "%s", base);
    char *dot = strstr(name, ".json");
    if (dot != NULL) *dot = 0;
    return check_text(f->path, "id", f->id, name);
}

static bool check_values(const ebb__fixture *f) {
    const char *contract = json_string_value(json_object_get(f->json, "contract"));
    const char *snapshot = json_string_value(json_object_get(f->json, "snapshot"));
    char repro[320];
    snprintf(repro, sizeof repro, "ebb fixture run %s --seed %llu", f->id, (unsigned long long)f->seed);
    if (!check_text(f->path, "contract", contract, EBB_CONTRACT) || !check_id(f) ||
        !check_text(f->path, "snapshot", snapshot, "empty-root") ||
        !check_text(f->path, "repro", f->repro, repro) || !check_watch(f)) {
        return false;
    }
    size_t steps = json_array_size(json_object_get(f->expect, "steps")), lines = json_array_size(f->script);
    if (steps == lines) return true;
    ebb__cli_error("%s: field 'expect.steps' has %zu entries; expected %zu, one a line of the script",
                   f->path, steps, lines);
    return false;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static bool check(ebb__fixture *f) {
    if (!json_is_object(f->json)) {
        ebb__cli_error("%s: the file is %s; expected an object", f->path, type_name(f->json));
        return false;
    }
    if (!check_fields(f->path, "", f->json, fields, sizeof fields / sizeof *fields)) return false;
    f->expect = json_object_get(f->json, "expect");
    if (!check_fields(f->path, "expect.", f->expect, expect_fields,
                      sizeof expect_fields / sizeof *expect_fields)) {
        return false;
    }
    f->id = json_string_value(json_object_get(f->json, "id"));
    f->repro = json_string_value(json_object_get(f->json, "repro"));
    f->seed = (uint64_t)json_integer_value(json_object_get(f->json, "seed"));
    f->script = json_object_get(f->json, "script");
    f->watch = json_object_get(f->json, "watch");
    return check_values(f);
}

bool ebb__fixture_load(const char *path, ebb__fixture *out) {
    *out = (ebb__fixture){.path = path};
    json_error_t error;
    out->json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (out->json == NULL) {
        if (error.line < 0) ebb__cli_error("%s", error.text);
        else ebb__cli_error("%s:%d:%d: not JSON: %s", path, error.line, error.column, error.text);
        return false;
    }
    if (check(out)) return true;
    ebb__fixture_free(out);
    return false;
}

void ebb__fixture_free(ebb__fixture *f) {
    json_decref(f->json);
    f->json = NULL;
}
