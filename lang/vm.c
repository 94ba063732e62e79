/* lang/vm.c - the interpreter. It relies on what the verifier has proved: operands are registers of the function with
 * a value of the right type, jumps stay inside of the function, only LOOP and CALL go on for ever. What depends on values
 * is checked here: arithmetic, indices, tags, and that nothing frozen is written.
 *
 * Each instruction is a label of a computed goto, or with EBB__VM_SWITCH, or without GCC's extensions, a case. */
#include "lang/vm.h"

#include <string.h>

#include "base/alloc.h"
#include "lang/host.h"

#if defined __GNUC__ && !defined EBB__VM_SWITCH
#define COMPUTED 1
#pragma GCC diagnostic ignored "-Wpedantic"
#else
#define COMPUTED 0
#endif

typedef struct frame {
    const ebb__bytecode *code;
    const uint32_t *pc; /* of the caller, behind the call */
    uint32_t words, refs;
    uint8_t to;
    bool ref;
} frame;

typedef struct ebb__vm {
    ebb__image *image;
    ebb_allocator allocator;
    uint64_t *words;
    ebb__object **refs;
    uint32_t n_words, n_refs; /* of the stacks */
    frame frames[EBB__CALL_DEPTH];
} ebb__vm;

/* ---- traps ---- */

static ebb__span place_of(const ebb__bytecode *code, const uint32_t *pc) {
    uint32_t at = (uint32_t)(pc - code->at), low = 0, high = code->n_places;
    if (high == 0) return (ebb__span){0};
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (code->places[middle].pc <= at) low = middle;
        else high = middle;
    }
    return code->places[low].span;
}

static void locate(ebb__run *run, const ebb__bytecode *code, const uint32_t *pc) {
    if (run->trap.span.n == 0 && run->trap.span.at == 0) run->trap.span = place_of(code, pc);
}

/* ---- what is more than a line ---- */

static bool div_i(int64_t a, int64_t b, int64_t *out) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *out = a / b;
    return true;
}

static bool has_tag(const ebb__shape *shapes, const ebb__object *o, uint32_t type) {
    return o->type == type || ebb__shape_has(&shapes[type], type, o->type);
}

static bool is_frozen(const ebb__object *o) {
    return (o->flags & EBB__FROZEN) != 0;
}

static ebb__object *make(ebb__run *run, uint32_t type, ebb__object *const *refs, const uint64_t *words) {
    const ebb__shape *s = &run->shapes[type];
    ebb__object *o = ebb__object_make(run, type);
    uint32_t ref = 0, word = 0;
    if (o == NULL) return NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        if (run->shapes[s->of[i]].is_ref) o->slots[s->at[i]].ref = refs[ref++];
        else o->slots[s->at[i]].word = words[word++];
    }
    return o;
}

/* Replaces what a slot refers to by something that may be changed. */
static ebb__object *own_slot(ebb__run *run, ebb__object *of, ebb__value *slot) {
    if (is_frozen(of)) {
        (void)ebb__run_trap(run, EBB__TRAP_TAG, (ebb__span){0});
        return NULL;
    }
    ebb__object *o = ebb__object_own(run, slot->ref);
    if (o != NULL) slot->ref = o;
    return o;
}

static ebb__object *keys(ebb__run *run, ebb__object *map, uint32_t type) {
    uint32_t n = ebb__dict_len(run, map);
    ebb__object *list = ebb__array_new(run, type, n);
    for (uint32_t i = 0; list != NULL && i < n; i++) *ebb__array_at(list, i) = *ebb__dict_key(run, map, i);
    return list;
}

static ebb__object *join_bytes(ebb__run *run, const ebb__object *a, const ebb__object *b) {
    ebb__object *o = ebb__bytes_new(run, a->type, NULL, (size_t)a->n + b->n);
    if (o == NULL) return NULL;
    memcpy(ebb__object_bytes(o), ebb__object_bytes(a), a->n);
    memcpy(ebb__object_bytes(o) + a->n, ebb__object_bytes(b), b->n);
    return o;
}

