#!/usr/bin/env python3
"""The HTTP server under load for a while: nothing is leaked, and nothing is answered after a cancel.

usage: soak.py SERVER ST-01 SECONDS          1000 requests at a time, a third of them cancelled
       soak.py SERVER ST-02 SECONDS          connections that open and close: as many as 100 a second are,
                                                  for longer if the machine is busy with something else
       soak.py SERVER http_memory REQUESTS STORM
                                                  as many requests and as many that are cancelled, twice: the
                                                  second time takes no more memory. STORM is bench-http-storm
"""
import random
import select
import subprocess
import sys
import time
import zlib

import h2raw
from http_world import KINDS, PINGS_ALLOWED, RESETS_ALLOWED, Server, is_sanitized, letters

MIB = 1 << 20
REST_S = 20  # for what a server frees a while after a crowd has left
SAME = ("tasks", "regions", "timers", "obligations")
ZERO = ("leaks", "abandoned", "illegal", "wrote_after_cancel")


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def start(program):
    return Server(program, "--quiet", *RESETS_ALLOWED, *PINGS_ALLOWED)


def check_rest(server, at_first):
    """Everything that a server has while it does nothing is as it was."""
    deadline = time.monotonic() + REST_S
    now = server.still()
    while any(now[name] != at_first[name] for name in SAME) and time.monotonic() < deadline:
        time.sleep(0.1)
        now = server.still()
    for name in SAME:
        expect(now[name] == at_first[name], name, "were", at_first[name], "and are", now[name])
    for name in ZERO:
        expect(now[name] == 0, name, now[name])
    expect(now["handlers_begun"] == now["handlers_cleaned"] == now["handlers_closed"], "handlers are lost:", now)
    return now


def check_memory(server, before, bound):
    """Builds with sanitizers keep what is freed for a while."""
    grown = server.rss() - before
    if not is_sanitized(server.process.args[0]):
        expect(grown <= bound, "it has grown by", grown, "bytes, from", before)
    return grown


# ---- ST-01 --------------------------------------------------------------------------------------------------------

class Asker(h2raw.Conn):
    """A connection with many requests at a time, each checked, some reset.

    What was reset before a PING must be silent once that is answered.
    """

    AT_ONCE = 100

    def __init__(self, port, dice):
        super().__init__(port, timeout=60)
        self.log, self.dice = False, dice
        self.wanted = {}   # stream: its answer
        self.doomed = {}   # stream: when it is reset
        self.resetting, self.probed, self.silent = set(), set(), set()
        self.answered = self.cancelled = 0

    def ask(self):
        kind, what = self.dice.choice(KINDS), self.dice.choice(("slow", "echo", "upload", "big", "hang"))
        if what == "hang":
            stream, body = self.request("/%s/hang" % kind), None
        elif what == "slow":
            stream, body = self.request("/%s/slow?ms=%d" % (kind, self.dice.randrange(200))), b"slow\n"
        elif what == "big":
            n = self.dice.randrange(20000)
            stream, body = self.request("/%s/big?n=%d" % (kind, n)), letters(n)
        else:
            stream, body = self.post(kind, what)
        self.wanted[stream] = body
        if body is None or self.dice.random() < 0.2:
            self.doomed[stream] = time.monotonic() + self.dice.random() * 0.1

    def post(self, kind, what):
        stream = self.request("/%s/%s" % (kind, what), "POST", end=False)
        body = self.dice.randbytes(self.dice.randrange(1, 3000))
        self.data(stream, body, end=True)
        return stream, body if what == "echo" else b"%d %d\n" % (len(body), zlib.adler32(body))

    def reset_some(self, now):
        for stream in [s for s, due in self.doomed.items() if due <= now]:
            del self.doomed[stream], self.wanted[stream]
            self.rst(stream)
            self.resetting.add(stream)
            self.cancelled += 1
        if self.resetting and not self.probed:
            self.probed, self.resetting = self.resetting, set()
            self.ping()

    def on_ping(self, got):
        super().on_ping(got)
        self.silent |= self.probed
        self.probed = set()

    def take(self, got):
        late = got.stream in self.silent and got.type in (h2raw.HEADERS, h2raw.DATA)
        expect(not late, "stream", got.stream, "was reset, and still", got)
        super().take(got)
        self.look_at(got.stream)

    def look_at(self, stream):
        s = self.streams.get(stream)
        if s is None or not s.over:
            return
        if stream in self.wanted:
            body = self.wanted.pop(stream)
            self.doomed.pop(stream, None)
            expect((s.status, s.reset, s.body) == (200, None, body), "stream", stream, s.status, s.reset, s.body[:60])
            self.answered += 1
        del self.streams[stream]

    def turn(self, more):
        expect(self.poll(), "the server has ended a connection:", self.goaway)
        self.reset_some(time.monotonic())
        while more and len(self.wanted) < self.AT_ONCE:
            self.ask()


