"""Attacks that are a matter of speed, as scripts for http_attacker: a greeting, and a turn that it repeats.

A turn's frames may be on streams of its own, Turn(0), Turn(2), ..., or of those of the turn before it.
"""
import collections
import struct

from h2raw import (CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, FRAME_SIZE_ERROR, GOAWAY,
                   HEADERS, INITIAL_WINDOW_SIZE, NO_ERROR, PADDED, PING, PREFACE, PRIORITY, PROTOCOL_ERROR, RST_STREAM,
                   SETTINGS, STREAM_CLOSED, WINDOW_UPDATE, block, frame, indexed, integer, literal, settings)

Turn = collections.namedtuple("Turn", "plus")
HELLO = PREFACE + frame(SETTINGS, 0, 0)
LARGEST_WINDOW = (1 << 31) - 1
UNKNOWN = 0xfa
WHOLE = END_HEADERS | END_STREAM
BATCH = 50  # streams of a turn that waits for the server


def head(path, method="GET", *fields):
    return block([(":method", method), (":scheme", "http"), (":path", path), (":authority", "127.0.0.1"), *fields])


def word(n):
    return struct.pack(">I", n)


def script(greeting, turn=(), step=2):
    """As http_attacker reads it. `turn` is a list of the arguments of h2raw.frame."""
    raw, marks = b"", b""
    for kind, flags, stream, payload in turn:
        if isinstance(stream, Turn):
            marks += struct.pack(">Ii", len(raw) + 5, stream.plus)
        raw += frame(kind, flags, 0 if isinstance(stream, Turn) else stream, payload)
    return struct.pack(">IIII", len(greeting), len(raw), len(marks) // 8, step) + marks + greeting + raw


class Flood:
    """Frames. `ends`: with which codes the server ends its connections; none: it may serve it. `options` are those of
    http_attacker."""

    def __init__(self, greeting, turn=(), step=2, ends=(ENHANCE_YOUR_CALM,), options=("-r",)):
        self.script = script(greeting, turn, step)
        self.ends, self.options = ends, options

    @property
    def is_deaf(self):
        """It does not hear why it is ended, or does not care."""
        return bool({"-d", "-h"} & set(self.options))


class Flood1(Flood):
    """Lines of HTTP/1, whatever comes back. `ends`: whether the server ends it."""

    def __init__(self, greeting, turn, ends=True, options=("-r",)):
        super().__init__(b"", (), ends=ends, options=(*options, "-1"))
        self.script = struct.pack(">IIII", len(greeting), len(turn), 0, 0) + greeting + turn


def open_then(opening, kill, path="/f/hang", method="GET", window=65535):
    """Live work that is ended, in turns: those of the last turn by `kill`, once the server has begun them."""
    greeting = PREFACE + frame(SETTINGS, 0, 0, settings({INITIAL_WINDOW_SIZE: window}))
    greeting += b"".join(frame(HEADERS, opening, 1 + 2 * i, head(path, method)) for i in range(BATCH))
    turn = [(kind, flags, Turn(2 * i - 2 * BATCH), payload) for i in range(BATCH) for kind, flags, payload in kill]
    turn += [(HEADERS, opening, Turn(2 * i), head(path, method)) for i in range(BATCH)]
    return {"greeting": greeting, "turn": turn + [(PING, 0, 0, b"are they")], "step": 2 * BATCH}


def live(opening, *kill, path="/f/hang", method="GET", window=65535, **more):
    return Flood(**open_then(opening, kill, path, method, window), options=("-r", "-w"), **more)


def filler(n):
    """A piece of a header block of about n bytes, which is whole fields."""
    return literal("x-filler", "a" * max(n - 12, 0))


BIG = literal("x-bomb", "b" * 3900, index=True)  # fills the table of 4096 bytes

HANGS = frame(HEADERS, WHOLE, 1, head("/f/hang"))
UPLOAD = frame(HEADERS, END_HEADERS, 1, head("/f/upload", "POST"))
ANSWERED = frame(HEADERS, WHOLE, 1, head("/p/hello"))
LEAVES = frame(GOAWAY, 0, 0, word(0) + word(NO_ERROR))
OVERFLOWED = frame(HEADERS, END_HEADERS, 1, head("/f/hang", "POST")) + frame(WINDOW_UPDATE, 0, 1, word(LARGEST_WINDOW))
STALLED = PREFACE + frame(SETTINGS, 0, 0, settings({INITIAL_WINDOW_SIZE: 0})) + b"".join(
    frame(HEADERS, WHOLE, 1 + 2 * i, head("/f/big")) for i in range(2 * BATCH))
COOKIE = 32  # its index in the static table
BLOCK = frame(HEADERS, END_STREAM, 1, head("/p/hello"))
SETTING = settings({INITIAL_WINDOW_SIZE: 65535})
PINGS = [(PING, 0, 0, b"pingpong")]
CANCELS = (RST_STREAM, 0, word(CANCEL))

GET_1 = b"GET /p/hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CHUNKS_1 = b"POST /f/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"

# Those of a group run at once.
FLOODS = {
    # CVE-2023-44487; and when the server has begun the work.
    "rapid_reset": {
        "at once": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), head("/f/hang")), (RST_STREAM, 0, Turn(0), word(CANCEL))]),
    },
    "rapid_reset_of_live_work": {
        "once it has begun": live(WHOLE, CANCELS),
    },
    "live_work_and_leave": {
        "once it has begun": Flood(HELLO + b"".join(
            frame(HEADERS, WHOLE, 1 + 2 * i, head("/f/hang")) for i in range(2 * BATCH)),
            [(PING, 0, 0, b"are they")], ends=(), options=("-r", "-w", "-x", "-k", "1")),
    },
    "work_that_drains_slowly": {
        "once it has begun": live(WHOLE, CANCELS, path="/f/stubborn?ms=1000"),
    },
    # As much as the windows allow, on each of many connections.
    "bodies_that_nobody_reads": {
        "held": Flood(HELLO + b"".join(frame(HEADERS, END_HEADERS, stream, head("/f/hang", "POST")) +
                                       frame(DATA, 0, stream, bytes(16000)) for stream in (1, 3, 5, 7)),
                      ends=(), options=("-r", "-c", "400")),
    },
    # CVE-2025-8671: the server resets. For some of this it ends the connection at once.
    "made_you_reset": {
        "a window of 0": live(WHOLE, (WINDOW_UPDATE, 0, word(0)), ends=(ENHANCE_YOUR_CALM, PROTOCOL_ERROR)),
        "a window that overflows": live(WHOLE, (WINDOW_UPDATE, 0, word(LARGEST_WINDOW))),
        "DATA after the end": live(WHOLE, (DATA, 0, b"more"), ends=(ENHANCE_YOUR_CALM, STREAM_CLOSED)),
        "HEADERS after the end": live(WHOLE, (HEADERS, END_HEADERS, head("/f/hang")),
                                      ends=(ENHANCE_YOUR_CALM, STREAM_CLOSED)),
        "PRIORITY of 4 bytes": live(WHOLE, (PRIORITY, 0, b"four"), ends=(ENHANCE_YOUR_CALM, FRAME_SIZE_ERROR)),
        "trailers without an end": live(END_HEADERS, (HEADERS, END_HEADERS, block([("x", "y")])), method="POST"),
        "a body too long": Flood(HELLO, [
            (HEADERS, END_HEADERS, Turn(0), head("/f/hang", "POST", ("content-length", "1"))),
            (DATA, 0, Turn(0), b"more than one")]),
        "a malformed request": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), head("/f/hang", "GET", ("Upper", "case")))]),
    },
    "continuation": {
        "empty": Flood(HELLO + BLOCK, [(CONTINUATION, 0, 1, b"")]),
        "small": Flood(HELLO + BLOCK, [(CONTINUATION, 0, 1, filler(16))]),
        "large": Flood(HELLO + BLOCK, [(CONTINUATION, 0, 1, filler(16000))]),
    },
    "settings": {
        "read": Flood(HELLO, [(SETTINGS, 0, 0, SETTING)]),
        "not read": Flood(HELLO, [(SETTINGS, 0, 0, SETTING)], options=("-r", "-d")),
        "of 2000 values": Flood(HELLO + HANGS, [(SETTINGS, 0, 0, SETTING * 2000)]),
    },
    "ping": {
        "read": Flood(HELLO, PINGS),
        "not read": Flood(HELLO, PINGS, options=("-r", "-d")),
        "holds on": Flood(HELLO, PINGS, options=("-r", "-h", "-c", "20")),
    },
    "frames_that_ask_for_nothing": {
        "empty DATA": Flood(HELLO + UPLOAD, [(DATA, 0, 1, b"")]),
        "DATA of padding": Flood(HELLO + UPLOAD, [(DATA, PADDED, 1, b"\0")]),
        "empty HEADERS": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), b"")]),
        "PRIORITY": Flood(HELLO, [(PRIORITY, 0, Turn(0), word(0) + b"\x10")]),
        "of unknown types": Flood(HELLO, [(UNKNOWN, 0, 0, b"")]),
        "WINDOW_UPDATE of a closed stream": Flood(HELLO + ANSWERED, [(WINDOW_UPDATE, 0, 1, word(1))]),
        "WINDOW_UPDATE of the connection": Flood(HELLO, [(WINDOW_UPDATE, 0, 0, word(1))]),
        "RST_STREAM of a closed stream": Flood(HELLO + ANSWERED, [(RST_STREAM, 0, 1, word(CANCEL))]),
    },
    # What HPACK makes of few bytes.
    "hpack": {
        "a bomb": Flood(HELLO + frame(HEADERS, WHOLE, 1, head("/p/hello") + BIG),
                        [(HEADERS, WHOLE, Turn(0), head("/p/hello") + indexed(62) * 4000)]),
        "fields of one byte": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), head("/p/hello") + indexed(19) * 15000)]),
        "a bomb in trailers": Flood(HELLO + frame(HEADERS, WHOLE, 1, head("/p/hello") + BIG),
                                    [(HEADERS, END_HEADERS, Turn(0), head("/f/upload", "POST")),
                                     (HEADERS, WHOLE, Turn(0), indexed(62) * 4000)]),
    },
    # After the first HEADERS of the response. In small windows the server has sent nothing else.
    "late_reset": {
        "once the response has begun": live(WHOLE, CANCELS, path="/f/big?n=1000000"),
        "in windows of 0": live(WHOLE, CANCELS, path="/f/big?n=1000000", window=0),
    },
    # Responses that may not be sent, on ten connections; and windows that open by a byte.
    "windows_of_0": {
        "held": Flood(STALLED, ends=(), options=("-r", "-c", "10")),
        "by a byte": Flood(STALLED, [(WINDOW_UPDATE, 0, 1 + 2 * i, word(1)) for i in range(2 * BATCH)], ends=()),
    },
    "closed_streams": {
        "DATA": Flood(HELLO + ANSWERED, [(DATA, 0, 1, bytes(1000))], ends=(ENHANCE_YOUR_CALM, STREAM_CLOSED)),
        "DATA of a stream that was reset": Flood(HELLO + HANGS + frame(RST_STREAM, 0, 1, word(CANCEL)),
                                                 [(DATA, 0, 1, b"x")], ends=(ENHANCE_YOUR_CALM, STREAM_CLOSED)),
        "HEADERS": Flood(HELLO + ANSWERED, [(HEADERS, WHOLE, 1, head("/p/hello"))],
                         ends=(ENHANCE_YOUR_CALM, STREAM_CLOSED)),
        "DATA of a stream that the server has reset": Flood(
            HELLO + OVERFLOWED, [(DATA, 0, 1, b"x")], ends=(ENHANCE_YOUR_CALM, STREAM_CLOSED)),
    },
    "cookie_crumbs": {
        "3000": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), head("/p/hello") + literal(COOKIE, "a=") * 3000)]),
        "3000 of one byte": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), head("/p/hello") + indexed(COOKIE) * 3000)]),
    },
    # By a client that has said that it will open no more streams, and one that was told to.
    "after_goaway": {
        "requests": Flood(HELLO + HANGS + LEAVES, [(HEADERS, WHOLE, Turn(0), head("/p/hello"))]),
        "DATA": Flood(HELLO + HANGS + LEAVES, [(DATA, 0, Turn(0), b"x")],
                      ends=(ENHANCE_YOUR_CALM, PROTOCOL_ERROR)),
        "GOAWAY": Flood(HELLO + HANGS, [(GOAWAY, 0, 0, word(0) + word(NO_ERROR))]),
        "of the server": Flood(HELLO, PINGS, options=("-r", "-h")),
    },
    "http_1": {
        "fields without an end": Flood1(GET_1[:-2], b"x: y\r\n"),
        "one line without an end": Flood1(b"GET /", b"a" * 1000),
        "extensions without an end": Flood1(CHUNKS_1 + b"1", b";x=" + b"y" * 1000),
        "trailers without an end": Flood1(CHUNKS_1 + b"0\r\n", b"x: y\r\n"),
        "empty lines": Flood1(b"", b"\r\n" * 100),
        "answers that it does not read": Flood1(b"", GET_1, ends=False, options=("-r", "-d")),
    },
    # ALLOWED: all of this is served, and bounded by its turn alone.
    "data_of_one_byte": {
        "HTTP/2": Flood(HELLO + UPLOAD, [(DATA, 0, 1, b"x")], ends=()),
    },
    "chunks_of_one_byte": {
        "HTTP/1": Flood1(CHUNKS_1, b"1\r\nx\r\n", ends=False),
    },
    "large_literals": {
        "HTTP/2": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), head("/p/hello") + filler(15000))], ends=()),
    },
    "sizes_of_the_table": {
        "HTTP/2": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), integer(0, 5, 0x20) * 1000 + head("/p/hello"))], ends=()),
    },
    "requests_as_fast_as_it_can": {
        "HTTP/1": Flood1(b"", GET_1, ends=False),
        "HTTP/2": Flood(HELLO, [(HEADERS, WHOLE, Turn(0), head("/p/hello"))], ends=()),
    },
}
ALLOWED = ["data_of_one_byte", "chunks_of_one_byte", "large_literals", "sizes_of_the_table",
           "requests_as_fast_as_it_can"]
