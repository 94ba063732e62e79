#!/usr/bin/env python3
"""Runs the fixtures, and broken copies of them.

usage: fixtures.py EBB EBB-MUTANT

A fixture that is not right must say in which field; one that does not hold must print everything
that is needed to look into it.
"""
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EBB = MUTANT = None
FIXTURES = Path("fixtures/cancel").resolve()
IDS = sorted([
    "cancel.task.request_to_ack_when_unmasked",
    "cancel.task.masked_defers_ack",
    "cancel.task.cleanup_to_finalizing_to_completed_cancelled",
    "cancel.task.completed_absorbing",
    "cancel.task.reason_strengthen_monotone",
    "cancel.task.budget_combine_monotone",
    "cancel.task.witness_phase_monotone",
    "cancel.region.cascade_parent_before_child",
    "cancel.region.cause_chain_bounded",
    "cancel.region.no_new_spawn_after_cancel",
    "cancel.region.no_new_obligation_after_cancel",
    "cancel.scheduler.cancel_lane_routing_on_pending_wake",
    "cancel.scheduler.late_wake_nonpanic",
    "parity.single_task_checkpoint",
    "parity.masked_deferral",
    "parity.nested_cascade",
    "parity.late_wake_race",
    "parity.obligation_and_finalizer",
])
MEANINGS = {"ebb-cancel-v2": "a7e6bea6bc9b8fe326da1e97b23f458cb276e3f090bcf53dc52a5094f1159128"}
SEVERAL_ORDERS = [  # the seed can be seen in the order of their events
    "cancel.region.cascade_parent_before_child",
    "cancel.scheduler.cancel_lane_routing_on_pending_wake",
    "parity.late_wake_race",
    "parity.nested_cascade",
    "parity.obligation_and_finalizer",
]
MASKED = "cancel.task.masked_defers_ack"
OWED = "parity.obligation_and_finalizer"


