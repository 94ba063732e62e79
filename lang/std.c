/* lang/std.c - the modules that every program may import: machines that it can talk to. */
#include "lang/std.h"

#include <string.h>

static const struct {
    const char *module, *text;
} modules[] = {
    {"std/clock", "// A clock that publishes a Tick of a key again and again.\n"
                  "pub type Tick = { n: i64 }\n"
                  "pub type Halt = {}\n"
                  "\n"
                  "pub typestate Ticker {\n"
                  "    fields { every: duration, key: string, n: i64 }\n"
                  "\n"
                  "    fn new(every: duration, key: string) -> Low { Low { every, key, n: 0 } }\n"
                  "\n"
                  "    state Low {\n"
                  "        after self.every -> High {\n"
                  "            self.n += 1;\n"
                  "            publish(Tick { n: self.n }, self.key);\n"
                  "            High\n"
                  "        }\n"
                  "    }\n"
                  "\n"
                  "    state High {\n"
                  "        after self.every -> Low {\n"
                  "            self.n += 1;\n"
                  "            publish(Tick { n: self.n }, self.key);\n"
                  "            Low\n"
                  "        }\n"
                  "    }\n"
                  "\n"
                  "    on Halt -> Done { Done }\n"
                  "\n"
                  "    @final state Done { ignore Halt; }\n"
                  "}\n"},
    {"std/console", "// The console. The host publishes each line that is typed, and End behind the last, "
                    "with the key KEY.\n"
                    "pub type Line = { text: string }\n"
                    "pub type End = {}\n"
                    "\n"
                    "pub const KEY: string = \"console\";\n"
                    "\n"
                    "pub protocol Console {\n"
                    "    msg Write = { text: string }\n"
                    "\n"
                    "    role Writer;\n"
                    "\n"
                    "    role Printer {\n"
                    "        state Open { on Write; }\n"
                    "    }\n"
                    "}\n"
                    "\n"
                    "pub typestate Printer : Console::Printer {\n"
                    "    fn new() -> Open { Open }\n"
                    "\n"
                    "    state Open {\n"
                    "        on Write(w) { print(w.text); }\n"
                    "    }\n"
                    "}\n"},
    {"std/random",
     "// Random numbers, the same ones for the same seed.\n"
     "pub protocol Random {\n"
     "    msg Draw = { below: u64 }\n"
     "    msg Number = { value: u64 }\n"
     "    req Client -> Source: Draw => Number\n"
     "\n"
     "    role Client;\n"
     "\n"
     "    role Source {\n"
     "        state Ready {\n"
     "            on Draw@Client { effects: [reply Number] }\n"
     "        }\n"
     "    }\n"
     "}\n"
     "\n"
     "pub typestate Generator : Random::Source {\n"
     "    fields { x: u64 }\n"
     "\n"
     "    fn new(seed: u64) -> Ready { Ready { x: if seed == 0 { 88172645463325252u64 } else { seed } } }\n"
     "\n"
     "    state Ready {\n"
     "        on Draw(draw) {\n"
     "            assert(draw.below > 0, \"there is no number below 0\");\n"
     "            self.x = self.x ^ (self.x << 13);\n"
     "            self.x = self.x ^ (self.x >> 7);\n"
     "            self.x = self.x ^ (self.x << 17);\n"
     "            reply(Number { value: self.x % draw.below });\n"
     "        }\n"
     "    }\n"
     "}\n"},
};

const char *ebb__std_module(const char *module, size_t *n) {
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (strcmp(modules[i].module, module) != 0) continue;
        *n = strlen(modules[i].text);
        return modules[i].text;
    }
    return NULL;
}
