/* lang/lexer.h - text to tokens.
 *
 * The tokens and the bytes between them, blanks and comments, are the whole file: nothing is lost. A byte that begins
 * no token is in a token of kind BAD, which was reported. `>>`, `<<` and `||` in types are told apart by the parser:
 * the lexer joins neither < nor >. An f-string is several tokens, f"a{ x }b{ y }c" being FSTRING_BEGIN, x, FSTRING_MID,
 * y, FSTRING_END. */
#ifndef EBB_LANG_LEXER_H
#define EBB_LANG_LEXER_H

#include "lang/lang.h"

enum ebb__tok {
    EBB__T_END, /* of the file */
    EBB__T_BAD,
    EBB__T_IDENT,
    EBB__T_INT,
    EBB__T_DURATION,
    EBB__T_STRING,
    EBB__T_BYTES,
    EBB__T_FSTRING, /* without holes */
    EBB__T_FSTRING_BEGIN,
    EBB__T_FSTRING_MID,
    EBB__T_FSTRING_END,
#define EBB_TOKEN(name, text) EBB__T_##name,
#include "lang/token.def"
#undef EBB_TOKEN
#define EBB_KEYWORD(word) EBB__T_##word,
#define EBB_KNOWN(word)
#include "lang/names.def"
#undef EBB_KEYWORD
#undef EBB_KNOWN
    EBB__TOKENS
};

/* The numbers of the names that are known; ebb__names_init interns them in this order. */
enum {
    EBB__N_NONE,
#define EBB_KEYWORD(word) EBB__N_##word,
#define EBB_KNOWN(word)   EBB__N_##word,
#include "lang/names.def"
#undef EBB_KEYWORD
#undef EBB_KNOWN
    EBB__N_KNOWN
};

void ebb__names_init(ebb_lang *c);

/* Fills `s->tokens`. */
void ebb__lex(ebb_lang *c, ebb__source *s);

/* What a kind of token is called in messages. */
const char *ebb__token_name(uint8_t kind);

/* The value of an INT or DURATION token (in ms). False: it was out of range, which was reported if `c` is not NULL. */
bool ebb__token_number(const ebb__source *s, const ebb__token *t, uint64_t *out, bool *is_u64, bool *is_i64);

/* The bytes that a literal stands for; the part of an f-string is one too. NULL: no memory. */
const char *ebb__token_bytes(ebb_lang *c, const ebb__source *s, const ebb__token *t, uint32_t *n);

#endif
