/* lang/verify.c - what the interpreter may run.
 *
 * The code is decoded from its start; every jump leads to an instruction that this finds. Then the types of registers are
 * followed along every path, until nothing changes: a word register is set or not, a reference register has a type or
 * none. Where paths meet, only what they agree on stays. Every operand that is read must be there; types are those that
 * the instruction and the shapes of the program ask for. Jumps other than LOOP go forward, so every cycle costs budget.
 *
 * What this proves: an object in a register has the header of its type, or of one of its members if that is a union; so
 * each slot that an instruction reads is there and is of the kind it takes. What is left to the interpreter are
 * values: indices, tags where a CAST narrows, and that frozen objects are not written. */
#include <string.h>

#include "base/alloc.h"
#include "lang/check.h"
#include "lang/vm.h"

enum { ANY_STATE = 0x40000000 }; /* a state object of machine `type - ANY_STATE`, in any state */

typedef struct registers {
    uint32_t refs[EBB__REGISTERS]; /* type; 0: none. Of a boxed word, the word's type */
    uint8_t words[EBB__REGISTERS];
} registers;

/* An instruction that a jump leads to. */
typedef struct leader {
    uint32_t pc;
    bool reached, dirty;
    registers at;
} leader;

typedef struct verifier {
    const ebb__image *m;
    const ebb__bytecode *code;
    uint8_t *starts; /* 1: an instruction starts here; 2: a jump leads here */
    leader *leaders;
    uint32_t n_leaders;
    registers now;
    uint32_t pc;
    const char *why;
} verifier;

static bool refuse(verifier *v, const char *why) {
    if (v->why == NULL) v->why = why;
    return false;
}

static const ebb__shape *shape(const verifier *v, uint32_t type) {
    return &v->m->shapes[type];
}

/* ---- decoding ---- */

static uint32_t length(uint32_t x) {
    return 1u + ebb__vm_infos[x & 255].extra;
}

static bool is_jump(uint32_t x) {
    uint32_t op = x & 255;
    return op == EBB__VM_JUMP || op == EBB__VM_LOOP || op == EBB__VM_JUMP_IF || op == EBB__VM_JUMP_IFNOT;
}

static uint32_t target(uint32_t x) {
    return ebb__vm_infos[x & 255].operand[0] == EBB__I3 ? x >> 8 : x >> 16;
}

static bool ends(uint32_t x) {
    uint32_t op = x & 255;
    return op == EBB__VM_JUMP || op == EBB__VM_LOOP || op == EBB__VM_RETURN_W || op == EBB__VM_RETURN_R ||
           op == EBB__VM_TRAP || op == EBB__VM_UNREACHABLE;
}

static bool find_starts(verifier *v) {
    for (v->pc = 0; v->pc < v->code->n;) {
        uint32_t x = v->code->at[v->pc];
        if ((x & 255) >= EBB__VM_OPS) return refuse(v, "no such instruction");
        if (length(x) > v->code->n - v->pc) return refuse(v, "the instruction is cut");
        v->starts[v->pc] |= 1;
        v->pc += length(x);
    }
    return true;
}

static bool find_leaders(verifier *v) {
    uint32_t n = 0;
    for (v->pc = 0; v->pc < v->code->n; v->pc += length(v->code->at[v->pc])) {
        uint32_t x = v->code->at[v->pc], to = target(x);
        if (!is_jump(x)) continue;
        if (to >= v->code->n || !(v->starts[to] & 1)) return refuse(v, "the jump leads to no instruction");
        if (((x & 255) == EBB__VM_LOOP) != (to <= v->pc))
            return refuse(v, "only LOOP goes back, and only back");
        n += v->starts[to] == 1;
        v->starts[to] = 3;
    }
    v->leaders = ebb__alloc(&v->m->allocator, (n + 1) * sizeof *v->leaders);
    if (v->leaders == NULL) return false;
    for (uint32_t pc = 0; pc < v->code->n; pc++) {
        if (v->starts[pc] == 3) v->leaders[v->n_leaders++] = (leader){.pc = pc};
    }
    return true;
}

