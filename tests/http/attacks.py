#!/usr/bin/env python3
"""Attacks on the HTTP server, beside a well-behaved client that must not notice.

usage: [EBB_ATTACK_SECONDS=1] attacks.py SERVER ATTACKER [CLASS[.TEST]... | -CLASS...]

Of each attack: every request of the good client succeeds, from the attacker's address and from another; its p99 is
at most 5 times what it was just before (and what is below 0.2 ms counts as that), and so is its mean; who comes
anew has an answer within a second; the server grows by less than 64 MiB; and the attacker's connections end as
RFC 9113 says. A measurement that is noisy is taken once more. In a
build with sanitizers time and memory are not those of the server, and only the rest is asserted.
"""
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("attacks")))
import floods  # noqa: E402
import h2raw  # noqa: E402
import malformed  # noqa: E402
import slow  # noqa: E402
from http_world import Server, chosen, is_sanitized  # noqa: E402
from under_attack import GROWTH_MOST, SERVER_CORE, GoodClient, Hose, go_first, measure  # noqa: E402

SERVER = ATTACKER = ""
ATTACK_S = int(os.environ.get("EBB_ATTACK_SECONDS", "1"))
SLOW_S = 3  # longer than any timeout of SlowOnes
TRIES = 3
STREAMS, RESETS, RESETS_SECOND = 100, 200, 50  # the server's own limits, by default
MS, SECOND = 1000000, 1000000000
BUDGETS_OFF = ("resets=1000000000", "resets_second=1000000000", "frames=1000000000", "frames_second=1000000000")


def limits(*texts):
    return [word for text in texts for word in ("--limit", text)]


class UnderAttack(unittest.TestCase):
    def start(self, *arguments):
        self.server = Server(SERVER, "--quiet", *arguments)
        self.addCleanup(self.server.kill)
        go_first(SERVER_CORE, self.server.pid)

    def good(self, *options):
        self.client = GoodClient(self.server.port, "/p/hello", *options)
        self.addCleanup(self.client.close)

    def measured(self, attack):
        """All of the good client's requests succeed, whatever else."""
        measured, result = measure(self.client, self.server.rss, attack)
        print(measured, flush=True)
        self.assertEqual(measured.during["failures"], [])
        self.assertGreater(measured.during["requests"], 100)
        return measured, result

    def withstands(self, attack):
        """Returns what the attack did."""
        for _ in range(TRIES):  # the machine may have something else to do
            measured, result = self.measured(attack)
            if is_sanitized(SERVER):
                return result
            if not measured.is_noisy():
                break
        self.assertFalse(measured.is_noisy(), measured)
        self.assertLess(measured.growth, GROWTH_MOST, measured)
        return result

    def comes_to_rest(self):
        """Nothing of the attack is left; returns the last stats."""
        self.client.close()
        stats = self.server.still()
        self.assertEqual([stats[name] for name in ("leaks", "abandoned", "illegal", "wrote_after_cancel")], [0] * 4)
        self.server.stop()
        return stats


