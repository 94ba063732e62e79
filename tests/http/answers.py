#!/usr/bin/env python3
"""The HTTP server as its clients meet it: answers, bodies, deadlines, TLS, shutdown, and how fast a reset is heard.

usage: answers.py SERVER [CLASS[.TEST]... | -CLASS...]
"""
import contextlib
import errno
import hashlib
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
import zlib

import h2raw
from http_world import KINDS, PATIENCE_S, PINGS_ALLOWED, RESETS_ALLOWED, WithClients, certificate, is_sanitized, letters, run_tests

MIB = 1 << 20


class Answers(WithClients):
    def setUp(self):
        self.start()
        self.c = self.connect()

    def tearDown(self):
        self.c.close()
        self.server.stop()

    def test_what_a_handler_says(self):
        for kind in KINDS:
            got = self.c.get("/%s/hello" % kind)
            self.assertEqual((got.status, got.body), (200, b"hello\n"))
            self.assertEqual(got.headers["content-length"], "6")
            self.assertEqual(got.headers["content-type"], "text/plain; charset=utf-8")
            self.assertIn("date", got.headers)

    def test_head_has_no_body(self):
        for path in ("hello", "big?n=1000", "events"):
            for kind in KINDS[:2]:
                got = self.c.get("/%s/%s" % (kind, path), "HEAD")
                self.assertEqual((got.status, got.body, got.ended, got.reset), (200, b"", True, None), path)
        self.assertEqual(self.c.get("/u/hello", "HEAD").headers["content-length"], "6")
        self.assertIn(b"content-length: 6", self.run_curl("/f/hello", "-I"))

    def test_statuses_without_a_body(self):
        for status in (204, 304):
            got = self.c.get("/f/status?n=%d" % status)
            self.assertEqual((got.status, got.body, "content-length" in got.headers), (status, b"", False))

    def test_statuses_that_there_are_not(self):
        for status in (0, 100, 199, 1000):
            self.assertEqual(self.c.get("/f/status?n=%d" % status).status, 500)
        self.assertEqual(self.c.get("/f/status?n=999").status, 999)

    def test_404(self):
        for path in ("/", "/f", "/f/hell", "/f/hello/", "/f/hello/x", "/x/hello", "/f/users/1/files"):
            self.assertEqual(self.c.get(path).status, 404, path)

    def test_405_says_what_is_allowed(self):
        got = self.c.get("/f/hello", "DELETE")
        self.assertEqual(got.status, 405)
        self.assertEqual(sorted(got.headers["allow"].split(", ")), ["GET", "HEAD"])
        got = self.c.get("/f/upload", "GET")
        self.assertEqual((got.status, sorted(got.headers["allow"].split(", "))), (405, ["POST", "PUT"]))

    def test_failures_of_handlers_are_500(self):
        for path in ("/f/fail", "/p/fail", "/u/fail", "/f/fault", "/p/fault", "/f/silent", "/p/silent"):
            self.assertEqual(self.c.get(path).status, 500, path)
        self.assertEqual(self.c.get("/f/hello").body, b"hello\n")

    def test_a_response_that_breaks_off_is_reset(self):
        for kind in KINDS[:2]:
            got = self.c.get("/%s/cut" % kind)
            self.assertEqual((got.status, got.reset, got.ended), (200, h2raw.INTERNAL_ERROR, False))
        self.assertEqual(self.c.get("/f/hello").body, b"hello\n")

    def test_parameters_of_a_path(self):
        self.assertEqual(self.c.get("/f/users/a%20b/files/c/d%2fe").body, b"a b c/d/e\n")

    def test_what_a_handler_sees_of_a_request(self):
        got = self.c.get("/f/headers?a=b&c", "PATCH", [("x-one", "1"), ("x-two", ""), ("x-one", "again")])
        self.assertEqual(got.body.decode().splitlines(), [
            "PATCH /f/headers?a=b&c 127.0.0.1:%d 20" % self.server.port, "x-one: 1", "x-two: ", "x-one: again"])

    def test_crumbs_of_a_cookie_are_one(self):
        crumbs = [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3")]
        got = self.c.get("/p/headers", headers=crumbs)
        self.assertEqual(got.body.decode().splitlines()[1:], ["cookie: a=1; b=2; c=3", "x: y"])

    def test_1000_requests_on_one_connection_one_after_the_other(self):
        for i in range(1000):
            self.assertEqual(self.c.get("/%s/hello?id=%d" % (KINDS[i % 3], i)).body, b"hello\n")

    def test_100_at_a_time_are_answered_each_on_its_stream(self):
        streams = {self.c.request("/%s/users/%d/files/x" % (KINDS[i % 2], i)): i for i in range(100)}
        for stream, i in streams.items():
            self.assertEqual(self.c.response(stream).body, b"%d x\n" % i)


class Bodies(WithClients):
    def setUp(self):
        self.start()

    def tearDown(self):
        self.server.stop()

    def test_10_MiB_through_curl_and_back(self):
        body = os.urandom(10 * MIB)
        with tempfile.NamedTemporaryFile() as file:
            file.write(body)
            file.flush()
            for kind in KINDS:
                got = self.run_curl("/%s/echo" % kind, "-X", "POST", "-T", file.name)
                self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(body).digest(), kind)
                got = self.run_curl("/%s/upload" % kind, "-T", file.name)
                self.assertEqual(got, b"%d %d\n" % (len(body), zlib.adler32(body)))

    def test_10_MiB_through_node_and_back(self):
        for kind in KINDS:
            got = self.run_node("echo", "/%s/echo" % kind, str(10 * MIB))
            self.assertEqual(got["sent"], got["received"], kind)

    def test_10_MiB_to_all_sorts_of_clients(self):
        for kind in KINDS:
            path = "/%s/big?n=%d" % (kind, 10 * MIB)
            self.assertEqual(self.run_curl(path), letters(10 * MIB))
            self.assertEqual(self.run_client("nghttp", self.url(path)), letters(10 * MIB))
            self.assertEqual(self.run_node("get", path)["body"].encode(), letters(10 * MIB))

    def test_a_writer_waits_for_the_window(self):
        """Nothing is sent past it, and nothing of the response is kept in memory meanwhile."""
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 1000}, auto_window=False)
        stream = c.request("/f/big?n=%d" % (100 * MIB))
        self.assertTrue(c.wait(lambda: len(c.streams[stream].body) == 1000))
        self.assertTrue(c.settle())
        self.assertEqual(len(c.streams[stream].body), 1000)
        self.assertLess(self.server.stats()["memory"], MIB)
        c.window_update(stream, 1)
        self.assertTrue(c.wait(lambda: len(c.streams[stream].body) == 1001))
        c.close()

    def test_a_reader_that_waits_holds_the_sender_back(self):
        c = self.connect()
        self.assertTrue(c.settle())  # the server's windows are known
        stream = c.request("/f/hang", "POST", end=False)
        c.body(stream, bytes(c.streams[stream].window), end=False)
        self.assertTrue(c.settle())
        self.assertEqual(c.streams[stream].window, 0)
        other = c.request("/f/echo", "POST", end=False)  # the connection's window has room for others
        c.body(other, b"passes by")
        self.assertEqual(c.response(other).body, b"passes by")
        c.close()

    def test_empty_bodies(self):
        c = self.connect()
        for kind in KINDS:
            stream = c.request("/%s/upload" % kind, "POST", end=False)
            c.data(stream, b"", end=True)
            self.assertEqual(c.response(stream).body, b"0 1\n")
            self.assertEqual(c.get("/%s/echo" % kind, "POST").body, b"")
            self.assertEqual(c.get("/%s/big?n=0" % kind).body, b"")
        c.close()

    def test_padding_is_no_body(self):
        c = self.connect()
        stream = c.request("/f/echo", "POST", end=False)
        c.send_frame(h2raw.DATA, h2raw.PADDED, stream, b"\x05bodyxxxxx")
        c.send_frame(h2raw.DATA, h2raw.PADDED | h2raw.END_STREAM, stream, b"\x02 ends\0\0")
        self.assertEqual(c.response(stream).body, b"body ends")
        c.close()

    def test_trailers_come_back(self):
        c = self.connect()
        for kind in KINDS:
            stream = c.request("/%s/upload" % kind, "POST", end=False)
            c.data(stream, b"body")
            c.trailers(stream, [("x-sum", "s-" + kind)])
            got = c.response(stream)
            self.assertEqual((got.body[:2], got.trailers), (b"4 ", {"x-sum": "s-" + kind}))
            got = self.run_node("trailers", "/%s/upload" % kind)
            self.assertEqual((got["body"][:2], got["trailers"]), ("6 ", {"x-sum": "from node"}))
        c.close()

    def test_100_continue_comes_with_the_first_read(self):
        expects = [("expect", "100-continue")]
        c = self.connect()
        for kind in KINDS:
            stream = c.request("/%s/echo" % kind, "POST", expects, end=False)
            self.assertTrue(c.wait(lambda: c.streams[stream].informational == [100]))
            c.data(stream, b"now", end=True)
            got = c.response(stream)
            self.assertEqual((got.status, got.body, got.informational), (200, b"now", [100]))
            stream = c.request("/%s/hang" % kind, "POST", expects, end=False)
            c.settle()
            self.assertEqual(c.streams[stream].informational, [])
        stream = c.request("/f/status?n=403", "POST", expects, end=False)
        self.assertTrue(c.wait(lambda: c.streams[stream].status))
        self.assertEqual((c.streams[stream].status, c.streams[stream].informational), (403, []))
        c.close()

    def test_an_answer_before_the_body_is_whole_stops_the_rest(self):
        c = self.connect()
        stream = c.request("/f/status?n=200", "POST", end=False)
        got = c.response(stream)
        self.assertTrue(c.wait(lambda: got.reset is not None))
        self.assertEqual((got.status, got.ended, got.reset), (200, True, h2raw.NO_ERROR))
        c.data(stream, b"sent before it was heard")
        self.assertEqual(c.get("/f/hello").body, b"hello\n")
        c.close()

    def test_events_as_curl_shows_them(self):
        expected = b"".join(b"event: tick\nid: %d\ndata: event %d\ndata: of 5\n\n" % (i, i) for i in range(5))
        for kind in KINDS[:2]:
            self.assertEqual(self.run_curl("/%s/events?n=5&ms=1" % kind, "-N"), expected)
        head = self.run_curl("/f/events?n=1", "-D", "-", "-o", "/dev/null")
        self.assertIn(b"content-type: text/event-stream", head)

    def test_an_event_is_there_before_the_next(self):
        client = self.curl(self.url("/f/events?n=2&ms=3600000&id=e"))
        first = b"event: tick\nid: 0\ndata: event 0\ndata: of 2\n\n"
        self.assertEqual(client.hear(len(first)), first)
        client.kill()
        self.assert_cancelled(["e"])