static leader *leader_at(const verifier *v, uint32_t pc) {
    uint32_t low = 0, high = v->n_leaders;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (v->leaders[middle].pc <= pc) low = middle;
        else high = middle;
    }
    return &v->leaders[low];
}

/* What is known here goes on at `pc`, as far as it agrees with what came there before. */
static void merge(verifier *v, uint32_t pc) {
    leader *l = leader_at(v, pc);
    if (!l->reached) {
        l->at = v->now;
        l->reached = l->dirty = true;
        return;
    }
    for (uint32_t i = 0; i < v->code->n_refs; i++) {
        if (l->at.refs[i] == v->now.refs[i] || l->at.refs[i] == 0) continue;
        l->at.refs[i] = 0;
        l->dirty = true;
    }
    for (uint32_t i = 0; i < v->code->n_words; i++) {
        if (!l->at.words[i] || v->now.words[i]) continue;
        l->at.words[i] = 0;
        l->dirty = true;
    }
}

/* ---- types ---- */

static bool is_type(const verifier *v, uint32_t type) {
    return type > EBB__TY_NEVER && type < v->m->n_shapes;
}

static bool is_kind(const verifier *v, uint32_t type, uint8_t kind) {
    return is_type(v, type) && shape(v, type)->kind == kind;
}

static bool is_word(const verifier *v, uint32_t type) {
    return is_type(v, type) && !shape(v, type)->is_ref;
}

static bool is_object(const verifier *v, uint32_t type) {
    return is_type(v, type) && shape(v, type)->is_ref;
}

/* Each member of `type`, or `type`, is one of `whole`. */
static bool is_part(const verifier *v, uint32_t type, uint32_t whole) {
    const ebb__shape *w = shape(v, whole);
    if (type == whole) return true;
    if (!is_kind(v, whole, EBB__TY_UNION) || !is_type(v, type)) return false;
    if (shape(v, type)->kind != EBB__TY_UNION) return ebb__shape_has(w, whole, type);
    for (uint32_t i = 0; i < shape(v, type)->n; i++) {
        if (!ebb__shape_has(w, whole, shape(v, type)->of[i])) return false;
    }
    return true;
}

/* A value of `type` where a parameter says `wanted`: self of a helper takes any state of its typestate. */
static bool fits(const verifier *v, uint32_t type, uint32_t wanted, uint32_t self) {
    if (wanted != 0) return type == wanted;
    if (type >= ANY_STATE) return type - ANY_STATE + 1 == self;
    return is_kind(v, type, EBB__TY_STATE) && shape(v, type)->typestate + 1 == self;
}

/* The type of the field at a slot; 0: there is none. */
static uint32_t field_at(const verifier *v, uint32_t type, uint32_t slot) {
    uint32_t n = UINT32_MAX;
    if (type >= ANY_STATE) {
        uint32_t machine = type - ANY_STATE;
        n = v->m->ir->machines[machine].decl->typestate->n_fields;
        for (type = 0; type < v->m->n_shapes; type++) {
            if (shape(v, type)->kind == EBB__TY_STATE && shape(v, type)->typestate == machine) break;
        }
    }
    if (!is_type(v, type)) return 0;
    const ebb__shape *s = shape(v, type);
    if (s->kind != EBB__TY_RECORD && s->kind != EBB__TY_TUPLE && s->kind != EBB__TY_STATE) return 0;
    for (uint32_t i = 0; i < s->n && i < n; i++) {
        if (s->at[i] == slot) return s->of[i];
    }
    return 0;
}

/* Of a list or map: an element, key, value. 0: it is none. */
static uint32_t part_of(const verifier *v, uint32_t type, uint8_t kind, uint32_t i) {
    return is_kind(v, type, kind) ? shape(v, type)->of[i] : 0;
}

