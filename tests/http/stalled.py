#!/usr/bin/env python3
"""Peers that stall: a server has bounds for what they hold, and everybody else is served.

usage: stalled.py SERVER EBB [--full] [CLASS[.TEST]...]

--full: the crowd is 310 connections of 100 streams, not 40.
"""
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("attacks")))
import h2raw  # noqa: E402
from http_world import KINDS, PATIENCE_S, PINGS_ALLOWED, RESETS_ALLOWED, WithServer, is_sanitized  # noqa: E402
from under_attack import ANEW_MOST_US, GoodClient, Peak  # noqa: E402

EBB = ""
MIB = 1 << 20
SHORT_NS, LONG_NS, NEVER_NS = 400000000, 2000000000, 1000000000000
STREAMS = 100
CONNECTIONS = 40
GROWTH_MOST = 72 * MIB  # without a bound it would be more
AGREES = 0.25
BUDGET_S = 5  # of a service that says nothing else; a busy machine may take longer to end it
IDLE_S = 1
IDLE_CPU_MOST = 0.2  # of a processor


def limits(**values):
    return [text for name, value in values.items() for text in ("--limit", "%s=%d" % (name, value))]


def ids(n=STREAMS):
    return range(1, 2 * n, 2)


class Crowd:
    """Connections whose streams all ask for `path`, with windows of 0. It reads and forgets what comes."""

    def __init__(self, port, connections, path, source="127.0.0.1", streams=STREAMS):
        fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "a")]
        head = h2raw.block(fields)
        asks = b"".join(h2raw.frame(h2raw.HEADERS, h2raw.END_HEADERS | h2raw.END_STREAM, i, head)
                        for i in ids(streams))
        self.updates = b"".join(h2raw.frame(h2raw.WINDOW_UPDATE, 0, i, struct.pack(">I", 1)) for i in ids(streams))
        greeting = h2raw.PREFACE + h2raw.frame(h2raw.SETTINGS, 0, 0, h2raw.settings({h2raw.INITIAL_WINDOW_SIZE: 0}))
        self.sockets = []
        for _ in range(connections):
            s = socket.create_connection(("127.0.0.1", port), PATIENCE_S, (source, 0))
            s.setblocking(False)
            self.sockets.append(s)
            self.send(s, greeting + asks)

    @staticmethod
    def send(s, raw):
        try:
            s.send(raw)
        except OSError:
            pass  # it was ended, or is not read from now

    def read(self):
        """How many are still open."""
        still = []
        for s in self.sockets:
            try:
                while s.recv(65536):
                    pass
                s.close()
            except BlockingIOError:
                still.append(s)
            except OSError:
                s.close()
        self.sockets = still
        return len(still)

    def drip(self, seconds, every=0.5):
        """One byte of each stream's window at a time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.read():
            for s in self.sockets:
                self.send(s, self.updates)
            time.sleep(every)

    def leave(self):
        for s in self.sockets:
            s.close()
        self.sockets = []


class BareAccept:
    """What a connection and its first byte cost while the block runs, of a program that does nothing else: the machine's
    own part in how long a new client waits."""
    PROGRAM = """import socket
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        with listener.accept()[0] as s:
            s.sendall(b"x")
