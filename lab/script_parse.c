/* Parses a line into an operation. The grammar is the table at the end: the arguments of each verb, in order, and
 * then its options, in any order. */
#include <string.h>

#include "base/text.h"
#include "kernel/names.h"
#include "lab/script_op.h"

/* ---- words --------------------------------------------------------------------------------------------- */

typedef enum token { T_END, T_WORD, T_STRING, T_MARK } token;

typedef struct parser {
    ebb__script *s;
    const char *line;
    size_t n, at;
    /* The current word. */
    token token;
    const char *text;
    size_t length;
    uint32_t number;   /* counted from 1 */
    ebb_status status; /* keeps the first error */
    char *message;
} parser;

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_mark(char c) {
    return c == ';' || c == '|' || c == ':';
}

/* The word that was found is shown as far as it fits, without bytes that a terminal could act on. */
static bool fail(parser *p, const char *expected) {
    enum { SHOWN = 32 };
    if (p->status != EBB_OK) return false;
    p->status = EBB_ERR_SYNTAX;
    ebb__text t = ebb__text_in(p->message, EBB__SCRIPT_MESSAGE);
    ebb__text_str(&t, "word ");
    ebb__text_u64(&t, p->number);
    if (p->token == T_END) {
        ebb__text_str(&t, ": the line ends here");
    } else {
        ebb__text_str(&t, ": found '");
        for (size_t i = 0; i < p->length && i < SHOWN; i++) {
            bool plain = p->text[i] >= 0x20 && p->text[i] <= 0x7e;
            ebb__text_bytes(&t, plain ? p->text + i : "?", 1);
        }
        ebb__text_str(&t, p->length > SHOWN ? "...'" : "'");
    }
    ebb__text_str(&t, ", expected ");
    ebb__text_str(&t, expected);
    return false;
}

static bool fail_memory(parser *p) {
    if (p->status == EBB_OK) p->status = EBB_ERR_NOMEM;
    return false;
}

static void next(parser *p) {
    while (p->at < p->n && is_space(p->line[p->at])) p->at++;
    p->number++;
    p->text = p->line + p->at;
    p->length = 0;
    p->token = T_END;
    if (p->at == p->n || p->line[p->at] == '#') return;
    size_t end = p->at + 1;
    if (is_mark(p->line[p->at])) {
        p->token = T_MARK;
    } else if (p->line[p->at] == '"') {
        while (end < p->n && p->line[end] != '"') end++;
        if (end < p->n) end++;
        p->token = T_STRING;
    } else {
        while (end < p->n && !is_space(p->line[end]) && !is_mark(p->line[end]) && p->line[end] != '#') end++;
        p->token = T_WORD;
    }
    p->length = end - p->at;
    p->at = end;
}

static bool is(const parser *p, const char *text) {
    return p->token != T_END && p->token != T_STRING && strlen(text) == p->length &&
           memcmp(text, p->text, p->length) == 0;
}

/* ---- types of words ------------------------------------------------------------------------------------ */

static const char *const option_words[] = {"in",   "as",    "collect", "cleanup", "deadline", "priority",
                                           "keep", "polls", "within",  "pending", "stuck",    "unit"};

static bool is_option(const parser *p) {
    for (size_t i = 0; i < sizeof option_words / sizeof *option_words; i++) {
        if (is(p, option_words[i])) return true;
    }
    return false;
}

static bool is_name(const parser *p) {
    if (p->token != T_WORD || p->length > EBB__SCRIPT_NAME || !is_letter(p->text[0]) || is_option(p)) {
        return false;
    }
    for (size_t i = 1; i < p->length; i++) {
        char c = p->text[i];
        if (!is_letter(c) && !is_digit(c) && c != '-' && c != '.') return false;
    }
    return true;
}

