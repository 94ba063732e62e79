#!/usr/bin/env python3
"""What becomes of handlers when streams and connections end.

usage: handlers_end.py SERVER [ID...]

An ID is one of IT-01 to IT-06, AS-01, AS-02; without one all are run. Clients are real where one can do it
(curl, nghttp, Node), else h2raw.
"""
import json
import random
import socket
import ssl
import sys
import tempfile
import time
import zlib

import h2raw
from http_world import KINDS, RESETS_ALLOWED, Client, WithClients, certificate, letters, run_tests

def pending(c, kind, prefix):
    """Requests of all sorts whose handlers wait; their ids. `c` lets no response body in."""
    names = []
    for i, path in enumerate(("hang", "hang", "echo", "upload", "big")):
        name = "%s%s%d" % (prefix, kind, i)
        posts = path in ("echo", "upload")
        stream = c.request("/%s/%s?id=%s" % (kind, path, name), "POST" if posts else "GET", end=not posts)
        if posts:
            c.data(stream, b"some bytes")
        names.append(name)
    return names


NO_BODIES = {h2raw.INITIAL_WINDOW_SIZE: 0}


class IT_01(WithClients):
    """A connection that is closed cancels all that is pending on it."""

    def closing(self, end):
        self.start()
        doomed, other = self.connect(NO_BODIES), self.connect()
        stream = other.request("/f/echo?id=other", "POST", end=False)
        names = [name for kind in KINDS for name in pending(doomed, kind, "")]
        self.server.wait_for_all("begin", names + ["other"])
        end(doomed)
        self.assert_cancelled(names)
        other.data(stream, b"still here", end=True)
        self.assertEqual(other.response(stream).body, b"still here")
        self.assertEqual(self.server.stats()["handlers_cancelled"], len(names))
        self.leave_and_stop()

    def test_in_order(self):
        self.closing(h2raw.Conn.close)

    def test_by_a_reset_of_tcp(self):
        self.closing(h2raw.Conn.abort)

    def test_after_half_of_a_frame(self):
        def in_the_middle(c):
            c.send(h2raw.frame(h2raw.PING, 0, 0, b"12345678")[:11])
            c.close()
        self.closing(in_the_middle)

    def test_of_many_connections_at_once(self):
        self.start()
        doomed = [self.connect(NO_BODIES) for _ in range(50)]
        names = [name for i, c in enumerate(doomed) for name in pending(c, KINDS[i % 3], "%d." % i)]
        self.server.wait_for_all("begin", names)
        for c in doomed:
            c.abort()
        self.assert_cancelled(names)
        self.server.still()
        self.leave_and_stop()


