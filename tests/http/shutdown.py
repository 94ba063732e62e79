#!/usr/bin/env python3
"""SIGTERM loses no request of a client that keeps the rules of its protocol.

usage: [EBB_SHUTDOWN_ROUNDS=N] shutdown.py SERVER [TEST...]

A connection that closes takes what is on its way: in HTTP/2 until the peer has answered the PING behind the first
GOAWAY, in HTTP/1 one more request, whose response says `connection: close`; for a second at most.
"""
import http.client
import os
import signal
import socket
import sys
import threading
import time

import h2raw
from http_world import KINDS, PATIENCE_S, WithServer, run_tests

ALL_STREAMS = 2 ** 31 - 1
ROUNDS = int(os.environ.get("EBB_SHUTDOWN_ROUNDS", "1"))


class Http2(WithServer):
    def test_takes_what_crosses_the_first_goaway(self):
        self.start()
        c = self.connect(auto_ping=False)
        self.assertEqual(c.get("/f/hello").status, 200)
        self.server.terminate()
        self.assertTrue(c.wait(lambda: c.goaway))
        self.assertEqual(c.goaway[:2], (ALL_STREAMS, h2raw.NO_ERROR))
        crossing = [c.request("/%s/hello" % kind) for kind in KINDS]
        self.assertEqual([c.response(stream).status for stream in crossing], [200] * len(KINDS))
        c.send_frame(h2raw.PING, h2raw.ACK, 0, bytes(8))
        late = c.request("/f/hello?id=late")
        self.assertTrue(c.wait(lambda: len(c.goaways) > 1))
        self.assertEqual(c.goaway[:2], (crossing[-1], h2raw.NO_ERROR))
        c.at_end()
        self.assertIsNone(c.streams[late].status)
        c.close()
        self.server.check_end()
        self.assertEqual(self.server.history("late"), [])

    def test_does_not_wait_long_for_a_peer_that_does_not_answer(self):
        self.start("--budget-ms", "30000")
        c = self.connect(auto_ping=False)
        self.assertEqual(c.get("/f/hello").status, 200)
        self.server.terminate()
        self.assertTrue(c.wait(lambda: len(c.goaways) > 1))
        self.assertEqual([last for last, _, _ in c.goaways], [ALL_STREAMS, 1])
        c.at_end()
        c.close()
        self.server.check_end()

    def test_times_a_peer_that_neither_answers_nor_reads(self):
        """The end of the notice is not the end of the clocks of exchanges."""
        self.start("--budget-ms", "600000", "--limit", "write_ns=1500000000", "--limit", "header_ns=600000000000")
        c = self.connect(values={h2raw.INITIAL_WINDOW_SIZE: 0}, auto_ping=False)
        c.request("/f/big?id=big")
        self.server.wait_for("begin", "big")
        self.server.terminate()
        self.assert_cancelled(["big"], "TIMEOUT", "the peer does not read")
        c.at_end()
        c.close()
        self.server.check_end()

    def test_ends_at_once_with_a_peer_that_answers(self):
        self.start("--budget-ms", "600000")
        c = self.connect()
        self.assertEqual(c.get("/f/hello").status, 200)
        self.server.terminate()
        c.at_end()
        c.close()
        self.server.check_end()

    def test_of_which_the_preface_has_not_come(self):
        """Its first request is on its way as well."""
        self.start("--budget-ms", "600000")
        with socket.create_connection(("127.0.0.1", self.server.port)):
            self.server.still(connections=1)
            c = self.connect(preface=False)
            self.server.still(connections=2)
            self.server.terminate()
            c.send(h2raw.PREFACE + h2raw.frame(h2raw.SETTINGS, 0, 0))
            self.assertEqual(c.get("/f/hello").status, 200)
            c.at_end()
            c.close()
            self.server.check_end()


class Http1(WithServer):
    def connect_1(self):
        c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        c.connect()
        self.addCleanup(c.close)
        return c

    def ask(self, c, path="/f/hello"):
        c.request("GET", path)
        answer = c.getresponse()
        self.assertEqual(answer.status, 200)
        answer.read()
        return answer.getheader("connection")

    def test_answers_one_more_request(self):
        self.start()
        used, fresh = self.connect_1(), self.connect_1()
        self.assertIsNone(self.ask(used))
        self.server.still(connections=2)
        self.server.terminate()
        time.sleep(0.2)  # so that it has heard
        for c in (used, fresh):
            self.assertEqual(self.ask(c), "close")
        self.server.check_end()

    def test_answers_no_second_one(self):
        self.start()
        c = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S)
        self.addCleanup(c.close)
        self.server.still(connections=1)
        self.server.terminate()
        time.sleep(0.2)
        c.sendall(b"GET /f/hello HTTP/1.1\r\nhost: a\r\n\r\n" * 2)
        answers = b"".join(iter(lambda: c.recv(65536), b""))
        self.assertEqual(answers.count(b"HTTP/1.1 200"), 1)
        self.assertIn(b"connection: close", answers)
        self.server.check_end()

    def test_answers_one_more_after_a_response_that_had_begun(self):
        """Its head did not say close: the client could not know."""
        self.start("--budget-ms", "30000")
        c = self.connect_1()
        c.request("GET", "/f/events?n=15&ms=100")
        answer = c.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertIsNone(answer.getheader("connection"))
        self.server.terminate()
        answer.read()
        self.assertEqual(self.ask(c), "close")
        self.server.check_end()

    def test_is_closed_if_nothing_comes(self):
        self.start("--budget-ms", "600000")
        c = self.connect_1()
        self.ask(c)
        self.server.terminate()
        self.assertEqual(c.sock.recv(1), b"")
        c.close()
        self.server.check_end()


