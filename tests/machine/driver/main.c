/* usage: machine.driver [--seed N] [--seeds K] [--seconds S]
 *
 * Runs K seeds (1), or as many as S seconds allow, from seed N (1) on. */
#include "tests/machine/driver/driver.h"

#include <time.h>

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    uint64_t seed = 1, seeds = 1;
    double limit = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        unsigned long long n = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0) seed = n;
        else if (strcmp(argv[i], "--seeds") == 0) seeds = n;
        else if (strcmp(argv[i], "--seconds") == 0) limit = strtod(argv[i + 1], NULL);
        else return 2;
    }
    double until = seconds() + limit;
    for (uint64_t n = 0; limit > 0 ? seconds() < until : n < seeds; n++) run(seed + n);
    printf("%llu seeds: %llu messages handled, %llu rolled back, %llu requests, %llu dead letters, %llu "
           "refused, "
           "%llu runtimes cancelled\n",
           (unsigned long long)all.seeds, (unsigned long long)all.dispatched,
           (unsigned long long)all.rolled_back, (unsigned long long)all.requests,
           (unsigned long long)all.dead, (unsigned long long)all.refused, (unsigned long long)all.cancelled);
    return all.requests == 0 || all.rolled_back == 0;
}