static ebb__object *join_texts(ebb__run *run, ebb__object *const *parts, uint32_t n) {
    size_t size = 0, at = 0;
    for (uint32_t i = 0; i < n; i++) size += parts[i]->n;
    ebb__object *o = ebb__bytes_new(run, EBB__TY_STRING, NULL, size);
    for (uint32_t i = 0; o != NULL && i < n; i++) {
        memcpy(ebb__object_bytes(o) + at, ebb__object_bytes(parts[i]), parts[i]->n);
        at += parts[i]->n;
    }
    return o;
}

/* The type of the token that a request gives: the member that is no error. */
static uint32_t token_of(const ebb__shape *shapes, uint32_t type) {
    const ebb__shape *s = &shapes[type];
    for (uint32_t i = 0; i < s->n; i++) {
        if (!shapes[s->of[i]].is_error) return s->of[i];
    }
    return EBB__TY_REQUEST_ID;
}

static bool explicit_trap(ebb__run *run, ebb__trap_kind kind, const ebb__object *text) {
    if (run->trap.kind == EBB__TRAP_NONE) run->trap.text = text;
    return ebb__run_trap(run, kind, (ebb__span){0});
}

/* ---- the loop: one row an instruction ---- */

/* clang-format off */

#define A       (x >> 8 & 255)
#define B       (x >> 16 & 255)
#define C       (x >> 24)
#define WIDE    (x >> 16)
#define EXTRA   (*pc++)
#define SHAPES  (run->shapes)
#define I(r)    ((int64_t)w[r])
#define TRAP(k) do { (void)ebb__run_trap(run, EBB__TRAP_##k, (ebb__span){0}); goto failed; } while (0)
#define TRY(condition) do { if (EBB__UNLIKELY(!(condition))) goto failed; } while (0)
#define MADE(target, value) do { ebb__object *made = (value); TRY(made != NULL); r[target] = made; } while (0)
#define WORDS(name, value) OP(name) w[A] = (uint64_t)(value); NEXT
#define CHECKED(name, type, builtin)                                                                         \
    OP(name) {                                                                                               \
        type value;                                                                                          \
        if (EBB__UNLIKELY(builtin((type)w[B], (type)w[C], &value))) TRAP(OVERFLOW);                          \
        w[A] = (uint64_t)value;                                                                              \
    }                                                                                                        \
    NEXT
#define COMPARED(name, test)                                                                                 \
    OP(name) {                                                                                               \
        int order;                                                                                           \
        TRY(ebb__object_compare(run, r[B], r[C], &order));                                                   \
        w[A] = order test 0;                                                                                 \
    }                                                                                                        \
    NEXT
#define ELEMENT(name, target, member)                                                                        \
    OP(name) {                                                                                               \
        if (EBB__UNLIKELY(w[C] >= ebb__array_len(r[B]))) TRAP(INDEX);                                         \
        target[A] = ebb__array_at(r[B], (uint32_t)w[C])->member;                                              \
    }                                                                                                        \
    NEXT
#define LOOKUP(name, target, member, key)                                                                    \
    OP(name) {                                                                                               \
        uint32_t at;                                                                                         \
        if (!ebb__dict_find(run, r[B], key, &at)) TRAP(INDEX);                                                \
        target[A] = ebb__dict_value(run, r[B], at)->member;                                                   \
    }                                                                                                        \
    NEXT
#define PUT(name, key, value)                                                                                \
    OP(name) {                                                                                               \
        if (is_frozen(r[A])) TRAP(TAG);                                                                      \
        MADE(A, ebb__dict_set(run, r[A], key, value));                                                        \
    }                                                                                                        \
    NEXT
#define PLACE(name, target, of, member)                                                                      \
    OP(name) {                                                                                               \
        if (w[C] >= ebb__dict_len(run, r[B])) TRAP(INDEX);                                                    \
        target[A] = of(run, r[B], (uint32_t)w[C])->member;                                                   \
    }                                                                                                        \
    NEXT
#define WORD(reg) ((ebb__value){.word = w[reg]})
#define REF(reg)  ((ebb__value){.ref = r[reg]})

