"""Rows of run.py about bodies: bytes a second and CPU time a byte, out, in, and of static files.

Each row is one protocol, one size, one or sixteen streams (of HTTP/1: connections). The handler of the row is a
fiber, which is what ebb_http_on runs; a poll function and a future do the same, and their figures stand beside it in
the row. The row is held if all three hold it. Every server does the same work in each round, by turns.
"""
import re
import statistics

SIZES = {"10KB": 10_000, "100KB": 100_000, "1MB": 1_000_000, "100MB": 100_000_000}
KINDS = ("fiber", "poll", "future")
ROUND_BYTES = 40_000_000
ROUNDS = 3
LONG_ROUND = 1_000_000_000  # bytes: a round of more is long enough to be the only one
RATE_BAR, CPU_BAR = 0.8, 1.3
PEERS = ("h2o", "nghttpd", "nginx")
CPU_PEERS = ("h2o", "nghttpd")  # nginx sends files by sendfile over HTTP/1, which a handler can't


class Bodies:
    """A row."""

    def __init__(self, way, proto, size, streams):
        self.way, self.proto, self.size, self.streams = way, proto, size, streams
        self.name = "http.%s_%s_%s_x%d" % (way, proto, size, streams)
        self.static = "http.static_%s_%s_x%d" % (proto, size, streams)

    def matches(self, text):
        return text in self.name or (self.way == "out" and self.proto != "tls" and text in self.static)

    def who(self, servers):
        """Pairs of a label and a server."""
        for server in servers:
            if server.name == "ours":
                yield from (("ours/" + kind, server) for kind in KINDS)
            elif server.name in PEERS or (server.name == "serve" and self.way == "out"):
                yield server.name, server

    def requests(self):
        """Of a round."""
        return max(self.streams, ROUND_BYTES // SIZES[self.size])

    def is_long(self):
        return self.requests() * SIZES[self.size] >= LONG_ROUND

    def load(self, label, server, bench):
        """Megabytes a second, and nanoseconds of CPU for 1000 bytes."""
        n, size = self.requests(), SIZES[self.size]
        command = [bench.tool("h2load"), "-n", n]
        command += ["--h1", "-c", self.streams, "-m", 1] if self.proto == "h1" else ["-c", 1, "-m", self.streams]
        if self.way == "in":
            command += ["-d", bench.files / str(size)]
        command.append(server.url(self.proto, server.body_path(self.way, label.partition("/")[2], size, self.proto)))
        before = server.cpu_ns()
        said = bench.run_load(command)
        spent = server.cpu_ns() - before
        self.check(said, n, size, server, bench)
        took, unit = re.search(r"finished in ([\d.]+)(us|ms|s)", said).groups()
        seconds = float(took) * {"us": 1e-6, "ms": 1e-3, "s": 1}[unit]
        return n * size / seconds / 1e6, spent / (n * size) * 1000

    def check(self, said, n, size, server, bench):
        good, data = re.search(r"(\d+) succeeded", said), re.search(r"\((\d+)\) data", said)
        done = re.search(r"(\d+) done", said)
        whole = int(data[1]) >= n * size if self.way == "out" else True
        answered = int(good[1]) == n or (server.refuses_uploads and self.way == "in" and int(done[1]) == n)
        if not (answered and whole):
            raise bench.Skip("not every body was whole: " + "; ".join(
                re.findall(r"^(?:requests|status codes|traffic): .*", said, re.MULTILINE)))

    def measure(self, servers, bench, rounds):
        """Yields rows."""
        found, cant = {}, {}
        for _ in range(1 if self.is_long() else rounds):
            for label, server in self.who(servers):
                if label in cant:
                    continue
                try:
                    found.setdefault(label, []).append(self.load(label, server, bench))
                except bench.Skip as why:
                    cant[label] = str(why)
                    found.pop(label, None)
                    if label.startswith(("ours", "serve")) and not server.cant:
                        bench.complain(label, why, server)
        medians = {label: tuple(statistics.median(v) for v in zip(*all)) for label, all in found.items()}
        yield from self.rows(self.name, "ours/fiber", medians, cant)
        if "serve" in medians:
            yield from self.rows(self.static, "serve", medians, cant)

    def rows(self, name, label, medians, cant):
        if label not in medians:
            return
        peers = {peer: medians[peer] for peer in PEERS if peer in medians}
        kinds = {kind: medians["ours/" + kind] for kind in ("poll", "future")
                 if label == "ours/fiber" and "ours/" + kind in medians}
        for i, suffix, unit, digits in ((1, "", "ns/KB", 1), (0, "_rate", "MB/s", 0)):
            row = {"name": name + suffix, "unit": unit, "ours": round(medians[label][i], digits)}
            row.update((kind, round(v[i], digits)) for kind, v in kinds.items())
            rivals = [v[i] for peer, v in peers.items() if i == 0 or peer in CPU_PEERS]
            if rivals:
                bar = min(rivals) * CPU_BAR if i == 1 else max(rivals) * RATE_BAR
                row["target"] = round(bar, digits)
                row["held"] = all(v[i] <= bar if i == 1 else v[i] >= bar for v in (medians[label], *kinds.values()))
            row["peers"] = {peer: round(v[i], digits) for peer, v in peers.items()}
            if any(peer in cant for peer in PEERS):
                row["cant"] = {peer: cant[peer] for peer in PEERS if peer in cant}
            yield row


ROWS = [Bodies(way, proto, size, streams) for way in ("out", "in") for proto in ("h1", "h2c", "tls")
        for size in SIZES for streams in (1, 16)]


def make_files(directory):
    for size in SIZES.values():
        with open(directory / str(size), "wb") as f:
            f.truncate(size)
        with open(directory / str(size), "r+b") as f:  # in the page cache, and not a hole
            f.write(b"\0" * size)