static bool parse_name(parser *p, ebb__script_word **out) {
    if (!is_name(p)) return fail(p, "a name: a letter, then up to 62 letters, digits, _ - .");
    *out = ebb__script_intern(p->s, p->text, p->length);
    if (*out == NULL) return fail_memory(p);
    next(p);
    return true;
}

/* Parses digits from the start of the word and returns their number. 0: none, or the value is above `most`. */
static size_t digits(const parser *p, uint64_t most, uint64_t *out) {
    size_t i = 0;
    *out = 0;
    for (; p->token == T_WORD && i < p->length && is_digit(p->text[i]); i++) {
        uint64_t digit = (uint64_t)(p->text[i] - '0');
        if (*out > (most - digit) / 10) return 0;
        *out = *out * 10 + digit;
    }
    return i;
}

static bool parse_number(parser *p, uint64_t least, uint64_t most, const char *expected, uint64_t *out) {
    size_t n = digits(p, most, out);
    if (n == 0 || n != p->length || *out < least) return fail(p, expected);
    next(p);
    return true;
}

static bool parse_time(parser *p, uint64_t *out) {
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", EBB_US}, {"ms", EBB_MS}, {"s", EBB_SECOND}};
    const uint64_t most = UINT64_C(365) * 24 * 3600 * EBB_SECOND;
    size_t n = digits(p, most, out);
    for (size_t i = 0; n > 0 && i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i].unit);
        if (p->length - n != length || memcmp(p->text + n, units[i].unit, length) != 0) continue;
        if (*out > most / units[i].ns) break;
        *out *= units[i].ns;
        next(p);
        return true;
    }
    return fail(p, "a time such as 10ms, in ns, us, ms or s, at most a year");
}

static bool parse_cancel_kind(parser *p, uint8_t *out) {
    for (int kind = EBB_CANCEL_USER; kind < EBB_CANCEL_PARENT; kind++) {
        if (!is(p, ebb_cancel_kind_name((ebb_cancel_kind)kind))) continue;
        *out = (uint8_t)kind;
        next(p);
        return true;
    }
    return fail(p, "a cancel kind such as USER, TIMEOUT or SHUTDOWN");
}

static bool parse_obligation_kind(parser *p, uint8_t *out) {
    for (uint32_t kind = EBB_OBLIGATION_PERMIT; kind <= EBB_OBLIGATION_TRANSACTION; kind++) {
        if (!is(p, ebb__obligation_kind_name(kind))) continue;
        *out = (uint8_t)kind;
        next(p);
        return true;
    }
    return fail(p, "permit, ack, lease, fence, io or transaction");
}

static bool is_status(const parser *p, const char *name) {
    size_t prefix = strlen("EBB_");
    return is(p, name) || is(p, name + prefix);
}

/* A name, with or without its EBB_, or a user's own number such as -1001. */
static bool parse_status(parser *p, int32_t *out) {
    static const struct {
        const char *name;
        int32_t value;
    } all[] = {
#define EBB_STATUS(name, value, text) {#name, (value)},
#include <ebb/status.def>
#undef EBB_STATUS
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!is_status(p, all[i].name)) continue;
        *out = all[i].value;
        next(p);
        return true;
    }
    if (p->token == T_WORD && p->length > 1 && p->text[0] == '-') {
        parser number = *p;
        uint64_t x;
        number.text++;
        number.length--;
        if (digits(&number, INT32_MAX, &x) == number.length && x > 1000) {
            *out = -(int32_t)x;
            next(p);
            return true;
        }
    }
    return fail(p, "a status such as OK or ERR_CLOSED, or a number below -1000");
}

static bool parse_message(parser *p, const char **out) {
    if (p->length < 2 || p->text[p->length - 1] != '"') return fail(p, "a closing quote");
    size_t n = p->length - 2;
    char *copy = ebb__arena_alloc(&p->s->arena, n + 1);
    if (copy == NULL) return fail_memory(p);
    memcpy(copy, p->text + 1, n);
    copy[n] = 0;
    *out = copy;
    next(p);
    return true;
}

