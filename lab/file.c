/* lab/file.c - a case as text: each line is a keyword and its value. docs/lab.md describes the format; the table
 * `words` below parses it. */
#include "lab/lab.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define MAGIC "ebb-lab 1"

static const char *const actions[EBB_LAB_ACTIONS] = {
    [EBB_LAB_NOTHING] = "nothing",   [EBB_LAB_CANCEL] = "cancel", [EBB_LAB_STOP] = "stop",
    [EBB_LAB_SHUTDOWN] = "shutdown", [EBB_LAB_FORCE] = "force",   [EBB_LAB_RESET] = "reset"};

const char *ebb_lab_action_name(ebb_lab_action action) {
    return action < EBB_LAB_ACTIONS ? actions[action] : "?";
}

/* ---- writing ------------------------------------------------------------------------------------------- */

typedef struct printer {
    ebb_write_fn write;
    void *ctx;
} printer;

static void put(const printer *p, const char *text) {
    p->write(p->ctx, text, strlen(text));
}

static void put_line(const printer *p, const char *word, const char *value) {
    put(p, word);
    put(p, " ");
    put(p, value);
    put(p, "\n");
}

static void put_number(const printer *p, const char *before, uint64_t x) {
    char digits[24];
    ebb__text t = ebb__text_in(digits, sizeof digits);
    ebb__text_u64(&t, x);
    put(p, before);
    put(p, digits);
}

/* A repeated choice is written once, with a count. */
static void put_choices(const printer *p, const ebb_lab_case *c) {
    enum { A_LINE = 30 };
    uint32_t words = 0;
    for (size_t i = 0, run; i < c->n_choices; i += run) {
        for (run = 1; i + run < c->n_choices && c->choices[i + run] == c->choices[i]; run++) {}
        if (run < 4) run = 1;
        put_number(p, words % A_LINE == 0 ? "choices " : " ", c->choices[i]);
        if (run > 1) put_number(p, "*", run);
        if (++words % A_LINE == 0 || i + run == c->n_choices) put(p, "\n");
    }
}

static void put_script(const printer *p, const ebb_lab_case *c) {
    for (size_t at = 0; at < c->script_n;) {
        size_t n = ebb__find_byte(c->script + at, c->script_n - at, '\n');
        put(p, "line ");
        p->write(p->ctx, c->script + at, n);
        put(p, "\n");
        at += n + 1;
    }
}

void ebb_lab_save(const ebb_lab_case *c, ebb_write_fn write, void *ctx) {
    printer p = {write, ctx};
    put(&p, MAGIC "\n");
    put_line(&p, "contract", EBB_CONTRACT);
    put_line(&p, "scenario", c->scenario->name);
    put_number(&p, "seed ", c->seed);
    put(&p, "\n");
    if (c->plant != 0) put_line(&p, "plant", ebb_oracle_name((ebb_oracle)c->plant));
    if (c->failure[0] != 0) put_line(&p, "fails", c->failure);
    if (c->action != EBB_LAB_NOTHING) {
        put_number(&p, "inject ", c->point);
        put_line(&p, "", actions[c->action]);
    }
    put_script(&p, c);
    put_choices(&p, c);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

typedef struct loader {
    ebb_lab *lab;
    const ebb_lab_scenario *own;
    ebb_lab_case *c;
    size_t choices_room, script_room;
    bool seeded;
    ebb_lab_error *error;
} loader;

static ebb_status fail(loader *l, ebb_status st, const char *expected, const char *found, size_t n) {
    enum { SHOWN = 40 };
    if (st == EBB_ERR_NOMEM) return st;
    ebb__text t = ebb__text_in(l->error->text, sizeof l->error->text);
    ebb__text_str(&t, "expected ");
    ebb__text_str(&t, expected);
    ebb__text_str(&t, n == 0 ? ", found nothing" : ", found '");
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        bool plain = found[i] >= 0x20 && found[i] <= 0x7e;
        ebb__text_bytes(&t, plain ? found + i : "?", 1);
    }
    if (n > 0) ebb__text_str(&t, n > SHOWN ? "...'" : "'");
    return st;
}