def crowd(server, seconds, seed):
    """Ten connections, 1000 requests at a time; then all of them are answered or reset."""
    dice = random.Random(seed)
    askers = [Asker(server.port, dice) for _ in range(10)]
    end = time.monotonic() + seconds
    while any(a.wanted for a in askers) or time.monotonic() < end:
        expect(time.monotonic() < end + 60, "not all are answered:", [a.wanted for a in askers if a.wanted])
        for a in askers:
            a.turn(time.monotonic() < end)
        select.select([a.socket for a in askers], [], [], 0.005)
    for a in askers:
        a.settle()
        a.close()
    return sum(a.answered for a in askers), sum(a.cancelled for a in askers)


def st_01(server, seconds):
    at_first = server.still()
    crowd(server, seconds, 1)  # pools grow until they have met their largest crowd
    server.still()
    before = server.rss()
    answered, cancelled = crowd(server, seconds, 2)
    check_rest(server, at_first)
    grown = check_memory(server, before, 2 * MIB)
    expect(answered > 100 and cancelled > 100, "too few:", answered, cancelled)
    return "%d answered, %d cancelled, %+d KiB" % (answered, cancelled, grown / 1024)


# ---- ST-02 --------------------------------------------------------------------------------------------------------

def visit(server, dice):
    """One connection, at most one request, and an end of any sort."""
    c = h2raw.Conn(server.port, timeout=60, preface=dice.random() < 0.9)
    what = dice.randrange(4)
    if what == 1:
        c.request("/%s/hang" % dice.choice(KINDS))
    elif what == 2:
        c.send(h2raw.frame(h2raw.HEADERS, 0, 1, b"\0")[:7])
    elif what == 3:
        c.ping()
    dice.choice((c.close, c.abort))()


def polite_visit(server, dice):
    with h2raw.Conn(server.port, timeout=60) as c:
        got = c.get("/%s/hello" % dice.choice(KINDS))
        expect((got.status, got.body) == (200, b"hello\n"), got.status, got.body)


def visits(server, seconds, a_second, seed):
    dice = random.Random(seed)
    begun, n = time.monotonic(), 0
    while time.monotonic() < begun + seconds or n < seconds * 100:
        (polite_visit if n % 4 == 0 else visit)(server, dice)
        n += 1
        time.sleep(max(0, begun + n / a_second - time.monotonic()))
    return n, n / (time.monotonic() - begun)


def st_02(server, seconds):
    at_first = server.still()
    visits(server, seconds / 3, 300, 1)
    server.still()
    before = server.rss()
    busy = server.cpu_seconds()
    n, rate = visits(server, seconds, 300, 2)
    busy = server.cpu_seconds() - busy
    now = check_rest(server, at_first)
    grown = check_memory(server, before, MIB)
    expect(busy < n / 100, n, "connections took it", busy, "s, so it can't do 100 a second")
    expect(now["accepted"] >= n, now["accepted"], "of", n)
    return "%d connections, %.0f a second, %+d KiB" % (n, rate, grown / 1024)


# ---- memory -------------------------------------------------------------------------------------------------------

def load(server, n, storm):
    """As many requests, and as many that are cancelled."""
    urls = ["http://127.0.0.1:%d/%s/hello" % (server.port, kind) for kind in KINDS]
    done = subprocess.run(["h2load", "-n", str(n), "-c", "10", "-m", "100", *urls], capture_output=True, text=True,
                          check=False)
    expect("%d succeeded, 0 failed, 0 errored" % n in done.stdout, done.stdout, done.stderr)
    for kind in KINDS:
        done = subprocess.run([storm, "-n", str(n // 3), str(server.port), "/%s/hang" % kind], capture_output=True,
                              text=True, check=False)
        expect(done.returncode == 0, done.stdout, done.stderr)


def memory(server, n, storm):
    if is_sanitized(server.process.args[0]):
        n //= 10  # it is slow there, and its memory tells nothing
    at_first = server.still()
    load(server, n, storm)
    server.still()
    before = server.rss()
    load(server, n, storm)
    now = check_rest(server, at_first)
    grown = check_memory(server, before, MIB)
    expect(now["cancelled"] >= n // 3 * 6, now)
    return "%d requests and as many cancelled: %+d KiB, of %d" % (n, grown / 1024, before / 1024)


def main():
    program, what, amount, *more = sys.argv[1:]
    server = start(program)
    try:
        print({"ST-01": st_01, "ST-02": st_02, "http_memory": memory}[what](server, int(amount), *more))
        server.stop()
    finally:
        server.kill()


if __name__ == "__main__":
    main()
