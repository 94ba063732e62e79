#!/usr/bin/env python3
"""The services of the command: what they show when they stop, on a terminal and elsewhere, and what they tell systemd.

usage: services.py EBB APP UNIT [CLASS[.TEST]...]
"""
import contextlib
import http.client
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from phases import PHASES, phases_of  # noqa: E402
from signals import tell  # noqa: E402

PATIENCE_S = 60
OK, TIMEOUT = 0, 3
EBB = APP = UNIT = ""


def until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("not in %d s: %s" % (PATIENCE_S, what))


class WithServices(unittest.TestCase):
    def setUp(self):
        self.dir = Path(tempfile.mkdtemp(prefix="ebb-services-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def start(self, *arguments, **how):
        p = subprocess.Popen([EBB, *map(str, arguments)], stdout=subprocess.PIPE, cwd=self.dir, text=True,
                             **{"stderr": subprocess.PIPE, **how})
        self.addCleanup(self.end, p)
        self.assertTrue(p.stdout.readline(), "it has not begun")
        return p

    @staticmethod
    def end(p):
        if p.poll() is None:
            p.kill()
        p.wait()
        for stream in p.stdout, p.stderr:
            if stream:
                stream.close()

    def daemon(self, *arguments, **how):
        """With its port and its token."""
        p = subprocess.Popen([EBB, "serve", "--listen", "127.0.0.1:0", *arguments], stdout=subprocess.PIPE, text=True,
                             cwd=self.dir, **{"stderr": subprocess.PIPE, **how})
        self.addCleanup(self.end, p)
        return p, *self.begun(p.stdout.readline())

    def begun(self, line):
        found = re.match(r"http://127\.0\.0\.1:(\d+)/", line)
        self.assertTrue(found, line)
        until("the token", (self.dir / ".ebb/token").exists)
        return int(found.group(1)), (self.dir / ".ebb/token").read_text().strip()

    @staticmethod
    def ask(port, token, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        headers = {"authorization": "Bearer " + token, "content-type": "application/json"}
        with contextlib.closing(connection):
            connection.request(method, path, body and json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def shutdown(self, port, token):
        """The path of the workflow."""
        return "/api/v1/workflows/" + self.ask(port, token, "GET", "/api/v1/workflows")[1]["workflows"][0]["workflow"]

    def order_is_stuck(self, port, token):
        """Starts an order whose activity does not end."""
        self.ask(port, token, "POST", "/api/v1/instances", {"name": "order", "id": "o"})
        until("it waits", lambda: self.ask(port, token, "GET", "/api/v1/instances/o")[1]["custom"])
        self.ask(port, token, "POST", "/api/v1/instances/o/signal", {"name": "hurry"})
        until("the activity", (self.dir / "begun").exists)


STUCK = "charge=trap '' TERM; touch begun; sleep 200"


class Lines(WithServices):
    """Without a terminal."""

    def stop(self, p, status=OK):
        tell(p, signal.SIGTERM)
        said, errors = p.communicate(timeout=PATIENCE_S)
        self.assertEqual(p.returncode, status, errors)
        self.assertNotRegex(said + errors, r"[^\n -~]")
        return errors

    def test_each_service_says_a_line_a_phase(self):
        for arguments in (["serve", "--listen", "127.0.0.1:0"], ["files", ".", "--port", "0"],
                          ["worker", "--store", "lab:", "--activity", "a=true"]):
            with self.subTest(arguments[0]):
                errors = self.stop(self.start(*arguments))
                self.assertRegex(errors, r"\Aebb: request: SIGTERM\nebb: drain: \d+ in flight, at most 5\.0 s\n"
                                 r"ebb: finalize: drained after \d\.\d s\nebb: end: in order after \d\.\d s\n\Z")

    def test_a_stop_while_it_begins_is_one_in_order(self):
        for number in range(24):
            p = subprocess.Popen([EBB, *(["serve", "--listen", "127.0.0.1:0"] if number % 2 else ["worker", "--store", "lab:"]),
                                  "--load", APP], cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(self.end, p)
            time.sleep(number * 0.004)
            p.send_signal(signal.SIGTERM)
            _, errors = p.communicate(timeout=PATIENCE_S)
            self.assertIn((p.returncode, phases_of(errors)[1]), ((OK, ""), (-signal.SIGTERM, "")), number)

    def test_what_is_printed_to_a_closed_stream_is_in_no_log(self):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(str(self.dir / "notify"))
        manager.settimeout(PATIENCE_S)
        for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                p = subprocess.Popen(["sh", "-c", 'exec "$0" serve --listen 127.0.0.1:0 ' + closed, EBB], cwd=self.dir,
                                     env={**os.environ, "NOTIFY_SOCKET": manager.getsockname()},
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.addCleanup(self.end, p)
                while not manager.recv(4096).startswith(b"READY=1"):
                    pass
                p.send_signal(signal.SIGTERM)
                self.assertIn(p.wait(PATIENCE_S), (OK, 2))  # 2: the output could not be written
                subprocess.run([EBB, "audit", "verify", ".ebb/audit.jsonl"], cwd=self.dir, check=True,
                               stdout=subprocess.DEVNULL, timeout=PATIENCE_S)

    def test_a_service_that_has_not_begun_says_why_and_nothing_else(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for arguments in (["serve", "--listen", "127.0.0.1:%d" % port], ["files", ".", "--port", str(port)]):
                r = subprocess.run([EBB, *arguments], cwd=self.dir, stderr=subprocess.PIPE, text=True, check=False,
                                   timeout=PATIENCE_S)
                self.assertRegex(r.stderr, r"\Aebb: can't listen on 127\.0\.0\.1 port \d+: .*\n\Z")

    def test_what_was_cancelled_and_what_was_forced_is_said(self):
        p, port, token = self.daemon("--load", APP, "--activity", STUCK)
        self.order_is_stuck(port, token)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.stderr.readline(), "ebb: request: SIGTERM\n")
        self.assertRegex(p.stderr.readline(), r"^ebb: drain: \d in flight, at most 5\.0 s\n")
        p.send_signal(signal.SIGTERM)
        phases, rest = phases_of(p.stderr.read())
        self.assertEqual((phases, rest), (PHASES[2:], ""))
        p.wait(PATIENCE_S)
        self.assertEqual(p.returncode, 4)


class Terminal(WithServices):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.tmux, "kill-server")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", str(self.dir / "tmux"), "-f", "/dev/null", *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "t")

    def shows(self, pattern):
        return until(pattern, lambda: re.search(pattern, self.screen(), re.M))

    def test_a_narrow_terminal_has_a_short_bar(self):
        command = "%s serve --listen 127.0.0.1:0 --load %s --activity \"%s\"; sleep 600"
        self.tmux("new-session", "-d", "-s", "t", "-x", "30", "-y", "24", "-c", str(self.dir),
                  command % (EBB, APP, STUCK))
        port, token = self.begun(self.shows(r"^http://127\.0\.0\.1:\d+/$").group(0))
        self.order_is_stuck(port, token)
        path = self.shutdown(port, token)
        self.ask(port, token, "POST", path + "/request")
        self.assertEqual(self.ask(port, token, "POST", path + "/extend", {"ms": 600000})[0], 202)
        for _ in range(5):
            self.shows(r"^drain \[\] \d+\.\d s of 605\.0 s, 1$")  # as far as it fits
            time.sleep(0.2)
        self.assertEqual(len(re.findall(r"^drain ", self.screen(), re.M)), 1)

    def test_a_drain_has_a_bar_and_who_is_waited_for(self):
        command = "trap : INT; %s serve --listen 127.0.0.1:0 --load %s --activity \"%s\"; echo left with $?; sleep 600"
        self.tmux("new-session", "-d", "-s", "t", "-x", "70", "-y", "24", "-c", str(self.dir),
                  command % (EBB, APP, STUCK))
        port, token = self.begun(self.shows(r"^http://127\.0\.0\.1:\d+/$").group(0))
        self.order_is_stuck(port, token)
        self.tmux("send-keys", "-t", "t", "C-c")
        self.shows(r"ebb: request: SIGINT$")
        path = self.shutdown(port, token)
        self.assertEqual(self.ask(port, token, "POST", path + "/extend", {"ms": 600000})[0], 202)
        self.shows(r"^drain \[\.+\] \d+\.\d s of 605\.0 s, 1 in flight$")
        self.shows(r"^  task 1\..*spawned at .*, Running")
        self.shows(r"^  and \d more$")
        self.assertEqual(len(re.findall(r"^drain ", self.screen(), re.M)), 1)  # it is drawn in its place
        self.tmux("send-keys", "-t", "t", "C-c")
        self.shows(r"^left with 4$")
        self.assertRegex(self.screen(), r"SIGINT\n(\^C\n?)?ebb: finalize: forced after \d+\.\d s\n"
                         r"ebb: end: .* after \d+\.\d s\nleft with 4\n")

    def test_a_stopped_terminal_holds_nothing_up(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        p, port, token = self.daemon(stderr=theirs, stdin=theirs)
        termios.tcflow(theirs, termios.TCOOFF)
        os.close(theirs)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(PATIENCE_S), OK)

    def test_a_terminal_that_nobody_reads_holds_nothing_up(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        p, _, _ = self.daemon(stderr=theirs, stdin=theirs)
        also = os.open(os.ttyname(theirs), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        os.close(theirs)

        def fill(n):
            with contextlib.suppress(BlockingIOError):
                for done in range(n):
                    os.write(also, b"x")
                return n
            return done

        def some():
            os.read(ours, 4096)
            until("room", lambda: fill(1))

        fill(1 << 20)
        some()
        room = fill(1 << 20)
        some()
        fill(room - 10)  # it takes a byte, but no line
        os.close(also)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(PATIENCE_S), OK)


class Manager(WithServices):
    """systemd, as far as a socket is one."""

    def socket(self, name):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(s.close)
        s.bind(name.replace("@", "\0", 1))
        s.settimeout(PATIENCE_S)
        return s

    def told(self, s):
        return s.recv(4096).decode()

    def test_it_hears_of_the_begin_an_extension_and_the_stop(self):
        s = self.socket(str(self.dir / "notify"))
        p, port, token = self.daemon("--load", APP, "--activity", STUCK,
                                     env={**os.environ, "NOTIFY_SOCKET": str(self.dir / "notify")})
        self.assertEqual(self.told(s), "READY=1\nSTATUS=http://127.0.0.1:%d/" % port)
        self.order_is_stuck(port, token)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(self.told(s), "STOPPING=1\nSTATUS=request: SIGTERM")
        self.assertRegex(self.told(s), r"\ASTATUS=drain: \d in flight, at most 5\.0 s\Z")
        path = self.shutdown(port, token)
        self.assertEqual(self.ask(port, token, "POST", path + "/extend", {"ms": 600000})[0], 202)
        more = int(re.match(r"EXTEND_TIMEOUT_USEC=(\d+)\n", self.told(s)).group(1))
        self.assertTrue(605000000 < more <= 615000000, more)  # what is left, and 10 s
        self.ask(port, token, "POST", path + "/force")
        self.assertRegex(self.told(s), r"\ASTATUS=finalize: forced after")
        self.assertRegex(self.told(s), r"\ASTATUS=end: ")
        p.communicate(timeout=PATIENCE_S)
        self.assertEqual(p.returncode, TIMEOUT)

    def test_an_abstract_socket_will_do(self):
        name = "@ebb-test-%d" % os.getpid()
        s = self.socket(name)
        for arguments in ["files", ".", "--port", "0"], ["worker", "--store", "lab:", "--activity", "a=true"]:
            p = self.start(*arguments, env={**os.environ, "NOTIFY_SOCKET": name})
            self.assertTrue(self.told(s).startswith("READY=1\nSTATUS="))
            tell(p, signal.SIGTERM)
            self.assertEqual([self.told(s).split(":")[0] for _ in PHASES],
                             ["STOPPING=1\nSTATUS=request", "STATUS=drain", "STATUS=finalize", "STATUS=end"])
            self.assertEqual(p.wait(PATIENCE_S), OK)

    def test_one_that_is_not_there_is_said_and_ends_nothing(self):
        for name in "/nowhere/notify", "relative", "/" + 200 * "x":
            p = self.start("files", ".", "--port", "0", env={**os.environ, "NOTIFY_SOCKET": name})
            self.assertRegex(p.stderr.readline(), r"\Aebb: can't tell the service manager at NOTIFY_SOCKET='.*': .*\n")
            tell(p, signal.SIGTERM)
            p.communicate(timeout=PATIENCE_S)
            self.assertEqual(p.returncode, OK)


class Unit(WithServices):
    def test_systemd_accepts_it(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("there is no systemd-analyze")
        unit = self.dir / "ebb.service"
        unit.write_text(Path(UNIT).read_text().replace("/usr/bin/ebb", EBB))
        r = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE_S)
        self.assertEqual((r.returncode, [l for l in r.stdout.splitlines() if "ebb.service" in l]), (0, []), r.stdout)

    def test_a_database_that_can_not_be_reached_yet_does_not_end_it_for_good(self):
        r = subprocess.run([EBB, "serve", "--listen", "127.0.0.1:0", "--store", "postgres://ebb@127.0.0.1:1/ebb"],
                           cwd=self.dir, stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S)
        self.assertNotIn(r.returncode, [OK, -signal.SIGTERM], r.stderr)
        unit = Path(UNIT).read_text()
        self.assertIn("\nRestart=on-failure\nRestartSec=5\n", unit)  # fewer than 5 starts in 10 s: systemd goes on
        never = re.search(r"(?m)^RestartPreventExitStatus=(.*)$", unit)
        self.assertNotIn(str(r.returncode), never.group(1).split() if never else [])

    def test_its_time_to_stop_is_longer_than_the_budget(self):
        unit = Path(UNIT).read_text()
        for line in "Type=notify", "KillMode=mixed", "KillSignal=SIGTERM", "DynamicUser=yes", "StateDirectory=ebb":
            self.assertRegex(unit, r"(?m)^%s$" % line)
        self.assertGreater(int(re.search(r"(?m)^TimeoutStopSec=(\d+)$", unit).group(1)), 10)

    def test_its_command_line_and_its_options_can_be_used(self):
        """With the variables that systemd sets."""
        line = re.search(r"(?m)^ExecStart=/usr/bin/ebb (.*)$", Path(UNIT).read_text()).group(1)
        line = line.replace("${STATE_DIRECTORY}", str(self.dir / "state"))
        line = line.replace("/etc/ebb/serve.conf", str(Path(UNIT).with_name("serve.conf")))
        p = self.start(*line.split(), "--listen", "127.0.0.1:0")
        tell(p, signal.SIGTERM)
        p.communicate(timeout=PATIENCE_S)
        options = re.findall(r"(?m)^# ([\w-]+) = ", Path(UNIT).with_name("serve.conf").read_text())
        known = subprocess.run([EBB, "serve", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        known = set(re.findall(r"(?m)^  --([a-z-]+)", known)) - {"help", "config", "dir"}  # these are the unit's
        self.assertEqual((set(options), len(options)), (known, len(known)))
        self.assertEqual((p.returncode, (self.dir / "state/token").exists()), (OK, True))


if __name__ == "__main__":
    EBB, APP, UNIT = (str(Path(a).resolve()) for a in sys.argv[1:4])
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
