#!/usr/bin/env python3
"""`ebb test` from outside: expectations, explored schedules, and the files that replay a failure.

usage: test.py EBB [NAME...]
"""
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

EBB = None
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/lang"
MACHINE = """type Go = {{}}
typestate M {{
    fields {{ n: i64 }}
    fn new() -> On {{ On {{ n: 0 }} }}
    state On {{
        on Go -> stay | MachineError {{ {body} }}
        {more}
    }}
    {common}
}}
fn main() -> () | MachineError {{
    let m = M::spawn();
    start(m);
    send(m, Go)?;
}}
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.path = Path(self.dir.name)

    def ebb(self, *args, **how):
        return subprocess.run([EBB, *map(str, args)], capture_output=True, text=True, timeout=120, cwd=self.path, **how)

    def file(self, text, name="main.ebb"):
        path = self.path / name
        path.write_text(text)
        return path

    def machine(self, body="", more="", common="", after=""):
        return self.file(MACHINE.format(body=body, more=more, common=common) + after)

    def passes(self, path, *args):
        run = self.ebb("test", path, *args)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        return run.stdout

    def fails(self, path, *says, args=()):
        run = self.ebb("test", path, *args)
        self.assertEqual((run.returncode, run.stderr), (1, ""), run.stdout)
        for text in says:
            self.assertIn(text, run.stdout)
        return run.stdout

    def explored(self, path, *says, schedules=1000):
        """Explores a program that fails, and returns the arguments of the printed command."""
        out = self.fails(path, *says, args=("--explore", "--schedules", schedules))
        command = shlex.split(re.search(r"^replay with: ebb (.*)$", out, re.M).group(1))
        self.assertEqual(command[:3], ["test", str(path), "--replay"])
        return command

    def check_trace(self, path):
        run = self.ebb("trace", "verify", "--strict", path)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


class Examples(Case):
    def test_all_but_the_one_that_deadlocks_pass(self):
        fixed = sorted(set(EXAMPLES.glob("*.ebb")) - {EXAMPLES / "philosophers_naive.ebb"})
        run = self.ebb("test", *fixed)
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(run.stdout, "".join(f"{path.name}: ok\n" for path in fixed))
        for path in fixed:
            with self.subTest(path.name):
                self.passes(path, "--trace", "t")
                run = self.ebb("trace", "verify", "--strict", "--quiescent", "t")
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_the_naive_philosophers_deadlock_and_the_others_do_not(self):
        path = EXAMPLES / "philosophers_naive.ebb"
        command = self.explored(path, ": stuck: it waits for ever: 3 requests without a reply, 3 messages")
        run = self.ebb(*command)
        self.assertEqual(run.returncode, 1)
        self.assertIn("stuck: it waits for ever", run.stdout)
        self.assertIn("Running in Held, 1 queued (1 deferred)", run.stdout)
        self.assertIn("1000 schedules, ", self.passes(EXAMPLES / "philosophers.ebb", "--explore"))

    def test_the_naive_commit_loses_an_update_and_the_other_does_not(self):
        path = EXAMPLES / "commit_naive.ebb"
        self.passes(path) # the plain schedule does not show it
        command = self.explored(path, "Participant faulted on Decide: an invariant does not hold")
        run = self.ebb(*command)
        self.assertEqual(run.returncode, 1)
        self.assertIn("invariant: ", run.stdout)
        self.assertIn("  > order 7 committed\n", run.stdout)
        self.assertIn(", nothing failed", self.passes(EXAMPLES / "commit.ebb", "--explore"))

    def test_other_examples_hold_in_every_schedule(self):
        for name in ["auth", "connection", "fault", "light", "request", "vending"]:
            with self.subTest(name):
                self.passes(EXAMPLES / f"{name}.ebb", "--explore", "--schedules", "200")

    def test_three_more_protocols_hold_in_every_schedule(self):
        for name in ["lease", "election", "queue"]:
            with self.subTest(name):
                self.passes(ROOT / f"fixtures/lang/run/{name}.ebb", "--explore", "--schedules", "200")


class Judged(Case):
    def test_output_that_differs_is_shown_with_its_line(self):
        body = 'print("one"); print("two");'
        self.passes(self.machine(body, after="//> one\n//> two\n"))
        path = self.machine(body, after="//> one\n//> three\n")
        out = self.fails(path, "the plain schedule: output: line 2 of the output: expected 'three', found 'two'")
        self.assertIn("  > one\n  > two\n", out)
        self.fails(self.machine(body, after="//> one\n"), "line 2 of the output: expected no more, found 'two'")
        self.fails(self.machine(body, after="//> one\n//> two\n//>\n"), "line 3 of the output: expected '', found no more")
        self.passes(path, "--explore", "--schedules", "5") # output is that of the plain schedule

    def test_a_fault_fails_unless_it_is_listed_or_caught(self):
        fault = "M faulted on Go: division by zero"
        self.fails(self.machine("self.n = 1 / self.n;"), "schedule: fault: ", "main.ebb:6:49: " + fault)
        line = "//> ! fault M Go: division by zero, or of the smallest number by -1\n"
        dead = "//> ! dead M Go: the machine has faulted\n"
        path = self.machine("self.n = 1 / self.n;", after=line + dead)
        self.passes(path)
        self.passes(path, "--explore", "--schedules", "20")
        self.fails(self.machine("self.n = 1 / self.n;", after=line), "expected no more, found '! dead M Go")
        broken = "state Broken; fault -> Broken;"
        self.passes(self.machine("self.n = 1 / self.n;", common=broken))
        self.fails(self.machine("assert(self.n == 1);", common=broken), "assert: ", "an assertion does not hold")

    def test_what_does_not_hold_gives_the_failure_its_name(self):
        self.fails(self.machine("self.n = 2;", common="invariant self.n < 2;"), "schedule: invariant: ")
        spec = "spec Never observes Go { state S { on Go { assert(false, \"no\"); } } }\n"
        self.fails(self.machine(after=spec), "schedule: spec: ", "a spec does not hold: Never: no")
        hot = "spec Ends observes Go { state Off { on Go -> On { On } } hot state On; }\n"
        self.fails(self.machine(after=hot), "schedule: hot: the spec Ends is in the hot state On")
        self.fails(self.file("fn main() { trap(\"no\"); }\n"), "schedule: fault: ", "main faulted: trap: no")

    def test_a_program_that_never_becomes_quiet_fails(self):
        self.fails(self.machine(more="after 1h -> Off { Off }", common="state Off { after 1h -> On { On } }"),
                   "livelock: it has not ended after 50000 decisions")
        at_once = self.machine(more="after 0ms -> Off { Off }", common="state Off { after 0ms -> On { On } }")
        self.fails(at_once, "livelock: ")

    def test_a_hundred_thousand_machines_are_stopped_within_what_the_trace_holds(self):
        path = self.file("""type Go = { left: i64 }
