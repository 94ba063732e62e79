#!/usr/bin/env python3
"""Large bodies: that they arrive whole, at the speed of whoever takes them, and in few system calls.

usage: bodies.py HTTP_TEST_SERVER [CLASS[.TEST]... | -CLASS...]
"""
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

import h2raw
import http_world
from http_world import KINDS, LETTERS, is_sanitized, letters
from signals import is_asleep

MB = 1_000_000
LARGE = 100 * MB
WINDOW = 65535
PIECE = 65536
# What a body may cost at most: each system call moves 16 KB of it on average.
CALL_BYTES = 16384
CRAWL = 40  # times as long as a bare copy: 15 MB/s is more
VERSIONS = {"h1": ("--http1.1",), "h2c": ("--http2-prior-knowledge",), "tls": ("--http2", "-k")}


def adler_of_letters(n):
    block, total = LETTERS * 40000, 1
    for at in range(0, n, len(block)):
        total = zlib.adler32(block[:min(len(block), n - at)], total)
    return total


def segments_sent(s):
    """Segments with data that a TCP socket has sent so far: tcpi_data_segs_out."""
    return struct.unpack_from("I", s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160), 156)[0]


class Relay:
    """Passes the bytes of one connection on, as they come, and counts the segments that the server is sent."""

    def __init__(self, port):
        self.segments, self.server_port = 0, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        self.threads = [threading.Thread(target=self.serve)]
        self.threads[0].start()
        return self

    def __exit__(self, *_):
        for thread in self.threads:
            thread.join()
        self.listener.close()

    def serve(self):
        with self.listener.accept()[0] as client, socket.create_connection(("127.0.0.1", self.server_port)) as server:
            back = threading.Thread(target=self.copy, args=(server, client))
            back.start()
            self.copy(client, server)
            back.join()
            self.segments = segments_sent(server)

    @staticmethod
    def copy(source, to):
        while piece := source.recv(PIECE):
            to.sendall(piece)
        to.shutdown(socket.SHUT_WR)


