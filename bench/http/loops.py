#!/usr/bin/env python3
"""What a request costs a server on two loops, beside the same server on one.

usage: loops.py [BUILD [ROWS.jsonl]]

Both servers are up at once and take turns, round by round. CPU time of the process, the system's part included, a
request; the median of the rounds counts. Time of the wall would show the load generator.
"""
import json
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS, REQUESTS = 5, 100000
LOADS = (("c10_m100", ["-c", "10", "-m", "100"], REQUESTS), ("c100_m1", ["-c", "100", "-m", "1"], REQUESTS // 4))


class Server:
    def __init__(self, program, loops):
        self.process = subprocess.Popen([program, str(loops)], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def cpu_ns(self):
        tasks = Path("/proc/%d/task" % self.process.pid).glob("*/schedstat")
        return sum(int(path.read_text(encoding="ascii").split()[0]) for path in tasks)

    def load(self, how, n):
        """CPU time a request, in us."""
        before = self.cpu_ns()
        done = subprocess.run(["h2load", "-n", str(n), *how, "http://127.0.0.1:%d/" % self.port],
                              capture_output=True, text=True, check=True)
        succeeded = int(re.search(r"(\d+) succeeded", done.stdout).group(1))
        if succeeded != n:
            sys.exit("loops.py: %d of %d requests succeeded" % (succeeded, n))
        return (self.cpu_ns() - before) / n / 1000

    def stop(self):
        self.process.terminate()
        self.process.communicate()
        if self.process.returncode != 0:
            sys.exit("loops.py: the server ended with %d" % self.process.returncode)


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    if shutil.which("h2load") is None:
        print("loops.py: no h2load, skipped")
        return
    servers = [Server(build / "bench" / "http" / "bench-http-server", loops) for loops in (1, 2)]
    rows = []
    for name, how, n in LOADS:
        cost = [[], []]
        for _ in range(ROUNDS):
            for i, server in enumerate(servers):
                cost[i].append(server.load(how, n))
        one, two = (statistics.median(c) for c in cost)
        ratio = statistics.median(b / a for a, b in zip(*cost))
        print("http.loops.%-10s one loop %6.2f us, two loops %6.2f us CPU a request: %.3f" % (name, one, two, ratio))
        rows.append({"name": "http.loops." + name, "one_us": one, "two_us": two, "ratio": ratio})
    for server in servers:
        server.stop()
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
