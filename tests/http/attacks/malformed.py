"""What is not HTTP/2, case by case, with what RFC 9113 says that a server does about it.

Codes are those of a stream's error or of the connection's; a server may treat the first as the second (5.4.2), and
may answer a malformed request with a status of 400 before it resets its stream (8.1.1).
"""
import random
import socket
import struct

import h2raw
from h2raw import (ACK, CANCEL, COMPRESSION_ERROR, CONTINUATION, DATA, ENABLE_PUSH, END_HEADERS, END_STREAM,
                   ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, GOAWAY, HEADER_TABLE_SIZE, HEADERS,
                   INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, NO_ERROR, PADDED, PING, PREFACE, PRIORITY, PRIORITY_FLAG,
                   PROTOCOL_ERROR, PUSH_PROMISE, RST_STREAM, SETTINGS, STREAM_CLOSED, WINDOW_UPDATE,
                   block, frame, indexed, integer, literal, settings)

PATIENCE_S = 5
LARGEST_WINDOW = (1 << 31) - 1
WHOLE = END_HEADERS | END_STREAM


def head(path="/p/hello", method="GET", *fields):
    return block([(":method", method), (":scheme", "http"), (":path", path), (":authority", "127.0.0.1"), *fields])


def get(stream=1, path="/p/hello", flags=WHOLE):
    return frame(HEADERS, flags, stream, head(path))


def post(stream=1, path="/f/upload", *fields):
    """A request whose body is to come."""
    return frame(HEADERS, END_HEADERS, stream, head(path, "POST", *fields))


def request(*fields):
    """A whole one of these fields alone."""
    return frame(HEADERS, WHOLE, 1, block(fields))


def raw_request(raw):
    return frame(HEADERS, WHOLE, 1, raw)


def word(n):
    return struct.pack(">I", n)


METHOD, SCHEME, PATH = (":method", "GET"), (":scheme", "http"), (":path", "/p/hello")
AUTHORITY = (":authority", "127.0.0.1")

