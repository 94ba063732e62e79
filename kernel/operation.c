#include "base/text.h"
#include "kernel/obligation.h"
#include "kernel/record.h"
#include "kernel/supervisor.h"

/* "process sh, begun at jobs.c:12". The journal has it as one text. */
static void describe(char *out, size_t room, const char *what, const char *name, const char *site) {
    ebb__text t = ebb__text_in(out, room);
    ebb__text_str(&t, what);
    if (name != NULL && name[0] != 0) {
        ebb__text_str(&t, " ");
        ebb__text_str(&t, name);
    }
    if (site != NULL) {
        ebb__text_str(&t, ", begun at ");
        ebb__text_str(&t, site);
    }
}

void ebb__operation_abandoned(ebb_cx *cx, ebb_region region, const char *what, const char *name,
                              const char *site, uint64_t number) {
    ebb_runtime *rt = ebb__rt_of(cx);
    ebb__region *r;
    char text[200];
    describe(text, sizeof text, what, name, site);
    bool known = ebb__find_region(rt, region, &r) == EBB_OK && r->state != EBB_REGION_CLOSED;
    ebb_status kept = known ? ebb__operation_keep(rt, r, site) : EBB_ERR_CLOSED;
    ebb__journal(
        rt, cx,
        (ebb_record){.type = J_OPERATION, .region = region.id, .value = (uint32_t)kept, .other = number});
    ebb__journal_text(rt, text);
    if (!known) return;
    ebb__cold_of(r)->abandoned++;
    rt->stats.abandoned++;
    ebb__emit_region(rt, EBB_EV_OPERATION_ABANDONED, r, 0, 0, number);
    ebb__emit_text(rt, text);
    ebb__leak_report(rt, (ebb__leak){.what = EBB__LEAK_OPERATION,
                                     .region = r,
                                     .site = site,
                                     .operation = what,
                                     .name = name == NULL ? "" : name});
}
