#!/usr/bin/env python3
"""What a well-behaved client keeps of its requests while others attack the HTTP server.

usage: attacks_rates.py SERVER ATTACKER [TEST...]

The server has one core; the client and the attackers share another, and the client goes first there. Beside one
attacker the client gets at least 80 % of the requests through that it gets through when nobody attacks, beside ten
40 %. It is measured up to five times, since the machine may have other work; the median counts. In a build with sanitizers only
that all of its requests succeed is asserted.
"""
import os
import statistics
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("attacks")))
import floods  # noqa: E402
from http_world import Server, is_sanitized  # noqa: E402
from under_attack import SERVER_CORE, GoodClient, attackers, go_first, kept  # noqa: E402

SERVER = ATTACKER = ""
TRIES = 5
LEAST = {1: 0.8, 10: 0.4}  # by how many attack


class Rates(unittest.TestCase):
    def keeps(self, group, name):
        server = Server(SERVER, "--quiet")
        self.addCleanup(server.kill)
        go_first(SERVER_CORE, server.pid)
        good = GoodClient(server.port)
        self.addCleanup(good.close)
        flood = floods.FLOODS[group][name]
        for n, least in LEAST.items():
            with self.subTest(attackers=n):
                self.assert_kept(good, attackers(ATTACKER, server.port, flood, n), least)
        good.close()
        server.still()
        server.stop()

    def assert_kept(self, good, attack, least):
        shares = []
        for _ in range(TRIES):
            shares.append(kept(good, attack))
            print("keeps %d%%" % (100 * shares[-1]), flush=True)
            if statistics.median(shares) >= least or is_sanitized(SERVER):
                return
        self.fail("%s of its quiet rate is left, less than %s" % (shares, least))

    def test_beside_data_of_closed_streams(self):
        self.keeps("closed_streams", "DATA")

    def test_beside_data_of_streams_that_the_server_has_reset(self):
        self.keeps("closed_streams", "DATA of a stream that the server has reset")

    def test_beside_late_resets(self):
        self.keeps("late_reset", "once the response has begun")

    def test_beside_cookie_crumbs(self):
        self.keeps("cookie_crumbs", "3000 of one byte")

    def test_beside_floods_after_a_goaway(self):
        self.keeps("after_goaway", "requests")

    def test_beside_rapid_resets(self):
        self.keeps("rapid_reset", "at once")


if __name__ == "__main__":
    SERVER, ATTACKER = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
