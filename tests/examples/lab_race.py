#!/usr/bin/env python3
"""The lab finds a bug of a proxy that depends on time, within 10,000 schedules, cuts it down, and replays it by the
command that it prints, with its traces if asked for; the repaired proxy holds: lab_race.py EBB LAB_RACE
EBB_LAB_SCHEDULES: how many schedules the repaired one has to hold (2000)."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCHEDULES = "10000"
HOLDS = os.environ.get("EBB_LAB_SCHEDULES", "2000")
BUG = "an answer to another's question"


class Race(unittest.TestCase):
    def run_in(self, where, *command):
        return subprocess.run(command, cwd=where, stdout=subprocess.PIPE, text=True, timeout=280)

    def test_it_is_found_cut_down_and_replayed_by_one_command(self):
        with tempfile.TemporaryDirectory() as where:
            found = self.run_in(where, PROGRAM, "explore", "race", "--schedules", SCHEDULES)
            self.assertEqual(found.returncode, 1, found.stdout)
            self.assertIn(BUG, found.stdout)
            before, after = map(int, re.search(r"shrunk from (\d+) choices to (\d+)", found.stdout).groups())
            self.assertLess(after, before)
            command = re.search(r"replay with: (.+)$", found.stdout, re.MULTILINE).group(1).split()
            first, second = (self.run_in(where, *command) for _ in range(2))
            self.assertEqual(first.returncode, 1)
            self.assertIn(BUG, first.stdout)
            self.assertEqual(first.stdout, second.stdout)
            traced = self.run_in(where, *command, "--trace", "race.trace", "--journal", "race.journal")
            self.assertEqual((traced.returncode, traced.stdout), (1, first.stdout))
            for i in range(4):
                name = "race.trace%s" % ("" if i == 0 else ".%d" % i)
                verified = self.run_in(where, EBB, "trace", "verify", "--strict", name)
                self.assertEqual(verified.returncode, 0, name)
            nowhere = self.run_in(where, *command, "--trace", "no/such/place")
            self.assertEqual(nowhere.returncode, 2)
            print(found.stdout, first.stdout, (Path(where) / "race.lab").read_text(), sep="")

    def test_numbers_that_are_none_are_named(self):
        for verb, option, value, least in (("explore", "--schedules", "0", 1), ("run", "--seed", "-1", 0),
                                           ("run", "--seed", "18446744073709551616", 0), ("inject", "--every", "x", 1)):
            done = subprocess.run([PROGRAM, verb, "race", option, value], stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{option} takes a whole number from {least} to 18446744073709551615, not '{value}'", done.stderr)

    def test_the_repaired_one_holds(self):
        done = self.run_in(".", PROGRAM, "explore", "fixed", "--schedules", HOLDS)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"{HOLDS} schedules hold", done.stdout)


if __name__ == "__main__":
    EBB = str(Path(sys.argv.pop(1)).resolve())
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
