"""The server of the HTTP tests as a process: what it says, what it counts, how it ends.

    server = http_world.Server(PROGRAM, "--limit", "streams=2")
    server.wait_for("closed", "7")               # an event of the handler with the id 7; see tests/http/programs/server.c
    server.stop()                                # SIGTERM; AssertionError unless it ends with 0 and said nothing wrong
"""
import collections
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import h2raw

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from signals import tell  # noqa: E402

PATIENCE_S = 60  # for what takes milliseconds on an idle machine
KINDS = ("f", "p", "u")  # a fiber, a poll function, a function that returns a future
RESETS_ALLOWED = ("--limit", "resets=1000000000", "--limit", "resets_second=1000000000")
PINGS_ALLOWED = ("--limit", "frames=1000000000", "--limit", "frames_second=1000000000")

NODE_CLIENT = Path(__file__).with_name("node_client.mjs")
LETTERS = bytes(range(ord("a"), ord("z") + 1))

Event = collections.namedtuple("Event", "what id rest")


def is_sanitized(program):
    """Its memory is not what it would be."""
    raw = Path(program).read_bytes()
    return b"__asan_init" in raw or b"__tsan_init" in raw


class Server:
    def __init__(self, program, *arguments):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.said = threading.Condition()
        self.events, self.by_id, self.counts = [], collections.defaultdict(list), collections.Counter()
        self.ended = False
        first = self.process.stdout.readline()
        if not first.startswith("port "):
            self.process.wait()
            raise AssertionError("it does not listen: %r, %s" % (first, self.stderr()))
        self.port = int(first.split()[1])
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    @property
    def pid(self):
        return self.process.pid

    def read(self):
        for line in self.process.stdout:
            what, name, rest = (line.rstrip("\n").split(" ", 2) + ["", ""])[:3]
            with self.said:
                event = Event(what, name, rest)
                self.events.append(event)
                self.by_id[name].append(event)
                self.counts[what] += 1
                self.said.notify_all()
        with self.said:
            self.ended = True
            self.said.notify_all()

    def until(self, condition, what):
        with self.said:
            if not self.said.wait_for(lambda: condition() or self.ended, PATIENCE_S) or not condition():
                raise AssertionError("%s: not seen; the last of %d events: %s %s" % (
                    what, len(self.events), self.events[-8:], self.stderr()))

    def wait_for(self, what, name):
        """An event of a handler; returns what follows its id."""
        found = []

        def seen():
            found[:] = [e for e in self.by_id[name] if e.what == what]
            return found

        self.until(seen, "%s %s" % (what, name))
        return found[0].rest

    def wait_for_all(self, what, names):
        for name in names:
            self.wait_for(what, name)

    def wait_for_count(self, what, n):
        self.until(lambda: self.counts[what] >= n, "%d times %s" % (n, what))

    def history(self, name):
        """What happened to a handler, as words."""
        with self.said:
            return [e.what for e in self.by_id[name]]

    def connect(self, *arguments, **keywords):
        keywords.setdefault("timeout", PATIENCE_S)
        return h2raw.Conn(self.port, *arguments, **keywords)

    def stats(self, **how):
        """What the server counts, or None if it has no room for who asks."""
        with self.connect(**how) as c:
            answer = c.get("/stats")
            return None if answer.status in (503, None) else json.loads(answer.body)

    def still(self, connections=0, **how):
        """The stats once nobody is served any more but who asks for them, and so many idle connections."""
        end = time.monotonic() + PATIENCE_S
        while True:
            now = self.stats(**how)
            if now and now["exchanges"] == 1 and now["connections"] == 1 + connections:
                return now
            if time.monotonic() > end:
                raise AssertionError("it does not come to rest: %s" % now)
            time.sleep(0.01)

    def cpu_seconds(self):
        """What it has used of a processor: unlike time that passes, no other program's work is in it."""
        fields = Path("/proc/%d/stat" % self.pid).read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self):
        """Bytes of memory that it really has."""
        status = Path("/proc/%d/status" % self.pid).read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def stderr(self):
        """So far. Not by a seek: the server writes at the same offset."""
        at = self.errors.fileno()
        return os.pread(at, os.fstat(at).st_size, 0).decode(errors="replace")

    def wait(self):
        """Its exit status."""
        status = self.process.wait(PATIENCE_S)
        self.reader.join()
        return status

    def terminate(self):
        tell(self.process, signal.SIGTERM)

    def stop(self, expected=0):
        self.terminate()
        self.check_end(expected)

    def check_end(self, expected=0):
        status, errors = self.wait(), self.stderr()
        if (status, errors) != (expected, "") or self.counts["wrote-after-cancel"] or not self.is_balanced():
            raise AssertionError("exit %s (expected %s); late writes: %s; unbalanced: %s; %s" % (
                status, expected, [e for e in self.events if e.what.startswith("wrote")], self.unbalanced(), errors))

    def unbalanced(self):
        """Handlers that did not begin once, clean up once and close once."""
        ids = collections.Counter((e.what, e.id) for e in self.events)
        begun = {name: n for (what, name), n in ids.items() if what == "begin"}
        return [(name, self.history(name)) for name, n in begun.items()
                if ids["cleaned", name] != n or ids["closed", name] != n]

    def is_balanced(self):
        return not self.unbalanced()

    def kill(self):
        """For addCleanup: whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.errors.close()


def certificate(directory):
    """A certificate for this machine, and its key: files in PEM."""
    cert, key = str(directory) + "/cert.pem", str(directory) + "/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


class WithServer(unittest.TestCase):
    """Starts servers, and connects to the last of them."""

    program = ""
    connections = ()

    def start(self, *arguments):
        self.server = Server(self.program, *arguments)
        self.addCleanup(self.server.kill)
        return self.server

    def connect(self, *arguments, **keywords):
        c = self.server.connect(*arguments, **keywords)
        self.addCleanup(c.close)
        self.connections = (*self.connections, c)
        return c

    def leave_and_stop(self):
        """A server that is stopped waits 2 s for peers that do not answer; so these are closed first."""
        for c in self.connections:
            c.close()
        self.server.stop()

    def assert_cancelled(self, names, kind="DISCONNECT", says=""):
        for name in names:
            rest = self.server.wait_for("cancelled", name)
            self.assertRegex(rest, "^%s .*%s" % (kind, re.escape(says)), name)
            self.server.wait_for("closed", name)
            self.assertEqual(self.server.history(name), ["begin", "cancelled", "cleaned", "closed"], name)


def letters(n):
    """What /big?n=N sends."""
    return (LETTERS * (n // 26 + 1))[:n]


class Client:
    """A real client as a process, which a test may kill."""

    def __init__(self, test, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        test.addCleanup(self.end)

    def end(self):
        self.process.kill()
        self.process.communicate()

    def kill(self):
        """As kill -9: it says no goodbye."""
        self.process.kill()
        self.process.wait()

    def feed(self, raw):
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def hear(self, n):
        """The next n bytes of what it prints; fewer if it ends."""
        raw, end = b"", time.monotonic() + PATIENCE_S
        while len(raw) < n:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("%d of %d bytes, and then nothing" % (len(raw), n))
            more = os.read(self.process.stdout.fileno(), n - len(raw))
            if not more:
                break
            raw += more
        return raw


class WithClients(WithServer):
    def url(self, path):
        return "http://127.0.0.1:%d%s" % (self.server.port, path)

    def curl(self, *arguments):
        return Client(self, "curl", "-sS", "-N", "--http2-prior-knowledge", *arguments)

    def node(self, what, path, *arguments):
        return Client(self, "node", str(NODE_CLIENT), what, self.url(path), *arguments)

    def run_client(self, *command):
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""), command)
        return done.stdout

    def run_curl(self, path, *arguments):
        return self.run_client("curl", "-sS", "--http2-prior-knowledge", *arguments, self.url(path))

    def run_node(self, what, path, *arguments):
        return json.loads(self.run_client("node", str(NODE_CLIENT), what, self.url(path), *arguments))


def chosen(names):
    """For unittest.main: names of tests of the main module. -CLASS... are all classes but these."""
    left_out = {name[1:] for name in names if name.startswith("-")}
    if not left_out:
        return names
    classes = {name for name, value in vars(sys.modules["__main__"]).items()
               if isinstance(value, type) and issubclass(value, unittest.TestCase)}
    if not left_out <= classes:
        sys.exit("no such class: %s" % ", ".join(sorted(left_out - classes)))
    return sorted(classes - left_out)


def run_tests(program, names):
    """The test classes of the main module that are named, or all but -CLASS...; without names, all."""
    WithServer.program = program
    unittest.main(argv=[sys.argv[0], *chosen(names)], verbosity=2)
