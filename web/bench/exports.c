#include "web/bench/work.h"
#include "web/wasm/abi.h"
#include "web/wasm/alloc.h"

int32_t EBB__EXPORT(bench_prepare)(int32_t work, uint32_t n);
uint64_t EBB__EXPORT(bench_run)(void);

int32_t web_bench_prepare(int32_t work, uint32_t n) {
    return bench_prepare((bench_work)work, n, web_allocator());
}

uint64_t web_bench_run(void) {
    return bench_run();
}
