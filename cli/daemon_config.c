/* cli/daemon_config.c - the file of `ebb serve --config`. */
#include "cli/daemon_config.h"

#include <stdlib.h>
#include <string.h>

bool ebb__config_read(const char *path, ebb__cli_file *out, size_t *lines) {
    char *end;
    if (!ebb__cli_read_most(path, EBB__CONFIG_MOST, out)) return false;
    if (out->n > EBB__CONFIG_MOST) {
        ebb__cli_error("%s has more than %d bytes", path, EBB__CONFIG_MOST);
        return false;
    }
    *lines = 1;
    for (size_t i = 0; i < out->n; i++) *lines += out->bytes[i] == '\n';
    end = realloc(out->bytes, out->n + 1); /* the last line may have no newline */
    if (end == NULL) {
        ebb__cli_error("no memory for %s", path);
        return false;
    }
    end[out->n] = 0;
    out->bytes = (uint8_t *)end;
    return true;
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without the spaces around it. */
static char *trimmed(char *from, char *end) {
    while (end > from && is_space(end[-1])) end--;
    *end = 0;
    while (is_space(*from)) from++;
    return from;
}

static bool is_text(const char *path, unsigned line, const char *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)at[i];
        if ((c >= ' ' && c != 0x7f) || is_space(at[i])) continue;
        ebb__cli_error("%s:%u: byte %u is no text", path, line, c);
        return false;
    }
    return true;
}

static bool take_line(const char *path, char *at, char *end, unsigned line,
                      bool (*take)(void *ctx, const char *name, const char *value, unsigned line),
                      void *ctx) {
    if (!is_text(path, line, at, (size_t)(end - at))) return false;
    char *name = trimmed(at, end), *equals = strchr(name, '='), *value;
    if (*name == 0 || *name == '#') return true;
    if (equals == NULL) {
        ebb__cli_error("%s:%u: expected NAME = VALUE, not '%.60s'", path, line, name);
        return false;
    }
    value = trimmed(equals + 1, equals + 1 + strlen(equals + 1));
    name = trimmed(name, equals);
    if (*value == 0) ebb__cli_error("%s:%u: '%.60s' has no value", path, line, name);
    return *value != 0 && take(ctx, name, value, line);
}

bool ebb__config_each(ebb__cli_file *file,
                      bool (*take)(void *ctx, const char *name, const char *value, unsigned line),
                      void *ctx) {
    char *at = (char *)file->bytes, *last = at + file->n;
    for (unsigned line = 1; at <= last; line++) {
        char *end = memchr(at, '\n', (size_t)(last - at));
        if (end == NULL) end = last;
        if (!take_line(file->path, at, end, line, take, ctx)) return false;
        at = end + 1;
    }
    return true;
}