typestate Idle { fn new() -> On { On } state On { on Go {} } }
typestate Spawner {
    fn new() -> On { On }
    state On {
        on Go(g) -> stay | MachineError {
            for _i in 0..5000 { start(Idle::spawn()); }
            if g.left > 1 { send(self, Go { left: g.left - 1 })?; } else { print("all"); }
        }
    }
}
fn main() -> () | MachineError { let s = Spawner::spawn(); start(s); send(s, Go { left: 20 })?; }
//> all
""")
        self.passes(path, "--trace", "t")
        self.check_trace("t")

    def test_any_number_of_machines_may_begin_in_one_decision(self):
        path = self.file("""typestate Idle { fn new() -> On { On } state On { } }
fn main() { for _i in 0..60000 { start(Idle::spawn()); } print("all"); }
//> all
""")
        self.passes(path, "--trace", "t") # which has more events than the lab's buffer
        self.check_trace("t")

    def test_a_flood_of_output_is_cut(self):
        self.fails(self.file('fn main() { while true { print("x"); } }\n'), "output: it says more than 16 MiB")
        out = self.fails(self.machine('for i in 0..100000 { print("line"); if i == 9999 { trap("end"); } }'), "fault: ")
        self.assertNotIn("line", out) # it was rolled back
        lines = 'fn main() { for i in 0..100000 { print(f"line {i}"); } }\n//> line\n'
        out = self.fails(self.file(lines), "output: line 1 of the output: expected 'line', found 'line 0'")
        self.assertLess(len(out), 100000)
        self.assertTrue(out.endswith("  > line 99999\n"))
        self.assertRegex(out, r"\n  \.\.\. \d+ bytes before\n  > line \d+\n")

    def test_time_is_virtual(self):
        path = self.machine(more='after 9000h { print(f"{now() > 0ms}"); }', after="//> true\n")
        start = time.monotonic()
        self.passes(path)
        self.assertLess(time.monotonic() - start, 60)

    def test_lines_are_typed_and_the_end_comes_behind_them(self):
        text = """import std::console;
