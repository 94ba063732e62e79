/* lang/infer_call.h - the parts of checking calls. */
#ifndef EBB_LANG_INFER_CALL_H
#define EBB_LANG_INFER_CALL_H

#include "lang/body.h"

/* The nodes of the arguments of a call; how many there are. */
uint32_t ebb__args_of(const ebb__body *b, uint32_t node, uint32_t *out, uint32_t most);

/* Looks at the arguments of a call that is wrong, for what is wrong in them. */
void ebb__args_skip(ebb__body *b, uint32_t node);

/* E0302 unless there are from `least` to `most`. */
bool ebb__args_count(ebb__body *b, uint32_t node, uint32_t n, uint32_t least, uint32_t most,
                     const char *usage);

/* A call of what is built in; NULL: there is nothing of this name. */
ebb__ir *ebb__infer_builtin(ebb__body *b, uint32_t node, ebb__name name, ebb__type expected);
ebb__ir *ebb__infer_value_method(ebb__body *b, uint32_t node, ebb__ir *self, ebb__name name);
ebb__ir *ebb__infer_handle_method(ebb__body *b, uint32_t node, ebb__ir *handle, ebb__name name);

/* send, request, reply, spawn ...: NULL if `name` is none of them. */
ebb__ir *ebb__infer_message(ebb__body *b, uint32_t node, ebb__name name);

/* Whether an expression can be assigned to; E0311 if not. */
bool ebb__is_place(ebb__body *b, const ebb__ir *x);

#endif
