/* lang/signature.h - the parts of reading signatures: declaring makes a name known, reading resolves what it says. */
#ifndef EBB_LANG_SIGNATURE_H
#define EBB_LANG_SIGNATURE_H

#include "lang/check.h"

void ebb__declare_typestate(ebb_lang *c, ebb__decl *d); /* its states */
void ebb__declare_protocol(ebb_lang *c, ebb__decl *d);  /* its messages and roles */
void ebb__read_protocol(ebb_lang *c, ebb__protocol *p);
void ebb__read_roles(ebb_lang *c, ebb__typestate *ts);
void ebb__read_typestate(ebb_lang *c, ebb__typestate *ts);
void ebb__read_fn(ebb_lang *c, ebb__decl *d);

/* The children of `node` of a kind FIELD, TFIELD or PARAM. False: there are too many, and it was reported; the first are
 * read. */
bool ebb__read_fields(ebb_lang *c, ebb__where w, uint32_t node, uint8_t kind, ebb__field **out, uint32_t *n);

#endif