static bool is_message(const verifier *v, uint32_t type) {
    return is_kind(v, type, EBB__TY_RECORD) && shape(v, type)->kind_id != 0;
}

static bool is_response(const verifier *v, uint32_t type) {
    if (!is_kind(v, type, EBB__TY_UNION)) return is_message(v, type);
    for (uint32_t i = 0; i < shape(v, type)->n; i++) {
        if (!is_message(v, shape(v, type)->of[i])) return false;
    }
    return true;
}

/* A union with the errors of a send, and either () or one token. */
static bool is_delivery(const verifier *v, uint32_t type, bool request) {
    const ebb__shape *s = is_kind(v, type, EBB__TY_UNION) ? shape(v, type) : NULL;
    uint32_t good = 0;
    if (s == NULL || !is_part(v, v->m->lang->check->machine_error, type)) return false;
    for (uint32_t i = 0; i < s->n && good == 0; i++) {
        if (!shape(v, s->of[i])->is_error) good = s->of[i];
    }
    if (!request) return good == EBB__TY_UNIT;
    return good == EBB__TY_REQUEST_ID || is_kind(v, good, EBB__TY_PENDING);
}

/* ---- instructions ---- */

#define A (x >> 8 & 255)
#define B (x >> 16 & 255)
#define C (x >> 24)

static bool check_operand(verifier *v, uint8_t operand, uint32_t reg) {
    switch (operand) {
    case EBB__WS:
    case EBB__WB:
        if (reg >= v->code->n_words || !v->now.words[reg]) return refuse(v, "the word is not set");
        return true;
    case EBB__RS:
    case EBB__RB:
        if (reg >= v->code->n_refs || v->now.refs[reg] == 0) return refuse(v, "the reference is not set");
        return true;
    case EBB__WD: return reg < v->code->n_words || refuse(v, "no such word register");
    case EBB__RD: return reg < v->code->n_refs || refuse(v, "no such reference register");
    default: return true;
    }
}

static bool check_operands(verifier *v, uint32_t x) {
    const ebb__vm_info *info = &ebb__vm_infos[x & 255];
    return check_operand(v, info->operand[0], A) && check_operand(v, info->operand[1], B) &&
           check_operand(v, info->operand[2], C);
}

static bool check_args(verifier *v, const uint32_t *types, uint32_t n, uint32_t self, uint32_t ref,
                       uint32_t word) {
    for (uint32_t i = 0; i < n; i++) {
        if (types[i] == 0 || shape(v, types[i])->is_ref) {
            if (!check_operand(v, EBB__RS, ref)) return false;
            if (!fits(v, v->now.refs[ref++], types[i], self))
                return refuse(v, "an argument is of another type");
        } else if (!check_operand(v, EBB__WS, word++)) {
            return false;
        }
    }
    return true;
}

static bool check_call(verifier *v, uint32_t x, uint32_t fn, uint32_t *type) {
    if (fn >= v->m->n_codes) return refuse(v, "no such function");
    const ebb__bytecode *to = &v->m->codes[fn];
    bool ref = (x & 255) == EBB__VM_CALL_R;
    *type = to->result;
    if (shape(v, to->result)->is_ref != ref) return refuse(v, "the result is of another kind");
    return check_args(v, to->params, to->n_params, to->self, B, C);
}

static bool check_texts(verifier *v, uint32_t from, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (!check_operand(v, EBB__RS, from + i)) return false;
        if (v->now.refs[from + i] != EBB__TY_STRING) return refuse(v, "a string is expected");
    }
    return true;
}

static bool check_make(verifier *v, uint32_t x, uint32_t type) {
    bool ok = is_kind(v, type, EBB__TY_RECORD) || is_kind(v, type, EBB__TY_TUPLE) ||
              is_kind(v, type, EBB__TY_STATE);
    return ok && check_args(v, shape(v, type)->of, shape(v, type)->n, 0, B, C);
}

