#!/usr/bin/env python3
"""`ebb worker` and `ebb durable`, on SQLite and on PostgreSQL: what they do, print and refuse.

usage: durable.py EBB APP OTHER_APP EMPTY_APP POSTGRES [CLASS[.TEST]...]
"""
import contextlib
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from phases import without_phases  # noqa: E402
from signals import tell  # noqa: E402

PATIENCE_S = 60  # for what takes milliseconds on an idle machine
MIB = 1 << 20
OK, BAD, USAGE = 0, 1, 2
EBB = APP = OTHER = EMPTY = POSTGRES = ""
PAID = "charge=cat >/dev/null; echo '\"paid\"'"
numbers = itertools.count(1)


def ebb(*args, **how):
    how = {"timeout": PATIENCE_S, "text": True, **how}
    return subprocess.run([EBB, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **how)


class Worker:
    """`ebb worker` as a process."""

    def __init__(self, url, *args):
        self.process = subprocess.Popen([EBB, "worker", "--store", url, *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.first = self.process.stdout.readline()
        if not self.first.startswith("worker "):
            raise AssertionError("it has not begun: %r %r" % (self.first, self.process.communicate()))

    def stop(self):
        tell(self.process, signal.SIGTERM)
        said, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said, without_phases(errors)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Suite:
    """What holds on every store."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.url = self.make_url()
        self.prefix = "t%d-" % next(numbers)

    @contextlib.contextmanager
    def worker(self, *args):
        w = Worker(self.url, *args)
        try:
            yield w
            self.assertEqual(w.stop(), (OK, "", ""))
        finally:
            w.kill()

    def run_ebb(self, command, *args, **how):
        return ebb("durable", command, *args, "--store", self.url, **how)

    def good(self, command, *args, code=OK):
        """Its output as text."""
        r = self.run_ebb(command, *args)
        self.assertEqual((r.returncode, r.stderr), (code, ""), r.stdout)
        return r.stdout

    def objects(self, command, *args, code=OK):
        return [json.loads(line) for line in self.good(command, *args, "--json", code=code).splitlines()]

    def one(self, command, *args, code=OK):
        found = self.objects(command, *args, code=code)
        self.assertEqual(len(found), 1)
        return found[0]

    def bad(self, expected, command, *args, code=BAD):
        """It fails with one line that matches."""
        r = self.run_ebb(command, *args)
        self.assertEqual((r.returncode, r.stdout), (code, ""), r.stderr)
        self.assertRegex(r.stderr, r"\Aebb: .*(%s).*\n\Z" % expected)

    def start(self, name, *args, suffix="1"):
        return self.one("start", name, "--id", self.prefix + suffix, *args)["id"]

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def is_at(self, one, custom="waits for the hurry of its buyer"):
        return self.one("status", one)["custom"] == custom

    def test_an_order_from_its_start_to_its_end(self):
        with self.worker("--load", APP, "--activity", PAID) as w:
            self.assertRegex(w.first, r"^worker \S+: orchestrations 2, activities 3\n$")
            one = self.start("order", "--input", '{"seat":4}')
            self.until("it waits", lambda: self.is_at(one))
            self.assertIn("state      Running\n", self.good("status", one))
            self.assertEqual(self.good("signal", one, "hurry"), one + ": signalled\n")
            end = self.one("wait", one)
            self.assertEqual((end["state"], end["output"], end["input"], end["version"]),
                             ("Completed", "paid", {"seat": 4}, 1))
            self.assertGreaterEqual(end["ended"], end["started"])
            self.assertRegex(self.good("wait", one), r'(?m)^output     "paid"$')
            self.bad("or (it )?has ended", "signal", one, "hurry")

    def test_a_second_start_of_an_id(self):
        one = self.start("order", "--input", "1")
        self.assertEqual(self.start("order", "--input", "1"), one)
        self.bad("%s'? exists with another name or input" % one, "start", "order", "--id", one, "--input", "2")
        self.bad("%s'? exists with another name or input" % one, "start", "row", "--id", one, "--input", "1")

    def test_a_start_without_an_id_gets_one(self):
        made = self.one("start", "order")
        self.assertRegex(made["id"], r"^[0-9a-f-]{36}$")
        self.good("delete", made["id"], "--force")

    def test_what_nobody_runs_is_unserved(self):
        one = self.start("nobody")
        self.assertTrue(self.one("status", one)["unserved"])
        self.assertIn("no live worker has what it needs", self.good("status", one))
        self.assertIn(one + "  (unserved)\n", self.good("list", "--prefix", self.prefix))

    def test_a_command_that_fails_fails_its_order(self):
        with self.worker("--load", APP, "--activity", "charge=echo no money >&2; exit 3"):
            one = self.start("order")
            self.good("signal", one, "hurry", "--body", '"now"', "--dedup", "a")
            end = self.one("wait", one, code=BAD)
            self.assertEqual((end["state"], end["failure"]["code"], end["failure"]["message"]),
                             ("Failed", "exit_3", "no money"))
            self.assertRegex(self.good("wait", one, code=BAD), r"(?m)^message    no money$")

    def test_a_second_signal_with_a_dedup_id_is_none(self):
        one = self.start("idle")
        for _ in range(2):
            self.good("signal", one, "go", "--body", "1", "--dedup", "click")
        with self.worker("--load", OTHER):
            self.one("wait", one)
        kinds = [e["kind"] for e in self.objects("history", one)]
        self.assertEqual(kinds.count("signalled"), 1)

    def test_trees_and_filters(self):
        with self.worker("--load", APP):
            top = self.start("row")
            self.until("its children wait", lambda: len(self.objects("tree", top)) == 4 and all(
                i["custom"] for i in self.objects("list", "--parent", top)))
            rows = self.good("tree", top).splitlines()
            self.assertRegex(rows[0], r"^STATE +STARTED +ENDED +NAME +ID$")
            self.assertRegex(rows[1], r"^Running +\S+Z - +row {18}%s$" % top)
            for line in rows[2:]:
                self.assertRegex(line, r"^Running +\S+Z - +order {18}%s/" % top)
            children = self.objects("list", "--parent", top)
            self.assertEqual([i["name"] for i in children], ["order"] * 3)
            self.assertEqual(len(self.objects("list", "--prefix", self.prefix, "--name", "row")), 1)
            self.assertEqual(len(self.objects("list", "--prefix", self.prefix, "--most", "2")), 2)
            self.assertEqual(self.objects("list", "--prefix", self.prefix, "--state", "failed"), [])
            self.assertEqual(len(self.objects("list", "--prefix", self.prefix, "--state", "failed", "--state", "RUNNING",
                                              "--started-after", "1d")), 4)
            self.assertEqual(self.objects("list", "--prefix", self.prefix, "--ended-before", "0s"), [])
            self.assertEqual(self.good("cancel", "--parent", top, "--dry-run"), "would be cancelled: 3\n")
            self.assertEqual(self.good("cancel", top, "--reason", "sold out"), top + ": cancel requested\n")
            end = self.one("wait", top, code=BAD)
            self.assertEqual((end["state"], end["text"]), ("Cancelled", "sold out"))
            self.until("its children are cancelled", lambda: len(
                self.objects("list", "--parent", top, "--state", "Cancelled")) == 3)
        self.assertEqual(len(self.objects("list", "--prefix", self.prefix, "--ended-before", "2999-01-01T00:00:00Z")), 4)

    def test_a_crowd_is_cancelled_and_deleted_page_by_page(self):
        with self.worker("--load", OTHER):
            top = self.start("crowd")
            self.until("all are there", lambda: len(self.objects("list", "--prefix", self.prefix)) == 131)
            self.assertEqual(self.one("cancel", "--prefix", self.prefix, "--dry-run"), {"cancelled": 131, "dry_run": True})
            r = self.run_ebb("cancel", "--prefix", self.prefix, "--name", "idle", "--progress", text=False)
            self.assertEqual((r.returncode, r.stdout, r.stderr),
                             (OK, b"cancelled: 130\n", b"\rcancelled: 100\rcancelled: 130\n"))
            self.assertEqual(self.one("wait", top, code=BAD)["state"], "Failed")  # its children were cancelled, not it
        self.assertEqual(self.good("prune", "--prefix", self.prefix, "--dry-run"), "would be deleted: 131\n")
        self.assertEqual(len(self.objects("list", "--prefix", self.prefix)), 131)
        self.assertEqual(self.one("prune", "--prefix", self.prefix), {"deleted": 131, "dry_run": False})
        self.assertEqual(self.objects("list", "--prefix", self.prefix), [])

    def test_histories_are_shown_verified_and_run_again(self):
        with self.worker("--load", APP, "--activity", PAID):
            one = self.start("order", "--input", '{"seat":1}')
            self.good("signal", one, "hurry")
            self.one("wait", one)
        events = self.objects("history", one, "--verify")
        self.assertEqual([e["number"] for e in events], list(range(1, len(events) + 1)))
        self.assertEqual((events[0]["kind"], events[0]["event"]["body"]), ("started", {"seat": 1}))
        self.assertEqual((events[-1]["kind"], events[-1]["event"]["body"]), ("completed", "paid"))
        text = self.good("history", one, "--verify").splitlines()
        self.assertEqual((len(text), text[-1]), (len(events) + 2, "sound: %d events" % len(events)))
        self.assertEqual(self.good("replay", one, "--load", APP),
                         "%s: %d turns, order version 1 does what is recorded\n" % (one, events[-1]["turn"]))
        self.assertEqual(self.one("replay", one, "--load", APP),
                         {"id": one, "turns": events[-1]["turn"], "difference": ""})
        self.assertRegex(self.good("replay", one, "--load", OTHER, code=BAD),
                         r"^%s: differs: turn 1 has event .*reserve.*; the code asks for .*book.* at \S+other.c:\d+\n$" % one)
        self.assertIn("book", self.one("replay", one, "--load", OTHER, code=BAD)["difference"])
        self.bad("is of orchestration nobody, version 0, which is not registered", "replay",
                 self.start("nobody", suffix="2"), "--load", APP)
        self.bad("not there|no instance", "replay", self.prefix + "none", "--load", APP)

    def test_the_history_of_a_terminated_instance_runs_again(self):
        with self.worker("--load", APP):
            one = self.start("order")
            self.until("it waits", lambda: self.is_at(one))
            self.good("terminate", one)
        self.assertEqual(self.objects("history", one, "--verify")[-1]["kind"], "terminated")
        self.assertIn("does what is recorded", self.good("replay", one, "--load", APP))

    def test_changed_code_suspends_and_a_resume_goes_on(self):
        with self.worker("--load", APP):
            one = self.start("order")
            self.until("it waits", lambda: self.is_at(one))
        self.good("signal", one, "hurry")
        w = Worker(self.url, "--load", OTHER)
        self.addCleanup(w.kill)
        self.until("it is suspended", lambda: self.one("status", one)["state"] == "Suspended")
        self.bad("is suspended: turn 1 has event .*reserve.*book", "wait", one)
        code, _, errors = w.stop()
        self.assertEqual(code, OK)
        self.assertIn("suspended: turn 1", errors)
        self.bad("not suspended", "resume", self.start("nobody", suffix="2"))
        self.assertEqual(self.good("resume", one), one + ": resumed\n")
        with self.worker("--load", APP, "--activity", PAID):
            self.assertEqual(self.one("wait", one)["output"], "paid")

    def test_a_reset_goes_on_from_an_event(self):
        with self.worker("--load", APP, "--activity", "charge=exit 1"):
            one = self.start("order")
            self.good("signal", one, "hurry")
            self.one("wait", one, code=BAD)
        scheduled = [e["number"] for e in self.objects("history", one) if e["event"].get("name") == "charge"]
        self.bad("event", "reset", one, "40000")
        self.assertEqual(self.good("reset", one, str(scheduled[0])), one + ": reset\n")
        with self.worker("--load", APP, "--activity", PAID):
            end = self.one("wait", one)
            self.assertEqual((end["output"], end["execution"]), ("paid", 2))
        self.assertEqual(self.objects("history", one, "--execution", "1")[-1]["kind"], "failed")

    def test_a_reset_starts_other_children(self):
        with self.worker("--load", OTHER):
            one = self.start("kin")
            self.assertEqual(self.one("wait", one)["state"], "Completed")
            started = [e["number"] for e in self.objects("history", one) if e["kind"] == "started"]
            self.good("reset", one, str(started[0]))
            self.assertEqual(self.one("wait", one)["state"], "Completed")
        before, after = ({e["event"]["id"] for e in self.objects("history", one, "--execution", n, "--verify")
                          if e["kind"] == "child_started"} for n in "12")
        self.assertEqual((len(before), len(after), before & after), (1, 1, set()))

    def test_an_execution_that_is_not_there(self):
        one = self.start("order")
        self.bad("execution 7 of %s is not there: its last is 1" % one, "history", one, "--execution", "7",
                 "--verify")

    def test_terminate_delete_and_what_they_refuse(self):
        one = self.start("order")
        self.bad("has not ended", "delete", one)
        self.assertEqual(self.good("terminate", one, "--reason", "by hand"), one + ": terminated\n")
        self.assertEqual(self.one("status", one)["text"], "by hand")
        self.bad("has ended", "terminate", one)
        self.bad("has ended", "cancel", one)
        self.assertEqual(self.good("delete", one), one + ": deleted\n")
        for command in "status", "wait", "delete", "tree", "history", "terminate", "cancel", "resume":
            self.bad("no instance|not there", command, one)
        again = self.start("order")
        self.assertEqual(self.good("delete", again, "--force"), one + ": deleted\n")

    def test_names_do_not_control_the_terminal(self):
        one = self.prefix + "\x7f\u009b31mred\u00e9"
        self.one("start", "or\u009bder", "--id", one, "--input", '"\u009b2J\x7f"')
        for args in (("list", "--prefix", self.prefix), ("status", one), ("tree", one), ("history", one)):
            text = self.good(*args)
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertIn("??31mred\u00e9", self.good("status", one))
        found = self.one("list", "--prefix", self.prefix)
        self.assertEqual((found["id"], found["name"]), (one, "or\u009bder"))
        self.assertEqual(self.one("status", one)["input"], "\u009b2J\x7f")
        self.assertNotIn("\u009b", self.good("status", one, "--json"))
        r = self.run_ebb("resume", one)
        self.assertNotRegex(r.stderr, "[\x7f-\x9f]")
        self.bad("no valid id", "status", "a\x1bb")

    def test_payloads_up_to_the_limit(self):
        big = Path(self.dir.name, "big.json")
        big.write_text('"%s"' % ("x" * (2 * MIB - 2)), encoding="ascii")
        one = self.start("nobody", "--input", "@" + str(big))
        self.assertEqual(len(self.one("status", one)["input"]), 2 * MIB - 2)
        self.assertLess(len(self.good("status", one)), 600)
        big.write_text('"%s"' % ("x" * (2 * MIB - 1)), encoding="ascii")
        self.bad("--input has more than 2097152 bytes", "start", "nobody", "--input", "@" + str(big), code=USAGE)
        self.bad("can't open /no/such", "start", "nobody", "--input", "@/no/such", code=USAGE)

    def test_what_is_nested_deeply_is_shown_as_its_text(self):
        """JSON is parsed by recursion, and the command does so on a small stack."""
        inputs = {depth: "[" * depth + "]" * depth for depth in (64, 65, 2000)}
        for depth, text in inputs.items():
            one = self.start("nobody", "--input", text, suffix=str(depth))
            self.assertEqual(self.one("status", one)["input"], json.loads(text) if depth == 64 else text)
            self.good("delete", one, "--force")

    def test_sigterm_hands_work_over(self):
        ran = Path(self.dir.name, "ran")
        with self.worker("--load", APP, "--activity", "charge=touch '%s'; exec sleep 600" % ran):
            one = self.start("order")
            self.good("signal", one, "hurry")
            self.until("the payment runs", ran.exists)
        self.assertEqual(self.one("status", one)["state"], "Running")
        with self.worker("--load", APP, "--activity", PAID):
            self.assertEqual(self.one("wait", one)["output"], "paid")
        kinds = [e["kind"] for e in self.objects("history", one, "--verify") if e["kind"].startswith("activity")]
        self.assertEqual(kinds, ["activity_scheduled", "activity_completed"] * 2)

    def test_a_wait_keeps_no_worker_away(self):
        one = self.start("idle")
        self.good("signal", one, "go", "--body", "7")
        waits = subprocess.Popen([EBB, "durable", "wait", one, "--json", "--store", self.url], stdout=subprocess.PIPE,
                                 text=True)
        self.addCleanup(lambda: (waits.kill(), waits.communicate()))
        with self.worker("--load", APP):  # which has no code for it, and ends
            time.sleep(0.5)
        self.assertIsNone(waits.poll())
        with self.worker("--load", OTHER):
            said, _ = waits.communicate(timeout=PATIENCE_S)
        self.assertEqual((waits.returncode, json.loads(said)["output"]), (OK, 7))

    def test_bad_arguments_are_named(self):
        for expected, args in (
                ("ebb durable start needs an argument more", ("start",)),
                ("ebb durable signal needs an argument more", ("signal", "x")),
                ("unexpected argument 'y'", ("status", "x", "y")),
                ("ebb durable status has no option '--reason'", ("status", "x", "--reason", "r")),
                ("--reason needs a value", ("cancel", "x", "--store", "lab:", "--reason")),
                (r"--input is not JSON: line 1, column \d+: ", ("start", "x", "--input", "{")),
                ("--body is not JSON", ("signal", "x", "y", "--body", "yes")),
                ("--state takes Running, .* or Terminated, not 'dead'", ("list", "--state", "dead")),
                ("--ended-before takes a time as .*, not 'soon'", ("prune", "--ended-before", "soon")),
                ("--started-after takes a time as .*, not '3w'", ("list", "--started-after", "3w")),
                ("--version takes a whole number from 1 to 4294967295, not '0'", ("start", "x", "--version", "0")),
                ("the event of a reset takes a whole number", ("reset", "x", "last")),
                ("takes the id of an instance, or a filter or --all", ("cancel",)),
                ("takes the id of an instance, or a filter or --all", ("cancel", "x", "--prefix", "y")),
                ("takes a filter, or --all", ("prune", "--dry-run")),
                ("needs --load FILE", ("replay", "x"))):
            self.good("list", "--most", "1")  # its schema is there
            r = ebb("durable", *args) if "--store" in args else self.run_ebb(*args)
            self.assertEqual((r.returncode, r.stdout), (USAGE, ""), args)
            self.assertRegex(r.stderr, r"\Aebb: .*%s.*\n\Z" % expected)

    def test_libraries_that_can_not_be_used(self):
        for args, expected in (
                (("--load", "/no/such.so"), "can't load: /no/such.so: cannot open"),
                (("--load", "such.so"), r"can't load: \./such.so: cannot open"),
                (("--load", EBB), "can't load: "),
                (("--load", EMPTY), "%s does not export ebb_app" % re.escape(EMPTY))):
            r = ebb("worker", "--store", self.url, *args)
            self.assertEqual((r.returncode, r.stdout), (USAGE, ""), r.stderr)
            self.assertRegex(r.stderr, r"\Aebb: .*%s" % expected)
            self.bad(expected, "replay", "x", *args, code=USAGE)
        r = ebb("worker", "--store", self.url, "--load", OTHER, env=dict(os.environ, EBB_TEST_APP="fails"))
        self.assertEqual((r.returncode, r.stderr),
                         (USAGE, "ebb: %s: orchestration idle, version 1, is registered\n" % OTHER))
        r = ebb("worker", "--store", self.url, "--load", APP, "--activity", "reserve=true")
        self.assertEqual((r.returncode, r.stderr), (USAGE, "ebb: reserve=true: activity reserve is registered\n"))


class Sqlite(Suite, unittest.TestCase):
    def make_url(self):
        url = "sqlite:" + str(Path(self.dir.name, "store.db"))
        made = ebb("durable", "start", "schema", "--id", "schema", "--store", url)
        self.assertEqual((made.returncode, made.stderr), (OK, ""))
        return url

    def change(self, sql, *args):
        with contextlib.closing(sqlite3.connect(self.url.partition(":")[2])) as db, db:
            db.execute(sql, args)

    def test_a_file_that_is_not_there_is_not_made(self):
        path = Path(self.dir.name, "typo.db")
        for command in ("list",), ("status", "x"), ("cancel", "x"):
            r = ebb("durable", *command, "--store", "sqlite:%s" % path)
            self.assertEqual((r.returncode, r.stderr), (
                USAGE, "ebb: sqlite:%s: %s does not exist, and may not be made\n" % (path, path)))
            self.assertFalse(path.exists())

    def test_opens_do_not_make_the_clock_fast(self):
        for _ in range(5):
            self.good("list")
        with contextlib.closing(sqlite3.connect(self.url.partition(":")[2])) as db:
            clock, = db.execute("SELECT v FROM meta WHERE k = 'clock'").fetchone()
        self.assertLessEqual(clock, time.time_ns())

    def test_a_newer_schema_is_refused_by_name(self):
        self.change("UPDATE meta SET v = 99 WHERE k IN ('schema', 'min_reader')")
        for r in self.run_ebb("list"), ebb("worker", "--store", self.url, "--activity", PAID):
            self.assertEqual((r.returncode, r.stdout), (USAGE, ""))
            self.assertRegex(r.stderr, r"\Aebb: sqlite:.*99")

    def test_a_damaged_turn_is_named(self):
        with self.worker("--load", OTHER):
            one = self.start("idle")
            self.good("signal", one, "go")
            self.one("wait", one)
        self.assertEqual(self.objects("history", one, "--verify")[-1]["kind"], "completed")
        self.change("UPDATE hist SET body = zeroblob(40) WHERE turn = 1")
        self.bad("%s, execution 1, turn 1" % one, "history", one, "--verify")
        self.bad("turn 1", "replay", one, "--load", OTHER)
        self.change("DELETE FROM hist WHERE turn = 1")
        self.bad("turn 2 follows turn 0", "history", one, "--verify")

    def test_the_process_that_has_the_file_is_named(self):
        with self.worker("--activity", PAID) as w:
            second = ebb("worker", "--store", self.url, "--activity", PAID)
            self.assertEqual((second.returncode, second.stdout), (USAGE, ""))
            owned = r"is owned by process %d: one process opens a file\n" % w.process.pid
            self.assertRegex(second.stderr, r"\Aebb: sqlite:\S+: \S+ " + owned + "ebb: stop that process first")
            self.assertEqual(len(self.objects("list")), 1)  # asked over the socket
            os.unlink(self.url.partition(":")[2] + ".sock")
            r = self.run_ebb("list")
            self.assertEqual((r.returncode, r.stdout), (USAGE, ""))
            self.assertRegex(r.stderr, r"\Aebb: sqlite:\S+: \S+ " + owned + "ebb: that process can't be asked")
        self.assertEqual(len(self.objects("list")), 1)

    def test_a_worker_waits_for_a_short_command(self):
        stop = threading.Event()
        others = threading.Thread(target=lambda: [self.run_ebb("list") for _ in iter(stop.is_set, True)])
        others.start()
        try:
            for _ in range(5):
                with self.worker("--activity", PAID):
                    pass
        finally:
            stop.set()
            others.join()


class Postgres(Suite, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([POSTGRES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.server_url = cls.server.stdout.readline().strip()
        if not cls.server_url:
            raise AssertionError("no PostgreSQL server: %r" % cls.server.wait())
        missing = ebb("durable", "list", "--store", cls.server_url)
        assert missing.returncode == USAGE and "schema" in missing.stderr, missing
        ebb("durable", "start", "schema", "--id", "schema", "--store", cls.server_url)

    @classmethod
    def tearDownClass(cls):
        cls.server.communicate()

    def make_url(self):
        return self.server_url

    def test_two_workers_share_a_store(self):
        with self.worker("--load", APP), self.worker("--activity", PAID):
            one = self.start("order")
            self.good("signal", one, "hurry")
            self.assertEqual(self.one("wait", one)["output"], "paid")


class Arguments(unittest.TestCase):
    def test_help(self):
        for command, words in (("durable", "start signal status wait cancel terminate list tree history replay delete "
                                           "prune reset resume"), ("worker", "--store --load --activity SIGTERM")):
            r = ebb(command, "--help")
            self.assertEqual((r.returncode, r.stderr), (OK, ""))
            for word in words.split():
                self.assertRegex(r.stdout, r"(?m)^ *%s|\b%s\b" % (word, word))
            none = ebb(command)
            self.assertEqual((none.returncode, none.stdout, none.stderr), (USAGE, "", r.stdout))

    def test_arguments_of_workers(self):
        for expected, args in (
                ("ebb worker needs --store URL", ("--activity", "a=b")),
                ("it has nothing to run", ("--store", "lab:")),
                ("--load needs a value", ("--store", "lab:", "--load")),
                ("--store is given twice", ("--store", "lab:", "--store", "lab:")),
                ("--activity takes NAME=COMMAND, not 'a'", ("--store", "lab:", "--activity", "a")),
                ("--activity takes NAME=COMMAND, not '=b'", ("--store", "lab:", "--activity", "=b")),
                ("unexpected argument '--fast'", ("--fast", "x")),
                ("no provider has the scheme of 'mongo://me:\\*\\*\\*@here/x'",
                 ("--store", "mongo://me:secret@here/x", "--activity", "a=b"))):
            r = ebb("worker", *args)
            self.assertEqual((r.returncode, r.stdout), (USAGE, ""), r.stderr)
            self.assertRegex(r.stderr, r"\Aebb: .*%s.*\n\Z" % expected)

    def test_commands_and_stores(self):
        r = ebb("durable", "dance")
        self.assertEqual(r.returncode, USAGE)
        self.assertIn("ebb: ebb durable has no command 'dance'\nusage: ", r.stderr)
        for expected, url in (("no provider has the scheme of 'mongo://me:\\*\\*\\*@here/x'", "mongo://me:secret@here/x"),
                              ("no path", "sqlite:"), ("needs --store", None)):
            r = ebb("durable", "list", *(("--store", url) if url else ()))
            self.assertEqual((r.returncode, r.stdout), (USAGE, ""))
            self.assertRegex(r.stderr, expected)
            self.assertNotIn("secret", r.stderr)


if __name__ == "__main__":
    EBB, APP, OTHER, EMPTY, POSTGRES = sys.argv[1:6]
    unittest.main(argv=sys.argv[:1] + sys.argv[6:])
