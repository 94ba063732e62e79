"""`ebb lab` from outside, and the planted bugs: lab.py PATH-OF-EBB PATH-OF-EBB-MUTANT.

For each oracle the mutant has a bug that this oracle is there to find. Exploring must find it, by that
oracle and no other, within 10,000 schedules; what is written must fail in the same way with the bug and
pass without it."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

EBB = MUTANT = ""
PLANTS = [
    "required_fields", "task_leak", "region_leak", "obligation_leak", "quiescence_at_close", "losers_drained",
    "phase_monotone", "severity_monotone", "budget_monotone", "no_new_work", "parents_before_children",
    "ack_only_unmasked", "finalizers_once", "no_lost_wake", "fairness",
]


def run(program, *args):
    done = subprocess.run([program, "lab", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout, done.stderr


class Lab(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def verify(self, path):
        return subprocess.run([EBB, "trace", "verify", "--strict", "--quiescent", path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)


class PlantedBugs(Lab):
    def find(self, plant):
        file = self.path(plant + ".lab")
        code, out, err = run(MUTANT, "explore", "storm", "--schedules", "10000", "--plant", plant, "--out", file)
        self.assertEqual((code, err), (1, ""), out)
        self.assertIn(": %s: " % plant, out.splitlines()[0])
        schedules = int(re.search(r"storm: (\d+) schedules", out).group(1))
        self.assertIn("replay with: ebb lab replay " + file, out)
        sizes = re.search(r"shrunk from (\d+) lines and (\d+) choices to (\d+) and (\d+)", out)
        before, _, after, _ = map(int, sizes.groups())
        self.assertLess(after, before)
        self.assertLessEqual(after, 8)
        print("%-24s found after %d schedules, %s" % (plant, schedules, sizes.group(0)))
        return file

    def test_each_is_found_by_its_oracle_and_replays(self):
        for plant in PLANTS:
            with self.subTest(plant):
                file = self.find(plant)
                code, out, _ = run(MUTANT, "replay", file)
                self.assertEqual(code, 1)
                self.assertIn(": %s: " % plant, out.splitlines()[0])
                again = run(MUTANT, "replay", file)
                self.assertEqual(again[1], out)
                code, out, _ = run(EBB, "replay", file)
                self.assertEqual(code, 0, out)
                self.assertIn("it does not fail any more", out)

    def test_the_shipped_command_has_no_plants(self):
        code, _, err = run(EBB, "explore", "storm", "--plant", "task_leak")
        self.assertEqual(code, 2)
        self.assertIn("--plant", err)

    def test_what_has_no_planted_bug_is_refused_with_a_list(self):
        for plant in ("well_formed", "nothing"):
            code, _, err = run(MUTANT, "explore", "storm", "--plant", plant)
            self.assertEqual(code, 2)
            self.assertIn("not '%s'" % plant, err)
            self.assertEqual([line.strip() for line in err.splitlines()[1:]], PLANTS)

    def test_the_page_says_which_there_are(self):
        with open("docs/lab.md", encoding="utf-8") as f:
            page = f.read().split("## Planted bugs")[1].split("\n## ")[0]
        self.assertEqual(re.findall(r"^- `(\w+)`", page, re.M), PLANTS)


class KeptCases(Lab):
    def test_what_once_failed_fails_no_more(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab", "cases")
        for name in sorted(os.listdir(folder)):
            with self.subTest(name):
                code, out, err = run(EBB, "replay", os.path.join(folder, name))
                self.assertEqual((code, err), (0, ""), out)


class Commands(Lab):
    def test_list_names_the_scenarios(self):
        code, out, _ = run(EBB, "list")
        self.assertEqual(code, 0)
        names = [line.split()[0] for line in out.splitlines()]
        self.assertEqual(sorted(names), ["masked", "nested", "obligations", "pingpong2", "pipeline", "race", "storm",
                                         "timers"])

    def test_exploring_without_plants_finds_nothing(self):
        code, out, err = run(EBB, "explore", "storm", "--schedules", "10000")
        self.assertEqual((code, out, err), (0, "storm: 10000 schedules, nothing failed\n", ""))

    def test_exploring_by_depth_says_whether_that_was_all(self):
        code, out, _ = run(EBB, "explore", "race", "--dfs", "3", "--schedules", "100000")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^race: \d+ schedules, all there are to this depth, nothing failed\n$")
        code, out, _ = run(EBB, "explore", "race", "--dfs", "20", "--schedules", "50")
        self.assertEqual((code, out), (0, "race: 50 schedules, there are more to this depth, nothing failed\n"))

    def test_a_long_run_verifies(self):
        trace = self.path("t")
        code, out, _ = run(EBB, "run", "storm", "--seed", "5", "--events", "1000000", "--trace", trace)
        self.assertEqual(code, 0, out)
        self.assertGreaterEqual(int(re.search(r": (\d+) events", out).group(1)), 1000000)
        done = self.verify(trace)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("every rule holds", done.stdout)

    def test_each_runtime_has_its_own_trace_and_journal(self):
        code, out, _ = run(EBB, "run", "pingpong2", "--seed", "2", "--trace", self.path("t"), "--journal",
                           self.path("j"))
        self.assertEqual(code, 0, out)
        for name in ["t", "t.1"]:
            self.assertEqual(self.verify(self.path(name)).returncode, 0)
        for name in ["j", "j.1"]:
            with open(self.path(name), "rb") as f:
                self.assertEqual(f.read(8), b"EBBJRNL\0")
        self.assertFalse(os.path.exists(self.path("t.2")))

    def test_the_same_seed_gives_the_same_bytes(self):
        for name in ["a", "b"]:
            run(EBB, "run", "storm", "--seed", "11", "--trace", self.path(name), "--journal", self.path(name + "j"))
        for one, two in [("a", "b"), ("aj", "bj")]:
            with open(self.path(one), "rb") as x, open(self.path(two), "rb") as y:
                self.assertEqual(x.read(), y.read())

    def test_a_malformed_file_is_named_with_its_line(self):
        file = self.write("bad.lab", "ebb-lab 1\ncontract ebb-cancel-v2\nscenario storm\nseed 1\nchoices 1 two\n")
        code, out, err = run(EBB, "replay", file)
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err, "ebb: %s:5: expected a choice, 0 to 65535, or CHOICE*TIMES, found 'two'\n" % file)

    def test_a_bad_line_of_a_script_fails_as_a_script(self):
        file = self.write("bad.lab", "ebb-lab 1\ncontract ebb-cancel-v2\nscenario storm\nseed 1\nline wash r0\n")
        code, out, _ = run(EBB, "replay", file)
        self.assertEqual(code, 1)
        self.assertIn("script: word 1: found 'wash'", out)

    def test_wrong_arguments_are_refused(self):
        for args, says in [((), "usage"), (("fly",), "unknown lab command 'fly'"), (("run",), "takes a scenario"),
                           (("run", "none"), "unknown scenario 'none'"), (("run", "race", "--seed", "x"), "not 'x'"),
                           (("run", "race", "--seed"), "needs a value"), (("explore", "race", "--dfs", "0"), "1 to 64"),
                           (("explore", "race", "--dfs", "65"), "1 to 64"),
                           (("explore", "race", "--schedules", "0"), "from 1 to"),
                           (("run", "race", "--events", "0"), "from 1 to"),
                           (("run", "race", "--seed", "18446744073709551616"), "from 0 to 18446744073709551615"),
                           (("list", "race"), "takes nothing"), (("replay", "/none"), "can't open /none"),
                           (("run", "race", "--trace", "/none/t"), "can't write"),
                           (("run", "race", "nested"), "unexpected argument 'nested'"), (("run", "race", "--fast"), "unknown option '--fast'")]:
            code, _, err = run(EBB, *args)
            self.assertEqual(code, 2, args)
            self.assertIn(says, err)

    def test_help_is_not_an_error(self):
        code, out, _ = run(EBB, "--help")
        self.assertEqual(code, 0)
        self.assertIn("ebb lab explore SCENARIO", out)


if __name__ == "__main__":
    EBB, MUTANT = sys.argv[1], sys.argv[2]
    unittest.main(argv=sys.argv[:1])
