#!/usr/bin/env python3
"""Runs the examples as a newcomer would.

usage: examples.py EBB HTTP_TEST_SERVER EXAMPLE...
"""
import contextlib
import os
import pty
import random
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
import h2raw  # noqa: E402
import http_world  # noqa: E402
from signals import is_asleep, tell  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
EBB = ""
HTTP_SERVER = ""
PROGRAMS = {}

# These run until they are told to stop; service.py has service.
HTTP = {"proxy", "upload", "web"}
ARGUMENTS = {"crawler", "jobs"}  # these have a class of their own
SERVERS = {"chat", "echo", "greeter", "service"} | HTTP
REAL_TIME = {"embed", "fanout", "pipeline", "publish"}  # these run on the clock of the machine

# What an example has to say, as expressions for whole lines, in this order.
SAYS = {
    "hello": [
        r"3 items, and cleaned up at 40 ms", r"3 items, and cleaned up at 40 ms",
        r"the shop is closed: cancelled"],
    "machine": [
        r"alice may enter, visitor 1", r"the door closes", r"bob may not enter", r"mallory may not enter: no answer",
        r"alice may enter, visitor 2", r"the door closes", r"closed: ok"],
    "payment": [
        r"cancelled at 15 ms", r" +30 ms  charged, .*", r" +33 ms  finalizer: .*", r" +cancelled",
        r"cancelled at 5 ms", r" +5 ms  told to stop: .*", r" +8 ms  finalizer: .*", r" +cancelled"],
    "pool": [
        r"close +12 sent = 12 done \+ 0 put back \+ 0 still in the channel; ok",
        r"cancel +\d+ sent = +6 done \+ 3 put back \+ \d+ still in the channel; cancelled"],
    "embed": [
        r"tick 1", r"  date ends with 0 and says \d{4}", r"  sleep: the time was over", r"tick 8"],
    "fanout": [
        r"shard  0 says 0", r"shard  5, attempt 2", r"shard  5, attempt 3", r"shard  5 says 500",
        r"shard  9: the time was over", r"asked: ok"],
    "pipeline": [r"\d+ lines, never more than \d+ blocks in memory"],
    "publish": [r"v42 is FINALIZED: ok"],
    "race": [r"15 ms: mirror 2 has cleaned up", r"15 ms: mirror 1 has won"],
    "tour": [
        # chapter 1: the inner region is closed before the outer one, parents are told first
        r"1\. Nested regions.*",
        r" +0 ms Open +Open +Running +Running",
        r" +20 ms Closing .* Requested .* USER",
        r" +Draining +Closing .* Requested +PARENT",
        r" +Finalizing +Closed",
        r" +50 ms Closed",
        # chapter 2: asked at 10 ms, heard at 30 ms
        r"2\. A masked section.*",
        r" +0 ms Running +masked, reserved",
        r" +10 ms Requested +DISCONNECT",
        r" +30 ms Cancelling +committed, unmasked",
        r" +Finalizing",
        r" +35 ms Cancelled",
        # chapter 3: the race closes when the loser has gone
        r"3\. A race over a channel.*",
        r" +10 ms \| +Closing +Completed +Requested +RACE_LOST",
        r" +15 ms .* Finalizing",
        r" +Completed +Closed",
        # chapter 4
        r"4\. Close against cancel against force.*",
        r" +25 ms \| +Requested +Requested +Requested +USER, BUDGET, forced",
        r" +\| +Cancelling +Cancelled +Abandoned",
        r" +30 ms Completed +\|",
        r" +40 ms +Finalizing",
        # chapter 5
        r"5\. A leak.*",
        r" +0 ms Open +Running +reserved, leaked, aborted",
        r" +ok +the report names the place: leak\.c:\d+",
        r"All 5 chapters ended as they should\."],
}


def run(name, *arguments):
    return subprocess.run([PROGRAMS[name], *arguments], capture_output=True, text=True, timeout=60,
                          check=False)