static bool equals(const char *text, size_t n, const char *word) {
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* Parses a number; false unless it is the whole text. */
static bool number_in(const char *text, size_t n, uint64_t most, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (*out > (most - digit) / 10) return false;
        *out = *out * 10 + digit;
    }
    return n > 0;
}

static ebb_status read_contract(loader *l, const char *v, size_t n) {
    return equals(v, n, EBB_CONTRACT) ? EBB_OK : fail(l, EBB_ERR_VERSION, "the contract " EBB_CONTRACT, v, n);
}

static ebb_status read_scenario(loader *l, const char *v, size_t n) {
    for (size_t i = 0; ebb_lab_scenario_at(i) != NULL; i++) {
        if (equals(v, n, ebb_lab_scenario_at(i)->name)) l->c->scenario = ebb_lab_scenario_at(i);
    }
    if (l->own != NULL && equals(v, n, l->own->name)) l->c->scenario = l->own;
    return l->c->scenario != NULL ? EBB_OK : fail(l, EBB_ERR_SYNTAX, "the name of a scenario", v, n);
}

static ebb_status read_seed(loader *l, const char *v, size_t n) {
    l->seeded = number_in(v, n, UINT64_MAX, &l->c->seed);
    return l->seeded ? EBB_OK : fail(l, EBB_ERR_SYNTAX, "a number of 64 bits", v, n);
}

static ebb_status read_plant(loader *l, const char *v, size_t n) {
    for (int i = 1; i < EBB_ORACLES; i++) {
        if (equals(v, n, ebb_oracle_name((ebb_oracle)i))) l->c->plant = i;
    }
    return l->c->plant != 0 ? EBB_OK : fail(l, EBB_ERR_SYNTAX, "the name of an oracle", v, n);
}

static ebb_status read_failure(loader *l, const char *v, size_t n) {
    if (n == 0 || n >= sizeof l->c->failure) return fail(l, EBB_ERR_SYNTAX, "the name of a failure", v, n);
    memcpy(l->c->failure, v, n);
    l->c->failure[n] = 0;
    return EBB_OK;
}

/* "117 cancel" */
static ebb_status read_inject(loader *l, const char *v, size_t n) {
    size_t space = ebb__find_byte(v, n, ' ');
    if (number_in(v, space, UINT64_MAX, &l->c->point) && space < n) {
        for (int i = 1; i < EBB_LAB_ACTIONS; i++) {
            if (equals(v + space + 1, n - space - 1, actions[i])) l->c->action = (ebb_lab_action)i;
        }
    }
    return l->c->action != EBB_LAB_NOTHING ? EBB_OK
                                           : fail(l, EBB_ERR_SYNTAX, "POINT ACTION, as '117 cancel'", v, n);
}

static ebb_status read_line(loader *l, const char *v, size_t n) {
    size_t at = l->c->script_n;
    if (!ebb__lab_grow(l->lab, (void **)(void *)&l->c->script, &l->script_room, at + n + 1, 1))
        return EBB_ERR_NOMEM;
    memcpy(l->c->script + at, v, n);
    l->c->script[at + n] = '\n';
    l->c->script_n = at + n + 1;
    return EBB_OK;
}

static ebb_status add_choices(loader *l, uint16_t choice, uint64_t times) {
    size_t n = l->c->n_choices + (size_t)times;
    if (!ebb__lab_grow(l->lab, (void **)(void *)&l->c->choices, &l->choices_room, n, sizeof *l->c->choices)) {
        return EBB_ERR_NOMEM;
    }
    while (l->c->n_choices < n) l->c->choices[l->c->n_choices++] = choice;
    return EBB_OK;
}