/* ---- options ------------------------------------------------------------------------------------------- */

enum {
    O_IN = 1 << 0,
    O_AS = 1 << 1,
    O_COLLECT = 1 << 2,
    O_CLEANUP = 1 << 3,
    O_DEADLINE = 1 << 4,
    O_PRIORITY = 1 << 5,
    O_KEEP = 1 << 6,
    O_POLLS = 1 << 7,
    O_WITHIN = 1 << 8,
    O_PENDING = 1 << 9,
    O_STUCK = 1 << 10,
    O_UNIT = 1 << 11,
    O_MESSAGE = 1 << 12,
    O_COUNT = 1 << 13, /* a bare number */
    O_NAME = 1 << 14   /* a bare name */
};

#define POLLS_EXPECTED "a number of polls, 1 to 4294967294"
#define PUMP_EXPECTED  "a number of polls, 1 to 10000"

static bool flag(parser *p, bool *out) {
    *out = true;
    next(p);
    return true;
}

static bool parse_polls(parser *p, uint32_t *out) {
    uint64_t x;
    if (!parse_number(p, 1, EBB_POLLS_UNBOUNDED - 1, POLLS_EXPECTED, &x)) return false;
    *out = (uint32_t)x;
    return true;
}

/* The option of `allowed` that the current word begins; 0: none. */
static uint32_t option_of(const parser *p, uint32_t allowed) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < sizeof option_words / sizeof *option_words; i++) {
        if (is(p, option_words[i])) found = 1u << i;
    }
    if (p->token == T_STRING) found = O_MESSAGE;
    if (found == 0 && p->token == T_WORD) {
        if (is_digit(p->text[0])) found = O_COUNT;
        if (is_name(p)) found = O_NAME;
    }
    return found & allowed;
}

_Static_assert(O_IN == 1 && O_AS == 2 && O_UNIT == 1 << 11, "the order of option_words");

static bool parse_option(parser *p, uint32_t option, ebb__script_op *op) {
    uint64_t x;
    if (option != O_MESSAGE && option != O_COUNT && option != O_NAME && option != O_COLLECT &&
        option != O_CLEANUP && option != O_KEEP && option != O_STUCK && option != O_UNIT) {
        next(p); /* skip the word; its value follows */
    }
    switch (option) {
    case O_IN: return parse_name(p, &op->in);
    case O_AS: return parse_name(p, &op->as);
    case O_COLLECT: return flag(p, &op->collect);
    case O_CLEANUP: return flag(p, &op->cleanup);
    case O_KEEP: return flag(p, &op->keep);
    case O_STUCK: return flag(p, &op->stuck);
    case O_UNIT: return flag(p, &op->unit);
    case O_WITHIN:
    case O_DEADLINE: op->timed = true; return parse_time(p, &op->span);
    case O_POLLS: return parse_polls(p, &op->polls);
    case O_PENDING: return parse_number(p, 0, 1000000, "a number of polls, up to 1000000", &op->number);
    case O_PRIORITY:
        if (!parse_number(p, 0, 255, "a priority, 0 to 255", &x)) return false;
        op->priority = (uint8_t)x;
        return true;
    case O_MESSAGE: return parse_message(p, &op->message);
    case O_COUNT: return parse_number(p, 1, EBB__SCRIPT_PUMP, PUMP_EXPECTED, &op->number);
    default: return parse_name(p, &op->name);
    }
}

static bool parse_options(parser *p, uint32_t allowed, ebb__script_op *op) {
    for (uint32_t option; (option = option_of(p, allowed)) != 0;) {
        if (!parse_option(p, option, op)) return false;
        allowed &= ~option;
    }
    return true;
}

/* ---- the grammar --------------------------------------------------------------------------------------- */

enum { HOST = 1, STEP = 2, BOTH = 3 };

