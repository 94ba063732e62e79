#!/usr/bin/env python3
"""Runs or compiles every block of code of README.md and docs/guide.md: one that nothing proves is a failure.

usage: readme.py BUILD [CLASS[.TEST]...]

BUILD is a build of this tree. What is typed in a block is run by bash in a directory where it looks like a clone in which
`make` has been run; two things are replaced, a port that somebody may have and `make`.
"""
import http.server
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE_S = 120


def blocks(page):
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def block(page, language, part):
    """The one block of a language that has this in it."""
    found = [text for kind, text in blocks(page) if kind == language and part in text]
    assert len(found) == 1, "%s: %d %s blocks with %r" % (page, len(found), language, part)
    return found[0]


# How each block is proved: (language, a part of it) -> who does it. Methods are of this file.
README = {
    ("sh", "make run "): "Typed.test_what_make_has",
    ("c", "ebb_http_listen"): "examples.run: it is examples/web.c, which is built and run",
    ("sh", "examples/web &"): "Typed.test_a_web_server",
    ("text", "examples/publish"): "Typed.test_a_publish",
    ("js", "ebb-web"): "Browser.test_a_page",
    ("sh", "make install"): "install.prefix: test_the_readme_is_true",
    ("cmake", "find_package"): "install.prefix: test_the_readme_is_true",
}
GUIDE = {("sh", "ebb trace summary"): "Typed.test_the_files_of_a_run"}


class EveryBlock(unittest.TestCase):
    def test_of_the_readme_is_proved_by_one_test(self):
        for kind, text in blocks("README.md"):
            proofs = [how for (language, part), how in README.items() if language == kind and part in text]
            self.assertEqual(len(proofs), 1, "README.md: a block that no test runs:\n" + text)

    def test_of_the_guide_is_a_part_of_a_program_or_run(self):
        for kind, text in blocks("docs/guide.md"):
            if kind != "c":  # those are parts of programs that run: examples.guide
                proofs = [how for (language, part), how in GUIDE.items() if language == kind and part in text]
                self.assertEqual(len(proofs), 1, "docs/guide.md: a block that no test runs:\n" + text)

    def test_that_is_said_to_be_proved_is_there(self):
        for page, proofs in (("README.md", README), ("docs/guide.md", GUIDE)):
            for (kind, part), how in proofs.items():
                block(page, kind, part)
                test = re.search(r"test_\w+", how)
                places = [Path(__file__), ROOT / "tests/install/test_install.py"]
                if test:
                    self.assertTrue([p for p in places if "def %s(" % test.group() in p.read_text()], how)


class Typed(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ebb-readme-")
        self.addCleanup(directory.cleanup)
        self.where = Path(directory.name)
        (self.where / "build").mkdir()
        (self.where / "build/release").symlink_to(BUILD)
        (self.where / "bin").mkdir()
        (self.where / "bin/ebb").symlink_to(BUILD / "ebb")
        (self.where / "bin/make").write_text("#!/bin/sh\n")
        (self.where / "bin/make").chmod(0o755)
        # A server that was begun by the line before may not listen yet.
        (self.where / ".curlrc").write_text("silent\nretry = 60\nretry-delay = 1\nretry-connrefused\n")
        self.env = {**os.environ, "CURL_HOME": str(self.where), "PATH": "%s/bin:%s" % (self.where, os.environ["PATH"])}

    def bash(self, script):
        done = subprocess.run(["bash", "-c", script], cwd=self.where, env=self.env, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_what_make_has(self):
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # as not below `make test`
        for line in block("README.md", "sh", "make run ").splitlines():
            made = subprocess.run(["make", "-n", "DEPS=:", line.split("#")[0].split()[1]], cwd=ROOT, check=True,
                                  stdout=subprocess.PIPE, text=True, env=env).stdout
            # What comes last is run by cli.shop, and is this suite.
            self.assertRegex(made.splitlines()[-1], r"scripts/run build/run|ctest --preset release")

    def test_a_web_server(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        typed = block("README.md", "sh", "examples/web &").replace("web &", "web %d &" % port).replace("8080", str(port))
        said = self.bash("set -em\n" + typed)  # its output ends when the server has ended
        self.assertEqual(said, "hello, ada\n")

    def test_a_publish(self):
        typed, expected = [], []
        for line in block("README.md", "text", "examples/publish").splitlines():
            (typed if line.startswith("$ ") else expected).append(line.removeprefix("$ "))
        said = self.bash("set -e\n" + "\n".join(typed)).splitlines()
        plain = lambda lines: [re.sub(r"[\d.]+/", "N/", line) for line in lines]  # how long it took
        self.assertEqual(plain(said), plain(expected))

    def test_the_files_of_a_run(self):
        with subprocess.Popen([BUILD / "examples/service", "--port", "0", "--trace", "run.trace", "--journal", "run.journal"],
                              cwd=self.where, stdout=subprocess.PIPE, text=True) as service:
            service.stdout.readline()
            service.terminate()
            service.communicate(timeout=PATIENCE_S)
        self.bash("set -e\n" + block("docs/guide.md", "sh", "ebb trace summary"))
        self.assertTrue((self.where / "out.json").stat().st_size > 0)


class Browser(unittest.TestCase):
    """In Node, with what a page has around it: a server of its own, for which '/feed' is a path."""

    AROUND = """
        const fetched = globalThis.fetch;
        globalThis.fetch = (path, how) => fetched(new URL(path, process.argv[2]), how);
        globalThis.addEventListener = () => {};
        globalThis.save = async (answer) => console.log('saved', await answer.text());
        """

    def test_a_page(self):
        stage = ROOT / "build/wasm/web/ebb-web"
        self.assertTrue((stage / "src/module.js").exists(), "%s is not whole: make wasm builds it" % stage)

        class Feed(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path == "/feed" else 404)
                self.send_header("content-length", "4")
                self.end_headers()
                self.wfile.write(b"news")

            def log_message(self, *_):
                pass

        with tempfile.TemporaryDirectory() as where, \
                http.server.ThreadingHTTPServer(("127.0.0.1", 0), Feed) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            modules = Path(where) / "node_modules"
            modules.mkdir()
            (modules / "ebb-web").symlink_to(stage)
            (Path(where) / "around.mjs").write_text(self.AROUND)
            (Path(where) / "page.mjs").write_text("import './around.mjs';\n" + block("README.md", "js", "ebb-web"))
            done = subprocess.run(["node", "page.mjs", "http://127.0.0.1:%d" % server.server_port], cwd=where, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, check=False)
            server.shutdown()
        self.assertRegex(done.stdout, r"\Asaved news\ncleaned up, whatever happened\n\{\s*status: 'ok',\s*abandoned: \[\],\s*leaked: \[\],")
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    BUILD = Path(sys.argv[1]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