class Floods(UnderAttack):
    def hoses(self, group, seconds):
        """All of a group at once; what each saw."""
        hoses = {name: Hose(ATTACKER, self.server.port, flood.script, "-s", str(seconds), *flood.options)
                 for name, flood in group.items()}
        reports = {name: hose.report() for name, hose in hoses.items()}
        self.came += sum(report["connections"] for report in reports.values())
        return reports

    def flood(self, name, seconds=ATTACK_S):
        group = floods.FLOODS[name]
        self.came = 0
        self.start()
        self.good()
        reports = self.withstands(lambda: self.hoses(group, seconds))
        for each, report in reports.items():
            with self.subTest(flood=each, report=report):
                self.assert_ended(group[each], report)
        return self.comes_to_rest()

    def assert_ended(self, flood, report):
        told = {code: n for code, n in report["goaway"].items() if int(code) != h2raw.NO_ERROR}  # that may come before
        if isinstance(flood, floods.Flood1):
            self.assertTrue(not flood.ends or report["eof"] + report["reset"] > 0)
            return
        self.assertLessEqual(set(map(int, told)), set(flood.ends) or {h2raw.ENHANCE_YOUR_CALM})
        if not flood.ends:
            return
        self.assertGreater(sum(told.values()), 0)
        ended = report["connections"] - report["open"]
        if flood.is_deaf:
            self.assertEqual(report["eof"] + report["reset"], ended)
        else:
            self.assertEqual(sum(told.values()), ended)

    def assert_within_budget(self, stats):
        """Work that was begun for nothing: what the address may, two for each connection that comes after that, and
        those of the connections that were open when it was over."""
        seconds = 2 * (ATTACK_S + 1)  # a measurement may have been taken twice
        self.assertLessEqual(stats["handlers_cancelled"], RESETS + RESETS_SECOND * seconds + STREAMS + 2 * self.came)

    def test_rapid_reset(self):
        self.assert_within_budget(self.flood("rapid_reset"))

    def test_rapid_reset_of_live_work(self):
        self.assert_within_budget(self.flood("rapid_reset_of_live_work"))

    def test_live_work_and_leave(self):
        self.assert_within_budget(self.flood("live_work_and_leave"))

    def test_work_that_drains_slowly(self):
        self.assert_within_budget(self.flood("work_that_drains_slowly"))

    def test_bodies_that_nobody_reads(self):
        self.flood("bodies_that_nobody_reads")
        self.assertEqual(self.came % 400, 0)  # all were let sit there

    def test_made_you_reset(self):
        self.assert_within_budget(self.flood("made_you_reset"))

    def test_continuation(self):
        self.flood("continuation")

    def test_settings(self):
        self.flood("settings")

    def test_ping(self):
        self.flood("ping")

    def test_frames_that_ask_for_nothing(self):
        self.flood("frames_that_ask_for_nothing")

    def test_hpack(self):
        self.flood("hpack")

    def test_late_reset(self):
        self.flood("late_reset")

    def test_windows_of_0(self):
        self.flood("windows_of_0")

    def test_closed_streams(self):
        self.flood("closed_streams")

    def test_cookie_crumbs(self):
        self.flood("cookie_crumbs")

    def test_after_goaway(self):
        self.flood("after_goaway")

    def test_http_1(self):
        self.flood("http_1")

    def test_what_is_allowed_is_served_in_turn(self):
        for name in floods.ALLOWED:
            with self.subTest(flood=name):
                self.flood(name, seconds=1)


class Slots(UnderAttack):
    def test_are_taken_until_the_work_has_ended(self):
        """Who resets what is slow to end gets no more of it at once than its slots."""
        self.start(*limits("streams=10", *BUDGETS_OFF))
        with self.server.connect() as c:
            first = [c.request("/f/stubborn?ms=500") for _ in range(10)]
            c.settle()
            for stream in first:
                c.rst(stream)
            for _ in range(10):
                c.request("/f/stubborn?ms=500")
            begun = ended = 0
            while begun < 20:
                stats = self.server.stats()
                begun, ended = stats["handlers_begun"], stats["handlers_closed"]
                self.assertLessEqual(begun - ended, 10)
        self.server.still()
        self.server.stop()

    def test_past_the_limit_are_refused(self):
        """By a client that knows the limit (5.1.2)."""
        self.start(*limits("streams=10"))
        with self.server.connect() as c:
            self.assertTrue(c.settle())
            self.assertEqual(c.peer[h2raw.MAX_CONCURRENT_STREAMS], 10)
            streams = [c.request("/f/hang") for _ in range(11)]
            c.wait(lambda: c.goaway or c.streams[streams[-1]].over)
            code = c.goaway[1] if c.goaway else c.streams[streams[-1]].reset
            self.assertIn(code, (h2raw.PROTOCOL_ERROR, h2raw.REFUSED_STREAM))
        self.assertLessEqual(self.server.still()["handlers_begun"], 10)
        self.server.stop()