# The connection's errors: it ends with a GOAWAY of one of the codes; None: it need not say anything.
CONNECTION = {
    "a first frame that is not SETTINGS": ((PROTOCOL_ERROR,), PREFACE + frame(PING, 0, 0, b"12345678")),

    "DATA larger than the limit": ((FRAME_SIZE_ERROR,), post() + frame(DATA, 0, 1, bytes(16385))),
    "HEADERS larger than the limit": ((FRAME_SIZE_ERROR,), frame(HEADERS, WHOLE, 1, bytes(16385))),
    "an unknown frame larger than the limit": ((FRAME_SIZE_ERROR,), frame(0xfa, 0, 0, bytes(16385))),
    "a length of 2^24 - 1": ((FRAME_SIZE_ERROR,), b"\xff\xff\xff" + bytes([PING, 0]) + word(0)),

    "DATA on stream 0": ((PROTOCOL_ERROR,), frame(DATA, 0, 0, b"x")),
    "DATA on an idle stream": ((PROTOCOL_ERROR,), frame(DATA, 0, 1, b"x")),
    "DATA with more padding than payload": ((PROTOCOL_ERROR,), post() + frame(DATA, PADDED, 1, b"\x05abc")),
    "padded DATA without a pad length": ((FRAME_SIZE_ERROR, PROTOCOL_ERROR), post() + frame(DATA, PADDED, 1)),

    "HEADERS on stream 0": ((PROTOCOL_ERROR,), frame(HEADERS, WHOLE, 0, head())),
    "HEADERS on an even stream": ((PROTOCOL_ERROR,), get(2)),
    "HEADERS with more padding than payload": ((PROTOCOL_ERROR,), frame(HEADERS, WHOLE | PADDED, 1, b"\xff" + head())),
    "padded HEADERS without a pad length": ((FRAME_SIZE_ERROR, PROTOCOL_ERROR), frame(HEADERS, WHOLE | PADDED, 1)),
    "HEADERS too short for their priority": ((FRAME_SIZE_ERROR, PROTOCOL_ERROR),
                                             frame(HEADERS, WHOLE | PRIORITY_FLAG, 1, b"1234")),
    "another frame inside a header block": ((PROTOCOL_ERROR,), get(flags=END_STREAM) + frame(PING, 0, 0, b"12345678")),
    "an unknown frame inside a header block": ((PROTOCOL_ERROR,), get(flags=END_STREAM) + frame(0xfa, 0, 1)),
    "another stream's HEADERS inside a header block": ((PROTOCOL_ERROR,), get(flags=END_STREAM) + get(3)),
    "CONTINUATION of another stream": ((PROTOCOL_ERROR,), get(flags=END_STREAM) + frame(CONTINUATION, END_HEADERS, 3)),
    "CONTINUATION without HEADERS": ((PROTOCOL_ERROR,), frame(CONTINUATION, END_HEADERS, 1, head())),
    "CONTINUATION after the end of the block": ((PROTOCOL_ERROR,), get() + frame(CONTINUATION, END_HEADERS, 1)),
    "CONTINUATION on stream 0": ((PROTOCOL_ERROR,), frame(CONTINUATION, END_HEADERS, 0)),

    "PRIORITY on stream 0": ((PROTOCOL_ERROR,), frame(PRIORITY, 0, 0, word(1) + b"\x10")),
    "RST_STREAM on stream 0": ((PROTOCOL_ERROR,), frame(RST_STREAM, 0, 0, word(CANCEL))),
    "RST_STREAM of an idle stream": ((PROTOCOL_ERROR,), frame(RST_STREAM, 0, 1, word(CANCEL))),
    "RST_STREAM of 3 bytes": ((FRAME_SIZE_ERROR,), get(1, "/f/hang") + frame(RST_STREAM, 0, 1, b"123")),
    "RST_STREAM of 5 bytes": ((FRAME_SIZE_ERROR,), get(1, "/f/hang") + frame(RST_STREAM, 0, 1, b"12345")),

    "SETTINGS on a stream": ((PROTOCOL_ERROR,), frame(SETTINGS, 0, 1)),
    "SETTINGS of 5 bytes": ((FRAME_SIZE_ERROR,), frame(SETTINGS, 0, 0, b"12345")),
    "an acknowledgement of SETTINGS with bytes": ((FRAME_SIZE_ERROR,), frame(SETTINGS, ACK, 0, settings({1: 1}))),
    "ENABLE_PUSH of 2": ((PROTOCOL_ERROR,), frame(SETTINGS, 0, 0, settings({ENABLE_PUSH: 2}))),
    "INITIAL_WINDOW_SIZE of 2^31": ((FLOW_CONTROL_ERROR,),
        frame(SETTINGS, 0, 0, settings({INITIAL_WINDOW_SIZE: 1 << 31}))),
    "MAX_FRAME_SIZE of 16383": ((PROTOCOL_ERROR,), frame(SETTINGS, 0, 0, settings({MAX_FRAME_SIZE: 16383}))),
    "MAX_FRAME_SIZE of 2^24": ((PROTOCOL_ERROR,), frame(SETTINGS, 0, 0, settings({MAX_FRAME_SIZE: 1 << 24}))),

    "PUSH_PROMISE of a client": ((PROTOCOL_ERROR,),
        get(1, "/f/hang") + frame(PUSH_PROMISE, END_HEADERS, 1, word(2) + head())),
    "PING on a stream": ((PROTOCOL_ERROR,), frame(PING, 0, 1, b"12345678")),
    "PING of 7 bytes": ((FRAME_SIZE_ERROR,), frame(PING, 0, 0, b"1234567")),
    "PING of 9 bytes": ((FRAME_SIZE_ERROR,), frame(PING, 0, 0, b"123456789")),
    "GOAWAY on a stream": ((PROTOCOL_ERROR,), frame(GOAWAY, 0, 1, word(0) + word(0))),
    "GOAWAY for a stream that we have not opened": ((PROTOCOL_ERROR,), frame(GOAWAY, 0, 0, word(1) + word(0))),
    "GOAWAY of 7 bytes": ((FRAME_SIZE_ERROR,), frame(GOAWAY, 0, 0, b"1234567")),
    "GOAWAY with an unknown code and 16,000 bytes of garbage": ((NO_ERROR, None),
        frame(GOAWAY, 0, 0, word(0) + word(0xffffffff) + bytes(range(250)) * 64)),

    "WINDOW_UPDATE of 3 bytes": ((FRAME_SIZE_ERROR,), frame(WINDOW_UPDATE, 0, 0, b"123")),
    "WINDOW_UPDATE of 0 for the connection": ((PROTOCOL_ERROR,), frame(WINDOW_UPDATE, 0, 0, word(0))),
    "WINDOW_UPDATE of an idle stream": ((PROTOCOL_ERROR,), frame(WINDOW_UPDATE, 0, 1, word(1))),
    "a window of the connection past 2^31 - 1": ((FLOW_CONTROL_ERROR,),
        frame(WINDOW_UPDATE, 0, 0, word(LARGEST_WINDOW))),

    "HEADERS on a stream below the last": ((PROTOCOL_ERROR,), get(5) + get(1)),
    "DATA on a stream below the last": ((STREAM_CLOSED,), get(5) + frame(DATA, 0, 1, b"x")),
    "DATA on a closed stream": ((STREAM_CLOSED,), get(1, "/f/hang") + frame(RST_STREAM, 0, 1, word(CANCEL)) +
                                frame(DATA, 0, 1, b"x") * 10),
    "HEADERS on a closed stream": ((STREAM_CLOSED,),
        get(1, "/f/hang") + frame(RST_STREAM, 0, 1, word(CANCEL)) + get(1)),

    "index 0": ((COMPRESSION_ERROR,), raw_request(head() + indexed(0))),
    "an index past the table": ((COMPRESSION_ERROR,), raw_request(head() + indexed(62))),
    "an index of 2^40": ((COMPRESSION_ERROR,), raw_request(head() + indexed(1 << 40))),
    "an integer without an end": ((COMPRESSION_ERROR,), raw_request(head() + b"\xff" * 100)),
    "a name by an index past the table": ((COMPRESSION_ERROR,), raw_request(head() + literal(99, "x"))),
    "a string longer than its block": ((COMPRESSION_ERROR,), raw_request(head() + b"\0\x7f\x20abc")),
    "a block that ends in a field": ((COMPRESSION_ERROR,), raw_request(head() + b"\0\x03abc")),
    "a Huffman string with the end code in it": ((COMPRESSION_ERROR,),
        raw_request(head() + b"\0\x84\xff\xff\xff\xff\x01x")),
    "a Huffman string with 8 bits of padding": ((COMPRESSION_ERROR,), raw_request(head() + b"\0\x82\x1f\xff\x01x")),
    "a Huffman string padded with zeros": ((COMPRESSION_ERROR,), raw_request(head() + b"\0\x81\x18\x01x")),
    "a table larger than was allowed": ((COMPRESSION_ERROR,), raw_request(integer(4097, 5, 0x20) + head())),
    "a table size in the middle of a block": ((COMPRESSION_ERROR,), raw_request(head() + integer(0, 5, 0x20))),

    "a header block past the limit": ((ENHANCE_YOUR_CALM,),
        get(flags=END_STREAM) + b"".join(frame(CONTINUATION, 0, 1, literal("x", "a" * 16000)) for _ in range(4))),
    "a header list of 16 MB": ((ENHANCE_YOUR_CALM,),
        raw_request(head() + literal("x-bomb", "b" * 3900, index=True)) +
        frame(HEADERS, WHOLE, 3, head() + indexed(62) * 4000)),
}

