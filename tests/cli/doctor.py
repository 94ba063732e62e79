#!/usr/bin/env python3
"""`ebb doctor`: each of its checks, on what is fit and on what is not.

usage: doctor.py EBB POSTGRES MACHINE [CLASS[.TEST]...]
"""
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EBB = POSTGRES = MACHINE = ""
PATIENCE_S = 120


class Doctor(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.root = Path(self.temporary.name)
        self.dir = self.root / "state"

    def tearDown(self):
        self.temporary.cleanup()

    def run_it(self, *words, **how):
        return subprocess.run([EBB, "doctor", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S,
                              cwd=self.root, check=False, **how)

    def look(self, *words, listen="127.0.0.1:0", **how):
        """The findings by name, and the exit code."""
        done = self.run_it("--json", "--dir", self.dir, "--listen", listen, *words, **how)
        self.assertEqual(done.stderr, "")
        found = {line["check"]: line for line in map(json.loads, done.stdout.splitlines())}
        failed = any(line["verdict"] == "fail" for line in found.values())
        self.assertEqual(done.returncode, 1 if failed else 0)
        for line in found.values():
            self.assertEqual("advice" in line, line["verdict"] != "ok", line)
        return found

    def found(self, check, verdict, text, *words, **how):
        line = self.look(*words, **how)[check]
        self.assertEqual(line["verdict"], verdict, line)
        self.assertIn(text, line["text"])


class Machine(Doctor):
    def test_a_fit_machine_has_no_failure(self):
        found = self.look()
        self.assertEqual(list(found), ["libuv", "openssl", "nghttp2", "sqlite", "libpq", "jansson", "descriptors",
                                       "file-size", "maps", "clock", "directory", "write", "space", "token", "address",
                                       "store"])
        for name in ("libuv", "openssl", "nghttp2", "sqlite", "libpq", "jansson"):
            self.assertEqual(found[name]["verdict"], "ok", found[name])
        self.assertFalse(self.dir.exists())
        self.assertEqual(list(self.root.iterdir()), [])

    def test_lines_say_what_to_do(self):
        plain = self.run_it("--listen", "192.0.2.1:7070")
        self.assertEqual(plain.returncode, 1)
        self.assertRegex(plain.stdout, r"(?m)^ok    libuv        \d")
        self.assertRegex(plain.stdout, r"(?m)^fail  address      192\.0\.2\.1 port 7070: .*\n {19}This machine does not")

    def limited(self, what, n):
        return {"preexec_fn": lambda: resource.setrlimit(what, (n, n))}

    def test_few_descriptors(self):
        self.found("descriptors", "fail", "100 open files", **self.limited(resource.RLIMIT_NOFILE, 100))
        self.found("descriptors", "warn", "1000 open files", **self.limited(resource.RLIMIT_NOFILE, 1000))

    def on_a_bad_machine(self, free_mib):
        asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        return self.look(env=dict(os.environ, LD_PRELOAD=MACHINE, ASAN_OPTIONS=asan, FREE_MIB=str(free_mib)))

    def test_libraries_of_another_version(self):
        found = self.on_a_bad_machine(5000)
        self.assertEqual([found[name]["verdict"] for name in ("sqlite", "libuv", "nghttp2")], ["fail", "warn", "ok"])
        self.assertIn("2.8.17, built with 3.", found["sqlite"]["text"])

    def test_a_disk_that_is_full_or_does_not_sync(self):
        for mib, verdict in ((63, "fail"), (64, "warn"), (1023, "warn"), (1024, "ok")):
            found = self.on_a_bad_machine(mib)
            self.assertEqual((found["space"]["verdict"], found["space"]["text"]), (verdict, f"{mib} MiB are free"))
        self.assertEqual(found["write"]["verdict"], "fail")
        self.assertIn("Input/output error", found["write"]["text"])

    def test_small_files(self):
        self.found("file-size", "warn", "at most 1048576 bytes", **self.limited(resource.RLIMIT_FSIZE, 1 << 20))

    def test_wrong_arguments(self):
        for words, text in ((["--load", "x"], "unexpected argument '--load'"), (["--dir"], "--dir needs a value"),
                            (["--listen", "here"], "--listen takes ADDRESS:PORT"), (["x"], "unexpected argument 'x'")):
            done = self.run_it(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(text, done.stderr)


class Service(Doctor):
    def test_a_directory_that_others_may_write(self):
        self.dir.mkdir()
        self.dir.chmod(0o777)
        self.found("directory", "fail", "has mode 0777")
        self.dir.chmod(0o700)
        self.found("directory", "ok", "has mode 0700")
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_a_file_in_place_of_the_directory(self):
        self.dir.touch()
        self.found("directory", "fail", "is not a directory")
        self.found("write", "fail", "Not a directory")

    def test_a_directory_where_nothing_can_be_made(self):
        self.dir = Path("/proc/ebb")
        self.found("write", "fail", "/proc: ")

    def test_a_write_that_fails(self):
        if b"__tsan_init" in Path(EBB).read_bytes():
            self.skipTest("ThreadSanitizer writes a file of its own before main")
        self.found("write", "fail", "File too large", preexec_fn=self.no_bytes)
        self.assertEqual(list(self.root.iterdir()), [])

    @staticmethod
    def no_bytes():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    def test_the_token(self):
        self.dir.mkdir(0o700)
        token = self.dir / "token"
        token.write_text("0123456789abcdef\n")
        token.chmod(0o644)
        self.found("token", "fail", "token")
        token.chmod(0o600)
        self.found("token", "ok", "can be read")
        token.write_text("short\n")
        self.found("token", "fail", "token")

    def test_links_to_what_is_not_there(self):
        self.dir.symlink_to(self.root / "nowhere")
        self.found("directory", "fail", "No such file")
        self.dir.unlink()
        self.dir.mkdir(0o700)
        (self.dir / "token").symlink_to(self.root / "nowhere")
        self.found("token", "fail", "token")

    def test_the_options_of_a_file(self):
        (self.root / "serve.conf").write_text("store = redis:x\n")
        self.found("store", "fail", "'redis:x' is no store", "--config", self.root / "serve.conf")
        (self.root / "serve.conf").write_text("nothing = 1\n")
        done = self.run_it("--config", self.root / "serve.conf")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("nothing", done.stderr)

    def test_the_address(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            self.found("address", "fail", "in use", listen=f"127.0.0.1:{other.getsockname()[1]}")
        self.found("address", "ok", "::1 port 0 is free" if self.has_six() else "port 0",
                   listen="[::1]:0" if self.has_six() else "127.0.0.1:0")

    @staticmethod
    def has_six():
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
            return True
        except OSError:
            return False

    def test_a_sqlite_file(self):
        path = self.root / "work.db"
        self.found("store", "ok", "is not there", "--store", f"sqlite:{path}")
        path.write_text("What is this? It is no database.")
        self.found("store", "fail", "no SQLite database", "--store", f"sqlite:{path}")
        path.unlink()
        done = subprocess.run([EBB, "durable", "start", "nap", "--store", f"sqlite:{path}"], check=True,
                              capture_output=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0)
        self.found("store", "ok", "is a SQLite database", "--store", f"sqlite:{path}")

    def test_the_store_is_where_its_url_says(self):
        self.dir = self.root / "50%?#"
        self.dir.mkdir(0o700)
        (self.dir / "ebb.db").write_text("What is this? It is no database.")
        self.found("store", "fail", "50%?#/ebb.db is no SQLite database")
        self.found("store", "ok", "/work.db is not there", "--store", f"sqlite:{self.root}/work.db?durability=full")
        self.found("store", "fail", "and neither is /nowhere", "--store", "sqlite:/nowhere/work.db")
        self.found("store", "fail", "has a % that", "--store", "sqlite:%zz")
        self.found("store", "fail", "has no path", "--store", "sqlite:")
        self.found("store", "fail", "'redis://me:***@here/' is no store", "--store", "redis://me:secret@here/")
        self.dir = self.root / "new"
        self.found("store", "ok", "is made with the first start", "--store", f"sqlite:{self.dir}/work.db")

    def test_other_stores(self):
        self.found("store", "warn", "lab: is memory", "--store", "lab:")
        self.found("store", "fail", "'redis:x' is no store", "--store", "redis:x")
        self.found("store", "fail", "", "--store", "postgres://")


class Postgres(Doctor):
    def test_a_server_that_is_there(self):
        with subprocess.Popen([POSTGRES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            url = server.stdout.readline().strip()
            found = self.look("--store", url)
            server.stdin.close()
        self.assertEqual([found[name]["verdict"] for name in ("store", "listen", "clocks")], ["ok"] * 3, found)
        self.assertIn("PostgreSQL 1", found["store"]["text"])

    def test_a_server_that_is_not_there(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            self.found("store", "fail", "refused",
                       "--store", f"postgres://ebb:secret@127.0.0.1:{nobody.getsockname()[1]}/ebb")


if __name__ == "__main__":
    EBB, POSTGRES, MACHINE = (os.path.abspath(path) for path in sys.argv[1:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
