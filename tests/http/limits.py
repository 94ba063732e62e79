#!/usr/bin/env python3
"""Every limit of the HTTP/2 server: at it all is well, one past it is what ebb/http.h says.

usage: limits.py SERVER [CLASS[.TEST]...]
"""
import json
import sys
import time

import h2raw
from http_world import KINDS, WithClients, run_tests

SHORT_S = 0.2  # what is to be too late
LONG_S = 2     # what is not, on a machine with other work either
NO_RATE = (1 << 32) - 1


def ns(seconds):
    return "%d" % (seconds * 1e9)


class WithLimits(WithClients):
    def limited(self, **limits):
        arguments = [text for name, value in limits.items() for text in ("--limit", "%s=%s" % (name, value))]
        return self.start(*arguments)

    def assert_rate_limited(self, c):
        """It was told why, and the connection has ended."""
        c.at_end()
        self.assertEqual(c.goaway[1], h2raw.ENHANCE_YOUR_CALM)
        c.close()

    def assert_works(self, c):
        got = c.get("/f/hello")
        self.assertEqual((got.status, got.body), (200, b"hello\n"))

    def assert_took(self, begun):
        """Not shorter than it is allowed, since a time before it began, and not much longer."""
        took = time.monotonic() - begun
        self.assertGreaterEqual(took, SHORT_S)
        self.assertLess(took, SHORT_S + 5)

    def stop(self):
        """Nobody is there whom it would have to wait for."""
        for c in self.opened:
            c.close()
        self.server.stop()

    def setUp(self):
        self.opened = []

    def connect(self, *arguments, **keywords):
        self.opened.append(super().connect(*arguments, **keywords))
        return self.opened[-1]