class Deadlines(WithClients):
    """ebb-deadline-ms says how long the client will wait."""

    def test_what_takes_longer_is_504_and_cancelled(self):
        self.start()
        c = self.connect()
        for kind in KINDS:
            begun = time.monotonic()
            got = c.get("/%s/hang?id=%s" % (kind, kind), headers=[("ebb-deadline-ms", "50")])
            took = time.monotonic() - begun
            self.assertEqual(got.status, 504)
            self.assertGreaterEqual(took, 0.05)
            self.assertLess(took, 5)
            self.assert_cancelled([kind], "TIMEOUT")
        got = json.loads(c.get("/stats").body)
        self.assertEqual((got["timed_out"], got["5xx"]), (3, 3))
        c.close()
        self.server.stop()

    def test_what_is_done_in_time_is_not(self):
        self.start()
        c = self.connect()
        for kind in KINDS:
            self.assertEqual(c.get("/%s/slow?ms=1" % kind, headers=[("ebb-deadline-ms", "60000")]).status, 200)
        c.close()
        self.server.stop()

    def test_a_response_in_the_middle_is_reset(self):
        self.start()
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 1000}, auto_window=False)
        for kind in KINDS:
            got = c.get("/%s/big?id=%s" % (kind, kind), headers=[("ebb-deadline-ms", "50")])
            self.assertEqual(got.status, 200)
            self.assertIsNotNone(got.reset)
            self.assert_cancelled([kind], "TIMEOUT")
        c.close()
        self.server.stop()

    def test_what_is_no_number_is_no_deadline(self):
        self.start()
        c = self.connect()
        for text in ("", "x", "-1", "5x", "1e3"):
            self.assertEqual(c.get("/f/slow?ms=10", headers=[("ebb-deadline-ms", text)]).status, 200, text)
        for text in ("18446744073709551615", "18446744073709551616", "9" * 50):
            self.assertEqual(c.get("/f/slow?ms=10", headers=[("ebb-deadline-ms", text)]).status, 200, text)
        self.assertEqual(c.get("/f/hang", headers=[("ebb-deadline-ms", "0")]).status, 504)
        c.close()
        self.server.stop()


