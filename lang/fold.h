/* lang/fold.h - constant integers: computed here, and E0312 where the program would always trap. */
#ifndef EBB_LANG_FOLD_H
#define EBB_LANG_FOLD_H

#include "lang/body.h"

/* The node, or the constant that it is. */
ebb__ir *ebb__fold(ebb__body *b, ebb__ir *x);

#endif
