#!/usr/bin/env python3
"""A well-behaved client: sends requests one after another, and measures how long each takes.

usage: good_client.py PORT PATH [--stays]

It has a connection from 127.0.0.1 and one from 127.0.0.2, which take turns, and twice a second comes anew from
both, unless it --stays.
Prints "ready" after the first answers. For each line on stdin it prints a line of JSON about the time since the
one before: how many requests there were, what failed, and how long they took in microseconds. It ends with its
stdin.
"""
import gc
import json
import math
import select
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import h2raw  # noqa: E402

SOURCES = {"same": "127.0.0.1", "other": "127.0.0.2"}
PATIENCE_S = 10
ANEW_S = 0.5
WINDOW = 65535
FAILURES_TOLD = 5


class Failed(Exception):
    pass


class Connection:
    """Leaner than h2raw.Conn, because what it does itself is in what it measures."""

    def __init__(self, port, path, source):
        self.port, self.source = port, source
        self.head = h2raw.block([(":method", "GET"), (":scheme", "http"), (":path", path),
                                 (":authority", "127.0.0.1:%d" % port)])
        self.stream, self.taken, self.unread = -1, 0, b""
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(PATIENCE_S)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(h2raw.PREFACE + h2raw.frame(h2raw.SETTINGS, 0, 0))

    def get(self):
        """One request, up to the end of a response of 200."""
        self.stream += 2
        self.socket.sendall(h2raw.frame(h2raw.HEADERS, h2raw.END_HEADERS | h2raw.END_STREAM, self.stream, self.head))
        while not self.take():
            came = self.socket.recv(65536)
            if not came:
                raise Failed("the server has closed the connection")
            self.unread += came
        if self.taken > WINDOW // 2:
            self.socket.sendall(h2raw.frame(h2raw.WINDOW_UPDATE, 0, 0, struct.pack(">I", self.taken)))
            self.taken = 0

    def take(self):
        """True: the stream has ended."""
        ended, at, raw = False, 0, self.unread
        while len(raw) >= at + 9 and len(raw) >= at + 9 + (n := int.from_bytes(raw[at:at + 3], "big")):
            ended |= self.frame(raw[at + 3], raw[at + 4], raw[at + 9:at + 9 + n])
            at += 9 + n
        self.unread = raw[at:]
        return ended

    def frame(self, kind, flags, payload):
        if kind == h2raw.HEADERS and payload[0] != 0x88:
            raise Failed("not 200")
        if kind == h2raw.DATA:
            self.taken += len(payload)
        elif kind == h2raw.RST_STREAM:
            raise Failed("RST_STREAM %d" % int.from_bytes(payload, "big"))
        elif kind == h2raw.GOAWAY:
            raise Failed("GOAWAY %d" % int.from_bytes(payload[4:8], "big"))
        elif kind == h2raw.SETTINGS and not flags & h2raw.ACK:
            self.socket.sendall(h2raw.frame(h2raw.SETTINGS, h2raw.ACK, 0))
        return kind in (h2raw.DATA, h2raw.HEADERS) and bool(flags & h2raw.END_STREAM)

    def close(self):
        self.socket.close()


def summary(times):
    times = sorted(times)
    if not times:
        return {"n": 0}
    n = len(times)
    return {"n": n, "mean": sum(times) / n, "p50": times[n // 2], "p99": times[n * 99 // 100], "max": times[-1]}


class Client:
    def __init__(self, port, path, stays):
        self.port, self.path = port, path
        self.kept = {name: Connection(port, path, source) for name, source in SOURCES.items()}
        self.anew_at = math.inf if stays else 0
        self.forget()

    def forget(self):
        self.times = {name: [] for name in [*SOURCES, "anew"]}
        self.failed = []

    def timed(self, name, what):
        began = time.perf_counter_ns()
        try:
            what()
        except (Failed, OSError) as error:
            self.failed.append("%s: %s" % (name, error))
            return False
        self.times[name].append((time.perf_counter_ns() - began) / 1000)
        return True

    def come_anew(self, source):
        connection = Connection(self.port, self.path, source)
        connection.get()
        connection.close()

    def step(self):
        for name, source in SOURCES.items():
            if not self.timed(name, self.kept[name].get):
                self.kept[name].close()
                self.timed(name, lambda: self.kept.update({name: Connection(self.port, self.path, source)}))
        if time.monotonic() >= self.anew_at:
            self.anew_at = time.monotonic() + ANEW_S
            for source in SOURCES.values():
                self.timed("anew", lambda: self.come_anew(source))

    def tell(self):
        line = {"failed": len(self.failed), "failures": self.failed[:FAILURES_TOLD],
                "requests": sum(map(len, self.times.values()))}
        line.update({name: summary(times) for name, times in self.times.items()})
        self.forget()
        gc.collect()
        return json.dumps(line)


def main():
    client = Client(int(sys.argv[1]), sys.argv[2], "--stays" in sys.argv)
    gc.disable()
    client.step()
    print("ready", flush=True)
    while True:
        if select.select([sys.stdin], [], [], 0)[0]:
            if not sys.stdin.readline():
                return
            print(client.tell(), flush=True)
        client.step()


main()
