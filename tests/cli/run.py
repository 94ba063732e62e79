#!/usr/bin/env python3
"""`ebb run` from outside: what it prints, how it ends, what it records.

usage: run.py EBB [NAME...]
"""
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EBB = None
ROOT = Path(__file__).resolve().parents[2]
MACHINE = """type Go = {{}}
typestate M {{
    fn new() -> On {{ On }}
    state On {{
        on Go -> stay | MachineError {{ {body} }}
        {more}
    }}
}}
fn main() -> () | MachineError {{
    let m = M::spawn();
    start(m);
    send(m, Go)?;
}}
"""


def ebb(*args):
    return subprocess.run([EBB, *map(str, args)], capture_output=True, text=True, timeout=60)


class Run(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = Path(self.dir.name)

    def tearDown(self):
        self.dir.cleanup()

    def file(self, text, name="main.ebb"):
        path = self.path / name
        path.write_text(text)
        return path

    def machine(self, body, more=""):
        return self.file(MACHINE.format(body=body, more=more))

    def check_trace(self, path):
        run = ebb("trace", "verify", "--strict", "--quiescent", path)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_examples_run_and_record_what_holds(self):
        for name, lines in {
            "auth": ["alice may"],
            "philosophers": ["1 eats", "0 eats", "2 eats"],
            "request": ["2 more is 2"],
            "valve": ["18"],
            "vending": ["tea, and 30 back"],
        }.items():
            with self.subTest(name):
                trace = self.path / "trace"
                run = ebb("run", ROOT / f"examples/lang/{name}.ebb", "--trace", trace)
                self.assertEqual((run.returncode, run.stdout.splitlines(), run.stderr), (0, lines, ""))
                self.check_trace(trace)

    def test_of_two_orders_at_almost_the_same_time_at_least_one_is_committed(self):
        trace = self.path / "trace"
        run = ebb("run", ROOT / "examples/lang/commit.ebb", "--trace", trace)
        lines = run.stdout.splitlines()
        self.assertEqual((run.returncode, len(lines)), (0, 2), run.stderr)
        self.assertIn("order 7 committed", lines)
        self.assertTrue({"order 8 committed", "order 8 aborted"} & set(lines), lines)
        self.check_trace(trace)
        run = ebb("run", ROOT / "examples/lang/commit_naive.ebb")
        self.assertIn(run.returncode, (0, 6)) # how fast this machine is decides whether an update is lost
        self.assertIn("order 7 committed", run.stdout.splitlines())

    def test_examples_that_wait_for_a_timer_are_closed(self):
        for name, line in {"light": "switched on 1 times\n", "connection": "connecting to example.net\n"}.items():
            run = subprocess.Popen([EBB, "run", ROOT / f"examples/lang/{name}.ebb"], stdout=subprocess.PIPE, text=True)
            self.assertEqual(run.stdout.readline(), line)
            run.send_signal(signal.SIGINT)
            self.assertEqual((run.communicate(timeout=30)[0], run.returncode), ("", 0))

    def test_a_fault_that_is_caught_is_told_and_is_0(self):
        run = ebb("run", ROOT / "examples/lang/fault.ebb")
        self.assertEqual((run.returncode, run.stdout), (0, "rolled back with the rest if what follows fails\n"))
        self.assertIn("fault.ebb:17:12: Divider faulted on Divide: an error was passed on: ByZero", run.stderr)

    def test_errors_are_those_of_check(self):
        path = self.file("fn main() { let n: i64 = true; print(str(n)); }\n")
        run = ebb("run", path)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr, ebb("check", path).stderr)

    def test_main_that_fails_is_1(self):
        run = ebb("run", self.file("fn main() { print(\"a\"); trap(\"no\"); }\n"))
        self.assertEqual((run.returncode, run.stdout), (1, "a\n"))
        self.assertIn("main.ebb:1:25: main faulted: trap: no", run.stderr)
        run = ebb("run", self.file("@error type E = { n: i64 }\nfn main() -> () | E { return E { n: 7 }; }\n"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("main faulted: an error was passed on: E { n: 7 }", run.stderr)

    def test_a_runaway_main_ends(self):
        run = ebb("run", self.file("fn main() { while true {} }\n"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("the budget of calls and turns of loops is used up", run.stderr)

    def test_a_machine_that_faults_is_6_and_prints_nothing_of_it(self):
        trace = self.path / "trace"
        run = ebb("run", self.machine('print("lost"); assert(1 > 2, "why");'), "--trace", trace)
        self.assertEqual((run.returncode, run.stdout), (6, ""))
        self.assertIn("M faulted on Go: an assertion does not hold: why", run.stderr)
        self.check_trace(trace)

    def test_a_runaway_handler_is_a_fault(self):
        run = ebb("run", self.machine("while true {}"))
        self.assertEqual(run.returncode, 6)
        self.assertIn("the budget of calls and turns of loops is used up", run.stderr)

    def test_dead_letters_are_told_unless_quiet(self):
        path = self.machine("send(self, Back)?;").read_text().replace("type Go", "type Back = {}\ntype Go")
        path = self.file(path.replace("state On {", "state Off { on Back {} }\n    state On {"))
        run = ebb("run", path)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("M did not get Back: no handler in this state", run.stderr)
        self.assertNotIn("did not get", ebb("run", "--quiet", path).stderr)

    def test_machines_that_wait_for_ever_are_1(self):
        trace = self.path / "trace"
        run = ebb("run", ROOT / "examples/lang/philosophers_naive.ebb", "--trace", trace)
        self.assertEqual(run.returncode, 1)
        self.assertIn("waits for ever: 3 requests without a reply, 3 messages that nobody takes", run.stderr)
        self.check_trace(trace)

    def test_a_short_timer_is_waited_for(self):
        run = ebb("run", self.machine("", 'after 20ms { print("now"); }'))
        self.assertEqual((run.returncode, run.stdout), (0, "now\n"), run.stderr)

    def test_a_signal_closes_and_does_not_wait_for_timers(self):
        path = self.machine('print("ready");', 'after 1h { print("late"); }')
        trace = self.path / "trace"
        run = subprocess.Popen([EBB, "run", path, "--trace", trace], stdout=subprocess.PIPE, text=True)
        self.assertEqual(run.stdout.readline(), "ready\n")
        run.send_signal(signal.SIGINT)
        rest, _ = run.communicate(timeout=30)
        self.assertEqual((run.returncode, rest), (0, ""))
        self.check_trace(trace)

    def test_the_console_gives_lines_and_then_the_end(self):
        path = self.file("""import std::console;
typestate Echo {
    fields { n: i64 }
    fn new() -> On { On { n: 0 } }
    state On {
        entry {
            subscribe(console::Line, console::KEY);
            subscribe(console::End, console::KEY);
        }
        on console::Line(l) { self.n += 1; print(f"{self.n} {l.text}"); }
        on console::End { print("end"); }
    }
}
fn main() { let e = Echo::spawn(); start(e); }
""")
        for text, lines in {"a\nb\n": ["1 a", "2 b", "end"], "last": ["1 last", "end"], "": ["end"]}.items():
            run = subprocess.run([EBB, "run", path], input=text, capture_output=True, text=True, timeout=60)
            self.assertEqual((run.returncode, run.stdout.splitlines(), run.stderr), (0, lines, ""))
        many = "".join(f"line {i}\n" for i in range(500))
        file = self.path / "input"
        file.write_text(many)
        with open(file) as stdin:
            run = subprocess.run([EBB, "run", path], stdin=stdin, capture_output=True, text=True, timeout=60)
        self.assertEqual((run.returncode, len(run.stdout.splitlines())), (0, 501), run.stderr)
        run = subprocess.run([EBB, "run", path], input=b"\xff\nok\n", capture_output=True, timeout=60)
        self.assertEqual((run.returncode, run.stdout), (0, b"1 ok\nend\n"))
        self.assertIn(b"not UTF-8", run.stderr)

    def test_a_function_that_is_too_large_is_named_with_its_place(self):
        path = self.file("fn main() {\n" + "".join(f"    let _v{i} = {i};\n" for i in range(300)) + "}\n")
        self.assertEqual(ebb("check", path).returncode, 0)
        for command in ["run", "test"]:
            run = ebb(command, path)
            self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
            self.assertEqual(run.stderr, f"ebb: {path}:1:4: main has more than 250 variables, parameters and "
                                         "intermediate values of a kind\n")

    def test_arguments(self):
        self.assertEqual(ebb("run").returncode, 2)
        self.assertEqual(ebb("run", "--help").returncode, 0)
        self.assertEqual(ebb("run", "a", "b").returncode, 2)
        self.assertEqual(ebb("run", "--no").returncode, 2)
        self.assertEqual(ebb("run", self.path / "missing.ebb").returncode, 2)
        run = ebb("run", self.file("const A: i64 = 1;\n"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("there is no `fn main`", run.stderr)


if __name__ == "__main__":
    EBB = sys.argv[1]
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