# A stream's errors: the stream is reset, and the connection goes on; or it is ended too. All are on stream 1.
# An overflow by INITIAL_WINDOW_SIZE should be the connection's error (6.9.2), but nghttp2 resets the stream alone.
STREAM = {
    "INITIAL_WINDOW_SIZE that overflows a stream's window": ((FLOW_CONTROL_ERROR,),
        get(1, "/f/hang") + frame(WINDOW_UPDATE, 0, 1, word(LARGEST_WINDOW - 65535)) +
        frame(SETTINGS, 0, 0, settings({INITIAL_WINDOW_SIZE: LARGEST_WINDOW}))),
    "DATA after the end of the stream": ((STREAM_CLOSED,), get(1, "/f/hang") + frame(DATA, 0, 1, b"x")),
    "HEADERS after the end of the stream": ((STREAM_CLOSED,), get(1, "/f/hang") + get(1)),
    "PRIORITY of 4 bytes": ((FRAME_SIZE_ERROR,), get(1, "/f/hang") + frame(PRIORITY, 0, 1, b"1234")),
    "WINDOW_UPDATE of 0": ((PROTOCOL_ERROR,), get(1, "/f/hang") + frame(WINDOW_UPDATE, 0, 1, word(0))),
    "a window past 2^31 - 1": ((FLOW_CONTROL_ERROR,),
        get(1, "/f/hang") + frame(WINDOW_UPDATE, 0, 1, word(LARGEST_WINDOW))),
    "more than the window": ((FLOW_CONTROL_ERROR,), post(1, "/f/hang") + frame(DATA, 0, 1, bytes(16384)) * 5),
    "trailers that don't end the stream": ((PROTOCOL_ERROR,),
        post() + frame(HEADERS, END_HEADERS, 1, block([("x", "y")]))),
    "a pseudo field in trailers": ((PROTOCOL_ERROR,), post() + frame(HEADERS, WHOLE, 1, block([PATH]))),
    "more of a body than its content-length": ((PROTOCOL_ERROR,),
        post(1, "/f/upload", ("content-length", "3")) + frame(DATA, END_STREAM, 1, b"four")),
    "less of a body than its content-length": ((PROTOCOL_ERROR,),
        post(1, "/f/upload", ("content-length", "5")) + frame(DATA, END_STREAM, 1, b"four")),
    "no body with a content-length of 5": ((PROTOCOL_ERROR,),
        frame(HEADERS, WHOLE, 1, head("/f/upload", "POST", ("content-length", "5")))),
}

