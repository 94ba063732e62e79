/* lang/vm.h - bytecode and the machine that runs it.
 *
 *   vm_op.def     the instructions
 *   emit*.c       the typed IR to bytecode
 *   verify.c      what may run
 *   vm.c          the interpreter
 *
 * A function has word registers and reference registers, at most EBB__REGISTERS of each. Registers have no type of
 * their own: the verifier follows the types from the start of the function through every jump. */
#ifndef EBB_LANG_VM_H
#define EBB_LANG_VM_H

#include "lang/exec.h"
#include "lang/image.h"

enum { EBB__REGISTERS = 250, EBB__CODE_MAX = 65535 };

typedef enum ebb__vm_op {
#define EBB_VM(name, a, b, c, extra, text) EBB__VM_##name,
#include "lang/vm_op.def"
#undef EBB_VM
    EBB__VM_OPS
} ebb__vm_op;

typedef enum ebb__operand {
    EBB__NO,
    EBB__IM,
    EBB__I2,
    EBB__I3,
    EBB__WD,
    EBB__WS,
    EBB__WB,
    EBB__RD,
    EBB__RS,
    EBB__RB
} ebb__operand;

typedef struct ebb__vm_info {
    const char *name;
    uint8_t operand[3]; /* ebb__operand */
    uint8_t extra;      /* words behind it */
} ebb__vm_info;
extern const ebb__vm_info ebb__vm_infos[EBB__VM_OPS];

static inline uint32_t ebb__vm_pack(ebb__vm_op op, uint32_t a, uint32_t b, uint32_t c) {
    return (uint32_t)op | a << 8 | b << 16 | c << 24;
}

/* Compiles and verifies the program, and makes the VM its way of executing. EBB_ERR_NOMEM, EBB_ERR_LIMIT;
 * EBB_ERR_INVALID: the verifier refuses what the compiler made, a bug. */
ebb_status ebb__vm_make(ebb_program *p);
void ebb__vm_free(ebb_program *p);

#endif
