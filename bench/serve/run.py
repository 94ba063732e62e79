#!/usr/bin/env python3
"""What `ebb serve` pays under load with its dashboard open, beside a bare web server under the same load.

usage: run.py BUILD [--seconds N] [--rate N] [--idle N]

BUILD is a build of this tree. The shop (examples/shop) takes 20 orders a second. For --seconds (60) it is asked --rate
(2000) times a second for orders, over HTTP/2 by h2load, while a client reads the stream of events that the page reads, and
asks what the page asks. examples/web is asked as often, in turns with it. Then --idle (10000) connections are opened that
say nothing. Held is, or the exit status is 1:

    p99         at most 10 times that of examples/web
    memory      the resident set after the last turn at most 24 MB above that after the first: the page caches of SQLite fill
                up, 16 MB of the writer's and 2 of each reader's
    idle        with all those connections a request is answered, perhaps after some that are refused by 503
"""
import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ROUNDS = 6
ORDERS_PER_SECOND = 20
CLIENTS = 10
PATIENCE_S = 60
P99_TIMES, GROWTH = 10, 24e6


def get(url, body=None):
    ask = urllib.request.Request(url, None if body is None else json.dumps(body).encode(),
                                 {"content-type": "application/json"})
    with urllib.request.urlopen(ask, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read())


class Server:
    def __init__(self, where, command, lines, **env):
        self.process = subprocess.Popen(command, cwd=where, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env={**os.environ, **env})
        self.said = [self.process.stdout.readline() for _ in range(lines)]

    def resident(self):
        for line in Path("/proc/%d/status" % self.process.pid).read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)


class Dashboard:
    """What the page does: reads the events, and the workflows every second."""

    def __init__(self, base):
        self.base, self.events, self.open = base, 0, True
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self.read, self.poll)]
        for t in self.threads:
            t.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(self.base + "api/v1/events", timeout=PATIENCE_S) as stream:
                for line in stream:
                    self.events += line.startswith(b"event:")

    def poll(self):
        while self.open:
            with contextlib.suppress(OSError):
                get(self.base + "api/v1/workflows")
            time.sleep(1)


def load(url, rate, seconds, where):
    """Latencies in ms, sorted. Every request has to be answered by 200."""
    log = Path(where) / "h2load.log"
    log.unlink(missing_ok=True)
    said = subprocess.run(["h2load", "-c", str(CLIENTS), "-m", "10", "--rps", str(rate // CLIENTS), "-D", str(seconds),
                           "--log-file", str(log), url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=seconds + PATIENCE_S, check=True).stdout
    rows = [line.split("\t") for line in log.read_text().splitlines()]
    if not rows or {row[1] for row in rows} != {"200"}:
        sys.exit("not every request was answered:\n" + said)
    return sorted(int(row[2]) / 1000 for row in rows)


def quantile(sorted_ms, q):
    return sorted_ms[min(len(sorted_ms) - 1, int(len(sorted_ms) * q))]


def measure(web, web_url, shop, url, rate, seconds, where):
    p99 = {"web": [], "serve": []}
    resident, n = [], 0
    for _ in range(ROUNDS):
        for name, at in (("web", web_url), ("serve", url)):
            ms = load(at, rate, max(1, seconds // ROUNDS), where)
            p99[name].append(quantile(ms, 0.99))
            n += len(ms)
            print("%-6s %7d requests  p50 %7.2f  p99 %7.2f  most %8.2f ms" %
                  (name, len(ms), quantile(ms, 0.5), p99[name][-1], ms[-1]), flush=True)
        resident.append(shop.resident())
    return statistics.median(p99["web"]), statistics.median(p99["serve"]), resident


def idle(port, url, most):
    """Opens connections, as many as it is let, and asks for something. True: it was answered."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened, refused = [], 0
    for _ in range(min(most, hard - 100)):
        s = socket.socket()
        s.settimeout(0.5)
        try:
            s.connect(("127.0.0.1", port))
            opened.append(s)
        except OSError:
            s.close()
            refused += 1
            if refused > 20:  # those that are there wait to be accepted
                break
    answered, end = False, time.monotonic() + PATIENCE_S
    while not answered and time.monotonic() < end:  # 503, until the connections have been idle for a second
        with contextlib.suppress(urllib.error.HTTPError):
            answered = get(url)["id"] != ""
        time.sleep(0.2)
    print("idle   %7d connections, %d not let in; %s" % (len(opened), refused, "answered" if answered else "NOT answered"))
    for s in opened:
        s.close()
    return answered


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--idle", type=int, default=10000)
    a = parser.parse_args()
    build = a.build.resolve()
    if shutil.which("h2load") is None:
        print("skipped: no h2load")
        return 0
    with tempfile.TemporaryDirectory(prefix="ebb-serve-") as where, contextlib.ExitStack() as stack:
        web = Server(where, [build / "examples/web", "0"], 1)
        stack.callback(web.process.kill)
        web_url = "http://127.0.0.1:%s/ada" % web.said[0].split()[-1]
        shop = Server(where, [build / "ebb", "serve", "--load", build / "examples/shop.so", "--listen", "127.0.0.1:0",
                              "--app-listen", "127.0.0.1:0"], 3, EBB_SHOP_LOAD=str(ORDERS_PER_SECOND))
        stack.callback(shop.process.kill)
        base, application = shop.said[0].strip(), shop.said[2].split()[1]
        one = get(application + "shop/orders", {"item": "lamp"})["id"]
        url = "%sshop/orders/%s" % (application, one)
        dashboard = Dashboard(base)
        of_web, of_serve, resident = measure(web, web_url, shop, url, a.rate, a.seconds, where)
        served = idle(int(application.split(":")[2].rstrip("/")), url, a.idle)
        dashboard.open = False
        ended = shop.stop()
        web.stop()
    growth = resident[-1] - resident[0]
    held = {"p99": of_serve <= P99_TIMES * of_web, "memory": growth <= GROWTH, "idle": served, "stopped in order": ended == 0,
            "dashboard": dashboard.events > 0}
    print("p99 %.2f ms, of examples/web %.2f: %.1f times; resident %s MB; %d events; exit %d" %
          (of_serve, of_web, of_serve / of_web, ", ".join("%.1f" % (r / 1e6) for r in resident), dashboard.events, ended))
    print("held" if all(held.values()) else "NOT held: " + ", ".join(k for k, v in held.items() if not v))
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