static bool check_map(const verifier *v, uint32_t x, uint32_t map, bool key_ref, uint32_t key_reg) {
    uint32_t key = part_of(v, map, EBB__TY_MAP, 0);
    (void)x;
    if (key == 0 || shape(v, key)->is_ref != key_ref) return false;
    return !key_ref || v->now.refs[key_reg] == key;
}

/* The rules of one instruction, beside its operands. `t` and `u` are the types of the references that are read as b (or
 * a, if b is none) and c; `type` becomes that of the reference that is written. */
static bool check_types(verifier *v, uint32_t x, uint32_t y, uint32_t *type) {
    const uint32_t *refs = v->now.refs;
    const ebb__vm_info *info = &ebb__vm_infos[x & 255];
    uint32_t a = info->operand[0] == EBB__RS || info->operand[0] == EBB__RB ? refs[A] : 0;
    uint32_t b = info->operand[1] == EBB__RS ? refs[B] : 0, c = info->operand[2] == EBB__RS ? refs[C] : 0;
    uint32_t part;
    *type = a;
    switch (x & 255) {
    case EBB__VM_MOVE_R: *type = b; return true;
    case EBB__VM_OWN: return a >= ANY_STATE || is_object(v, a);
    case EBB__VM_WORD: return x >> 16 < v->m->n_words;
    case EBB__VM_CONSTANT:
        if (x >> 16 >= v->m->n_constants) return false;
        *type = v->m->constants[x >> 16]->type;
        return true;
    case EBB__VM_UNIT: *type = y; return is_type(v, y) && shape(v, y)->constant != NULL;
    case EBB__VM_CALL_W:
    case EBB__VM_CALL_R: return check_call(v, x, y, type);
    case EBB__VM_RETURN_W: return !shape(v, v->code->result)->is_ref;
    case EBB__VM_RETURN_R: return shape(v, v->code->result)->is_ref && a == v->code->result;
    case EBB__VM_BOX: *type = y; return is_word(v, y);
    case EBB__VM_UNBOX: return is_word(v, y);
    case EBB__VM_WIDEN: *type = y; return is_object(v, y) && is_part(v, b, y);
    case EBB__VM_CAST: *type = y; return is_object(v, y);
    case EBB__VM_IS: return is_type(v, y);
    case EBB__VM_MAKE: *type = y; return check_make(v, x, y);
    case EBB__VM_GET_W: return is_word(v, field_at(v, b, C));
    case EBB__VM_GET_R:
    case EBB__VM_OWN_FIELD: *type = field_at(v, b, C); return is_object(v, *type);
    case EBB__VM_SET_W: return is_word(v, field_at(v, a, C));
    case EBB__VM_SET_R: part = field_at(v, a, C); return is_object(v, part) && part == b;
    case EBB__VM_LIST: *type = y; return is_kind(v, y, EBB__TY_LIST);
    case EBB__VM_PUSH_W: return is_word(v, part_of(v, a, EBB__TY_LIST, 0));
    case EBB__VM_PUSH_R: part = part_of(v, a, EBB__TY_LIST, 0); return is_object(v, part) && part == b;
    case EBB__VM_LIST_W:
    case EBB__VM_LIST_HAS_W: return is_word(v, part_of(v, b, EBB__TY_LIST, 0));
    case EBB__VM_LIST_R:
    case EBB__VM_LIST_OWN: *type = part_of(v, b, EBB__TY_LIST, 0); return is_object(v, *type);
    case EBB__VM_LIST_SET_W: return is_word(v, part_of(v, a, EBB__TY_LIST, 0));
    case EBB__VM_LIST_SET_R: part = part_of(v, a, EBB__TY_LIST, 0); return is_object(v, part) && part == c;
    case EBB__VM_LIST_LEN: return is_kind(v, b, EBB__TY_LIST);
    case EBB__VM_LIST_HAS_R: part = part_of(v, b, EBB__TY_LIST, 0); return is_object(v, part) && part == c;
    case EBB__VM_LIST_JOIN: *type = b; return is_kind(v, b, EBB__TY_LIST) && b == c;
    case EBB__VM_MAP: *type = y; return is_kind(v, y, EBB__TY_MAP);
    case EBB__VM_MAP_WW:
    case EBB__VM_MAP_RW:
        return check_map(v, x, b, (x & 255) == EBB__VM_MAP_RW, C) &&
               is_word(v, part_of(v, b, EBB__TY_MAP, 1));
    case EBB__VM_MAP_WR:
    case EBB__VM_MAP_OWN_W:
        *type = part_of(v, b, EBB__TY_MAP, 1);
        return check_map(v, x, b, false, C) && is_object(v, *type);
    case EBB__VM_MAP_RR:
    case EBB__VM_MAP_OWN_R:
        *type = part_of(v, b, EBB__TY_MAP, 1);
        return check_map(v, x, b, true, C) && is_object(v, *type);
    case EBB__VM_MAP_SET_WW:
    case EBB__VM_MAP_SET_RW:
        return check_map(v, x, a, (x & 255) == EBB__VM_MAP_SET_RW, B) &&
               is_word(v, part_of(v, a, EBB__TY_MAP, 1));
    case EBB__VM_MAP_SET_WR:
    case EBB__VM_MAP_SET_RR:
        part = part_of(v, a, EBB__TY_MAP, 1);
        return check_map(v, x, a, (x & 255) == EBB__VM_MAP_SET_RR, B) && is_object(v, part) && part == c;
    case EBB__VM_MAP_HAS_W:
    case EBB__VM_MAP_REMOVE_W: return check_map(v, x, b, false, C);
    case EBB__VM_MAP_HAS_R:
    case EBB__VM_MAP_REMOVE_R: return check_map(v, x, b, true, C);
    case EBB__VM_MAP_LEN: return is_kind(v, b, EBB__TY_MAP);
    case EBB__VM_MAP_KEYS:
        *type = y;
        return is_kind(v, y, EBB__TY_LIST) && part_of(v, b, EBB__TY_MAP, 0) == shape(v, y)->of[0];
    case EBB__VM_KEY_W: return is_word(v, part_of(v, b, EBB__TY_MAP, 0));
    case EBB__VM_KEY_R: *type = part_of(v, b, EBB__TY_MAP, 0); return is_object(v, *type);
    case EBB__VM_VALUE_W: return is_word(v, part_of(v, b, EBB__TY_MAP, 1));
    case EBB__VM_VALUE_R: *type = part_of(v, b, EBB__TY_MAP, 1); return is_object(v, *type);
    case EBB__VM_BYTES_LEN:
    case EBB__VM_BYTES_AT: return b == EBB__TY_STRING || b == EBB__TY_BYTES;
    case EBB__VM_BYTES_JOIN: *type = b; return b == c && (b == EBB__TY_STRING || b == EBB__TY_BYTES);
    case EBB__VM_TEXT: *type = EBB__TY_STRING; return check_texts(v, B, C);
    case EBB__VM_STR_W: *type = EBB__TY_STRING; return is_word(v, y);
    case EBB__VM_STR_R: *type = EBB__TY_STRING; return true;
    case EBB__VM_SEND: *type = y; return is_message(v, c) && is_delivery(v, y, false);
    case EBB__VM_REQUEST: *type = y; return is_message(v, c) && is_delivery(v, y, true);
    case EBB__VM_REPLY: return is_response(v, a);
    case EBB__VM_REPLY_TO: return is_response(v, b);
    case EBB__VM_SPAWN:
        return is_kind(v, b, EBB__TY_STATE) && !v->m->ir->machines[shape(v, b)->typestate].spec;
    case EBB__VM_PUBLISH: return is_message(v, a) && b == EBB__TY_STRING;
    case EBB__VM_SUBSCRIBE:
    case EBB__VM_UNSUBSCRIBE: return a == EBB__TY_STRING && x >> 16 > 0 && x >> 16 < v->m->ir->n_kinds;
    case EBB__VM_PRINT:
    case EBB__VM_TRAP: return a == EBB__TY_STRING;
    case EBB__VM_ASSERT_TEXT: return b == EBB__TY_STRING;
    default: return true;
    }
}

