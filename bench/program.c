/* Machines of a program on the VM: the messages and requests of machine.c, with handlers in the language. */
#include "bench/bench.h"

#include <ebb/ebb.h>
#include <string.h>

enum { MILLION = 1000000, STEPS = 2 * MILLION };

static const char ring_text[] = "type Step = { left: i64 }\n"
                                "type Peer = { to: Machine<Node> }\n"
                                "typestate Node {\n"
                                "  fields { n: i64 }\n"
                                "  fn new() -> Alone { Alone { n: 0 } }\n"
                                "  state Alone { on Peer(p) -> Linked { Linked { peer: p.to } } }\n"
                                "  state Linked {\n"
                                "    fields { peer: Machine<Node> }\n"
                                "    on Step(s) -> stay | MachineError {\n"
                                "      self.n += 1;\n"
                                "      if s.left == 0 { return; }\n"
                                "      send(self.peer, Step { left: s.left - 1 })?;\n"
                                "    }\n"
                                "  }\n"
                                "}\n"
                                "fn main() -> () | MachineError {\n"
                                "  let a = Node::spawn();\n"
                                "  let b = Node::spawn();\n"
                                "  start(a);\n"
                                "  start(b);\n"
                                "  send(a, Peer { to: b })?;\n"
                                "  send(b, Peer { to: a })?;\n"
                                "  send(a, Step { left: 2000000 })?;\n"
                                "}\n";

static const char request_text[] =
    "protocol P {\n"
    "  msg Begin = { pending: i64 }\n"
    "  msg Ask = { n: i64 }\n"
    "  msg Answer = { n: i64 }\n"
    "  req Asker -> Oracle: Ask => Answer\n"
    "  role Asker;\n"
    "  role Oracle { state On { on Ask@Asker { effects: [reply Answer] } } }\n"
    "}\n"
    "typestate Oracle : P::Oracle {\n"
    "  fn new() -> On { On }\n"
    "  state On { on Ask(a) { reply(Answer { n: a.n }); } }\n"
    "  mailbox 2000;\n"
    "}\n"
    "typestate Asker {\n"
    "  fields { oracle: Machine<P::Oracle>, left: i64 }\n"
    "  fn new(oracle: Machine<P::Oracle>, left: i64) -> On { On { oracle, left } }\n"
    "  state On {\n"
    "    on P::Begin(b) -> stay | MachineError {\n"
    "      for i in 0..b.pending { request(self.oracle, P::Ask { n: i })?; }\n"
    "      self.left -= b.pending;\n"
    "    }\n"
    "    on P::Answer(a) -> stay | MachineError {\n"
    "      if self.left == 0 { return; }\n"
    "      self.left -= 1;\n"
    "      request(self.oracle, P::Ask { n: a.n })?;\n"
    "    }\n"
    "    on RequestFailed {}\n"
    "  }\n"
    "  mailbox 2000;\n"
    "}\n"
    "fn run(askers: i64, pending: i64) -> () | MachineError {\n"
    "  for i in 0..askers {\n"
    "    let o = Oracle::spawn();\n"
    "    let a = Asker::spawn(o, 1000000 / askers);\n"
    "    start(o);\n"
    "    start(a);\n"
    "    send(a, P::Begin { pending })?;\n"
    "  }\n"
    "}\n"
    "fn main() -> () | MachineError { run(";

typedef struct bench_program {
    ebb_runtime *rt;
    ebb_lang *c;
    ebb_program *p;
} bench_program;

static bench_program begin(const char *text) {
    bench_program b = {.rt = bench_runtime()};
    ebb_lang_opts lang = {.allocator = ebb_libc_allocator()};
    ebb_program_opts opts = {.allocator = ebb_libc_allocator()};
    bench_must(ebb_lang_new(&lang, &b.c) == EBB_OK);
    bench_must(ebb_lang_compile(b.c, "bench.ebb", text, strlen(text)) == EBB_OK);
    bench_must(ebb_program_new(b.c, &opts, &b.p) == EBB_OK);
    bench_must(ebb_program_open(ebb_runtime_host(b.rt), b.p) == EBB_OK);
    bench_must(ebb_program_start(b.p) == EBB_OK);
    return b;
}

static void end(bench_program *b) {
    (void)ebb_region_close(ebb_runtime_host(b->rt), ebb_machines_region(ebb_program_machines(b->p)));
    bench_pump_all(b->rt);
    bench_must(ebb_program_free(b->p) == EBB_OK);
    ebb_lang_free(b->c);
    ebb_runtime_free(b->rt);
}

/* Nanoseconds for each of `n`, which is the least that was committed. */
static double run(const char *text, uint64_t n) {
    bench_program b = begin(text);
    double t0 = bench_cpu_ns();
    bench_pump_all(b.rt);
    double ns = (bench_cpu_ns() - t0) / (double)n;
    ebb_machines_stats s;
    ebb_machines_stats_of(ebb_program_machines(b.p), &s);
    bench_must(s.committed >= n && s.rolled_back == 0 && s.pending == 0);
    end(&b);
    return ns;
}

static double message(void) {
    return run(ring_text, STEPS);
}

static double requests(const char *args) {
    char text[sizeof request_text + 32];
    strcpy(text, request_text);
    strcat(text, args);
    strcat(text, ")?; }\n");
    return run(text, MILLION);
}
static double request_1(void) {
    return requests("1, 1");
}
static double request_10k(void) {
    return requests("10, 1000");
}

const bench_row bench_program_rows[] = {
    {.name = "machine.vm.message", .unit = "ns", .ours = message, .target = 80},
    {.name = "machine.vm.request_1", .unit = "ns", .ours = request_1},
    {"machine.vm.request_10k", "ns", request_10k, request_1, 1.5, 1},
};
const size_t bench_program_count = sizeof bench_program_rows / sizeof *bench_program_rows;
