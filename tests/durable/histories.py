#!/usr/bin/env python3
"""Old histories run again: code of several compilers and levels does what a file of an earlier Ebb has recorded, and goes on
with what was under way in it.

usage: histories.py EBB INCLUDE [CASE...]           the test
       histories.py --record FILE EBB INCLUDE       writes a new file, of the Ebb that is there now

histories/*.sql are the files, as text, each of histories/app.c. A file is never changed, and none is deleted while its
semantics version is supported.
"""
import contextlib
import itertools
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from phases import without_phases  # noqa: E402
from signals import tell  # noqa: E402

PATIENCE_S = 60
COMPILERS = [c for c in ("gcc", "clang-14", "clang") if shutil.which(c)][:2]
LEVELS = "-O0", "-O2"
ENDED = "all", "again", "saga", "fails"  # instances of a file; "all/..." is a child
WAITS = "waits"
EBB = INCLUDE = ""


def build(into, compiler, level):
    return compiled(compiler, level, HERE / "histories/app.c", Path(into, "%s%s.so" % (compiler, level)))


def compiled(compiler, level, source, so):
    """By default Clang fuses a multiplication with an addition, and folds constants so, and GCC does not."""
    subprocess.run([compiler, "-std=c11", level, "-ffp-contract=off", "-fPIC", "-shared", "-I", INCLUDE, str(source), "-o",
                    str(so)], check=True, timeout=PATIENCE_S)
    return str(so)


def ebb(command, *args, store):
    return subprocess.run([EBB, "durable", command, *args, "--json", "--store", store], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S)


def good(command, *args, store):
    r = ebb(command, *args, store=store)
    if r.returncode != 0 or r.stderr:
        raise AssertionError("%s: %d %s%s" % ((command, *args), r.returncode, r.stdout, r.stderr))
    return [json.loads(line) for line in r.stdout.splitlines()]


@contextlib.contextmanager
def worker(store, so):
    w = subprocess.Popen([EBB, "worker", "--store", store, "--load", so], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    try:
        assert w.stdout.readline().startswith("worker "), w.communicate()
        yield
        tell(w, signal.SIGTERM)
        said, errors = w.communicate(timeout=PATIENCE_S)
        assert (w.returncode, said, without_phases(errors)) == (0, "", ""), (w.returncode, said, errors)
    finally:
        w.kill()
        w.communicate()


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


# ---- recorded ------------------------------------------------------------------------------------------------------

def run_all(store, so):
    def custom(one):
        return good("status", one, store=store)[0]["custom"]

    with worker(store, so):
        for one in (*ENDED, WAITS):
            name = "all" if one == WAITS else one
            good("start", name, "--id", one, "--input", '{"seat":4}', store=store)
        until(lambda: custom("all") == "had luck" and custom(WAITS) == "had luck" and custom("saga") == "holds")
        good("signal", "all", "more", "--body", "1", store=store)
        good("signal", "all", "more", "--body", "2", store=store)
        good("signal", "all", "go", "--body", '"x"', store=store)
        good("cancel", "saga", "--reason", '"sold out"', store=store)
        for one in ENDED:
            ebb("wait", one, store=store)


def record(file):
    with tempfile.TemporaryDirectory() as d:
        path = Path(d, "a.db")
        run_all("sqlite:%s" % path, build(d, COMPILERS[0], "-O2"))
        with contextlib.closing(sqlite3.connect(path)) as db:
            identity = db.execute("PRAGMA application_id").fetchone()[0]
            lines = ["PRAGMA application_id = %d;" % identity, *db.iterdump()]
    Path(file).write_text("\n".join(lines) + "\n", encoding="ascii")


# ---- run again -----------------------------------------------------------------------------------------------------

class Histories(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.built = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.built.cleanup)
        cls.builds = [(c, o, build(cls.built.name, c, o)) for c, o in itertools.product(COMPILERS, LEVELS)]

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.numbers = itertools.count(1)

    def store_of(self, file):
        path = Path(self.dir.name, "%d.db" % next(self.numbers))
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(file.read_text(encoding="ascii"))
        return "sqlite:%s" % path

    def files(self):
        self.assertEqual(len(COMPILERS), 2, COMPILERS)
        found = sorted((HERE / "histories").glob("*.sql"))
        self.assertGreater(len(found), 0)
        return found

    def replayed(self, store, so, turns):
        for one, n in turns.items():
            self.assertEqual(good("replay", one, "--load", so, store=store), [{"id": one, "turns": n, "difference": ""}])

    def goes_on(self, store, so):
        before = good("history", WAITS, store=store)
        with worker(store, so):
            good("signal", WAITS, "go", "--body", '"y"', store=store)
            end = good("wait", WAITS, store=store)[0]
        after = good("history", WAITS, "--verify", store=store)
        self.assertEqual(after[:len(before)], before)
        said, _, plan, luck = end["output"]
        self.assertEqual((said, plan["order"], luck["patched"]), ("y", {"seat": 4}, True))
        self.assertIn(luck, [e["event"].get("body") for e in before])

    def test_every_build_does_what_is_recorded(self):
        for file in self.files():
            store = self.store_of(file)
            children = [i["id"] for i in good("list", "--parent", "all", store=store)]
            turns = {i: good("history", i, "--verify", store=store)[-1]["turn"] for i in (*ENDED, WAITS, *children)}
            for compiler, level, so in self.builds:
                with self.subTest(file=file.name, compiler=compiler, level=level):
                    self.replayed(store, so, turns)

    def test_the_least_and_the_most_optimised_go_on_with_what_was_under_way(self):
        for file in self.files():
            for compiler, level, so in (self.builds[0], self.builds[-1]):
                with self.subTest(file=file.name, compiler=compiler, level=level):
                    self.goes_on(self.store_of(file), so)

    def test_other_code_differs(self):
        changed = Path(self.dir.name, "changed.c")
        source = (HERE / "histories/app.c").read_text(encoding="ascii")
        self.assertEqual(source.count("1.0000001"), 1)
        changed.write_text(source.replace("1.0000001", "1.0000002"), encoding="ascii")
        so = compiled(COMPILERS[0], LEVELS[0], changed, Path(self.dir.name, "changed.so"))
        for file in self.files():
            r = ebb("replay", "all", "--load", so, store=self.store_of(file))
            self.assertEqual(r.returncode, 1, r.stderr)
            self.assertIn("echo", json.loads(r.stdout)["difference"])


if __name__ == "__main__":
    if sys.argv[1] == "--record":
        EBB, INCLUDE = sys.argv[3:5]
        record(sys.argv[2])
    else:
        EBB, INCLUDE = sys.argv[1:3]
        unittest.main(argv=sys.argv[:1] + sys.argv[3:])
