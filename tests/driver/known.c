/* Bugs of the library that are known and not mended yet. The driver goes around them, so that it can be green and
 * find others. Each has a gate below; `--mend N` opens it, and when it is mended the gate goes. */
#include "tests/driver/driver.h"

static bool open_gate[KNOWN_END];

bool known(int bug) {
    return !open_gate[bug];
}

void mended(int bug) {
    if (bug > 0 && bug < KNOWN_END) open_gate[bug] = true;
}

/* 1 KNOWN_LATE_CALLBACK: a future that has ended gets a callback or a hold, and then it is awaited: the task is
 *   never woken. Gate: callbacks are attached to pending futures only.
 * 2 KNOWN_NESTED_AND_REMOTE: a promise that was settled with a nested future can be settled again by a remote.
 *   Gate: promises that were exported are not settled so.
 * 3 KNOWN_WORDS_LEFT: a word that a bracket or a finally keeps is not freed with its runtime, nor in a forced
 *   region. Gate: in runs with either, words and objects need not be freed.
 * 4 KNOWN_FORCED_WAITER: who waits for a future of a region whose callback runner was abandoned may not be woken.
 *   Gate: nobody asks, once something was abandoned.
 * 5 KNOWN_FORCED_REPLAY: a run in which a callback runner was abandoned does not replay. Gate: likewise.
 * 6 KNOWN_DEFER_IN_CALLBACK: a finalizer that a callback adds, and the abort hook of what it reserves for itself, run
 *   after its region has served its last future. Gate: callbacks do neither.
 * 7 KNOWN_FORCED_CALLBACKS: the callbacks of a future that cleanup code makes in a region after its force are not
 *   called. Gate: nobody asks, once a task was forced. */
