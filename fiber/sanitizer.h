/* Notifies sanitizers of each change of stack. Compiled without a sanitizer, these functions are empty or a test of a
 * weak symbol.
 *
 * A program under ASan may link a library that was built without it, for example an installed one. ASan needs the
 * notice even then: it walks callers only on the stack that it knows, and it does not report a leak whose caller it
 * cannot see. So ASan's functions are weak symbols, resolved when the program is linked.
 *
 * All functions are inlined. TSan counts calls and returns of each fiber, and would miscount a function that was
 * entered on one stack and left on another. */
#ifndef EBB__SANITIZER_H
#define EBB__SANITIZER_H

#include "kernel/layer.h"

#if defined(__has_feature)
#define EBB__HAS_FEATURE(x) __has_feature(x)
#else
#define EBB__HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || EBB__HAS_FEATURE(address_sanitizer)
#define EBB__ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define EBB__ASAN 0
void __sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t size) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *size) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *at, size_t size) __attribute__((weak));
#endif

/* True if the program has ASan, whether or not the library was built with it. */
EBB__INLINE bool ebb__asan_is_there(void) {
#if EBB__ASAN
    return true;
#else
    return EBB__UNLIKELY(__sanitizer_start_switch_fiber != NULL && __asan_unpoison_memory_region != NULL);
#endif
}

#if defined(__SANITIZE_THREAD__) || EBB__HAS_FEATURE(thread_sanitizer)
#define EBB__TSAN 1
#include <sanitizer/tsan_interface.h>
#else
#define EBB__TSAN 0
#endif

/* What the sanitizers know of one fiber. */
typedef struct ebb__notes {
    /* ASan: fake stacks, which hold locals so that a use after return is found */
    void *fake, *caller_fake;
    const void *caller_bottom; /* ASan: the stack that the fiber was resumed from */
    size_t caller_size;
    void *tsan, *caller_tsan;
} ebb__notes;

/* On the caller's stack, before the switch to the fiber. */
EBB__INLINE void ebb__note_resume(ebb__notes *n, const char *base, size_t bytes) {
    if (ebb__asan_is_there()) __sanitizer_start_switch_fiber(&n->caller_fake, base, bytes);
#if EBB__TSAN
    if (n->tsan == NULL) n->tsan = __tsan_create_fiber(0);
    n->caller_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(n->tsan, 0);
#endif
}

/* On the caller's stack, after the switch back. */
EBB__INLINE void ebb__note_back(ebb__notes *n) {
    if (ebb__asan_is_there()) __sanitizer_finish_switch_fiber(n->caller_fake, NULL, NULL);
}

/* On the fiber's stack, after each switch to it. */
EBB__INLINE void ebb__note_runs(ebb__notes *n) {
    if (ebb__asan_is_there()) {
        __sanitizer_finish_switch_fiber(n->fake, &n->caller_bottom, &n->caller_size);
    }
}

/* On the fiber's stack, before the switch back; `for_good` if the fiber has returned. */
EBB__INLINE void ebb__note_leaves(ebb__notes *n, bool for_good) {
    if (ebb__asan_is_there()) {
        __sanitizer_start_switch_fiber(for_good ? NULL : &n->fake, n->caller_bottom, n->caller_size);
        if (for_good) n->fake = NULL;
    }
#if EBB__TSAN
    __tsan_switch_to_fiber(n->caller_tsan, 0);
#endif
}

/* On the caller's stack: the fiber never runs again, and another fiber gets its stack. Frames that did not return
 * have left poisoned bytes there. ASan frees a fake stack only in a switch away for good, so a switch to the fiber
 * and back is announced that does not take place. */
EBB__INLINE void ebb__note_ends(ebb__notes *n, const char *base, size_t bytes) {
    if (ebb__asan_is_there()) __asan_unpoison_memory_region(base, bytes);
    if (ebb__asan_is_there() && n->fake != NULL) {
        __sanitizer_start_switch_fiber(&n->caller_fake, base, bytes);
        __sanitizer_finish_switch_fiber(n->fake, &n->caller_bottom, &n->caller_size);
        __sanitizer_start_switch_fiber(NULL, n->caller_bottom, n->caller_size);
        __sanitizer_finish_switch_fiber(n->caller_fake, NULL, NULL);
    }
#if EBB__TSAN
    if (n->tsan != NULL) __tsan_destroy_fiber(n->tsan);
#endif
    *n = (ebb__notes){.fake = NULL};
}

#endif