#if COMPUTED
#define OP(name) op_##name:
#define NEXT  do { x = *pc++; goto *labels[x & 255]; } while (0);
#define START NEXT
#define END
#else
#define OP(name) case EBB__VM_##name:
#define NEXT  continue;
#define START for (;;) { x = *pc++; switch (x & 255) {
#define END   default: TRAP(TAG); } }
#endif

static bool interpret(ebb__vm *vm, ebb__run *run, const ebb__bytecode *code, ebb__value *out) {
#if COMPUTED
    static const void *const labels[] = {
#define EBB_VM(name, a, b, c, extra, text) &&op_##name,
#include "lang/vm_op.def"
#undef EBB_VM
    };
#endif
    const uint32_t *pc = code->at;
    uint64_t *w = vm->words;
    ebb__object **r = vm->refs;
    uint32_t x, depth = 0;
    START
    WORDS(MOVE_W, w[B])
    OP(MOVE_R) r[A] = r[B]; NEXT
    OP(SHARE) ebb__object_share(r[A]); NEXT
    OP(OWN) MADE(A, ebb__object_own(run, r[A])); NEXT
    WORDS(INT, (int64_t)(int16_t)WIDE)
    WORDS(WORD, vm->image->words[WIDE])
    OP(CONSTANT) r[A] = vm->image->constants[WIDE]; NEXT
    OP(UNIT) r[A] = SHAPES[EXTRA].constant; NEXT
    CHECKED(ADD_I, int64_t, __builtin_add_overflow)
    CHECKED(SUB_I, int64_t, __builtin_sub_overflow)
    CHECKED(MUL_I, int64_t, __builtin_mul_overflow)
    CHECKED(ADD_U, uint64_t, __builtin_add_overflow)
    CHECKED(SUB_U, uint64_t, __builtin_sub_overflow)
    CHECKED(MUL_U, uint64_t, __builtin_mul_overflow)
    OP(DIV_I) { int64_t value; if (!div_i(I(B), I(C), &value)) TRAP(DIVIDE); w[A] = (uint64_t)value; } NEXT
    OP(REM_I) { int64_t value; if (!div_i(I(B), I(C), &value)) TRAP(DIVIDE); w[A] = (uint64_t)(I(B) % I(C)); } NEXT
    OP(DIV_U) if (w[C] == 0) TRAP(DIVIDE); w[A] = w[B] / w[C]; NEXT
    OP(REM_U) if (w[C] == 0) TRAP(DIVIDE); w[A] = w[B] % w[C]; NEXT
    WORDS(AND, w[B] & w[C])
    WORDS(OR, w[B] | w[C])
    WORDS(XOR, w[B] ^ w[C])
    OP(SHL) if (w[C] >= 64) TRAP(SHIFT); w[A] = w[B] << w[C]; NEXT
    OP(SHR_U) if (w[C] >= 64) TRAP(SHIFT); w[A] = w[B] >> w[C]; NEXT
    OP(SHR_I) if (w[C] >= 64) TRAP(SHIFT); w[A] = (uint64_t)(I(B) >> w[C]); NEXT
    OP(NEG) if (I(B) == INT64_MIN) TRAP(OVERFLOW); w[A] = (uint64_t)-I(B); NEXT
    WORDS(NOT, w[B] == 0)
    WORDS(BIT_NOT, ~w[B])
    OP(TO_I) if (w[B] > INT64_MAX) TRAP(CONVERT); w[A] = w[B]; NEXT
    OP(TO_U) if (I(B) < 0) TRAP(CONVERT); w[A] = w[B]; NEXT
    WORDS(EQ_W, w[B] == w[C])
    WORDS(NE_W, w[B] != w[C])
    WORDS(LT_I, I(B) < I(C))
    WORDS(LE_I, I(B) <= I(C))
    WORDS(LT_U, w[B] < w[C])
    WORDS(LE_U, w[B] <= w[C])
    COMPARED(EQ_R, ==)
    COMPARED(NE_R, !=)
    COMPARED(LT_R, <)
    COMPARED(LE_R, <=)
    OP(JUMP) pc = code->at + (x >> 8); NEXT
    OP(JUMP_IF) if (w[A]) pc = code->at + WIDE; NEXT
    OP(JUMP_IFNOT) if (!w[A]) pc = code->at + WIDE; NEXT
    OP(LOOP) if (--run->budget < 0) TRAP(BUDGET); pc = code->at + (x >> 8); NEXT
    OP(CALL_W)
    OP(CALL_R) {
        const ebb__bytecode *to = &vm->image->codes[EXTRA];
        frame *f = &vm->frames[depth];
        if (--run->budget < 0) TRAP(BUDGET);
        if (depth + 1 == EBB__CALL_DEPTH) TRAP(DEPTH);
        *f = (frame){code, pc, (uint32_t)(w - vm->words), (uint32_t)(r - vm->refs), (uint8_t)A,
                     (x & 255) == EBB__VM_CALL_R};
        uint64_t *words = w + code->n_words;
        ebb__object **refs = r + code->n_refs;
        if (to->param_words > 0) memcpy(words, w + C, to->param_words * sizeof *w);
        if (to->param_refs > 0) memcpy(refs, r + B, to->param_refs * sizeof *r);
        depth++;
        w = words;
        r = refs;
        code = to;
        pc = code->at;
    }
    NEXT
    OP(RETURN_W)
    OP(RETURN_R) {
        bool ref = (x & 255) == EBB__VM_RETURN_R;
        ebb__value value = ref ? REF(A) : WORD(A);
        if (depth == 0) {
            *out = value;
            return true;
        }
        const frame *f = &vm->frames[--depth];
        code = f->code;
        pc = f->pc;
        w = vm->words + f->words;
        r = vm->refs + f->refs;
        if (f->ref) r[f->to] = value.ref;
        else w[f->to] = value.word;
    }
    NEXT
    OP(BOX) { uint32_t type = EXTRA; MADE(A, ebb__object_box(run, type, w[B])); } NEXT
    OP(UNBOX) if (r[B]->type != EXTRA) TRAP(TAG); w[A] = r[B]->slots[0].word; NEXT
    OP(WIDEN) r[A] = r[B]; pc++; NEXT
    OP(CAST) { uint32_t type = EXTRA; if (!has_tag(SHAPES, r[B], type)) TRAP(TAG); r[A] = r[B]; } NEXT
    OP(IS) { uint32_t type = EXTRA; w[A] = has_tag(SHAPES, r[B], type); } NEXT
    WORDS(IS_ERROR, SHAPES[r[B]->type].is_error)
    OP(MAKE) { uint32_t type = EXTRA; MADE(A, make(run, type, r + B, w + C)); } NEXT
    WORDS(GET_W, r[B]->slots[C].word)
    OP(GET_R) r[A] = r[B]->slots[C].ref; NEXT
    OP(SET_W) if (is_frozen(r[A])) TRAP(TAG); r[A]->slots[C].word = w[B]; NEXT
    OP(SET_R) if (is_frozen(r[A])) TRAP(TAG); r[A]->slots[C].ref = r[B]; NEXT
    OP(OWN_FIELD) MADE(A, own_slot(run, r[B], &r[B]->slots[C])); NEXT
    OP(LIST) { uint32_t type = EXTRA; MADE(A, ebb__array_new(run, type, 0)); } NEXT
    OP(PUSH_W) if (is_frozen(r[A])) TRAP(TAG); MADE(A, ebb__array_push(run, r[A], WORD(B))); NEXT
    OP(PUSH_R) if (is_frozen(r[A])) TRAP(TAG); MADE(A, ebb__array_push(run, r[A], REF(B))); NEXT
    ELEMENT(LIST_W, w, word)
    ELEMENT(LIST_R, r, ref)
    OP(LIST_SET_W)
    OP(LIST_SET_R) {
        if (w[B] >= ebb__array_len(r[A])) TRAP(INDEX);
        if (is_frozen(r[A])) TRAP(TAG);
        *ebb__array_at(r[A], (uint32_t)w[B]) = (x & 255) == EBB__VM_LIST_SET_R ? REF(C) : WORD(C);
    }
    NEXT
    OP(LIST_OWN) {
        if (w[C] >= ebb__array_len(r[B])) TRAP(INDEX);
        MADE(A, own_slot(run, r[B], ebb__array_at(r[B], (uint32_t)w[C])));
    }
    NEXT
    WORDS(LIST_LEN, ebb__array_len(r[B]))
    OP(LIST_HAS_W) TRY(ebb__array_has(run, r[B], WORD(C), &w[A])); NEXT
    OP(LIST_HAS_R) TRY(ebb__array_has(run, r[B], REF(C), &w[A])); NEXT
    OP(LIST_JOIN) MADE(A, ebb__array_join(run, r[B], r[C])); NEXT
    OP(MAP) { uint32_t type = EXTRA; MADE(A, ebb__dict_new(run, type, 0)); } NEXT
    LOOKUP(MAP_WW, w, word, WORD(C))
    LOOKUP(MAP_WR, r, ref, WORD(C))
    LOOKUP(MAP_RW, w, word, REF(C))
    LOOKUP(MAP_RR, r, ref, REF(C))
    PUT(MAP_SET_WW, WORD(B), WORD(C))
    PUT(MAP_SET_WR, WORD(B), REF(C))
    PUT(MAP_SET_RW, REF(B), WORD(C))
    PUT(MAP_SET_RR, REF(B), REF(C))
    OP(MAP_OWN_W)
    OP(MAP_OWN_R) {
        uint32_t at;
        if (!ebb__dict_find(run, r[B], (x & 255) == EBB__VM_MAP_OWN_R ? REF(C) : WORD(C), &at)) TRAP(INDEX);
        MADE(A, own_slot(run, r[B], ebb__dict_value(run, r[B], at)));
    }
    NEXT
    OP(MAP_HAS_W) { uint32_t at; w[A] = ebb__dict_find(run, r[B], WORD(C), &at); } NEXT
    OP(MAP_HAS_R) { uint32_t at; w[A] = ebb__dict_find(run, r[B], REF(C), &at); } NEXT
    OP(MAP_REMOVE_W)
    OP(MAP_REMOVE_R) {
        uint32_t at;
        if (is_frozen(r[B])) TRAP(TAG);
        bool found = ebb__dict_find(run, r[B], (x & 255) == EBB__VM_MAP_REMOVE_R ? REF(C) : WORD(C), &at);
        if (found) ebb__dict_remove(run, r[B], at);
        w[A] = found;
    }
    NEXT
    WORDS(MAP_LEN, ebb__dict_len(run, r[B]))
    OP(MAP_KEYS) { uint32_t type = EXTRA; MADE(A, keys(run, r[B], type)); } NEXT
    PLACE(KEY_W, w, ebb__dict_key, word)
    PLACE(KEY_R, r, ebb__dict_key, ref)
    PLACE(VALUE_W, w, ebb__dict_value, word)
    PLACE(VALUE_R, r, ebb__dict_value, ref)
    WORDS(BYTES_LEN, r[B]->n)
    OP(BYTES_AT) if (w[C] >= r[B]->n) TRAP(INDEX); w[A] = ebb__object_bytes(r[B])[w[C]]; NEXT
    OP(BYTES_JOIN) MADE(A, join_bytes(run, r[B], r[C])); NEXT
    OP(TEXT) MADE(A, join_texts(run, r + B, C)); NEXT
    OP(STR_W) { uint32_t type = EXTRA; MADE(A, ebb__value_text(run, type, WORD(B))); } NEXT
    OP(STR_R) MADE(A, ebb__object_text(run, r[B])); NEXT
    WORDS(SELF, run->self)
    OP(SEND) { ebb__object *value; pc++; TRY(ebb__do_send(run, w[B], r[C], &value)); r[A] = value; } NEXT
    OP(REQUEST) {
        ebb__object *value;
        uint32_t type = EXTRA, label = EXTRA;
        TRY(ebb__do_request(run, w[B], r[C], label, token_of(SHAPES, type), &value));
        r[A] = value;
    }
    NEXT
    OP(REPLY) TRY(ebb__do_reply(run, 0, r[A])); NEXT
    OP(REPLY_TO) TRY(ebb__do_reply(run, w[A], r[B])); NEXT
    OP(FORGET) TRY(ebb__do_forget(run, w[A])); NEXT
    OP(SPAWN) TRY(ebb__do_spawn(run, r[B], &w[A])); NEXT
    OP(START) TRY(ebb__do_start(run, w[A])); NEXT
    OP(STOP) TRY(ebb__do_stop(run, w[A])); NEXT
    OP(PUBLISH) TRY(ebb__do_publish(run, r[A], r[B])); NEXT
    OP(SUBSCRIBE) TRY(ebb__do_subscribe(run, WIDE, r[A], true)); NEXT
    OP(UNSUBSCRIBE) TRY(ebb__do_subscribe(run, WIDE, r[A], false)); NEXT
    WORDS(NOW, ebb__do_now(run))
    OP(PRINT) TRY(ebb__do_print(run, r[A])); NEXT
    OP(ASSERT) if (!w[A]) TRAP(ASSERT); NEXT
    OP(ASSERT_TEXT) if (!w[A]) TRY(explicit_trap(run, EBB__TRAP_ASSERT, r[B])); NEXT
    OP(TRAP) TRY(explicit_trap(run, EBB__TRAP_EXPLICIT, r[A])); NEXT
    OP(UNREACHABLE) TRAP(TAG);
    END
failed:
    locate(run, code, pc - 1);
    return false;
}

