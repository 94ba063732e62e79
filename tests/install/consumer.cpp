// The headers in C++: what they define compiles without a warning, and what they declare links.
#include <ebb/ebb.h>

#include <cstdio>
#include <cstring>

namespace {

struct worker {
    EBB_TASK_STATE;
    ebb_sleeper nap;
    int naps;
};

ebb_status work(ebb_cx *cx, void *state) {
    worker *w = static_cast<worker *>(state);
    ebb_status st;
    EBB_BEGIN(w);
    EBB_YIELD(cx, w);
    for (w->naps = 0; w->naps < 3; w->naps++) {
        EBB_AWAIT(w, st, ebb_sleep(cx, &w->nap, 10 * EBB_MS));
        if (st != EBB_OK) return st;
    }
    EBB_END(w);
}

ebb_status fiber(ebb_cx *cx, void *arg) {
    ebb_value v = ebb_value_none();
    ebb_future *both[] = {ebb_future_ready(cx, ebb_value_int(7)), ebb_after(cx, 20 * EBB_MS)};
    ebb_status st = ebb_await(cx, ebb_race(cx, 2, both), &v);
    *static_cast<int64_t *>(arg) = v.as.i;
    return st;
}

ebb_runtime *make_runtime() {
    ebb_runtime *rt = nullptr;
#if __cplusplus >= 202002L
    const ebb_runtime_opts opts = {.size = sizeof(ebb_runtime_opts), .allocator = ebb_libc_allocator()};
#else
    ebb_runtime_opts opts{};
    opts.size = sizeof opts;
    opts.allocator = ebb_libc_allocator();
#endif
    return ebb_runtime_new(&opts, &rt) == EBB_OK ? rt : nullptr;
}

ebb_region open_region(ebb_cx *cx) {
#if __cplusplus >= 202002L
    const ebb_region_opts opts = {.policy = EBB_FAIL_COLLECT};
#else
    ebb_region_opts opts{};
    opts.policy = EBB_FAIL_COLLECT;
#endif
    return ebb_region_open(cx, &opts);
}

} // namespace

static_assert(static_cast<int>(EBB_ERRNO(98)) == EBB_STATUS_SYSTEM - 98, "in the range of the enum");

int main() {
    ebb_runtime *rt = make_runtime();
    if (rt == nullptr || std::strcmp(ebb_status_name(EBB_ERR_VERSION), "EBB_ERR_VERSION") != 0) return 1;
    ebb_cx *cx = ebb_runtime_host(rt);
    ebb_region region = open_region(cx);
    worker w{};
    int64_t won = 0;
    ebb_task_opts keep{};
    keep.keep = true;
    ebb_task task = ebb_spawn(cx, region, work, &w, &keep);
    ebb_task other = ebb_fiber_spawn(cx, region, fiber, &won);
    if (ebb_id_status(task.id) != EBB_OK || ebb_id_status(other.id) != EBB_OK) return 2;
    for (uint64_t t = 0; ebb_task_join(cx, task) == EBB_PENDING; t += EBB_MS) {
        ebb_runtime_advance(rt, t);
        (void)ebb_runtime_pump(rt, 100);
    }
    const ebb_status own = static_cast<ebb_status>(EBB_STATUS_USER - 1);
    std::printf("ebb %s naps %d won %d %s\n", ebb_version(), w.naps, static_cast<int>(won),
                ebb_status_name(own));
    ebb_runtime_free(rt);
    return 0;
}
