#!/usr/bin/env python3
"""`ebb serve`: the daemon from outside, with a real store and a program; how it stops, and what a kill leaves.

usage: daemon.py EBB APP EMPTY_APP POSTGRES [CLASS[.TEST]...]
"""
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from phases import without_phases  # noqa: E402

PATIENCE_S = 60  # for what takes milliseconds on an idle machine
OK, USAGE, TIMEOUT = 0, 2, 3
EBB = APP = EMPTY = POSTGRES = ""
PAID = "charge=cat >/dev/null; echo '\"paid\"'"


class Daemon:
    """`ebb serve` as a process."""

    def __init__(self, where, *args, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([EBB, "serve", "--listen", listen, *args], cwd=where, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        found = re.match(r"http://(\S+):(\d+)/\n$", line)
        if not found:
            raise AssertionError("it has not begun: %r %r" % (line, self.process.communicate()))
        self.port = int(found.group(2))
        self.token_path = Path(where) / re.match(r"token: (.*)\n$", self.process.stdout.readline()).group(1)
        self.token = self.token_path.read_text().strip()

    def ask(self, method, path, body=None, token=True, headers=(), source=None):
        """The status, and the answer as an object."""
        headers = dict(headers)
        if token:
            headers["authorization"] = "Bearer " + self.token
        if body is not None:
            headers["content-type"] = "application/json"
            body = json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S,
                                                source_address=source and (source, 0))
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(said) if answer.headers.get_content_type() == "application/json" else said

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        said, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said, without_phases(errors)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class WithDaemons(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ebb-serve-")
        self.addCleanup(directory.cleanup)
        self.where = directory.name

    def daemon(self, *args, **how):
        d = Daemon(self.where, *args, **how)
        self.addCleanup(d.kill)
        return d

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.1)  # a read of the tree is a twentieth of a second's rate

    def start(self, d, one):
        status, said = d.ask("POST", "/api/v1/instances", {"name": "order", "id": one, "input": {"seat": 4}})
        self.assertEqual((status, said.get("id")), (201, one), said)

    def is_in(self, d, one, state):
        return d.ask("GET", "/api/v1/instances/" + one)[1].get("state") == state

    def waits(self, d, one):
        return d.ask("GET", "/api/v1/instances/" + one)[1].get("custom") is not None


class Serves(WithDaemons):
    def test_an_order_from_its_start_to_its_end(self):
        d = self.daemon("--load", APP, "--activity", PAID)
        self.assertEqual(d.ask("GET", "/readyz", token=False), (200, {"status": "ready"}))
        self.start(d, "order-7")
        self.until("it waits", lambda: self.waits(d, "order-7"))
        self.assertEqual(d.ask("POST", "/api/v1/instances/order-7/signal", {"name": "hurry"})[0], 202)
        self.until("its end", lambda: self.is_in(d, "order-7", "Completed"))
        self.assertEqual(d.ask("GET", "/api/v1/instances/order-7")[1]["output"], "paid")
        self.assertIn(b"ebb_worker_turns_total", d.ask("GET", "/metrics")[1])
        self.assertEqual(d.stop(), (OK, "", ""))

    def test_without_a_program_it_serves_the_store(self):
        d = self.daemon("--store", "lab:")
        self.start(d, "one")
        self.assertTrue(d.ask("GET", "/api/v1/instances/one")[1]["unserved"])
        self.assertNotIn(b"ebb_worker", d.ask("GET", "/metrics")[1])
        self.assertFalse((Path(self.where) / ".ebb/ebb.db").exists())
        self.assertEqual(d.stop(), (OK, "", ""))

    def test_its_directory_is_made_once_and_its_token_stays(self):
        d = self.daemon()
        place = Path(self.where) / ".ebb"
        self.assertEqual(stat.S_IMODE(place.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(d.token_path.stat().st_mode), 0o600)
        self.assertRegex(d.token, r"^[0-9a-f]{64}$")
        self.start(d, "one")
        self.assertEqual(d.stop()[0], OK)
        again = self.daemon()
        self.assertEqual(again.token, d.token)
        self.assertTrue(self.is_in(again, "one", "Running"))
        self.assertEqual(again.stop()[0], OK)
        other = self.daemon("--dir", "other")
        self.assertNotEqual(other.token, d.token)
        self.assertEqual(other.ask("GET", "/api/v1/instances/one")[0], 404)
        self.assertEqual(other.stop()[0], OK)

    def test_a_directory_may_have_any_name(self):
        for name in "a?b=c#d%41", "?" * 200:
            d = self.daemon("--dir", name)
            self.start(d, "one")
            self.assertEqual(d.stop(), (OK, "", ""))
            self.assertLessEqual({"audit.jsonl", "ebb.db", "token"}, set(os.listdir(Path(self.where) / name)))

    def test_what_changes_needs_the_token(self):
        d = self.daemon()
        self.assertEqual(d.ask("POST", "/api/v1/instances", {"name": "order"}, token=False)[0], 401)
        self.assertEqual(d.ask("GET", "/api/v1/instances", token=False)[0], 200)
        self.assertEqual(d.ask("GET", "/api/v1/instances", headers={"host": "evil.example"})[0], 421)
        self.assertEqual(d.stop()[0], OK)

    def test_an_address_may_try_some_tokens_and_then_one_a_second(self):
        d = self.daemon()

        def change(token, source="127.0.0.2"):
            status, said = d.ask("POST", "/api/v1/regions/1.9.9/cancel", {}, token=False, source=source,
                                 headers={"authorization": "Bearer " + token})
            return status, said["error"]["code"]

        begun, tries = time.monotonic(), 0
        while change("wrong") != (429, "too_many_tokens"):
            tries += 1
            self.assertLessEqual(tries, 21 + time.monotonic() - begun)
        self.assertGreaterEqual(tries, 20)
        self.until("the right one is not looked at either",
                   lambda: [change("wrong"), change(d.token)][1][0] == 429)
        self.assertEqual(change(d.token, "127.0.0.3"), (404, "gone"))
        self.assertEqual(d.ask("GET", "/api/v1/live", source="127.0.0.2")[0], 200)  # this needs none
        self.until("one a second", lambda: change(d.token) == (404, "gone"))
        self.assertEqual(d.stop()[0], OK)

    def test_on_another_address_reads_do_too(self):
        d = self.daemon("--host", "ops.example", listen="0.0.0.0:0")
        self.assertEqual(d.ask("GET", "/api/v1/instances", token=False)[0], 401)
        self.assertEqual(d.ask("GET", "/healthz", token=False)[0], 200)
        self.assertEqual(d.ask("GET", "/api/v1/instances", headers={"host": "ops.example"})[0], 200)
        self.assertEqual(d.ask("GET", "/api/v1/instances", headers={"host": "other.example"})[0], 421)
        self.assertEqual(d.stop()[0], OK)

    def test_ebb_top_and_ebb_durable_see_it(self):
        d = self.daemon()
        self.start(d, "one")
        top = subprocess.run([EBB, "top", str(d.process.pid), "--once"], stdout=subprocess.PIPE, text=True,
                             timeout=PATIENCE_S, check=True)
        self.assertIn("http server 127.0.0.1:%d" % d.port, top.stdout)
        shown = subprocess.run([EBB, "durable", "status", "one", "--json", "--store",
                                "sqlite:%s/.ebb/ebb.db" % self.where], stdout=subprocess.PIPE, text=True,
                               timeout=PATIENCE_S, check=True)
        served = d.ask("GET", "/api/v1/instances/one")[1]
        self.assertEqual(json.loads(shown.stdout), served)
        self.assertEqual(d.stop()[0], OK)


class Crowd:
    """Clients that start orders for as long as they are let in; `answered` has the ids that were acknowledged."""

    def __init__(self, d, clients=8):
        self.d = d
        self.answered, self.statuses = [], set()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]
        for t in self.threads:
            t.start()

    def run(self, client):
        n = 0
        while True:
            one = "o-%d-%d" % (client, n)
            try:
                status, _ = self.d.ask("POST", "/api/v1/instances", {"name": "order", "id": one})
            except (OSError, http.client.HTTPException):
                return  # it has not let this one in
            self.statuses.add(status)
            if status != 201:
                return
            self.answered.append(one)
            n += 1

    def join(self):
        for t in self.threads:
            t.join(PATIENCE_S)


class Ends(WithDaemons):
    def ids_of(self, d):
        ids, after = set(), ""
        while after is not None:
            _, page = d.ask("GET", "/api/v1/instances?most=200" + ("&after=" + after if after else ""))
            ids.update(row["id"] for row in page["instances"])
            after = page["next"]
        return ids

    def test_sigterm_under_load_answers_and_loses_nothing(self):
        d = self.daemon("--load", APP, "--activity", PAID)
        crowd = Crowd(d)
        self.until("orders", lambda: len(crowd.answered) >= 40)
        self.assertEqual(d.stop(), (OK, "", ""))
        crowd.join()
        self.assertLessEqual(crowd.statuses, {201, 503})
        verified = subprocess.run([EBB, "audit", "verify", self.where + "/.ebb/audit.jsonl"], timeout=PATIENCE_S,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(verified.returncode, OK, verified.stdout)
        again = self.daemon()
        self.assertLessEqual(set(crowd.answered), self.ids_of(again))
        self.assertEqual(again.stop()[0], OK)

    def test_a_kill_under_load_loses_nothing_and_completes_nothing_twice(self):
        d = self.daemon("--load", APP, "--activity", PAID)
        crowd = Crowd(d, clients=4)
        self.until("orders", lambda: len(crowd.answered) >= 20)
        d.process.kill()
        crowd.join()
        d.kill()
        again = self.daemon("--load", APP, "--activity", PAID)
        self.assertLessEqual(set(crowd.answered), self.ids_of(again))
        some = crowd.answered[:10]
        for one in some:
            self.assertEqual(again.ask("POST", "/api/v1/instances/%s/signal" % one, {"name": "hurry"})[0], 202)
        for one in some:
            self.until("its end", lambda one=one: self.is_in(again, one, "Completed"))
            events = again.ask("GET", "/api/v1/instances/%s/history" % one)[1]["events"]
            kinds = [e["kind"] for e in events]
            self.assertEqual(kinds.count("activity_completed"), 2, kinds)  # reserve, charge
            self.assertEqual(len([k for k in kinds if "completed" in k and "activity" not in k]), 1, kinds)
        self.assertEqual(again.stop()[0], OK)

    def test_idle_connections_do_not_hold_it_up(self):
        d = self.daemon()
        idle = [socket.create_connection(("127.0.0.1", d.port)) for _ in range(50)]
        begun = socket.create_connection(("127.0.0.1", d.port))
        begun.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n")
        self.assertEqual(d.ask("GET", "/healthz")[0], 200)
        self.assertEqual(d.stop(), (OK, "", ""))
        for s in [*idle, begun]:
            s.close()


class Stream(threading.Thread):
    """A reader of the events; `events` has their names and data, `ended` is whether the stream has ended as it should."""

    def __init__(self, d):
        super().__init__()
        self.connection = http.client.HTTPConnection("127.0.0.1", d.port, timeout=PATIENCE_S)
        self.connection.request("GET", "/api/v1/events?every_ms=500")
        self.answer = self.connection.getresponse()
        self.events, self.ended = [], False
        self.start()

    def run(self):
        name = None
        try:
            for line in self.answer:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    self.events.append((name, json.loads(value)))
            self.ended = True
        except (OSError, http.client.HTTPException):
            pass
        finally:
            self.connection.close()

    def states(self):
        return [data["loops"][0]["state"] for name, data in self.events if name == "live"]


class Drains(WithDaemons):
    """What an operator can do while it drains. An activity that ignores everything holds it up."""

    STUCK = "charge=trap '' TERM; sleep 200"

    def stuck(self):
        d = self.daemon("--load", APP, "--activity", self.STUCK)
        self.start(d, "order-7")
        self.until("it waits", lambda: self.waits(d, "order-7"))
        self.assertEqual(d.ask("POST", "/api/v1/instances/order-7/signal", {"name": "hurry"})[0], 202)
        self.until("the activity", lambda: "/command.c:" in self.shutdown(d)[1])
        return d

    def drains(self, d):
        """Waits for the drain. The path of its workflow."""
        self.until("the drain", lambda: self.shutdown(d)[0]["state"] == "DRAINING")
        return "/api/v1/workflows/" + self.shutdown(d)[0]["workflow"]

    def shutdown(self, d):
        """The workflow, and what holds it up."""
        row, = d.ask("GET", "/api/v1/workflows")[1]["workflows"]
        status, said = d.ask("GET", "/api/v1/workflows/" + row["workflow"])
        self.assertEqual(status, 200, said)
        return said["workflow"], "\n".join(said["explain"])

    def test_the_api_answers_until_the_end(self):
        d = self.stuck()
        stream = Stream(d)
        idle = socket.create_connection(("127.0.0.1", d.port))
        self.addCleanup(idle.close)
        d.process.send_signal(signal.SIGTERM)
        path = self.drains(d)
        self.assertEqual(d.ask("POST", path + "/extend", {"ms": 600000}), (202, {"accepted": True}))
        self.assertEqual(d.ask("GET", "/readyz", token=False)[0], 503)
        self.assertEqual(d.ask("GET", "/healthz", token=False)[0], 200)
        workflow, holders = self.shutdown(d)
        self.assertEqual(workflow["budget_ms"], 605000)
        self.assertRegex(holders, r"(?m)^  task .*, waits for read begun at \S*/command.c:")
        self.assertTrue(d.ask("GET", "/api/v1/instances/order-7")[1]["custom"])
        self.assertEqual(d.ask("POST", "/api/v1/instances/order-7/signal", {"name": "more"})[0], 202)
        status, said = d.ask("POST", "/api/v1/instances", {"name": "order"})
        self.assertEqual((status, said["error"]["code"]), (503, "stopping"))
        self.until("events of the drain", lambda: stream.states().count("DRAINING") >= 2)
        self.assertIsNone(d.process.poll())
        self.assertEqual(d.ask("POST", path + "/force", {"message": "enough"}), (202, {"accepted": True}))
        d.process.communicate(timeout=PATIENCE_S)
        self.assertEqual(d.process.returncode, TIMEOUT)
        stream.join(PATIENCE_S)
        self.assertTrue(stream.ended, stream.events[-1:])
        self.assertEqual(stream.states()[-1], "FINALIZING")
        log = (Path(self.where) / ".ebb/audit.jsonl").read_text()
        self.assertRegex(log, r'"event":"drain_forced".*"by":"enough"')

    def test_what_is_cancelled_ends_it_in_order(self):
        d = self.stuck()
        d.process.send_signal(signal.SIGTERM)
        path = self.drains(d)
        self.assertEqual(d.ask("POST", path + "/extend", {"ms": 600000})[0], 202)
        self.assertEqual(d.ask("POST", "/api/v1/instances/order-7/terminate", {})[0], 202)
        said, errors = d.process.communicate(timeout=PATIENCE_S)
        self.assertEqual((d.process.returncode, said), (OK, ""), errors)


class Audit(WithDaemons):
    """The lines of a workflow, read back from the log."""

    def lines(self, d, path, most, after=None):
        pages = 0
        while True:
            query = "?most=%d" % most + ("&after=%d" % after if after is not None else "")
            status, page = d.ask("GET", path + "/audit" + query)
            self.assertEqual(status, 200, page)
            self.assertLessEqual(len(page["lines"]), most)
            yield from page["lines"]
            pages += 1
            after = page["next"]
            if after is None:
                self.pages = pages
                return

    def test_a_workflow_has_its_lines_and_no_others(self):
        self.assertEqual(self.daemon().stop()[0], OK)
        d = self.daemon()
        row, = d.ask("GET", "/api/v1/workflows")[1]["workflows"]
        path = "/api/v1/workflows/" + row["workflow"]
        log = Path(self.where) / ".ebb/audit.jsonl"
        for _ in range(170):  # a line each, and more than one piece of the log
            self.assertEqual(d.ask("POST", path + "/extend", {"ms": 1})[0], 409)
        mine = [line for line in map(json.loads, log.read_text().splitlines()) if line.get("id") == row["number"]]
        self.assertEqual((row["number"], len(mine)), (2, 171))
        self.assertGreater(log.stat().st_size, 65536)
        for most in 7, 200:
            self.assertEqual(list(self.lines(d, path, most)), mine)
        self.assertGreater(self.pages, 1)
        self.assertEqual(list(self.lines(d, path, 200, after=0)), mine)  # from the lines of others on
        self.assertEqual(list(self.lines(d, path, 200, after=log.stat().st_size)), [])
        for after in 1, log.stat().st_size + 1, 2 ** 63 - 1:
            status, said = d.ask("GET", path + "/audit?after=%d" % after)
            self.assertEqual((status, said["error"]["message"]), (400, "'after' is no 'next' of this log"))
        self.assertEqual(d.ask("GET", "/api/v1/workflows/1.9.9/audit")[0], 404)
        self.assertEqual(d.stop()[0], OK)


class Two(WithDaemons):
    """Two daemons on one PostgreSQL."""

    def setUp(self):
        super().setUp()
        server = subprocess.Popen([POSTGRES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.url = server.stdout.readline().strip()
        self.assertTrue(self.url)

    def both(self):
        return [self.daemon("--store", self.url, "--dir", name, "--load", APP, "--activity", PAID)
                for name in ("one", "two")]

    def test_what_one_starts_the_other_shows_and_steers(self):
        first, second = self.both()
        self.assertNotEqual(first.token, second.token)
        self.start(first, "order-7")
        self.until("it waits", lambda: self.waits(second, "order-7"))
        self.assertEqual(second.ask("POST", "/api/v1/instances/order-7/signal", {"name": "hurry"})[0], 202)
        self.until("its end", lambda: self.is_in(first, "order-7", "Completed"))
        self.start(second, "order-8")
        self.until("it waits", lambda: self.waits(second, "order-8"))
        self.assertEqual(first.stop(), (OK, "", ""))
        self.assertEqual(second.ask("POST", "/api/v1/instances/order-8/signal", {"name": "hurry"})[0], 202)
        self.until("its end, whoever had it", lambda: self.is_in(second, "order-8", "Completed"))
        self.assertEqual(second.stop(), (OK, "", ""))


class Config(WithDaemons):
    def write(self, text, name="serve.conf"):
        path = Path(self.where) / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def bad(self, text, expected):
        r = subprocess.run([EBB, "serve", "--config", self.write(text)], cwd=self.where, timeout=PATIENCE_S,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((r.returncode, r.stdout), (USAGE, ""), r.stderr)
        self.assertRegex(r.stderr, r"\Aebb: serve\.conf:%s\n\Z" % expected)

    def test_a_file_has_what_the_command_line_may_have(self):
        path = self.write("# a comment\n\n  listen=127.0.0.1:1  \n\tdir = kept here\r\nload = %s\nactivity = %s # not one\n"
                          "activity = other=true\nhost = ops.example\nhost = b.example" % (APP, PAID))
        d = self.daemon("--config", path)  # with --listen, which wins
        self.assertEqual(str(d.token_path), str(Path(self.where) / "kept here/token"))
        self.start(d, "order-7")
        self.until("it waits", lambda: self.waits(d, "order-7"))
        self.assertEqual(d.ask("POST", "/api/v1/instances/order-7/signal", {"name": "hurry"})[0], 202)
        self.until("its end", lambda: self.is_in(d, "order-7", "Completed"))
        for host, status in (("ops.example", 200), ("b.example", 200), ("c.example", 421)):
            self.assertEqual(d.ask("GET", "/api/v1/http", headers={"host": host})[0], status)
        self.assertEqual(d.stop(), (OK, "", ""))

    def test_the_command_line_wins(self):
        path = self.write("store = nosuch:x\nload = nowhere.so\nhost = a.example\ndir = /proc/ebb\n")
        d = self.daemon("--config", path, "--store", "lab:", "--load", APP, "--host", "b.example", "--dir", "d")
        for host, status in (("a.example", 421), ("b.example", 200)):
            self.assertEqual(d.ask("GET", "/api/v1/http", headers={"host": host})[0], status)
        self.assertEqual(d.stop(), (OK, "", ""))

    def test_what_is_wrong_has_a_line(self):
        known = "is not known; expected activity, app-listen, dir, host, listen, load, programs or store"
        self.bad("\nlissten = 1", "2: 'lissten' " + known)
        self.bad("--listen = 127.0.0.1:1", "1: '--listen' " + known)
        self.bad("config = other", "1: 'config' " + known)
        self.bad("= x", "1: '' " + known)
        self.bad("# one\nlisten = 7070\n", r"2: listen takes ADDRESS:PORT as .*, not '7070'")
        self.bad("activity = x", "1: activity takes NAME=COMMAND, not 'x'")
        self.bad("dir = a\ndir = a", "2: dir is given twice: line 1 has it")
        self.bad("store\n", "1: expected NAME = VALUE, not 'store'")
        self.bad("store = lab:\n dir  =  \n", "2: 'dir' has no value")
        self.bad(b"dir = a\x00b", "1: byte 0 is no text")
        self.bad(b"dir = \x1b[2J", "1: byte 27 is no text")
        self.assertEqual(os.listdir(self.where), ["serve.conf"])

    def test_the_file_itself(self):
        for path, expected in (("nowhere", "can't open nowhere: "), (".", r"can't (read|open) \.: "),
                               (self.write(b"#" * 65537), "serve.conf has more than 65536 bytes")):
            r = subprocess.run([EBB, "serve", "--config", path], cwd=self.where, timeout=PATIENCE_S,
                               stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(r.returncode, USAGE)
            self.assertRegex(r.stderr, r"\Aebb: %s" % expected)
        d = self.daemon("--config", self.write(b"#" * 65516 + b"\nstore = lab:     \n\n"))
        self.assertFalse((Path(self.where) / ".ebb/ebb.db").exists())
        self.assertEqual(d.stop(), (OK, "", ""))


class Refuses(WithDaemons):
    def bad(self, expected, *args):
        r = subprocess.run([EBB, "serve", *args], cwd=self.where, timeout=PATIENCE_S, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((r.returncode, r.stdout), (USAGE, ""), r.stderr)
        self.assertRegex(r.stderr, r"\Aebb: .*(%s)" % expected)

    def test_help(self):
        for option in "--help", "-h":
            r = subprocess.run([EBB, "serve", option], stdout=subprocess.PIPE, text=True, check=True)
            self.assertTrue(r.stdout.startswith("usage: ebb serve [--config FILE] [--listen ADDRESS:PORT]"))

    def test_arguments(self):
        self.bad("unexpected argument '--port'", "--port", "1")
        self.bad("unexpected argument 'web'; `ebb files DIR` serves files", "web")
        self.bad("--store needs a value", "--store")
        self.bad("--store is given twice", "--store", "lab:", "--store", "lab:")
        self.bad("--config is given twice", "--config", "/dev/null", "--config", "/dev/null")
        self.bad("--activity takes NAME=COMMAND, not 'x'", "--activity", "x")
        for address in "7070", "localhost:80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:80", \
                       "[::1]", "[127.0.0.1]:80", "127.0.0.1:+1", ":80", "127.0.0.1:80 ":
            self.bad("--listen takes ADDRESS:PORT as ", "--listen", address)
        self.assertEqual(os.listdir(self.where), [])

    def test_what_can_not_be_used(self):
        self.bad("'nosuch:x'", "--listen", "127.0.0.1:0", "--store", "nosuch:x")
        self.bad("can't load", "--load", "nowhere.so")
        self.bad("can't load", "--load", EMPTY.rjust(4095, "/") + "-and-more")
        self.bad("can't make the directory /proc/ebb", "--dir", "/proc/ebb")
        place = Path(self.where) / "file"
        place.write_text("")
        self.bad("file is not a directory", "--dir", "file")
        place = Path(self.where) / "shared"
        place.mkdir()
        for mode in 0o720, 0o702, 0o1777:
            place.chmod(mode)
            self.bad("the directory shared has mode %04o: others may write there" % mode, "--dir", "shared")
        if os.geteuid() == 0:
            place.chmod(0o700)
            os.chown(place, 12345, -1)
            self.bad("the directory shared is owned by user 12345, not by user 0", "--dir", "shared")
        self.assertEqual(os.listdir(place), [])
        self.bad("does not export ebb_app", "--listen", "127.0.0.1:0", "--load", EMPTY)
        self.bad("host 'a:80' is not valid", "--listen", "127.0.0.1:0", "--host", "a:80")
        token = Path(self.where) / ".ebb/token"
        token.chmod(0o644)
        self.bad("has mode 0644: others may use it", "--listen", "127.0.0.1:0")

    def test_a_port_and_a_directory_in_use(self):
        d = self.daemon()
        self.bad("can't listen on 127.0.0.1 port %d" % d.port, "--dir", "other", "--listen", "127.0.0.1:%d" % d.port)
        self.bad("another process has it; a second daemon needs a --dir of its own", "--listen", "127.0.0.1:0")
        self.assertEqual(d.stop()[0], OK)


if __name__ == "__main__":
    EBB, APP, EMPTY, POSTGRES = (str(Path(a).resolve()) for a in sys.argv[1:5])
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