# Authorities that are none; of HTTP/1 too.
AUTHORITIES = ["user@a", "user:secret@a", "a,b", "[::1", "[::1]x", "::1", "[a]", "a:b", "a:65536", "a:-1", "a:1:2", ":80",
               "a%2", "a\\b"]

# Requests that are malformed (8.1.1): PROTOCOL_ERROR for their stream, or 400.
MALFORMED = {
    "no fields at all": request(),
    "no :method": request(SCHEME, PATH, AUTHORITY),
    "no :scheme": request(METHOD, PATH, AUTHORITY),
    "no :path": request(METHOD, SCHEME, AUTHORITY),
    "two :path": request(METHOD, SCHEME, PATH, PATH, AUTHORITY),
    "two :method": request(METHOD, METHOD, SCHEME, PATH, AUTHORITY),
    "an empty :path": request(METHOD, SCHEME, (":path", ""), AUTHORITY),
    "a :path without a slash": request(METHOD, SCHEME, (":path", "p/hello"), AUTHORITY),
    "an unknown pseudo field": request(METHOD, SCHEME, PATH, (":what", "is this"), AUTHORITY),
    "a response's pseudo field": request(METHOD, SCHEME, PATH, (":status", "200"), AUTHORITY),
    "a pseudo field after others": request(METHOD, SCHEME, ("x", "y"), PATH, AUTHORITY),
    "a name in upper case": request(METHOD, SCHEME, PATH, AUTHORITY, ("X-Upper", "y")),
    "an empty name": request(METHOD, SCHEME, PATH, AUTHORITY, ("", "y")),
    "a name with a space": request(METHOD, SCHEME, PATH, AUTHORITY, ("x y", "z")),
    "a name with a colon": request(METHOD, SCHEME, PATH, AUTHORITY, ("x:y", "z")),
    "a name with a line feed": request(METHOD, SCHEME, PATH, AUTHORITY, ("x\ny", "z")),
    "a value with a line feed": request(METHOD, SCHEME, PATH, AUTHORITY, ("x", "y\nz")),
    "a value with a carriage return": request(METHOD, SCHEME, PATH, AUTHORITY, ("x", "y\rz")),
    "a value with a 0": request(METHOD, SCHEME, PATH, AUTHORITY, ("x", "y\0z")),
    "a value that starts with a space": request(METHOD, SCHEME, PATH, AUTHORITY, ("x", " y")),
    "a value that ends with a tab": request(METHOD, SCHEME, PATH, AUTHORITY, ("x", "y\t")),
    "connection": request(METHOD, SCHEME, PATH, AUTHORITY, ("connection", "close")),
    "keep-alive": request(METHOD, SCHEME, PATH, AUTHORITY, ("keep-alive", "1")),
    "proxy-connection": request(METHOD, SCHEME, PATH, AUTHORITY, ("proxy-connection", "keep-alive")),
    "transfer-encoding": request(METHOD, SCHEME, PATH, AUTHORITY, ("transfer-encoding", "chunked")),
    "upgrade": request(METHOD, SCHEME, PATH, AUTHORITY, ("upgrade", "h2c")),
    "te that is not trailers": request(METHOD, SCHEME, PATH, AUTHORITY, ("te", "gzip")),
    "a content-length that is no number": request(METHOD, SCHEME, PATH, AUTHORITY, ("content-length", "many")),
    "a negative content-length": request(METHOD, SCHEME, PATH, AUTHORITY, ("content-length", "-1")),
    "a content-length past 2^64": request(METHOD, SCHEME, PATH, AUTHORITY, ("content-length", "9" * 30)),
    "two content-lengths": request(METHOD, SCHEME, PATH, AUTHORITY, ("content-length", "0"), ("content-length", "1")),
    "a method with a space": request((":method", "GE T"), SCHEME, PATH, AUTHORITY),
    "an empty method": request((":method", ""), SCHEME, PATH, AUTHORITY),
    "a path with a space": request(METHOD, SCHEME, (":path", "/p/hello world"), AUTHORITY),
    "a path with a line feed": request(METHOD, SCHEME, (":path", "/p/hello\nx"), AUTHORITY),
    "a scheme with a slash": request(METHOD, (":scheme", "ht/tp"), PATH, AUTHORITY),
    "an authority with a space": request(METHOD, SCHEME, PATH, (":authority", "a b")),
    **{"the authority '%s'" % wrong: request(METHOD, SCHEME, PATH, (":authority", wrong)) for wrong in AUTHORITIES},
    **{"the host '%s'" % wrong: request(METHOD, SCHEME, PATH, ("host", wrong)) for wrong in AUTHORITIES},
    "a host that is not the authority": request(METHOD, SCHEME, PATH, AUTHORITY, ("host", "127.0.0.2")),
    "a host with another port": request(METHOD, SCHEME, PATH, AUTHORITY, ("host", "127.0.0.1:443")),
    "two hosts": request(METHOD, SCHEME, PATH, ("host", "a"), ("host", "a")),
    "CONNECT with a path": request((":method", "CONNECT"), SCHEME, PATH, AUTHORITY),
    "CONNECT without an authority": request((":method", "CONNECT")),
}

