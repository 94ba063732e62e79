#!/usr/bin/env python3
"""`ebb top`: what it shows of a running service, in a terminal and as text, and what its readers can't do to it.

usage: top.py EBB SERVICE CROWD [CLASS[.TEST]...]
"""
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE_S = 60
EBB = SERVICE = CROWD = ""


def until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("not in %d s: %s" % (PATIENCE_S, what))


def top(*arguments, **how):
    return subprocess.run([EBB, "top", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=PATIENCE_S, **how)


class Reader:
    """A program that reads the socket itself."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))

    def ask(self, request=b"snapshot 1\n"):
        if request:
            self.socket.sendall(request)
        line = b""
        while not line.endswith(b"\n"):
            more = self.socket.recv(1 << 16)
            if not more:
                return None
            line += more
        return json.loads(line)

    def is_over(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self):
        self.socket.close()


class WithServices(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="ebb-top-"))
        self.path = self.dir / "socket"
        self.processes = []
        self.addCleanup(self.end)

    def end(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
            p.wait()
            p.stdout.close()
            p.stderr.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self, *arguments, **how):
        p = subprocess.Popen([*map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
        self.processes.append(p)
        return p

    def crowd(self, loops=1, tasks=10, *more):
        p = self.start(CROWD, self.path, loops, tasks, *more)
        for _ in range(loops):
            self.assertRegex(p.stdout.readline(), r"^ready \d+$")
        return p

    def service(self):
        p = self.start(SERVICE, "--port", 0, "--inspect", self.path, "--budget", 4000)
        port = until("its port", lambda: re.search(r"(\d+)\s*$", p.stdout.readline()))
        return p, int(port.group(1))

    def reader(self):
        r = Reader(self.path)
        self.addCleanup(r.close)
        return r

    def stop(self, p, status=0):
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(PATIENCE_S), status, p.stderr.read() if p.poll() else "")


class Snapshots(WithServices):
    def test_the_snapshot_has_the_tree_and_the_numbers(self):
        self.crowd(tasks=10)
        reader = self.reader()
        reader.ask()
        time.sleep(0.1)  # the first one switches the measuring on
        loop, = reader.ask()["loops"]
        self.assertEqual((loop["loop"], loop["state"]), (0, "IDLE"))
        tasks = [n for n in loop["tree"] if "task" in n]
        regions = [n for n in loop["tree"] if "region" in n]
        self.assertEqual(sum("crowd.c" in n["site"] for n in tasks), 10)
        self.assertTrue(all(n["doing"] == "parked" for n in tasks if "crowd.c" in n["site"]))
        self.assertEqual(loop["left_out"], {"regions": 0, "tasks": 0})
        self.assertEqual(regions[0]["depth"], 0)
        shutdown, = loop["workflows"]
        self.assertEqual((shutdown["type"], shutdown["state"], shutdown["region"]),
                         ("lifecycle_shutdown", "IDLE", regions[0]["region"]))
        self.assertEqual((shutdown["budget_ms"], loop["workflows_left_out"]), (5000, 0))
        self.assertEqual(loop["fibers"]["alive"], 1)
        self.assertGreater(loop["measured"]["polls"], 0)
        slept = [n for n in tasks if n.get("polls", 0) > 0]
        self.assertTrue(slept and slept[0]["waits"], slept)

    def test_a_drain_is_in_the_snapshot_with_its_budget_and_handlers(self):
        p, port = self.service()
        reader = self.reader()
        client = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(client.close)
        client.sendall(b"work 60000\n")
        until("the work", lambda: any("server.c" in n["site"] and n.get("doing") == "sleep"
                                      for n in reader.ask()["loops"][0]["tree"]))
        p.send_signal(signal.SIGTERM)
        shutdown = until("the drain", lambda: next(
            (w for w in reader.ask()["loops"][0]["workflows"] if w["state"] == "DRAINING"), None))
        self.assertEqual((shutdown["request"], shutdown["message"]), ("USER", "SIGTERM"))
        self.assertLess(shutdown["elapsed_ms"], shutdown["budget_ms"])
        self.assertGreater(shutdown["in_flight"], 0)
        self.assertFalse(shutdown["forced"] or shutdown["overdue"])
        self.assertTrue(all(h["site"] for h in shutdown["handlers"]))

    def test_all_loops_are_in_one_snapshot(self):
        p = self.crowd(loops=3)
        loops = self.reader().ask()["loops"]
        self.assertEqual([(one["loop"], one["state"]) for one in loops], [(0, "IDLE"), (1, "IDLE"), (2, "IDLE")])
        for one in loops:
            self.assertEqual(sum("programs/crowd.c" in n["site"] for n in one["tree"] if "task" in n), 10)
        self.stop(p)

    def test_a_loop_that_does_not_answer_is_named_and_the_others_are_shown(self):
        p = self.crowd(2, 10, "stuck")
        time.sleep(1.2)
        begin = time.monotonic()
        first, second = self.reader().ask()["loops"]
        self.assertLess(time.monotonic() - begin, 3.5)
        self.assertEqual(first["state"], "IDLE")
        self.assertEqual(second, {"loop": 1, "error": "does not answer"})
        reader = self.reader()
        until("it answers again", lambda: reader.ask()["loops"][1].get("state") == "IDLE")
        self.stop(p)

    def test_a_million_tasks_are_counted_and_not_listed(self):
        p = self.crowd(tasks=1000000)
        reader = self.reader()
        for _ in range(5):
            loop, = reader.ask()["loops"]
            self.assertGreater(loop["left_out"]["tasks"], 999000)
            self.assertLess(len(loop["tree"]), 2000)
            self.assertGreater(loop["tasks"], 1000000)

    def test_the_busiest_of_many_is_named_though_it_is_not_in_the_tree(self):
        p = self.crowd(1, 100000, "hog")
        reader = self.reader()

        def busiest():
            loop, = reader.ask()["loops"]
            listed = {n["task"] for n in loop["tree"] if "task" in n}
            return [n for n in loop["busiest"] if n["task"] not in listed and n["poll_total_ns"] >= 20000000]

        hog = until("the hog", busiest)[0]
        self.assertRegex(hog["site"], r"crowd\.c:\d+$")
        self.assertEqual((hog["phase"], hog["masked"]), ("Running", False))
        self.stop(p)

    def test_http_counters_are_shown(self):
        p = self.start(SERVICE, "--port", 0, "--operator", 0, "--inspect", self.path)
        # Its socket is there before it listens.
        until("its port", lambda: re.search(r"\d+\s*$", p.stdout.readline()))
        found = until("a server", lambda: self.reader().ask()["loops"][0]["counters"])
        self.assertEqual(found[0]["what"], "http server")
        self.assertRegex(found[0]["name"], r"^127\.0\.0\.1:\d+$")
        port = int(found[0]["name"].split(":")[1])
        subprocess.run(["curl", "-s", "http://127.0.0.1:%d/explain" % port], stdout=subprocess.DEVNULL, check=True)
        now = self.reader().ask()["loops"][0]["counters"][0]
        self.assertEqual((now["requests"], now["answered_2xx"]), (1, 1))


class Readers(WithServices):
    def test_a_reader_that_does_not_read_is_dropped_and_delays_nobody(self):
        p = self.crowd(tasks=1000)
        slow = self.reader()
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        quick = self.reader()
        for _ in range(30):  # more than the socket holds, so that an answer waits
            try:
                slow.socket.sendall(b"snapshot 1\n")
            except ConnectionError:
                break
            self.assertIsNotNone(quick.ask())
        time.sleep(7)  # it is dropped after 5 s
        slow.socket.settimeout(5)
        while not slow.is_over():
            pass
        self.assertIsNotNone(quick.ask())
        self.stop(p)

    def test_readers_that_ask_all_the_time_share_ten_answers_a_second(self):
        p = self.crowd(tasks=1000)
        readers, seconds = [self.reader() for _ in range(4)], 2
        begin, answers = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            for r in readers:
                r.socket.sendall(b"snapshot 1\n")
            for r in readers:
                self.assertIsNotNone(r.ask(b""))
                answers += 1
        self.assertLessEqual(answers, len(readers) * 10 * (time.monotonic() - begin) + len(readers))
        self.stop(p)

    def test_a_reader_that_has_gone_or_asks_nonsense_harms_nobody(self):
        p = self.crowd()
        for request in b"snap", b"", b"snapshot 1\n":
            gone = self.reader()
            gone.socket.sendall(request)
            gone.close()
        bad = self.reader()
        self.assertIn("error", bad.ask(b"GET / HTTP/1.1\r\n\r\n"))
        self.assertTrue(bad.is_over())
        self.assertIsNotNone(self.reader().ask())
        self.stop(p)

    def test_one_reader_more_than_there_are_places_for_is_refused(self):
        p = self.crowd()
        readers = [self.reader() for _ in range(8)]
        for r in readers:
            self.assertIsNotNone(r.ask())
        more = self.reader()
        self.assertEqual(more.ask(b"")["error"], "8 readers look at it already")
        self.assertTrue(more.is_over())
        said = top(self.path, "--once")
        self.assertEqual((said.returncode, said.stderr), (2, "ebb: %s: 8 readers look at it already\n" % self.path))
        readers[0].close()
        until("a place", lambda: self.ask_or_none())
        self.stop(p)

    def ask_or_none(self):
        r = Reader(self.path)
        try:
            answer = r.ask()
            return None if "error" in answer else answer
        except ConnectionError:
            return None
        finally:
            r.close()

    def test_readers_do_not_keep_it_from_stopping(self):
        p = self.crowd(loops=2)
        idle, waiting = self.reader(), self.reader()
        waiting.socket.sendall(b"snapshot 1\n")
        self.stop(p)
        self.assertTrue(idle.is_over())
        self.assertFalse(self.path.exists())


class Places(WithServices):
    def test_only_its_user_may_look(self):
        self.crowd()
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)

    def test_the_socket_of_a_dead_process_is_replaced_and_that_of_a_live_one_is_an_error(self):
        first = self.crowd()
        second = self.start(CROWD, self.path, 1, 1)
        self.assertEqual(second.wait(PATIENCE_S), 1)
        self.assertIn("address already in use", second.stderr.read())
        first.kill()
        first.wait()
        self.assertTrue(self.path.exists())
        p = self.crowd()
        self.assertIsNotNone(self.reader().ask())
        self.stop(p)
        self.assertFalse(self.path.exists())

    def test_a_file_that_is_no_socket_is_left_alone(self):
        self.path.write_text("mine")
        p = self.start(CROWD, self.path, 1, 1)
        self.assertEqual(p.wait(PATIENCE_S), 1)
        self.assertEqual(self.path.read_text(), "mine")

    def test_a_pid_is_found_in_the_well_known_place(self):
        env = dict(os.environ, XDG_RUNTIME_DIR=str(self.dir))
        p = self.start(CROWD, "", 1, 3, env=env)
        self.assertEqual(p.stdout.readline(), "ready 0\n")
        self.assertEqual(stat.S_IMODE((self.dir / "ebb").stat().st_mode), 0o700)
        said = top(p.pid, "--once", env=env)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("process %d," % p.pid, said.stdout)
        self.assertEqual(said.stdout.count("crowd.c:") >= 3, True, said.stdout)
        self.stop(p)
        gone = top(p.pid, "--once", env=env)
        self.assertEqual(gone.returncode, 2)
        self.assertIn("no service at %d" % p.pid, gone.stderr)

    def test_a_place_that_others_could_write_to_is_refused(self):
        (self.dir / "ebb").mkdir()
        (self.dir / "ebb").chmod(0o777)
        p = self.start(CROWD, "", 1, 1, env=dict(os.environ, XDG_RUNTIME_DIR=str(self.dir)))
        self.assertEqual(p.wait(PATIENCE_S), 1)
        self.assertIn("permission denied", p.stderr.read())


class Impostors(WithServices):
    """Sockets at which something else answers."""

    ANSWERS = """
import json, os, socket, sys
if len(sys.argv) > 2: os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("ready", flush=True)
evil = "\x1b]0;title\x07\x9b2J"
says = {"ebb_inspect": 1, "error": evil} if len(sys.argv) > 3 else None
loop = {"loop": 0, "state": evil, "tree": [{"region": evil, "state": evil, "site": evil, "request": evil, "message": evil},
                                           {"task": evil, "phase": evil, "doing": evil, "site": evil}],
        "counters": [{"what": evil, "name": evil, evil: 1}]}
while True:
    c, _ = s.accept()
    while c.recv(100):
        all = says or {"ebb_inspect": 1, "pid": 1, "version": evil, "loops": [loop]}
        c.sendall(json.dumps(all, ensure_ascii=False).encode() + b"\\n")
"""

    def impostor(self, path, *user):
        p = self.start(sys.executable, "-c", self.ANSWERS, path, *user)
        self.assertEqual(p.stdout.readline(), "ready\n")

    def test_control_sequences_do_not_reach_the_terminal(self):
        self.impostor(self.path)
        said = top(self.path, "--once")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("?]0;title", said.stdout)
        self.assertTrue(all(c == "\n" or " " <= c <= "~" for c in said.stdout), said.stdout)
        said = top(self.path, "--json")
        self.assertEqual(json.loads(said.stdout)["version"][-3:], "\x9b2J")
        self.assertTrue(all(c == "\n" or " " <= c <= "~" for c in said.stdout), said.stdout)

    def test_nor_do_those_of_an_error(self):
        self.impostor(self.path, str(os.geteuid()), "error")
        said = top(self.path, "--once")
        self.assertEqual(said.returncode, 2)
        self.assertIn("?]0;title??", said.stderr)
        self.assertTrue(all(c == "\n" or " " <= c <= "~" for c in said.stderr), said.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_a_pid_of_another_user_s_process_is_refused(self):
        (self.dir / "ebb").mkdir()
        for place in self.dir, self.dir / "ebb":
            place.chmod(0o777)
        self.impostor(self.dir / "ebb" / "4711.sock", 65534)
        said = top("4711", "--once", env=dict(os.environ, XDG_RUNTIME_DIR=str(self.dir)))
        self.assertEqual(said.returncode, 2, said.stdout)
        self.assertIn("no service at 4711: Permission denied", said.stderr)


class Terminal(WithServices):
    """In tmux, with a server of its own."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.tmux, "kill-server")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", str(self.dir / "tmux"), "-f", "/dev/null", *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout

    def look(self, columns=100, rows=30):
        self.tmux("new-session", "-d", "-s", "t", "-x", str(columns), "-y", str(rows),
                  "%s top %s; echo left with $?; sleep 600" % (EBB, self.path))

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "t")

    def shows(self, pattern):
        return until(pattern, lambda: re.search(pattern, self.screen(), re.M))

    def press(self, *keys):
        self.tmux("send-keys", "-t", "t", *keys)

    def test_a_service_under_load_is_shown_sorted_folded_and_paged(self):
        _, port = self.service()
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
        for c in clients:
            self.addCleanup(c.close)
            c.sendall(b"work 60000\n")
        self.look()
        self.shows(r"loop 0  IDLE  tasks \d+")
        self.shows(r"task 1\.\d+\.\d+ Running")
        self.shows(r"Running, waits for accept begun at examples/service/server\.c:\d+")
        self.shows(r"line 1 of \d+, by tree")
        self.shows(r"polls \d+, [\d.]+ us on average, longest")
        self.press("f")
        self.shows("by tree, folded")
        until("no tasks", lambda: not re.search(r"task \d+\.", self.screen()))
        self.press("f", "s")
        self.shows("by age")
        self.press("Space")
        self.shows(r"line (?!1 )\d+ of")
        self.press("b", "s")
        self.shows("line 1 of .*by poll time")
        self.tmux("resize-window", "-t", "t", "-x", "60", "-y", "12")
        until("12 rows", lambda: len(self.screen().rstrip("\n").split("\n")) <= 12 and "by poll" in self.screen())
        self.press("q")
        self.shows("left with 0")

    def test_the_busiest_of_many_is_the_first_by_poll_time(self):
        p = self.crowd(1, 2000, "hog")
        reader = self.reader()
        until("the hog", lambda: [n for n in reader.ask()["loops"][0]["busiest"] if n["poll_max_ns"] >= 1000000])
        self.look()
        self.shows("by tree")
        self.press("s", "s")
        self.shows("by poll time")
        tasks = until("tasks", lambda: [row for row in self.screen().split("\n") if row.startswith("  task ")])
        hog = reader.ask()["loops"][0]["busiest"][0]["task"]
        self.assertIn("task %s " % hog, tasks[0])
        self.press("q")
        self.shows("left with 0")
        self.stop(p)

    def test_a_shutdown_is_watched_to_its_end(self):
        p, port = self.service()
        client = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(client.close)
        client.sendall(b"work 60000\n")
        self.look()
        self.shows("IDLE")
        p.send_signal(signal.SIGTERM)
        self.shows(r"DRAINING \d[\d.]* m?s of 4\.0 s")
        self.shows("left with 1")
        self.assertIsNotNone(p.wait(PATIENCE_S))

    def test_a_service_that_is_held_up_is_waited_for_and_the_keys_work(self):
        p = self.crowd(1, 10, "stuck")
        self.look()
        self.shows("ebb top: no answer for [2-9] s")
        self.assertIn("IDLE", self.screen())  # what it was before
        self.press("f")
        self.shows("folded")
        self.shows("ebb top: q quit")
        self.shows("IDLE")
        p.send_signal(signal.SIGSTOP)
        self.shows("ebb top: no answer for")
        self.press("q")
        self.shows("left with 0")
        p.send_signal(signal.SIGCONT)
        self.stop(p)

    def test_the_death_of_the_service_ends_it(self):
        p = self.crowd()
        self.look()
        self.shows("IDLE")
        p.kill()
        self.shows("has ended")
        self.shows("left with 1")


class Usage(WithServices):
    def test_wrong_use_is_an_error(self):
        for arguments in [], ["--once"], ["1", "--nonsense"], ["1", "2"], ["1", "--once", "--json"]:
            self.assertEqual(top(*arguments).returncode, 2, arguments)
        self.assertEqual(top(self.path, "--once").returncode, 2)
        self.crowd()
        self.assertIn("needs a terminal", top(self.path, stdin=subprocess.DEVNULL).stderr)
        self.assertEqual(json.loads(top(self.path, "--json").stdout)["ebb_inspect"], 1)


if __name__ == "__main__":
    EBB, SERVICE, CROWD = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
