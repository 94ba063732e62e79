#!/usr/bin/env python3
"""Measures what an HTTP server pays for a request, for a stream that is cancelled while it works, and for the
bytes of bodies (bodies.py): ours, a bare server on libuv and nghttp2 (the floor), and peers.

usage: run.py [--bin DIR] [--rounds N] [--only SERVER,...] [--realtime] [OUT.jsonl [FILTER]]

--rounds: of each row; default 5, and 3 for bodies. A body of 100 MB sixteen times has one.
--realtime: servers and load run before all other work of the machine (SCHED_FIFO, as root), for a busy machine.

Every server runs on one core and the load on another. What counts is
the CPU time of the server, the system's part included; the servers take turns, round by round, and the median
counts. Prints a table and writes one JSON object a row, as ebb-bench does: rows of the same name in the file
are replaced. A server that can't run here is one line "skipped: ...", and no failure.
"""
import argparse
import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import bodies

HERE = Path(__file__).resolve().parent
SERVER_CORE, LOAD_CORE = 0, 1
ROUNDS = 5
WARM_UP = 20_000  # requests; the first guess of what one costs comes of it
ROUND_S = 0.8     # of the server's CPU time, about
FEWEST, MOST = 20_000, 600_000  # requests a round
START_S = 20
SETTLE_S = 5
LOAD_S = 120
PROXY_RATE = 1000  # resets a second of a connection: what is behind the proxy has to keep up
GROWTH_TARGET = 4 << 20  # bytes: one more turn of work that waits; 16 bytes lost a stream would be 20 MB


class Skip(Exception):
    """Why a server, or a row of it, can't be had."""


realtime = False  # see --realtime


def pinned(core):
    def begin():
        os.sched_setaffinity(0, {core})
        if realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return begin


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def program(name):
    path = shutil.which(name)
    if path is None:
        raise Skip("%s is not installed" % name)
    return path


# ---- what a proxy asks, and never gets an answer from ----------------------------------------------------