"""

    def __init__(self):
        self.worst_us, self.over = 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.05):
            began = time.perf_counter()
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as s:
                s.recv(1)
            self.worst_us = max(self.worst_us, 1e6 * (time.perf_counter() - began))

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", self.PROGRAM], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.process.kill()
        self.process.stdout.close()
        self.process.wait()


class Rates(WithServer):
    """A byte now and then is not progress."""

    def assert_late(self, name):
        rest = self.server.wait_for("cancelled", name)
        self.assertRegex(rest, "^TIMEOUT")
        self.server.wait_for("closed", name)

    def drip_until(self, ends, step):
        """A byte each 20 ms, 50 a second: a tenth of what is asked for."""
        end = time.monotonic() + PATIENCE_S
        while not ends():
            self.assertLess(time.monotonic(), end, "it is not ended")
            step()
            time.sleep(0.02)

    def test_a_slow_post_is_ended(self):
        self.start(*limits(body_ns=SHORT_NS))
        c = self.connect()
        for kind in KINDS:
            stream = c.request("/%s/upload?id=%s" % (kind, kind), "POST", end=False)
            self.drip_until(lambda s=c.streams[stream]: s.over, lambda i=stream: c.data(i, b"x") and c.poll())
            self.assertEqual(c.streams[stream].status, 408)
            self.assert_late(kind)
        self.assertEqual(c.get("/f/hello").status, 200)
        c.close()
        self.server.still()
        self.server.stop()

    def test_a_slow_post_of_http_1_is_ended(self):
        self.start(*limits(body_ns=SHORT_NS))
        with socket.create_connection(("127.0.0.1", self.server.port), PATIENCE_S) as s:
            s.sendall(b"POST /f/upload?id=1 HTTP/1.1\r\nhost: a\r\ncontent-length: 10000\r\n\r\n")
            s.setblocking(False)
            came = []

            def step():
                s.send(b"x")
                try:
                    came.append(s.recv(4096))
                except BlockingIOError:
                    pass

            self.drip_until(lambda: came, step)
            self.assertRegex(came[0], rb"^HTTP/1.1 408 ")
        self.assert_late("1")
        self.server.stop()

    def test_a_download_by_bytes_is_ended(self):
        self.start(*limits(write_ns=SHORT_NS))
        for kind in KINDS:
            c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0}, auto_window=False)
            stream = c.request("/%s/big?id=%s" % (kind, kind))
            s = c.streams[stream]
            self.drip_until(lambda: s.over or c.goaway, lambda i=stream: c.window_update(i, 1) and c.poll())
            self.assertEqual(c.goaway[1] if c.goaway else s.reset, h2raw.ENHANCE_YOUR_CALM)
            self.assert_late(kind)
            c.close()
        self.server.still()
        self.server.stop()

    def test_who_keeps_the_rate_has_time(self):
        """For longer than it may wait, at a byte a second and more."""
        self.start(*limits(body_ns=LONG_NS, write_ns=LONG_NS, body_rate=1, write_rate=1))
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0}, auto_window=False)
        up, down = c.request("/f/upload", "POST", end=False), c.request("/f/big?n=100")
        end = time.monotonic() + 2 * LONG_NS / 1e9
        while time.monotonic() < end:
            c.data(up, b"xx")
            c.window_update(down, 2)
            c.poll(0.5)
        c.data(up, end=True)
        c.window_update(up, 1000)
        c.window_update(down, 1000)
        self.assertEqual(c.response(up).status, 200)
        self.assertEqual(len(c.response(down).body), 100)
        c.close()
        self.server.stop()

    def test_handlers_that_wait_for_themselves_are_not_stalled(self):
        """However many; and events that are far apart and are taken."""
        self.start(*limits(stalled=4, write_ns=SHORT_NS, body_ns=SHORT_NS))
        c = self.connect()
        events = c.request("/f/events?n=3&ms=700")
        for i in range(30):
            c.request("/%s/hang?id=%d" % (KINDS[i % 3], i))
        self.server.wait_for_count("begin", 31)  # all of them at once
        self.assertEqual(c.response(events).status, 200)
        c.close()
        self.assertEqual(self.server.still()["evicted"], 0)
        self.server.stop()


class Places(WithServer):
    """What one address may hold."""
    MOST = 20

    def start_stalled(self, path, **more):
        """A connection that has all the places of its address."""
        self.start(*RESETS_ALLOWED, *limits(stalled=self.MOST, write_ns=NEVER_NS, body_ns=NEVER_NS, **more))
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0}, auto_window=False)
        method = "POST" if "upload" in path else "GET"
        streams = [c.request(path + "?id=s%d" % i, method, end=method == "GET") for i in range(self.MOST)]
        self.server.wait_for_count("begin", self.MOST)
        return c, streams

    def test_a_new_request_takes_the_place_of_the_longest_stalled(self):
        for path in ("/f/big", "/p/big", "/f/upload"):
            with self.subTest(path):
                stalls, streams = self.start_stalled(path)
                c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0}, auto_window=False)
                for name in ("first", "second"):  # the first may start in any case
                    c.request("/f/big?id=" + name)
                    self.server.wait_for("begin", name)
                first = stalls.response(streams[0])  # all of it, into a closed window
                self.assertTrue(first.reset == h2raw.ENHANCE_YOUR_CALM or first.status == 408, vars(first))
                self.assertTrue(self.server.wait_for("cancelled", "s0").startswith("TIMEOUT it stalled"))
                self.server.wait_for("closed", "s0")
                self.assertIn(self.server.stats()["evicted"], (1, 2))  # "first" has made one too many
                self.assertEqual(self.server.history("s%d" % (self.MOST - 1)), ["begin"])
                c.close()
                stalls.close()
                self.server.still()
                self.server.stop()

    def test_one_that_has_stalled_is_found_behind_many_that_may_pause(self):
        """Those that have taken much have 5 s; there are more of them than are looked at at once."""
        many = 70
        self.start(*RESETS_ALLOWED, *limits(stalled=many + 1, write_ns=NEVER_NS))
        patient = self.connect({h2raw.INITIAL_WINDOW_SIZE: 5000}, auto_window=False)
        patient.window_update(0, 1 << 20)
        for i in range(many):
            patient.request("/f/big?id=s%d" % i)
        self.server.wait_for_count("begin", many)
        end = time.monotonic() + PATIENCE_S
        while sum(len(s.body) for s in patient.streams.values()) < many * 5000 and time.monotonic() < end:
            patient.poll(0.1)
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0}, auto_window=False)
        for name in ("stalls", "waits"):
            c.request("/f/big?id=" + name)
        self.server.wait_for("begin", "waits")
        self.assertTrue(self.server.wait_for("cancelled", "stalls").startswith("TIMEOUT it stalled"))
        self.assertEqual({tuple(self.server.history("s%d" % i)) for i in range(many)}, {("begin",)})
        c.close()
        patient.close()
        self.server.still()
        self.server.stop()

    def test_who_has_none_is_served_at_once(self):
        """From the same address, one request after the other, nobody is ended for it."""
        stalls, _ = self.start_stalled("/f/big")
        with self.connect() as c:
            self.assertEqual({c.get("/%s/hello" % kind).status for kind in KINDS}, {200})
        self.assertEqual(self.server.stats()["evicted"], 0)
        stalls.close()
        self.server.still()
        self.server.stop()

    def test_another_address_has_its_own(self):
        stalls, _ = self.start_stalled("/f/big")
        crowd = Crowd(self.server.port, 1, "/f/hang?id=other", "127.0.0.2", self.MOST)
        self.server.wait_for_count("begin", 2 * self.MOST)
        self.assertEqual(self.server.stats()["evicted"], 0)
        crowd.leave()
        stalls.close()
        self.server.still()
        self.server.stop()

    def test_those_that_wait_for_a_place_are_bounded(self):
        self.start("--quiet", *RESETS_ALLOWED, *PINGS_ALLOWED, *limits(stalled=4, streams=30, write_ns=NEVER_NS))
        crowd = Crowd(self.server.port, 10, "/f/big", streams=30)
        end = time.monotonic() + PATIENCE_S
        while (stats := self.server.stats())["refused"] == 0 and time.monotonic() < end:
            time.sleep(0.05)
        held, queued = 4 + 10, 8 * 4 + 10  # each connection may have one of both
        self.assertGreaterEqual(stats["refused"], 10 * 30 - held - queued - stats["evicted"])
        crowd.leave()
        self.server.still()
        self.server.stop()

    def test_http_1_is_bounded_too(self):
        """Each of its connections may start one: past the places the stalled ones go."""
        self.start(*limits(stalled=self.MOST, write_ns=NEVER_NS))
        sockets = []
        for i in range(3 * self.MOST):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.server.port))
            s.sendall(b"GET /f/big?n=100000000&id=%d HTTP/1.1\r\nhost: a\r\n\r\n" % i)
            sockets.append(s)
        self.server.wait_for_count("begin", len(sockets))
        end = time.monotonic() + PATIENCE_S
        while self.server.stats()["evicted"] < self.MOST and time.monotonic() < end:
            with socket.create_connection(("127.0.0.1", self.server.port), PATIENCE_S) as s:
                s.sendall(b"GET /f/big?n=10000000 HTTP/1.1\r\nhost: a\r\n\r\n")
                time.sleep(0.05)
        self.assertGreaterEqual(self.server.stats()["evicted"], self.MOST)
        for s in sockets:
            s.close()
        self.server.still()
        self.server.stop()


class Crowds(WithServer):
    """All at once, beside a good client."""

    def good(self, path):
        client = GoodClient(self.server.port, path)
        self.addCleanup(client.close)
        return client

    def assert_served(self, told, bare):
        """Every new client within a second, and what a bare accept took on this machine at that time."""
        print(told, "a bare accept took up to %d us" % bare.worst_us, flush=True)
        self.assertEqual(told["failures"], [])
        self.assertGreater(told["requests"], 50)
        if not is_sanitized(self.program):
            self.assertLess(told["anew"].get("max", 0), ANEW_MOST_US + 2 * bare.worst_us)

    def assert_idle(self):
        """A while with nothing to do; the processor that it used, not the time."""
        before = self.server.cpu_seconds()
        time.sleep(IDLE_S)
        self.assertLess(self.server.cpu_seconds() - before, IDLE_CPU_MOST * IDLE_S)

    def stop_in_time(self):
        begun = time.monotonic()
        self.server.stop()
        self.assertLess(time.monotonic() - begun, 4 * BUDGET_S)

    def test_of_stalled_streams_holds_nobody_up(self):
        self.start("--quiet")
        client = self.good("/f/hello")
        client.since_last()
        with Peak(self.server.rss) as peak, BareAccept() as bare:
            crowd = Crowd(self.server.port, CONNECTIONS, "/f/big")
            crowd.drip(4)
        print("%d streams: %+.1f MiB" % (CONNECTIONS * STREAMS, peak.growth() / MIB), flush=True)
        self.assert_served(client.since_last(), bare)
        if not is_sanitized(self.program):
            self.assertLess(peak.growth(), GROWTH_MOST)
        crowd.leave()
        client.close()
        self.server.still()
        self.assert_idle()
        self.stop_in_time()

    def test_of_slow_streams_are_ended_by_their_rate(self):
        """The places are enough for all: nobody is evicted."""
        self.start("--quiet", *RESETS_ALLOWED, *limits(stalled=100000, write_ns=LONG_NS))
        client = self.good("/f/hello")
        client.since_last()
        with BareAccept() as bare:
            crowd = Crowd(self.server.port, CONNECTIONS // 4, "/f/big")
            crowd.drip(PATIENCE_S, 0.2)
        self.assertEqual(crowd.read(), 0)
        self.assert_served(client.since_last(), bare)
        client.close()
        stats = self.server.still()
        self.assertEqual(stats["evicted"], 0)
        self.assertGreaterEqual(stats["timed_out"], STREAMS)
        self.server.stop()

    def test_of_honest_clients_is_served_whole(self):
        """More at once than there are places: nobody is refused, and nobody is ended."""
        self.start("--quiet", *limits(stalled=200, write_ns=NEVER_NS))
        clients = [self.connect() for _ in range(10)]
        for path in ("/f/hello", "/p/hello", "/f/slow?ms=50"):
            streams = [(c, c.request(path)) for c in clients for _ in range(STREAMS)]
            self.assertEqual({c.response(stream).status for c, stream in streams}, {200}, path)
        for c in clients:
            c.close()
        stats = self.server.still()
        self.assertEqual((stats["refused"], stats["evicted"], stats["rate_limited"], stats["timed_out"]), (0, 0, 0, 0))
        self.server.stop()

    def test_while_they_last_do_not_keep_it_from_stopping(self):
        self.start("--quiet", *limits(write_ns=NEVER_NS))
        crowd = Crowd(self.server.port, CONNECTIONS, "/f/big")
        while self.server.stats()["handlers_begun"] < STREAMS:
            time.sleep(0.01)
        self.stop_in_time()
        crowd.leave()


class Memory(WithServer):
    """What the server says of its memory is what the system says."""
    CROWD = 30

    def measure(self, path):
        self.start("--quiet", *RESETS_ALLOWED, *limits(stalled=100000, write_ns=NEVER_NS, body_ns=NEVER_NS))
        Crowd(self.server.port, 1, path, streams=10).leave()  # what comes with the first
        before, said = self.server.rss(), self.server.still()["memory"]
        crowd = Crowd(self.server.port, self.CROWD, path)
        n = self.CROWD * STREAMS
        while self.server.stats()["handlers_begun"] < n + 10:
            time.sleep(0.01)
        grown, more = self.server.rss() - before, self.server.stats()["memory"] - said
        print("%s: a stalled stream takes %d bytes, and the server says %d" % (path, grown // n, more // n), flush=True)
        crowd.leave()
        return grown, more

    def test_of_stalled_streams_is_counted(self):
        for path in ("/f/big", "/p/big", "/u/big", "/f/hang", "/f/hello"):
            with self.subTest(path):
                grown, more = self.measure(path)
                if not is_sanitized(self.program):
                    self.assertLess(abs(more - grown), AGREES * grown)
                self.server.still()
                self.server.stop()

    def test_is_given_back(self):
        grown, more = self.measure("/f/big")
        idle = self.server.rss() - grown
        end = time.monotonic() + PATIENCE_S
        while (kept := self.server.still()["memory"]) > more / 20 and time.monotonic() < end:
            time.sleep(0.2)
        self.assertLess(kept, more / 20)
        if not is_sanitized(self.program):
            self.assertLess(self.server.rss() - idle, grown / 4)
        self.server.stop()

    def test_that_is_short_is_taken_from_who_stalls(self):
        """Of whatever address: no one of them is past its places."""
        self.start("--quiet", *RESETS_ALLOWED, *PINGS_ALLOWED,
                   *limits(stalled=100000, write_ns=NEVER_NS, memory_bytes=8 * MIB))
        crowds = [Crowd(self.server.port, 5, "/f/big", "127.0.0.%d" % i) for i in (1, 2, 3)]
        end, served = time.monotonic() + PATIENCE_S, 0
        while not (self.server.stats() or {"evicted": 0})["evicted"]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        while served < 20 and time.monotonic() < end:
            with self.connect() as c:
                served = served + 1 if c.get("/f/hello").status == 200 else 0
        self.assertEqual(served, 20)
        for crowd in crowds:
            crowd.leave()
        self.server.still()
        self.server.stop()


class Descriptors(WithServer):
    MOST = 1024

    def serve(self, root):
        process = subprocess.Popen([EBB, "files", root, "--port", "0"], stdout=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (self.MOST,) * 2))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        port = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", process.stdout.readline())
        return process, int(port.group(1))

    def cpu_seconds(self, pid):
        fields = Path("/proc/%d/stat" % pid).read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def new_client(self, port):
        """Status, and after how many seconds."""
        begun = time.monotonic()
        with h2raw.Conn(port, timeout=PATIENCE_S) as c:
            status = c.get("/small.txt").status
        return status, time.monotonic() - begun

    def while_held(self, pid, port, crowd):
        """How long the slowest of some new clients took, and how many descriptors the server had."""
        seen = []
        for _ in range(20):
            crowd.read()
            seen.append(self.new_client(port))
            time.sleep(0.1)
        held = len(os.listdir("/proc/%d/fd" % pid))
        self.assertLessEqual({status for status, _ in seen}, {200, 503})
        slowest = max(seconds for _, seconds in seen)
        print("descriptors: %d of %d; the slowest of 20 new clients took %.2f s" % (held, self.MOST, slowest), flush=True)
        return slowest, held

    def test_of_files_that_nobody_takes(self):
        with tempfile.TemporaryDirectory() as root:
            Path(root, "big.bin").write_bytes(bytes(10 * MIB))
            Path(root, "small.txt").write_bytes(b"small\n")
            process, port = self.serve(root)
            with BareAccept() as bare:
                crowd = Crowd(port, 60, "/big.bin")
                slowest, held = self.while_held(process.pid, port, crowd)
                crowd.leave()
            if not is_sanitized(EBB):
                self.assertLess(1e6 * slowest, ANEW_MOST_US + 2 * bare.worst_us)
            self.assertLess(held, self.MOST // 2)
            self.assertEqual(self.new_client(port)[0], 200)
            time.sleep(0.5)
            before = self.cpu_seconds(process.pid)
            time.sleep(IDLE_S)
            self.assertLess(self.cpu_seconds(process.pid) - before, IDLE_CPU_MOST * IDLE_S)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(4 * BUDGET_S), 0)

    def test_while_they_are_held_do_not_keep_it_from_stopping(self):
        with tempfile.TemporaryDirectory() as root:
            Path(root, "big.bin").write_bytes(bytes(10 * MIB))
            Path(root, "small.txt").write_bytes(b"small\n")
            process, port = self.serve(root)
            crowd = Crowd(port, 60, "/big.bin")
            self.assertIn(self.new_client(port)[0], (200, 503))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(4 * BUDGET_S), 0)
            crowd.leave()

    def first_free(self, pid, root):
        """The lowest descriptor that is not taken, once no file of the directory is open."""
        while True:
            taken = {}
            for fd in Path("/proc/%d/fd" % pid).iterdir():
                try:
                    taken[int(fd.name)] = os.readlink(fd)
                except FileNotFoundError:
                    pass  # it was closed just now
            if not any(name.startswith(os.path.realpath(root)) for name in taken.values()):
                return next(i for i in range(self.MOST) if i not in taken)
            time.sleep(0.01)

    def test_that_have_run_out_are_503(self):
        """None is left for the file: the client may try again."""
        with tempfile.TemporaryDirectory() as root:
            Path(root, "small.txt").write_bytes(b"small\n")
            process, port = self.serve(root)
            with h2raw.Conn(port, timeout=PATIENCE_S) as c:
                self.assertEqual(c.get("/small.txt").status, 200)
                free = self.first_free(process.pid, root)
                resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (free, self.MOST))
                got = c.get("/small.txt")
                self.assertEqual((got.status, got.headers.get("retry-after")), (503, "1"))
                resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (self.MOST, self.MOST))
                self.assertEqual(c.get("/small.txt").status, 200)

    def test_bound_the_connections(self):
        for most, asked, expected in ((1024, 0, 448), (1024, 100, 100), (1024, 100000, 792), (100, 0, 42)):
            with self.subTest(descriptors=most, asked=asked):
                # The limit is inherited: the test itself needs few.
                before = resource.getrlimit(resource.RLIMIT_NOFILE)
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
                try:
                    self.start(*limits(connections=asked))
                finally:
                    resource.setrlimit(resource.RLIMIT_NOFILE, before)
                self.assertEqual(self.server.stats()["limit_connections"], expected)
                self.server.stop()


def main():
    global EBB, CONNECTIONS, GROWTH_MOST
    WithServer.program, EBB = sys.argv[1:3]
    names = [name for name in sys.argv[3:] if name != "--full"]
    if "--full" in sys.argv:
        CONNECTIONS, GROWTH_MOST = 310, 128 * MIB
    unittest.main(argv=[sys.argv[0], *names], verbosity=2)


if __name__ == "__main__":
    main()
