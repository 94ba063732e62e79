#!/usr/bin/env python3
"""`ebb init`: what it writes, and what it refuses. tests/install builds what it has written.

usage: init.py EBB [CLASS[.TEST]...]
"""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EBB = ""
TEMPLATES = Path(__file__).resolve().parents[2] / "cli/templates"


class Init(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.root = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def run_it(self, *words, cwd=None):
        return subprocess.run([EBB, "init", *map(str, words)], capture_output=True, text=True, timeout=60,
                              cwd=cwd or self.root, check=False)

    def makes(self, directory, *words, **how):
        done = self.run_it(*words, **how)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}

    def refuses(self, message, *words):
        before = sorted(self.root.rglob("*"))
        done = self.run_it(*words)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(message, done.stderr)
        self.assertEqual(sorted(self.root.rglob("*")), before)

    def test_a_project_is_its_template(self):
        for template in ("service", "durable"):
            found = self.makes(self.root / template, "--template", template, template)
            files = {str(path.relative_to(TEMPLATES / template)).replace("gitignore", ".gitignore"): path.read_text()
                     for path in (TEMPLATES / template).rglob("*") if path.is_file()}
            self.assertEqual(found, {path: text.replace("@name@", template) for path, text in files.items()})

    def test_a_service_is_the_default(self):
        self.assertIn("src/service.c", self.makes(self.root / "a", "a"))

    def test_an_empty_directory_is_taken(self):
        (self.root / "b-1").mkdir()
        found = self.makes(self.root / "b-1", ".", cwd=self.root / "b-1")
        self.assertTrue(found["README.md"].startswith("# b-1\n"))
        found = self.makes(self.root / "c_2", f"{self.root}/c_2//")
        self.assertTrue(found["README.md"].startswith("# c_2\n"))

    def test_a_directory_that_is_not_empty_stays_as_it_is(self):
        (self.root / "full").mkdir()
        (self.root / "full/.hidden").touch()
        self.refuses("full is not empty", "full")
        (self.root / "file").touch()
        self.refuses("can't use file: Not a directory", "file")

    def test_names(self):
        for name in ("Big", "1a", "a b", "a$(x)", "../..", "ä", "-a", "a" * 64, "a.b", "/", ""):
            self.refuses("name for a project" if name[:1] != "-" else "unexpected argument '-a'", name)
        self.makes(self.root / ("a" * 63), "a" * 63)

    def test_a_name_of_the_projects_own_is_refused(self):
        for name in ("all", "clean", "run", "src", "test"):
            self.refuses(f"'{name}' is a target or a directory of each project", name)
        self.makes(self.root / "tests", "tests")

    def test_wrong_arguments(self):
        self.refuses("--template takes service or durable, not 'x'", "a", "--template", "x")
        self.refuses("--template needs a value", "a", "--template")
        self.refuses("unexpected argument 'b'", "a", "b")
        self.refuses("init takes a directory", "--template", "service")
        self.refuses("can't make", "nowhere/at/last")
        self.refuses("usage: ebb init DIR [--template service|durable]")

    def test_a_directory_where_nothing_can_be_written(self):
        done = self.run_it("/proc/self/fd")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/proc/self/fd is not empty", done.stderr)


if __name__ == "__main__":
    EBB = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