class Hang:
    """Accepts connections on a Unix socket, says nothing, and counts those that came and those that left."""

    def __init__(self, path):
        self.path, self.begun, self.ended = str(path), 0, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(4096)
        self.listener.setblocking(False)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with selectors.EpollSelector() as ready:
            ready.register(self.listener, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    if key.fileobj is self.listener:
                        self.accept(ready)
                    else:
                        self.read(ready, key.fileobj)

    def accept(self, ready):
        with contextlib.suppress(BlockingIOError):
            while True:
                ready.register(self.listener.accept()[0], selectors.EVENT_READ)
                self.begun += 1

    def read(self, ready, peer):
        try:
            asked = peer.recv(4096)
        except ConnectionResetError:
            asked = b""
        if not asked:
            ready.unregister(peer)
            peer.close()
            self.ended += 1

    def counts(self):
        return self.begun, self.ended


# ---- servers ---------------------------------------------------------------------------------------------


class Server:
    """A server that prints its port, and tells by /count how many slow handlers were begun and cancelled."""

    rate = 0
    paths = {"request": "/", "fiber": "/", "cancel": "/slow"}
    refuses_uploads = False  # it reads them, and answers 405
    cant = {}                # what it can't do, and why: (way, protocol), or a protocol

    def __init__(self, name, bench):
        self.name, self.bench, self.process, self.port = name, bench, None, None
        self.tls_port = self.h1_port = None

    def url(self, proto, path):
        """Of "h1", "h2c" or "tls"."""
        if proto in self.cant:
            raise Skip(self.cant[proto])
        port = {"tls": self.tls_port, "h1": self.h1_port or self.port}.get(proto, self.port)
        if port is None:
            raise Skip("it is not set up for " + proto)
        return "%s://127.0.0.1:%d%s" % ("https" if proto == "tls" else "http", port, path)

    def body_path(self, way, kind, size, proto):
        if (way, proto) in self.cant:
            raise Skip(self.cant[way, proto])
        return "/%d" % size if way == "out" else "/"

    def command(self):
        """What to run. Sets the port if the server does not choose it."""
        raise NotImplementedError

    def counts(self):
        text = fetch("http://127.0.0.1:%d/count" % self.port)
        return tuple(map(int, text.split()))

    def start(self):
        command = self.command()
        log = open(self.bench.work / (self.name + ".log"), "w+b")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, cwd=self.bench.work,
                                        preexec_fn=pinned(SERVER_CORE))
        if self.port is None:
            self.read_ports()
        if self.port is None or not answers(self.port, self.process):
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines() or ["it said nothing"]
            raise Skip("it did not start (status %s): %s" % (self.process.poll(), said[-1]))

    def read_ports(self):
        line = self.process.stdout.readline().strip()
        self.port = int(line) if line.isdigit() else None

    def stop(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(SETTLE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def path(self, work):
        path = self.paths.get(work)
        if path is None:
            raise Skip("it has no such handler")
        return path

    def pids(self):
        found = [self.process.pid]
        for pid in found:
            for task in Path("/proc/%d/task" % pid).iterdir():
                found += map(int, (task / "children").read_text().split())
        return found

    def cpu_ns(self):
        """Of it and its children, once it has nothing more to do."""
        last, end = -1, time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            now = sum(time.clock_gettime_ns(((~pid) << 3) | 2) for pid in self.pids())
            if now - last < 100_000 and last >= 0:
                return now
            last = now
            time.sleep(0.02)
        return last

    def delay_ns(self):
        """How long it was ready to run, and others had its core."""
        return sum(int(Path("/proc/%d/schedstat" % pid).read_text().split()[1]) for pid in self.pids())

    def rss_bytes(self):
        pages = sum(int(Path("/proc/%d/statm" % pid).read_text().split()[1]) for pid in self.pids())
        return pages * os.sysconf("SC_PAGESIZE")


class Built(Server):
    """One of the programs that CMake builds here."""

    def command(self):
        path = self.bench.bin / {"ours": "bench-http-server", "floor": "bench-http-floor"}[self.name]
        if not path.exists():
            raise Skip("%s is not built" % path)
        return [path]


class Ours(Built):
    paths = {"request": "/", "fiber": "/index.html", "cancel": "/slow", "cancel_poll": "/slow/poll"}

    def command(self):
        return super().command() + [self.bench.cert, self.bench.key]

    def read_ports(self):
        super().read_ports()
        line = self.process.stdout.readline().strip()
        self.tls_port = int(line) if line.isdigit() else None

    def body_path(self, way, kind, size, proto):
        return "/body/%s/%d" % (kind, size) if way == "out" else "/upload/" + kind


class Serve(Server):
    """`ebb files`: static files."""

    paths = {}
    cant = {"tls": "it is for this machine, without TLS"}

    def command(self):
        path = self.bench.bin.parent.parent / "ebb"
        if not path.exists():
            raise Skip("%s is not built" % path)
        return [path, "files", self.bench.files, "--port", "0"]

    def read_ports(self):
        found = re.search(rb":(\d+)/", self.process.stdout.readline())
        self.port = int(found[1]) if found else None


class Floor(Built):
    paths = {"request": "/", "fiber": "/", "cancel": "/slow", "cancel_poll": "/slow"}


class Node(Server):
    def command(self):
        return [program("node"), HERE / "peers" / "node.mjs"]


class Go(Server):
    def command(self):
        out = self.bench.work / "go-server"
        environment = dict(os.environ, GOTOOLCHAIN="local", GOPROXY="off")
        built = subprocess.run([program("go"), "build", "-o", out, "."], cwd=HERE / "peers" / "go",
                               env=environment, capture_output=True, text=True, timeout=LOAD_S)
        if built.returncode != 0:
            raise Skip("go build failed: " + built.stderr.strip().splitlines()[-1])
        return [out]


class Nghttpd(Server):
    cant = {"h1": "it has no HTTP/1"}

    def command(self):
        """Two: one process has one port."""
        self.port, self.tls_port = free_port(), free_port()
        nghttpd = "%s -n1 -d %s" % (program("nghttpd"), self.bench.files)
        return ["sh", "-c", "%s %d %s %s & exec %s --no-tls %d" % (
            nghttpd, self.tls_port, self.bench.key, self.bench.cert, nghttpd, self.port)]

    def stop(self):
        for pid in self.pids()[1:] if self.process is not None else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        super().stop()

    def path(self, work):
        if work == "cancel":
            raise Skip("it serves files: none of its handlers can be slow")
        return super().path(work)


class Proxy(Server):
    """A server whose only way to be slow is to wait for another, behind a Unix socket."""

    rate = PROXY_RATE
    config = ""

    def counts(self):
        return self.bench.hang.counts()

    def write_config(self):
        self.port, self.tls_port, self.h1_port = free_port(), free_port(), free_port()
        path = self.bench.work / (self.name + ".conf")
        user = {"nginx": "user root;", "h2o": "user: root"}[self.name] if os.geteuid() == 0 else ""
        template = (HERE / "peers" / (self.name + ".conf")).read_text()
        for key, value in {"PORT": self.port, "TLS_PORT": self.tls_port, "H1_PORT": self.h1_port,
                           "CERT": self.bench.cert, "KEY": self.bench.key, "HANG": self.bench.hang.path, "FILES": self.bench.files,
                           "WORK": self.bench.work, "USER": user}.items():
            template = template.replace("@%s@" % key, str(value))
        path.write_text(template)
        return path


class Nginx(Proxy):
    cant = {("in", proto): "it answers before it has read the body" for proto in ("h1", "h2c", "tls")}

    def command(self):
        return [program("nginx"), "-e", "stderr", "-c", self.write_config()]


class H2o(Proxy):
    refuses_uploads = True

    def command(self):
        config = self.write_config()
        self.h1_port = None  # one port has both
        return [program("h2o"), "-c", config]


SERVERS = {"ours": Ours, "serve": Serve, "floor": Floor, "h2o": H2o, "nghttpd": Nghttpd, "nginx": Nginx, "node": Node,
           "go": Go}


# ---- load ------------------------------------------------------------------------------------------------


def run_load(command):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LOAD_S,
                              preexec_fn=pinned(LOAD_CORE))
    except subprocess.TimeoutExpired:
        raise Skip("%s did not end within %d s" % (Path(command[0]).name, LOAD_S)) from None
    if done.returncode != 0:
        raise Skip("%s: %s" % (Path(command[0]).name, done.stderr.strip()))
    return done.stdout


def fetch(url):
    return run_load(["curl", "-sS", "--max-time", str(SETTLE_S), "--http2-prior-knowledge", url])


def answers(port, process):
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(Skip):
            return fetch("http://127.0.0.1:%d/" % port) == "ok"
        time.sleep(0.05)
    return False


def ask(server, path, n, row):
    """Asks n times, and returns that."""
    said = run_load([program("h2load"), "-n", n, "-c", row.connections, "-m", row.streams,
                     server.url(row.proto, path)])
    good = re.search(r"(\d+) succeeded", said)
    data = re.search(r"\((\d+)\) data", said)
    if not good or int(good[1]) != n or int(data[1]) != 2 * n:
        lines = re.findall(r"^(?:requests|status codes|traffic): .*", said, re.MULTILINE)
        raise Skip("not every request was answered by two bytes: " + "; ".join(lines))
    return n


def storm(server, path, n, row):
    """Cancels n streams, or a few more, and returns how many."""
    said = run_load([server.bench.bin / "bench-http-storm", "-n", n, "-c", row.connections, "-m", row.streams,
                     "-r", server.rate, server.port, path])
    return int(said.split()[1])


def see_cancelled(server, before, n):
    """Each of the n was a handler at work, and was cancelled."""
    end = time.monotonic() + SETTLE_S
    while True:
        begun, ended = (now - was for now, was in zip(server.counts(), before))
        if begun == ended == n:
            return
        if time.monotonic() > end:
            raise Skip("of %d streams %d were begun and %d cancelled" % (n, begun, ended))
        time.sleep(0.02)


# ---- rows ------------------------------------------------------------------------------------------------


class Row:
    """What is asked of which servers, and what ours may cost beside these."""

    unit = "ns"

    def __init__(self, name, work, connections, streams, bar=None, peers=True, proto="h2c"):
        self.name, self.work, self.proto = name, work, proto
        self.connections, self.streams = connections, streams
        self.cancels = work.startswith("cancel")
        self.bar, self.peers = bar, peers
        self.spent = self.delayed = 0  # ns of all servers

    def cost(self, server, n):
        """Nanoseconds of CPU for each of about n."""
        path = server.path(self.work)
        counted = server.counts() if self.cancels else None
        before, delay = server.cpu_ns(), server.delay_ns()
        n = (storm if self.cancels else ask)(server, path, n, self)
        spent = server.cpu_ns() - before
        self.spent += spent
        self.delayed += server.delay_ns() - delay
        if self.cancels:
            see_cancelled(server, counted, n)
        return spent / n

    def warm_up(self, servers):
        """Returns the servers that can do it, and how many times each should in a round."""
        sizes = {}
        for server in servers:
            if server.name == "serve" or (not self.peers and server.name not in ("ours", "floor")):
                continue
            if self.proto == "tls" and server.name not in ("ours", "h2o", "nghttpd", "nginx"):
                continue
            try:
                guess = self.cost(server, WARM_UP)
                sizes[server] = int(min(MOST, max(FEWEST, ROUND_S * 1e9 / guess)))
            except Skip as why:
                complain("%s: %s" % (server.name, self.name), why, server)
        return sizes

    def round(self, sizes, costs):
        """Each server once; one that can't is left out from now on."""
        for server, n in list(sizes.items()):
            try:
                costs[server.name].append(self.cost(server, n))
            except Skip as why:
                complain("%s: %s" % (server.name, self.name), why, server)
                del sizes[server], costs[server.name]

    def measure(self, servers, rounds):
        """The median of each server, and by how many bytes each has grown since its first round."""
        sizes = self.warm_up(servers)
        costs = {server.name: [] for server in sizes}
        self.round(sizes, costs)
        first = {server: server.rss_bytes() for server in sizes}
        for _ in range(rounds - 1):
            self.round(sizes, costs)
        grown = {server.name: server.rss_bytes() - first[server] for server in sizes}
        return {name: statistics.median(values) for name, values in costs.items()}, grown


def bar_of_request(peers):
    """At most 1.35 times what h2o takes, and no more than nghttpd."""
    return min(1.35 * peers["h2o"], peers["nghttpd"])


def bar_of_fiber(peers):
    """At most 1.2 times what h2o takes."""
    return 1.2 * peers["h2o"]


def bar_of_cancel(peers):
    """The least of all that cancel work which runs."""
    return min(peers.values())


ROWS = [
    Row("http.request_c10_m100", "request", 10, 100, bar_of_request),
    Row("http.fiber_c10_m100", "fiber", 10, 100, bar_of_fiber),
    Row("http.request_c100_m1", "request", 100, 1, bar_of_fiber),
    Row("http.fiber_c100_m1", "fiber", 100, 1, bar_of_fiber),
    Row("http.request_tls_c10_m100", "request", 10, 100, bar_of_fiber, proto="tls"),
    Row("http.fiber_tls_c10_m100", "fiber", 10, 100, bar_of_fiber, proto="tls"),
    Row("http.request_tls_c100_m1", "request", 100, 1, bar_of_fiber, proto="tls"),
    Row("http.fiber_tls_c100_m1", "fiber", 100, 1, bar_of_fiber, proto="tls"),
    Row("http.cancel", "cancel", 10, 100, bar_of_cancel),
    Row("http.cancel_poll", "cancel_poll", 10, 100, peers=False),
]


def judge(found, row, peers):
    try:
        bar = row.bar(peers)
    except (KeyError, ValueError):
        print("no verdict: %s: who it is held against was not measured" % row.name, flush=True)
        return
    found["target"] = round(bar)
    found["held"] = found["ours"] <= bar


def result(row, medians):
    found = {"name": row.name, "unit": row.unit}
    peers = {name: round(v, 2) for name, v in medians.items() if name not in ("ours", "floor")}
    if "ours" in medians:
        found["ours"] = round(medians["ours"], 2)
    if "floor" in medians:
        found["floor"] = round(medians["floor"], 2)
    if "ours" in medians and "floor" in medians:
        found["ratio"] = round(medians["ours"] / medians["floor"], 3)
    if row.bar is not None and "ours" in medians:
        judge(found, row, peers)
    if peers:
        found["peers"] = peers
    return found


def growth(row, grown):
    """Work that is cancelled leaves nothing behind."""
    ours = grown["ours"]
    return {"name": row.name + "_growth", "unit": "bytes", "ours": ours, "target": GROWTH_TARGET,
            "held": ours <= GROWTH_TARGET,
            "peers": {name: n for name, n in grown.items() if name not in ("ours", "floor")}}


# ---- the whole of it -------------------------------------------------------------------------------------

failed = False


def complain(what, why, server):
    """That a peer can't is no failure; that we can't is."""
    global failed
    ours = server.name in ("ours", "floor")
    failed = failed or ours
    print("%s: %s: %s" % ("failed" if ours else "skipped", what, why), flush=True)


class Bench:
    """What the servers share: programs, a folder to work in, files to serve, somebody who never answers."""

    Skip, run_load, tool = Skip, staticmethod(run_load), staticmethod(program)

    def __init__(self, programs, work):
        self.bin, self.work = programs, Path(work)
        self.complain = complain
        self.cert, self.key = self.work / "cert.pem", self.work / "key.pem"
        run_load(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                  "-keyout", self.key, "-out", self.cert, "-days", "30", "-subj", "/CN=localhost"])
        self.files = self.work / "files"
        self.files.mkdir()
        (self.files / "index.html").write_text("ok")
        bodies.make_files(self.files)
        self.hang = Hang(self.work / "hang")


