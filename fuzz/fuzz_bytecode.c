/* fuzz/fuzz_bytecode.c - any bytes as the code of a function: what the verifier accepts runs, and leaves nothing behind.
 * The first byte chooses the function; the rest replaces its code, or if the second bit of that byte is set, is laid over it. */
#include "tests/support/bytecode_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { CODE_MAX = 4096, BUDGET = 200 };

static const char text[] =
    "type Go = { n: i64, s: string }\n"
    "type Tag = { xs: [i64], m: [string: i64] }\n"
    "protocol P {\n"
    "  msg Ask = { s: string }\n"
    "  msg Yes = { s: string }\n"
    "  msg No\n"
    "  req A -> B: Ask => Yes | No within 10ms\n"
    "  role A;\n"
    "  role B { state On { on Ask@A { effects: [reply Yes | No] } } }\n"
    "}\n"
    "typestate B : P::B {\n"
    "  fields { seen: [string] }\n"
    "  fn new() -> On { On { seen: [] } }\n"
    "  state On {\n"
    "    on Ask(a) { self.seen.push(a.s); if a.s == \"\" { reply(No); } else { reply(Yes { s: a.s }); } }\n"
    "  }\n"
    "}\n"
    "typestate A {\n"
    "  fields { b: Machine<P::B>, m: [string: i64], t: Tag }\n"
    "  fn new(b: Machine<P::B>) -> Off { Off { b, m: [\"x\": 1], t: Tag { xs: [1], m: [\"y\": 2] } } }\n"
    "  fn sum(k: string) -> i64 { match self.m.get(k) { n: i64 => n, None => 0 } }\n"
    "  state Off {\n"
    "    entry { subscribe(Tag, \"k\"); }\n"
    "    on Go(g) -> On | MachineError {\n"
    "      request(self.b, P::Ask { s: g.s })?;\n"
    "      self.t.xs[0] += g.n;\n"
    "      self.m[g.s] = self.sum(g.s) + 1;\n"
    "      publish(self.t, \"k\");\n"
    "      On { last: g }\n"
    "    }\n"
    "  }\n"
    "  state On {\n"
    "    fields { last: Go }\n"
    "    on P::Yes(y) -> Off { print(f\"{y} {self.last} {self.m}\"); Off }\n"
    "    on P::No -> stay { for (k, v) in self.m { print(f\"{k} {v}\"); } }\n"
    "    on Tag(t) { self.t = t; }\n"
    "    after 5ms -> Off { Off }\n"
    "    exit { self.m.remove(\"x\"); }\n"
    "  }\n"
    "  on RequestFailed(f) { print(str(f.why)); }\n"
    "  invariant self.m.len() < 50;\n"
    "}\n"
    "fn main() -> () | MachineError {\n"
    "  let b = B::spawn();\n"
    "  let a = A::spawn(b);\n"
    "  start(b);\n"
    "  start(a);\n"
    "  for i in 0..3 { send(a, Go { n: i, s: \"s\" })?; }\n"
    "}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static bytecode_run r;
    if (n < 2 || n > CODE_MAX) return 0;
    if (r.rt == NULL) bytecode_open(&r, text, sizeof text - 1, BUDGET);
    ebb__bytecode *b = &r.p->image.codes[data[0] / 2 % r.p->image.n_codes];
    ebb__bytecode good = *b;
    size_t bytes = n - 1;
    uint32_t words = (uint32_t)(bytes / sizeof(uint32_t));
    bool over = data[0] & 1;
    if (over || words == 0) words = good.n;
    uint32_t *code = malloc(words * sizeof *code);
    bytecode_require(code != NULL, "no memory");
    if (over) {
        memcpy(code, good.at, words * sizeof *code);
        for (size_t i = 0; i + 2 < bytes; i += 3) { /* place, byte */
            size_t at = (data[1 + i] | (size_t)data[2 + i] << 8) % (words * sizeof *code);
            ((uint8_t *)code)[at] = data[3 + i];
        }
    } else {
        memset(code, 0, words * sizeof *code);
        memcpy(code, data + 1, bytes < words * sizeof *code ? bytes : words * sizeof *code);
    }
    b->at = code;
    b->n = words;
    if (ebb__verify(&r.p->image, (uint32_t)(b - r.p->image.codes), NULL, NULL)) bytecode_run_once(&r);
    *b = good;
    free(code);
    return 0;
}
