/* lang/tree.h - the syntax tree of a file.
 *
 * A node has the tokens [first, end), its children are inside of that in their order, and the tokens between them are
 * its own. So a walk over the tree that prints every token with the bytes before it gives the file back, byte for byte
 * (ebb__tree_print). Nodes are numbered; 0 is "none". A node is no deeper than EBB_LANG_MAX_DEPTH, so that walks may
 * recurse. The comment behind a kind lists its children; [x] is optional, x* any number; "tok" is what `tok` names. */
#ifndef EBB_LANG_TREE_H
#define EBB_LANG_TREE_H

#include "lang/lang.h"

typedef enum ebb__kind {
    EBB__S_NONE,
    EBB__S_FILE,   /* IMPORT* item* */
    EBB__S_ERROR,  /* tokens that were skipped */
    EBB__S_NAME,   /* tok: a name */
    EBB__S_PATH,   /* its tokens: names and :: */
    EBB__S_CHOICE, /* PATH* */
    EBB__S_ATTR,   /* tok: name; ARG* */
    /* items */
    EBB__S_IMPORT,    /* PATH [NAME] */
    EBB__S_TYPEDECL,  /* tok: name; ATTR* type */
    EBB__S_CONST,     /* tok: name; ATTR* type expr */
    EBB__S_FN,        /* tok: name; ATTR* PARAMS [type] BLOCK */
    EBB__S_PARAMS,    /* PARAM* */
    EBB__S_PARAM,     /* tok: name; [type] */
    EBB__S_TYPESTATE, /* tok: name; ATTR* PATH* member* */
    EBB__S_PROTOCOL,  /* tok: name; ATTR* MSG* REQ* ROLE* in any order */
    EBB__S_SPEC,      /* tok: name; ATTR* CHOICE member* */
    /* in protocols */
    EBB__S_MSG,    /* tok: name; [RECORD] */
    EBB__S_REQ,    /* NAME NAME PATH CHOICE [LITERAL] */
    EBB__S_ROLE,   /* tok: name; RSTATE* */
    EBB__S_RSTATE, /* tok: name; ATTR* RTRANS* */
    EBB__S_RTRANS, /* PATH [NAME: peer] [CHOICE: targets] EFFECT* */
    EBB__S_EFFECT, /* CHOICE [NAME: role]; without NAME it is a reply */
    /* in typestates */
    EBB__S_FIELDS,    /* TFIELD* */
    EBB__S_TFIELD,    /* tok: name; type [PATH: role] */
    EBB__S_STATE,     /* tok: name; ATTR* [PATH: role state] member*; flag HOT */
    EBB__S_HANDLER,   /* PATH [PARAMS] [ORIGIN] [TARGETS] BLOCK */
    EBB__S_ORIGIN,    /* PATH [LABEL] [NAME: binding] */
    EBB__S_LABEL,     /* tok: name */
    EBB__S_TARGETS,   /* PATH* */
    EBB__S_DEFER,     /* CHOICE */
    EBB__S_IGNORE,    /* CHOICE */
    EBB__S_INVARIANT, /* expr */
    EBB__S_AFTER,     /* expr [TARGETS] BLOCK */
    EBB__S_ENTRY,     /* BLOCK */
    EBB__S_EXIT,      /* BLOCK */
    EBB__S_FAULT,     /* NAME */
    EBB__S_MAILBOX,   /* LITERAL */
    /* types */
    EBB__S_TYPE_PATH,  /* PATH type* */
    EBB__S_TYPE_UNION, /* type* */
    EBB__S_TYPE_TUPLE, /* type*; none: unit; one: a group */
    EBB__S_TYPE_LIST,  /* type */
    EBB__S_TYPE_MAP,   /* type type */
    EBB__S_RECORD,     /* FIELD* */
    EBB__S_FIELD,      /* tok: name; type */
    /* statements */
    EBB__S_LET,    /* pattern [type] expr [BLOCK] */
    EBB__S_VAR,    /* tok: name; [type] [expr] */
    EBB__S_ASSIGN, /* tok: operator; expr expr */
    EBB__S_WHILE,  /* expr BLOCK */
    EBB__S_FOR,    /* pattern expr [expr] BLOCK */
    EBB__S_RETURN, /* [expr] */
    EBB__S_BREAK,
    EBB__S_CONTINUE,
    EBB__S_EXPR_STMT, /* expr, with its semicolon */
    /* patterns */
    EBB__S_PAT_WILD,
    EBB__S_PAT_LITERAL, /* tok */
    EBB__S_PAT_BIND,    /* tok: name; [type] */
    EBB__S_PAT_TUPLE,   /* pattern*; none: unit */
    EBB__S_PAT_PATH,    /* PATH [pattern] */
    EBB__S_PAT_RECORD,  /* PATH PAT_FIELD* */
    EBB__S_PAT_FIELD,   /* tok: name; [pattern] */
    /* expressions, from here to the end */
    EBB__S_LITERAL, /* tok */
    EBB__S_FSTRING, /* LITERAL expr LITERAL ... LITERAL */
    EBB__S_SELF,
    EBB__S_PATH_EXPR,  /* PATH */
    EBB__S_RECORD_LIT, /* PATH INIT* */
    EBB__S_INIT,       /* tok: name; [expr] */
    EBB__S_TUPLE,      /* expr*; none: unit */
    EBB__S_PAREN,      /* expr */
    EBB__S_LIST,       /* expr* */
    EBB__S_MAP,        /* ENTRY* */
    EBB__S_ENTRY_KV,   /* expr expr */
    EBB__S_CALL,       /* expr ARG* */
    EBB__S_ARG,        /* tok: name or 0; expr */
    EBB__S_FIELD_OF,   /* tok: name; expr */
    EBB__S_INDEX,      /* expr expr */
    EBB__S_TRY,        /* expr */
    EBB__S_UNARY,      /* tok: operator; expr */
    EBB__S_BINARY,     /* tok: operator; expr expr; flag SHIFT for << and >> */
    EBB__S_IF,         /* expr BLOCK, for each else if again, then [BLOCK] */
    EBB__S_MATCH,      /* expr ARM* */
    EBB__S_ARM,        /* pattern* [GUARD] expr */
    EBB__S_GUARD,      /* expr */
    EBB__S_BLOCK,      /* statement* [expr] */
    EBB__S_REQUEST,    /* tok: label; ARG* */
    EBB__S_EMIT,       /* tok: Send or Request; ARG* */
    EBB__S_HOLE,
    EBB__KINDS
} ebb__kind;