def on_terminal(name, **environment):
    """What the program prints when its output is a terminal.

    A terminal that everybody has closed may drop what was not read yet. So this side stays open, and an
    end mark after the program's last byte says that all of it has been read.
    """
    ours, theirs = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | environment
    with subprocess.Popen([PROGRAMS[name]], stdout=theirs, env=env) as child:
        def end():
            try:
                child.wait(timeout=60)
            except subprocess.TimeoutExpired:
                child.kill()
            os.write(theirs, b"\0")

        ending = threading.Thread(target=end)
        ending.start()
        text = b""
        while not text.endswith(b"\0"):
            text += os.read(ours, 4096)
        ending.join()
    os.close(theirs)
    os.close(ours)
    return child.returncode, text[:-1].decode().replace("\r\n", "\n")


class EachExample(unittest.TestCase):
    def test_ends_with_0_and_says_what_it_should(self):
        for name, expected in SAYS.items():
            with self.subTest(name):
                result = run(name)
                self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
                lines = iter(result.stdout.splitlines())
                for pattern in expected:
                    self.assertTrue(any(re.fullmatch(pattern, line) for line in lines),
                                    "no line %r, or not in this order, in:\n%s" % (pattern, result.stdout))

    def test_is_deterministic(self):
        for name in set(SAYS) - REAL_TIME:
            with self.subTest(name):
                self.assertEqual(run(name).stdout, run(name).stdout)

    def test_has_a_row_in_this_test(self):
        sources = {path.stem for path in (ROOT / "examples").iterdir()
                   if path.suffix == ".c" or path.is_dir()} - {"guide", "lang", "durable", "shop"}  # these have tests of their own
        self.assertEqual(sources, set(SAYS) | ARGUMENTS | SERVERS)

    def test_fits_a_page(self):
        for path in (ROOT / "examples").glob("*.c"):
            self.assertLess(len(path.read_text(encoding="utf-8").splitlines()), 120, path)


def start(test, name, *arguments):
    """A server that listens, and its port."""
    server = subprocess.Popen([PROGRAMS[name], "0", *arguments], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT if name in HTTP else None)
    test.addCleanup(server.stdout.close)
    test.addCleanup(server.wait)
    test.addCleanup(server.kill)
    port = re.fullmatch(r"listening on 127\.0\.0\.1 port (\d+)\n", server.stdout.readline())
    return server, int(port.group(1))


class Jobs(unittest.TestCase):
    def test_run_two_at_a_time_and_say_how_they_ended(self):
        done = run("jobs", "true", "exit 3", "sleep 60", "echo hi >&2")
        self.assertEqual((done.returncode, done.stderr), (1, "hi\n"))
        self.assertEqual(sorted(done.stdout.splitlines()),
                         ["echo hi >&2: exit code 0", "exit 3: exit code 3", "sleep 60: the time was over",
                          "true: exit code 0"])

    def test_are_ended_by_sigterm_and_no_further_one_begins(self):
        with tempfile.TemporaryDirectory() as where:
            begun = Path(where) / "begun"
            command = "echo >>%s; sleep 60" % begun
            with subprocess.Popen([PROGRAMS["jobs"], command, command, command], stdout=subprocess.PIPE,
                                  text=True) as jobs:
                end = time.monotonic() + 60
                while not begun.exists() or begun.stat().st_size < 2:
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.005)
                tell(jobs, signal.SIGTERM)
                self.assertEqual(jobs.communicate(timeout=60)[0], "%s: cancelled\n" % command * 2)
            self.assertEqual((jobs.returncode, begun.stat().st_size), (0, 2))


