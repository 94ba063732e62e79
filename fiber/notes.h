/* What sanitizers must be told when the stack changes. Without one of them all of this is nothing.
 *
 * They are always inlined: TSan counts calls and returns of each fiber, and a function that began in one and
 * ended in another would be counted wrongly. */
#ifndef EBB__NOTES_H
#define EBB__NOTES_H

#include "kernel/rt.h"

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
#endif

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
    (void)n, (void)base, (void)bytes;
#if EBB__ASAN
    __sanitizer_start_switch_fiber(&n->caller_fake, base, bytes);
#endif
#if EBB__TSAN
    if (n->tsan == NULL) n->tsan = __tsan_create_fiber(0);
    n->caller_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(n->tsan, 0);
#endif
}

/* On the caller's stack again. */
EBB__INLINE void ebb__note_back(ebb__notes *n) {
    (void)n;
#if EBB__ASAN
    __sanitizer_finish_switch_fiber(n->caller_fake, NULL, NULL);
#endif
}

/* On the fiber's stack: it runs, for the first time or again. */
EBB__INLINE void ebb__note_runs(ebb__notes *n) {
    (void)n;
#if EBB__ASAN
    __sanitizer_finish_switch_fiber(n->fake, &n->caller_bottom, &n->caller_size);
#endif
}

/* On the fiber's stack: it is about to leave, for good or not. */
EBB__INLINE void ebb__note_leaves(ebb__notes *n, bool for_good) {
    (void)n, (void)for_good;
#if EBB__ASAN
    __sanitizer_start_switch_fiber(for_good ? NULL : &n->fake, n->caller_bottom, n->caller_size);
    if (for_good) n->fake = NULL;
#endif
#if EBB__TSAN
    __tsan_switch_to_fiber(n->caller_tsan, 0);
#endif
}

/* On the caller's stack: it will never run again, and its stack gets another user. Frames that did not return
 * have left their marks there. What ASan keeps for them it frees only for a fiber that leaves: so it is told
 * that we go there and leave. */
EBB__INLINE void ebb__note_ends(ebb__notes *n, const char *base, size_t bytes) {
    (void)base, (void)bytes;
#if EBB__ASAN
    __asan_unpoison_memory_region(base, bytes);
    if (n->fake != NULL) {
        __sanitizer_start_switch_fiber(&n->caller_fake, base, bytes);
        __sanitizer_finish_switch_fiber(n->fake, &n->caller_bottom, &n->caller_size);
        __sanitizer_start_switch_fiber(NULL, n->caller_bottom, n->caller_size);
        __sanitizer_finish_switch_fiber(n->caller_fake, NULL, NULL);
    }
#endif
#if EBB__TSAN
    if (n->tsan != NULL) __tsan_destroy_fiber(n->tsan);
#endif
    *n = (ebb__notes){.fake = NULL};
}

#endif