enum { EBB__FLAG_PUB = 1, EBB__FLAG_HOT = 2, EBB__FLAG_BODY = 4, EBB__FLAG_SHIFT = 8, EBB__FLAG_BROKEN = 16 };

typedef struct ebb__syntax {
    uint8_t kind, flags;
    uint16_t depth;      /* of the nodes below it */
    uint32_t first, end; /* tokens */
    uint32_t tok;        /* 0: none; a token 0 is never named */
    uint32_t child, last, next;
} ebb__syntax;

static inline ebb__syntax *ebb__syntax_at(const ebb__source *s, uint32_t node) {
    return EBB__VEC_AT(&s->nodes, ebb__syntax, node);
}

static inline const ebb__token *ebb__token_at(const ebb__source *s, uint32_t tok) {
    return EBB__VEC_AT(&s->tokens, ebb__token, tok);
}

static inline bool ebb__is_expr(uint8_t kind) {
    return kind >= EBB__S_LITERAL;
}

static inline bool ebb__is_type(uint8_t kind) {
    return kind >= EBB__S_TYPE_PATH && kind <= EBB__S_RECORD;
}

static inline bool ebb__is_pattern(uint8_t kind) {
    return kind >= EBB__S_PAT_WILD && kind <= EBB__S_PAT_FIELD;
}

/* Where a node, or a token, is in the file. */
ebb__span ebb__node_span(const ebb__source *s, uint32_t node);
ebb__span ebb__token_span(const ebb__source *s, uint32_t tok);

/* The first child of a kind, or 0. */
uint32_t ebb__child_of(const ebb__source *s, uint32_t node, ebb__kind kind);
/* How many children are of a kind. */
uint32_t ebb__children_of(const ebb__source *s, uint32_t node, ebb__kind kind);

/* The name that the node's `tok` is, and where: 0 and the whole node if it has none. Node 0 has no name. */
ebb__name ebb__node_name(const ebb__source *s, uint32_t node);
ebb__span ebb__name_span(const ebb__source *s, uint32_t node);

/* Writes the text of a node from its tokens and what is between them; of the root, the whole file. */
void ebb__tree_print(const ebb__source *s, uint32_t node, ebb_lang_write_fn *write, void *ctx);

#endif
