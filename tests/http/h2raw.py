"""A raw HTTP/2 client, for tests that do what no proper client does.

    c = h2raw.Conn(port)                          # preface and SETTINGS are sent
    s = c.request("/hello")                       # HEADERS, with END_STREAM; returns the stream's id
    r = c.response(s)                             # r.status, r.headers, r.body, r.trailers, r.reset
    s = c.request("/upload", "POST", end=False)
    c.body(s, b"...", end=True)                   # waits for the peer's windows; c.data() does not
    c.rst(s, h2raw.CANCEL)
    c.send_frame(h2raw.PING, 0, 0, b"too short")  # whatever you like
    c.wait(lambda: c.goaway)                      # reads until it is true; False: the connection has ended

Everything that comes is read only inside wait(), response() and body(), or by poll(), which reads what is there.
A frame that came is in `c.frames`, as long as `c.log` is true, and its effect in the fields of Conn and of its
streams. By itself it acknowledges SETTINGS (`auto_settings`), answers PING (`auto_ping`), and opens the windows
again for all DATA that came (`auto_window`): set these to False before, or as arguments of Conn.

Header blocks that go are literals without Huffman coding and without indexing; what other block is wanted,
`literal` and `indexed` make its pieces. Those that come are decoded as RFC 7541 says, whatever they use.
"""
import collections
import select
import socket
import ssl
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
TYPES = (DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE,
         CONTINUATION) = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY_FLAG = 0x1, 0x1, 0x4, 0x8, 0x20
(NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED, FRAME_SIZE_ERROR,
 REFUSED_STREAM, CANCEL, COMPRESSION_ERROR, CONNECT_ERROR, ENHANCE_YOUR_CALM) = range(12)
(HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE,
 MAX_HEADER_LIST_SIZE) = range(1, 7)

Frame = collections.namedtuple("Frame", "type flags stream payload")


def frame(kind, flags, stream, payload=b""):
    """The bytes of a frame, right or wrong."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(values):
    return b"".join(struct.pack(">HI", key, value) for key, value in values.items())


# ---- HPACK (RFC 7541) ----------------------------------------------------------------------------------------

def integer(value, bits, first=0):
    """`value` in the last `bits` of a byte whose other bits are `first`, and as many more as it needs."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(128 | value & 127)
        value >>= 7
    return bytes(out + [value])


def string(text):
    raw = text.encode("latin-1") if isinstance(text, str) else text
    return integer(len(raw), 7) + raw


def literal(name, value, index=False):
    """One field. With `index` the peer keeps it in its table; a number as name refers to one there."""
    first, bits = (0x40, 6) if index else (0, 4)
    if isinstance(name, int):
        return integer(name, bits, first) + string(value)
    return bytes([first]) + string(name) + string(value)


def indexed(index):
    return integer(index, 7, 0x80)


def block(fields):
    return b"".join(literal(name, value) for name, value in fields)


STATIC = [line.split("=", 1) for line in """:authority=
:method=GET
:method=POST
:path=/
:path=/index.html
:scheme=http
:scheme=https
:status=200
:status=204
:status=206
:status=304
:status=400
:status=404
:status=500
accept-charset=
accept-encoding=gzip, deflate
accept-language=
accept-ranges=
accept=
access-control-allow-origin=
age=
allow=
authorization=
cache-control=
content-disposition=
content-encoding=
content-language=
content-length=
content-location=
content-range=
content-type=
cookie=
date=
etag=
expect=
expires=
from=
host=
if-match=
if-modified-since=
if-none-match=
if-range=
if-unmodified-since=
last-modified=
link=
location=
max-forwards=
proxy-authenticate=
proxy-authorization=
range=
referer=
refresh=
retry-after=
server=
set-cookie=
strict-transport-security=
transfer-encoding=
user-agent=
vary=
via=
www-authenticate=""".split("\n")]

# How many bits each byte has; 256 is the end of a string. Codes of one length follow each other.
HUFFMAN_BITS = {5: "012aceiost", 6: " %-./3456789=A_bdfghlmnpru", 7: ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
                8: "&*,;XZ", 10: "!\"()?", 11: "'+|", 12: "#>", 13: "\0$@[]~", 14: "^}", 15: "<`{"}