class Budgets(UnderAttack):
    """Exactly so much, and no more."""
    MOST = 100

    def reset(self, c, n):
        """False: the connection was ended for it."""
        for _ in range(n):
            c.rst(c.request("/f/hang"))
        return self.is_served(c)

    def is_served(self, c):
        if c.settle() and c.goaway is None:
            return True
        c.at_end()
        self.assertEqual(c.goaway[1], h2raw.ENHANCE_YOUR_CALM)
        return False

    def test_of_resets(self):
        self.start(*limits("resets=%d" % self.MOST, "resets_second=1"))
        with self.server.connect() as c:
            self.assertTrue(self.reset(c, self.MOST))
            self.assertFalse(self.reset(c, 20))
        self.assertEqual(self.server.still()["rate_limited"], 1)
        self.server.stop()

    def test_of_resets_that_the_server_is_made_to_send(self):
        self.start(*limits("resets=%d" % self.MOST, "resets_second=1", "frames=1000000"))
        with self.server.connect() as c:
            for _ in range(self.MOST + 20):
                c.window_update(c.request("/f/hang"), (1 << 31) - 1)
            self.assertFalse(self.is_served(c))
        self.server.still()
        self.server.stop()

    def test_of_an_address_is_shared(self):
        self.start(*limits("resets=%d" % self.MOST, "resets_second=1"))
        with self.server.connect() as one, self.server.connect() as two:
            self.assertTrue(self.reset(one, 60))
            self.assertFalse(self.reset(two, 60))
        with h2raw.Conn(self.server.port, source="127.0.0.2") as other:
            self.assertTrue(self.reset(other, 60))
        self.server.still()
        self.server.stop()

    def test_that_is_spent_leaves_one_request_after_the_other(self):
        self.start(*limits("resets=%d" % self.MOST, "resets_second=1"))
        with self.server.connect() as c:
            self.assertFalse(self.reset(c, self.MOST + 20))
        with self.server.connect() as c:
            streams = [c.request("/f/slow?ms=10") for _ in range(20)]
            self.assertEqual({c.response(stream).status for stream in streams}, {200})
        self.server.still()
        self.server.stop()

    def test_of_frames_that_ask_for_nothing(self):
        self.start(*limits("frames=%d" % self.MOST, "frames_second=1"))
        with self.server.connect() as c:
            for _ in range(self.MOST - 10):
                c.ping()
            self.assertTrue(self.is_served(c))
            for _ in range(40):
                c.ping()
            self.assertFalse(self.is_served(c))
        self.server.still()
        self.server.stop()


    def test_that_is_spent_ends_the_reading_too(self):
        """Who goes on all the same is soon cut off: what it sends is not read for as long as it likes."""
        self.start(*limits("frames=%d" % self.MOST))
        pings = h2raw.frame(h2raw.PING, 0, 0, b"pingpong") * 4096
        with self.server.connect() as c:
            sent = 0
            while c.send(pings):
                sent += len(pings)
                self.assertLess(sent, 32 << 20)
            c.closed = False  # for sending; what came before is still there
            c.at_end()
            self.assertEqual(c.goaway[1], h2raw.ENHANCE_YOUR_CALM)
        self.server.still()
        self.server.stop()


class HonestClients(UnderAttack):
    def test_cancel_a_hundred_a_second_after_the_first_bytes(self):
        """Far past the budget of those who cancel before."""
        self.start(*limits("resets=20", "resets_second=5"))
        with self.server.connect() as c:
            for i in range(300):
                due = time.monotonic() + 0.01
                stream = c.request("/f/big?n=1000000")
                self.assertTrue(c.wait(lambda: c.streams[stream].body))
                self.assertTrue(c.rst(stream))
                c.poll(due - time.monotonic())
            self.assertEqual(c.get("/p/hello").status, 200)
            self.assertIsNone(c.goaway)
        self.assertEqual(self.server.still()["rate_limited"], 0)
        self.server.stop()

    def test_may_cancel_before_the_first_byte_within_the_budget(self):
        self.start()
        with self.server.connect() as c:
            for _ in range(RESETS):
                c.rst(c.request("/f/hang"))
            self.assertTrue(c.settle())
            self.assertEqual(c.get("/p/hello").status, 200)
        self.assertEqual(self.server.still()["rate_limited"], 0)
        self.server.stop()


class Connections(UnderAttack):
    MOST = 40

    def test_past_the_limit_are_told_503_or_wait(self):
        self.start(*limits("connections=%d" % self.MOST))
        self.good("--stays")
        report = self.withstands(self.crowd)
        self.assertEqual(report["goaway"].keys() - {str(h2raw.NO_ERROR)}, set())
        with self.server.connect() as c:  # they have left
            self.assertEqual(c.get("/p/hello").status, 200)
        self.comes_to_rest()

    def crowd(self):
        """More than there is room for, which stay."""
        hose = Hose(ATTACKER, self.server.port, floods.script(floods.HELLO), "-s", str(ATTACK_S), "-r", "-c",
                    str(4 * self.MOST))
        return hose.report()

    def test_that_come_and_go_as_fast_as_they_can(self):
        self.start()
        self.good()
        hose = lambda: Hose(ATTACKER, self.server.port, floods.script(floods.HELLO), "-s", str(ATTACK_S), "-r", "-x",
                            "-c", "20").report()
        self.assertGreater(self.withstands(hose)["left"], 100)
        self.comes_to_rest()