class IT_02(WithClients):
    """RST_STREAM cancels the handler of that stream, and no other."""

    def test_the_reason_has_the_code_of_the_peer(self):
        self.start()
        c = self.connect()
        codes = {"NO_ERROR": 0, "PROTOCOL_ERROR": 1, "REFUSED_STREAM": 7, "CANCEL": 8, "ENHANCE_YOUR_CALM": 11}
        for kind in KINDS:
            for text, code in codes.items():
                name = kind + text
                stream = c.request("/%s/hang?id=%s" % (kind, name))
                self.server.wait_for("begin", name)
                c.rst(stream, code)
                self.assert_cancelled([name], says="%s (%d)" % (text, code))
        self.leave_and_stop()

    def test_a_code_that_nobody_knows_is_told_as_a_number(self):
        self.start()
        c = self.connect()
        stream = c.request("/f/hang?id=odd")
        self.server.wait_for("begin", "odd")
        c.rst(stream, 0xabcdef)
        self.assert_cancelled(["odd"], says=str(0xabcdef))
        self.leave_and_stop()

    def test_the_others_of_the_connection_go_on(self):
        self.start()
        c = self.connect(NO_BODIES)
        names = [name for kind in KINDS for name in pending(c, kind, "")]
        streams = list(c.streams)
        kept = {kind: c.request("/%s/echo" % kind, "POST", end=False) for kind in KINDS}
        self.server.wait_for_count("begin", len(names) + len(kept))
        for stream in streams:
            c.rst(stream)
        self.assert_cancelled(names, says="CANCEL (8)")
        for kind, stream in kept.items():
            c.window_update(stream, 100)
            c.data(stream, kind.encode(), end=True)
            self.assertEqual(c.response(stream).body, kind.encode())
        self.assertEqual(self.server.stats()["handlers_cancelled"], len(names))
        self.leave_and_stop()

    def test_a_stream_that_was_answered_cancels_nothing(self):
        self.start()
        c = self.connect()
        for kind in KINDS:
            stream = c.request("/%s/hello" % kind)
            self.assertEqual(c.response(stream).body, b"hello\n")
            c.rst(stream)
            self.assertTrue(c.settle())
        self.assertEqual(self.server.stats()["handlers_cancelled"], 0)
        self.leave_and_stop()

    def test_each_gives_its_place_and_its_memory_back(self):
        self.start(*RESETS_ALLOWED)
        c = self.connect()
        memory = []
        for i in range(600):
            name = "%s%d" % (KINDS[i % 3], i)
            stream = c.request("/%s/hang?id=%s" % (KINDS[i % 3], name))
            self.server.wait_for("begin", name)
            c.rst(stream)
            if i % 50 == 49:
                self.server.wait_for("closed", name)
                memory.append(json.loads(c.get("/stats").body)["memory"])
        self.assertLess(memory[-1] - memory[1], 16384, memory)
        self.assertEqual(c.get("/f/hello").body, b"hello\n")
        self.leave_and_stop()

    def test_node_resets(self):
        self.start()
        for kind in KINDS:
            client = self.node("cancel", "/%s/hang?id=%s" % (kind, kind))
            self.server.wait_for("begin", kind)
            client.feed(b"go\n")
            self.assert_cancelled([kind], says="CANCEL (8)")
        self.leave_and_stop()


class IT_03(WithClients):
    """A client that dies in the middle of something."""

    def dying(self, client_of, ready):
        self.start()
        for kind in KINDS:
            client = client_of(kind)
            ready(client, kind)
            client.kill()
            self.assert_cancelled([kind])
        self.server.still()
        self.server.stop()

    def test_curl_in_an_upload(self):
        def ready(client, kind):
            client.feed(bytes(100000))
            self.server.wait_for("begin", kind)
        self.dying(lambda kind: self.curl("-T", ".", self.url("/%s/upload?id=%s" % (kind, kind))), ready)

    def test_curl_in_an_echo(self):
        def ready(client, _):
            client.feed(bytes(100000))
            self.assertEqual(client.hear(50000), bytes(50000))
        self.dying(lambda kind: self.curl("-X", "POST", "-T", ".", self.url("/%s/echo?id=%s" % (kind, kind))), ready)

    def test_curl_in_a_download(self):
        def ready(client, _):
            self.assertEqual(client.hear(100000), letters(100000))
        self.dying(lambda kind: self.curl(self.url("/%s/big?n=1000000000&id=%s" % (kind, kind))), ready)

    def test_curl_that_waits(self):
        def ready(_, kind):
            self.server.wait_for("begin", kind)
        self.dying(lambda kind: self.curl(self.url("/%s/hang?id=%s" % (kind, kind))), ready)

    def test_node_in_an_upload(self):
        def ready(client, kind):
            self.assertEqual(client.hear(5), b"sent\n")
            self.server.wait_for("begin", kind)
        self.dying(lambda kind: self.node("upload", "/%s/upload?id=%s" % (kind, kind)), ready)

    def test_node_in_a_download(self):
        def ready(client, _):
            self.assertEqual(client.hear(8), b"reading\n")
        self.dying(lambda kind: self.node("download", "/%s/big?n=1000000000&id=%s" % (kind, kind)), ready)

    def test_curl_of_HTTP_1(self):
        def ready(client, kind):
            client.feed(bytes(100000))
            self.server.wait_for("begin", kind)
        self.dying(lambda kind: self.curl("--http1.1", "-T", ".", self.url("/%s/upload?id=%s" % (kind, kind))), ready)
        self.dying(lambda kind: self.curl("--http1.1", self.url("/%s/hang?id=%s" % (kind, kind))),
                   lambda _, kind: self.server.wait_for("begin", kind))
        self.dying(lambda kind: self.curl("--http1.1", self.url("/%s/big?n=1000000000&id=%s" % (kind, kind))),
                   lambda client, _: self.assertEqual(client.hear(100000), letters(100000)))

    def test_nghttp_that_waits(self):
        def ready(_, kind):
            self.server.wait_for("begin", kind)
        self.dying(lambda kind: Client(self, "nghttp", self.url("/%s/hang?id=%s" % (kind, kind))), ready)