def huffman_codes():
    """Of all that a header of ours can have: printable characters."""
    codes, code, last = {}, 0, 0
    for bits, characters in HUFFMAN_BITS.items():
        code <<= bits - last
        last = bits
        for character in characters:
            codes[bits, code] = character
            code += 1
    return codes


HUFFMAN = huffman_codes()


def huffman_decode(raw):
    out, code, bits = [], 0, 0
    for byte in raw:
        for shift in range(7, -1, -1):
            code, bits = code << 1 | byte >> shift & 1, bits + 1
            if (bits, code) in HUFFMAN:
                out.append(HUFFMAN[bits, code])
                code = bits = 0
    if bits > 7 or code != (1 << bits) - 1:
        raise ValueError("not a Huffman string of printable characters: " + raw.hex())
    return "".join(out)


class Decoder:
    """Header blocks that came, with the table that they build."""

    def __init__(self, room=4096):
        self.table, self.room = [], room

    def field(self, index):
        return tuple(STATIC[index - 1]) if index <= len(STATIC) else self.table[index - len(STATIC) - 1]

    def keep(self, field):
        self.table.insert(0, field)
        while sum(len(name) + len(value) + 32 for name, value in self.table) > self.room:
            self.table.pop()

    @staticmethod
    def integer(raw, at, bits):
        most = (1 << bits) - 1
        value, at, shift = raw[at] & most, at + 1, 0
        if value < most:
            return value, at
        while True:
            value, shift, at = value + ((raw[at] & 127) << shift), shift + 7, at + 1
            if raw[at - 1] < 128:
                return value, at

    def string(self, raw, at):
        n, end = self.integer(raw, at, 7)
        text = raw[end:end + n]
        return (huffman_decode(text) if raw[at] & 0x80 else text.decode("latin-1")), end + n

    def literal(self, raw, at, bits):
        index, at = self.integer(raw, at, bits)
        name, at = (self.field(index)[0], at) if index else self.string(raw, at)
        value, at = self.string(raw, at)
        return (name, value), at

    def decode(self, raw):
        fields, at = [], 0
        while at < len(raw):
            if raw[at] & 0x80:
                index, at = self.integer(raw, at, 7)
                fields.append(self.field(index))
            elif raw[at] & 0x40:
                field, at = self.literal(raw, at, 6)
                self.keep(field)
                fields.append(field)
            elif raw[at] & 0x20:
                self.room, at = self.integer(raw, at, 5)
                self.table = self.table if self.room else []
            else:
                field, at = self.literal(raw, at, 4)
                fields.append(field)
        return fields