class Crawler(unittest.TestCase):
    PAGES = {"index.html": '<a href="/a.html"> <a href="/b/c.html#x"> <a href="/a.html"> <a href="http://elsewhere/">',
             "a.html": '<a href="/"> <a href="/missing.html">', "b/c.html": "no link"}

    def crawl(self, pages):
        with tempfile.TemporaryDirectory() as where:
            for name, text in pages.items():
                path = Path(where) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            with subprocess.Popen([EBB, "files", where, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
                url = server.stdout.readline().strip()
                done = run("crawler", url)
                tell(server, signal.SIGTERM)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        *lines, last = done.stdout.splitlines()
        return sorted(line.replace(url, "/") for line in lines), last

    def test_visits_each_page_once(self):
        self.assertEqual(self.crawl(self.PAGES),
                         (["200 /", "200 /a.html", "200 /b/c.html", "404 /missing.html"], "4 pages, 0 links left out"))

    def test_is_bounded(self):
        many = {"index.html": "".join('<a href="/%d.html">' % i for i in range(150))}
        lines, last = self.crawl(many)
        self.assertEqual((len(lines), last), (100, "100 pages, 51 links left out"))

    def test_says_what_does_not_answer(self):
        done = run("crawler", "http://127.0.0.1:1/")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\Ahttp://127\.0\.0\.1:1/: .*\n1 pages, 0 links left out\n\Z")
        self.assertEqual(run("crawler", "nonsense").returncode, 1)


class Echo(unittest.TestCase):
    def test_echoes_and_drains_on_sigterm(self):
        server, port = start(self, "echo")
        with socket.create_connection(("127.0.0.1", port), timeout=30) as idle, \
                socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            text = b"what you send it comes back\n" * 10000
            sender = threading.Thread(target=client.sendall, args=(text,))
            sender.start()
            back = b""
            while len(back) < len(text):
                back += client.recv(65536)
            sender.join()
            self.assertEqual(back, text)
            tell(server, signal.SIGTERM)
            self.assertEqual(server.wait(timeout=30), 0)
            self.assertEqual(server.stdout.read(), "drained\n")
            self.assertEqual(idle.recv(1), b"")

    def test_says_why_it_can_not_listen(self):
        _, port = start(self, "echo")
        second = run("echo", str(port))
        self.assertEqual(second.returncode, 1)
        self.assertIn("can't listen on 127.0.0.1 port %d: address already in use" % port, second.stderr)


class Greeter(unittest.TestCase):
    SOON_S = 1  # cancel_at, when a connection that does not hear of the stop would be cancelled, is at 3

    def connect(self, port):
        client = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.addCleanup(client.close)
        return client, client.makefile("rb")

    def stop(self, server):
        """Exit status and how long it took. It is slower under a sanitizer, but does not wait for a clock."""
        began = time.monotonic()
        tell(server, signal.SIGTERM)
        return server.wait(timeout=30), time.monotonic() - began

    def test_greets_each_line_also_one_that_comes_in_pieces(self):
        _, port = start(self, "greeter")
        client, answers = self.connect(port)
        client.sendall(b"Ada\nGra")
        self.assertEqual(answers.readline(), b"hello, Ada\n")
        client.sendall(b"ce\n" + b"x" * 100 + b"\n")
        self.assertEqual([answers.readline() for _ in range(3)],
                         [b"hello, Grace\n", b"hello, %s\n" % (b"x" * 64), b"hello, %s\n" % (b"x" * 36)])

    def test_stops_at_once_with_connections_that_are_idle(self):
        server, port = start(self, "greeter")
        client, answers = self.connect(port)
        idle, rest = self.connect(port)
        client.sendall(b"Ada\n")
        self.assertEqual(answers.readline(), b"hello, Ada\n")
        status, took = self.stop(server)
        self.assertEqual(status, 0)
        self.assertLess(took, self.SOON_S)
        self.assertEqual((answers.read(), rest.read()), (b"", b""))
        self.assertRegex(server.stdout.read(), r"^greeted 1, stopped in \d+ ms\n$")

    def log(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return str(Path(directory.name) / "greeter.audit")

    def verified(self, log):
        """What the log says, if it keeps the protocol."""
        subprocess.run([EBB, "audit", "verify", log], check=True, stdout=subprocess.DEVNULL, timeout=60)
        return subprocess.run([EBB, "audit", "show", log], check=True, capture_output=True, text=True,
                              timeout=60).stdout

    def test_waits_for_an_answer_that_is_under_way(self):
        log = self.log()
        server, port = start(self, "greeter", log)
        client, _ = self.connect(port)
        client.setblocking(False)
        # Until nothing fits, since nobody reads the answers. On a busy machine the server may only be late.
        while select.select([], [client], [], 0.5)[1] or not is_asleep(server):
            with contextlib.suppress(BlockingIOError):
                client.send(b"Ada\n" * 1000)
        tell(server, signal.SIGTERM)
        with self.assertRaises(subprocess.TimeoutExpired):
            server.wait(timeout=0.5)
        client.setblocking(True)
        with contextlib.suppress(ConnectionResetError):  # what it had not read is lost
            while client.recv(65536):
                pass
        self.assertEqual(server.wait(timeout=30), 0)
        greeted = re.fullmatch(r"greeted (\d+), stopped in \d+ ms\n", server.stdout.read()).group(1)
        shown = self.verified(log)
        self.assertNotIn("drain_cancelled", shown)
        self.assertIn("handler=farewell  key=greeted  value=%s\n" % greeted, shown)  # so that waits, too

    def test_leaves_a_log_that_verifies_and_says_how_many(self):
        log = self.log()
        server, port = start(self, "greeter", log)
        client, answers = self.connect(port)
        client.sendall(b"Ada\nGrace\n")
        self.assertEqual([answers.readline() for _ in range(2)], [b"hello, Ada\n", b"hello, Grace\n"])
        self.assertEqual(self.stop(server)[0], 0)
        shown = self.verified(log)
        self.assertIn("handler=farewell  key=greeted  value=2\n", shown)
        self.assertIn("finalized CAN-005", shown)
        self.assertNotIn("drain_cancelled", shown)

    def test_stops_at_once_when_nobody_is_there(self):
        server, _ = start(self, "greeter")
        status, took = self.stop(server)
        self.assertEqual(status, 0)
        self.assertLess(took, self.SOON_S)

    def test_says_why_it_can_not_start(self):
        _, port = start(self, "greeter")
        second = run("greeter", str(port))
        self.assertEqual((second.returncode, second.stderr),
                         (1, "greeter: port %d: address already in use\n" % port))
        result = run("greeter", "0", "/nonexistent/log")
        self.assertEqual((result.returncode, result.stderr),
                         (1, "greeter: /nonexistent/log: no such file or directory\n"))


VERSIONS = ("--http1.1", "--http2-prior-knowledge")


def curl(*arguments, **keywords):
    """What it got, and after that the status on a line of its own."""
    return subprocess.run(["curl", "-sS", "-w", "%{http_code}", "--max-time", "60", *arguments], check=True,
                          stdout=subprocess.PIPE, **keywords).stdout


class Web(unittest.TestCase):
    def test_greets_whoever_asks_in_both_versions(self):
        _, port = start(self, "web")
        url = "http://127.0.0.1:%d" % port
        for version in VERSIONS:
            with self.subTest(version):
                self.assertEqual(curl(version, url), b"hello, world\n200")
                self.assertEqual(curl(version, url + "/Ada%20L"), b"hello, Ada L\n200")
                self.assertEqual(curl(version, url + "/a/b"), b"not found\n404")
                self.assertEqual(curl(version, "-d", "x", url), b"method not allowed\n405")

    def test_stops_on_sigterm_and_tells_who_is_connected(self):
        server, port = start(self, "web")
        with h2raw.Conn(port) as two, socket.create_connection(("127.0.0.1", port), timeout=60) as one:
            self.assertEqual(two.get("/Ada").body, b"hello, Ada\n")
            one.sendall(b"GET /Grace HTTP/1.1\r\nhost: here\r\n\r\n")
            answer = one.makefile("rb")
            while answer.readline() != b"hello, Grace\n":
                pass
            tell(server, signal.SIGTERM)
            self.assertEqual(answer.read(), b"")
            two.at_end()
            self.assertEqual(two.goaway[:2], (1, h2raw.NO_ERROR))
        self.assertEqual(server.wait(timeout=60), 0)

    def test_says_why_it_can_not_listen(self):
        _, port = start(self, "web")
        second = run("web", str(port))
        self.assertEqual((second.returncode, second.stderr),
                         (1, "web: port %d: address already in use\n" % port))


class Upload(unittest.TestCase):
    BYTES = random.Random(1).randbytes(3_000_000)
    MOST = 16 << 20  # limits.body_bytes, if nobody sets it

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.server, self.port = start(self, "upload", str(self.directory))
        self.url = "http://127.0.0.1:%d/files/" % self.port

    def files(self):
        return sorted(os.listdir(self.directory))

    def assert_logged(self, pattern):
        """The next line of its access log, which comes when all the work of a request has ended."""
        self.assertRegex(self.server.stdout.readline(), pattern)

    def wait_for_bytes(self, n):
        """Until there is a file with so many. (Nobody tells: it is the server's own.)"""
        end = time.monotonic() + 60
        while not any(path.stat().st_size >= n for path in self.directory.iterdir()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)

    def stop(self):
        tell(self.server, signal.SIGTERM)
        self.assertEqual(self.server.wait(timeout=60), 0)

    def test_keeps_a_file_and_gives_it_back(self):
        for version in VERSIONS:
            with self.subTest(version):
                self.assertEqual(curl(version, "--data-binary", "@-", self.url + "a", input=self.BYTES),
                                 b"kept\n201")
                self.assertEqual((self.directory / "a").read_bytes(), self.BYTES)
                self.assertEqual(curl(version, self.url + "a"), self.BYTES + b"200")
                self.assertIn(b"content-length: %d\r\n" % len(self.BYTES), curl(version, "-I", self.url + "a"))
                self.assertEqual(curl(version, "-d", "", self.url + "nothing"), b"kept\n201")
                self.assertEqual(curl(version, self.url + "nothing"), b"200")
        self.assertEqual(self.files(), ["a", "nothing"])
        self.stop()

    def test_knows_a_name_from_a_path(self):
        for version in VERSIONS:
            for name in ("b", ".b", "..%2Fb", "b" * 256):
                with self.subTest(version + name):
                    self.assertEqual(curl(version, self.url + name), b"no such file\n404")
                    if name != "b":
                        self.assertEqual(curl(version, "-d", "x", self.url + name), b"no name\n400")
        self.assertEqual(self.files(), [])

    def test_leaves_nothing_of_a_body_that_is_too_large(self):
        body = bytes(self.MOST + 1)
        answer = curl("--http1.1", "-T", "-", "-X", "POST", self.url + "large", input=body)
        self.assertEqual(answer, b"the body is too large\n413")
        self.assert_logged(r'"POST /files/large HTTP/1.1" 413 .* EBB_ERR_LIMIT$')
        with h2raw.Conn(self.port, timeout=60) as c:
            s = c.request("/files/large", "POST", end=False)
            c.body(s, body)
            self.assertEqual(c.response(s).status, 413)
            self.assert_logged(r'"POST /files/large HTTP/2.0" 413 .* EBB_ERR_LIMIT$')
        self.assertEqual(self.files(), [])

    def test_leaves_nothing_when_the_client_is_killed_in_the_middle(self):
        for version in VERSIONS:
            with self.subTest(version), subprocess.Popen(
                    ["curl", "-sS", version, "-X", "POST", "-T", "-", self.url + "half"],
                    stdin=subprocess.PIPE) as client:
                client.stdin.write(self.BYTES)  # it sends these, and waits for more
                client.stdin.flush()
                self.wait_for_bytes(len(self.BYTES) // 2)
                client.kill()
                self.assert_logged(r'"POST /files/half HTTP/[12]\.[01]" 0 in=\d+ out=0 us=\d+ lost$')
                self.assertEqual(self.files(), [])
        self.stop()

    def test_a_stream_that_is_reset_leaves_nothing_and_the_others_alone(self):
        with h2raw.Conn(self.port, timeout=60) as c:
            one, two = (c.request("/files/%d" % i, "POST", end=False) for i in (1, 2))
            self.assertTrue(c.body(one, self.BYTES[:100_000], end=False))
            self.assertTrue(c.body(two, self.BYTES[:100_000], end=False))
            c.rst(one)
            self.assert_logged(r'"POST /files/1 HTTP/2.0" 0 .* lost$')
            self.assertTrue(c.body(two, self.BYTES[100_000:]))
            self.assertEqual(c.response(two).status, 201)
            self.assert_logged(r'"POST /files/2 HTTP/2.0" 201 .* ok$')
        self.assertEqual(self.files(), ["2"])
        self.assertEqual((self.directory / "2").read_bytes(), self.BYTES)

    def test_sigterm_lets_what_is_in_flight_finish(self):
        with h2raw.Conn(self.port, timeout=60) as two, \
                socket.create_connection(("127.0.0.1", self.port), timeout=60) as one:
            s = two.request("/files/two", "POST", [("expect", "100-continue")], end=False)
            two.wait(lambda: two.streams[s].informational)
            one.sendall(b"POST /files/one HTTP/1.1\r\nhost: here\r\ncontent-length: %d\r\n"
                        b"expect: 100-continue\r\n\r\n" % len(self.BYTES))
            answer = one.makefile("rb")
            self.assertEqual(answer.readline(), b"HTTP/1.1 100 Continue\r\n")
            tell(self.server, signal.SIGTERM)
            two.wait(lambda: two.goaway)
            with self.assertRaises(ConnectionRefusedError):  # it has heard of it
                socket.create_connection(("127.0.0.1", self.port), timeout=60)
            one.sendall(self.BYTES)
            self.assertTrue(two.body(s, self.BYTES))
            self.assertEqual(two.response(s).status, 201)
            head = answer.read()
            self.assertIn(b"HTTP/1.1 201 Created\r\n", head)
            self.assertIn(b"connection: close\r\n", head)
        self.assertEqual(self.server.wait(timeout=60), 0)
        self.assertEqual(self.files(), ["one", "two"])

    def test_sigterm_gives_up_a_client_that_does_not_go_on(self):
        with h2raw.Conn(self.port, timeout=60) as c:
            s = c.request("/files/never", "POST", end=False)
            self.assertTrue(c.body(s, self.BYTES[:100_000], end=False))
            self.stop()
            self.assert_logged(r'"POST /files/never HTTP/2.0" .* (lost|cancelled)$')
        self.assertEqual(self.files(), [])


class Proxy(unittest.TestCase):
    BODY = random.Random(2).randbytes(1_000_000)

    def setUp(self):
        self.upstream = http_world.Server(HTTP_SERVER)
        self.addCleanup(self.upstream.kill)
        self.server, self.port = start(self, "proxy", "http://127.0.0.1:%d" % self.upstream.port)
        self.url = "http://127.0.0.1:%d" % self.port

    def stop(self):
        tell(self.server, signal.SIGTERM)
        self.assertEqual(self.server.wait(timeout=60), 0)
        self.upstream.stop()

    def test_streams_both_bodies(self):
        for version in VERSIONS:
            with self.subTest(version):
                self.assertEqual(curl(version, "-H", "Expect:", "--data-binary", "@-", self.url + "/f/echo",
                                      input=self.BODY), self.BODY + b"200")
                self.assertEqual(len(curl(version, self.url + "/f/big?n=5000000")), 5_000_000 + len(b"200"))
                self.assertEqual(curl(version, self.url + "/nowhere"), b"not found\n404")
        self.stop()

    def test_a_client_that_is_killed_cancels_the_handler_behind_it(self):
        for version in VERSIONS:
            with self.subTest(version):
                with subprocess.Popen(["curl", "-sS", version, self.url + "/f/hang?id=" + version]) as client:
                    self.upstream.wait_for("begin", version)
                    client.kill()
                self.assertRegex(self.upstream.wait_for("cancelled", version), "^DISCONNECT ")
                self.upstream.wait_for("closed", version)
        self.stop()

    def test_a_stream_that_is_reset_cancels_the_one_behind_it_alone(self):
        with h2raw.Conn(self.port, timeout=60) as c:
            one = c.request("/f/hang?id=one")
            two = c.request("/f/upload?id=two", "POST", end=False)
            self.upstream.wait_for_all("begin", ("one", "two"))
            c.rst(one)
            self.assertRegex(self.upstream.wait_for("cancelled", "one"), "^DISCONNECT ")
            self.assertTrue(c.body(two, b"not cut"))
            self.assertEqual(c.response(two).body, b"7 %d\n" % zlib.adler32(b"not cut"))
        self.stop()


class Pipeline(unittest.TestCase):
    def test_counts_as_wc_does(self):
        path = ROOT / "README.md"
        self.assertTrue(run("pipeline", path).stdout.startswith(
            "%d lines, " % path.read_bytes().count(b"\n")))

    def test_names_a_file_that_is_not_there(self):
        result = run("pipeline", "/nonexistent")
        self.assertEqual((result.returncode, result.stderr),
                         (1, "pipeline: /nonexistent: no such file or directory\n"))


class Tour(unittest.TestCase):
    def test_fits_a_screen_or_two(self):
        lines = run("tour").stdout.splitlines()
        self.assertLess(len(lines), 150)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual([line for line in lines if line != line.rstrip()], [])

    def test_has_colours_on_a_terminal_only(self):
        plain = run("tour").stdout
        self.assertNotIn("\x1b", plain)
        code, text = on_terminal("tour")
        self.assertEqual(code, 0)
        self.assertIn("\x1b[", text)
        self.assertEqual(re.sub(r" +\n", "\n", re.sub(r"\x1b\[\d*m", "", text)), plain)

    def test_honours_no_color(self):
        self.assertEqual(on_terminal("tour", NO_COLOR="1"), (0, run("tour").stdout))
        self.assertIn("\x1b[", on_terminal("tour", NO_COLOR="")[1])

    def test_keeps_traces_that_verify(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(run("tour", directory).returncode, 0)
            traces = sorted(Path(directory).iterdir())
            self.assertEqual([path.name for path in traces],
                             ["leak.trace", "masked.trace", "nested.trace", "race.trace", "verbs.trace"])
            for path in traces:
                subprocess.run([EBB, "trace", "verify", "--strict", "--quiescent", path], check=True,
                               stdout=subprocess.DEVNULL, timeout=60)

    def test_fails_if_a_trace_can_not_be_kept(self):
        self.assertEqual(run("tour", "/nonexistent").returncode, 1)


class Readme(unittest.TestCase):
    def test_shows_examples_as_they_are(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```c\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        self.assertEqual(blocks, [(ROOT / "examples" / "web.c").read_text(encoding="utf-8")])


class Docs(unittest.TestCase):
    def test_list_every_status(self):
        table = (ROOT / "include" / "ebb" / "status.def").read_text(encoding="utf-8")
        page = (ROOT / "docs" / "base.md").read_text(encoding="utf-8")
        rows = ["| `%s` | %s | %s |" % row for row in
                re.findall(r'^EBB_STATUS\((\w+), (-?\d+), "(.*)"\)$', table, re.MULTILINE)]
        self.assertGreater(len(rows), 30)
        self.assertEqual([line for line in page.splitlines() if line.startswith("| `EBB_")], rows)

    def test_show_publish_as_it_is(self):
        page = (ROOT / "docs" / "workflow.md").read_text(encoding="utf-8")
        example = (ROOT / "examples" / "publish.c").read_text(encoding="utf-8")
        self.assertEqual(re.search(r"^```c\n(.*?)^```$", page, re.MULTILINE | re.DOTALL).group(1), example)

    def test_show_parts_of_greeter_as_they_are(self):
        page = (ROOT / "docs" / "workflow.md").read_text(encoding="utf-8")
        example = (ROOT / "examples" / "greeter.c").read_text(encoding="utf-8")
        section = page.split("## A service\n")[1].split("\n## ")[0]
        functions = "".join(re.findall(r"^```c\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)).split("\n\n")
        self.assertGreater(len(functions), 2)
        for function in functions:
            self.assertIn(function.rstrip("\n"), example)

    def test_show_web_and_parts_of_upload_as_they_are(self):
        page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```c\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(blocks[0], (ROOT / "examples" / "web.c").read_text(encoding="utf-8"))
        upload, = (block for block in blocks if "remove_temporary" in block)
        self.assertIn(upload, (ROOT / "examples" / "upload.c").read_text(encoding="utf-8"))

    def test_name_a_test_for_every_limit_of_http(self):
        header = (ROOT / "include" / "ebb" / "http.h").read_text(encoding="utf-8")
        struct = re.search(r"typedef struct ebb_http_limits \{(.*?)\} ebb_http_limits;", header, re.DOTALL).group(1)
        limits = re.findall(r"uint(?:32|64)_t\s+(\w+);", struct)
        self.assertGreater(len(limits), 15)
        page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
        rows = [line for line in page.split("## Limits\n")[1].split("\n## ")[0].splitlines() if line.startswith("| `")]
        for limit in limits:
            self.assertTrue([row for row in rows if "`%s`" % limit in row and re.search("test_|tests/http/", row)], limit)

    def test_name_only_tests_that_there_are(self):
        page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
        source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "http").glob("*.py"))
        there = {"%s.%s" % (name, test) for name, body in
                 re.findall(r"^class (\w+)\b(.*?)(?=^\S|\Z)", source, re.MULTILINE | re.DOTALL)
                 for test in re.findall(r"def (test_\w+)", body)}
        named = set(re.findall(r"`(\w+\.test_\w+)`", page))
        self.assertGreater(len(named), 20)
        self.assertEqual(named - there, set())


if __name__ == "__main__":
    EBB, HTTP_SERVER = sys.argv[1:3]
    PROGRAMS = {Path(path).name: path for path in sys.argv[3:]}
    unittest.main(argv=sys.argv[:1])