class IT_04(WithClients):
    """GOAWAY, with an error and without."""

    def test_with_an_error_all_handlers_are_cancelled(self):
        for code, text in ((h2raw.INTERNAL_ERROR, "INTERNAL_ERROR (2)"), (h2raw.ENHANCE_YOUR_CALM, "(11)")):
            with self.subTest(text):
                self.start()
                c, other = self.connect(NO_BODIES), self.connect()
                stream = other.request("/f/echo", "POST", end=False)
                names = [name for kind in KINDS for name in pending(c, kind, "")]
                self.server.wait_for_count("begin", len(names) + 1)
                c.send_goaway(code)
                self.assert_cancelled(names, says=text)
                c.at_end()
                other.data(stream, b"well", end=True)
                self.assertEqual(other.response(stream).body, b"well")
                self.server.still(connections=1)
                self.leave_and_stop()

    def test_without_one_what_is_in_flight_finishes_and_nothing_new_is_taken(self):
        self.start()
        c = self.connect()
        slow = [c.request("/%s/slow?ms=100" % kind) for kind in KINDS]
        echo = [c.request("/%s/echo" % kind, "POST", end=False) for kind in KINDS]
        self.server.wait_for_count("begin", 6)
        c.send_goaway(h2raw.NO_ERROR)
        c.request("/f/hello?id=new")
        for stream in slow:
            self.assertEqual((c.response(stream).status, c.response(stream).body), (200, b"slow\n"))
        for stream in echo:
            c.data(stream, b"the rest", end=True)
            self.assertEqual(c.response(stream).body, b"the rest")
        c.at_end()
        self.assertNotIn("begin", self.server.history("new"))
        self.assertEqual(self.server.still()["handlers_cancelled"], 0)
        self.leave_and_stop()

    def test_without_one_an_idle_connection_ends(self):
        self.start()
        c = self.connect()
        c.get("/f/hello")
        c.send_goaway(h2raw.NO_ERROR)
        c.at_end()
        self.leave_and_stop()

    def test_an_error_after_a_good_one_still_cancels(self):
        self.start()
        c = self.connect()
        c.request("/f/hang?id=h")
        self.server.wait_for("begin", "h")
        c.send_goaway(h2raw.NO_ERROR)
        self.assertTrue(c.settle())
        c.send_goaway(h2raw.PROTOCOL_ERROR)
        self.assert_cancelled(["h"], says="PROTOCOL_ERROR (1)")
        self.leave_and_stop()


