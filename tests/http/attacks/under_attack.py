"""A server that is attacked, and a well-behaved client beside it that is measured.

The server has a core of its own; the client and the attacker share the other, and the attacker has what the client
leaves of it: else a machine of two cores would measure its own scheduler.
"""
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

SERVER_CORE, CLIENT_CORE = 0, 1
FLOOR_US = 200  # a quiet p99 below this counts as this: the noise of the system is of that size
SLOWER_MOST = 5
ANEW_MOST_US = 1000000  # for a connection and its first answer
GROWTH_MOST = 64 << 20
QUIET_S = 0.4


def pin(core, pid=0):
    allowed = os.sched_getaffinity(pid)
    os.sched_setaffinity(pid, {core} & allowed or allowed)


def go_first(core, pid=0):
    """Of who is measured: nobody else's work is to be in it. Where the system does not allow that, it is one of
    many."""
    pin(core, pid)
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(10))
    except PermissionError:
        pass


def may_go_first():
    """CAP_SYS_NICE, which go_first needs."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> 23 & 1)


def go_last():
    """Of an attacker. Where the client has a priority of its own this is one program among all others: a machine that
    has other work would have no time for an attack."""
    pin(CLIENT_CORE)
    if not may_go_first():
        os.nice(19)


class Peak:
    """The largest resident set of a process while the block runs."""

    def __init__(self, rss):
        self.rss, self.over = rss, threading.Event()
        self.before = self.most = rss()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.02):
            self.most = max(self.most, self.rss())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.most = max(self.most, self.rss())

    def growth(self):
        return self.most - self.before


class GoodClient:
    """good_client.py as a process."""

    def __init__(self, port, path="/p/hello", *options):
        program = Path(__file__).with_name("good_client.py")
        self.process = subprocess.Popen([sys.executable, str(program), str(port), path, *options], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=lambda: go_first(CLIENT_CORE))
        if self.process.stdout.readline() != "ready\n":
            raise AssertionError("the good client can't begin")

    def since_last(self):
        """What it has lived through since it was last asked."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Hose:
    """http_attacker with a script."""

    def __init__(self, program, port, script, *options):
        self.process = subprocess.Popen([program, *options, str(port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, preexec_fn=go_last)
        self.process.stdin.write(script)
        self.process.stdin.close()

    def report(self):
        """Waits for its end."""
        line = self.process.stdout.read()
        self.process.stdout.close()
        if self.process.wait() != 0:
            raise AssertionError("the attacker has failed")
        return json.loads(line)


def rate(good, seconds):
    """Requests a second of the good client, from now on. It must not have failed."""
    good.since_last()
    began = time.monotonic()
    time.sleep(seconds)
    lived = good.since_last()
    if lived["failed"]:
        raise AssertionError("requests of the good client failed: %s" % lived["failures"])
    return lived["requests"] / (time.monotonic() - began)


def attackers(program, port, flood, n):
    """A function that starts n of them for so many seconds, and returns one that waits for their end."""
    def attack(seconds):
        hoses = [Hose(program, port, flood.script, "-s", str(seconds), *flood.options) for _ in range(n)]
        return lambda: [hose.report() for hose in hoses]
    return attack


def kept(good, attack, slice_s=0.4):
    """What the good client keeps of its quiet rate, of just before and after, beside `attack`, of attackers()."""
    before = rate(good, slice_s)
    wait = attack(1)
    time.sleep(0.2)  # it takes a moment to begin
    during = rate(good, 0.6)
    wait()
    return 2 * during / (before + rate(good, slice_s))


class Measured:
    """What a good client has lived through under an attack, beside what it did just before."""

    def __init__(self, quiet, during, growth):
        self.quiet, self.during, self.growth = quiet, during, growth

    def slower(self, name):
        """By how much, in p99. It asks one after another, so what keeps it waiting for long is few requests, and
        hardly in a p99: the mean is to be within the same bounds."""
        return max(self.during[name]["p99"], self.during[name]["mean"]) / max(self.quiet[name]["p99"], FLOOR_US)

    def is_noisy(self):
        return (max(self.slower("same"), self.slower("other")) > SLOWER_MOST or
                self.during["anew"].get("max", 0) > ANEW_MOST_US)

    def __str__(self):
        same = self.during["same"]
        return ("%d requests, %d failed %s; p99 %d us, mean %d, x%.2f, x%.2f from elsewhere, largest %d us, "
                "anew %d us; %+.1f MiB" % (
                    self.during["requests"], self.during["failed"], self.during["failures"], same["p99"],
                    same["mean"], self.slower("same"), self.slower("other"), same["max"],
                    self.during["anew"].get("max", 0), self.growth / (1 << 20)))


def measure(good, rss, attack):
    """`attack` is a function that returns when the attack is over. Returns that, and what it returned."""
    good.since_last()
    time.sleep(QUIET_S)
    quiet = good.since_last()
    with Peak(rss) as peak:
        result = attack()
        during = good.since_last()
    return Measured(quiet, during, peak.growth()), result