static void write_result(verifier *v, uint32_t x, uint32_t type) {
    uint8_t operand = ebb__vm_infos[x & 255].operand[0];
    if (operand == EBB__WD || operand == EBB__WB) v->now.words[A] = 1;
    if (operand == EBB__RD || operand == EBB__RB) v->now.refs[A] = type;
}

static bool step(verifier *v, uint32_t x) {
    uint32_t y = length(x) > 1 ? v->code->at[v->pc + 1] : 0, type = 0;
    if (!check_operands(v, x)) return false;
    if (!check_types(v, x, y, &type)) return refuse(v, "the types do not fit the instruction");
    write_result(v, x, type);
    return true;
}

/* From one leader, or the start, until control leaves or comes to the next one. */
static bool follow(verifier *v, uint32_t pc) {
    for (v->pc = pc;;) {
        uint32_t x = v->code->at[v->pc];
        if (!step(v, x)) return false;
        if (is_jump(x)) merge(v, target(x));
        if (ends(x)) return true;
        v->pc += length(x);
        if (v->pc >= v->code->n) return refuse(v, "the code does not end");
        if (v->starts[v->pc] != 3) continue;
        merge(v, v->pc);
        return true;
    }
}

static bool start(verifier *v) {
    const ebb__bytecode *c = v->code;
    uint32_t ref = 0, word = 0;
    memset(&v->now, 0, sizeof v->now);
    if (c->n == 0) return refuse(v, "there is no code");
    if (c->n_refs > EBB__REGISTERS || c->n_words > EBB__REGISTERS) return refuse(v, "too many registers");
    if (c->param_refs > c->n_refs || c->param_words > c->n_words) return refuse(v, "too few registers");
    for (uint32_t i = 0; i < c->n_params; i++) {
        if (c->params[i] != 0 && !shape(v, c->params[i])->is_ref) v->now.words[word++] = 1;
        else v->now.refs[ref++] = c->params[i] != 0 ? c->params[i] : ANY_STATE + c->self - 1;
    }
    return true;
}

