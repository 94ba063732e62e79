#!/usr/bin/env python3
"""Runs the programs of docs/guide.md, and holds the page to them.

usage: guide.py EBB PROGRAM...
"""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = sorted((ROOT / "examples" / "guide").glob("*.c"))
EBB = ""
PROGRAMS = {}

# What each program has to print, as an expression for each line.
SAYS = {
    "bridge": ["EBB_OK: 5050"],
    "durable": ["seat Oslo", "transfer USER", "give-back Oslo", "trip-7: Cancelled in execution 1, it rains",
                "expense-9: Completed in execution 1, yes", 'nightly: Completed in execution 3, "printed"'],
    "cases": ["lost: an addition is lost"],
    "ends": ["first: EBB_OK 0", "workflow: FINALIZED", "3 dropped, the others are 3", "level 5: EBB_OK"],
    "faults": ["faults: 300 schedules hold"],
    "futures": ["drawn: 8 bytes", "tick 1", "tick 2", "tick 3", "a wait: TIMEOUT", "a wait: put away"],
    "http": ["200: 6 bytes of any type", "count: EBB_OK", "begins with 1", "peek: EBB_OK", "hang: EBB_TIMEOUT"],
    "inject": [r"9 points: EBB_ERR_ORACLE page, point \d+ of 9, .*: expected that the check agrees, found EBB_FAILED; .*",
               "that one again: EBB_ERR_ORACLE", "9 points: EBB_OK "],
    "io": ["socket: ping", "child: hello", "exit code 0", "blocking call: a name", "second thread: 42"],
    "lab": ["500 schedules: EBB_OK ", "every allocation failed once"],
    "network": ["200 schedules: EBB_OK ", r"five actions at each of \d+ suspension points"],
    "language": [r"E0201 unknown name +wrong.ebb:1:13", r"1 \| fn main\(\) \{ prnt\(1\); \}", r"  \| +\^+ the function prnt is not known here",
                 "on", "off", "EBB_OK, 0 faults"],
    "machine": ["took 3, 2 left", "2 left at 7, 0 queued; 1 machines, 2 dispatches", r"  Stock#[\d.]+ Running in Open",
                "3 are not there"],
    "operator": ["cancelled 2", "parcel-1 Cancelled", "parcel-2 Cancelled", "parcel-1 has ended", "deleted 1 more",
                 "both were weighed"],
    "parcels": ["Completed with 2 kg, in each run"],
    "service": [
        r"lifecycle_shutdown#1 guide is DRAINING, \d+ of 30000 ms, USER: SIGTERM, 1 in flight",
        r"  task [\d.]+, spawned at examples/guide/service\.c:\d+, \d+ ms ago, Running, waits for semaphore",
        r"  handler release, added at examples/guide/service\.c:\d+, 0 of 0 done",
        r"FINALIZED, exit status 0"],
    "time": ["with a timeout: EBB_TIMEOUT", "attempt 1", "attempt 2", "attempt 3", "up to 5 times: EBB_OK",
             "by a deadline: EBB_CANCELLED", "the first of two: EBB_OK, number 1", "four at once: EBB_OK", "ended by signal 15"],
    "trace": [r"\d+ events keep every rule", "two runs, one fingerprint"],
    "system": ["script: EBB_OK 3", "descriptor: EBB_OK", "a date"],
    "waits": ["sent: EBB_OK, EBB_TIMEOUT", "job 4: EBB_OK", "level 7", "region: EBB_CANCELLED",
              "retry: EBB_ERR_INVALID"],
    "workers": ["EBB_OK: 10 jobs, 2 at once", "saved", "tools put away", "stopped: EBB_CANCELLED"],
}

# These write a file, and a subcommand that has to accept it.
WRITES = {"service": ["audit", "verify"], "trace": ["trace", "verify", "--strict", "--quiescent"]}


# Functions that the page has to name.
GUIDED = re.compile(r"ebb_((chan|bridge)_(try_send|try_recv|take|put|(send|recv)_future)|sem_acquire_future|broadcast_\w+"
                    r"|(task|workflow)_ended|region_closed|fd_ready|wall_now"
                    r"|lab_(network_play|here|disturbed|signal|partition|reset|file_\w+|fail_as|inject|main|action_name)|inject)(?<!_site)")


def blocks(page):
    return re.findall(r"^```c\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


class Programs(unittest.TestCase):
    def run_one(self, name, *arguments):
        ran = subprocess.run([PROGRAMS["guide_" + name], *arguments], capture_output=True, text=True, timeout=120,
                             check=False)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), ran.stdout)
        expected = "\n".join(SAYS[name]) + "\n"
        self.assertTrue(re.fullmatch(expected, ran.stdout), "expected:\n%sgot:\n%s" % (expected, ran.stdout))

    def test_print_what_they_should(self):
        for name in set(SAYS) - set(WRITES):
            with self.subTest(name):
                self.run_one(name)

    def test_write_files_that_verify(self):
        for name, command in WRITES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / name)
                self.run_one(name, path)
                subprocess.run([EBB, *command, path], check=True, stdout=subprocess.DEVNULL, timeout=60)

    def test_records_a_service_from_its_first_event(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = str(Path(folder) / "trace")
            self.run_one("service", str(Path(folder) / "audit"), str(Path(folder) / "socket"), trace)
            subprocess.run([EBB, "trace", "verify", "--strict", "--quiescent", trace], check=True,
                           stdout=subprocess.DEVNULL, timeout=60)

    def test_have_a_row_in_this_test(self):
        self.assertEqual({path.stem for path in SOURCES}, set(SAYS))

    def test_fit_a_page(self):
        for path in SOURCES:
            self.assertLess(len(path.read_text(encoding="utf-8").splitlines()), 120, path)


class Page(unittest.TestCase):
    def setUp(self):
        self.page = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")

    def test_shows_parts_of_the_programs_as_they_are(self):
        sources = [path.read_text(encoding="utf-8") for path in SOURCES]
        shown = blocks(self.page)
        self.assertGreaterEqual(len(shown), 19)
        for block in shown:
            self.assertTrue([s for s in sources if "\n" + block in s], "in no program of examples/guide:\n" + block)

    def test_names_every_function_that_waits_or_belongs_to_a_network(self):
        headers = "".join(h.read_text(encoding="utf-8") for h in sorted((ROOT / "include" / "ebb").glob("*.h")))
        declared = set(re.findall(r"\b(ebb_[a-z0-9_]+)\(", headers))
        names = {n for n in declared if GUIDED.fullmatch(n)}
        self.assertGreaterEqual(len(names), 35, names)
        self.assertEqual([n for n in sorted(names) if not re.search(r"\b%s\b" % n, self.page)], [])

    def test_has_code_in_every_section(self):
        sections = re.split(r"^## ", self.page, flags=re.MULTILINE)[1:]
        self.assertGreaterEqual(len(sections), 19)
        self.assertEqual([s.splitlines()[0] for s in sections if not blocks(s)], [])


if __name__ == "__main__":
    EBB = sys.argv[1]
    PROGRAMS = {Path(path).name: path for path in sys.argv[2:]}
    unittest.main(argv=sys.argv[:1])