/* Kinds of arguments. */
typedef enum argument {
    A_NONE,
    A_NAME,
    A_NAMES,
    A_NAME_CANCEL,
    A_NAME_OBLIGATION,
    A_TIME,
    A_NUMBERS,
    A_STATUS,
    A_END,
    A_BODY
} argument;

static const struct rule {
    const char *word;
    uint8_t where, argument;
    uint16_t options;
} rules[] = {
    [V_ABORT] = {"abort", BOTH, A_NAME, 0},
    [V_ADVANCE] = {"advance", HOST, A_TIME, 0},
    [V_BODY] = {"body", HOST, A_BODY, 0},
    [V_CANCEL] = {"cancel", BOTH, A_NAME_CANCEL, O_MESSAGE | O_WITHIN | O_POLLS | O_PRIORITY},
    [V_CANCEL_TASK] = {"cancel-task", BOTH, A_NAME_CANCEL, O_MESSAGE},
    [V_CHAIN] = {"chain", HOST, A_NAME, 0},
    [V_CHECK] = {"check", HOST, A_NAMES, 0},
    [V_CHECKPOINT] = {"checkpoint", STEP, A_NONE, 0},
    [V_CLOSE] = {"close", BOTH, A_NAME, 0},
    [V_COMMIT] = {"commit", BOTH, A_NAME, 0},
    [V_DEFER] = {"defer", BOTH, A_NONE, O_NAME | O_PENDING | O_STUCK | O_AS},
    [V_EXPECT] = {"expect", STEP, A_STATUS, 0},
    [V_FAULT] = {"fault", STEP, A_NONE, 0},
    [V_FORCE] = {"force", BOTH, A_NAME, 0},
    [V_FORCE_TASK] = {"force-task", BOTH, A_NAME, 0},
    [V_IGNORE] = {"ignore", STEP, A_NONE, 0},
    [V_JOIN] = {"join", BOTH, A_NAME, 0},
    [V_JOIN_TASK] = {"join-task", BOTH, A_NAME, 0},
    [V_LOOP] = {"loop", STEP, A_NONE, 0},
    [V_MASK] = {"mask", STEP, A_NONE, 0},
    [V_OPEN] = {"open", BOTH, A_NAME, O_IN | O_COLLECT | O_CLEANUP | O_UNIT | O_DEADLINE | O_PRIORITY},
    [V_PARK] = {"park", STEP, A_NONE, 0},
    [V_PUMP] = {"pump", BOTH, A_NONE, O_COUNT},
    [V_RESERVE] = {"reserve", BOTH, A_NAME_OBLIGATION, O_IN},
    [V_RETURN] = {"return", STEP, A_END, 0},
    [V_SLEEP] = {"sleep", STEP, A_TIME, 0},
    [V_SPAWN] = {"spawn", BOTH, A_NAME, O_IN | O_KEEP | O_DEADLINE | O_POLLS | O_PRIORITY | O_AS},
    [V_TURN] = {"turn", HOST, A_NUMBERS, 0},
    [V_UNMASK] = {"unmask", STEP, A_NONE, 0},
    [V_WAKE] = {"wake", BOTH, A_NAME, 0},
    [V_WITNESS] = {"witness", HOST, A_NAMES, 0},
    [V_YIELD] = {"yield", STEP, A_NONE, 0},
};

static bool parse_end(parser *p, int32_t *out) {
    parser before = *p;
    if (!parse_status(p, out)) return false;
    if (*out <= 0) return true;
    *p = before;
    return fail(p, "a status that ends a task");
}

