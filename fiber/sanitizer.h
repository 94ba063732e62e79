/* What sanitizers must be told when the stack changes. Without one of them all of this is nothing.
 *
 * A program under ASan may link a library that was built without it, an installed one for instance. ASan has to be
 * told all the same: it looks no further for callers than the stack that it knows of, and a leak whose caller it
 * does not see it does not report. So its functions are looked for when the program is linked.
 *
 * They are always inlined: TSan counts calls and returns of each fiber, and a function that began in one and
 * ended in another would be counted wrongly. */
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

/* Whether the program has ASan, if the library has not. */
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

/* Of one fiber. */
typedef struct ebb__notes {
    void *fake, *caller_fake;  /* ASan: where locals live that it watches after their function returned */
    const void *caller_bottom; /* ASan: the stack of whoever resumed it */
    size_t caller_size;
    void *tsan, *caller_tsan;
} ebb__notes;

/* On the caller's stack: the fiber is about to run. */
EBB__INLINE void ebb__note_resume(ebb__notes *n, const char *base, size_t bytes) {
    if (ebb__asan_is_there()) __sanitizer_start_switch_fiber(&n->caller_fake, base, bytes);
#if EBB__TSAN
    if (n->tsan == NULL) n->tsan = __tsan_create_fiber(0);
    n->caller_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(n->tsan, 0);
#endif
}

/* On the caller's stack again. */
EBB__INLINE void ebb__note_back(ebb__notes *n) {
    if (ebb__asan_is_there()) __sanitizer_finish_switch_fiber(n->caller_fake, NULL, NULL);
}

/* On the fiber's stack: it runs, for the first time or again. */
EBB__INLINE void ebb__note_runs(ebb__notes *n) {
    if (ebb__asan_is_there()) {
        __sanitizer_finish_switch_fiber(n->fake, &n->caller_bottom, &n->caller_size);
    }
}

/* On the fiber's stack: it is about to leave, for good or not. */
EBB__INLINE void ebb__note_leaves(ebb__notes *n, bool for_good) {
    if (ebb__asan_is_there()) {
        __sanitizer_start_switch_fiber(for_good ? NULL : &n->fake, n->caller_bottom, n->caller_size);
        if (for_good) n->fake = NULL;
    }
#if EBB__TSAN
    __tsan_switch_to_fiber(n->caller_tsan, 0);
#endif
}

/* On the caller's stack: it will never run again, and its stack gets another user. Frames that did not return
 * have left their marks there. What ASan keeps for them it frees only for a fiber that leaves: so it is told
 * that we go there and leave. */
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