typestate Echo {
    fields { n: i64 }
    fn new() -> On { On { n: 0 } }
    state On {
        entry {
            subscribe(console::Line, console::KEY);
            subscribe(console::End, console::KEY);
        }
        on console::Line(l) {
            self.n += 1;
            print(f"{self.n} {l.text}");
        }
        on console::End {
            print("end");
            assert(self.n == 2, f"{self.n}");
        }
        after 1s { print("a second"); }
    }
}
fn main() { let e = Echo::spawn(); start(e); }
"""
        typed = "//< one\n//<\n"
        path = self.file(text + typed + "//> 1 one\n//> 2 \n//> end\n//> a second\n")
        self.passes(path)
        self.passes(path, "--explore", "--schedules", "300")
        self.fails(self.file(text), "assert: ", "an assertion does not hold: 0")
        # A line may come after the second: that needs a line that is typed late.
        late = text.replace('print("a second");', 'assert(self.n > 0, "nothing was typed for a second");')
        self.explored(self.file(late + typed), "nothing was typed for a second")
        run = self.ebb("test", self.machine(after="//< one\n"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("there are lines '//<' for std::console, but no machine gets its Line", run.stderr)

    def test_what_does_not_compile_is_told_as_by_check(self):
        path = self.file("fn main() { let n: i64 = true; print(str(n)); }\n")
        run = self.ebb("test", path)
        self.assertEqual((run.returncode, run.stderr), (1, self.ebb("check", path).stderr))
        run = self.ebb("test", self.file("const A: i64 = 1;\n"))
        self.assertEqual(run.returncode, 1)
        self.assertIn("there is no `fn main`", run.stderr)


class Replays(Case):
    def naive(self, name="main.ebb"):
        return self.file((EXAMPLES / "commit_naive.ebb").read_text(), name)

    def test_the_same_program_and_seed_give_the_same_trace_and_file(self):
        path, files = self.naive(), []
        for out in "a.lab", "b.lab":
            self.fails(path, args=("--explore", "--seed", 3, "--out", out))
            files.append((self.path / out).read_bytes())
        self.assertEqual(*files)
        said = [self.ebb("test", path, "--replay", "a.lab", "--trace", name).stdout for name in ("a", "b")]
        self.assertEqual(*said)
        a, b = ((self.path / name).read_bytes() for name in ("a", "b"))
        self.assertGreater(len(a), 4096)
        self.assertEqual(a, b)
        self.check_trace("a")
        self.assertIn("machine_rolled_back", self.ebb("trace", "show", "a").stdout)
        for name in "c", "d":
            self.passes(EXAMPLES / "commit.ebb", "--trace", name)
        self.assertEqual((self.path / "c").read_bytes(), (self.path / "d").read_bytes())

    def test_a_program_that_was_mended_does_not_fail_any_more(self):
        path = self.naive()
        command = self.explored(path)
        self.assertEqual(self.ebb(*command).returncode, 1)
        path.write_text((EXAMPLES / "commit.ebb").read_text())
        run = self.ebb(*command)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("main.lab: it does not fail any more\n", run.stdout)

    def test_a_name_with_a_blank_is_quoted_in_the_command(self):
        command = self.explored(self.naive("two phases.ebb"))
        self.assertEqual(command[3], "two phases.lab")
        self.assertEqual(self.ebb(*command).returncode, 1)

    def test_a_file_that_is_damaged_or_of_another_program_is_refused(self):
        path = self.naive()
        self.explored(path)
        good = (self.path / "main.lab").read_text()
        self.assertEqual(good.splitlines()[2], "scenario main.ebb")
        for text, line, says in [
            ("", 1, "expected 'ebb-lab 1'"),
            (good.replace("ebb-lab 1", "ebb-lab 9"), 1, "expected 'ebb-lab 1', found 'ebb-lab 9'"),
            (good.replace("scenario main.ebb", "scenario other.ebb"), 3,
             "expected a case of main.ebb, found one of other.ebb"),
            (good.replace("scenario main.ebb", "scenario storm"), 3, "expected a case of main.ebb, found one of storm"),
            (good.replace("seed ", "sead "), 4, "expected contract, scenario, seed,"),
            (good.replace("choices 0", "choices x"), 6, "expected a choice, 0 to 65535, or CHOICE*TIMES, found 'x'"),
            (good[:good.index("seed")], 3, "expected a line 'seed NUMBER' before the end"),
        ]:
            with self.subTest(says):
                self.file(text, "bad.lab")
                run = self.ebb("test", path, "--replay", "bad.lab")
                self.assertEqual((run.returncode, run.stdout), (2, ""))
                self.assertIn(f"ebb: bad.lab:{line}: {says}", run.stderr)
        run = self.ebb("lab", "replay", "main.lab")
        self.assertEqual(run.returncode, 2)
        self.assertIn("main.lab:3: expected the name of a scenario, found 'main.ebb'", run.stderr)

    def test_an_explorer_that_is_killed_leaves_no_file(self):
        path = EXAMPLES / "philosophers.ebb"
        run = subprocess.Popen([EBB, "test", "--explore", path, "--schedules", str(10**12)], cwd=self.path)
        time.sleep(0.3)
        self.assertIsNone(run.poll())
        run.send_signal(signal.SIGKILL)
        run.wait(timeout=30)
        self.assertEqual(os.listdir(self.path), [])

    def test_a_file_is_replaced_whole_or_stays(self):
        path = self.naive()
        self.file("kept", "main.lab")

        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

        # The output goes through pipes, which have no limit.
        run = self.ebb("test", "--explore", path, preexec_fn=no_room)
        self.assertEqual(run.returncode, 2)
        self.assertIn("can't write main.lab: File too large", run.stderr)
        self.assertEqual((self.path / "main.lab").read_text(), "kept")
        self.assertEqual(sorted(os.listdir(self.path)), ["main.ebb", "main.lab"])
        run = self.ebb("test", "--explore", path, "--out", "none/x.lab")
        self.assertEqual(run.returncode, 2)
        self.assertIn("can't write none/x.lab: No such file or directory", run.stderr)


class Arguments(Case):
    def test_what_is_wrong_is_named(self):
        a, b = EXAMPLES / "auth.ebb", EXAMPLES / "light.ebb"
        for args, says in [
            ((), "usage: ebb test"),
            (("--explore",), "test takes a file"),
            (("--no", a), "unknown option '--no'"),
            ((a, "--seed"), "--seed needs a value"),
            ((a, "--explore", "--seed", "x"), "--seed takes a whole number from 0 to"),
            ((a, "--explore", "--schedules", "0"), "--schedules takes a whole number from 1 to"),
            ((a, "--seed", "1"), "--schedules, --seed and --out need --explore"),
            ((a, "--explore", "--trace", "t"), "--trace is of one run"),
            ((a, "--explore", "--replay", "x"), "--explore and --replay exclude each other"),
            ((a, b, "--trace", "t"), "--replay, --trace and --out take one file"),
            ((a, "--replay", "none.lab"), "can't open none.lab"),
            (("none.ebb",), "can't open none.ebb"),
            ((a, "--trace", "none/t"), "can't write none/t"),
        ]:
            with self.subTest(args):
                run = self.ebb("test", *args)
                self.assertEqual(run.returncode, 2)
                self.assertIn(says, run.stderr)
        run = self.ebb("test", "--help")
        self.assertEqual(run.returncode, 0)
        self.assertIn("--explore", run.stdout)

    def test_the_worst_of_several_files_counts(self):
        run = self.ebb("test", EXAMPLES / "philosophers_naive.ebb", EXAMPLES / "light.ebb")
        self.assertEqual(run.returncode, 1)
        self.assertIn("light.ebb: ok\n", run.stdout)


if __name__ == "__main__":
    EBB = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
