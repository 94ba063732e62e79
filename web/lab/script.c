/* A script in the runtime of this instance. */
#include "web/lab/lab.h"

#include "lab/lab.h"
#include "lab/script.h"
#include "sched/pump.h"
#include "web/lab/judge.h"
#include "web/wasm/alloc.h"
#include "web/wasm/host.h"
#include "web/wasm/words.h"

static ebb__script *script;
static uint64_t chooser; /* the generator's state */

static uint32_t choose(void *ctx, uint32_t n) {
    (void)ctx;
    return (uint32_t)(ebb__random(&chooser) % n);
}

int32_t web_lab_begin(uint64_t seed) {
    if (web_rt == NULL || !ebb__rt_is_traced(web_rt) || script != NULL) return EBB_ERR_INVALID;
    script = ebb__script_new(web_rt, web_allocator());
    if (script == NULL) return EBB_ERR_NOMEM;
    chooser = seed;
    if (seed != 0) ebb__set_chooser(web_rt, choose, NULL);
    return judge_begin();
}

int32_t web_lab_line(const char *line, size_t n) {
    if (script == NULL) return EBB_ERR_INVALID;
    return ebb__script_line(script, line, n, (char *)web_scratch_bytes);
}

int32_t web_lab_result(void) {
    return ebb__script_result(script);
}

void web_lab_chain(void) {
    uint32_t n;
    const ebb_region_cause *link = ebb__script_chain(script, &n);
    words w = words_begin();
    put_u32(&w, n);
    for (uint32_t i = 0; i < n; i++) {
        put_u64(&w, link[i].region.id);
        put_u32(&w, link[i].reason.kind);
        put_u32(&w, link[i].reason.severity);
        put_message(&w, link[i].reason.message);
    }
}

int32_t web_lab_thing(uint32_t i) {
    const ebb__thing *t = ebb__script_things(script);
    for (; t != NULL && i > 0; i--) t = t->next;
    if (t == NULL) return EBB_ERR_INVALID;
    words w = words_begin();
    put_u64(&w, t->id);
    put_u32(&w, t->kind);
    put_u32(&w, t->aborts);
    put_u32(&w, (uint32_t)(uintptr_t)t->name);
    return EBB_OK;
}
