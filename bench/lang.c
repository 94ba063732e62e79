/* The row of the compiler: how fast it is. */
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 100000 };

/* Programs like those of examples/lang, one behind the other, with names of their own. */
static const char unit[] =
    "type Coin%d = { cents: i64 }\n"
    "type Choose%d = { item: string }\n"
    "\n"
    "protocol P%d {\n"
    "    msg Go%d\n"
    "    msg Ask%d = { user: string }\n"
    "    msg Yes%d\n"
    "    msg No%d\n"
    "    req Client -> Server: Ask%d => Yes%d | No%d within 5s\n"
    "\n"
    "    role Client {\n"
    "        state Idle {\n"
    "            on Go%d@System { effects: [Ask%d ~> Server] }\n"
    "            on Yes%d@Server;\n"
    "            on No%d@Server;\n"
    "        }\n"
    "    }\n"
    "\n"
    "    role Server {\n"
    "        state Ready {\n"
    "            on Ask%d@Client { effects: [reply Yes%d | No%d] }\n"
    "        }\n"
    "    }\n"
    "}\n"
    "\n"
    "typestate Server%d : P%d::Server {\n"
    "    fields { asked: i64, names: [string] }\n"
    "\n"
    "    fn new() -> Ready { Ready { asked: 0, names: [] } }\n"
    "\n"
    "    state Ready {\n"
    "        on Ask%d(ask) {\n"
    "            self.asked += 1;\n"
    "            var known = false;\n"
    "            for name in self.names {\n"
    "                if name == ask.user { known = true; }\n"
    "            }\n"
    "            if known || self.asked * 2 > 100 { reply(Yes%d); } else { reply(No%d); }\n"
    "        }\n"
    "    }\n"
    "}\n"
    "\n"
    "typestate Client%d : P%d::Client {\n"
    "    fields { server: Machine<Server%d> as Server, paid: i64 }\n"
    "\n"
    "    fn new(server: Machine<Server%d>) -> Idle { Idle { server, paid: 0 } }\n"
    "\n"
    "    state Idle {\n"
    "        on Go%d -> stay | MachineError {\n"
    "            request(self.server, Ask%d { user: \"ada\" })?;\n"
    "        }\n"
    "\n"
    "        on Yes%d for Ask%d(asked) { print(f\"{asked.user} may\"); }\n"
    "        on No%d {}\n"
    "        on Coin%d(coin) {\n"
    "            let more = match coin.cents { 1 => 10, 2 => 20, n => n * 3 };\n"
    "            self.paid += more;\n"
    "        }\n"
    "        on Choose%d(c) { print(c.item); }\n"
    "    }\n"
    "\n"
    "    on RequestFailed(failed) { print(f\"{failed.why}\"); }\n"
    "}\n"
    "\n";

/* `unit` with its number; gives the lines. */
static size_t put_unit(FILE *out, int number) {
    size_t lines = 0;
    for (const char *at = unit; *at != 0; at++) {
        if (at[0] == '%' && at[1] == 'd') fprintf(out, "%d", number), at++;
        else fputc(*at, out);
        lines += *at == '\n';
    }
    return lines;
}

/* Nanoseconds a line, from text to typed IR. */
static double compile(void) {
    char *text = NULL;
    size_t n = 0, lines = 0, count;
    FILE *out = open_memstream(&text, &n);
    bench_must(out != NULL);
    for (int i = 0; lines < LINES; i++) lines += put_unit(out, i);
    bench_must(fclose(out) == 0);
    ebb_lang *c;
    ebb_lang_opts opts = {.allocator = ebb_libc_allocator()};
    double from = bench_cpu_ns();
    bench_must(ebb_lang_new(&opts, &c) == EBB_OK);
    bench_must(ebb_lang_compile(c, "bench.ebb", text, n) == EBB_OK);
    (void)ebb_lang_diagnostics(c, &count);
    bench_must(count == 0);
    ebb_lang_free(c);
    double took = bench_cpu_ns() - from;
    free(text);
    return took / (double)lines;
}

const bench_row bench_lang_rows[] = {
    {.name = "machine.compile",
     .unit = "ns/line",
     .ours = compile,
     .target = 3333}, /* 300,000 lines a second */
};
const size_t bench_lang_count = sizeof bench_lang_rows / sizeof *bench_lang_rows;
