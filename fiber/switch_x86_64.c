/* The switch for the System V ABI of x86-64. It saves six registers, the control words of SSE and x87 and the stack
 * pointer; the caller saves all others, as for any call. The signal mask is left alone: saving it, as swapcontext
 * does, takes two system calls.
 *
 * The frame that a switch leaves, from the stack pointer up: the control words (8 bytes), r15, r14, r13, r12, rbx,
 * rbp, the return address. Both halves of the switch use the same frame layout, so that the unwind information is
 * right before and after the stack pointer changes. */
#include "fiber/switch.h"

#include <stdint.h>

#if defined(__x86_64__) && defined(__LP64__)

__asm__(".pushsection .text, \"ax\", @progbits\n\t"
        ".p2align 4\n\t"
        ".globl ebb__switch\n\t"
        ".hidden ebb__switch\n\t"
        ".type ebb__switch, @function\n"
        "ebb__switch:\n\t"
        ".cfi_startproc\n\t"
        "pushq %rbp\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        ".cfi_rel_offset %rbp, 0\n\t"
        "pushq %rbx\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        ".cfi_rel_offset %rbx, 0\n\t"
        "pushq %r12\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        ".cfi_rel_offset %r12, 0\n\t"
        "pushq %r13\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        ".cfi_rel_offset %r13, 0\n\t"
        "pushq %r14\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        ".cfi_rel_offset %r14, 0\n\t"
        "pushq %r15\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        ".cfi_rel_offset %r15, 0\n\t"
        "subq $8, %rsp\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        "stmxcsr (%rsp)\n\t"
        "fnstcw 4(%rsp)\n\t"
        "movq %rsp, (%rdi)\n\t"
        "movq %rsi, %rsp\n\t"
        "ldmxcsr (%rsp)\n\t"
        "fldcw 4(%rsp)\n\t"
        "addq $8, %rsp\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        "popq %r15\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        ".cfi_restore %r15\n\t"
        "popq %r14\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        ".cfi_restore %r14\n\t"
        "popq %r13\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        ".cfi_restore %r13\n\t"
        "popq %r12\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        ".cfi_restore %r12\n\t"
        "popq %rbx\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        ".cfi_restore %rbx\n\t"
        "popq %rbp\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        ".cfi_restore %rbp\n\t"
        "popq %rcx\n\t"
        ".cfi_adjust_cfa_offset -8\n\t"
        ".cfi_register %rip, %rcx\n\t"
        "jmpq *%rcx\n\t"
        ".cfi_endproc\n\t"
        ".size ebb__switch, . - ebb__switch\n\t"
        ".popsection");

/* The outermost frame of every fiber. It has no caller, so a debugger's backtrace ends here. */
__asm__(".pushsection .text, \"ax\", @progbits\n\t"
        ".p2align 4\n\t"
        ".globl ebb__switch_entry\n\t"
        ".hidden ebb__switch_entry\n\t"
        ".type ebb__switch_entry, @function\n"
        "ebb__switch_entry:\n\t"
        ".cfi_startproc\n\t"
        ".cfi_undefined %rip\n\t"
        "movq %r12, %rdi\n\t"
        "callq *%rbx\n\t"
        "ud2\n\t"
        ".cfi_endproc\n\t"
        ".size ebb__switch_entry, . - ebb__switch_entry\n\t"
        ".popsection");

typedef struct frame {
    uint32_t mxcsr;
    uint16_t x87, unused;
    uint64_t r15, r14, r13, r12, rbx, rbp, back;
    uint64_t end[2]; /* 16 bytes, which align the stack for the call in ebb__switch_entry */
} frame;

void *ebb__switch_start(char *top, void (*main)(void *arg), void *arg) {
    frame *f = (frame *)(void *)(top - sizeof *f);
    *f = (frame){.r12 = (uintptr_t)arg, .rbx = (uintptr_t)main, .back = (uintptr_t)ebb__switch_entry};
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(f->mxcsr), "=m"(f->x87));
    return f;
}

#endif