static bool parse_argument(parser *p, argument a, ebb__script_op *op) {
    switch (a) {
    case A_NAME:
    case A_BODY: return parse_name(p, &op->name);
    case A_NAMES: return parse_name(p, &op->name) && parse_name(p, &op->other);
    case A_NAME_CANCEL: return parse_name(p, &op->name) && parse_cancel_kind(p, &op->kind);
    case A_NAME_OBLIGATION: return parse_name(p, &op->name) && parse_obligation_kind(p, &op->kind);
    case A_TIME: return parse_time(p, &op->span);
    case A_NUMBERS:
        return parse_number(p, 1, UINT32_MAX, "a host turn, 1 or more", &op->number) &&
               parse_number(p, 1, UINT32_MAX, "a microtask batch, 1 or more", &op->second);
    case A_STATUS: return parse_status(p, &op->status);
    case A_END: return parse_end(p, &op->status);
    default: return true;
    }
}

static bool parse_op(parser *p, uint32_t where, ebb__script_op *op) {
    *op = (ebb__script_op){.verb = V_NOTHING};
    for (uint32_t verb = 0; verb < V_NOTHING; verb++) {
        const struct rule *r = &rules[verb];
        if (p->token != T_WORD || !is(p, r->word)) continue;
        if ((r->where & where) == 0) {
            return fail(p, where == HOST ? "something that the host does; this is a task's step"
                                         : "a step; this is for the host only");
        }
        op->verb = (ebb__script_verb)verb;
        next(p);
        if (!parse_argument(p, (argument)r->argument, op) || !parse_options(p, r->options, op)) return false;
        bool bodiless = where == STEP && verb == V_SPAWN && op->as == NULL;
        return !bodiless || fail(p, "'as' and the name of a body");
    }
    return fail(p, where == HOST ? "a verb such as open, spawn, cancel or pump"
                                 : "a step such as park, checkpoint or return");
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

/* An upper bound of the number of steps from here to the end of the line. */
static size_t steps_ahead(const parser *p) {
    size_t n = 1;
    for (size_t i = p->at; i < p->n && n < EBB__SCRIPT_BODY; i++) n += p->line[i] == ';';
    return n;
}

/* Steps up to a `|` or the end of the line; an empty list is allowed. */
static bool parse_steps(parser *p, const ebb__script_op **out, uint32_t *n) {
    size_t room = steps_ahead(p);
    ebb__script_op *ops = ebb__arena_alloc(&p->s->arena, room * sizeof *ops);
    if (ops == NULL) return fail_memory(p);
    *out = ops;
    *n = 0;
    while (p->token != T_END && !is(p, "|")) {
        if (*n == room) return fail(p, "no more than 1024 steps");
        if (!parse_op(p, STEP, &ops[*n])) return false;
        ++*n;
        if (is(p, ";")) next(p);
        else if (p->token != T_END && !is(p, "|")) return fail(p, "';', '|' or the end of the line");
    }
    return true;
}

static bool parse_body(parser *p, const ebb__script_body **out) {
    ebb__script_body *b = ebb__arena_zero(&p->s->arena, sizeof *b);
    if (b == NULL) return fail_memory(p);
    next(p); /* the colon */
    if (!parse_steps(p, &b->steps, &b->n_steps)) return false;
    if (is(p, "|")) {
        next(p);
        if (!parse_steps(p, &b->cleanup, &b->n_cleanup)) return false;
    }
    *out = b;
    return true;
}

static bool parse_line(parser *p, ebb__script_op *op) {
    next(p);
    if (p->token == T_END) return true;
    if (!parse_op(p, HOST, op)) return false;
    if (op->verb == V_BODY || (op->verb == V_SPAWN && op->as == NULL)) {
        if (!is(p, ":")) return fail(p, "':' and steps");
        if (!parse_body(p, &op->body)) return false;
    }
    return p->token == T_END || fail(p, "the end of the line");
}

ebb_status ebb__script_parse(ebb__script *s, const char *line, size_t n, ebb__script_op *out,
                             char message[EBB__SCRIPT_MESSAGE]) {
    parser p = {.s = s, .line = line, .n = n, .message = message};
    *out = (ebb__script_op){.verb = V_NOTHING};
    message[0] = 0;
    (void)parse_line(&p, out);
    return p.status;
}
