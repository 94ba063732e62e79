/* Guide: a program in the language, compiled and run. */
#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>

static const char light[] = "type Toggle = {}\n"
                            "typestate Light {\n"
                            "    fn new() -> Off { Off {} }\n"
                            "    state Off { on Toggle -> On { print(\"on\"); On } }\n"
                            "    state On { on Toggle -> Off { print(\"off\"); Off } }\n"
                            "}\n"
                            "fn main() -> () | MachineError {\n"
                            "    let light = Light::spawn();\n"
                            "    start(light);\n"
                            "    send(light, Toggle)?;\n"
                            "    send(light, Toggle)?;\n"
                            "}\n";

static void say(void *ctx, const char *text, size_t n) {
    (void)ctx;
    printf("%.*s", (int)n, text);
}

static void say_line(void *ctx, const char *text, size_t n) {
    say(ctx, text, n);
    say(ctx, "\n", 1);
}

/* A compilation without errors; NULL: it has some, and they were printed. */
static ebb_lang *compile(const char *path, const char *text) {
    ebb_lang *c;
    size_t n = 0;
    if (ebb_lang_new(&(ebb_lang_opts){.allocator = ebb_libc_allocator()}, &c) != EBB_OK) return NULL;
    ebb_status st = ebb_lang_compile(c, path, text, strlen(text));
    const ebb_lang_diagnostic *const *all = ebb_lang_diagnostics(c, &n);
    for (size_t i = 0; i < n; i++) ebb_lang_render(c, all[i], say, NULL);
    if (st == EBB_OK) return c;
    ebb_lang_free(c);
    return NULL;
}

/* Runs main, and the machines until nothing will happen any more. */
static ebb_status play(ebb_runtime *rt, ebb_program *p) {
    ebb_cx *host = ebb_runtime_host(rt);
    ebb_status st = ebb_program_open(host, p);
    if (st != EBB_OK) return st;
    st = ebb_program_start(p);
    while (!ebb_program_is_quiet(p))
        if (ebb_runtime_pump(rt, 100) == EBB_OK) ebb_runtime_advance(rt, ebb_runtime_next_due(rt));
    ebb_region_close(host, ebb_machines_region(ebb_program_machines(p)));
    while (ebb_runtime_pump(rt, 100) == EBB_PENDING) continue;
    return st;
}

static ebb_status run(ebb_lang *c) {
    ebb_program_opts opts = {.allocator = ebb_libc_allocator(), .print = say_line};
    ebb_program_end end = {0};
    ebb_runtime *rt;
    ebb_program *p;
    ebb_status st = ebb_runtime_new(&(ebb_runtime_opts){.allocator = ebb_libc_allocator()}, &rt);
    if (st != EBB_OK) return st;
    st = ebb_program_new(c, &opts, &p);
    if (st == EBB_OK) {
        st = play(rt, p);
        ebb_program_end_of(p, &end);
        (void)ebb_program_free(p);
    }
    ebb_runtime_free(rt);
    printf("%s, %d faults\n", ebb_status_name(st), (int)end.faults);
    return st;
}

int main(void) {
    ebb_lang *wrong = compile("wrong.ebb", "fn main() { prnt(1); }\n");
    ebb_lang *c = compile("light.ebb", light);
    if (wrong != NULL || c == NULL) return 1;
    ebb_status st = run(c);
    ebb_lang_free(c);
    return st == EBB_OK ? 0 : 1;
}