class Counts(WithLimits):
    def test_connections(self):
        self.limited(connections=8)  # and two that are told so
        served = [self.connect() for _ in range(8)]
        for c in served:
            self.assert_works(c)
        told = [self.connect() for _ in range(2)]
        for c in told:
            got = c.get("/f/hello?id=told")
            self.assertEqual((got.status, got.headers["retry-after"]), (503, "1"))
        waits = self.connect()
        self.assert_works(served[0])
        self.assertTrue(waits.poll(0.1))
        self.assertEqual(waits.frames, [])
        self.assertEqual(json.loads(served[0].get("/stats").body)["connections"], 10)
        for c in told + served[4:]:
            c.close()
        self.assertIn(waits.get("/f/hello").status, (200, 503))
        self.assertEqual(self.server.history("told"), [])
        self.stop()

    def test_streams(self):
        self.limited(streams=3)
        c = self.connect()
        self.assertTrue(c.settle())
        self.assertEqual(c.peer[h2raw.MAX_CONCURRENT_STREAMS], 3)
        names = ["f", "p", "u"]
        streams = [c.request("/%s/hang?id=%s" % (name, name)) for name in names]
        self.server.wait_for_all("begin", names)
        self.assertEqual(c.response(c.request("/f/hello?id=past")).reset, h2raw.REFUSED_STREAM)
        self.assertEqual(self.server.history("past"), [])
        for stream, name in zip(streams, names):
            c.rst(stream)
            self.server.wait_for("closed", name)
            self.assert_works(c)
        self.stop()

    def test_streams_that_are_opened_before_the_limit_is_known(self):
        self.limited(streams=3)
        c = self.connect(auto_settings=False)
        streams = [c.request("/f/slow?ms=100") for _ in range(5)]
        got = [c.response(stream) for stream in streams]
        self.assertEqual([s.status for s in got], [200] * 3 + [None] * 2)
        self.assertEqual([s.reset for s in got], [None] * 3 + [h2raw.REFUSED_STREAM] * 2)
        self.stop()

    def test_a_stream_takes_its_place_until_its_work_has_ended(self):
        self.limited(streams=2)
        c = self.connect()
        self.assertTrue(c.settle())
        for i in range(2):
            stream = c.request("/%s/stubborn?ms=%d&id=%d" % (KINDS[i], 200 + 1500 * i, i))
            self.server.wait_for("begin", str(i))
            c.rst(stream)
        self.server.wait_for_all("cancelled", "01")
        got = c.get("/f/hello?id=next")
        self.assertEqual((got.status, got.body), (200, b"hello\n"))
        self.server.wait_for_all("closed", "01")
        order = [(e.what, e.id) for e in self.server.events]
        self.assertLess(order.index(("cleaned", "0")), order.index(("begin", "next")))
        self.assertLess(order.index(("begin", "next")), order.index(("cleaned", "1")))
        self.stop()

    def test_requests(self):
        self.limited(requests=5)
        c = self.connect()
        for i in range(5):
            self.assertIsNone(c.goaway, i)
            self.assert_works(c)
        self.assertTrue(c.wait(lambda: c.goaway))
        self.assertEqual(c.goaway[:2], (9, h2raw.NO_ERROR))
        self.assertIsNone(c.get("/f/hello?id=past").status)
        self.assertEqual(self.server.history("past"), [])
        c.at_end()
        self.assert_works(self.connect())
        self.stop()

    def test_headers(self):
        self.limited(headers=10)
        c = self.connect()
        for n, status in ((10, 200), (11, 431)):
            self.assertEqual(c.get("/f/hello", headers=[("x-%d" % i, "v") for i in range(n)]).status, status)
        self.assert_works(c)
        self.stop()

    def test_header_bytes(self):
        limit = 2000
        self.limited(header_bytes=limit)
        c = self.connect()
        self.assertTrue(c.settle())
        self.assertEqual(c.peer[h2raw.MAX_HEADER_LIST_SIZE], limit)
        others = sum(len(name) + len(value) + 32 for name, value in c.fields("/f/hello"))
        room = limit - others - 32 - len("x")
        for n, status in ((room, 200), (room + 1, 431)):
            self.assertEqual(c.get("/f/hello", headers=[("x", "v" * n)]).status, status, n)
        self.assert_works(c)
        self.stop()

    def test_headers_and_trailers_are_counted_together(self):
        self.limited(headers=10)
        c = self.connect()
        for n, status in ((5, 200), (6, 431)):
            for kind in KINDS:
                name = "%s%d" % (kind, n)
                stream = c.request("/%s/upload?id=%s" % (kind, name), "POST", [("x-%d" % i, "v") for i in range(5)],
                                   end=False)
                self.server.wait_for("begin", name)
                c.trailers(stream, [("t-%d" % i, "v") for i in range(n)])
                self.assertEqual(c.response(stream).status, status, name)
        self.stop()

    def test_block_bytes(self):
        limit = 4000
        self.limited(block_bytes=limit, header_bytes=100000)
        c = self.connect()
        others = len(h2raw.frame(h2raw.HEADERS, 0, 1, h2raw.block(c.fields("/f/hello", headers=[("x", "v" * 1000)]))))
        room = 1000 + limit - others
        self.assertEqual(c.get("/f/hello", headers=[("x", "v" * room)]).status, 200)
        c.request("/f/hello", headers=[("x", "v" * (room + 1))])
        self.assert_rate_limited(c)
        self.assertEqual(self.server.stats()["handlers_begun"], 1)
        self.stop()

    def test_block_bytes_of_many_frames(self):
        self.limited(block_bytes=4000, header_bytes=100000)
        c = self.connect()
        raw = h2raw.block(c.fields("/f/hello", headers=[("x", "v" * 3000)]))
        stream = c.open()
        c.send_headers(stream, raw, end=True, piece=500)
        self.assertEqual(c.response(stream).status, 200)
        c.send_headers(c.open(), raw + h2raw.literal("y", "v" * 1000), end=True, piece=500)
        self.assert_rate_limited(c)
        self.stop()

    def test_body_bytes(self):
        limit = 100000
        self.limited(body_bytes=limit)
        for kind in KINDS:
            c = self.connect()
            for n, status in ((limit, 200), (limit + 1, 413)):
                stream = c.request("/%s/upload" % kind, "POST", end=False)
                c.body(stream, bytes(n))
                self.assertEqual(c.response(stream).status, status, kind)
                stream = c.request("/%s/upload" % kind, "POST", [("content-length", str(n))], end=False)
                c.body(stream, bytes(n))
                self.assertEqual(c.response(stream).status, status, kind)
            self.assert_works(c)
        self.stop()

    def test_a_length_past_the_limit_is_told_before_a_byte_of_it_came(self):
        self.limited(body_bytes=100)
        c = self.connect()
        for length in ("101", "9223372036854775807"):
            stream = c.request("/f/upload?id=past", "POST", [("content-length", length)], end=False)
            self.assertTrue(c.wait(lambda s=stream: c.streams[s].status))
            self.assertEqual(c.streams[stream].status, 413)
        self.assertEqual(self.server.history("past"), [])
        self.assert_works(c)
        self.stop()

    def reset_until_rate_limited(self, c):
        """How many it took, less those that were earned back meanwhile, one a second."""
        begun, n = time.monotonic(), 0
        while c.goaway is None and n < 100:
            c.rst(c.request("/f/hang"))
            c.settle()
            n += 1
        self.assert_rate_limited(c)
        return n - (time.monotonic() - begun)

    def test_resets(self):
        self.limited(resets=10, resets_second=1)
        n = self.reset_until_rate_limited(self.connect())
        self.assertLessEqual(n, 11)
        self.assertGreater(n, 9)
        stats = self.server.still()
        self.assertEqual((stats["rate_limited"], stats["handlers_begun"]), (1, stats["handlers_closed"]))
        self.stop()

    def test_resets_are_counted_for_the_address(self):
        self.limited(resets=10, resets_second=1)
        begun = time.monotonic()
        for i in range(10):
            c = self.connect()
            stream = c.request("/f/hang?id=%d" % i)
            self.server.wait_for("begin", str(i))
            c.rst(stream)
            self.assertTrue(c.settle())
            c.close()
        earned = time.monotonic() - begun
        self.assertLessEqual(self.reset_until_rate_limited(self.connect()), 2 + earned)  # each connection has one more
        self.stop()

    def test_resets_after_the_first_byte_of_the_response_are_cheap(self):
        """A 32nd of one before."""
        self.limited(resets=5, resets_second=1)
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 100}, auto_window=False)
        began, n = time.monotonic(), 0
        while c.goaway is None and n < 100000:
            stream = c.request("/f/big")
            if not c.wait(lambda s=stream: c.streams[s].body or c.goaway):
                break
            c.rst(stream)
            n += 1
        self.assertEqual(c.goaway[1], h2raw.ENHANCE_YOUR_CALM)
        self.assertGreaterEqual(n, 5 * 32)
        self.assertLessEqual(n, 6 * 32 + 32 * (time.monotonic() - began) + 10)
        self.stop()

    def test_frames(self):
        for kind, payload, cost in ((h2raw.PING, bytes(8), 1), (h2raw.SETTINGS, b"", 8),
                                    (h2raw.PRIORITY, bytes(5), 1), (99, b"odd", 1)):
            with self.subTest(kind):
                self.limited(frames=56, frames_second=1)
                c = self.connect(auto_settings=False)  # its own SETTINGS was one
                stream = 3 if kind == h2raw.PRIORITY else 0
                for _ in range(48 // cost):
                    c.send_frame(kind, 0, stream, payload)
                self.assertIn(c.get("/f/hello").status, (200,))
                for _ in range(20):
                    c.send_frame(kind, 0, stream, payload)
                self.assert_rate_limited(c)
                self.stop()

    def test_empty_data_frames(self):
        self.limited(frames=50, frames_second=1)
        c = self.connect()
        stream = c.request("/f/upload?id=u", "POST", end=False)
        self.server.wait_for("begin", "u")  # one that is reset by the bytes that open it never begins
        for _ in range(60):
            c.data(stream)
        self.assert_rate_limited(c)
        self.server.wait_for("closed", "u")
        self.stop()


class Times(WithLimits):
    def test_idle(self):
        self.limited(idle_ns=ns(SHORT_S))
        c = self.connect()
        begun = time.monotonic()
        self.assert_works(c)
        self.assertTrue(c.wait(lambda: c.goaway))
        self.assert_took(begun)
        self.assertEqual(c.goaway[1], h2raw.NO_ERROR)
        c.at_end()
        self.stop()

    def test_who_waits_for_an_answer_is_not_idle(self):
        self.limited(idle_ns=ns(SHORT_S))
        self.assertEqual(self.connect().get("/f/slow?ms=%d" % (SHORT_S * 3000)).status, 200)
        self.stop()

    def test_idle_from_the_start(self):
        self.limited(idle_ns=ns(SHORT_S))
        begun = time.monotonic()
        c = self.connect()
        c.at_end()
        self.assert_took(begun)
        self.assertEqual(c.goaway[1], h2raw.NO_ERROR)
        self.stop()

    def test_pings_do_not_keep_an_idle_connection(self):
        self.limited(idle_ns=ns(SHORT_S))
        c = self.connect()
        end = time.monotonic() + 20
        while c.settle() and time.monotonic() < end:
            time.sleep(SHORT_S / 10)
        self.assertIsNotNone(c.goaway)
        self.stop()

    def head_too_late(self, begun, c):
        c.at_end()
        self.assert_took(begun)
        self.assertEqual(self.server.still()["timed_out"], 1)
        self.stop()

    def test_header_that_never_begins(self):
        self.limited(header_ns=ns(SHORT_S))
        self.head_too_late(time.monotonic(), self.connect(preface=False))

    def test_header_in_the_preface(self):
        self.limited(header_ns=ns(SHORT_S))
        begun = time.monotonic()
        c = self.connect(preface=False)
        c.send(h2raw.PREFACE[:20])
        self.head_too_late(begun, c)

    def test_header_in_a_block(self):
        self.limited(header_ns=ns(SHORT_S))
        c = self.connect()
        self.assert_works(c)
        begun = time.monotonic()
        c.send_frame(h2raw.HEADERS, h2raw.END_STREAM, c.open(), h2raw.block(c.fields("/f/hello"))[:10])
        self.head_too_late(begun, c)
        self.assertEqual(c.goaway[1], h2raw.ENHANCE_YOUR_CALM)

    def test_header_byte_by_byte(self):
        """Each byte is in time, but not all of them."""
        self.limited(header_ns=ns(SHORT_S))
        c = self.connect()
        self.assert_works(c)
        begun, raw = time.monotonic(), h2raw.block(c.fields("/f/hello", headers=[("x", "v" * 1000)]))
        stream = c.open()
        c.send_frame(h2raw.HEADERS, h2raw.END_STREAM, stream, raw[:1])
        for at in range(1, len(raw)):
            if not c.poll(SHORT_S / 20) or c.goaway:
                break
            c.send_frame(h2raw.CONTINUATION, 0, stream, raw[at:at + 1])
        self.assertIsNotNone(c.goaway)
        self.assert_took(begun)
        self.stop()

    def test_body(self):
        self.limited(body_ns=ns(SHORT_S))
        c = self.connect()
        for kind in KINDS:
            begun = time.monotonic()
            stream = c.request("/%s/upload?id=%s" % (kind, kind), "POST", end=False)
            c.data(stream, b"some")
            self.assertEqual(c.response(stream).status, 408)
            self.assert_took(begun)
            self.assert_cancelled([kind], "TIMEOUT")
        self.assert_works(c)
        self.stop()

    def test_body_that_comes_in_time(self):
        self.limited(body_ns=ns(LONG_S), body_rate=NO_RATE)
        c = self.connect()
        stream = c.request("/f/upload", "POST", end=False)
        for _ in range(5):
            c.data(stream, b"x")
            time.sleep(LONG_S / 4)
        c.data(stream, b"x", end=True)
        self.assertEqual(c.response(stream).body[:2], b"6 ")
        self.stop()

    def test_body_that_nobody_reads_has_time(self):
        self.limited(body_ns=ns(SHORT_S))
        c = self.connect()
        stream = c.request("/f/slow?ms=600", "GET", end=False)
        self.assertEqual(c.response(stream).status, 200)
        self.stop()

    def test_write_into_a_closed_window(self):
        self.limited(write_ns=ns(SHORT_S))
        for kind in KINDS:
            c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0})
            begun = time.monotonic()
            stream = c.request("/%s/big?id=%s" % (kind, kind))
            self.assertFalse(c.response(stream).ended)
            self.assert_took(begun)
            self.assert_cancelled([kind], "TIMEOUT")
        self.server.still()
        self.stop()

    def test_write_of_a_small_answer_into_a_closed_window(self):
        """Its handler has ended; what waits is the answer alone."""
        self.limited(write_ns=ns(SHORT_S))
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0})
        c.request("/f/hello?id=h")
        self.server.wait_for("closed", "h")
        c.at_end()
        self.server.still()
        self.stop()

    def test_write_to_who_does_not_read_his_socket(self):
        self.limited(write_ns=ns(SHORT_S))
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0x7fffffff}, receive_buffer=4096)
        c.window_update(0, 0x7fffffff - 65535)
        c.request("/f/big?n=100000000&id=b")
        self.assert_cancelled(["b"], "TIMEOUT")
        self.server.still()
        self.stop()

    def test_write_that_goes_on_slowly_has_time(self):
        self.limited(write_ns=ns(LONG_S), write_rate=NO_RATE)
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0}, auto_window=False)
        stream = c.request("/f/big?n=5")
        for n in range(5):
            self.assertTrue(c.wait(lambda n=n: len(c.streams[stream].body) == n))
            time.sleep(LONG_S / 4)
            c.window_update(stream, 1)
        got = c.response(stream)  # its end needs no window
        self.assertEqual((got.ended, got.body), (True, b"abcde"))
        self.stop()


