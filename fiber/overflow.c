/* Reports a stack overflow: a fiber has touched its guard.
 *
 * A signal handler belongs to the process, and an alternate signal stack to a thread. These two are the only state
 * that Ebb has outside of a runtime. Both are set once and never removed, because a handler that was installed later
 * may call ours. */
#define _DEFAULT_SOURCE /* sigaltstack, mmap's flags */
#include "fiber/overflow.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "fiber/fiber.h"
#include "fiber/stack.h"

enum { ALTERNATE_BYTES = 65536 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before; /* written before the handler is installed */
static pthread_key_t alternate; /* the alternate stack that Ebb gave this thread */
static bool has_key;

/* ---- the handler: async-signal-safe throughout ----------------------------------------------------- */

static void print_overflow(const ebb__fiber *f) {
    char line[512];
    ebb__text t = ebb__text_in(line, sizeof line - 1);
    ebb__text_str(&t, "ebb: stack overflow in fiber ");
    ebb__text_id(&t, f->task);
    ebb__text_str(&t, ", spawned at ");
    ebb__text_str(&t, f->site == NULL ? "?" : f->site);
    ebb__text_str(&t, ", with a stack of ");
    ebb__text_u64(&t, f->all->stack_bytes);
    ebb__text_str(&t, " bytes");
    line[t.n] = '\n';
    ssize_t written = write(STDERR_FILENO, line, t.n + 1);
    (void)written; /* nothing can be done about a failed write */
}

/* After a fault the instruction runs again when the handler returns, and faults again. A signal that was sent
 * (si_code <= 0) has to be raised again. */
static void die(int sig, const siginfo_t *info) {
    struct sigaction deadly = {.sa_handler = SIG_DFL};
    (void)sigaction(sig, &deadly, NULL);
    if (info->si_code <= 0) (void)raise(sig);
}

static void pass_on(int sig, siginfo_t *info, void *context) {
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(sig, info, context);
    } else if (before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && info->si_code > 0)) {
        die(sig, info);
    } else if (before.sa_handler != SIG_IGN) {
        before.sa_handler(sig);
    }
}

static void on_fault(int sig, siginfo_t *info, void *context) {
    const ebb__fiber *f = ebb__fiber_here();
    if (f != NULL && info->si_code == SEGV_ACCERR && ebb__stack_guards(f->base, info->si_addr)) {
        print_overflow(f);
        die(sig, info);
    } else {
        pass_on(sig, info, context);
    }
}

/* ---- the process and its threads ------------------------------------------------------------------- */

static void take_back(void *stack) {
    stack_t none = {.ss_flags = SS_DISABLE};
    (void)sigaltstack(&none, NULL);
    (void)munmap(stack, ALTERNATE_BYTES);
}

static void install(void) {
    has_key = pthread_key_create(&alternate, take_back) == 0;
    (void)sigaction(SIGSEGV, NULL, &before);
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    ours.sa_mask = before.sa_mask;
    (void)sigaction(SIGSEGV, &ours, NULL);
}

void ebb__overflow_watch(void) {
    stack_t has;
    (void)pthread_once(&once, install);
    if (!has_key || sigaltstack(NULL, &has) != 0 || !(has.ss_flags & SS_DISABLE)) return;
    void *p = mmap(NULL, ALTERNATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    stack_t given = {.ss_sp = p, .ss_size = ALTERNATE_BYTES};
    if (sigaltstack(&given, NULL) != 0 || pthread_setspecific(alternate, p) != 0) take_back(p);
}
