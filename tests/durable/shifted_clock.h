/* A wall clock that a test moves. programs/shifted_clock.c stands in front of the C library's functions: linked into a test,
 * or as a library that the dynamic linker loads before all others (LD_PRELOAD) into a program of somebody else. */
#ifndef EBB_TESTS_SHIFTED_CLOCK_H
#define EBB_TESTS_SHIFTED_CLOCK_H

/* The file that has the shift in ns, an int64_t, for programs that load the library. */
#define SHIFTED_CLOCK_FILE "EBB_SHIFTED_CLOCK"

/* Makes the file, and reads the shift from it from now on. False: it can't be made. */
bool shifted_clock_make(const char *file);
/* Moves the clock of all processes that have the file: to this difference from the real one. */
void shifted_clock_set(int64_t ns);

#endif