class Room(UnderAttack):
    """The same limit, without an attack: nobody's latency is measured."""
    MOST = 40

    def test_an_eighth_more_are_told_503(self):
        self.start(*limits("connections=%d" % self.MOST))
        room = [self.server.connect() for _ in range(self.MOST)]
        self.assertEqual({c.get("/p/hello").status for c in room}, {200})
        with self.server.connect() as late:
            answer = late.get("/p/hello")
            self.assertEqual(answer.status, 503)
            self.assertIn("retry-after", answer.headers)
        for c in room:
            c.close()
        self.assertEqual(self.server.still()["refused"], 1)
        self.server.stop()

    def test_that_are_idle_make_room(self):
        """An attacker that only sits there keeps nobody out."""
        self.start(*limits("connections=%d" % self.MOST))
        for crowd in (self.MOST, 2 * self.MOST):
            idle = [self.server.connect() for _ in range(crowd)]
            time.sleep(1.5)
            with self.server.connect() as c:
                self.assertEqual(c.get("/p/hello").status, 200, crowd)
            for c in idle:
                c.close()
            self.server.still()
        self.server.stop()


class SlowOnes(UnderAttack):
    NS = {"header_ns": 500 * MS, "body_ns": 600 * MS, "write_ns": 700 * MS, "idle_ns": 1000 * MS}
    EACH = 5
    LATE_S = 1

    def test_are_ended_by_their_timeouts(self):
        self.start(*limits(*("%s=%d" % limit for limit in self.NS.items())))
        self.good()
        drips, little = self.withstands(self.drip)
        others = 4 + len(little)  # the good client, who comes anew too, and who asks
        self.assertLessEqual(self.server.stats()["connections"], others)
        slow.leave(little)
        for name, each in drips.items():
            for drip in each:
                with self.subTest(slow=name):
                    self.assert_ended(slow.SLOW[name], drip)
            slow.leave(each)
        stats = self.comes_to_rest()
        self.assertGreaterEqual(stats["timed_out"], len(slow.SLOW) * self.EACH)

    def drip(self):
        """All of them at once, for as long as the longest takes."""
        drips = {name: [each.drip() for _ in range(self.EACH)] for name, each in slow.SLOW.items()}
        little = [drip() for drip in slow.LITTLE.values() for _ in range(self.EACH)]
        slow.run(self.server.port, [d for each in drips.values() for d in each] + little, SLOW_S)
        return drips, little

    def assert_ended(self, expected, drip):
        if not drip.reads:
            return  # what it has not read is before the end: that it was ended is in the server's stats
        self.assertIsNotNone(drip.lasted_s, "it was not ended")
        self.assertEqual(drip.told(), expected.told)
        least = self.NS[expected.by] / SECOND
        self.assertGreaterEqual(drip.lasted_s, least * 0.95)
        if not is_sanitized(SERVER):
            self.assertLess(drip.lasted_s, least + expected.then_s + self.LATE_S)

    def test_are_ended_before_and_in_a_handshake(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        certificate, key = directory.name + "/cert.pem", directory.name + "/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"],
                       check=True, capture_output=True)
        self.start("--tls", certificate, key, *limits("header_ns=%d" % self.NS["header_ns"]))
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
        drips = {"silent": slow.Drip(), "byte by byte": slow.Drip(b"", slow.by_byte(hello)),
                 "half a record": slow.Drip(hello[:50])}
        slow.run(self.server.port, list(drips.values()), SLOW_S)
        slow.leave(drips.values())
        for name, drip in drips.items():
            with self.subTest(slow=name):
                self.assertIsNotNone(drip.lasted_s, "it was not ended")
                self.assertGreaterEqual(drip.lasted_s, 0.95 * self.NS["header_ns"] / SECOND)
        garbage = slow.Drip(b"GET / HTTP/1.1\r\n\r\n" + bytes(100))
        slow.run(self.server.port, [garbage], SLOW_S)
        self.assertLess(garbage.lasted_s, self.NS["header_ns"] / SECOND)
        self.server.stop()


