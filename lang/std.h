/* lang/std.h - modules that are part of the compiler: std/clock, std/console, std/random. */
#ifndef EBB_LANG_STD_H
#define EBB_LANG_STD_H

#include <stddef.h>

/* The text of a module; NULL: it is none of these. */
const char *ebb__std_module(const char *module, size_t *n);

#endif
