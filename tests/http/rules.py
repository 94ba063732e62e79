#!/usr/bin/env python3
"""Rules of HTTP/2 that nghttp2 leaves to its user, and what follows for a peer that breaks one.

usage: rules.py SERVER [CLASS[.TEST]...]
"""
import select
import socket
import ssl
import sys
import tempfile
import time

import h2raw
from http_world import WithServer, certificate, is_sanitized, run_tests

HELLO = h2raw.PREFACE + h2raw.frame(h2raw.SETTINGS, 0, 0)
LEAVES = h2raw.frame(h2raw.GOAWAY, 0, 0, bytes(8))


class ClosedStreams(WithServer):
    """RFC 9113, sections 5.1 and 5.1.1. nghttp2 forgets streams that are closed; the server does not."""

    def setUp(self):
        self.start()

    def answered(self, c):
        self.assertEqual(c.get("/p/hello").status, 200)
        return c.next_id - 2

    def assert_goaway(self, c, code):
        c.at_end()
        self.assertIsNotNone(c.goaway)
        self.assertEqual(c.goaway[1], code)
        self.server.still()
        self.server.stop()

    def test_data_is_an_error(self):
        with self.server.connect() as c:
            c.data(self.answered(c), b"x")
            self.assert_goaway(c, h2raw.STREAM_CLOSED)

    def test_headers_are_an_error(self):
        with self.server.connect() as c:
            c.send_headers(self.answered(c), h2raw.block(c.fields("/p/hello")), end=True)
            self.assert_goaway(c, h2raw.STREAM_CLOSED)

    def test_data_of_a_stream_that_the_client_has_ended_is_an_error(self):
        with self.server.connect() as c:
            c.data(c.request("/p/hello"), b"x", end=True)
            self.assert_goaway(c, h2raw.STREAM_CLOSED)

    def test_data_after_a_reset_is_an_error(self):
        with self.server.connect() as c:
            stream = c.request("/p/hello", "POST", end=False)
            c.rst(stream)
            c.data(stream, b"x", end=True)
            self.assert_goaway(c, h2raw.STREAM_CLOSED)

    def test_headers_after_a_reset_are_an_error(self):
        with self.server.connect() as c:
            stream = c.request("/p/hello", "POST", end=False)
            c.rst(stream)
            c.send_headers(stream, h2raw.block(c.fields("/p/hello")), end=True)
            self.assert_goaway(c, h2raw.STREAM_CLOSED)

    def test_ids_only_rise(self):
        with self.server.connect() as c:
            c.next_id = 5
            self.answered(c)
            c.next_id = 3
            c.request("/p/hello")
            self.assert_goaway(c, h2raw.PROTOCOL_ERROR)

    def test_ids_only_rise_though_a_priority_has_named_one(self):
        with self.server.connect() as c:
            c.send_frame(h2raw.PRIORITY, 0, 3, bytes(4) + b"\x10")
            c.next_id = 5
            self.answered(c)
            c.next_id = 3
            c.request("/p/hello")
            self.assert_goaway(c, h2raw.PROTOCOL_ERROR)

    def test_that_are_forgotten_are_not_opened_again(self):
        with self.server.connect() as c:
            for _ in range(600):
                self.answered(c)
            c.next_id = 1
            c.request("/p/hello")
            self.assert_goaway(c, h2raw.STREAM_CLOSED)

    def test_a_stream_that_lives_is_not_forgotten(self):
        with self.server.connect() as c:
            old = c.request("/f/upload", "POST", end=False)
            for _ in range(600):
                self.answered(c)
            c.data(old, b"all")
            c.trailers(old, [("x-sum", "7")])
            self.assertEqual(c.response(old).status, 200)
            self.assertEqual(c.streams[old].trailers["x-sum"], "7")
        self.server.stop()

    def test_what_crosses_a_reset_of_the_server_is_no_error(self):
        """A client that fills its window, and ends its body, before it knows."""
        with self.server.connect() as c:
            streams = [c.request("/p/hello", "POST", end=False) for _ in range(2)]
            for stream in streams:
                c.wait(lambda: c.streams[stream].reset is not None)
                self.assertEqual(c.streams[stream].status, 405)
                c.send(h2raw.frame(h2raw.DATA, 0, stream, bytes(1000)) * 60)
                c.trailers(stream, [("x-sum", "7")])
            self.assertEqual(c.get("/p/hello").status, 200)
            self.assertIsNone(c.goaway)
        self.server.stop()

    def test_what_goes_on_after_a_reset_of_the_server_is_rate_limited(self):
        with self.server.connect() as c:
            stream = c.request("/p/hello", "POST", end=False)
            c.wait(lambda: c.streams[stream].reset is not None)
            c.send(h2raw.frame(h2raw.DATA, 0, stream, b"x") * 2000)
            self.assert_goaway(c, h2raw.ENHANCE_YOUR_CALM)


class OtherProtocols(WithServer):
    def test_are_not_answered(self):
        """Neither in HTTP/1: an invalid preface is not (RFC 9113, section 3.4)."""
        self.start()
        for line in (b"INVALID CONNECTION PREFACE\r\n\r\n", b"OPTIONS * RTSP/1.0\r\n\r\n"):
            with self.subTest(line=line), socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as s:
                s.sendall(line)
                self.assertEqual(s.recv(100), b"")
        self.server.stop()


