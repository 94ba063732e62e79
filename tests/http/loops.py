#!/usr/bin/env python3
"""A service on several loops: one address, one shutdown, one log. And a server without descriptors.

usage: [EBB_SHUTDOWN_ROUNDS=N] loops.py SERVER EBB [TEST...]
"""
import collections
import http.client
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

from http_world import PATIENCE_S, Server, WithServer, run_tests
from shutdown import ROUNDS, Client1, Client2, ClientAnew, WithLoad

FEW_FDS = 48
COUNTS = (1, 2) if ROUNDS > 1 else (2,)  # one loop by itself is for tests/loop/listen.c, and for the soak
EXIT_FAILED, EXIT_FORCED = 1, 4


class WithLoops(WithServer):
    ebb = ""

    def start_loops(self, n, *arguments):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.log = directory.name + "/audit.jsonl"
        return self.start("--loops", str(n), "--audit", self.log, "--budget-ms", "60000", *arguments)

    def ask(self, path, timeout=PATIENCE_S):
        """By a connection of its own."""
        c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=timeout)
        self.addCleanup(c.close)
        c.request("GET", path)
        answer = c.getresponse()
        return c, answer.status, answer.read().decode()

    def of_each_loop(self, n):
        """A connection to each loop."""
        found = {}
        end = time.monotonic() + PATIENCE_S
        while len(found) < n:
            c, _, loop = self.ask("/where")
            if found.setdefault(loop, c) is not c:
                c.close()
            self.assertLess(time.monotonic(), end, "loops that answer: %s" % sorted(found))
        return [found[str(i)] for i in range(n)]

    def check_log(self, n):
        """It verifies, and has the end of every loop."""
        done = subprocess.run([self.ebb, "audit", "verify", self.log], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        shown = subprocess.run([self.ebb, "audit", "show", self.log], capture_output=True, text=True, check=True).stdout
        counts = collections.Counter(word for word in shown.split() if word in ("opened", "requested", "finalized"))
        self.assertEqual(counts, {"opened": n, "requested": n, "finalized": n}, shown)
        return [line for line in shown.splitlines() if " requested " in line]


class Loops(WithLoops):
    def test_all_serve_and_all_drain(self):
        self.start_loops(2)
        busy = self.of_each_loop(2)
        for c in busy:
            c.request("GET", "/p/slow?ms=700")
        time.sleep(0.1)
        self.server.terminate()
        for c in busy:
            answer = c.getresponse()
            self.assertEqual((answer.status, answer.read()), (200, b"ok"))
        self.server.check_end()
        self.assertIn("#1 ", self.check_log(2)[-1])  # the shutdown is asked when all loops have confirmed

    def test_one_loop_is_as_ever(self):
        self.start_loops(1)
        self.assertEqual(self.ask("/where")[1:], (200, "0"))
        self.server.stop()
        self.check_log(1)

    def test_loops_share_the_descriptors(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
        rooms = []
        for n in (1, 2):
            self.start_loops(n)
            rooms.append(self.ask("/room")[2])
            self.server.stop()
        self.assertEqual(rooms, ["448", "224"])

    def test_a_port_of_another_process_is_refused(self):
        self.start_loops(2)
        with self.assertRaisesRegex(AssertionError, "EADDRINUSE"):
            Server(self.program, "--loops", "2", "--port", str(self.server.port))
        self.server.stop()

    def test_a_port_may_be_chosen(self):
        self.start_loops(2)
        port = self.server.port
        self.server.stop()
        self.start_loops(2, "--port", str(port))
        self.of_each_loop(2)
        self.server.stop()

    def test_the_failure_of_one_stops_all(self):
        for loop in range(2):
            self.start_loops(2, "--fail-on", str(loop))
            connections = self.of_each_loop(2)
            other = connections[1 - loop]
            other.request("GET", "/p/slow?ms=500")
            connections[loop].request("GET", "/fail")
            self.assertEqual(connections[loop].getresponse().read(), b"failed")
            self.assertEqual(other.getresponse().read(), b"ok")
            self.assertEqual(self.server.wait(), EXIT_FAILED)
            self.assertEqual(self.server.stderr(), "EBB_FAILED\n")
            verdict = subprocess.run([self.ebb, "audit", "verify", self.log], capture_output=True, text=True, check=False)
            self.assertEqual(verdict.returncode, 0, verdict.stdout)

    def test_a_second_signal_forces_all(self):
        self.start_loops(2)
        for c in self.of_each_loop(2):
            c.request("GET", "/hang")
        time.sleep(0.1)
        self.server.terminate()
        time.sleep(0.2)
        self.server.terminate()
        self.assertEqual(self.server.wait(), EXIT_FORCED)
        verdict = subprocess.run([self.ebb, "audit", "verify", self.log], capture_output=True, text=True, check=False)
        self.assertEqual(verdict.returncode, 0, verdict.stdout)

    def test_explains_all(self):
        self.start_loops(2)
        for c in self.of_each_loop(2):
            c.request("GET", "/hang")
        self.server.process.send_signal(signal.SIGUSR1)
        end = time.monotonic() + PATIENCE_S
        while "#1 " not in self.server.stderr() or "#2 loops loop 1" not in self.server.stderr():
            self.assertLess(time.monotonic(), end, self.server.stderr())
            time.sleep(0.01)
        self.server.kill()


class LoopsUnderLoad(WithLoad, WithLoops):
    def test_keep_alive_and_http2(self):
        for _ in range(ROUNDS):
            self.start_loops(2)
            self.load_until_the_end(Client1, Client2)
            self.check_log(2)

    def test_clients_that_connect_anew(self):
        for _ in range(ROUNDS):
            self.start_loops(2)
            self.load_until_the_end(Client1, Client2, ClientAnew, ClientAnew)
            self.check_log(2)


class Descriptors(WithLoops):
    def fill(self, n):
        """More idle connections than there are descriptors."""
        self.start_loops(n)
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (FEW_FDS, FEW_FDS))
        clients = [socket.create_connection(("127.0.0.1", self.server.port), PATIENCE_S) for _ in range(2 * FEW_FDS)]
        for c in clients:
            self.addCleanup(c.close)
        end = time.monotonic() + PATIENCE_S
        while len(os.listdir("/proc/%d/fd" % self.server.pid)) < FEW_FDS:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        return clients

    def test_the_listener_waits_and_costs_nothing(self):
        for n in COUNTS:
            clients = self.fill(n)
            before = self.server.cpu_seconds()
            time.sleep(1)
            self.assertLess(self.server.cpu_seconds() - before, 0.1)
            for c in clients:
                c.close()
            self.assertEqual(self.ask("/p/slow")[1], 200)
            self.server.stop()

    def test_a_service_can_be_stopped(self):
        for n in COUNTS:
            clients = self.fill(n)
            self.server.terminate()
            for c in clients:
                c.sendall(b"GET /where HTTP/1.1\r\nhost: a\r\n\r\n")
            answers = [c.recv(65536).split(b"\r\n")[0] for c in clients]
            self.assertEqual(set(answers), {b"HTTP/1.1 200 OK"})
            for c in clients:
                c.close()
            self.server.check_end()
            self.check_log(n)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    WithLoops.ebb = sys.argv[2]
    run_tests(sys.argv[1], sys.argv[3:])