# What looks odd and is allowed: the stream or the connection goes on.
ALLOWED = {
    "an unknown frame": frame(0xfa, 0xff, 1234567, b"what is this"),
    "an unknown setting": frame(SETTINGS, 0, 0, settings({0xfafa: 0xffffffff})),
    "a table of size 0": frame(SETTINGS, 0, 0, settings({HEADER_TABLE_SIZE: 0})),
    "a table of the largest size": frame(SETTINGS, 0, 0, settings({HEADER_TABLE_SIZE: 0xffffffff})),
    "PRIORITY of an idle stream": frame(PRIORITY, 0, 99, word(0) + b"\x10"),
    "an answer to a PING that was not sent": frame(PING, ACK, 0, b"12345678"),
    "the reserved bit of a stream's id": frame(WINDOW_UPDATE, 0, 1 << 31, word(1)),
    "flags that mean nothing": frame(PING, 0xfe, 0, b"12345678"),
    "RST_STREAM of a closed stream": get() + frame(RST_STREAM, 0, 1, word(CANCEL)) * 2,
    "WINDOW_UPDATE of a closed stream": get() + frame(WINDOW_UPDATE, 0, 1, word(1)),
    "RST_STREAM with an unknown code": get(1, "/f/hang") + frame(RST_STREAM, 0, 1, word(0xdeadbeef)),
    "padding": frame(HEADERS, WHOLE | PADDED, 1, b"\x10" + head() + bytes(16)),
    "padding of all of DATA": post() + frame(DATA, PADDED | END_STREAM, 1, b"\x03abc"),
    "an empty CONTINUATION": get(flags=END_STREAM) + frame(CONTINUATION, END_HEADERS, 1),
    "two sizes of the table": raw_request(integer(0, 5, 0x20) + integer(4096, 5, 0x20) + head()),
}


class Outcome:
    """What came of some bytes: `goaway` and `reset` are codes, None if there was none; `serves`: a request that
    followed was answered."""

    def __init__(self, conn, serves):
        stream = conn.streams.get(1)
        self.goaway = conn.goaways[0][1] if conn.goaways else None
        self.reset = stream.reset if stream else None
        self.status = stream.status if stream else None
        self.closed, self.first, self.serves = conn.closed, conn.first, serves

    def __repr__(self):
        return "GOAWAY %s, RST_STREAM %s, status %s, %s%s, first bytes %r" % (
            self.goaway, self.reset, self.status, "closed" if self.closed else "open",
            ", serves" if self.serves else "", self.first)


class Attacker(h2raw.Conn):
    """Notes the first bytes that come, for answers that are not HTTP/2."""
    first = b""

    def take_frames(self):
        self.first = self.first or self.unread[:8]
        if not self.first.startswith(b"HTTP/1"):
            super().take_frames()