def start_all(names, bench, stack):
    started = []
    for name in names:
        server = SERVERS[name](name, bench)
        stack.callback(server.stop)
        try:
            server.start()
            started.append(server)
        except Skip as why:
            complain(name, why, server)
    return started


def print_row(found, peers):
    def cell(value, form="%.0f"):
        return "-" if value is None else form % value
    verdict = {None: "", True: "held", False: "MISSED"}[found.get("held")]
    print("%-26s %-5s %8s %8s %7s %8s %-7s" % (
        found["name"], found["unit"], cell(found.get("ours")), cell(found.get("floor")),
        cell(found.get("ratio"), "%.2fx"), cell(found.get("target")), verdict)
        + "".join("%9s" % cell(found.get("peers", {}).get(name)) for name in peers)
        + "".join("  %s %.0f" % (kind, found[kind]) for kind in ("poll", "future") if kind in found)
        + "".join("  %s can't: %s" % item for item in found.get("cant", {}).items()), flush=True)


def measure_all(servers, rows, rounds):
    """Yields a result for each row, and one for the memory if it cancels."""
    for row in rows:
        medians, grown = row.measure(servers, rounds)
        yield result(row, medians)
        if row.cancels and "ours" in grown:
            yield growth(row, grown)


def warn_of_noise(rows):
    spent, delayed = sum(row.spent for row in rows), sum(row.delayed for row in rows)
    if delayed > spent / 10:
        print("the machine was busy: the servers ran for %.1f s, and waited for their core for %.1f s"
              % (spent / 1e9, delayed / 1e9))


