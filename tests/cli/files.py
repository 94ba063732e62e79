#!/usr/bin/env python3
"""`ebb files`: what it gives, what it refuses, that it streams, and how it stops.

usage: files.py EBB [CLASS[.TEST]...]
"""
import collections
import contextlib
import hashlib
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
import h2raw  # noqa: E402
from http_world import PATIENCE_S, is_sanitized  # noqa: E402
from phases import without_phases  # noqa: E402
from signals import tell  # noqa: E402

MIB = 1 << 20
BIG = 50 * MIB
EBB = ""
USAGE = 2

Answer = collections.namedtuple("Answer", "status headers body")


class Served:
    """`ebb files` as a process."""

    def __init__(self, root):
        self.root = Path(root)
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([EBB, "files", root, "--port", "0"], stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        first = self.process.stdout.readline()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", first)
        if not found:
            raise AssertionError("it does not listen: %r %s" % (first, self.stderr()))
        self.url, self.port, self.checked = first.strip(), int(found.group(1)), False

    def stderr(self):
        at = self.errors.fileno()  # not by a seek: the server writes at the same offset
        return os.pread(at, os.fstat(at).st_size, 0).decode(errors="replace")

    def open_files(self):
        """Those below its directory."""
        found = []
        for fd in Path("/proc/%d/fd" % self.process.pid).iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(fd))
        return [name for name in found if name.startswith(str(self.root.resolve()))]

    def position(self, name):
        """How far it has read a file that is open once."""
        for fd in Path("/proc/%d/fd" % self.process.pid).iterdir():
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(fd).endswith("/" + name):
                    info = Path("/proc/%d/fdinfo/%s" % (self.process.pid, fd.name)).read_text(encoding="ascii")
                    return int(re.search(r"pos:\s+(\d+)", info).group(1))
        return None

    def rss(self):
        status = Path("/proc/%d/status" % self.process.pid).read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def check_end(self, *expected):
        """It ends with one of these, or else with 0, and has said nothing more."""
        self.checked = True
        status, said = self.process.wait(PATIENCE_S), self.process.stdout.read() + without_phases(self.stderr())
        if status not in (expected or (0,)) or said:
            raise AssertionError("exit status %d, and it says %r" % (status, said))

    def stop(self, *expected, signum=signal.SIGTERM):
        tell(self.process, signum)
        self.check_end(*expected)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