/* clang-format on */

/* ---- as a way of executing ---- */

static bool call(void *ctx, ebb__run *run, uint32_t fn, const ebb__value *args, ebb__value *out) {
    ebb__vm *vm = ctx;
    const ebb__bytecode *code = &vm->image->codes[fn];
    uint32_t word = 0, ref = 0;
    for (uint32_t i = 0; i < code->n_params; i++) {
        if (run->shapes[code->params[i]].is_ref) vm->refs[ref++] = args[i].ref;
        else vm->words[word++] = args[i].word;
    }
    return interpret(vm, run, code, out);
}

/* The stacks have room for the deepest call of the largest function. */
static ebb_status make_stacks(ebb__vm *vm) {
    for (uint32_t i = 0; i < vm->image->n_codes; i++) {
        const ebb__bytecode *code = &vm->image->codes[i];
        if (code->n_words > vm->n_words) vm->n_words = code->n_words;
        if (code->n_refs > vm->n_refs) vm->n_refs = code->n_refs;
    }
    vm->n_words = (vm->n_words + 1) * EBB__CALL_DEPTH;
    vm->n_refs = (vm->n_refs + 1) * EBB__CALL_DEPTH;
    vm->words = ebb__alloc(&vm->allocator, vm->n_words * sizeof *vm->words);
    vm->refs = ebb__alloc(&vm->allocator, vm->n_refs * sizeof *vm->refs);
    return vm->words != NULL && vm->refs != NULL ? EBB_OK : EBB_ERR_NOMEM;
}

ebb_status ebb__vm_make(ebb_program *p) {
    ebb__vm *vm = ebb__alloc(&p->allocator, sizeof *vm);
    if (vm == NULL) return EBB_ERR_NOMEM;
    memset(vm, 0, sizeof *vm);
    p->vm = vm;
    vm->image = &p->image;
    vm->allocator = p->allocator;
    ebb_status st = ebb__emit_all(&p->image);
    for (uint32_t i = 0; st == EBB_OK && i < p->image.n_codes; i++) {
        const char *why;
        if (!ebb__verify(&p->image, i, &why, NULL)) st = why == NULL ? EBB_ERR_NOMEM : EBB_ERR_INVALID;
    }
    if (st == EBB_OK) st = make_stacks(vm);
    p->exec = (ebb__exec){call, vm};
    return st;
}

void ebb__vm_free(ebb_program *p) {
    ebb__vm *vm = p->vm;
    if (vm == NULL) return;
    ebb__free(&p->allocator, vm->words, vm->n_words * sizeof *vm->words);
    ebb__free(&p->allocator, vm->refs, vm->n_refs * sizeof *vm->refs);
    ebb__free(&p->allocator, vm, sizeof *vm);
    p->vm = NULL;
}
