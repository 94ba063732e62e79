/* What has one thread takes a share of its work under ThreadSanitizer, which has little to see there. */
#ifndef EBB_TESTS_TSAN_SHARE_H
#define EBB_TESTS_TSAN_SHARE_H

#if defined(__SANITIZE_THREAD__)
#define TSAN_SHARE 10
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN_SHARE 10
#endif
#endif
#ifndef TSAN_SHARE
#define TSAN_SHARE 1
#endif

#endif