/* "7", or "7*100" for a hundred of them. */
static ebb_status read_choice(loader *l, const char *v, size_t n) {
    enum { MOST = 1000000 };
    size_t star = ebb__find_byte(v, n, '*');
    uint64_t choice, times = 1;
    bool good = number_in(v, star, UINT16_MAX, &choice);
    if (star < n) good &= number_in(v + star + 1, n - star - 1, MOST, &times);
    if (!good) return fail(l, EBB_ERR_SYNTAX, "a choice, 0 to 65535, or CHOICE*TIMES", v, n);
    return add_choices(l, (uint16_t)choice, times);
}

static ebb_status read_choices(loader *l, const char *v, size_t n) {
    ebb_status st = n == 0 ? read_choice(l, v, 0) : EBB_OK;
    for (size_t at = 0, length; at < n && st == EBB_OK; at += length + 1) {
        length = ebb__find_byte(v + at, n - at, ' ');
        st = read_choice(l, v + at, length);
    }
    return st;
}

static const struct {
    const char *word;
    ebb_status (*read)(loader *l, const char *value, size_t n);
} words[] = {
    {"contract", read_contract}, {"scenario", read_scenario}, {"seed", read_seed},
    {"plant", read_plant},       {"fails", read_failure},     {"line", read_line},
    {"choices", read_choices},   {"inject", read_inject},
};

static ebb_status read_one(loader *l, const char *text, size_t n) {
    if (l->error->line == 1) {
        return equals(text, n, MAGIC) ? EBB_OK : fail(l, EBB_ERR_VERSION, "'" MAGIC "'", text, n);
    }
    if (n == 0 || text[0] == '#') return EBB_OK;
    size_t length = ebb__find_byte(text, n, ' '), skip = length == n ? n : length + 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (equals(text, length, words[i].word)) return words[i].read(l, text + skip, n - skip);
    }
    return fail(l, EBB_ERR_SYNTAX, "contract, scenario, seed, plant, fails, inject, line or choices", text,
                length);
}

static ebb_status read_all(loader *l, const char *bytes, size_t n) {
    size_t at = 0;
    do {
        size_t length = ebb__find_byte(bytes + at, n - at, '\n');
        l->error->line++;
        size_t text = length > 0 && bytes[at + length - 1] == '\r' ? length - 1 : length;
        ebb_status st = read_one(l, bytes + at, text);
        if (st != EBB_OK) return st;
        at += length + 1;
    } while (at < n);
    if (l->c->scenario == NULL)
        return fail(l, EBB_ERR_SYNTAX, "a line 'scenario NAME' before the end", "", 0);
    return l->seeded ? EBB_OK : fail(l, EBB_ERR_SYNTAX, "a line 'seed NUMBER' before the end", "", 0);
}

/* Shrinks each block to its length, because it is freed by its length. */
static ebb_status trim(loader *l) {
    ebb_allocator *a = &l->lab->allocator;
    ebb_lab_case *c = l->c;
    if (c->n_choices > 0) {
        void *p = ebb__resize(a, c->choices, l->choices_room * sizeof *c->choices,
                              c->n_choices * sizeof *c->choices);
        if (p == NULL) return EBB_ERR_NOMEM;
        c->choices = p;
        l->choices_room = c->n_choices;
    }
    if (c->script_n > 0) {
        void *p = ebb__resize(a, c->script, l->script_room, c->script_n);
        if (p == NULL) return EBB_ERR_NOMEM;
        c->script = p;
        l->script_room = c->script_n;
    }
    return EBB_OK;
}

ebb_status ebb_lab_load(ebb_lab *lab, const char *bytes, size_t n, const ebb_lab_scenario *own,
                        ebb_lab_case *out, ebb_lab_error *error) {
    *out = (ebb_lab_case){.recorded = true};
    *error = (ebb_lab_error){.line = 0};
    loader l = {.lab = lab, .own = own, .c = out, .error = error};
    ebb_status st = read_all(&l, bytes, n);
    if (st == EBB_OK) st = trim(&l);
    if (st == EBB_OK) return EBB_OK;
    ebb__free(&lab->allocator, out->choices, l.choices_room * sizeof *out->choices);
    ebb__free(&lab->allocator, out->script, l.script_room);
    *out = (ebb_lab_case){.recorded = true};
    return st;
}
