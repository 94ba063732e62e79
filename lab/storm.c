/* lab/storm.c - random programs in the script language, made from a seed.
 *
 * A program is text, so a failing one can be kept, read, and reduced line by line. It is made from templates. In
 * each, a `%` and a letter stand for a new name, a name that exists or may exist, or more text. Bodies may name
 * only bodies before them, so no program spawns without end. */
#include "lab/lab.h"

#include <string.h>

#include "lab/script.h"

typedef struct storm {
    ebb__script *script;
    size_t at; /* where the next line starts */
} storm;

typedef struct template {
    uint32_t weight;
    const char *text;
}
template;

/* %r %t %o: a new region, task, obligation; %y %u %p: the newest; %R %T %O: any; %B: a body.
 * %K: a cancel kind; %k: an obligation kind; %M: a time; %n: 1 to 8; %S: a task's steps. */

/* The first lines, which make objects for the others. */
static const template beginnings[] = {
    {4, "open %r in %R"},
    {2, "open %r in %R collect"},
    {12, "spawn %t in %R: %S"},
    {3, "spawn %t in %R keep: %S"},
    {1, "reserve %o %k in %R"},
    {1, "defer %R pending %n"},
    {3, "pump %n"},
};

static const template lines[] = {
    {6, "open %r in %R"},
    {3, "open %r in %R collect"},
    {2, "open %r in %R deadline %M"},
    {3, "open %r in %R unit"},
    {14, "spawn %t in %R: %S"},
    {5, "spawn %t in %R keep: %S"},
    {3, "spawn %t in %R polls %n: %S"},
    {3, "spawn %t in %R deadline %M: %S"},
    {1, "spawn %t in %R priority %n: %S"},
    {1, "open %r in %R priority %n"},
    {6, "cancel %R %K"},
    {2, "cancel %R %K within %M"},
    {2, "cancel %R %K polls %n"},
    {1, "cancel %R %K within %M polls %n priority %n"},
    {2, "close %R"},
    {1, "force %R"},
    {5, "cancel-task %T %K"},
    {2, "force-task %T"},
    {7, "wake %T"},
    {8, "pump %n"},
    {4, "advance %M"},
    {3, "reserve %o %k in %R"},
    {2, "commit %O"},
    {2, "abort %O"},
    {2, "defer %R"},
    {2, "defer %R pending %n"},
    {1, "defer %R stuck"},
    {2, "defer %R as %B"},
    {2, "join %R"},
    {1, "join-task %T"},
    {1, "chain %R"},
};

static const template steps[] = {
    {7, "yield"},
    {6, "park"},
    {4, "checkpoint"},
    {4, "mask"},
    {2, "unmask"},
    {3, "mask; yield; checkpoint; unmask; checkpoint"},
    {4, "sleep %M"},
    {4, "defer"},
    {3, "defer; defer pending %n; defer"},
    {1, "defer stuck"},
    {2, "defer as %B"},
    {4, "reserve %o %k"},
    {4, "reserve %o %k; yield; commit %p"},
    {3, "reserve %o %k; park; abort %p"},
    {2, "commit %O"},
    {2, "abort %O"},
    {3, "open %r; spawn %t in %y as %B; join %y"},
    {3, "open %r; spawn %t in %y as %B; spawn %t in %y as %B; yield; cancel %y RACE_LOST; join %y"},
    {2, "open %r collect; spawn %t in %y as %B"},
    {2, "open %r unit; spawn %t in %y as %B; join %y"},
    {2, "spawn %t in %R as %B"},
    {2, "spawn %t keep as %B; join-task %u"},
    {1, "spawn %t deadline %M as %B"},
    {1, "cancel %R %K"},
    {1, "close %R"},
    {1, "force %R"},
    {2, "cancel-task %T %K"},
    {3, "wake %T"},
    {1, "join %R"},
    {1, "join-task %T"},
};

static const template ends[] = {
    {12, ""},       {4, "; park"},   {2, "; return FAILED"}, {1, "; return CANCELLED"},
    {1, "; fault"}, {1, "; ignore"},
};

/* Cycles of whole lives: nothing in them is bound to a new name. */
static const template circles[] = {
    {1, "yield; checkpoint; loop"},   {1, "yield; loop"}, {3, "sleep %M; loop"}, {4, "park; loop"},
    {1, "mask; yield; unmask; loop"},
};

static const template cleanups[] = {
    {4, "yield"},
    {3, "open %r cleanup; spawn %t in %y as %B; join %y"},
    {3, "mask; open %r cleanup; spawn %t in %y as %B; join %y; unmask"},
    {3, "mask; sleep %M; unmask"},
    {3, "commit %O"},
    {3, "abort %O"},
    {3, "defer; defer"},
    {2, "checkpoint"},
    {1, "reserve %o %k"},
    {1, "spawn %t in %R as %B"},
    {1, "return FAILED"},
    {1, "fault"},
    {1, "ignore"},
    {1, "park"},
};

