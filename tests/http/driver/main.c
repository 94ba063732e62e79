/* usage: http.driver [--seed N] [--seeds K] [--seconds S] [--talk 1]
 *
 * Runs K seeds (1), or as many as S seconds allow, from seed N (1) on. */
#include "tests/http/driver/driver.h"

#include "tests/http/tls_certificates.h"

#include <signal.h>
#include <time.h>

enum { ALARM_S = 30 };

static uint64_t seed = 1;
static const char *program;

static void tell_seed(void) {
    char text[160];
    int n = snprintf(text, sizeof text, "in seed %llu; to repeat it: %s --seed %llu\n",
                     (unsigned long long)seed, program, (unsigned long long)seed);
    if (write(2, text, (size_t)n) < 0) _exit(3);
}

static void died(int signal_number) {
    tell_seed();
    if (signal_number == SIGALRM) tell_world();
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

/* Of the sanitizers' runtime, if there is one. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "abort_on_error=1:detect_stack_use_after_return=0";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) {
    return "abort_on_error=1:print_stacktrace=1";
}

static void watch_over(void) {
    (void)signal(SIGABRT, died);
    (void)signal(SIGALRM, died);
    if (__sanitizer_set_death_callback != NULL) __sanitizer_set_death_callback(tell_seed);
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_seeds(uint64_t seeds, double limit) {
    uint64_t done = 0;
    for (double end = now() + limit; limit > 0 ? now() < end : done < seeds; done++, seed++) {
        (void)alarm(ALARM_S);
        drive(seed);
    }
}

int main(int argc, char **argv) {
    uint64_t seeds = 1;
    double limit = 0;
    program = argv[0];
    for (int i = 1; i + 1 < argc; i += 2) {
        unsigned long long n = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0) seed = n;
        else if (strcmp(argv[i], "--seeds") == 0) seeds = n;
        else if (strcmp(argv[i], "--seconds") == 0) limit = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--talk") == 0) driver_talks = n != 0;
        else return 2;
    }
    watch_over();
    (void)make_certificates(NULL);
    driver_cert = file("leaf.pem");
    driver_key = file("leaf.key");
    driver_ca = file("ca.pem");
    run_seeds(seeds, limit);
    (void)remove_certificates(NULL);
    const tally *t = &driver_tally;
    printf(
        "%llu seeds, the last is %llu: %llu handlers, %llu cancelled; %llu calls, %llu whole, %llu failed; "
        "%llu raw peers; %llu allocations refused; %llu ended still\n",
        (unsigned long long)t->seeds, (unsigned long long)(seed - 1), (unsigned long long)t->handlers,
        (unsigned long long)t->cancelled, (unsigned long long)t->calls, (unsigned long long)t->whole,
        (unsigned long long)t->failed, (unsigned long long)t->peers, (unsigned long long)t->starved,
        (unsigned long long)t->still);
    return 0;
}
