"""Attacks that are a matter of patience: connections that say or take as little as they can.

A Drip is one connection: it sends `opening`, then a piece of `drops` every `every_s`, and reads, or does not.
"""
import itertools
import re
import select
import socket
import struct
import time

from h2raw import (CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS,
                   INITIAL_WINDOW_SIZE, NO_ERROR, PING, PREFACE, SETTINGS, WINDOW_UPDATE, Decoder, block,
                   frame, literal, settings)

HELLO = PREFACE + frame(SETTINGS, 0, 0)
WHOLE = END_HEADERS | END_STREAM
SMALL_BUFFER = 4096


def head(path, method="GET"):
    return block([(":method", method), (":scheme", "http"), (":path", path), (":authority", "127.0.0.1")])


def word(n):
    return struct.pack(">I", n)


def by_byte(raw):
    return [raw[i:i + 1] for i in range(len(raw))]


def windows(n):
    return HELLO[:-9] + frame(SETTINGS, 0, 0, settings({INITIAL_WINDOW_SIZE: n}))


class Drip:
    def __init__(self, opening=b"", drops=(), every_s=0.05, reads=True):
        self.opening, self.drops, self.every_s, self.reads = opening, drops, every_s, reads

    def start(self, port):
        self.socket = socket.socket()
        if not self.reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.left, self.came, self.lasted_s = iter(self.drops), b"", None
        self.began = self.due = time.monotonic()
        self.say(self.opening)
        return self

    def end(self):
        self.lasted_s = time.monotonic() - self.began
        self.socket.close()

    def say(self, raw):
        try:
            self.socket.send(raw)
        except BlockingIOError:
            pass
        except OSError:
            self.end()

    def drip(self, now):
        if self.lasted_s is None and now >= self.due + self.every_s:
            self.due = now
            self.say(next(self.left, b""))

    def read(self):
        try:
            raw = self.socket.recv(65536)
        except OSError:
            raw = b""
        self.came += raw
        if not raw:
            self.end()

    def frames(self):
        """Those that came, as (type, payload)."""
        at = 0
        while len(self.came) >= at + 9:
            n = int.from_bytes(self.came[at:at + 3], "big")
            yield self.came[at + 3], self.came[at + 9:at + 9 + n]
            at += 9 + n

    def told(self):
        """What the server has said: statuses, and the codes of GOAWAY, each once."""
        if self.came.startswith(b"HTTP/1.1 "):
            return [status.decode() for status in re.findall(rb"HTTP/1\.1 (\d+)", self.came)]
        said, decoder = {}, Decoder()
        for kind, payload in self.frames():
            if kind == HEADERS:
                said[dict(decoder.decode(payload))[":status"]] = True
            elif kind == GOAWAY:
                said["GOAWAY %d" % int.from_bytes(payload[4:8], "big")] = True
        return list(said)


def run(port, drips, seconds):
    """All at once, until each that listens has been ended by the server, or the time is over."""
    for drip in drips:
        drip.start(port)
    until = time.monotonic() + seconds
    while (now := time.monotonic()) < until and any(d.lasted_s is None for d in drips if d.reads):
        live = {d.socket: d for d in drips if d.lasted_s is None}
        for s in select.select([s for s, d in live.items() if d.reads], [], [], 0.01)[0]:
            live[s].read()
        for drip in drips:
            drip.drip(now)


def leave(drips):
    for drip in drips:
        if drip.lasted_s is None:
            drip.socket.close()


GET_1 = b"GET /p/hello HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST_1 = b"POST /f/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
BIG_1 = b"GET /f/big?n=100000000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
BIG = frame(HEADERS, WHOLE, 1, head("/f/big?n=100000000"))
OPEN = frame(HEADERS, END_HEADERS, 1, head("/f/upload", "POST"))


def endless(piece):
    return itertools.repeat(piece)


class Slow:
    """`by`: the limit that ends it; `told`: what the server says; `then_s`: how long it may go on after that."""

    def __init__(self, by, drip, *told, then_s=0):
        self.by, self.drip, self.told, self.then_s = by, drip, list(told), then_s


CALM, BYE = "GOAWAY %d" % ENHANCE_YOUR_CALM, "GOAWAY %d" % NO_ERROR
SLOW = {
    "says nothing at all": Slow("header_ns", lambda: Drip()),
    "HTTP/1: a head byte by byte": Slow("header_ns", lambda: Drip(b"", by_byte(GET_1 * 10)), "408"),
    "HTTP/1: fields without an end": Slow("header_ns", lambda: Drip(GET_1, endless(b"x: y\r\n")), "408"),
    "HTTP/1: a second head that stops": Slow("header_ns", lambda: Drip(GET_1 + b"\r\n" + GET_1), "200", "408"),
    "HTTP/1: a body that stops": Slow("body_ns", lambda: Drip(POST_1 + b"some"), "408"),
    "HTTP/1: asks and does not read": Slow("write_ns", lambda: Drip(BIG_1, reads=False)),
    "HTTP/1: comes and asks nothing more": Slow("idle_ns", lambda: Drip(GET_1 + b"\r\n"), "200"),
    "a preface byte by byte": Slow("header_ns", lambda: Drip(b"", by_byte(PREFACE))),
    "a preface and no more": Slow("idle_ns", lambda: Drip(HELLO), BYE),
    "a PING now and then": Slow("idle_ns", lambda: Drip(HELLO, endless(frame(PING, 0, 0, b"12345678"))), BYE),
    "HEADERS byte by byte": Slow("header_ns", lambda: Drip(
        HELLO, by_byte(frame(HEADERS, WHOLE, 1, head("/p/hello") + literal("x", "y" * 1000)))), CALM),
    "CONTINUATION field by field": Slow("header_ns", lambda: Drip(
        HELLO + frame(HEADERS, END_STREAM, 1, head("/p/hello")),
        [frame(CONTINUATION, 0, 1, literal("x", "y"))] * 7), CALM),
    "HEADERS without an end": Slow("header_ns", lambda: Drip(
        HELLO + frame(HEADERS, END_STREAM, 1, head("/p/hello"))), CALM),
    "half of a frame's head": Slow("idle_ns", lambda: Drip(HELLO + BIG[:5]), BYE),
    "a body that stops": Slow("body_ns", lambda: Drip(HELLO + OPEN + frame(DATA, 0, 1, b"some")), "408", BYE,
                              then_s=2),
    "a window of 0": Slow("write_ns", lambda: Drip(windows(0) + BIG), "200", CALM),
    "a window that is never opened again": Slow("write_ns", lambda: Drip(HELLO + BIG), "200", CALM),
    "100 streams with a window of 0": Slow("write_ns", lambda: Drip(
        windows(0) + b"".join(frame(HEADERS, WHOLE, 1 + 2 * i, head("/p/big?n=100000")) for i in range(100))),
        "200", CALM),
    "does not read": Slow("write_ns", lambda: Drip(
        windows((1 << 31) - 1) + frame(WINDOW_UPDATE, 0, 0, word((1 << 31) - 65536)) + BIG, reads=False)),
}

# Those that do a little are not ended for that; but they hold only what is theirs.
LITTLE = {
    "HTTP/1: a body byte by byte": lambda: Drip(POST_1, endless(b"x")),
    "a body byte by byte": lambda: Drip(HELLO + OPEN, endless(frame(DATA, 0, 1, b"x"))),
    "a window byte by byte": lambda: Drip(windows(0) + BIG, endless(frame(WINDOW_UPDATE, 0, 1, word(1)))),
}