#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))

/* ---- growing ------------------------------------------------------------------------------------------- */

typedef struct grower {
    ebb_lab *lab;
    uint64_t random;
    uint32_t regions, tasks, obligations, bodies; /* so far; names end in a number below these */
} grower;

static uint32_t pick(grower *g, uint32_t n) {
    return (uint32_t)((ebb__random(&g->random) >> 32) * n >> 32);
}

static void say(grower *g, const char *text, size_t n) {
    ebb_lab *lab = g->lab;
    if (n == 0) return; /* lab->script may still be NULL */
    if (!ebb__lab_grow(lab, (void **)(void *)&lab->script, &lab->script_room, lab->script_n + n, 1)) return;
    memcpy(lab->script + lab->script_n, text, n);
    lab->script_n += n;
}

static void say_word(grower *g, const char *word) {
    say(g, word, strlen(word));
}

static void say_number(grower *g, const char *before, uint32_t x) {
    char digits[10];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + x % 10);
    while ((x /= 10) > 0);
    say_word(g, before);
    say(g, digits + at, sizeof digits - at);
}

/* One of the names so far. The last four are as likely as all together, since new objects are more interesting. */
static void say_any(grower *g, const char *before, uint32_t so_far) {
    if (so_far == 0) so_far = 1;
    uint32_t recent = so_far < 4 ? so_far : 4;
    say_number(g, before, pick(g, 2) == 0 ? so_far - 1 - pick(g, recent) : pick(g, so_far));
}

static const char *any_of(grower *g, const template *list, uint32_t n) {
    uint32_t all = 0;
    for (uint32_t i = 0; i < n; i++) all += list[i].weight;
    uint32_t at = pick(g, all), i = 0;
    for (; at >= list[i].weight; i++) at -= list[i].weight;
    return list[i].text;
}

static bool names_body(const char *text) {
    for (; *text != 0; text++) {
        if (text[0] == '%' && text[1] == 'B') return true;
    }
    return false;
}

/* A template that can be used now: while there are no bodies, none that names one. */
static const char *fitting(grower *g, const template *list, uint32_t n) {
    const char *text = any_of(g, list, n);
    while (g->bodies == 0 && names_body(text)) text = any_of(g, list, n);
    return text;
}

static void say_kind(grower *g) {
    static const template kinds[] = {{4, "USER"},     {3, "RACE_LOST"},  {1, "DISCONNECT"}, {3, "TIMEOUT"},
                                     {1, "RESOURCE"}, {1, "LEASE_LOST"}, {3, "SHUTDOWN"}};
    say_word(g, any_of(g, kinds, COUNT(kinds)));
}

static void say_time(grower *g) {
    static const template times[] = {{4, "1ms"},   {4, "10ms"},   {3, "100ms"},
                                     {2, "450ms"}, {2, "1600ms"}, {1, "6s"}};
    say_word(g, any_of(g, times, COUNT(times)));
}

static void say_obligation(grower *g) {
    static const template kinds[] = {{1, "permit"}, {1, "ack"}, {1, "lease"}, {1, "io"}, {1, "transaction"}};
    say_word(g, any_of(g, kinds, COUNT(kinds)));
}

static void say_steps(grower *g);

static void say_letter(grower *g, char letter) {
    switch (letter) {
    case 'r': say_number(g, "r", g->regions++); break;
    case 't': say_number(g, "t", g->tasks++); break;
    case 'o': say_number(g, "o", g->obligations++); break;
    case 'y': say_number(g, "r", g->regions - 1); break;
    case 'u': say_number(g, "t", g->tasks - 1); break;
    case 'p': say_number(g, "o", g->obligations - 1); break;
    case 'R': say_any(g, "r", g->regions); break;
    case 'T': say_any(g, "t", g->tasks); break;
    case 'O': say_any(g, "o", g->obligations); break;
    case 'B': say_number(g, "b", pick(g, g->bodies)); break;
    case 'n': say_number(g, "", 1 + pick(g, 8)); break;
    case 'K': say_kind(g); break;
    case 'k': say_obligation(g); break;
    case 'S': say_steps(g); break; /* the templates of steps have no %S */
    default: say_time(g); break;
    }
}

static void say_template(grower *g, const char *text) {
    while (*text != 0) {
        size_t plain = ebb__find_byte(text, strlen(text), '%');
        say(g, text, plain);
        text += plain;
        if (*text == 0) break;
        say_letter(g, text[1]);
        text += 2;
    }
}