class Latency(WithClients):
    """From the send() of RST_STREAM to the handler that sees it.

    How long a machine with other work lets both processes wait shows in the PINGs between the resets.
    """

    samples = 2000

    def measure(self, c, kind, first):
        """Nanoseconds of resets and of PINGs."""
        resets, pings = [], []
        for i in range(first, first + self.samples):
            stream = c.request("/%s/hang?stamp=1&id=%d" % (kind, i))
            self.server.wait_for("begin", str(i))
            asked = time.monotonic_ns()
            c.settle()
            sent = time.monotonic_ns()
            c.rst(stream)
            resets.append(int(self.server.wait_for("at", str(i))) - sent)
            pings.append(sent - asked)
        return sorted(resets), sorted(pings)

    @staticmethod
    def p99(spans):
        return spans[len(spans) * 99 // 100]

    def test_of_a_reset(self):
        bound = 10_000_000 if is_sanitized(self.program) else 1_000_000
        self.start(*RESETS_ALLOWED, *PINGS_ALLOWED)
        c = self.connect()
        for attempt in range(3):
            resets, pings = self.measure(c, KINDS[attempt % 2], attempt * self.samples)
            print("RST_STREAM to the handler: median %.0f us, p99 %.0f us, worst %.0f us; p99 of a PING %.0f us" % tuple(
                n / 1e3 for n in (statistics.median(resets), self.p99(resets), resets[-1], self.p99(pings))))
            if self.p99(resets) < bound:
                break
        self.assertLess(self.p99(resets), max(bound, 2 * self.p99(pings)))
        c.close()
        self.server.stop()


class Shutdown(WithClients):
    """SIGTERM: what is in flight finishes, nothing new begins."""

    def test_100_requests_in_flight_are_answered_and_no_new_one(self):
        self.start("--budget-ms", "30000")
        connections = [self.connect() for _ in range(10)]
        streams = [(c, c.request("/%s/slow?ms=1000" % KINDS[i % 3])) for c in connections for i in range(10)]
        self.server.wait_for_count("begin", 100)
        self.server.terminate()
        for c in connections:
            self.assertTrue(c.wait(lambda c=c: c.goaway))
            self.assertEqual(c.goaway[1], h2raw.NO_ERROR)
        late = [(c, c.request("/f/hello?id=late")) for c in connections]
        self.assert_closed_to_new_ones()
        for c, stream in streams:
            self.assertEqual((c.response(stream).status, c.response(stream).body), (200, b"slow\n"))
        for c, stream in late:
            self.assertIn(c.response(stream).reset, (None, h2raw.REFUSED_STREAM))
            self.assertIsNone(c.streams[stream].status)
            c.at_end()
            c.close()
        self.server.check_end()
        self.assertEqual(self.server.history("late"), [])
        self.assertEqual(self.server.counts["cancelled"], 0)

    def assert_closed_to_new_ones(self):
        """Whoever comes before its socket is closed is not served."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.server.port)) == errno.ECONNREFUSED:
                    return
                s.settimeout(PATIENCE_S)
                s.sendall(b"GET /f/hello?id=late HTTP/1.1\r\nhost: x\r\n\r\n")
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(s.recv(100), b"")
        self.fail("it still listens")

    def test_idle_connections_do_not_hold_it_up(self):
        self.start()
        connections = [self.connect() for _ in range(10)]
        for c in connections:
            self.assertTrue(c.settle())
        ends = threading.Thread(target=lambda: [c.at_end() or c.close() for c in connections])
        ends.start()
        self.server.stop()
        ends.join()
        self.assertEqual([c.goaway[1] for c in connections], [h2raw.NO_ERROR] * 10)

    def test_what_hangs_is_cancelled_when_its_time_has_come(self):
        self.start("--budget-ms", "4000")
        c = self.connect()
        for kind in KINDS:
            c.request("/%s/hang?id=%s" % (kind, kind))
        self.server.wait_for_count("begin", 3)
        self.server.terminate()
        self.assert_cancelled(KINDS, "SHUTDOWN")
        c.at_end()
        c.close()
        self.server.check_end()

    def test_who_does_not_read_is_left_before_the_time_is_over(self):
        """Neither has room for the last words of the server: it ends in order all the same."""
        self.start("--budget-ms", "2000")
        lazy = socket.socket()
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(("127.0.0.1", self.server.port))
        lazy.sendall(b"GET /f/big?n=16000000&id=1 HTTP/1.1\r\nhost: x\r\n\r\n")
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 1 << 24}, receive_buffer=4096, auto_window=False)
        c.window_update(0, 1 << 24)
        c.request("/f/big?n=16000000&id=2")
        self.server.wait_for_count("begin", 2)
        time.sleep(0.3)  # until nothing more fits in
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0)
        c.close()
        lazy.close()

    def test_what_cleans_up_for_too_long_is_forced(self):
        self.start("--budget-ms", "500")
        c = self.connect()
        c.request("/f/stubborn?ms=3600000&id=s")
        self.server.wait_for("begin", "s")
        self.server.terminate()
        self.assertEqual(self.server.wait(), 3)
        self.assertEqual(self.server.stderr(), "")
        c.close()

    def test_a_second_signal_forces(self):
        self.start()
        c = self.connect()
        for kind in KINDS:
            c.request("/%s/hang?id=%s" % (kind, kind))
        self.server.wait_for_count("begin", 3)
        self.server.terminate()
        self.assertTrue(c.wait(lambda: c.goaway))
        self.server.terminate()
        self.assertEqual(self.server.wait(), 4)
        self.assertEqual(self.server.stderr(), "")
        c.close()


class Tls(WithClients):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.cert, key = certificate(directory.name)
        self.start("--tls", self.cert, key)

    def url(self, path):
        return "https://127.0.0.1:%d%s" % (self.server.port, path)

    def tls_curl(self, path, *arguments):
        return self.run_client("curl", "-sS", "--cacert", self.cert, *arguments, self.url(path))

    def test_curl_gets_http_2(self):
        for kind in KINDS:
            got = self.tls_curl("/%s/hello" % kind, "-w", "%{http_version}")
            self.assertEqual(got, b"hello\n2")
        self.server.stop()

    def test_10_MiB_there_and_back(self):
        for kind in KINDS:
            got = self.run_node("echo", "/%s/echo" % kind, str(10 * MIB))
            self.assertEqual(got["sent"], got["received"], kind)
        self.assertEqual(self.tls_curl("/f/big?n=%d" % (10 * MIB)), letters(10 * MIB))
        self.server.stop()

    def test_a_client_that_dies_cancels(self):
        for kind in KINDS:
            client = self.node("download", "/%s/big?n=1000000000&id=%s" % (kind, kind))
            self.assertEqual(client.hear(8), b"reading\n")
            client.kill()
            self.assert_cancelled([kind])
        self.server.stop()


if __name__ == "__main__":
    run_tests(sys.argv[1], sys.argv[2:])
