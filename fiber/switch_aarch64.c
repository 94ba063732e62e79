/* The switch for the procedure call standard of AArch64. It saves x19 to x30, the low halves of v8 to v15, the control
 * register of floating point and the stack pointer; the caller saves all others, as for any call. The signal mask is
 * left alone: saving it, as swapcontext does, takes two system calls.
 *
 * The frame that a switch leaves, from the stack pointer up: the control register (8 bytes, and 8 unused), x19 to x30,
 * d8 to d15. Both halves of the switch use the same frame layout, so that the unwind information is right before and
 * after the stack pointer changes. In it registers have their DWARF numbers: d8 is 72. */
#include "fiber/switch.h"

#include <stdint.h>

#if defined(__aarch64__) && defined(__LP64__)

/* "hint 34" is "bti c", which older assemblers do not know: the library may be built with branch protection. The
 * control register is written only if the two sides differ, because the write waits for the pipeline. */
__asm__(".pushsection .text, \"ax\", %progbits\n\t"
        ".p2align 4\n\t"
        ".globl ebb__switch\n\t"
        ".hidden ebb__switch\n\t"
        ".type ebb__switch, %function\n"
        "ebb__switch:\n\t"
        ".cfi_startproc\n\t"
        "hint 34\n\t"
        "sub sp, sp, #176\n\t"
        ".cfi_def_cfa_offset 176\n\t"
        "stp x19, x20, [sp, #16]\n\t"
        ".cfi_offset 19, -160\n\t"
        ".cfi_offset 20, -152\n\t"
        "stp x21, x22, [sp, #32]\n\t"
        ".cfi_offset 21, -144\n\t"
        ".cfi_offset 22, -136\n\t"
        "stp x23, x24, [sp, #48]\n\t"
        ".cfi_offset 23, -128\n\t"
        ".cfi_offset 24, -120\n\t"
        "stp x25, x26, [sp, #64]\n\t"
        ".cfi_offset 25, -112\n\t"
        ".cfi_offset 26, -104\n\t"
        "stp x27, x28, [sp, #80]\n\t"
        ".cfi_offset 27, -96\n\t"
        ".cfi_offset 28, -88\n\t"
        "stp x29, x30, [sp, #96]\n\t"
        ".cfi_offset 29, -80\n\t"
        ".cfi_offset 30, -72\n\t"
        "stp d8, d9, [sp, #112]\n\t"
        ".cfi_offset 72, -64\n\t"
        ".cfi_offset 73, -56\n\t"
        "stp d10, d11, [sp, #128]\n\t"
        ".cfi_offset 74, -48\n\t"
        ".cfi_offset 75, -40\n\t"
        "stp d12, d13, [sp, #144]\n\t"
        ".cfi_offset 76, -32\n\t"
        ".cfi_offset 77, -24\n\t"
        "stp d14, d15, [sp, #160]\n\t"
        ".cfi_offset 78, -16\n\t"
        ".cfi_offset 79, -8\n\t"
        "mrs x9, fpcr\n\t"
        "str x9, [sp]\n\t"
        "mov x10, sp\n\t"
        "str x10, [x0]\n\t"
        "mov sp, x1\n\t"
        "ldr x10, [sp]\n\t"
        "cmp x9, x10\n\t"
        "b.eq 1f\n\t"
        "msr fpcr, x10\n"
        "1:\n\t"
        "ldp x19, x20, [sp, #16]\n\t"
        ".cfi_restore 19\n\t"
        ".cfi_restore 20\n\t"
        "ldp x21, x22, [sp, #32]\n\t"
        ".cfi_restore 21\n\t"
        ".cfi_restore 22\n\t"
        "ldp x23, x24, [sp, #48]\n\t"
        ".cfi_restore 23\n\t"
        ".cfi_restore 24\n\t"
        "ldp x25, x26, [sp, #64]\n\t"
        ".cfi_restore 25\n\t"
        ".cfi_restore 26\n\t"
        "ldp x27, x28, [sp, #80]\n\t"
        ".cfi_restore 27\n\t"
        ".cfi_restore 28\n\t"
        "ldp x29, x30, [sp, #96]\n\t"
        ".cfi_restore 29\n\t"
        ".cfi_restore 30\n\t"
        "ldp d8, d9, [sp, #112]\n\t"
        ".cfi_restore 72\n\t"
        ".cfi_restore 73\n\t"
        "ldp d10, d11, [sp, #128]\n\t"
        ".cfi_restore 74\n\t"
        ".cfi_restore 75\n\t"
        "ldp d12, d13, [sp, #144]\n\t"
        ".cfi_restore 76\n\t"
        ".cfi_restore 77\n\t"
        "ldp d14, d15, [sp, #160]\n\t"
        ".cfi_restore 78\n\t"
        ".cfi_restore 79\n\t"
        "add sp, sp, #176\n\t"
        ".cfi_def_cfa_offset 0\n\t"
        "ret\n\t"
        ".cfi_endproc\n\t"
        ".size ebb__switch, . - ebb__switch\n\t"
        ".popsection");

/* The outermost frame of every fiber. It has no caller, so a debugger's backtrace ends here. */
__asm__(".pushsection .text, \"ax\", %progbits\n\t"
        ".p2align 4\n\t"
        ".globl ebb__switch_entry\n\t"
        ".hidden ebb__switch_entry\n\t"
        ".type ebb__switch_entry, %function\n"
        "ebb__switch_entry:\n\t"
        ".cfi_startproc\n\t"
        ".cfi_undefined 30\n\t"
        "mov x0, x20\n\t"
        "blr x19\n\t"
        "brk #1\n\t"
        ".cfi_endproc\n\t"
        ".size ebb__switch_entry, . - ebb__switch_entry\n\t"
        ".popsection");

typedef struct frame {
    uint64_t fpcr, unused;
    uint64_t x19, x20, others[8], x29, x30;
    uint64_t d[8];
} frame;
_Static_assert(sizeof(frame) == 176, "what the switch saves");

/* x29 is 0, which ends a chain of frame pointers. */
void *ebb__switch_start(char *top, void (*main)(void *arg), void *arg) {
    frame *f = (frame *)(void *)(top - sizeof *f);
    *f = (frame){.x19 = (uintptr_t)main, .x20 = (uintptr_t)arg, .x30 = (uintptr_t)ebb__switch_entry};
    __asm__ volatile("mrs %0, fpcr" : "=r"(f->fpcr));
    return f;
}

#endif
