/* lang/format.h - texts with arguments: see ebb__format in lang/lang.h. */
#ifndef EBB_LANG_FORMAT_H
#define EBB_LANG_FORMAT_H

#include <stdarg.h>

#include "lang/lang.h"

const char *ebb__vformat(ebb_lang *c, const char *format, va_list *args);

#endif
