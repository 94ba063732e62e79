#!/usr/bin/env python3
"""Our client against servers that are not ours, and the proxy between real ones.

usage: client_peers.py HTTP_TEST_CLIENT HTTP_TEST_SERVER PROXY [TEST...]
"""
import contextlib
import http.client
import http.server
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib
from pathlib import Path

import h2raw
import http_world

CLIENT = SERVER = PROXY = ""
NODE_SERVER = Path(__file__).with_name("node_server.mjs")
PATIENCE_S = http_world.PATIENCE_S


def answer(body, status=200):
    """What the client says of a whole answer."""
    return "%d %d %08x" % (status, len(body), zlib.adler32(body))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process):
    end = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE_S):
            return
        if process.poll() is not None or time.monotonic() > end:
            raise AssertionError("nobody listens on port %d; %s" % (port, process.poll()))
        time.sleep(0.01)


class RefusesFirst(threading.Thread):
    """A server of HTTP/2 over TLS, for one connection. It refuses the first stream, and answers "again" to the others."""

    def __init__(self, cert, key):
        super().__init__(daemon=True)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(cert, key)
        self.tls.set_alpn_protocols(["h2"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "https://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.asked = []
        self.start()

    def run(self):
        with self.listener, self.tls.wrap_socket(self.listener.accept()[0], server_side=True) as s:
            s.settimeout(PATIENCE_S)
            s.sendall(h2raw.frame(h2raw.SETTINGS, 0, 0))
            got, at = b"", len(h2raw.PREFACE)
            while piece := s.recv(65536):
                got += piece
                while len(got) >= at + 9 + int.from_bytes(got[at:at + 3], "big"):
                    if got[at + 3] == h2raw.HEADERS:
                        s.sendall(self.answer(int.from_bytes(got[at + 5:at + 9], "big")))
                    at += 9 + int.from_bytes(got[at:at + 3], "big")

    def answer(self, stream):
        self.asked.append(stream)
        if len(self.asked) == 1:
            return h2raw.frame(h2raw.RST_STREAM, 0, stream, h2raw.REFUSED_STREAM.to_bytes(4, "big"))
        return (h2raw.frame(h2raw.HEADERS, h2raw.END_HEADERS, stream, h2raw.block([(":status", "200")]))
                + h2raw.frame(h2raw.DATA, h2raw.END_STREAM, stream, b"again"))


def serve_python(test, handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    test.addCleanup(thread.join)
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return "http://127.0.0.1:%d" % server.server_address[1]


class WithPeer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.dir = Path(cls.folder.name)
        cls.cert, cls.key = str(cls.dir / "cert.pem"), str(cls.dir / "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", cls.key, "-out", cls.cert, "-days", "2", "-subj", "/CN=test",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
        (cls.dir / "small").write_bytes(b"small file\n")
        cls.large = os.urandom(3_000_000)
        (cls.dir / "large").write_bytes(cls.large)

    def spawn(self, *command, **keywords):
        process = subprocess.Popen([str(c) for c in command], stderr=subprocess.DEVNULL, **keywords)

        def end():
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()

        self.addCleanup(end)
        return process

    def ask(self, *arguments):
        """What the client says of each URL, by its index; it must end well."""
        done = subprocess.run([CLIENT, *[str(a) for a in arguments]], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        said = {}
        for line in done.stdout.splitlines():
            index, rest = line.split(" ", 1)
            said.setdefault(int(index), []).append(rest)
        return said

    def assert_all(self, said, n, expected):
        self.assertEqual(said, {i: [expected] for i in range(n)})


class Nghttpd(WithPeer):
    def start(self, *arguments, after=()):
        port = free_port()
        process = self.spawn("nghttpd", "-a", "127.0.0.1", "-d", self.dir, *arguments, port, *after)
        wait_for_port(port, process)
        return port

    def test_files_in_plain_text(self):
        base = "http://127.0.0.1:%d" % self.start("--no-tls")
        said = self.ask("--prior-knowledge", base + "/small", base + "/large", base + "/none")
        self.assertEqual(said[0], [answer(b"small file\n")])
        self.assertEqual(said[1], [answer(self.large)])
        self.assertRegex(said[2][0], "^404 ")
        said = self.ask("--prior-knowledge", "--times", 300, base + "/small")
        self.assert_all(said, 300, answer(b"small file\n"))

    def test_files_over_tls(self):
        port = self.start(after=(self.key, self.cert))
        for host in ("localhost", "127.0.0.1"):
            said = self.ask("--ca", self.cert, "--open", "--times", 20, "https://%s:%d/large" % (host, port))
            self.assertEqual(said, {i: ["version 20", answer(self.large)] for i in range(20)})
        said = self.ask("https://localhost:%d/small" % port)  # whom the system trusts
        self.assert_all(said, 1, "EBB_ERR_TLS")

    def test_a_body_that_comes_back(self):
        base = "http://127.0.0.1:%d" % self.start("--no-tls", "--echo-upload")
        body = b"e" * 1_000_000
        for way in ("--open", "--streams"):
            said = self.ask("--prior-knowledge", "--method", "POST", "--body", len(body), way, base + "/small")
            self.assertEqual(said, {0: ["version 20", answer(body)]})

    def test_streams_that_it_refuses_are_not_sent(self):
        base = "http://127.0.0.1:%d" % self.start("--no-tls", "-m", "3")
        said = self.ask("--prior-knowledge", "--connections", 1, "--times", 50, base + "/small")
        self.assert_all(said, 50, answer(b"small file\n"))


class Node(WithPeer):
    def start(self, *arguments):
        self.process = self.spawn("node", NODE_SERVER, *arguments, stdout=subprocess.PIPE, text=True)
        return int(self.hear("port").split()[1])

    def line(self):
        """The next one that the server says; it has so much time for it."""
        late = threading.Timer(PATIENCE_S, self.process.kill)
        late.start()
        try:
            return self.process.stdout.readline()
        finally:
            late.cancel()

    def hear(self, word):
        line = self.line()
        self.assertTrue(line.startswith(word), line)
        return line

    def streams_until_mark(self, base):
        """What happened to the streams so far, begun and ended."""
        self.ask("--prior-knowledge", base + "/mark")
        heard, ends = [], 0
        while "mark" not in heard or ends < heard.count("begin"):
            heard.append(self.line().strip())
            self.assertNotEqual(heard[-1], "")
            ends += heard[-1].startswith("end")
        return sorted(line for line in heard if line != "mark")

    def plain(self):
        return "http://127.0.0.1:%d" % self.start("h2")

    def test_http_2_in_plain_text_and_over_tls(self):
        base = self.plain()
        self.assertEqual(self.ask("--prior-knowledge", "--open", base + "/hello"), {0: ["version 20", answer(b"hello\n")]})
        base = "https://localhost:%d" % self.start("h2", self.cert, self.key)
        said = self.ask("--ca", self.cert, "--open", "--times", 30, base + "/hello")
        self.assertEqual(said, {i: ["version 20", answer(b"hello\n")] for i in range(30)})

    def test_http_1_over_tls_by_alpn(self):
        base = "https://localhost:%d" % self.start("https", self.cert, self.key)
        said = self.ask("--ca", self.cert, "--open", "--method", "POST", "--body", 50000, "--times", 30, base + "/")
        self.assertEqual(said, {i: ["version 11", answer(b"e" * 50000)] for i in range(30)})

    def test_what_it_always_refuses_fails_in_the_end_and_what_it_breaks_at_once(self):
        base = self.plain()
        said = self.ask("--prior-knowledge", base + "/refuse", base + "/break", base + "/hello")
        self.assertEqual(said, {0: ["EBB_ERR_HTTP_RETRY"], 1: ["EBB_ERR_HTTP_RESET"], 2: [answer(b"hello\n")]})

    def test_informational_responses_and_trailers(self):
        base = self.plain()
        self.assertEqual(self.ask("--prior-knowledge", base + "/hints"), {0: [answer(b"hinted\n")]})
        said = self.ask("--prior-knowledge", "--streams", "--method", "POST", "--body", 300000, base + "/echo")
        self.assertEqual(said, {0: ["version 20", answer(b"e" * 300000), "trailer 300000"]})

    def test_its_limit_of_ten_streams_is_kept_on_one_connection(self):
        base = self.plain()
        said = self.ask("--prior-knowledge", "--connections", 1, "--times", 200, base + "/hello")
        self.assert_all(said, 200, answer(b"hello\n"))
        self.assertEqual(self.ask("--prior-knowledge", base + "/sessions"), {0: [answer(b"2\n")]})

    def test_much_in_both_directions(self):
        base = self.plain()
        n = 30_000_000
        said = self.ask("--prior-knowledge", "--open", "%s/big?n=%d" % (base, n))
        self.assertEqual(said, {0: ["version 20", answer(b"n" * n)]})
        said = self.ask("--prior-knowledge", "--streams", "--method", "POST", "--body", 5_000_000, base + "/slow")
        self.assertEqual(said, {0: ["version 20", answer(b"5000000\n")]})

    def test_a_call_that_is_given_up_is_reset_with_cancel(self):
        base = self.plain()
        for flag in ("--open", "--prior-knowledge"):  # the other one is a fetch
            for ms in (200, 2000, 10000):  # until both have begun, on a busy machine
                said = self.ask("--prior-knowledge", flag, "--cancel-ms", ms, base + "/hang", base + "/hang")
                self.assertEqual(said, {0: ["EBB_CANCELLED"], 1: ["EBB_CANCELLED"]})
                lines = self.streams_until_mark(base)
                if lines.count("begin") == 2:
                    break
            self.assertEqual(lines, ["begin", "begin", "end 8", "end 8"])

    def test_a_deadline(self):
        said = self.ask("--prior-knowledge", "--deadline-ms", 200, self.plain() + "/hang")
        self.assertEqual(said, {0: ["EBB_TIMEOUT"]})

    def test_after_its_goaway_another_connection_is_used(self):
        base = self.plain()
        said = self.ask("--prior-knowledge", "--at-once", 1, "--times", 20, base + "/leave")
        self.assert_all(said, 20, answer(b"bye\n"))


class Python(WithPeer):
    def start(self, version, close_after=None):
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = version
            served = 0

            def setup(self):
                super().setup()
                test.connections += 1

            def do_GET(self):
                self.served += 1
                body = b"hello\n"
                self.send_response(200)
                if version != "HTTP/1.0":
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                if self.served == close_after:  # without a word
                    self.close_connection = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for at in range(0, len(body), 7000):
                    piece = body[at:at + 7000]
                    self.wfile.write(b"%x;ext=1\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\nx-sum: %d\r\n\r\n" % len(body))

            def log_message(self, *_):
                pass

        self.connections = 0
        return serve_python(self, Handler)

    def test_http_1_0_whose_body_ends_with_the_connection(self):
        base = self.start("HTTP/1.0")
        self.assert_all(self.ask("--times", 20, base + "/"), 20, answer(b"hello\n"))
        self.assertEqual(self.connections, 20)
        self.assertEqual(self.ask("--open", base + "/"), {0: ["version 10", answer(b"hello\n")]})

    def test_connections_are_kept(self):
        base = self.start("HTTP/1.1")
        self.assert_all(self.ask("--connections", 4, "--times", 100, base + "/"), 100, answer(b"hello\n"))
        self.assertEqual(self.connections, 4)

    def test_chunks_and_trailers(self):
        said = self.ask("--open", "--method", "POST", "--body", 100000, self.start("HTTP/1.1") + "/")
        self.assertEqual(said, {0: ["version 11", answer(b"e" * 100000), "trailer 100000"]})

    def test_a_server_that_hangs_up_without_a_word(self):
        said = self.ask("--at-once", 1, "--times", 50, self.start("HTTP/1.1", close_after=3) + "/")
        for what in said.values():  # a request that crosses the end on its way may have been read: it is not repeated
            self.assertIn(what[0], (answer(b"hello\n"), "EBB_ERR_HTTP_RESET"))
        self.assertEqual(len(said), 50)


@unittest.skipUnless(shutil.which("nginx"), "there is no nginx")
class Nginx(WithPeer):
    CONFIGURATION = """
daemon off; master_process off; pid %(dir)s/pid; error_log %(dir)s/error.log;
events { worker_connections 256; }
http {
    access_log off; client_body_temp_path %(dir)s/body; proxy_temp_path %(dir)s/proxy;
    fastcgi_temp_path %(dir)s/f; uwsgi_temp_path %(dir)s/u; scgi_temp_path %(dir)s/s;
    keepalive_requests 7; client_max_body_size 1k;
    server { listen 127.0.0.1:%(plain)d; root %(dir)s; }
    server { listen 127.0.0.1:%(tls)d ssl http2; ssl_certificate %(cert)s; ssl_certificate_key %(key)s; root %(dir)s; }
}
"""

    def start(self):
        self.ports = {"plain": free_port(), "tls": free_port()}
        path = self.dir / "nginx.conf"
        path.write_text(self.CONFIGURATION % {"dir": self.dir, "cert": self.cert, "key": self.key, **self.ports})
        process = self.spawn("nginx", "-p", self.dir, "-c", path)
        wait_for_port(self.ports["tls"], process)
        return "http://127.0.0.1:%d" % self.ports["plain"], "https://localhost:%d" % self.ports["tls"]

    def test_connections_that_it_ends_after_seven_requests(self):
        for base in self.start():
            said = self.ask("--ca", self.cert, "--at-once", 1, "--times", 40, base + "/small", base + "/large")
            self.assertEqual({i: said[i] for i in said if said[i][0] != "EBB_ERR_HTTP_RETRY"}, said, base)
            self.assertEqual(said[0], [answer(b"small file\n")])
            self.assertEqual(said[1], [answer(self.large)])

    def test_a_body_that_it_does_not_want(self):
        for base in self.start():
            said = self.ask("--ca", self.cert, "--method", "POST", "--body", 5_000_000, base + "/small", base + "/small")
            for i in range(2):
                self.assertRegex(said[i][0], "^413 ", base)


class Proxy(WithPeer):
    def start(self, upstream=None, **environment):
        self.upstream = None
        if upstream is None:
            self.upstream = http_world.Server(SERVER)
            self.addCleanup(self.upstream.kill)
            upstream = "http://127.0.0.1:%d" % self.upstream.port
        self.process = subprocess.Popen([PROXY, "0", upstream], stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment})
        self.addCleanup(self.end)
        line = self.process.stderr.readline()
        self.port = int(re.search(r"port (\d+)$", line).group(1))
        return "http://127.0.0.1:%d" % self.port

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def stop(self):
        """Both end well, and nothing of the upstream's is left."""
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(PATIENCE_S), 0)
        self.assertEqual(self.process.stderr.read(), "")
        if self.upstream is not None:
            self.upstream.stop()

    def connect(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.addCleanup(c.close)
        return c

    def test_bodies_go_both_ways(self):
        base = self.start()
        for flag in ("--open", "--prior-knowledge"):
            said = self.ask(flag, "--times", 50, base + "/f/hello")
            self.assertEqual({said[i][-1] for i in said}, {answer(b"hello\n")})
            said = self.ask(flag, "--method", "POST", "--body", 2_000_000, base + "/f/echo", base + "/f/upload")
            self.assertEqual(said[0][-1], answer(b"e" * 2_000_000))
            self.assertEqual(said[1][-1], answer(b"2000000 %d\n" % zlib.adler32(b"e" * 2_000_000)))
        said = self.ask("--streams", "--method", "POST", "--body", 2_000_000, base + "/f/echo")
        self.assertEqual(said[0][-1], answer(b"e" * 2_000_000))
        self.stop()

    def test_headers_but_those_of_the_connection(self):
        self.start()
        c = self.connect()
        c.request("GET", "/f/headers?a=b", headers={"connection": "X-Once, keep-alive", "x-once": "1", "x-two": "2",
                                                    "te": "trailers"})
        text = c.getresponse().read().decode()
        self.assertIn("x-two: 2\n", text)
        self.assertIn("a=b", text)
        self.assertNotIn("trailers", text)
        self.assertNotIn("x-once", text)
        self.stop()

    def test_what_the_other_server_says_of_its_connection_stays_there(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                for field in (("Connection", "close"), ("Connection", "X-Secret"), ("X-Secret", "1"),
                              ("Vary", "a"), ("Vary", "b"), ("Content-Length", "2")):
                    self.send_header(*field)
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        self.start(serve_python(self, Handler))
        c = self.connect()
        c.request("GET", "/")
        r = c.getresponse()
        self.assertEqual((r.status, r.read(), r.headers.get_all("vary")), (200, b"ok", ["a", "b"]))
        self.assertNotIn("x-secret", r.headers)
        self.assertNotIn("connection", r.headers)
        self.assertEqual(r.headers["content-length"], "2")
        self.stop()

    def test_trailers_go_both_ways_and_any_method_may_have_a_body(self):
        heard = []

        def serve(listener):
            with contextlib.closing(listener.accept()[0]) as s:
                s.settimeout(PATIENCE_S)
                text = b""
                while not text.endswith(b"x-up: 1\r\n\r\n"):
                    text += s.recv(65536)
                heard.append(text)
                s.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-down: 2\r\n\r\n")

        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=serve, args=(listener,))
            thread.start()
            self.start("http://127.0.0.1:%d" % listener.getsockname()[1])
            with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as s:
                s.sendall(b"GET /a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
                          b"4\r\nbody\r\n0\r\nx-up: 1\r\n\r\n")
                answered = b""
                while not answered.endswith(b"\r\n\r\n") or b"\r\n0\r\n" not in answered:
                    piece = s.recv(65536)
                    self.assertNotEqual(piece, b"", answered)
                    answered += piece
            thread.join()
        head, body = heard[0].split(b"\r\n\r\n", 1)
        self.assertIn(b"GET /a HTTP/1.1\r\n", head)
        self.assertIn(b"transfer-encoding: chunked", head)
        self.assertEqual(body, b"4\r\nbody\r\n0\r\nx-up: 1\r\n\r\n")
        self.assertEqual(answered.split(b"\r\n\r\n", 1)[1], b"2\r\nok\r\n0\r\nx-down: 2\r\n\r\n")
        self.stop()

    def test_what_the_other_server_has_refused_is_asked_again(self):
        with tempfile.TemporaryDirectory() as directory:
            cert, key = http_world.certificate(directory)
            upstream = RefusesFirst(cert, key)
            self.start(upstream.url, SSL_CERT_FILE=cert)
            c = self.connect()
            c.request("GET", "/a")
            r = c.getresponse()
            self.assertEqual((r.status, r.read()), (200, b"again"))
            self.assertEqual(upstream.asked, [1, 3])
            self.stop()
            upstream.join()

    def test_a_get_without_a_body_stays_one(self):
        self.start()
        with h2raw.Conn(self.port, timeout=PATIENCE_S) as c:
            text = c.get("/f/headers").body
        self.assertNotIn(b"content-length", text)
        self.assertNotIn(b"transfer-encoding", text)
        self.stop()

    def test_a_path_that_is_too_long_is_not_cut(self):
        self.start()
        with h2raw.Conn(self.port, timeout=PATIENCE_S) as c:
            self.assertEqual(c.get("/f/hello?" + "a" * 9000).status, 400)
            self.assertEqual(c.get("/f/hello").status, 200)
        self.stop()
        self.assertEqual(self.upstream.counts["begin"], 1)

    def test_who_leaves_cancels_what_was_asked_for_it(self):
        self.start()
        for name, path in (("1", "/f/hang?id=1"), ("2", "/f/big?n=1000000000&id=2")):
            s = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
            s.sendall(b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n" % path.encode())
            self.upstream.wait_for("begin", name)
            if name == "2":
                self.assertTrue(s.recv(1000))
            s.close()
            self.assertRegex(self.upstream.wait_for("cancelled", name), "^DISCONNECT")
            self.upstream.wait_for("closed", name)
        self.stop()

    def test_a_body_that_breaks_off_cancels_too(self):
        self.start()
        s = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        s.sendall(b"POST /f/upload?id=1 HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nsome of it")
        self.upstream.wait_for("begin", "1")
        s.close()
        self.upstream.wait_for("closed", "1")
        self.assertIn("cancelled", self.upstream.history("1"))
        self.stop()

    def test_a_deadline_travels(self):
        self.start()
        c = self.connect()
        c.request("GET", "/f/hang?id=1", headers={"ebb-deadline-ms": "300"})
        self.assertEqual(c.getresponse().status, 504)
        self.upstream.wait_for("closed", "1")
        self.stop()

    def test_nobody_upstream_is_502(self):
        self.start("http://127.0.0.1:%d" % free_port())
        c = self.connect()
        for method in ("GET", "POST"):
            c.request(method, "/", body=b"body" if method == "POST" else None)
            r = c.getresponse()
            self.assertEqual((r.status, r.read()), (502, b"the other server does not answer\n"))
        self.stop()

    def test_what_nobody_takes_stays_with_its_sender(self):
        self.start()
        before = http_world.Server.rss(self)
        slow = []
        for i in range(20):
            s = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
            self.addCleanup(s.close)
            s.sendall(b"GET /f/big?n=100000000&id=%d HTTP/1.1\r\nhost: a\r\n\r\n" % i)
            self.assertTrue(s.recv(1000))
            slow.append(s)
        c = self.connect()
        for _ in range(100):  # meanwhile others are served
            c.request("GET", "/f/hello")
            self.assertEqual(c.getresponse().read(), b"hello\n")
        grown = http_world.Server.rss(self) - before
        if not http_world.is_sanitized(PROXY):
            self.assertLess(grown, 32 << 20)
        for s in slow:
            s.close()
        self.upstream.wait_for_count("closed", 120)
        self.stop()

    @property
    def pid(self):
        return self.process.pid

    def test_what_is_under_way_ends_before_it_does(self):
        self.start()
        c = self.connect()
        c.request("GET", "/f/slow?ms=500&id=1")
        self.upstream.wait_for("begin", "1")
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(c.getresponse().read(), b"slow\n")
        self.assertEqual(self.process.wait(PATIENCE_S), 0)
        self.upstream.stop()


if __name__ == "__main__":
    CLIENT, SERVER, PROXY = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
