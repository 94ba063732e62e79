/* lang/lexer.h - text to tokens.
 *
 * The tokens and the bytes between them, blanks and comments, are the whole file: nothing is lost. A byte that begins
 * no token is in a token of kind BAD, which was reported. `>>`, `<<` and `||` in types are told apart by the parser:
 * the lexer joins neither < nor >. An f-string is several tokens, f"a{ x }b{ y }c" being FSTRING_BEGIN, x, FSTRING_MID,
 * y, FSTRING_END. */
#ifndef EBB_LANG_LEXER_H
#define EBB_LANG_LEXER_H

#include "lang/lang.h"

#define EBB_TOKENS(X)                                                                                        \
    X(LPAREN, "(")                                                                                           \
    X(RPAREN, ")")                                                                                           \
    X(LBRACK, "[")                                                                                           \
    X(RBRACK, "]")                                                                                           \
    X(LBRACE, "{")                                                                                           \
    X(RBRACE, "}")                                                                                           \
    X(COMMA, ",")                                                                                            \
    X(SEMI, ";")                                                                                             \
    X(COLON, ":")                                                                                            \
    X(COLONS, "::")                                                                                          \
    X(ARROW, "->")                                                                                           \
    X(FATARROW, "=>") X(EFFECT, "~>") X(EQ, "=") X(EQEQ, "==") X(NE, "!=") X(LT, "<") X(LE, "<=") X(GT, ">") \
        X(GE, ">=") X(ANDAND, "&&") X(OROR, "||") X(AND, "&") X(OR, "|") X(XOR, "^") X(TILDE, "~")           \
            X(BANG, "!") X(PLUS, "+") X(MINUS, "-") X(STAR, "*") X(SLASH, "/") X(PERCENT, "%")               \
                X(PLUSEQ, "+=") X(MINUSEQ, "-=") X(STAREQ, "*=") X(DOT, ".") X(DOTS, "..") X(HOLE, "...")    \
                    X(QUESTION, "?") X(AT, "@")

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
#define X(name, text) EBB__T_##name,
    EBB_TOKENS(X)
#undef X
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