class WindowUpdates(WithLimits):
    def test_for_what_was_sent_are_free_however_late(self):
        """Who has a large window may answer a long download all at once."""
        self.limited()
        c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 1 << 24}, auto_window=False)
        c.window_update(0, 1 << 24)
        stream = c.request("/f/big?n=10000000")
        self.assertEqual(len(c.response(stream).body), 10000000)
        late = c.request("/f/hang")
        for _ in range(10000000 // 16384):
            c.window_update(0, 16384)
            c.window_update(late, 16384)
        c.rst(late)
        self.assertEqual(c.get("/f/hello").status, 200)
        self.assertIsNone(c.goaway)
        c.close()
        self.stop()


class Memory(WithLimits):
    def test_what_waits_for_the_peer_is_bounded(self):
        self.limited(write_bytes=65536)
        readers = []
        for i in range(20):
            c = self.connect({h2raw.INITIAL_WINDOW_SIZE: 0x7fffffff}, receive_buffer=4096)
            c.window_update(0, 0x7fffffff - 65535)
            for kind in KINDS:
                c.request("/%s/big?n=100000000&id=%s%d" % (kind, kind, i))
            readers.append(c)
        self.server.wait_for_count("begin", 60)
        self.assertLess(self.server.stats()["memory"], 20 * (65536 + 65536) + 1000000)
        for c in readers:
            c.abort()
        self.server.still()
        self.stop()

    def test_past_seven_eighths_it_answers_503(self):
        self.limited(memory_bytes=4 << 20)
        holders, refused = [], 0
        while not refused and len(holders) < 300:
            c = self.connect()
            stream = c.request("/f/hang", "POST", end=False)
            c.body(stream, bytes(60000), end=False)
            got = c.streams[stream]
            self.assertTrue(c.settle())
            refused += got.status == 503
            holders.append(c)
        self.assertEqual(refused, 1)
        self.assertEqual(got.headers["retry-after"], "1")
        for c in holders:
            c.close()
        stats = self.server.still()
        self.assertLess(stats["memory"], 2 << 20)  # some stacks and exchanges are kept to be used again
        self.assertGreaterEqual(stats["refused"], 1)
        self.assert_works(self.connect())
        self.stop()

    def test_at_the_very_end_connections_are_refused_and_nothing_breaks(self):
        self.limited(memory_bytes=1 << 20)
        holders = []
        for _ in range(100):
            c = self.connect()
            for _ in range(5):
                if c.send_headers(stream := c.open(), h2raw.block(c.fields("/f/hang", "POST"))):
                    c.data(stream, bytes(10000))
            holders.append(c)
        for c in holders:
            c.close()
        stats = self.server.still()
        self.assertEqual(stats["handlers_begun"], stats["handlers_closed"])
        self.assert_works(self.connect())
        self.stop()


if __name__ == "__main__":
    run_tests(sys.argv[1], sys.argv[2:])
