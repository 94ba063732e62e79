"""A temporary tree of files, and a script of ours run on it."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


class TreeTest(unittest.TestCase):
    script = None
    arguments = ()  # after the root

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_script(self):
        return subprocess.run([sys.executable, str(SCRIPTS / self.script), str(self.root), *self.arguments],
                              capture_output=True, text=True, check=False)

    def assert_clean(self):
        ran = self.run_script()
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def assert_reported(self, *texts):
        ran = self.run_script()
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        for text in texts:
            self.assertIn(text, ran.stdout)