static void say_list(grower *g, const template *list, uint32_t n, uint32_t many) {
    for (uint32_t i = 0; i < many; i++) {
        if (i > 0) say_word(g, "; ");
        say_template(g, fitting(g, list, n));
    }
}

static void say_steps(grower *g) {
    if (pick(g, 8) == 0) {
        say_template(g, any_of(g, circles, COUNT(circles)));
    } else {
        say_list(g, steps, COUNT(steps), 1 + pick(g, 6));
        say_template(g, any_of(g, ends, COUNT(ends)));
    }
    if (pick(g, 2) == 0) return;
    say_word(g, " | ");
    say_list(g, cleanups, COUNT(cleanups), 1 + pick(g, 3));
}

static void say_lines(grower *g, const template *list, uint32_t n, uint32_t many) {
    for (uint32_t i = 0; i < many; i++) {
        say_template(g, fitting(g, list, n));
        say_word(g, "\n");
    }
}

static void grow(ebb_lab *lab, uint64_t seed) {
    grower g = {.lab = lab, .random = seed};
    say_word(&g, pick(&g, 2) == 0 ? "open r0\n" : "open r0 collect\n");
    g.regions = 1;
    uint32_t bodies = 1 + pick(&g, 4);
    for (uint32_t i = 0; i < bodies; i++) {
        say_number(&g, "body b", i);
        say_word(&g, ": ");
        say_steps(&g);
        say_word(&g, "\n");
        g.bodies++;
    }
    say_lines(&g, beginnings, COUNT(beginnings), 1 + pick(&g, 8));
    say_lines(&g, lines, COUNT(lines), 1 + pick(&g, 24));
}

/* ---- the scenario -------------------------------------------------------------------------------------- */

/* Memory of the round: all of it is freed together at the end. */
static void *round_memory(void *ctx, void *p, size_t old_size, size_t new_size) {
    if (new_size == 0) return NULL;
    void *q = ebb_lab_alloc(ctx, new_size);
    if (q != NULL && p != NULL) memcpy(q, p, old_size < new_size ? old_size : new_size);
    return q;
}

/* The runtime, and the strings of its trace, outlive the round. */
static const char *keep_site(void *ctx, const char *text) {
    return ebb__lab_string(ctx, text);
}

static uint32_t count_lines(const char *text, size_t n) {
    uint32_t many = n > 0 && text[n - 1] != '\n';
    for (size_t i = 0; i < n; i++) many += text[i] == '\n';
    return many;
}

static ebb_status storm_setup(ebb_lab *lab) {
    storm *s = ebb_lab_state(lab);
    const ebb_lab_case *c = lab->c;
    lab->script_n = 0;
    if (c->script != NULL) {
        grower g = {.lab = lab};
        say(&g, c->script, c->script_n);
    } else {
        grow(lab, c->seed ^ (uint64_t)lab->result.rounds << 32);
    }
    lab->steps = count_lines(lab->script, lab->script_n);
    s->script = ebb__script_new(ebb_lab_runtime(lab, 0), (ebb_allocator){round_memory, lab});
    if (s->script == NULL) return EBB_ERR_NOMEM;
    ebb__script_keep_sites(s->script, keep_site, lab);
    return EBB_OK;
}

static void storm_step(ebb_lab *lab, uint32_t n) {
    storm *s = ebb_lab_state(lab);
    (void)n;
    const char *line = lab->script + s->at;
    size_t length = ebb__find_byte(line, lab->script_n - s->at, '\n');
    char message[EBB__SCRIPT_MESSAGE];
    ebb_status st = ebb__script_line(s->script, line, length, message);
    if (st != EBB_OK) ebb__lab_stop(lab, st, st == EBB_ERR_NOMEM ? "" : "script", message);
    s->at += length + 1;
}

static void storm_finish(ebb_lab *lab) {
    storm *s = ebb_lab_state(lab);
    ebb_region all = {ebb__script_id(s->script, "r0")};
    ebb_region_cancel(ebb_runtime_host(ebb_lab_runtime(lab, 0)), all,
                      ebb_lab_choose(lab, 2) == 0 ? EBB_CANCEL_USER : EBB_CANCEL_SHUTDOWN, "the end");
}

/* A hook runs at most once; the oracles check that it runs. */
static void storm_check(ebb_lab *lab) {
    storm *s = ebb_lab_state(lab);
    for (const ebb__thing *t = ebb__script_things(s->script); t != NULL; t = t->next) {
        if (t->aborts > 1) ebb_lab_fail(lab, "an abort hook ran twice");
    }
}

const ebb_lab_scenario ebb__scenario_storm = {.name = "storm",
                                              .about = "random programs: everything at once",
                                              .state_size = sizeof(storm),
                                              .setup = storm_setup,
                                              .step = storm_step,
                                              .finish = storm_finish,
                                              .check = storm_check};