class Download:
    """A GET over HTTP/1.1 by a client that reads only when it is told to."""

    def __init__(self, port, target, method="GET", receive_buffer=0):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        self.method, self.raw = method, b""
        try:
            self.socket.connect(("127.0.0.1", port))
            self.socket.sendall(b"%s %s HTTP/1.1\r\nhost: localhost\r\n\r\n" % (method.encode(), target.encode("latin-1")))
        except OSError:
            self.socket.close()
            raise

    def head(self):
        while b"\r\n\r\n" not in self.raw:
            more = self.socket.recv(4096)
            if not more:
                raise AssertionError("the connection ends in a head: %r" % self.raw)
            self.raw += more
        head, self.raw = self.raw.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        return int(first.split()[1]), dict(line.split(": ", 1) for line in lines)

    def read(self, n):
        """Up to n bytes of the body; fewer if the connection ends before."""
        pieces, got = [self.raw], len(self.raw)
        while got < n:
            try:
                more = self.socket.recv(min(MIB, n - got))
            except ConnectionResetError:
                break
            if not more:
                break
            pieces.append(more)
            got += len(more)
        raw = b"".join(pieces)
        self.raw = raw[n:]
        return raw[:n]

    def answer(self):
        status, headers = self.head()
        return Answer(status, headers, b"" if self.method == "HEAD" else self.read(int(headers["content-length"])))

    def close(self):
        self.socket.close()

    def abort(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not so: " + what)
        time.sleep(0.005)


class WithSite(unittest.TestCase):
    """A directory that is served, and a secret beside it."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.outside = Path(directory.name).resolve()
        self.root, self.downloads = self.outside / "site", []
        self.write("index.html", "<p>home")
        self.write("../secret.txt", "secret")
        self.write("../sitemap/secret.txt", "secret")
        self.server = Served(str(self.root))
        self.addCleanup(self.server.kill)

    def tearDown(self):
        for d in self.downloads:
            d.close()
        if not self.server.checked:
            self.server.stop()

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def download(self, target, **how):
        self.downloads.append(Download(self.server.port, target, **how))
        return self.downloads[-1]

    def get(self, target, method="GET"):
        with contextlib.closing(Download(self.server.port, target, method)) as d:
            return d.answer()

    def get_h2(self, target, method="GET"):
        with h2raw.Conn(self.server.port, timeout=PATIENCE_S) as c:
            return c.get(target, method)

    @staticmethod
    def open_windows(c, stream):
        """Once for all that may come."""
        for each in (0, stream):
            c.send_frame(h2raw.WINDOW_UPDATE, 0, each, struct.pack(">I", BIG))

    def curl(self, *arguments):
        done = subprocess.run(["curl", "-sS", *arguments], capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""), arguments[:3])
        return done.stdout

    def url(self, path):
        return self.server.url + path.lstrip("/")

    def assert_at_rest(self):
        until(lambda: not self.server.open_files(), "all files are closed: %s" % self.server.open_files())


class Arguments(unittest.TestCase):
    def run_serve(self, *arguments):
        return subprocess.run([EBB, "files", *arguments], capture_output=True, text=True, timeout=PATIENCE_S,
                              check=False)

    def assert_refused(self, says, *arguments):
        done = self.run_serve(*arguments)
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""), arguments)
        self.assertRegex(done.stderr, says)

    def test_help(self):
        for option in (["--help"], ["-h"], [".", "--help"]):
            done = self.run_serve(*option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith("usage: ebb files DIR [--port N]\n"), done.stdout)
        self.assert_refused("^usage: ebb files DIR")

    def test_the_list_of_commands_has_it(self):
        done = subprocess.run([EBB, "help"], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"\n  files +serve the files")

    def test_directories_that_are_none(self):
        self.assert_refused(r"^ebb: can't serve /nowhere/at/all: no such file or directory\n$", "/nowhere/at/all")
        self.assert_refused(r"^ebb: can't serve .*files.py: not a directory\n$", str(Path(__file__).resolve()))
        self.assert_refused(r"^ebb: files takes a directory\n$", "--port", "0")
        self.assert_refused(r"^ebb: files takes one directory: a or b\n$", "a", "b")

    def test_ports_that_are_none(self):
        for port in ("65536", "-1", "x", "", "80x", "0x50", "99999999999999999999"):
            self.assert_refused(r"^ebb: --port takes a whole number from 0 to 65535, not '%s'\n$" % port,
                                ".", "--port", port)
        self.assert_refused(r"^ebb: --port needs a value\n$", ".", "--port")

    def test_options_that_there_are_not(self):
        for option in ("--host", "--list", "-p", "--port=1"):
            self.assert_refused(r"^ebb: unknown option '%s'\n$" % option, ".", option)

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            self.assert_refused(r"^ebb: can't listen on 127\.0\.0\.1 port %s: address already in use\n$" % port,
                                ".", "--port", port)

    def test_the_port_is_8008_if_none_is_said(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # or a connection of before would refuse us only
            with contextlib.suppress(OSError):  # then somebody else has it
                taken.bind(("127.0.0.1", 8008))
                taken.listen()
            self.assert_refused(r"port 8008: address already in use", ".")


class Files(WithSite):
    def test_have_their_types(self):
        text = "; charset=utf-8"
        types = {"html": "text/html" + text, "css": "text/css" + text, "js": "text/javascript" + text,
                 "mjs": "text/javascript" + text, "json": "application/json", "map": "application/json",
                 "wasm": "application/wasm", "svg": "image/svg+xml", "png": "image/png", "ico": "image/x-icon",
                 "txt": "text/plain" + text, "md": "text/markdown" + text, "ts": "text/plain" + text,
                 "HTML": "text/html" + text, "d.ts": "text/plain" + text, "bin": "application/octet-stream",
                 "htm": "application/octet-stream", "xhtml": "application/octet-stream"}
        for extension, expected in types.items():
            self.write("f." + extension, extension)
            for get in (self.get, self.get_h2):
                got = get("/f." + extension)
                self.assertEqual((got.status, got.headers["content-type"], got.body),
                                 (200, expected, extension.encode()))
        for name in ("html", "a.b/noextension"):
            self.write(name, "x")
            self.assertEqual(self.get("/" + name).headers["content-type"], "application/octet-stream")

    def test_have_their_headers(self):
        for got in (self.get("/"), self.get_h2("/"), self.get("/", "HEAD"), self.get("/nothing")):
            self.assertEqual(got.headers["cache-control"], "no-cache")
            self.assertEqual(got.headers["x-content-type-options"], "nosniff")

    def test_head_is_get_without_the_body(self):
        self.write("a.bin", bytes(100_000))
        self.write("empty", b"")
        for path, size in (("/a.bin", 100_000), ("/empty", 0), ("/", 7)):
            for get in (self.get, self.get_h2):
                whole, head = get(path), get(path, "HEAD")
                self.assertEqual((whole.status, whole.headers["content-length"], len(whole.body)),
                                 (200, str(size), size))
                del whole.headers["date"], head.headers["date"]
                self.assertEqual((head.status, head.headers, head.body), (200, whole.headers, b""))
        self.assertEqual(self.get("/nothing", "HEAD").status, 404)
        self.assert_at_rest()

    def test_connections_are_kept_after_each_answer(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S) as s:
            s.sendall(b"HEAD / HTTP/1.1\r\nhost: localhost\r\n\r\nGET /no HTTP/1.1\r\nhost: localhost\r\n\r\n"
                      b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            raw = b"".join(iter(lambda: s.recv(4096), b""))
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", raw), [b"200", b"404", b"200"])
        self.assertTrue(raw.endswith(b"\r\n\r\n<p>home"), raw)

    def test_other_methods_are_told_what_is_allowed(self):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            for get in (self.get, self.get_h2):
                got = get("/", method)
                self.assertEqual((got.status, got.headers["allow"]), (405, "GET, HEAD"), method)

    def test_a_directory_is_its_index(self):
        self.write("a/b/index.html", "<p>b")
        self.write("c/other.html", "<p>other")
        self.write("d/index.html/x", "a directory with that name")
        self.assertEqual(self.get("/").body, b"<p>home")
        self.assertEqual((self.get("/a/b/").body, self.get("/a/b/index.html").body), (b"<p>b", b"<p>b"))
        for path in ("/a/", "/c/", "/d/", "/index.html/", "/index.html/index.html", "/a/b/index.html/"):
            self.assertEqual(self.get(path).status, 404, path)
        for path, location in (("/a/b", "/a/b/"), ("/a", "/a/"), ("/a/b?seed=7&x=a/b", "/a/b/?seed=7&x=a/b"),
                               ("/%61", "/%61/"), ("/d/index.html", "/d/index.html/")):
            for get in (self.get, self.get_h2):
                got = get(path)
                self.assertEqual((got.status, got.headers["location"]), (308, location), path)
        self.assertEqual(self.curl("-L", self.url("/a/b")), b"<p>b")

    def test_queries_are_ignored(self):
        for path in ("/?", "/?x", "/index.html?../../secret.txt", "/index.html?%zz%00"):
            self.assertEqual(self.get(path).body, b"<p>home", path)
        self.assertEqual(self.get("/%3f").status, 404)

    def test_names_are_decoded(self):
        names = {"a b.txt": "/a%20b.txt", "ü.txt": "/%C3%BC.txt", "%41": "/%2541", "a?b#c": "/a%3fb%23c",
                 "plus+": "/plus+", "back\\slash": "/back%5Cslash", "a..b": "/a..b", "a.": "/a.",
                 "new\nline": "/new%0aline"}
        for name, path in names.items():
            self.write(name, name)
            for get in (self.get, self.get_h2):
                self.assertEqual((get(path).status, get(path).body), (200, name.encode()), path)

    def test_real_clients_get_them(self):
        body = os.urandom(300_000)
        self.write("a/b.bin", body)
        for version in ("--http1.0", "--http1.1", "--http2-prior-knowledge"):
            self.assertEqual(self.curl(version, self.url("/a/b.bin")), body, version)
        self.assertRegex(self.curl("-I", "--http2-prior-knowledge", self.url("/a/b.bin")),
                         rb"(?s)^HTTP/2 200 .*content-length: 300000\r\n")

    def test_only_this_machine_is_served(self):
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", self.server.port), timeout=PATIENCE_S).close()

    def test_any_name_of_a_directory_will_do(self):
        (self.outside / "link").symlink_to("site")
        below = {str(self.outside / "link"): "/index.html", os.path.relpath(self.root): "/index.html",
                 str(self.root) + "/../site//": "/index.html", "/": str(self.root / "index.html")}
        for name, path in below.items():
            self.server.stop()
            self.server = Served(name)
            self.addCleanup(self.server.kill)
            self.assertEqual(self.get(path).body, b"<p>home", name)

    def test_a_directory_that_is_made_anew_is_served(self):
        self.root.rename(self.outside / "old")
        self.assertEqual(self.get("/").status, 404)
        self.write("index.html", "<p>new")
        self.assertEqual(self.get("/").body, b"<p>new")


class Refusals(WithSite):
    def assert_refused(self, status, *targets):
        for target in targets:
            for get in (self.get, self.get_h2):
                got = get(target)
                self.assertEqual(got.status, status, target)
                self.assertNotIn(b"secret", got.body)
                self.assertNotIn("location", got.headers)
        self.assertEqual(self.get("/").body, b"<p>home")
        self.assert_at_rest()

    def test_a_name_that_somebody_has_pointed_here(self):
        for host, status in (("evil.example", "421"), ("localhost.evil.example:80", "421"), ("127.0.0.1.x", "421"),
                             ("localhost", "200"), ("LOCALHOST:1", "200"), ("127.0.0.1:80", "200"), ("[::1]:80", "200")):
            for version in "--http1.1", "--http2-prior-knowledge":
                got = self.curl(version, "-H", "host: " + host, "-o", "/dev/null", "-w", "%{http_code}", self.url("/"))
                self.assertEqual(got.decode(), status, (host, version))

    def test_traversal(self):
        self.write("a/x", "x")
        self.assert_refused(400, "/../secret.txt", "/a/../../secret.txt", "/a/../a/x", "/..", "/../", "/a/..",
                            "/../sitemap/secret.txt")
        self.assert_refused(400, "/%2e%2e/secret.txt", "/%2E./secret.txt", "/.%2e/secret.txt",
                            "/a/%2e%2e/%2e%2e/secret.txt")
        self.assert_refused(400, "/..%2fsecret.txt", "/%2e%2e%2fsecret.txt", "/a%2f..%2f..%2fsecret.txt", "/a%2fx", "/a%2F")
        self.assert_refused(404, "/%252e%252e/secret.txt", "/..%252fsecret.txt", "/%25%32%65%25%32%65/secret.txt")
        self.assert_refused(404, "/%c0%ae%c0%ae/secret.txt", "/%ef%bc%8e%ef%bc%8e/secret.txt")  # dots, to some
        self.assert_refused(404, "/...", "/.../secret.txt", "/..map/secret.txt", "/..;/secret.txt")
        self.assert_refused(400, "/..\\secret.txt", "/a\\..\\..\\secret.txt", "/\\..\\secret.txt")
        self.assert_refused(404, "/..%5csecret.txt", "/a%5c..%5c..%5csecret.txt", "/%5c..%5csecret.txt")

    def test_absolute_names(self):
        secret = str(self.outside / "secret.txt")
        self.assert_refused(404, secret, "/" + secret, "//" + secret, "/file:" + secret, "//etc/passwd",
                            "/proc/self/environ")
        self.assert_refused(400, "/%2f" + secret, "/" + secret.replace("/", "%2F"), "/%2fetc/passwd", "/\\etc\\passwd")

    def test_names_that_start_with_a_dot(self):
        for name in (".env", ".git/config", "a/.b/c", ".index/index.html"):
            self.write(name, "secret")
        self.assert_refused(404, "/.env", "/%2eenv", "/.git/config", "/.git/", "/.git", "/a/.b/c", "/a/%2eb/c", "/.index/",
                            "/./index.html", "/.", "/a/.", "/a/./")

    def test_bad_escapes(self):
        self.write("a", "x")
        self.assert_refused(400, "/%", "/%6", "/%zz", "/%6g", "/a%", "/a%2", "/%u0061", "/%+1", "/%-1", "/%%61")
        self.assert_refused(400, "/%00", "/a%00", "/a%00.html", "/%00/../secret.txt")

    def test_empty_segments(self):
        """Where "//host" and "/\\host" were redirected to "//host/" they would lead to another host."""
        self.write("host/index.html", "x")
        self.write("\\host/index.html", "x")
        self.assert_refused(404, "//", "//host", "//host/", "/host//", "/host//index.html", "///host")
        self.assert_refused(400, "/\\host", "/%2fhost")

    def test_names_that_are_too_long(self):
        self.assert_refused(404, "/" + "a" * 300, "/" + "a/" * 3000, "/" + "%61" * 2500)

    def test_links_that_lead_out(self):
        secret = str(self.outside / "secret.txt")
        links = {"absolute.txt": secret, "relative.txt": "../secret.txt", "up": "..", "all": "/",
                 "twice.txt": "relative.txt", "beside": "../sitemap",  # its real path starts as that of the site does
                 "back": "../site/../secret.txt", "proc": "/proc/self/root", "a/index.html": secret}
        (self.root / "a").mkdir()
        for name, target in links.items():
            (self.root / name).symlink_to(target)
        self.assert_refused(404, *["/" + name for name in links])
        self.assert_refused(404, "/up/", "/up/secret.txt", "/all" + secret, "/beside/secret.txt", "/a/", "/proc" + secret)

    def test_links_that_go_round_or_nowhere(self):
        self.write(".git/config", "secret")
        for name, target in {"round": "round", "nowhere": "nothing", "config": ".git/config"}.items():
            (self.root / name).symlink_to(target)
        self.assert_refused(404, "/round", "/round/", "/nowhere", "/config")

    def test_links_that_stay_are_followed(self):
        self.write("a/b.txt", "b")
        (self.root / "link.txt").symlink_to("a/b.txt")
        (self.root / "dir").symlink_to(self.root / "a")
        (self.root / "self").symlink_to(".")
        (self.root / "round").symlink_to("../site/a")
        for path in ("/link.txt", "/dir/b.txt", "/self/self/a/b.txt", "/round/b.txt"):
            self.assertEqual(self.get(path).body, b"b", path)
        self.assertEqual((self.get("/self").status, self.get("/self/").body), (308, b"<p>home"))

    def test_what_is_no_regular_file(self):
        os.mkfifo(self.root / "fifo")
        with socket.socket(socket.AF_UNIX) as s:
            here = os.open(self.root, os.O_PATH)
            s.bind("/proc/self/fd/%d/socket" % here)
            os.close(here)
            self.assertTrue((self.root / "socket").is_socket())
            self.assert_refused(404, "/fifo", "/socket", "/fifo/")

    def test_a_link_that_is_put_in_the_way_meanwhile(self):
        """Between the look at a path and its opening: a directory and a link out of the site take turns."""
        self.write("turn/secret.txt", "public")
        (self.root / "out").symlink_to("../")
        turn, out, away = (str(self.root / name) for name in ("turn", "out", "away"))
        over = threading.Event()

        def take_turns():
            while not over.is_set():
                os.rename(turn, away)
                os.rename(out, turn)
                os.rename(turn, out)
                os.rename(away, turn)

        turns = threading.Thread(target=take_turns)
        turns.start()
        try:
            seen, end = collections.Counter(), time.monotonic() + 1
            while time.monotonic() < end:
                got = self.curl("-Z", "--no-progress-meter", "--parallel-max", "4", *[self.url("/turn/secret.txt")] * 200)
                seen.update(re.findall(rb"public|secret|not found", got))
        finally:
            over.set()
            turns.join()
        self.assertEqual(seen[b"secret"], 0, seen)
        self.assertTrue(seen[b"public"] and seen[b"not found"], seen)


class Streams(WithSite):
    """All share one big.bin, which takes long to write: who changes it makes its own."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.body = os.urandom(MIB) * (BIG // MIB)
        cls.digest = hashlib.sha256(cls.body).digest()
        cls.big = Path(directory.name) / "big.bin"
        cls.big.write_bytes(cls.body)

    def setUp(self):
        super().setUp()
        os.link(self.big, self.root / "big.bin")

    def test_a_large_file_arrives_whole_in_little_memory(self):
        self.get("/")
        before, hashes = self.server.rss(), []
        for version in ("--http1.1", "--http2-prior-knowledge"):
            with subprocess.Popen(["curl", "-sS", version, self.url("/big.bin")], stdout=subprocess.PIPE) as curl:
                got = hashlib.sha256()
                most = before
                while piece := curl.stdout.read(MIB):
                    got.update(piece)
                    most = max(most, self.server.rss())
            hashes.append(got.digest())
            if not is_sanitized(EBB):
                self.assertLess(most - before, 4 * MIB, version)
        self.assertEqual(hashes, [self.digest] * 2)
        self.assert_at_rest()

    def test_a_file_is_not_read_on_while_the_client_does_not_take_it(self):
        d = self.download("/big.bin", receive_buffer=4096)
        self.assertEqual(d.head()[0], 200)
        stands = -1
        while stands != self.server.position("big.bin"):
            stands = self.server.position("big.bin")
            time.sleep(0.1)
        self.assertLess(stands, 10 * MIB)  # what lies in the sockets between
        self.assertEqual(hashlib.sha256(d.read(BIG)).digest(), self.digest)
        self.assert_at_rest()

    def test_a_client_that_leaves_in_the_middle_leaves_no_open_file(self):
        for leave in (Download.close, Download.abort):
            downloads = [self.download("/big.bin") for _ in range(5)]
            for d in downloads:
                d.head()
                d.read(100_000)
            self.assertEqual(self.server.open_files(), [str(self.root / "big.bin")])  # they share it
            for d in downloads:
                leave(d)
            self.assert_at_rest()
        self.assertEqual(self.get("/").status, 200)

    def test_clients_that_leave_at_once_leave_no_open_file(self):
        """Many of them while their file is being looked up."""
        for i in range(500):
            d = Download(self.server.port, "/" + "big.bin" * (i % 7 != 0))
            if i % 3 == 0:
                d.socket.recv(1)
            (d.abort if i % 2 else d.close)()
        self.assert_at_rest()

    def test_a_stream_that_is_reset_leaves_no_open_file(self):
        with h2raw.Conn(self.server.port, auto_window=False, timeout=PATIENCE_S) as c:
            for name in "bc":
                os.link(self.root / "big.bin", self.root / name)  # the same file
                self.write("own" + name, self.body[:MIB])
            streams = [c.request(path) for path in ("/ownb", "/ownc", "/b", "/c", "/big.bin")]
            c.wait(lambda: sum(len(c.streams[s].body) for s in streams) == 65535)
            until(lambda: len(self.server.open_files()) == 3, "three files are open")
            for s in streams[:-1]:
                c.rst(s, h2raw.CANCEL)
            until(lambda: len(self.server.open_files()) == 1, "only the one of the last stream is open")
        self.assert_at_rest()

    def test_a_file_that_shrinks_breaks_the_answer_off(self):
        self.write("own.bin", self.body)
        d = self.download("/own.bin", receive_buffer=4096)
        self.assertEqual(d.head()[1]["content-length"], str(BIG))
        os.truncate(self.root / "own.bin", 20 * MIB)
        got = d.read(BIG)
        self.assertTrue(len(got) <= 20 * MIB and got == self.body[:len(got)])
        self.assertEqual(d.read(1), b"")
        self.assert_at_rest()

    def test_over_http_2_a_file_that_shrinks_resets_its_stream(self):
        self.write("some.bin", self.body[:2 * MIB])
        with h2raw.Conn(self.server.port, auto_window=False, timeout=PATIENCE_S) as c:
            s = c.request("/some.bin")
            c.wait(lambda: len(c.streams[s].body) == 65535)
            os.truncate(self.root / "some.bin", MIB)
            self.open_windows(c, s)
            got = c.response(s)
            self.assertEqual((got.status, got.reset, got.ended), (200, h2raw.INTERNAL_ERROR, False))
            self.assertEqual(got.body, self.body[:len(got.body)])
            self.assertLessEqual(len(got.body), MIB)
            self.assertEqual(c.get("/").body, b"<p>home")
        self.assert_at_rest()

    def test_a_file_that_grows_or_is_replaced_is_sent_as_it_was(self):
        self.write("own.bin", self.body)
        first, second = (self.download("/own.bin", receive_buffer=4096) for _ in range(2))
        self.assertEqual([d.head()[1]["content-length"] for d in (first, second)], [str(BIG)] * 2)
        with open(self.root / "own.bin", "ab") as f:
            f.write(b"more")
        self.assertEqual(hashlib.sha256(first.read(BIG)).digest(), self.digest)
        first.socket.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")  # nothing follows but the next answer
        self.assertEqual(first.answer().body, b"<p>home")
        self.write("new.bin", "new").replace(self.root / "own.bin")
        self.assertEqual(hashlib.sha256(second.read(BIG)).digest(), self.digest)
        self.assertEqual(self.get("/own.bin").body, b"new")

    def test_what_lies_at_a_path_counts_though_its_file_is_open(self):
        """A reader holds the file open, so every request below finds it among the open ones."""
        self.write("own.bin", self.body[:MIB])
        self.write("sub/.hidden", "secret")
        outside = self.write("../secret.txt", "secret")
        with h2raw.Conn(self.server.port, auto_window=False, timeout=PATIENCE_S) as c:
            slow = c.request("/own.bin")
            c.wait(lambda: len(c.streams[slow].body) == 65535)
            own = self.root / "own.bin"
            self.assertEqual(self.get("/own.bin").body, self.body[:MIB])
            with open(own, "r+b") as f:
                f.write(b"fresh")
            self.assertEqual(self.get("/own.bin").body[:6], b"fresh" + self.body[5:6])
            os.truncate(own, 10)
            self.assertEqual(self.get("/own.bin").headers["content-length"], "10")
            self.write("new.bin", "new").replace(own)
            self.assertEqual(self.get("/own.bin").body, b"new")
            for target in (outside, "sub/.hidden"):
                own.unlink()
                self.assertEqual(self.get("/own.bin").status, 404)
                own.symlink_to(target)
                self.assertEqual(self.get("/own.bin").status, 404, target)
            own.unlink()
            own.symlink_to("index.html")
            self.assertEqual(self.get("/own.bin").body, b"<p>home")

    def test_a_file_that_has_moved_out_while_it_is_open_is_not_served(self):
        """The very file that is open, by a link to where it is now."""
        self.write("sub/own.bin", self.body[:MIB])
        with h2raw.Conn(self.server.port, auto_window=False, timeout=PATIENCE_S) as c:
            slow = c.request("/sub/own.bin")
            c.wait(lambda: len(c.streams[slow].body) == 65535)
            (self.root / "sub").rename(self.outside / "sub")
            (self.root / "sub").symlink_to(self.outside / "sub")
            self.assertEqual(self.get("/sub/own.bin").status, 404)
            (self.root / "sub").unlink()
            (self.outside / "sub").rename(self.root / "sub")
            self.assertEqual(self.get("/sub/own.bin").body, self.body[:MIB])

    def test_no_more_than_64_stay_open_for_a_moment(self):
        paths = ["/%d.txt" % i for i in range(200)]
        for path in paths:
            self.write(path[1:], path)
        with h2raw.Conn(self.server.port, timeout=PATIENCE_S) as c:
            for path in paths:
                self.assertEqual(c.get(path).body, path.encode())
            self.assertLessEqual(len(self.server.open_files()), 64)
        self.assert_at_rest()

    def test_two_hundred_at_once(self):
        bodies = {"/%d.bin" % i: os.urandom(1000 * i) for i in range(200)}
        for path, body in bodies.items():
            self.write(path[1:], body)
        downloads = {path: self.download(path) for path in bodies}
        for path, d in downloads.items():
            self.assertEqual(d.answer().body, bodies[path])
        with h2raw.Conn(self.server.port, timeout=PATIENCE_S) as c:
            for some in (list(bodies)[:100], list(bodies)[100:]):  # as many streams as a connection may have
                streams = {path: c.request(path) for path in some}
                for path, s in streams.items():
                    self.assertEqual(c.response(s).body, bodies[path])
        self.assert_at_rest()


class Together(WithSite):
    """Requests of one turn of the loop share what the first of them has found; those of the next turn do not."""

    SMALL = 16384  # bytes of a file that are shared

    @staticmethod
    def request(c, *paths):
        """All at once."""
        raw, send = [], c.send
        c.send = raw.append
        try:
            streams = [c.request(path) for path in paths]
        finally:
            c.send = send
        send(b"".join(raw))
        return streams

    def conn(self, **how):
        self.downloads.append(h2raw.Conn(self.server.port, timeout=PATIENCE_S, **how))
        return self.downloads[-1]

    def reads(self):
        """System calls that read."""
        text = Path("/proc/%d/io" % self.server.process.pid).read_text(encoding="ascii")
        return int(re.search(r"syscr: (\d+)", text).group(1))

    def assert_reads_do_not_wait(self, path):
        with open(path, "rb") as f:
            try:
                os.preadv(f.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
            except OSError as why:
                self.skipTest("the file system can't: %s" % why)

    def test_a_small_file_is_read_once_for_a_hundred(self):
        """At least once in some tries: a slow machine may close the file between the first request and the others."""
        body = os.urandom(600)
        self.assert_reads_do_not_wait(self.write("a.bin", body))
        tried = []
        while not tried or (min(tried) >= 30 and len(tried) < 30):
            c = self.conn(auto_window=False)  # or its updates would be read one by one
            c.get("/a.bin")
            before = self.reads()
            for s in self.request(c, *["/a.bin"] * 100):
                self.assertEqual(c.response(s).body, body)
            tried.append(self.reads() - before)
        self.assertLess(min(tried), 30, tried)

    def test_each_path_has_its_own_bytes(self):
        """More paths than are kept; long ones; files that are kept with their bytes, and larger ones."""
        long = "/".join(["d" * 60] * 3)
        names = ["%d.bin" % i for i in range(80)]
        names += [long + "/" + "n" * n for n in (254 - len(long) - 1, 254 - len(long), 100)]
        sizes = [0, 1, self.SMALL - 1, self.SMALL, self.SMALL + 1, 3 * self.SMALL]
        bodies = {}
        for i, name in enumerate(names):
            bodies["/" + name] = os.urandom(sizes[i % len(sizes)])
            self.write(name, bodies["/" + name])
        c = self.conn()
        for order in (list(bodies), list(bodies)[::-1]):
            for path, s in zip(order, self.request(c, *order)):
                got = c.response(s)
                self.assertEqual((got.status, got.body), (200, bodies[path]), path)
        self.assert_at_rest()

    def test_heads_and_bodies_of_one_turn(self):
        c = self.conn()
        self.write("a.bin", bytes(self.SMALL))
        raw, send = [], c.send
        c.send = raw.append
        streams = [c.request("/a.bin", method) for method in ("HEAD", "GET", "HEAD", "POST")]
        c.send = send
        send(b"".join(raw))
        got = [c.response(s) for s in streams]
        self.assertEqual([(one.status, len(one.body)) for one in got],
                         [(200, 0), (200, self.SMALL), (200, 0), (405, len(got[3].body))])
        self.assertEqual({one.headers["content-length"] for one in got[:3]}, {str(self.SMALL)})

    def test_the_next_request_of_a_connection_finds_what_is_there_now(self):
        """A connection is read once a turn, and a new one not in the turn in which it is accepted."""
        c, own = self.conn(), self.root / "a.txt"
        for i in range(200):
            body = b"%d" % i * (1 + i % 3 * 4000)
            self.write("new", body).replace(own)
            self.assertEqual(c.get("/a.txt").body, body)
            if i % 4 == 0:
                own.write_bytes(b"over")
                self.assertEqual(c.get("/a.txt").body, b"over")
                os.truncate(own, 1)
                self.assertEqual(self.get("/a.txt").body, b"o")
                own.unlink()
                self.assertEqual(c.get("/a.txt").status, 404)
                self.write("new", body).replace(own)
                self.assertEqual(self.get("/a.txt").body, body)

    def test_a_file_that_is_replaced_meanwhile_is_the_old_or_the_new_one(self):
        bodies = [letter * n for letter, n in ((b"a", 9000), (b"b", 100), (b"c", 2 * self.SMALL))]
        stopped = threading.Event()
        self.write("a.bin", bodies[0])

        def replace():
            i = 0
            while not stopped.is_set():
                i += 1
                self.write("new", bodies[i % 3]).replace(self.root / "a.bin")

        other = threading.Thread(target=replace)
        other.start()
        try:
            c, seen = self.conn(), collections.Counter()
            end = time.monotonic() + PATIENCE_S
            while len(seen) < 3 and time.monotonic() < end:
                for s in self.request(c, *["/a.bin"] * 20):
                    got = c.response(s)
                    self.assertEqual((got.status, got.body in bodies), (200, True), got.body[:10])
                    seen[got.body[:1]] += 1
        finally:
            stopped.set()
            other.join()
        self.assertEqual(len(seen), 3, seen)

    def test_without_a_descriptor_they_are_told_503(self):
        body = os.urandom(5000)
        self.write("a.bin", body)
        self.write("b.bin", body)
        c, pid = self.conn(), self.server.process.pid
        self.assertEqual(c.get("/a.bin").body, body)
        was = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, was[1]))
        for s in self.request(c, *["/a.bin", "/b.bin"] * 10):
            got = c.response(s)
            self.assertEqual((got.status, got.headers.get("retry-after")), (503, "1"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, was)
        for s in self.request(c, *["/a.bin", "/b.bin"] * 10):
            self.assertEqual(c.response(s).body, body)
        self.assert_at_rest()


class Stops(WithSite):
    def setUp(self):
        super().setUp()
        self.body = os.urandom(MIB) * 8
        self.write("big.bin", self.body)

    def assert_closed_to_new_ones(self):
        def is_refused():
            try:
                socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S).close()
            except ConnectionError:  # refused, or reset while the socket was being closed
                return True
            return False

        until(is_refused, "nobody new is taken")

    def test_by_a_signal_finish_what_is_in_flight(self):
        for server, signum in ((self.server, signal.SIGTERM), (Served(str(self.root)), signal.SIGINT)):
            self.server = server
            self.addCleanup(server.kill)
            idle = self.download("/")
            self.assertEqual(idle.answer().status, 200)
            d = self.download("/big.bin", receive_buffer=4096)
            with h2raw.Conn(server.port, auto_window=False, timeout=PATIENCE_S) as c:
                s = c.request("/big.bin")
                c.wait(lambda: len(c.streams[s].body) == 65535)
                self.assertEqual(d.head()[0], 200)
                tell(server.process, signum)
                self.assert_closed_to_new_ones()
                self.assertEqual(idle.read(1), b"")
                self.assertIsNone(server.process.poll())
                self.assertEqual(d.read(len(self.body)), self.body)
                self.open_windows(c, s)
                got = c.response(s)
                self.assertTrue(got.ended and got.body == self.body)
            for each in (idle, d):
                each.close()  # or it would be waited for, for a second
            server.check_end()

    def test_without_anything_in_flight_at_once(self):
        began = time.monotonic()
        self.get("/")
        self.server.stop()
        self.assertLess(time.monotonic() - began, 2)  # its budget is 5

    def test_a_client_that_does_not_read_is_cut_off_in_time(self):
        d = self.download("/big.bin", receive_buffer=4096)
        d.head()
        began = time.monotonic()
        self.server.stop(0)
        self.assertLess(time.monotonic() - began, 10)
        self.assertLess(len(d.read(len(self.body))), len(self.body))

    def test_a_second_signal_stops_it_at_once(self):
        d = self.download("/big.bin", receive_buffer=4096)
        d.head()
        began = time.monotonic()
        tell(self.server.process, signal.SIGINT)
        self.assert_closed_to_new_ones()
        self.server.stop(4, signum=signal.SIGINT)
        self.assertLess(time.monotonic() - began, 2)

    def test_requests_that_race_with_the_signal_are_answered_whole_or_not_at_all(self):
        stopped = threading.Event()
        answers = []

        def ask():
            while not stopped.is_set():
                try:
                    answers.append(self.get("/").body)
                except (OSError, AssertionError):
                    return

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        until(lambda: len(answers) > 50, "some are answered")
        self.server.stop()
        stopped.set()
        for asker in askers:
            asker.join()
        self.assertEqual(set(answers), {b"<p>home"})


if __name__ == "__main__":
    EBB = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
