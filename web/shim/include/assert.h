/* No include guard: as in any libc, NDEBUG is looked at each time this is included. */
#undef assert
#ifdef NDEBUG
#define assert(holds) ((void)0)
#else
#define assert(holds) ((holds) ? (void)0 : __builtin_trap())
#endif

#undef static_assert
#define static_assert _Static_assert
