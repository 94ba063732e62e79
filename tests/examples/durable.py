#!/usr/bin/env python3
"""Runs the examples of durable orchestrations, and holds them to what they print and to their length.

usage: durable.py PROGRAM...
"""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LINES = 120
PROGRAMS = {}

# What each program has to print, as an expression for each line.
SAYS = {
    "order": ['reserve "quick", key given', 'charge "quick": EBB_OK', 'order-1: Completed "seat 4"',
              'reserve "slow", key given', '(charge "slow": EBB_CANCELLED|release "seat 4")',
              '(charge "slow": EBB_CANCELLED|release "seat 4")', "order-2: Failed not_paid"],
    "fanout": ["fan-1: Cancelled, half is enough", "not all of the parts were done",
               "its history is sound, with a thousand and more events"],
    "approval": ['expense-9: Running, "waits for an approval"', 'expense-9: Completed, "approved"'],
    "nightly": ["report of night 1, attempt 1", "report of night 2, attempt 1", "report of night 2, attempt 2",
                "report of night 3, attempt 1", "nightly: Completed in execution 3"],
    "scripts": ["backup-1: Failed, exit_1: the checksum is wrong", " 1 started", " 2 activity_scheduled",
                " 3 activity_failed", " 4 timer_created", " 5 timer_fired", " 6 activity_scheduled",
                " 7 activity_completed", " 8 activity_scheduled", " 9 activity_failed", "10 failed"],
}


class Durable(unittest.TestCase):
    def runs(self, name):
        self.assertLess(len((ROOT / "examples" / "durable" / f"{name}.c").read_text().splitlines()), LINES)
        with tempfile.TemporaryDirectory() as folder:
            for store in ["lab:", f"sqlite:{folder}/example.db"]:
                with self.subTest(store=store):
                    self.prints(name, store)

    def prints(self, name, store):
        done = subprocess.run([PROGRAMS[name], store], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), len(SAYS[name]), done.stdout)
        for line, says in zip(lines, SAYS[name]):
            self.assertTrue(re.fullmatch(says, line), f"{line!r} is not {says!r}")

    def test_an_order_survives_kill_9(self):
        for after in [0.01, 0.05, 0.1, 0.2, 0.3]:
            with self.subTest(after=after), tempfile.TemporaryDirectory() as folder:
                command = [PROGRAMS["order"], f"sqlite:{folder}/orders.db"]
                first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                try:
                    first.wait(timeout=after)
                except subprocess.TimeoutExpired:
                    first.kill()
                    first.wait()
                done = subprocess.run(command, capture_output=True, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                # The lease of what was killed lasts longer than the payment may take.
                self.assertRegex(done.stdout, 'order-1: (Completed "seat 4"|Failed not_paid)\n')
                self.assertIn("order-2: Failed not_paid", done.stdout)

    def test_each_is_tested(self):
        there = {p.stem for p in (ROOT / "examples" / "durable").glob("*.c")}
        self.assertEqual(set(SAYS), there - {"app"})  # tests/cli/durable.py runs that


for example in SAYS:
    setattr(Durable, f"test_{example}", lambda self, name=example: self.runs(name))

if __name__ == "__main__":
    for path in sys.argv[1:]:
        PROGRAMS[Path(path).name.removeprefix("durable_")] = path
    unittest.main(argv=sys.argv[:1])
