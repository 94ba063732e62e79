/* usage: driver.random [--seed N] [--seeds K] [--seconds S] [--talk 1]
 *
 * Runs K seeds (1), or as many as S seconds allow, from seed N (1) on. Every 16th is run twice and has to give the
 * same traces. The program that is linked as test_driver_threads has a thread a side, and repeats nothing. */
#include "tests/driver/program/driver.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static uint64_t seed = 1;
static bool threads;

static void tell_seed(void) {
    char text[160];
    int n = snprintf(text, sizeof text, "in seed %llu; to repeat it: %s --seed %llu\n",
                     (unsigned long long)seed, driver_program, (unsigned long long)seed);
    if (write(2, text, (size_t)n) < 0) _exit(3);
}

static void died(int signal_number) {
    tell_seed();
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

/* Of the sanitizers' runtime, if there is one. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* What they find ends in SIGABRT, so that the seed is told. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "abort_on_error=1";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) {
    return "abort_on_error=1:print_stacktrace=1";
}

static void watch_over(void) {
    (void)signal(SIGABRT, died);
    (void)signal(SIGALRM, died);
    if (__sanitizer_set_death_callback != NULL) __sanitizer_set_death_callback(tell_seed);
    else (void)signal(SIGSEGV, died);
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_seed(void) {
    (void)alarm(240);
    uint64_t hash = drive(seed, threads);
    if (threads || seed % 16 != 0 || drive(seed, false) == hash) return;
    fprintf(stderr, "seed %llu: two runs of it have different traces\n", (unsigned long long)seed);
    exit(1);
}

int main(int argc, char **argv) {
    uint64_t seeds = 1;
    double limit = 0;
    driver_program = argv[0];
    threads = strstr(argv[0], "threads") != NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        unsigned long long n = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0) seed = n;
        else if (strcmp(argv[i], "--seeds") == 0) seeds = n;
        else if (strcmp(argv[i], "--seconds") == 0) limit = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--talk") == 0) driver_talks = n != 0;
        else return 2;
    }
    watch_over();
    uint64_t done = 0;
    for (double end = now() + limit; limit > 0 ? now() < end : done < seeds; done++, seed++) run_seed();
    const tally *t = &driver_tally;
    printf("%llu seeds, the last is %llu: %llu runtimes, %llu freed early, %llu without memory at times, "
           "%llu with work "
           "that was abandoned, %llu replayed; %llu polls, %llu objects\n",
           (unsigned long long)done, (unsigned long long)(seed - 1), (unsigned long long)t->sides,
           (unsigned long long)t->early, (unsigned long long)t->starved, (unsigned long long)t->forced,
           (unsigned long long)t->replayed, (unsigned long long)t->polls, (unsigned long long)t->futures);
    return 0;
}
