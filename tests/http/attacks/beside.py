#!/usr/bin/env python3
"""What a good client keeps of its requests beside attackers: of our server, and of others in the same run.

usage: beside.py SERVER ATTACKER [ATTACK...]

Prints the table of docs/http.md, "Beside others": a row for each attack of ROWS, or for those whose name has one of the
words. Every server has one core and one thread, and is up for all of the run; client and attackers share the other
core, and the client goes first there. Servers take turns within an attack. One that is not installed is left out.
"""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import floods  # noqa: E402
from http_world import Server  # noqa: E402
from under_attack import SERVER_CORE, GoodClient, attackers, go_first, kept  # noqa: E402

START_S = 10
ROWS = {
    "DATA on a closed stream": ("closed_streams", "DATA"),
    "DATA on a stream that the client has reset": ("closed_streams", "DATA of a stream that was reset"),
    "DATA on a stream that the server has reset": ("closed_streams", "DATA of a stream that the server has reset"),
    "HEADERS on a closed stream": ("closed_streams", "HEADERS"),
    "resets after the first HEADERS": ("late_reset", "once the response has begun"),
    "the same, in windows of 0": ("late_reset", "in windows of 0"),
    "windows of 0, on 10 connections": ("windows_of_0", "held"),
    "windows of 0 that open by a byte": ("windows_of_0", "by a byte"),
    "3,000 cookie crumbs": ("cookie_crumbs", "3000"),
    "3,000 cookie crumbs of one byte": ("cookie_crumbs", "3000 of one byte"),
    "requests after GOAWAY": ("after_goaway", "requests"),
    "GOAWAY again and again": ("after_goaway", "GOAWAY"),
    "PING after the server's GOAWAY": ("after_goaway", "of the server"),
    "rapid reset (CVE-2023-44487)": ("rapid_reset", "at once"),
    "rapid reset, once the work has begun": ("rapid_reset_of_live_work", "once it has begun"),
    "100 requests and leave": ("live_work_and_leave", "once it has begun"),
    "MadeYouReset, by a window that overflows": ("made_you_reset", "a window that overflows"),
    "MadeYouReset, by malformed requests": ("made_you_reset", "a malformed request"),
    "CONTINUATION, empty": ("continuation", "empty"),
    "CONTINUATION, 16 KB": ("continuation", "large"),
    "SETTINGS": ("settings", "read"),
    "PING": ("ping", "read"),
    "empty DATA": ("frames_that_ask_for_nothing", "empty DATA"),
    "PRIORITY": ("frames_that_ask_for_nothing", "PRIORITY"),
    "WINDOW_UPDATE": ("frames_that_ask_for_nothing", "WINDOW_UPDATE of the connection"),
    "frames of unknown types": ("frames_that_ask_for_nothing", "of unknown types"),
    "HPACK bomb": ("hpack", "a bomb"),
    "HPACK, 15,000 fields of one byte": ("hpack", "fields of one byte"),
}
H2O = """%s
num-threads: 1
listen: {host: 127.0.0.1, port: %d}
pid-file: %s/h2o.pid
hosts:
  default:
    paths:
      "/": {file.dir: "%s"}
      "/f/hang": {proxy.reverse.url: "http://[unix:%s]/", proxy.timeout.io: 60000}
"""


class Peer:
    """A server that is not ours, on the files that our handlers stand for."""

    def __init__(self, name, command):
        self.port, self.process = command.pop("port"), subprocess.Popen(
            command["run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.name, until = name, time.monotonic() + START_S
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        raise AssertionError("%s does not listen" % name)

    def pids(self):
        children = Path("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)).read_text(encoding="ascii")
        return [self.process.pid, *map(int, children.split())]

    def kill(self):
        self.process.terminate()
        self.process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def never_answers(path):
    """A Unix socket that takes connections, and is silent. What is behind a proxy here."""
    listener, taken = socket.socket(socket.AF_UNIX), []
    listener.bind(path)
    listener.listen(4096)

    def accept():
        while True:
            taken.append(listener.accept()[0])
            while len(taken) > 500:
                taken.pop(0).close()
    threading.Thread(target=accept, daemon=True).start()


def peers(directory):
    files, hang = directory + "/files", directory + "/hang"
    os.makedirs(files + "/p")
    os.makedirs(files + "/f")
    Path(files + "/p/hello").write_bytes(b"hello\n")
    Path(files + "/f/big").write_bytes(bytes(1000000))
    never_answers(hang)
    if shutil.which("nghttpd"):
        port = free_port()
        yield Peer("nghttpd", {"port": port, "run": ["nghttpd", "-n1", "--no-tls", "-d", files, str(port)]})
    if shutil.which("h2o"):
        port = free_port()
        user = "user: root" if os.geteuid() == 0 else ""
        Path(directory + "/h2o.conf").write_text(H2O % (user, port, directory, files, hang), encoding="ascii")
        yield Peer("h2o", {"port": port, "run": ["h2o", "-c", directory + "/h2o.conf"]})


class Ours(Server):
    name = "Ebb"

    def pids(self):
        return [self.pid]


def cell(server, program, flood):
    """Its shares beside one attacker and ten; what fails is no share."""
    shares = []
    for n in (1, 10):
        good = GoodClient(server.port)
        try:
            shares.append("%d%%" % min(100, 100 * kept(good, attackers(program, server.port, flood, n))))
        except (AssertionError, ValueError):
            shares.append("failed")
        finally:
            good.close()
    return ", ".join(shares)


def main():
    ours, program, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        servers = [Ours(ours, "--quiet"), *peers(directory)]
        for pid in (pid for server in servers for pid in server.pids()):
            go_first(SERVER_CORE, pid)
        print("| attack | %s |\n|---|%s" % (" | ".join(s.name for s in servers), "---|" * len(servers)))
        try:
            for name, (group, flood) in ROWS.items():
                if words and not any(word in name for word in words):
                    continue
                cells = [cell(server, program, floods.FLOODS[group][flood]) for server in servers]
                print("| %s | %s |" % (name, " | ".join(cells)), flush=True)
        finally:
            for server in servers:
                server.kill()


if __name__ == "__main__":
    main()