class Malformed(UnderAttack):
    """Each case, without a measurement: this runs beside other tests."""

    def setUp(self):
        self.start(*limits(*BUDGETS_OFF))
        self.client = self.server.connect()
        self.addCleanup(self.client.close)

    def each(self, attack, cases):
        """What came of each. Whoever is connected is served after it."""
        for name, raw in cases.items():
            came = attack(self.server.port, raw)
            self.assertEqual(self.client.get("/p/hello").status, 200, name)
            yield name, came

    def test_connections_end_with_the_code_of_their_error(self):
        cases = malformed.CONNECTION
        for name, came in self.each(malformed.attack_connection, {n: raw for n, (_, raw) in cases.items()}):
            with self.subTest(case=name, came=came):
                self.assertIn(came.goaway, cases[name][0])
                self.assertTrue(came.closed)
        self.comes_to_rest()

    def test_streams_end_with_the_code_of_their_error(self):
        cases = malformed.STREAM
        for name, came in self.each(malformed.attack_stream, {n: raw for n, (_, raw) in cases.items()}):
            with self.subTest(case=name, came=came):
                self.assertIn(came.goaway if came.goaway is not None else came.reset, cases[name][0])
                self.assertTrue(came.closed if came.goaway is not None else came.serves)
        self.comes_to_rest()

    def test_requests_that_are_malformed_are_refused(self):
        for name, came in self.each(malformed.attack_stream, malformed.MALFORMED):
            with self.subTest(case=name, came=came):
                self.assertTrue(came.reset == h2raw.PROTOCOL_ERROR or came.status == 400)
                self.assertTrue(came.serves)
        self.assertEqual(self.comes_to_rest()["handlers_cancelled"], 0)

    def test_what_is_odd_and_allowed_is_allowed(self):
        for name, came in self.each(malformed.attack_in_vain, malformed.ALLOWED):
            with self.subTest(case=name, came=came):
                self.assertIsNone(came.goaway)
                self.assertTrue(came.serves)
        self.comes_to_rest()

    def test_a_wrong_preface_is_no_http_2(self):
        came = malformed.attack_connection(self.server.port, b"PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n")
        self.assertTrue(came.first.startswith(b"HTTP/1.1"))
        self.assertTrue(came.closed)
        self.comes_to_rest()


class MalformedBesideOthers(UnderAttack):
    """What is malformed delays nobody: the cases of Malformed and noise, one after another for as long as an attack
    lasts. `make soak` has the time for all of them."""
    CASES = {
        "connections": (malformed.attack_connection, [raw for _, raw in malformed.CONNECTION.values()]),
        "streams": (malformed.attack_stream, [raw for _, raw in malformed.STREAM.values()]),
        "requests": (malformed.attack_stream, list(malformed.MALFORMED.values())),
        "allowed": (malformed.attack_in_vain, list(malformed.ALLOWED.values())),
        **{kind: (malformed.make_noise, list(malformed.noises(kind, 9113, 300))) for kind in malformed.NOISE},
    }

    def test_delays_nobody(self):
        self.start(*limits(*BUDGETS_OFF))
        self.good()
        for kind, (attack, cases) in self.CASES.items():
            with self.subTest(kind=kind):
                self.assertGreater(self.withstands(lambda: self.for_a_while(attack, itertools.cycle(cases))), 5)
        self.comes_to_rest()

    def for_a_while(self, attack, cases):
        """How many it were."""
        until, n = time.monotonic() + ATTACK_S, 0
        while time.monotonic() < until:
            attack(self.server.port, next(cases))
            n += 1
        return n


def noise(port, kind, n):
    """Which of them the server did not end."""
    return [i for i, raw in enumerate(malformed.noises(kind, 9113, n)) if not malformed.make_noise(port, raw)]


class Noise(UnderAttack):
    """Without a measurement: this runs beside other tests."""
    NOISES = 2000

    def test_breaks_nothing(self):
        self.start(*limits(*BUDGETS_OFF))
        with self.server.connect() as other:
            for kind in malformed.NOISE:
                with self.subTest(kind=kind):
                    self.assertEqual(noise(self.server.port, kind, self.NOISES), [])
                    self.assertEqual(other.get("/p/hello").status, 200)
        stats = self.server.still()
        self.assertEqual([stats[name] for name in ("leaks", "abandoned", "illegal", "wrote_after_cancel")], [0] * 4)
        self.server.stop()


