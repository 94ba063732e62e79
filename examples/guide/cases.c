/* Guide: a schedule that fails, made smaller, kept as a file, and run again. */
#include <ebb/ebb.h>
#include <stdio.h>

enum { ROOM = 4096 };

/* Adds to the shared number in two steps, and lets others run in between: the bug. */
typedef struct adder {
    EBB_TASK_STATE;
    int *sum, seen;
} adder;

static ebb_status add(ebb_cx *cx, void *state) {
    adder *a = state;
    EBB_BEGIN(a);
    a->seen = *a->sum;
    EBB_YIELD(cx, a);
    *a->sum = a->seen + 1;
    EBB_END(a);
}

/* What `arg` of the scenario says, and memory that the lab frees after the round. */
static ebb_status setup(ebb_lab *lab) {
    const int *adders = ebb_lab_arg(lab);
    int *sum = ebb_lab_state(lab);
    for (int i = 0; i < *adders; i++) {
        adder *a = ebb_lab_alloc(lab, sizeof *a);
        if (a == NULL) return EBB_ERR_NOMEM;
        a->sum = sum;
        ebb_task t = ebb_spawn(ebb_runtime_host(ebb_lab_runtime(lab, 0)), ebb_lab_region(lab, 0), add, a);
        if (ebb_id_status(t.id) != EBB_OK) return ebb_id_status(t.id);
    }
    return EBB_OK;
}

static void check(ebb_lab *lab) {
    const int *adders = ebb_lab_arg(lab), *sum = ebb_lab_state(lab);
    if (*sum != *adders) ebb_lab_fail_as(lab, "lost", "an addition is lost");
}

typedef struct text {
    char at[ROOM];
    size_t n;
} text;

static void append(void *ctx, const void *from, size_t n) {
    text *t = ctx;
    for (size_t i = 0; i < n && t->n < ROOM; i++) t->at[t->n++] = ((const char *)from)[i];
}

/* A failing case, as text. */
static ebb_status find(ebb_lab *lab, const ebb_lab_scenario *scenario, text *out) {
    ebb_lab_case c = {.scenario = scenario, .seed = 1};
    ebb_lab_explore_result found;
    ebb_status st = ebb_lab_explore(lab, &c, NULL, &found);
    if (st == EBB_OK) return EBB_FAILED; /* nothing was found */
    st = ebb_lab_shrink(lab, &c, 0, NULL, NULL);
    ebb_lab_save(&c, append, out);
    ebb_lab_case_free(lab, &c);
    return st;
}

/* The same run again, here or in the program that has the bug mended. */
static ebb_status again(ebb_lab *lab, const ebb_lab_scenario *scenario, const text *saved) {
    ebb_lab_case c;
    ebb_lab_error wrong;
    ebb_lab_result result;
    ebb_status st = ebb_lab_load(lab, saved->at, saved->n, scenario, &c, &wrong);
    if (st != EBB_OK) return st;
    (void)ebb_lab_run(lab, &c, NULL, &result);
    printf("%s: %s\n", result.failure, result.text);
    ebb_lab_case_free(lab, &c);
    return result.status == EBB_FAILED ? EBB_OK : EBB_FAILED;
}

int main(void) {
    static text saved;
    int adders = 3;
    ebb_lab_scenario scenario = {.name = "adders",
                                 .about = "tasks that add to one number",
                                 .state_size = sizeof(int),
                                 .setup = setup,
                                 .check = check,
                                 .until_quiet = true,
                                 .arg = &adders};
    ebb_lab *lab = ebb_lab_new(ebb_libc_allocator());
    if (lab == NULL) return 1;
    ebb_status st = find(lab, &scenario, &saved);
    if (st == EBB_OK) st = again(lab, &scenario, &saved);
    ebb_lab_free(lab);
    return st == EBB_OK ? 0 : 1;
}