def write(path, found):
    """Beside the rows that others have written there."""
    names = {one["name"] for one in found}
    old = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in old if json.loads(line)["name"] not in names]
    aside = path.with_name(path.name + ".new")
    aside.write_text("".join(line + "\n" for line in kept + [json.dumps(one, separators=(",", ":"))
                                                              for one in found]))
    aside.replace(path)


def arguments():
    root = HERE.parent.parent
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--bin", type=Path, default=root / "build" / "release" / "bench" / "http")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SERVERS))
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("out", nargs="?", default="-")
    parser.add_argument("filter", nargs="?", default="")
    given = parser.parse_args()
    for name in given.only:
        if name not in SERVERS:
            parser.error("no such server: %s (there are: %s)" % (name, ", ".join(SERVERS)))
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds: at least 1")
    return given


def main():
    global realtime
    given = arguments()
    realtime = given.realtime
    if not {SERVER_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        sys.exit("run.py: needs cores %d and %d" % (SERVER_CORE, LOAD_CORE))
    for tool in ("h2load", "curl", "openssl"):
        if shutil.which(tool) is None:
            sys.exit("run.py: %s is not installed" % tool)
    os.sched_setaffinity(0, {LOAD_CORE})
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("run.py: ended by a signal"))  # and the servers with it
    rows = [row for row in ROWS if given.filter in row.name]
    body_rows = [row for row in bodies.ROWS if row.matches(given.filter)]
    found = []
    with tempfile.TemporaryDirectory() as work, contextlib.ExitStack() as stack:
        bench = Bench(given.bin.resolve(), work)
        servers = start_all(given.only, bench, stack)
        peers = [server.name for server in servers if server.name not in ("ours", "floor", "serve")]
        print("A handler of ebb_http_on is a fiber: its rows are fiber_*, out_*, in_*; request_* are poll functions.")
        print("%-26s %-5s %8s %8s %7s %8s %-7s" % ("name", "unit", "ours", "floor", "ratio", "target", "")
              + "".join("%9s" % name for name in peers), flush=True)
        for one in measure_all(servers, rows, given.rounds or ROUNDS):
            print_row(one, peers)
            found.append(one)
        for one in (one for row in body_rows for one in row.measure(servers, bench, given.rounds or bodies.ROUNDS)):
            print_row(one, peers)
            found.append(one)
    warn_of_noise(rows)
    print("%d rows in %.0f s" % (len(found), time.monotonic() - began))
    if given.out != "-":
        write(Path(given.out), found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