class Oversized(UnderAttack):
    """Too large, and told so."""

    def setUp(self):
        self.start(*limits("body_bytes=100000"))

    def ask(self, *arguments, **keywords):
        with self.server.connect() as c:
            return c.get(*arguments, **keywords)

    def test_too_many_fields(self):
        fields = [("x-%d" % i, "y") for i in range(100)]
        self.assertEqual(self.ask("/p/hello", headers=fields).status, 200)
        self.assertEqual(self.ask("/p/hello", headers=[*fields, ("z", "z")]).status, 431)
        self.server.stop()

    def test_fields_that_are_too_long(self):
        self.assertEqual(self.ask("/p/hello", headers=[("x", "y" * 15000)]).status, 200)
        self.assertEqual(self.ask("/p/hello", headers=[("x", "y" * 16384)]).status, 431)
        self.server.stop()

    def test_a_body_by_its_length_or_by_what_comes(self):
        with self.server.connect() as c:
            stream = c.request("/f/upload", "POST", [("content-length", "100001")], end=False)
            self.assertEqual(c.response(stream).status, 413)
            stream = c.request("/f/upload", "POST", end=False)
            c.body(stream, bytes(200000))
            self.assertEqual(c.response(stream).status, 413)
        self.server.stop()


class OfHttp1(UnderAttack):
    HOST = b"Host: 127.0.0.1\r\n"
    GET = b"GET /p/hello HTTP/1.1\r\n"
    POST = b"POST /f/upload HTTP/1.1\r\n" + HOST
    CASES = {
        "no request at all": ((400,), b"\x00\x01\x02\x03\r\n\r\n"),
        "no version": ((400, 505), b"GET /p/hello\r\n\r\n"),
        "a version that is not there": ((400, 505), b"GET /p/hello HTTP/7.3\r\n\r\n"),
        "no host": ((400,), GET + b"\r\n"),
        "two hosts": ((400,), GET + HOST + HOST + b"\r\n"),
        **{"the host '%s'" % wrong: ((400,), b"GET /p/hello HTTP/1.1\r\nHost: %s\r\n\r\n" % wrong.encode())
           for wrong in malformed.AUTHORITIES},
        **{"the target 'http://%s/'" % wrong: ((400,), b"GET http://%s/ HTTP/1.1\r\nHost: a\r\n\r\n" % wrong.encode())
           for wrong in malformed.AUTHORITIES},
        "a name with a space": ((400,), GET + HOST + b"x y: z\r\n\r\n"),
        "a space before the colon": ((400,), GET + HOST + b"content-length : 5\r\n\r\n"),
        "a line without a colon": ((400,), GET + HOST + b"what\r\n\r\n"),
        "a value with a 0": ((400,), GET + HOST + b"x: y\0z\r\n\r\n"),
        "two lengths": ((400,), POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab"),
        "a length and chunks": ((400,), POST + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        "a negative length": ((400,), POST + b"content-length: -5\r\n\r\n"),
        "a length past 2^64": ((400, 413), POST + b"content-length: " + b"9" * 30 + b"\r\n\r\n"),
        "a length with a sign": ((400,), POST + b"content-length: +5\r\n\r\n12345"),
        "an unknown coding": ((400, 501), POST + b"transfer-encoding: what\r\n\r\n"),
        "chunked that is not last": ((400, 501), POST + b"transfer-encoding: chunked, gzip\r\n\r\n"),
        "a chunk that is no number": ((400,), POST + b"transfer-encoding: chunked\r\n\r\nxyz\r\n"),
        "a chunk past 2^64": ((400, 413), POST + b"transfer-encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n"),
        "a chunk without its end": ((400,), POST + b"transfer-encoding: chunked\r\n\r\n3\r\nabcdef\r\n"),
        "a request line of 20 KB": ((414, 431, 400), b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + HOST + b"\r\n"),
        "a field of 40 KB": ((431,), GET + HOST + b"x: " + b"y" * 40000 + b"\r\n\r\n"),
        "a head of 200 KB": ((431,), GET + HOST + b"x: y\r\n" * 33000),
        "1000 fields": ((431,), GET + HOST + b"x: y\r\n" * 1000 + b"\r\n"),
    }

    def test_malformed_requests_are_refused(self):
        self.start()
        for name, (statuses, raw) in self.CASES.items():
            with self.subTest(case=name):
                self.assertIn(self.ask(raw), statuses)
        self.server.still()
        self.server.stop()

    def ask(self, raw):
        """The status; the connection has to end too."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as s:
            came = b""
            try:
                s.sendall(raw)
                while more := s.recv(65536):
                    came += more
            except ConnectionError:
                pass
            return int(came[9:12]) if came.startswith(b"HTTP/1.1 ") else came


if __name__ == "__main__":
    SERVER, ATTACKER = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *chosen(sys.argv[3:])], verbosity=2)