def tls_context():
    """Offers HTTP/2, and believes everybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


# ---- connections -----------------------------------------------------------------------------------------------

class Stream:
    """What came on a stream. `ended`: END_STREAM; `reset`: the code of RST_STREAM, None if there was none."""

    def __init__(self, window):
        self.status, self.informational = None, []
        self.headers, self.trailers, self.body = {}, {}, b""
        self.ended, self.reset = False, None
        self.window = window  # that we may send

    @property
    def over(self):
        return self.ended or self.reset is not None


class Conn:
    """One connection. `values` are its SETTINGS; `preface` False sends nothing at all at first; `tls` is an
    ssl.SSLContext, see tls_context(); `source` is the address to connect from."""

    def __init__(self, port, values=None, preface=True, host="127.0.0.1", timeout=20, tls=None, receive_buffer=0,
                 source=None, **automatic):
        self.auto_settings = self.auto_ping = self.auto_window = True
        self.__dict__.update(automatic)
        self.host, self.port, self.timeout, self.source = host, port, timeout, source
        self.socket = self.connect(receive_buffer)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.log, self.frames = True, []
        self.streams, self.next_id = {}, 1
        self.peer, self.peer_settings_count, self.acks, self.pings = {}, 0, 0, []
        self.goaway = None   # (last stream, code, text) of the last one
        self.goaways = []
        self.closed = False  # the peer has closed, or reset, the connection
        self.window = 65535  # that we may send on the whole connection
        self.unread, self.decoder, self.open_block = b"", Decoder(), None
        self.initial_window = 65535
        if preface:
            self.send(PREFACE + frame(SETTINGS, 0, 0, settings(values or {})))

    def connect(self, receive_buffer):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(self.timeout)
        if self.source:
            s.bind((self.source, 0))
        s.connect((self.host, self.port))
        return s

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.socket.close()

    def abort(self):
        """Closes it with a TCP reset, as a process that crashes may."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    # What goes.

    def send(self, raw):
        """False: the peer has closed."""
        try:
            self.socket.sendall(raw)
            return True
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.closed = True
            return False

    def send_frame(self, kind, flags, stream, payload=b""):
        return self.send(frame(kind, flags, stream, payload))

    def open(self):
        """The id of a new stream."""
        stream, self.next_id = self.next_id, self.next_id + 2
        self.streams[stream] = Stream(self.initial_window)
        return stream

    def fields(self, path, method="GET", headers=()):
        return [(":method", method), (":scheme", "http"), (":path", path),
                (":authority", "%s:%d" % (self.host, self.port)), *headers]

    def request(self, path, method="GET", headers=(), end=True):
        stream = self.open()
        self.send_headers(stream, block(self.fields(path, method, headers)), end)
        return stream

    def send_headers(self, stream, raw, end=False, piece=16384):
        """A header block, in as many frames as it needs."""
        pieces = [raw[i:i + piece] for i in range(0, len(raw), piece)] or [b""]
        out = b""
        for i, part in enumerate(pieces):
            flags = (END_HEADERS if i == len(pieces) - 1 else 0) | (END_STREAM if end and i == 0 else 0)
            out += frame(HEADERS if i == 0 else CONTINUATION, flags, stream, part)
        return self.send(out)

    def data(self, stream, raw=b"", end=False):
        """One DATA frame, whatever the windows are."""
        return self.send_frame(DATA, END_STREAM if end else 0, stream, raw)

    def body(self, stream, raw, end=True, piece=16384):
        """All of it, as the windows allow. False: the stream or the connection was over before that."""
        s = self.streams[stream]
        while raw:
            if not self.wait(lambda: s.over or min(s.window, self.window) > 0) or s.over:
                return False
            n = min(s.window, self.window, piece, len(raw))
            s.window, self.window = s.window - n, self.window - n
            if not self.data(stream, raw[:n], end and n == len(raw)):
                return False
            raw = raw[n:]
        return True

    def trailers(self, stream, fields):
        return self.send_headers(stream, block(fields), end=True)

    def rst(self, stream, code=CANCEL):
        return self.send_frame(RST_STREAM, 0, stream, struct.pack(">I", code))

    def ping(self, payload=b"12345678"):
        return self.send_frame(PING, 0, 0, payload)

    def send_settings(self, values):
        return self.send_frame(SETTINGS, 0, 0, settings(values))

    def window_update(self, stream, n):
        return self.send_frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", n))

    def send_goaway(self, code=NO_ERROR, last=0, text=b""):
        return self.send_frame(GOAWAY, 0, 0, struct.pack(">II", last, code) + text)

    # What comes.

    def poll(self, seconds=0):
        """Reads what is there, after waiting at most so long for it. False: the peer has closed."""
        pending = getattr(self.socket, "pending", lambda: 0)()
        if not self.closed and (pending or select.select([self.socket], [], [], max(seconds, 0))[0]):
            try:
                raw = self.socket.recv(262144)
            except (ConnectionResetError, BrokenPipeError, ssl.SSLError):
                raw = b""
            self.closed = not raw
            self.unread += raw
            self.take_frames()
        return not self.closed

    def wait(self, until, seconds=None):
        """Reads until it is true. False: the connection has ended before. Raises TimeoutError."""
        end = time.monotonic() + (seconds or self.timeout)
        while not until():
            if self.closed:
                return False
            self.poll(end - time.monotonic())
            if time.monotonic() > end and not until():
                raise TimeoutError("not within %s s; the last frames: %r" % (seconds or self.timeout, self.frames[-5:]))
        return True

    def response(self, stream, seconds=None):
        """The stream, once it is over or the connection is."""
        self.wait(lambda: self.streams[stream].over, seconds)
        return self.streams[stream]

    def get(self, path, method="GET", headers=()):
        return self.response(self.request(path, method, headers))

    def settle(self):
        """Waits until the peer has taken in all that was sent so far. False: it has closed."""
        before = len(self.pings)
        return self.ping(b"settling") and self.wait(lambda: len(self.pings) > before)

    def at_end(self, seconds=None):
        """Waits for the end of the connection."""
        self.wait(lambda: False, seconds)

    def take_frames(self):
        while len(self.unread) >= 9:
            n = int.from_bytes(self.unread[:3], "big")
            if len(self.unread) < 9 + n:
                return
            kind, flags, stream = struct.unpack(">BBI", self.unread[3:9])
            got = Frame(kind, flags, stream & 0x7fffffff, self.unread[9:9 + n])
            self.unread = self.unread[9 + n:]
            if self.log:
                self.frames.append(got)
            self.take(got)

    def take(self, got):
        what = {DATA: self.on_data, HEADERS: self.on_headers, CONTINUATION: self.on_continuation,
                RST_STREAM: self.on_reset, SETTINGS: self.on_settings, PING: self.on_ping, GOAWAY: self.on_goaway,
                WINDOW_UPDATE: self.on_window_update}.get(got.type)
        if what:
            what(got)

    def stream(self, got):
        return self.streams.setdefault(got.stream, Stream(self.initial_window))

    @staticmethod
    def unpadded(got, priority=0):
        payload = got.payload
        if got.flags & PADDED:
            payload = payload[1:len(payload) - payload[0]]
        return payload[priority:]

    def on_data(self, got):
        s = self.stream(got)
        s.body += self.unpadded(got)
        s.ended = s.ended or bool(got.flags & END_STREAM)
        if self.auto_window and got.payload:
            self.window_update(0, len(got.payload))
            if not s.ended:
                self.window_update(got.stream, len(got.payload))

    def on_headers(self, got):
        self.open_block = got._replace(
            payload=self.unpadded(got, 5 if got.flags & PRIORITY_FLAG else 0))
        self.end_block(got)

    def on_continuation(self, got):
        self.open_block = self.open_block._replace(payload=self.open_block.payload + got.payload)
        self.end_block(got)

    def end_block(self, got):
        if not got.flags & END_HEADERS:
            return
        fields = self.decoder.decode(self.open_block.payload)
        s, status = self.stream(got), dict(fields).get(":status")
        if status is None:
            s.trailers = dict(fields)
        elif status.startswith("1"):
            s.informational.append(int(status))
        else:
            s.status, s.headers = int(status), dict(fields)
        s.ended = s.ended or bool(self.open_block.flags & END_STREAM)

    def on_reset(self, got):
        self.stream(got).reset = int.from_bytes(got.payload, "big")

    def on_settings(self, got):
        if got.flags & ACK:
            self.acks += 1
            return
        values = dict(struct.unpack(">HI", got.payload[i:i + 6]) for i in range(0, len(got.payload), 6))
        grown = values.get(INITIAL_WINDOW_SIZE, self.initial_window) - self.initial_window
        self.initial_window += grown
        for s in self.streams.values():
            s.window += grown
        self.peer.update(values)
        self.peer_settings_count += 1
        if self.auto_settings:
            self.send_frame(SETTINGS, ACK, 0)

    def on_ping(self, got):
        if got.flags & ACK:
            self.pings.append(got.payload)
        elif self.auto_ping:
            self.send_frame(PING, ACK, 0, got.payload)

    def on_goaway(self, got):
        last, code = struct.unpack(">II", got.payload[:8])
        self.goaway = (last & 0x7fffffff, code, got.payload[8:])
        self.goaways.append(self.goaway)

    def on_window_update(self, got):
        n = int.from_bytes(got.payload, "big")
        if got.stream == 0:
            self.window += n
        else:
            self.stream(got).window += n