class Client1(threading.Thread):
    """Asks until a response says close. `lost`: what was neither answered nor refused by the rules."""

    def __init__(self, server):
        super().__init__()
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        self.connection.connect()
        self.answered, self.lost = 0, []
        self.start()

    def run(self):
        close = None
        while close is None:
            try:
                self.connection.request("GET", "/p/slow?ms=1")
                answer = self.connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as e:
                self.lost.append(repr(e))
                return
            if answer.status != 200:
                self.lost.append(answer.status)
            self.answered += 1
            close = answer.getheader("connection")
        self.connection.close()


class Client2(threading.Thread):
    """The same, with several streams at a time, until a GOAWAY."""

    def __init__(self, server):
        super().__init__()
        self.connection = server.connect()
        self.answered, self.lost = 0, []
        self.start()

    def run(self):
        c, streams = self.connection, []
        while c.goaway is None or streams:
            try:
                while c.goaway is None and len(streams) < 4:
                    streams.append(c.request("/p/slow?ms=1"))
                answer = c.response(streams[0])
            except OSError as e:
                self.lost.append(repr(e))
                return
            if answer.status == 200:
                self.answered += 1
            elif c.goaway is None or streams[0] <= c.goaway[0]:
                self.lost.append((streams[0], answer.status, answer.reset, c.goaways))
                return
            streams.pop(0)
        c.at_end()
        c.close()


class ClientAnew(threading.Thread):
    """Connects for every request, until nobody listens any more."""

    def __init__(self, server):
        super().__init__()
        self.port = server.port
        self.answered, self.lost = 0, []
        self.start()

    def run(self):
        while not self.lost:
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
            try:
                c.connect()
            except ConnectionRefusedError:
                return
            try:
                c.request("GET", "/p/slow?ms=1")
                answer = c.getresponse()
                answer.read()
                if answer.status != 200:
                    self.lost.append(answer.status)
            except (OSError, http.client.HTTPException) as e:
                self.lost.append(repr(e))
            self.answered += 1
            c.close()


class WithLoad(WithServer):
    def load_until_the_end(self, *kinds):
        """100 clients; when all were served, SIGTERM. None may lose a request."""
        clients = [kind(self.server) for _ in range(100 // len(kinds)) for kind in kinds]
        while min(c.answered for c in clients) < 3:
            time.sleep(0.01)
            self.assertEqual([c.lost for c in clients if c.lost], [])
        self.server.terminate()
        for c in clients:
            c.join(PATIENCE_S)
        self.assertEqual([c.lost for c in clients if c.lost], [])
        self.server.check_end()


class UnderLoad(WithLoad):
    def test_of_100_clients_no_request_is_lost(self):
        for _ in range(ROUNDS):
            self.start("--quiet", "--budget-ms", "60000")
            self.load_until_the_end(Client1, Client2)

    def test_of_clients_that_connect_anew_no_request_is_lost(self):
        for _ in range(ROUNDS):
            self.start("--quiet", "--budget-ms", "60000")
            self.load_until_the_end(Client1, ClientAnew)

    def test_what_waits_to_be_accepted_is_answered(self):
        """The server can't accept while it is stopped; the system does."""
        self.start("--budget-ms", "60000")
        os.kill(self.server.pid, signal.SIGSTOP)
        waiting = [http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S) for _ in range(100)]
        for c in waiting:
            c.connect()
            self.addCleanup(c.close)
        self.server.process.send_signal(signal.SIGTERM)
        for c in waiting[::2]:
            c.request("GET", "/f/hello")
        os.kill(self.server.pid, signal.SIGCONT)
        for c in waiting[1::2]:
            c.request("GET", "/f/hello")
        self.assertEqual([c.getresponse().status for c in waiting], [200] * len(waiting))
        self.server.check_end()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    run_tests(sys.argv[1], sys.argv[2:])
