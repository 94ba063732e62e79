#!/usr/bin/env python3
"""HTTP/1.1 and 1.0 as clients that people have meet it: curl, h2load and Python's own. What no client would send is
in h1.c.

usage: h1_clients.py SERVER [CLASS[.TEST]...]
"""
import http.client
import json
import os
import subprocess
import sys
import tempfile
import zlib

from http_world import KINDS, PATIENCE_S, Client, WithClients, letters, run_tests

MIB = 1 << 20


class WithCurl(WithClients):
    scheme = "http"
    options = ()

    def url(self, path):
        return "%s://127.0.0.1:%d%s" % (self.scheme, self.server.port, path)

    def curl(self, *arguments):
        return Client(self, "curl", "-sS", "-N", "--http1.1", *self.options, *arguments)

    def run_curl(self, path, *arguments):
        return self.run_client("curl", "-sS", "--http1.1", *self.options, *arguments, self.url(path))

    def temporary(self, raw):
        file = tempfile.NamedTemporaryFile()
        self.addCleanup(file.close)
        file.write(raw)
        file.flush()
        return file.name


class Curl(WithCurl):
    def setUp(self):
        self.start()

    def tearDown(self):
        self.server.stop()

    def test_what_a_handler_says(self):
        for kind in KINDS:
            self.assertEqual(self.run_curl("/%s/hello" % kind), b"hello\n")

    def test_one_connection_for_many_requests(self):
        urls = [self.url("/f/big?n=%d" % n) for n in (0, 1, 1000, 100000)]
        out = [option for _ in urls for option in ("-o", "/dev/null")]
        said = self.run_curl("/f/hello", "-w", "%{num_connects} ", *urls, *out)
        self.assertEqual(said, b"1 0 0 0 hello\n0 ")

    def test_head(self):
        said = self.run_curl("/f/hello", "-I", self.url("/f/big?n=1000"), self.url("/f/hello")).decode()
        self.assertEqual(said.count("HTTP/1.1 200 OK\r\n"), 3)
        self.assertEqual(said.count("content-length: 6\r\n"), 2)
        self.assertNotIn("transfer-encoding", said)

    def test_http_1_0(self):
        said = self.run_curl("/f/big?n=100000", "--http1.0", "--no-alpn", "-i")
        head, body = said.split(b"\r\n\r\n", 1)
        self.assertEqual(body, letters(100000))
        self.assertIn(b"\r\nconnection: close", head)
        self.assertNotIn(b"transfer-encoding", head)

    def test_10_mib_down_and_up(self):
        self.assertEqual(self.run_curl("/f/big?n=%d" % (10 * MIB)), letters(10 * MIB))
        raw = os.urandom(10 * MIB)
        file = self.temporary(raw)
        for kind in KINDS:
            self.assertEqual(self.run_curl("/%s/echo" % kind, "-X", "POST", "-T", file, "-H", "expect:"), raw)
            self.assertEqual(self.run_curl("/%s/upload" % kind, "-T", file), b"%d %d\n" % (len(raw), zlib.adler32(raw)))

    def test_uploads_in_chunks(self):
        raw = os.urandom(3 * MIB)
        with open(self.temporary(raw), "rb") as source:
            done = subprocess.run(["curl", "-sS", "--http1.1", *self.options, "-T", "-", self.url("/f/upload")],
                                  stdin=source, capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.stdout, done.stderr), (b"%d %d\n" % (len(raw), zlib.adler32(raw)), b""))

    def test_100_continue_is_what_it_waits_for(self):
        """curl would wait for an hour, did it not come."""
        file = self.temporary(b"abc")
        said = self.run_curl("/f/upload", "-T", file, "-H", "expect: 100-continue", "--expect100-timeout", "3600", "-i")
        self.assertTrue(said.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), said)
        self.assertTrue(said.endswith(b"3 %d\n" % zlib.adler32(b"abc")), said)

    def test_who_expects_and_is_refused_sends_nothing(self):
        file = self.temporary(b"a" * MIB)
        said = self.run_curl("/nowhere", "-T", file, "-H", "expect: 100-continue", "--expect100-timeout", "3600",
                             "-i", "-w", "%{size_upload}")
        self.assertTrue(said.startswith(b"HTTP/1.1 404 Not Found\r\n"), said)
        self.assertTrue(said.endswith(b"\n0"), said)

    def test_events(self):
        self.assertEqual(self.run_curl("/f/events?n=3", "-N").count(b"\n\n"), 3)

    def test_curl_that_dies_cancels_its_handler(self):
        for kind in KINDS:
            client = self.curl(self.url("/%s/hang?id=%s" % (kind, kind)))
            self.server.wait_for("begin", kind)
            client.kill()
        self.assert_cancelled(KINDS)

    def test_curl_that_dies_in_a_download_cancels_its_handler(self):
        client = self.curl(self.url("/f/big?n=1000000000&id=d"))
        self.assertEqual(len(client.hear(100000)), 100000)
        client.kill()
        self.assert_cancelled(["d"])

    def test_curl_that_dies_in_an_upload_cancels_its_handler(self):
        client = self.curl("-T", ".", self.url("/f/upload?id=u"))
        client.feed(b"abc")
        self.server.wait_for("begin", "u")
        client.kill()
        self.assert_cancelled(["u"])

    def test_a_response_that_breaks_off_is_an_error(self):
        done = subprocess.run(["curl", "-sS", "--http1.1", *self.options, self.url("/f/cut")], capture_output=True,
                              timeout=PATIENCE_S, check=False)
        self.assertIn(done.returncode, (18, 56), done)  # the transfer, or TLS, was cut

    def test_h2load(self):
        done = subprocess.run(["h2load", "--h1", "-n", "5000", "-c", "10", self.url("/p/hello")], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        self.assertIn("5000 total, 5000 started, 5000 done, 5000 succeeded, 0 failed", done.stdout)

    def test_h2load_that_pipelines(self):
        done = subprocess.run(["h2load", "--h1", "-n", "5000", "-c", "4", "-m", "50", self.url("/p/hello")],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertIn("5000 total, 5000 started, 5000 done, 5000 succeeded, 0 failed", done.stdout)


class CurlOverTls(Curl):
    scheme = "https"
    options = ("-k",)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cert, key = folder.name + "/cert.pem", folder.name + "/key.pem"
        self.run_quietly("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                         "-subj", "/CN=localhost", "-keyout", key, "-out", cert)
        self.start("--tls", cert, key)

    def run_quietly(self, *command):
        subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)


class Limits(WithCurl):
    def test_what_is_too_large_is_told_so(self):
        """The answer has to reach who is still sending."""
        self.start("--limit", "body_bytes=100000")
        file = self.temporary(b"a" * 20 * MIB)
        for length in ((), ("-H", "transfer-encoding: chunked")):
            said = self.run_curl("/f/upload", "-T", file, "-H", "expect:", *length, "-o", "/dev/null", "-w",
                                 "%{http_code}")
            self.assertEqual(said, b"413")
        self.server.stop()

    def test_one_connection_too_many_is_503(self):
        self.start("--limit", "connections=1")
        busy = self.curl(self.url("/f/hang?id=busy"))
        self.server.wait_for("begin", "busy")
        said = self.run_curl("/f/hello", "-i").decode()
        self.assertIn("503 Service Unavailable", said)
        self.assertIn("\r\nretry-after: ", said)
        self.assertIn("\r\nconnection: close", said)
        busy.kill()
        self.assert_cancelled(["busy"])
        self.server.stop()


class Python(WithCurl):
    def setUp(self):
        self.start()
        self.c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)

    def tearDown(self):
        self.c.close()
        self.server.stop()

    def ask(self, *arguments, **keywords):
        self.c.request(*arguments, **keywords)
        got = self.c.getresponse()
        return got.status, got.read()

    def test_1000_requests_on_one_connection(self):
        for i in range(1000):
            n = i * 7
            self.assertEqual(self.ask("GET", "/%s/big?n=%d" % (KINDS[i % 3], n)), (200, letters(n)))
        self.assertEqual(self.server.stats()["accepted"], 2)  # this one, and the one that asks

    def test_bodies_in_chunks(self):
        pieces = [b"a" * n for n in (1, 10, 1000, 100000, 3)]
        for kind in KINDS:
            got = self.ask("POST", "/%s/echo" % kind, body=iter(pieces), encode_chunked=True,
                           headers={"transfer-encoding": "chunked"})
            self.assertEqual(got, (200, b"".join(pieces)))

    def test_what_a_handler_sees(self):
        status, body = self.ask("GET", "/f/headers?q=1", headers={"X-Mixed-Case": "Yes", "x-empty": ""})
        self.assertEqual(status, 200)
        self.assertIn(b"x-mixed-case: Yes", body)
        self.assertIn(b"x-empty:", body)

    def test_failures_are_500_and_the_connection_goes_on(self):
        for path in ("fail", "silent"):
            self.assertEqual(self.ask("GET", "/f/" + path)[0], 500)
        self.assertEqual(self.ask("GET", "/f/hello"), (200, b"hello\n"))
        self.assertEqual(json.loads(self.ask("GET", "/stats")[1])["accepted"], 1)


if __name__ == "__main__":
    run_tests(sys.argv[1], sys.argv[2:])