static bool follow_all(verifier *v) {
    bool first = v->n_leaders > 0 && v->leaders[0].pc == 0;
    if (first) merge(v, 0);
    else if (!follow(v, 0)) return false;
    for (uint32_t i = 0; i < v->n_leaders;) {
        leader *l = &v->leaders[i++];
        if (!l->dirty) continue;
        l->dirty = false;
        v->now = l->at;
        if (!follow(v, l->pc)) return false;
        i = 0;
    }
    return true;
}

bool ebb__verify(const ebb__image *m, uint32_t fn, const char **why, uint32_t *pc) {
    verifier v = {.m = m, .code = &m->codes[fn]};
    v.starts = ebb__alloc(&m->allocator, v.code->n + 1);
    bool ok = v.starts != NULL;
    if (ok) memset(v.starts, 0, v.code->n + 1);
    ok = ok && start(&v) && find_starts(&v) && find_leaders(&v) && follow_all(&v);
    uint32_t leaders = 0;
    for (uint32_t i = 0; v.leaders != NULL && i < v.code->n; i++) leaders += v.starts[i] == 3;
    ebb__free(&m->allocator, v.leaders, (leaders + 1) * sizeof *v.leaders);
    ebb__free(&m->allocator, v.starts, v.code->n + 1);
    if (why != NULL) *why = ok ? NULL : v.why;
    if (pc != NULL) *pc = v.pc;
    return ok;
}