class AfterTheEnd(WithServer):
    """A connection that the server has ended is read for 64 KiB more, and what the server had in hand."""
    MOST = (64 + 2 * 16) << 10
    SENT = 4 << 20

    def assert_cut_off(self, opening, **how):
        before = self.server.stats(**how)["bytes_in"]
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as raw:
            s = how["tls"].wrap_socket(raw, server_hostname="localhost") if how else raw
            self.addCleanup(s.close)
            s.sendall(opening)
            s.setblocking(False)
            sent, until = 0, time.monotonic() + 3
            while sent < self.SENT and time.monotonic() < until:
                try:
                    sent += s.send(bytes(16384))
                except (BlockingIOError, ssl.SSLWantWriteError):
                    time.sleep(0.01)
                except OSError:
                    break
        stats = self.server.still(**how)
        self.assertLess(stats["bytes_in"] - before, self.MOST + 4096)  # who asks for the stats says something too
        self.server.stop()

    def rate_limited(self):
        return HELLO + h2raw.frame(h2raw.PING, 0, 0, b"pingpong") * 600

    def test_http_2(self):
        self.start()
        self.assert_cut_off(self.rate_limited())

    def test_http_2_in_tls(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.start("--tls", *certificate(directory.name))
        self.assert_cut_off(self.rate_limited(), tls=h2raw.tls_context())

    def test_http_2_that_has_said_goodbye(self):
        self.start()
        self.assert_cut_off(HELLO + LEAVES)

    def test_http_1_that_is_wrong(self):
        self.start()
        self.assert_cut_off(b"what\r\n\r\n")

    def test_http_1_that_is_answered(self):
        self.start()
        self.assert_cut_off(b"GET /p/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

    def test_an_upload_hears_why_it_was_ended(self):
        """Though most of it is never read."""
        self.start("--limit", "body_bytes=1000")
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as s:
            s.sendall(b"POST /f/upload HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
            s.setblocking(False)
            came = b""
            try:
                while not came and select.select([s], [s], [], 10)[1]:
                    s.send(bytes(65536))
                    came = s.recv(4096) if select.select([s], [], [], 0)[0] else b""
            except BlockingIOError:
                came = s.recv(4096) if select.select([s], [], [], 10)[0] else b""
            self.assertTrue(came.startswith(b"HTTP/1.1 413 "), came)
        self.server.stop()


class ComingBack(WithServer):
    """Who was ended has to wait before its next connection is read: a little, and nobody else."""
    PINGS = HELLO + h2raw.frame(h2raw.PING, 0, 0, b"pingpong") * 600

    def is_ended(self):
        with self.connect(preface=False) as c:
            c.send(self.PINGS)
            c.at_end()

    def first_answer_s(self, source):
        began = time.monotonic()
        with self.connect(source=source) as c:
            self.assertEqual(c.get("/p/hello").status, 200)
            return time.monotonic() - began

    def test_takes_5_ms_longer_and_for_that_address_alone(self):
        """Only the shortest time of the others counts: the machine may have other work."""
        self.start("--quiet")
        began, others = time.monotonic(), []
        for _ in range(40):
            self.is_ended()
            others.append(self.first_answer_s("127.0.0.2"))
        self.assertGreaterEqual(time.monotonic() - began, 39 * 0.005)
        if not is_sanitized(self.program):
            self.assertLess(min(others), 0.004)
        self.assertEqual(self.server.still()["rate_limited"], 40)
        self.server.stop()

    def test_is_never_long(self):
        """All at once, so that the wait is at its longest; and all are served."""
        self.start("--quiet")
        many = [self.connect(preface=False) for _ in range(60)]
        for c in many:
            c.send(self.PINGS)
        for c in many:
            c.at_end()
        self.assertLess(self.first_answer_s("127.0.0.1"), 10)
        self.server.still()
        self.server.stop()


class Authorities(WithServer):
    """Of HTTP/2. Those that are wrong are in malformed.MALFORMED, those of HTTP/1 in OfHttp1."""

    def test_that_are_right_are_taken(self):
        self.start()
        with self.server.connect() as c:
            for authority in ("a", "a:80", "A.example:65535", "[::1]:8080", "127.0.0.1", "a%20b", "a:"):
                with self.subTest(authority=authority):
                    fields = [(":method", "GET"), (":scheme", "http"), (":path", "/p/hello"), (":authority", authority)]
                    for host in ([], [("host", authority)], [("host", authority.upper())]):
                        stream = c.open()
                        c.send_headers(stream, h2raw.block(fields + host), end=True)
                        self.assertEqual(c.response(stream).status, 200)
        self.server.stop()

    def test_a_host_alone_is_taken(self):
        self.start()
        with self.server.connect() as c:
            stream = c.open()
            c.send_headers(stream, h2raw.block([(":method", "GET"), (":scheme", "http"), (":path", "/p/headers"),
                                                ("host", "a:80")]), end=True)
            self.assertEqual(c.response(stream).body.split()[2], b"a:80")
        self.server.stop()


if __name__ == "__main__":
    run_tests(sys.argv[1], sys.argv[2:])
