#!/usr/bin/env python3
"""`ebb check`, `ebb fmt` and `ebb explain` from outside.

usage: lang.py EBB [NAME...]
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EBB = None
GOOD = "fn main() {\n    print(\"hello\");\n}\n"
BAD = "fn main() {\n    let n: i64 = \"one\";\n    print(str(n));\n}\n"


def ebb(*args):
    return subprocess.run([EBB, *map(str, args)], capture_output=True, text=True, timeout=60)


class Lang(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = Path(self.dir.name)

    def tearDown(self):
        self.dir.cleanup()

    def file(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def test_check_says_nothing_about_a_good_program(self):
        run = ebb("check", self.file("good.ebb", GOOD))
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

    def test_check_shows_the_place_and_fails(self):
        path = self.file("bad.ebb", BAD)
        run = ebb("check", path)
        self.assertEqual(run.returncode, 1)
        self.assertIn("E0301 mismatched types", run.stderr)
        self.assertIn(f"{path}:2:18", run.stderr)
        self.assertIn("^^^^^ expected i64, found string", run.stderr)

    def test_check_json_is_a_line_for_each_diagnostic(self):
        run = ebb("check", "--json", self.file("bad.ebb", BAD))
        found = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0]["code"], "E0301")
        self.assertEqual(found[0]["labels"][0]["line"], 2)
        self.assertEqual(BAD[found[0]["labels"][0]["at"]:][:5], '"one"')

    def test_check_json_is_utf_8_whatever_the_name_of_the_file(self):
        path = bytes(self.path) + b"/\xff\xc3\xa9.ebb"
        with open(path, "w") as f:
            f.write(BAD)
        run = subprocess.run([EBB, "check", "--json", path], capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        found = json.loads(run.stdout.decode("utf-8"))
        self.assertTrue(found["labels"][0]["file"].endswith("/\ufffd\u00e9.ebb"))

    def test_a_file_without_end_is_too_large(self):
        for command in ["check", "fmt", "run", "test"]:
            run = subprocess.run([EBB, command, "/dev/zero"], capture_output=True, text=True, timeout=60)
            self.assertIn("E0110 file too large", run.stderr)
            self.assertEqual(run.returncode, 1)

    def test_check_reads_modules_beside_the_program(self):
        self.file("net/auth.ebb", "pub const PORT: i64 = 7;\n")
        main = self.file("main.ebb", "import net::auth;\n\nfn main() { print(str(auth::PORT)); }\n")
        self.assertEqual(ebb("check", main).returncode, 0)
        self.file("net/auth.ebb", "pub const PORT: i64 = true;\n")
        run = ebb("check", main)
        self.assertEqual(run.returncode, 1)
        self.assertIn("net/auth.ebb:1:23", run.stderr)

    def test_fmt_formats_in_place_and_check_only_names(self):
        path = self.file("wide.ebb", "fn  main( ){print( \"hello\" ) ;}")
        run = ebb("fmt", "--check", path)
        self.assertEqual((run.returncode, run.stdout), (1, f"{path}\n"))
        self.assertEqual(ebb("fmt", path).returncode, 0)
        self.assertEqual(path.read_text(), "fn main() { print(\"hello\"); }\n")
        self.assertEqual(ebb("fmt", "--check", path).returncode, 0)

    def test_fmt_leaves_a_file_with_a_syntax_error_alone(self):
        path = self.file("broken.ebb", "fn main( {\n")
        run = ebb("fmt", path)
        self.assertEqual(run.returncode, 1)
        self.assertIn("E01", run.stderr)
        self.assertEqual(path.read_text(), "fn main( {\n")

    def test_explain_knows_each_code_and_no_other(self):
        codes = [line.split()[0] for line in ebb("explain").stdout.splitlines()]
        self.assertGreater(len(codes), 80)
        for code in codes:
            run = ebb("explain", code)
            self.assertEqual(run.returncode, 0)
            self.assertTrue(run.stdout.startswith(code))
        self.assertEqual(ebb("explain", "E9999").returncode, 2)

    def test_wrong_arguments_and_missing_files_are_usage(self):
        for args in (["check"], ["fmt", "--wrong"], ["check", self.path / "none.ebb"], ["explain", "a", "b"]):
            self.assertEqual(ebb(*args).returncode, 2, args)


if __name__ == "__main__":
    EBB = sys.argv.pop(1)
    unittest.main()
