/* Random and exhaustive tests do a share of their work where it is slow and adds little: under ThreadSanitizer, which has
 * little to see in one thread, and in an emulator, where the plain build has done the same work in full. */
#ifndef EBB_TESTS_SHARE_H
#define EBB_TESTS_SHARE_H

#if defined(__SANITIZE_THREAD__)
#define SHARE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHARE_TSAN 1
#endif
#endif

/* What the work is divided by: `tsan` under ThreadSanitizer, `emulated` in an emulator, 1 otherwise. */
#if defined(SHARE_TSAN)
#define SHARE(tsan, emulated) (tsan)
#elif defined(EBB_EMULATED) && EBB_EMULATED
#define SHARE(tsan, emulated) (emulated)
#else
#define SHARE(tsan, emulated) 1
#endif

#endif