class WithBodies(http_world.WithClients):
    def start_for(self, version, *arguments):
        """A server of that version."""
        if version == "tls":
            directory = tempfile.TemporaryDirectory()
            self.addCleanup(directory.cleanup)
            arguments += ("--tls", *http_world.certificate(directory.name))
        self.start("--limit", "body_bytes=%d" % (2 * LARGE), "--quiet", *arguments)
        self.scheme = "https" if version == "tls" else "http"

    def url(self, path):
        return "%s://127.0.0.1:%d%s" % (self.scheme, self.server.port, path)

    def download(self, version, path):
        """Its length and checksum."""
        n, total = 0, 1
        command = ["curl", "-sS", *VERSIONS[version], self.url(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as curl:
            while piece := curl.stdout.read(MB):
                n, total = n + len(piece), zlib.adler32(piece, total)
        self.assertEqual(curl.returncode, 0, path)
        return n, total

    def calls(self):
        """System calls that have read and written so far."""
        found = dict(line.split(": ") for line in Path("/proc/%d/io" % self.server.pid).read_text().splitlines())
        return int(found["syscr"]) + int(found["syscw"])


class Whole(WithBodies):
    @staticmethod
    def bare_copy():
        """Seconds for as many bytes from one thread to another, by a socket."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def send():
                with socket.create_connection(listener.getsockname()) as to:
                    for _ in range(LARGE // 10_000):
                        to.sendall(b"x" * 10_000)

            sender = threading.Thread(target=send)
            start = time.monotonic()
            sender.start()
            with listener.accept()[0] as s:
                while s.recv(MB):
                    pass
            sender.join()
            return time.monotonic() - start

    def test_100_MB_to_a_client_in_few_system_calls_and_no_crawl(self):
        expected = (LARGE, adler_of_letters(LARGE))
        for version in VERSIONS:
            self.start_for(version)
            self.download(version, "/f/hello")
            before, start = self.calls(), time.monotonic()
            self.assertEqual(self.download(version, "/f/big?n=%d" % LARGE), expected, version)
            took = time.monotonic() - start
            self.assertLess(self.calls() - before, LARGE // CALL_BYTES, version)
            if not is_sanitized(self.program):
                self.assertLess(took, CRAWL * self.bare_copy(), version)
            self.server.stop()

    def test_100_MB_from_a_client_in_few_system_calls(self):
        """A busy machine sends in smaller segments, and the server can't read what has not come: each segment may cost
        one call."""
        with tempfile.NamedTemporaryFile() as body:
            block = LETTERS * 40000
            for _ in range(LARGE // len(block) + 1):
                body.write(block)
            body.truncate(LARGE)
            body.flush()
            expected = b"%d %d\n" % (LARGE, adler_of_letters(LARGE))
            for version in VERSIONS:
                self.start_for(version)
                before = self.calls()
                with Relay(self.server.port) as relay:
                    url = "%s://127.0.0.1:%d/f/upload" % (self.scheme, relay.port)
                    said = subprocess.run(["curl", "-sS", *VERSIONS[version], "-T", body.name, url],
                                          capture_output=True, check=True).stdout
                self.assertEqual(said, expected, version)
                calls = self.calls() - before
                self.assertLess(calls, relay.segments + LARGE // CALL_BYTES, version)
                self.server.stop()

    def test_every_kind_of_handler(self):
        expected = (10 * MB, adler_of_letters(10 * MB))
        for version in VERSIONS:
            self.start_for(version)
            for kind in KINDS:
                before = self.calls()
                self.assertEqual(self.download(version, "/%s/big?n=%d" % (kind, 10 * MB)), expected, (version, kind))
                self.assertLess(self.calls() - before, 10 * MB // CALL_BYTES, (version, kind))
            self.server.stop()

    def test_pieces_of_odd_sizes(self):
        """Below, at and above what a frame, a record and the stage of a connection hold."""
        for version in VERSIONS:
            self.start_for(version)
            for piece in (1, 7, 1023, 4095, 8191, 9999):
                n = min(piece * 3000, 3 * MB) + 1
                path = "/f/big?n=%d&piece=%d" % (n, piece)
                self.assertEqual(self.download(version, path), (n, adler_of_letters(n)), (version, piece))
            self.server.stop()

    def test_the_end_of_a_body_of_known_length_comes_with_its_last_bytes(self):
        """Also of streams whose connection has others at work, and of bodies that take several turns."""
        self.start_for("h2c")
        for n in (1, 10_000, 100_000):
            with self.connect() as c:
                empty, on_data = [], c.on_data

                def note(got):
                    if not got.payload:
                        empty.append(got.stream)
                    on_data(got)

                c.on_data = note
                for kind in KINDS:
                    streams = [c.request("/%s/big?n=%d&sized=1" % (kind, n)) for _ in range(16 if n < 16384 else 1)]
                    for s in streams:
                        self.assertEqual(c.response(s).body, letters(n), kind)
                    self.assertEqual(empty, [], (kind, n))
        self.server.stop()

    def test_uploads_that_are_read_straight_to_the_handler(self):
        self.start_for("h1")
        expected = b"%d %d\n" % (3 * MB, adler_of_letters(3 * MB))
        with tempfile.NamedTemporaryFile() as body:
            body.write(letters(3 * MB))
            body.flush()
            for kind in KINDS:
                for extra in ((), ("-H", "transfer-encoding: chunked")):
                    said = subprocess.run(["curl", "-sS", *extra, "-T", body.name, self.url("/%s/upload" % kind)],
                                          capture_output=True, check=True).stdout
                    self.assertEqual(said, expected, (kind, extra))
        self.server.stop()

    def test_with_the_smallest_write_queue(self):
        for version in VERSIONS:
            self.start_for(version, "--limit", "write_bytes=1")
            self.assertEqual(self.download(version, "/f/big?n=%d" % (3 * MB)), (3 * MB, adler_of_letters(3 * MB)))
            self.server.stop()

    def test_sixteen_streams_at_once(self):
        self.start_for("h2c")
        with self.connect() as c:
            streams = [c.request("/%s/big?n=%d&piece=%d" % (KINDS[i % 3], MB + i, 997 * (i + 1)))
                       for i in range(16)]
            for i, s in enumerate(streams):
                self.assertEqual(c.response(s).body, letters(MB + i), i)
        self.server.stop()

    def test_sixteen_streams_with_open_windows(self):
        """The tail of each flush is sent with the next bytes."""
        self.start_for("h2c")
        with self.connect({h2raw.INITIAL_WINDOW_SIZE: 0x7fffffff}) as c:
            c.window_update(0, 0x7fffffff - 65535)
            streams = [c.request("/%s/big?n=%d" % (KINDS[i % 3], MB + i)) for i in range(16)]
            for i, s in enumerate(streams):
                self.assertEqual(c.response(s).body, letters(MB + i), i)
        self.server.stop()


class Slow(WithBodies):
    def test_a_slow_reader_holds_the_writer_back_in_little_memory(self):
        self.start_for("h2c")
        before = self.server.still()["memory"]
        with self.connect(auto_window=False) as c:
            streams = [c.request("/f/big?n=%d" % MB) for _ in range(16)]
            c.wait(lambda: sum(len(c.streams[s].body) for s in streams) == WINDOW)
            held = self.server.stats()["memory"] - before
            self.assertLess(held, 16 * 16384 + 3 * PIECE)  # heads, and one stage: not 16
            for s in streams:
                c.window_update(s, 2 * MB)
            for _ in range(16):
                c.window_update(0, MB)
            for s in streams:
                self.assertEqual(c.response(s).body, letters(MB))
        self.server.stop()

    def test_a_reader_that_stops_in_the_middle_and_goes_on(self):
        self.start_for("h1")
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.sendall(b"GET /f/big?n=%d HTTP/1.0\r\n\r\n" % (20 * MB))
            raw = s.recv(PIECE)
            while not is_asleep(self.server.process):
                time.sleep(0.01)
            while piece := s.recv(PIECE):
                raw += piece
        self.assertEqual(raw.partition(b"\r\n\r\n")[2], letters(20 * MB))
        self.server.stop()

    def test_a_window_that_shrinks_in_the_middle(self):
        """SETTINGS make it negative: nothing is sent before it is positive again, and nothing is lost."""
        self.start_for("h2c")
        with self.connect(auto_window=False) as c:
            s = c.request("/f/big?n=%d" % MB)
            c.wait(lambda: len(c.streams[s].body) == WINDOW)
            c.window_update(0, 2 * MB)
            c.send_settings({h2raw.INITIAL_WINDOW_SIZE: 1000})
            c.window_update(s, WINDOW - 1000)  # now it is 0
            c.settle()
            self.assertEqual(len(c.streams[s].body), WINDOW)
            c.window_update(s, 10)
            c.wait(lambda: len(c.streams[s].body) == WINDOW + 10)
            c.window_update(s, MB)
            self.assertEqual(c.response(s).body, letters(MB))
        self.server.stop()


class Cancelled(WithBodies):
    def test_a_download_that_is_reset_in_the_middle_leaves_nothing(self):
        self.start_for("h2c", *http_world.RESETS_ALLOWED)
        with self.connect(auto_window=False) as c:
            for kind in KINDS:
                s = c.request("/%s/big?n=%d" % (kind, LARGE))
                c.wait(lambda: len(c.streams[s].body) > 0)
                c.rst(s)
                c.window_update(0, WINDOW)
            c.settle()
        first = self.server.still()["memory"]
        with self.connect(auto_window=False) as c:
            for i in range(100):
                s = c.request("/%s/big?n=%d&piece=%d" % (KINDS[i % 3], LARGE, 100 * i + 1))
                c.wait(lambda: len(c.streams[s].body) > 0)
                c.rst(s)
                c.window_update(0, WINDOW)
            self.assertEqual(c.get("/f/hello").body, b"hello\n")
        self.assertLess(self.server.still()["memory"] - first, 3 * PIECE)
        self.server.stop()

    def test_a_client_that_leaves_in_the_middle_leaves_nothing(self):
        self.start_for("h1")
        self.server.still()
        for path in ("/f/big?n=%d" % LARGE, "/p/big?n=%d" % LARGE):
            with socket.create_connection(("127.0.0.1", self.server.port)) as s:
                s.sendall(b"GET %s HTTP/1.1\r\nhost: x\r\n\r\n" % path.encode())
                s.recv(PIECE)
            self.server.still()
        self.server.stop()

    def test_what_was_written_before_a_failure_arrives_before_the_reset(self):
        self.start("--quiet")
        with self.connect() as c:
            got = c.response(c.request("/f/cut"))
            self.assertEqual((got.status, got.reset), (200, h2raw.INTERNAL_ERROR))
            self.assertNotEqual(got.body, b"")
        self.server.stop()


if __name__ == "__main__":
    http_world.run_tests(sys.argv[1], sys.argv[2:])
