/* Leaks memory in a fiber, some of it before and some after an await. Under ASan this program has to fail. */
#include <ebb/ebb.h>
#include <stdlib.h>

static void leaks_here(size_t n) {
    for (int i = 0; i < 10; i++) {
        char *volatile p = malloc(n);
        if (p != NULL) p[0] = 1;
    }
}

static ebb_status first(ebb_cx *cx, void *arg) {
    (void)arg;
    leaks_here(123);
    (void)ebb_await(cx, ebb_after(cx, EBB_MS), NULL);
    leaks_here(321);
    return EBB_OK;
}

int main(void) {
    return ebb_service_run(&(ebb_service_opts){.loop.runtime.allocator = ebb_libc_allocator()}, first, NULL);
}