def attack(port, raw, until):
    """Sends it, after a preface if it has none, and reads until that is true of the connection, or it is closed;
    if it is not, asks for something proper."""
    with Attacker(port, preface=not raw.startswith(b"PRI"), timeout=PATIENCE_S) as conn:
        conn.send(raw)
        try:
            conn.wait(lambda: until(conn))
        except TimeoutError:
            pass
        serves = False
        if not conn.closed and conn.goaway is None:
            conn.next_id = 1001
            serves = conn.get("/p/hello").status == 200
        return Outcome(conn, serves)


def attack_connection(port, raw):
    return attack(port, raw, lambda conn: False)


def attack_stream(port, raw):
    """A stream's error may be the connection's: that is closed then."""
    return attack(port, raw, lambda conn: 1 in conn.streams and conn.streams[1].over)


def attack_in_vain(port, raw):
    return attack(port, raw + frame(PING, 0, 0, b"heard it"), lambda conn: b"heard it" in conn.pings)


# ---- noise --------------------------------------------------------------------------------------------------------

def valid_session():
    """One of every frame that a client may send, for others to break."""
    return b"".join([
        PREFACE, frame(SETTINGS, 0, 0, settings({INITIAL_WINDOW_SIZE: 100000, MAX_FRAME_SIZE: 16384})),
        frame(SETTINGS, ACK, 0), frame(WINDOW_UPDATE, 0, 0, word(100000)), frame(PRIORITY, 0, 3, word(1) + b"\x10"),
        frame(HEADERS, WHOLE, 1, head() + literal("x-kept", "in the table", index=True)),
        frame(HEADERS, END_HEADERS | PADDED | PRIORITY_FLAG, 3,
              b"\x04" + word(1) + b"\x20" + head("/f/upload", "POST") + indexed(62) + bytes(4)),
        frame(DATA, 0, 3, b"some of a body"), frame(WINDOW_UPDATE, 0, 3, word(1000)),
        frame(DATA, PADDED, 3, b"\x03and more" + bytes(3)),
        frame(HEADERS, WHOLE, 3, block([("x-sum", "1")])),
        frame(HEADERS, END_STREAM, 5, head("/f/slow?ms=1")), frame(CONTINUATION, END_HEADERS, 5, indexed(62)),
        frame(HEADERS, WHOLE, 7, head("/f/hang")), frame(RST_STREAM, 0, 7, word(CANCEL)),
        frame(PING, 0, 0, b"12345678"), frame(0xfa, 1, 5, b"unknown"),
        frame(HEADERS, WHOLE, 9, head("/f/big?n=100000")), frame(GOAWAY, 0, 0, word(0) + word(NO_ERROR) + b"bye"),
    ])


def flipped(session, chance):
    """With up to eight bits flipped, after the preface or in it; now and then bytes are left out or doubled."""
    raw = bytearray(session)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(raw)) if chance.random() < 0.05 else chance.randrange(len(PREFACE), len(raw))
        kind = chance.random()
        if kind < 0.8:
            raw[at] ^= 1 << chance.randrange(8)
        elif kind < 0.9:
            del raw[at:at + chance.randint(1, 20)]
        else:
            raw[at:at] = raw[at:at + chance.randint(1, 20)]
    return bytes(raw)


def random_frames(chance):
    """Frames of any type with any flags, on few streams, with bytes that mean nothing."""
    out = PREFACE + frame(SETTINGS, 0, 0)
    for _ in range(chance.randint(1, 30)):
        out += frame(chance.randrange(12), chance.randrange(256), chance.choice([0, 1, 1, 3, 5, 2, 1 << 30]),
                     chance.randbytes(chance.choice([0, 1, 4, 5, 6, 8, 9, 30, 300])))
    return out


def random_bytes(chance):
    first = frame(SETTINGS, 0, 0) if chance.random() < 0.5 else b""
    return PREFACE + first + chance.randbytes(chance.randint(1, 2000))


NOISE = {"flipped": lambda chance: flipped(valid_session(), chance), "frames": random_frames, "bytes": random_bytes}


def make_noise(port, raw, patience_s=PATIENCE_S):
    """Sends it, says that it was all, and reads to the end. False: the server has not ended the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience_s) as s:
        try:
            s.sendall(raw)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True


def noises(kind, seed, n):
    chance = random.Random(seed)
    for _ in range(n):
        yield NOISE[kind](chance)