def ebb(*args, cwd=None, env=None):
    environment = {k: v for k, v in os.environ.items() if k != "EBB_FIXTURES"}
    environment.update(env or {})
    return subprocess.run([EBB, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", cwd=cwd, env=environment, check=False)


def load(name):
    return json.loads((FIXTURES / (name + ".json")).read_text(encoding="utf-8"))


class InAFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = self.folder.name

    def run_copy(self, name, change, *args):
        """Runs a copy of a fixture after `change` has had its way with it."""
        fixture = load(name)
        change(fixture)
        (Path(self.dir) / (name + ".json")).write_text(json.dumps(fixture), encoding="utf-8")
        return ebb("fixture", "run", name, "--dir", self.dir, *args)

    def expect_bad_file(self, name, change, *wanted):
        done = self.run_copy(name, change)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for text in (name + ".json",) + wanted:
            self.assertIn(text, done.stderr)
        self.assertNotIn("ok " + name, done.stdout)

    def expect_failure(self, name, change, *wanted):
        done = self.run_copy(name, change)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for text in wanted:
            self.assertIn(text, done.stdout)
        self.assertIn("0 of 1", done.stdout)
        return done.stdout


class Good(InAFolder):
    def test_all_hold(self):
        done = ebb("fixture", "run")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines(), ["ok " + i for i in IDS] + ["18 of 18"])
        self.assertEqual(done.stderr, "")

    def test_the_contract_asks_for_exactly_these(self):
        self.assertEqual(sorted(p.stem for p in FIXTURES.glob("*.json")), IDS)
        listed = ebb("fixture", "list")
        self.assertEqual([line.split()[0] for line in listed.stdout.splitlines()[::2]], IDS)

    def test_a_contract_means_what_it_meant(self):
        """A change of what phases, chains or witnesses mean shows in a fixture, and gives the contract another name."""
        means = "".join("%s %s\n" % (name, load(name)["expect"]["fingerprint"]) for name in IDS)
        self.assertEqual({load(name)["contract"] for name in IDS}, set(MEANINGS))
        self.assertEqual({name: hashlib.sha256(means.encode()).hexdigest() for name in MEANINGS}, MEANINGS,
                         "the fixtures are others than those of this contract: it needs another name")

    def test_the_repro_command_is_one(self):
        for name in IDS:
            words = load(name)["repro"].split()
            self.assertEqual(words[0], "ebb")
            done = ebb(*words[1:])
            self.assertEqual((done.returncode, done.stdout), (0, "ok %s\n1 of 1\n" % name))

    def test_the_end_does_not_depend_on_the_order(self):
        for seed in range(1, 33):
            done = ebb("fixture", "run", "--seed", str(seed))
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(done.stdout.splitlines(),
                             ["ok %s (seed %d, not its own)" % (i, seed) for i in IDS] + ["18 of 18"])

    def test_seeds_give_orders_and_never_another_end(self):
        """The same seed gives the same run; another may give another order, and nothing else."""
        several = []
        for name in IDS:
            runs = [json.loads(ebb("fixture", "show", name, "--seed", seed).stdout)
                    for seed in ("0", "0", "1", "2", "3", "77", "18446744073709551615")]
            self.assertEqual(runs[0], runs[1])
            for part in ("phases", "outcomes", "closure", "results"):
                for run in runs:
                    self.assertEqual(run[part], runs[0][part], name)
            if len({tuple(run["events"]) for run in runs}) > 1:
                several.append(name)
        self.assertEqual(several, SEVERAL_ORDERS)

    def test_they_are_found(self):
        elsewhere = ebb("fixture", "run", MASKED, cwd=self.dir)
        self.assertEqual(elsewhere.returncode, 2)
        self.assertIn("no fixtures", elsewhere.stderr)
        for args, env in ((("--dir", str(FIXTURES)), {}), ((), {"EBB_FIXTURES": str(FIXTURES)})):
            done = ebb("fixture", "run", MASKED, *args, cwd=self.dir, env=env)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_traces_are_written_and_pass_the_strict_check(self):
        done = ebb("fixture", "run", "--trace-dir", self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        first = {p.name: p.read_bytes() for p in Path(self.dir).iterdir()}
        self.assertEqual(sorted(first), [i + ".trace" for i in IDS])
        for name in first:
            checked = ebb("trace", "verify", "--strict", "--quiescent", os.path.join(self.dir, name))
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        ebb("fixture", "run", "--trace-dir", self.dir)
        self.assertEqual(first, {p.name: p.read_bytes() for p in Path(self.dir).iterdir()})

    def test_show_prints_what_is_expected(self):
        for name in IDS:
            shown, expect = json.loads(ebb("fixture", "show", name).stdout), load(name)["expect"]
            for part in expect:
                if part != "events":
                    self.assertEqual(shown[part], expect[part])
            self.assertEqual(len(shown["events"]), len(expect["events"]))


class BadFiles(InAFolder):
    def test_each_field_is_needed(self):
        for field in ("contract", "id", "about", "seed", "snapshot", "script", "expect", "repro"):
            self.expect_bad_file(MASKED, lambda f, field=field: f.pop(field),
                                 "field '%s' is missing; expected " % field)
        for field in ("phases", "events", "outcomes", "closure", "results", "steps", "fingerprint"):
            self.expect_bad_file(MASKED, lambda f, field=field: f["expect"].pop(field),
                                 "field 'expect.%s' is missing; expected " % field)

    def test_each_field_has_its_shape(self):
        for field, value, expected in (
                ("seed", "3", "a whole number, 0 or more"), ("seed", -1, "a whole number, 0 or more"),
                ("script", "open job", "an array of strings"), ("script", [1], "an array of strings"),
                ("watch", {}, "an array of strings"), ("expect", [], "an object"), ("repro", None, "a string")):
            self.expect_bad_file(MASKED, lambda f, k=field, v=value: f.update({k: v}),
                                 "field '%s' is" % field, "expected " + expected)
        for field, value, expected in (
                ("fingerprint", "12", "a string of 32 hex digits"),
                ("fingerprint", "X" * 32, "a string of 32 hex digits"),
                ("phases", {"worker": "Running"}, "an object of arrays of strings"),
                ("results", {"1": 5}, "an object of strings")):
            self.expect_bad_file(MASKED, lambda f, k=field, v=value: f["expect"].update({k: v}),
                                 "field 'expect.%s' is" % field, "expected " + expected)

    def test_values_that_can_not_be(self):
        for field, value, expected in (
                ("contract", "wasm-cancel-state-machine-v1", "expected 'ebb-cancel-v2'"),
                ("id", "cancel.task.another", "expected '%s'" % MASKED),
                ("snapshot", "full", "is 'full'; expected 'empty-root'"),
                ("snapshot", "", "expected 'empty-root'"),
                ("repro", "ebb fixture run", "expected 'ebb fixture run %s --seed 0'" % MASKED),
                ("watch", ["cancel_akced"], "expected the name of an event"),
                ("watchs", [], "unknown field")):
            self.expect_bad_file(MASKED, lambda f, k=field, v=value: f.update({k: v}),
                                 "field '%s'" % field, expected)
        self.expect_bad_file(MASKED, lambda f: f["expect"]["steps"].pop(),
                             "field 'expect.steps' has 8 entries; expected 9")
        self.expect_bad_file(MASKED, lambda f: f["expect"].update({"order": []}),
                             "unknown field 'expect.order'")

    def test_a_seed_that_is_not_the_one_of_repro(self):
        self.expect_bad_file(MASKED, lambda f: f.update(seed=7),
                             "field 'repro' is 'ebb fixture run %s --seed 0'" % MASKED,
                             "expected 'ebb fixture run %s --seed 7'" % MASKED)

    def test_a_line_that_is_not_understood(self):
        def change(fixture):
            fixture["script"][2] = "pmup"
        self.expect_bad_file(MASKED, change, "script line 3: word 1: found 'pmup', expected a verb")

    def test_what_is_not_json(self):
        path = Path(self.dir) / (MASKED + ".json")
        for text, wanted in (('{"id": 1,\n "seed" 2}', ":2:"), ("", ":1:"), ("[]", "the file is an array"),
                             ('{"id": "a", "id": "b"}', "duplicate")):
            path.write_text(text, encoding="utf-8")
            done = ebb("fixture", "run", MASKED, "--dir", self.dir)
            self.assertEqual(done.returncode, 2)
            self.assertIn(wanted, done.stderr)
            self.assertIn(str(path), done.stderr)


class Failures(InAFolder):
    def test_a_failure_prints_all_that_is_needed(self):
        def change(fixture):
            fixture["expect"]["events"][9] = "cleanup_done(worker)"
        out = self.expect_failure(
            MASKED, change, "FAILED " + MASKED, "id: %s, seed 0" % MASKED,
            "ids: region root 0.1.1, region job 0.2.1, task worker 0.1.1",
            "first diverging step: line 8 `pump`, event 10: expected cleanup_done(worker), "
            "found cancel_acked(worker) USER polite epoch 1",
            "repro: ebb fixture run %s --seed 0" % MASKED)
        expected, actual = out.split("expected trace:\n")[1].split("actual trace:\n")
        self.assertEqual(len(expected.splitlines()), 12)
        self.assertRegex(expected, r"> +10  cleanup_done\(worker\)")
        self.assertRegex(actual, r"> +10  line 8   cancel_acked\(worker\)")

    def test_a_phase_that_is_not_reached_is_named_with_its_step(self):
        def change(phases):
            return lambda f: f["expect"]["phases"].update(worker=phases)
        for phases, wanted in (
                (["Created", "Running", "Completed"],
                 "line 4 `cancel job USER`, cancel_requested(worker) USER polite epoch 1 polls 1024 deadline 5000ms: "
                 "task worker: expected Completed, found CancelRequested"),
                (["Created", "Running", "CancelRequested", "Cancelling", "Completed"],
                 "line 8 `pump`, cleanup_done(worker) USER polite epoch 1: "
                 "task worker: expected Completed, found Finalizing"),
                (["Created", "Running", "CancelRequested", "Cancelling", "Finalizing"],
                 "task worker: expected nothing, found Completed")):
            self.expect_failure(MASKED, change(phases), "first diverging step: " + wanted if wanted[0] == "l" else wanted)
        self.expect_failure(MASKED, lambda f: f["expect"]["phases"].update(nobody=["Created"]),
                            "task nobody: expected Created, found nothing")
        done = self.run_copy(MASKED, change(["Created"]), "--seed", "3")
        self.assertIn("task worker: expected nothing, found Running", done.stdout)

    def test_an_outcome_that_is_another_is_named_with_its_step(self):
        self.expect_failure(MASKED, lambda f: f["expect"]["outcomes"].update(worker="EBB_OK"),
                            "first diverging step: line 8 `pump`, finalized(worker)",
                            "task worker: expected EBB_OK, found EBB_CANCELLED")

    def test_the_repro_command_finds_the_folder_again(self):
        out = self.expect_failure(MASKED, lambda f: f["expect"]["outcomes"].update(worker="EBB_OK"),
                                  "repro: ebb fixture run %s --seed 0 --dir %s\n" % (MASKED, self.dir))
        words = out.split("repro: ")[1].splitlines()[0].split()
        self.assertEqual(ebb(*words[1:]).stdout, out)

    def test_the_repro_command_quotes_the_folder(self):
        folder = Path(self.dir) / "it's here"
        folder.mkdir()
        fixture = load(MASKED)
        fixture["expect"]["outcomes"]["worker"] = "EBB_OK"
        (folder / (MASKED + ".json")).write_text(json.dumps(fixture), encoding="utf-8")
        out = ebb("fixture", "run", "--dir", str(folder)).stdout
        self.assertEqual(shlex.split(out.split("repro: ")[1].splitlines()[0])[-1], str(folder))

    def test_an_event_too_few_or_too_many(self):
        self.expect_failure(MASKED, lambda f: f["expect"]["events"].pop(),
                            "event 12: expected nothing, found finalized(worker)")
        self.expect_failure(MASKED, lambda f: f["expect"]["events"].append("stale_wake"),
                            "event 13: expected stale_wake, found nothing")

    def test_an_event_is_cut_only_at_a_word(self):
        def change(fixture):
            fixture["expect"]["events"][3] = "region_cancel"
        self.expect_failure(MASKED, change, "expected region_cancel, found region_cancelled(job)")

    def test_each_part_is_compared(self):
        for part, key, value in (("phases", "worker", ["Created", "Running", "Completed"]),
                                 ("outcomes", "worker", "EBB_OK"), ("closure", "slot", "aborted"),
                                 ("closure", "sent", "reserved"), ("results", "14", "EBB_OK"),
                                 ("outcomes", "nobody", "EBB_OK"), ("results", "2", "EBB_ERR_CLOSED")):
            self.expect_failure(OWED, lambda f, p=part, k=key, v=value: f["expect"][p].update({k: v}),
                                "%s.%s: expected %s, found " % (part, key, json.dumps(value).replace(", ", ",")))
        self.expect_failure(OWED, lambda f: f["expect"]["outcomes"].pop("help"),
                            'outcomes.help: expected nothing, found "EBB_OK"')
        self.expect_failure("parity.nested_cascade", lambda f: f["expect"]["chains"]["9"].pop(),
                            'chains.9: expected ["inner PARENT polite","nest PARENT polite"], found ')

    def test_the_fingerprint_finds_what_is_not_listed(self):
        self.expect_failure(MASKED, lambda f: f["expect"].update(fingerprint="0" * 32),
                            "fingerprint: expected " + "0" * 32)

        def change(fixture):
            fixture["script"][3] = "cancel job DISCONNECT"
            fixture["expect"]["events"] = [e.split("(")[0] for e in fixture["expect"]["events"]]
        self.expect_failure(MASKED, change, "first diverging step: line 4 `cancel job DISCONNECT`: an event")

    def test_a_script_that_does_something_else(self):
        for line, wanted in ((3, "line 4"), (1, "line 2"), (6, "line 7")):
            def change(fixture, line=line):
                fixture["script"][line] = "turn 5 5"
            self.expect_failure(MASKED, change, "first diverging step: " + wanted)

    def test_what_is_left_at_the_end_is_a_violation(self):
        def change(fixture):
            fixture["script"][5:] = []
            fixture["expect"]["steps"][5:] = []
        self.expect_failure(MASKED, change, "oracle task_leak at the end of the run: task 0.1.1")

    def test_an_obligation_that_nobody_resolves_shows(self):
        def change(fixture):
            fixture["script"][7] = fixture["script"][7].replace("commit sent; ", "")
        self.expect_failure(OWED, change, 'closure.sent: expected "committed", found "leaked"')

    def test_with_another_seed_only_the_end_is_compared(self):
        def change(fixture):
            fixture["expect"]["events"] = []
            fixture["expect"]["fingerprint"] = "0" * 32
        done = self.run_copy(OWED, change, "--seed", "7")
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.run_copy(OWED, lambda f: f["expect"]["outcomes"].update(worker="EBB_OK"), "--seed", "7")
        self.assertEqual(done.returncode, 1)
        self.assertIn("repro: ebb fixture run %s --seed 7" % OWED, done.stdout)

    def test_the_order_is_that_of_the_seed_in_the_file(self):
        def change(fixture):
            fixture["seed"] = 1
            fixture["repro"] = fixture["repro"].replace("--seed 0", "--seed 1")
        for name in SEVERAL_ORDERS:
            self.expect_failure(name, change, "id: %s, seed 1" % name, "first diverging step: line ",
                                "repro: ebb fixture run %s --seed 1" % name)
            done = self.run_copy(name, change, "--seed", "0")
            self.assertEqual((done.returncode, done.stdout), (0, "ok %s (seed 0, not its own)\n1 of 1\n" % name))

    def test_one_that_fails_does_not_stop_the_others(self):
        for name in IDS:
            fixture = load(name)
            if name == MASKED:
                fixture["expect"]["outcomes"] = {}
            (Path(self.dir) / (name + ".json")).write_text(json.dumps(fixture), encoding="utf-8")
        done = ebb("fixture", "run", "--dir", self.dir)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "17 of 18")


class PlantedBugs(InAFolder):
    def test_each_is_found_by_a_fixture(self):
        for oracle in ("required_fields", "task_leak", "region_leak", "obligation_leak", "quiescence_at_close",
                       "losers_drained", "phase_monotone", "severity_monotone", "budget_monotone", "no_new_work",
                       "parents_before_children", "ack_only_unmasked", "finalizers_once", "no_lost_wake",
                       "fairness"):
            done = subprocess.run([MUTANT, "fixture", "run", "--plant", oracle], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            self.assertNotIn(done.returncode, (0, 2), oracle)
        done = subprocess.run([MUTANT, "fixture", "run"], stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0)

    def expect_witness(self, oracle, name, where, why, *args):
        """Gate 4: the task and the line are named, and all that is needed to look into it is there."""
        words = ["fixture", "run", name, "--plant", oracle, "--trace-dir", self.dir, *args]
        done = subprocess.run([MUTANT, *words], stdout=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        told = "witness of task worker: witness: " + why
        seed = args[1] if args else "0"
        self.assertIn("differs:\n  %s: %s\n" % (where.split(" `")[0], told), done.stdout)
        for part in ("FAILED " + name, "id: %s, seed %s" % (name, seed), "ids: region root 0.1.1, region job 0.2.1, ",
                     ", task worker 0.1.1", "first diverging step: line ", "expected trace:\n", "actual trace:\n"):
            self.assertIn(part, done.stdout)
        repro = shlex.split(done.stdout.split("repro: ")[1].splitlines()[0])
        self.assertEqual(repro, ["ebb", "fixture", "run", name, "--seed", seed, "--plant", oracle])
        again = subprocess.run([MUTANT, *repro[1:]], stdout=subprocess.PIPE, encoding="utf-8", check=False)
        self.assertEqual((again.returncode, again.stdout), (1, done.stdout))
        checked = ebb("trace", "verify", "--strict", os.path.join(self.dir, name + ".trace"))
        self.assertEqual(checked.returncode, 1, checked.stdout)
        self.assertIn(oracle, checked.stdout + checked.stderr)
        return done.stdout.split("first diverging step: ")[1].splitlines()[0], "%s: %s" % (where, told)

    def test_a_witness_whose_phase_goes_back_fails(self):
        for seed in ((), ("--seed", "5")):
            first, told = self.expect_witness(
                "phase_monotone", "cancel.task.witness_phase_monotone", "line 11 `cancel job DISCONNECT`",
                "the phase went back", *seed)
            self.assertEqual(first, told)

    def test_a_witness_whose_severity_weakens_fails(self):
        for seed in ((), ("--seed", "5")):
            first, told = self.expect_witness(
                "severity_monotone", "cancel.task.reason_strengthen_monotone",
                'line 14 `cancel-task worker RACE_LOST "weaker"`', "the severity weakened", *seed)
            if seed:
                self.assertEqual(first, told)
            else:  # before it weakened it was replaced by another of its severity
                self.assertTrue(first.startswith('line 6 `cancel job DISCONNECT "second"`, event 3: '), first)

    def test_a_witness_whose_budget_widens_fails(self):
        first, told = self.expect_witness(
            "budget_monotone", "cancel.task.budget_combine_monotone",
            "line 6 `cancel job USER within 2000ms polls 50`", "the budget widened")
        self.assertEqual(first, told)


class Usage(InAFolder):
    def test_an_unknown_fixture_names_those_near_it(self):
        done = ebb("fixture", "run", "cancel.task.masked_ack")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown fixture 'cancel.task.masked_ack'", done.stderr)
        self.assertIn("  cancel.task.masked_defers_ack\n", done.stderr)
        self.assertNotIn("parity", done.stderr)
        self.assertIn("  parity.nested_cascade\n", ebb("fixture", "run", "zzz").stderr)

    def test_wrong_arguments(self):
        for args in ((), ("frob",), ("run", "--frob"), ("run", "--seed"), ("run", "--seed", "x"),
                     ("run", "--seed", "-1"), ("run", "--seed", "99999999999999999999"), ("show",),
                     ("show", MASKED, OWED), ("list", "a", "b"), ("run", "--dir", "/nonexistent"),
                     ("list", "/nonexistent"), ("run", "--trace-dir", "/nonexistent")):
            done = ebb("fixture", *args)
            self.assertEqual(done.returncode, 2, args)
            self.assertNotEqual(done.stderr, "")
        self.assertIn("no fixtures (*.json) in " + self.dir, ebb("fixture", "run", "--dir", self.dir).stderr)
        self.assertIn("show takes the id of one fixture, not 0", ebb("fixture", "show").stderr)
        self.assertIn("from 0 to 18446744073709551615", ebb("fixture", "run", "--seed", "99999999999999999999").stderr)
        for args in (("--help",), ("-h",), ("help",), ("run", "--help")):
            self.assertEqual(ebb("fixture", *args).returncode, 0)


if __name__ == "__main__":
    EBB, MUTANT = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
