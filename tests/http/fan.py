#!/usr/bin/env python3
"""SIGTERM to a server under load whose handlers fan out.

usage: fan.py SERVER EBB

/fan waits until the service was asked to stop. Only then it opens a region, spawns tasks there that wait for timers
or ask another server, and joins it: everything that it begins is begun after the close. Every request in flight must
be answered with 200 all the same, and the audit log must prove that nothing else was begun.
"""
import collections
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import h2raw
from http_world import KINDS, PATIENCE_S, Server, WithClients, certificate

EBB = None
BUDGET_MS = 120000  # cancel_at is far: the machine may be busy


class Load(threading.Thread):
    """Asks for one /hello after the other, until the connection takes no more."""

    def __init__(self, server, index, **how):
        super().__init__()
        self.connection, self.kind = server.connect(**how), KINDS[index % 3]
        self.name = "load%d" % index
        self.answered, self.wrong = [], []
        self.start()

    def run(self):
        while self.connection.goaway is None and self.ask("%s.%d" % (self.name, len(self.answered))):
            pass
        self.connection.at_end()
        self.connection.close()

    def ask(self, name):
        try:
            answer = self.connection.response(self.connection.request("/%s/hello?id=%s" % (self.kind, name)))
        except OSError:  # the server has closed it
            return False
        if answer.status == 200:
            self.answered.append(name)
        elif answer.status is not None:  # else it was refused: its stream was never begun
            self.wrong.append((name, answer.status))
        return answer.status == 200


class Fan(WithClients):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.audit = self.folder / "audit.log"
        self.upstream = Server(self.program, "--quiet", "--limit", "streams=1000")
        self.addCleanup(self.upstream.kill)

    def serve(self, *arguments):
        self.start("--budget-ms", str(BUDGET_MS), "--audit", str(self.audit),
                   "--upstream", "http://127.0.0.1:%d/f/slow?ms=20" % self.upstream.port, *arguments)

    def stop(self, names, load=()):
        """Asks it to stop when all of these have begun; returns when it has closed."""
        self.server.wait_for_all("begin", names)
        for each in load:
            self.server.wait_for("closed", each.name + ".3")
        self.server.terminate()

    def check(self, names, load=()):
        """After every answer was read: how it ended, and what its log proves."""
        for each in load:
            each.join(PATIENCE_S)
        self.server.check_end()
        self.upstream.stop()
        for name in names:
            self.assertEqual(self.server.history(name), ["begin", "cleaned", "closed"])
        begun = {e.id for e in self.server.events if e.what == "begin"} - set(names)
        self.assertEqual([each.wrong for each in load if each.wrong], [])
        self.assertEqual(begun, {name for each in load for name in each.answered})
        self.assertEqual((self.server.counts["cancelled"], self.server.counts["failed"]), (0, 0))
        self.check_log()

    def check_log(self):
        done = subprocess.run([EBB, "audit", "verify", str(self.audit)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = [json.loads(line) for line in self.audit.read_text(encoding="utf-8").splitlines()]
        lines = lines[[line["event"] for line in lines].index("requested"):]
        events = [line["event"] for line in lines]
        self.assertEqual((events[-1], lines[-1]["evidence"]["left"]), ("finalized", 0), events)
        self.assertFalse({"drain_cancelled", "drain_timeout", "left", "leak_detected"} & set(events), events)
        in_flight = [line["in_flight"] for line in lines]
        self.assertGreater(in_flight[0], 0)
        self.assertEqual(in_flight, sorted(in_flight, reverse=True))
        self.assertEqual(in_flight[-1], 0)
        self.assertGreater(lines[-1].get("inside", 0), 0, lines[-1])

    def answers_of_http_2(self, connections, each, load, **how):
        open_ones = [self.connect(**how) for _ in range(connections)]
        asked = [(c, c.request("/%s/fan?n=%d&id=%d.%d" % (KINDS[i % 3], i % 6 + 1, n, i)), "%d.%d" % (n, i))
                 for n, c in enumerate(open_ones) for i in range(each)]
        names = [name for _, _, name in asked]
        self.stop(names, load)
        found = collections.Counter()
        for c, stream, _ in asked:
            answer = c.response(stream)
            found[answer.status, bytes(answer.body)] += 1
        self.assertEqual(dict(found), {(200, b"fan\n"): len(names)})
        for c in open_ones:
            self.assertEqual(c.goaway[1], h2raw.NO_ERROR)
            c.at_end()
            c.close()
        self.check(names, load)

    def test_HTTP_2(self):
        self.serve()
        self.answers_of_http_2(10, 30, [Load(self.server, i) for i in range(3)])

    def test_HTTP_2_over_TLS(self):
        self.serve("--tls", *certificate(self.folder))
        self.answers_of_http_2(4, 15, [Load(self.server, 0, tls=h2raw.tls_context())], tls=h2raw.tls_context())

    def test_HTTP_1(self):
        self.serve()
        open_ones = [(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S), str(i))
                     for i in range(30)]
        for c, name in open_ones:
            self.addCleanup(c.close)
            c.request("GET", "/%s/fan?n=4&id=%s" % (KINDS[int(name) % 3], name))
        names = [name for _, name in open_ones]
        self.stop(names)
        for c, _ in open_ones:
            answer = c.getresponse()
            self.assertEqual((answer.status, answer.read()), (200, b"fan\n"))
            c.close()
        self.check(names)


if __name__ == "__main__":
    WithClients.program, EBB = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
