/* lang/source.h - the files of a compilation, and places in them. */
#ifndef EBB_LANG_SOURCE_H
#define EBB_LANG_SOURCE_H

#include "lang/lang.h"

/* Adds a file: lexes and parses it. NULL: no memory. */
ebb__source *ebb__source_add(ebb_lang *c, const char *path, const char *module, const char *text, size_t n);
ebb__source *ebb__source_at(const ebb_lang *c, uint32_t id);

/* The line and column of an offset, from 1. */
void ebb__source_place(const ebb__source *s, uint32_t at, uint32_t *line, uint32_t *column);

/* The text of a line without its end. */
const char *ebb__source_line(const ebb__source *s, uint32_t line, uint32_t *n);

void ebb__source_free(ebb_lang *c, ebb__source *s);

#endif