class IT_05(WithClients):
    """A cancelled handler sends nothing, and cleans up once."""

    PATHS = ("hang", "slow?ms=30", "big?n=100000000", "echo", "upload", "events?n=100000&ms=1", "stubborn?ms=50")

    def frames_after(self, c, stream, from_here):
        sends = (h2raw.DATA, h2raw.HEADERS, h2raw.CONTINUATION)
        return [f for f in c.frames[from_here:] if f.stream == stream and f.type in sends]

    def silent_after_reset(self, kind, path, values):
        name = "%s.%s.%d" % (kind, path.split("?", maxsplit=1)[0], len(values))
        c = self.connect(values)
        posts = path in ("echo", "upload")
        stream = c.request("/%s/%s%sid=%s" % (kind, path, "&" if "?" in path else "?", name),
                           "POST" if posts else "GET", end=not posts)
        if posts:
            c.data(stream, b"x" * 1000)
        self.server.wait_for("begin", name)
        c.rst(stream)
        self.assertTrue(c.settle())
        heard = len(c.frames)
        self.server.wait_for("closed", name)
        self.assertTrue(c.settle())
        self.assertEqual(self.frames_after(c, stream, heard), [], name)
        self.assertEqual(self.server.history(name), ["begin", "cancelled", "cleaned", "closed"], name)
        c.close()

    def test_whatever_it_was_doing(self):
        self.start(*RESETS_ALLOWED)
        for kind in KINDS:
            for path in self.PATHS if kind != "u" else self.PATHS[:5]:
                for values in ({}, NO_BODIES):
                    self.silent_after_reset(kind, path, values)
        stats = self.server.still()
        self.assertEqual(stats["wrote_after_cancel"], 0)
        self.server.stop()

    def test_not_even_when_the_connection_is_lost(self):
        self.start()
        for kind in KINDS:
            c = self.connect(NO_BODIES)
            names = pending(c, kind, "")
            self.server.wait_for_all("begin", names)
            c.abort()
            self.assert_cancelled(names)
        self.server.stop()

    def test_what_is_cancelled_before_it_began_never_begins_or_ends_as_all_others(self):
        self.start(*RESETS_ALLOWED)
        c = self.connect()
        raw = b""
        for i in range(50):
            for kind in KINDS:
                stream = c.open()
                fields = h2raw.block(c.fields("/%s/hang?id=%s%d" % (kind, kind, i)))
                raw += h2raw.frame(h2raw.HEADERS, h2raw.END_HEADERS | h2raw.END_STREAM, stream, fields)
                raw += h2raw.frame(h2raw.RST_STREAM, 0, stream, b"\0\0\0\x08")
        c.send(raw)
        self.assertTrue(c.settle())
        self.assertEqual([f for f in c.frames if f.type in (h2raw.HEADERS, h2raw.DATA)], [])
        stats = self.server.still(connections=1)
        self.assertEqual(stats["handlers_begun"], stats["handlers_closed"])
        self.server.stop()


class Answers:
    """What requests of IT-06 are to be answered."""

    def __init__(self, dice):
        self.dice = dice

    def ask(self, c):
        """A random request; the stream and the body that it should get."""
        kind, what = self.dice.choice(KINDS), self.dice.choice(("slow", "echo", "upload", "big"))
        if what == "slow":
            return c.request("/%s/slow?ms=%d" % (kind, self.dice.randrange(200))), b"slow\n"
        if what == "big":
            n = self.dice.randrange(30000)
            return c.request("/%s/big?n=%d" % (kind, n)), letters(n)
        stream = c.request("/%s/%s" % (kind, what), "POST", end=False)
        body = self.dice.randbytes(self.dice.randrange(1, 10000))
        c.data(stream, body, end=True)
        if what == "echo":
            return stream, body
        return stream, b"%d %d\n" % (len(body), zlib.adler32(body))


class IT_06(WithClients):
    """1000 requests at once, a third of them cancelled."""

    def test_all_others_are_answered_right(self):
        self.start("--quiet", *RESETS_ALLOWED)
        dice = random.Random(6)
        answers = Answers(dice)
        connections = [self.connect() for _ in range(10)]
        asked = [(c, *answers.ask(c)) for _ in range(100) for c in connections]
        doomed = set(dice.sample(range(len(asked)), len(asked) // 3))
        for i in sorted(doomed, key=lambda _: dice.random()):
            asked[i][0].rst(asked[i][1])
            asked[i][0].poll()
        for i, (c, stream, body) in enumerate(asked):
            if i not in doomed:
                got = c.response(stream)
                self.assertEqual((got.status, got.reset, got.body), (200, None, body), i)
        for c in connections:
            c.close()
        self.check_counts(self.server.still(), len(asked) - len(doomed))
        self.server.stop()

    def check_counts(self, stats, answered):
        self.assertGreaterEqual(stats["2xx"], answered)
        self.assertEqual(stats["wrote_after_cancel"], 0)
        self.assertEqual(stats["handlers_begun"], stats["handlers_cleaned"])
        self.assertEqual(stats["handlers_begun"], stats["handlers_closed"])


# ---- every stage of a request, for AS-01 and AS-02 ---------------------------------------------------------------
#
# Each brings a connection to a stage, as far as the server has got by then, and returns the stream.

def in_the_preface(c, _):
    c.send(h2raw.PREFACE[:13])
    return 0


def in_a_frame(c, kind):
    stream = hanging(c, kind)
    c.send(h2raw.frame(h2raw.DATA, 0, stream, b"x" * 1000)[:500])
    return stream


def in_the_headers(c, kind):
    stream, raw = c.open(), h2raw.block(c.fields("/%s/hang" % kind))
    c.send_frame(h2raw.HEADERS, h2raw.END_STREAM, stream, raw[:10])
    return stream


def hanging(c, kind):
    return c.request("/%s/hang" % kind)


def in_a_body(c, kind):
    stream = c.request("/%s/upload" % kind, "POST", end=False)
    c.data(stream, b"x" * 5000)
    return stream


def in_an_echo(c, kind):
    stream = c.request("/%s/echo" % kind, "POST", end=False)
    c.data(stream, b"x" * 9000)
    c.poll()
    c.data(stream, b"y" * 9000)
    return stream


def unread_body(c, kind):
    stream = c.request("/%s/hang" % kind, "POST", end=False)
    c.data(stream, b"x" * 16000)
    return stream


def sleeping(c, kind):
    return c.request("/%s/slow?ms=1" % kind)


def writing(c, kind):
    c.window_update(0, 1 << 24)
    return c.request("/%s/big?n=300000" % kind)


def blocked(c, kind):
    c.send_settings({h2raw.INITIAL_WINDOW_SIZE: 0})
    return c.request("/%s/big" % kind)


def draining(c, kind):
    stream = c.request("/%s/stubborn?ms=3" % ("f" if kind == "u" else kind))
    c.settle()
    c.rst(stream)
    return stream


def sending_events(c, kind):
    return c.request("/%s/events?n=20" % ("f" if kind == "u" else kind))


def answered(c, kind):
    return c.request("/%s/hello" % kind)


STAGES = (in_the_headers, hanging, in_a_body, in_an_echo, unread_body, sleeping, writing, blocked, draining,
          sending_events, answered)


class WithStages(WithClients):
    """Rounds of random stages, which something ends at a random time."""

    rounds = 100

    def setUp(self):
        self.dice = random.Random(self.id())

    def pause(self):
        """From nothing to what the server needs for a few steps."""
        if self.dice.random() < 0.5:
            time.sleep(self.dice.random() * 0.002)

    def bring(self, c, stages):
        """To some stages, on as many streams."""
        return [self.dice.choice(stages)(c, self.dice.choice(KINDS)) for _ in range(self.dice.randrange(1, 8))]

    def check_rest(self, **how):
        stats = self.server.still(**how)
        for name in ("wrote_after_cancel", "leaks", "abandoned", "illegal"):
            self.assertEqual(stats[name], 0, name)
        self.assertEqual(stats["handlers_begun"], stats["handlers_closed"])
        self.assertEqual(stats["handlers_begun"], stats["handlers_cleaned"])
        with self.connect(**how) as c:
            self.assertEqual(c.get("/f/hello").body, b"hello\n")
        self.server.stop()


def client_hello():
    """The first bytes of a client's handshake."""
    out = ssl.MemoryBIO()
    tls = h2raw.tls_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return out.read()


class AS_01(WithStages):
    """Connections that are closed at every stage. What is wrong shows in a build with sanitizers."""

    def closing(self, stages, end):
        self.start("--quiet", *RESETS_ALLOWED)
        for _ in range(self.rounds):
            for stage in stages:
                c = self.connect()
                self.bring(c, STAGES[1:])
                stage(c, self.dice.choice(KINDS))
                self.pause()
                end(c)
        self.check_rest()

    def test_in_order(self):
        self.closing(STAGES + (in_a_frame,), h2raw.Conn.close)

    def test_by_a_reset_of_tcp(self):
        self.closing(STAGES + (in_a_frame,), h2raw.Conn.abort)

    def test_in_the_preface(self):
        self.start("--quiet")
        for _ in range(self.rounds):
            c = self.connect(preface=False)
            in_the_preface(c, None)
            self.pause()
            self.dice.choice((c.close, c.abort))()
        self.check_rest()

    def test_with_TLS(self):
        with tempfile.TemporaryDirectory() as directory:
            self.start("--quiet", "--tls", *certificate(directory), *RESETS_ALLOWED)
        tls = h2raw.tls_context()
        for _ in range(self.rounds // 4):
            for stage in STAGES:
                c = self.connect(tls=tls)
                self.bring(c, STAGES[1:])
                stage(c, self.dice.choice(KINDS))
                self.pause()
                self.dice.choice((c.close, c.abort))()
        self.check_rest(tls=tls)

    def test_in_a_handshake_of_TLS(self):
        with tempfile.TemporaryDirectory() as directory:
            self.start("--quiet", "--tls", *certificate(directory))
        hello = client_hello()
        for _ in range(self.rounds):
            c = self.connect(preface=False)
            c.send(self.dice.choice((hello, hello[:self.dice.randrange(len(hello))], b"\x16\x03" + self.dice.randbytes(50))))
            self.pause()
            self.dice.choice((c.close, c.abort))()
        self.check_rest(tls=h2raw.tls_context())

    def test_by_a_goaway(self):
        self.closing(STAGES, lambda c: (c.send_goaway(h2raw.INTERNAL_ERROR), self.pause(), c.close()))

    def test_by_what_is_no_http(self):
        self.closing(STAGES, lambda c: (c.send(b"\xff" * 50), self.pause(), c.close()))

    def test_half_closed_and_read_to_the_end(self):
        def half(c):
            c.socket.shutdown(socket.SHUT_WR)
            c.at_end()
            c.close()
        self.rounds = 10
        self.closing(STAGES, half)

    def test_by_a_shutdown_of_the_server(self):
        """Asked at any stage it ends with 0; what hangs is cancelled when its time has come."""
        servers, connections = [], []
        for _ in range(8):
            servers.append(self.start("--quiet", "--budget-ms", "4000", *RESETS_ALLOWED))
            connections += [self.connect() for _ in range(10)]
            for c in connections[-10:]:
                self.bring(c, STAGES)
            self.pause()
            self.server.terminate()
        for server in servers:
            server.check_end()


class AS_02(WithStages):
    """Streams that are closed at every stage, by either side."""

    def resetting(self, stages, *arguments):
        self.start("--quiet", *RESETS_ALLOWED, *arguments)
        for _ in range(self.rounds):
            c = self.connect()
            for stage in stages:
                streams = self.bring(c, STAGES[1:]) + [stage(c, self.dice.choice(KINDS))]
                self.pause()
                self.dice.shuffle(streams)
                for stream in streams:
                    c.rst(stream, self.dice.choice((h2raw.NO_ERROR, h2raw.CANCEL, h2raw.INTERNAL_ERROR)))
                if self.dice.random() < 0.3:
                    c.poll()
            c.close()
        self.check_rest()

    def test_by_the_client(self):
        self.resetting(STAGES[1:])

    def test_in_the_headers_which_ends_the_connection(self):
        self.resetting(STAGES[:1])

    def test_when_the_server_resets_them(self):
        """What the peer does wrong on a stream of its own is answered by a reset."""
        self.start("--quiet", *RESETS_ALLOWED)
        for _ in range(self.rounds):
            c = self.connect()
            for stream in self.bring(c, STAGES[1:]):
                self.pause()
                self.dice.choice((
                    lambda s: c.window_update(s, 0),
                    lambda s: c.window_update(s, 0x7fffffff),
                    lambda s: c.send_frame(h2raw.PRIORITY, 0, s, bytes(4)),
                    lambda s: c.data(s, b"after the end")))(stream)
            self.dice.choice((c.close, c.abort, lambda: (c.settle(), c.close())))()
        self.check_rest()

    def test_while_their_time_is_over(self):
        """Deadlines and resets at the same time."""
        self.start("--quiet", *RESETS_ALLOWED)
        for _ in range(self.rounds):
            c = self.connect()
            streams = [c.request("/%s/hang" % self.dice.choice(KINDS),
                                 headers=[("ebb-deadline-ms", str(self.dice.randrange(4)))]) for _ in range(20)]
            self.pause()
            for stream in self.dice.sample(streams, 10):
                c.rst(stream)
            if self.dice.random() < 0.5:
                c.poll(0.003)
            c.close()
        self.check_rest()


if __name__ == "__main__":
    run_tests(sys.argv[1], [name.replace("-", "_") for name in sys.argv[2:]])
