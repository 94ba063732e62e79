#!/usr/bin/env python3
"""Runs the service skeleton on real sockets, and stops it in every way there is.

usage: service.py EBB SERVICE
"""
import json
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
from http_world import is_sanitized  # noqa: E402
from signals import tell  # noqa: E402

EBB = ""
SERVICE = ""

CLOSED = re.compile(r"closed: lifecycle_shutdown#\d+ service is DRAINING \(USER: SIGTERM\): no new work")


class Client:
    """A connection that speaks lines."""

    def __init__(self, port, *lines):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rw", encoding="utf-8", newline="\n")
        for line in lines:
            self.say(line)

    def say(self, line):
        self.file.write(line + "\n")
        self.file.flush()

    def hear(self):
        return self.file.readline().rstrip("\n")

    def hear_all(self):
        """Every line up to the end of the stream."""
        return self.file.read().splitlines()

    def close(self):
        self.file.close()
        self.socket.close()


class WithService(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.log = Path(directory.name) / "audit.jsonl"

    def start(self, *arguments):
        """Starts it; what it prints before it listens is in self.before."""
        self.service = subprocess.Popen([SERVICE, "--port", "0", "--audit", self.log, *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, self.service)
        self.before = []
        listening = re.compile(r"listening on 127\.0\.0\.1 port (\d+)\n")
        while not (found := listening.fullmatch(line := self.hear_service())):
            self.before.append(line.rstrip("\n"))
        self.port = int(found.group(1))

    @staticmethod
    def end(service):
        service.kill()
        service.wait()
        service.stdout.close()
        service.stderr.close()

    def hear_service(self):
        line = self.service.stdout.readline()
        if line == "":
            self.fail("the service has ended: %s" % self.service.stderr.read())
        return line

    def client(self, *lines):
        client = Client(self.port, *lines)
        self.addCleanup(client.close)
        return client

    def terminate(self, until="DRAINING"):
        """Sends SIGTERM, and waits until the service says that it is there."""
        tell(self.service, signal.SIGTERM)
        while self.hear_service() != until + "\n":
            pass

    def status(self):
        return self.service.wait(timeout=30)

    def verify(self):
        """What `ebb audit verify` says of the log, which must verify."""
        result = subprocess.run([EBB, "audit", "verify", self.log], capture_output=True, text=True,
                                timeout=60, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def events(self, workflow):
        """The whole lines of the log that are about this type of workflow."""
        lines = self.log.read_bytes().split(b"\n")[:-1]
        return [line for line in map(json.loads, lines) if line.get("workflow") == workflow]

    def wait_for(self, *workflows):
        """Until so many of each type are open, by the log."""
        for _ in range(1000):
            if all(sum(e["event"] == "opened" for e in self.events(name)) >= workflows.count(name)
                   for name in workflows):
                return
            time.sleep(0.005)
        self.fail("expected that %s are open" % ", ".join(workflows))


class Operators(WithService):
    """Those who serve an operator are stopped last."""

    def start_operated(self, budget):
        self.start("--budget", budget, "--operator", "0")
        self.operators = int(re.fullmatch(r"operators on 127\.0\.0\.1 port (\d+)", self.before[-1]).group(1))

    def ask(self, path, method="GET"):
        """The status and the text of an answer."""
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.operators, path), method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def test_explain_extend_and_force_a_shutdown_that_is_overdue(self):
        self.start_operated("400")
        self.assertEqual(self.ask("/force", "POST")[0], 409)  # nobody has asked it to stop
        self.assertEqual(self.client("stuck").hear(), "stuck")
        self.terminate()
        status, text = self.ask("/explain")
        self.assertEqual(status, 200)
        self.assertIn("service is DRAINING", text)
        self.assertIn("examples/service/server.c:", text)
        self.assertNotIn("http", text)  # they do not hold it up
        said = self.service.stderr.readline()  # at the end of the budget
        self.assertIn("over its budget: extend or force it", said)
        self.assertEqual(self.ask("/extend/1", "POST"), (200, "ok\n"))
        self.assertEqual(self.ask("/extend/0", "POST")[0], 400)
        self.assertEqual(self.ask("/force", "POST"), (200, "ok\n"))  # is answered all the same
        self.assertEqual(self.status(), 3)
        self.verify()
        forced = [e["evidence"] for e in self.events("lifecycle_shutdown") if e["event"] == "drain_forced"]
        self.assertEqual(forced, [{"by": "the operator"}])

    def test_that_nobody_needs_hold_nothing_up(self):
        self.start_operated("20000")
        self.assertEqual(self.ask("/explain")[0], 200)
        with socket.create_connection(("127.0.0.1", self.operators), timeout=30):  # an idle one
            tell(self.service, signal.SIGTERM)
            self.assertEqual(self.status(), 0)
        self.verify()

    def test_sigusr1_prints_the_explanation(self):
        self.start_operated("20000")
        tell(self.service, signal.SIGUSR1)
        self.assertRegex(self.service.stderr.readline(), r"lifecycle_shutdown#\d+ service is IDLE, \d+ in flight")
        tell(self.service, signal.SIGTERM)
        self.assertEqual(self.status(), 0)


class Sigterm(WithService):
    def test_under_load_answers_all_that_is_in_flight_and_refuses_the_rest(self):
        self.start()
        busy = [self.client("work 0", "work 300") for _ in range(50)]
        idle = self.client("work 0")
        self.assertEqual({client.hear() for client in [*busy, idle]}, {"done"})
        began = time.monotonic()
        self.terminate()
        late = self.client()
        self.assertRegex(late.hear(), CLOSED)
        self.assertRegex(idle.hear(), CLOSED)
        for client in busy:
            answer, goodbye = client.hear_all()
            self.assertEqual(answer, "done")
            self.assertRegex(goodbye, CLOSED)
        self.assertEqual(self.status(), 0)
        self.assertLess(time.monotonic() - began, 5)
        self.assertRegex(self.service.stdout.read().splitlines()[-1],
                         r"stopped in order: \d+ of 5000 ms, 0 left behind")
        self.verify()
        self.assertEqual([e["code"] for e in self.events("lifecycle_shutdown") if e["code"]],
                         ["CAN-001", "CAN-002", "CAN-003", "CAN-005"])

    def test_takes_back_what_is_half_done_and_leaves_evidence(self):
        self.start()
        called_off = [self.client("rollout v42"), self.client("publish v7"), self.client("epoch")]
        self.wait_for("rollout_cancel", "publish_abort", "epoch_transition_cancel")
        self.terminate()
        answers = [client.hear() for client in called_off]
        self.assertEqual(answers, ["rollout v42: taken back, cancelled", "publish v7: taken back, cancelled",
                                   "epoch epoch-1: taken back, cancelled"])
        self.assertEqual(self.status(), 0)
        self.verify()
        for workflow, key in [("rollout_cancel", "terminal_state"), ("publish_abort", "partial_writes"),
                              ("epoch_transition_cancel", "participants")]:
            evidence = [e["evidence"] for e in self.events(workflow) if e["event"] == "evidence"]
            self.assertEqual([(e["key"], e["value"]) for e in evidence], [(key, "taken back")])
        shutdown = {e["evidence"]["key"]: e["evidence"]["value"] for e in self.events("lifecycle_shutdown")
                    if e["event"] == "evidence"}
        self.assertEqual(shutdown, {"fencing_tokens": "3 of 3 are free", "connections_ended": "3 of 3"})

    def test_keeps_the_last_known_good_evaluation(self):
        self.start()
        client = self.client()
        good = ""
        for _ in range(100):
            client.say("health")
            good = client.hear()
            if "evaluation" in good:
                break
            time.sleep(0.02)
        self.assertRegex(good, r"last known good: evaluation 1, \d+ ms after the start")
        self.terminate()
        self.assertEqual(self.status(), 0)
        ms = re.search(r"stopped in order: (\d+) of 5000 ms", self.service.stdout.read())
        self.assertLess(int(ms.group(1)), 500)  # between two evaluations there is nothing to wait for
        evidence = [e["evidence"] for e in self.events("health_check_cancel") if e["event"] == "evidence"]
        self.assertEqual(evidence[0]["key"], "last_known_good")
        self.assertRegex(evidence[0]["value"], r"evaluation \d+, \d+ ms after the start")

    def test_twice_forces_work_that_ignores_a_cancel(self):
        self.start()
        self.assertEqual(self.client("stuck").hear(), "stuck")
        began = time.monotonic()
        self.terminate()
        tell(self.service, signal.SIGTERM)
        self.assertEqual(self.status(), 4)
        self.assertLess(time.monotonic() - began, 4)
        self.assertRegex(self.service.stdout.read(),
                         r"forced by a second signal: \d+ of \d+ ms, 1 left behind\n")
        self.verify()
        left = [e["evidence"] for e in self.events("lifecycle_shutdown") if e["event"] == "left"]
        self.assertEqual(len(left), 1)
        self.assertEqual(left[0]["what"], "task")
        self.assertIn("examples/service/server.c:", left[0]["site"])

    def test_is_over_when_the_budget_is(self):
        self.start("--budget", "1000")
        self.assertEqual(self.client("stuck").hear(), "stuck")
        self.terminate()
        while "drain_cancelled" not in [e["event"] for e in self.events("lifecycle_shutdown")]:
            time.sleep(0.005)
        self.assertRegex(self.client().hear(), CLOSED)  # the door is open until the end
        self.assertEqual(self.status(), 3)
        self.assertRegex(self.service.stdout.read(),
                         r"the budget was over, what was left was forced: \d+ of 1000 ms, 1 left behind\n")
        self.verify()
        self.assertIn("CAN-004", [e["code"] for e in self.events("lifecycle_shutdown")])

    def test_cancels_at_three_fifths_of_the_budget_what_is_still_in_flight(self):
        self.start("--budget", "500")
        client = self.client("work 0", "work 60000")
        self.assertEqual(client.hear(), "done")
        time.sleep(0.05)  # it was heard before the next one began
        self.terminate()
        answer, _ = client.hear_all()
        self.assertEqual(answer, "cancelled")
        self.assertEqual(self.status(), 0)
        self.verify()
        self.assertIn("drain_cancelled", [e["event"] for e in self.events("lifecycle_shutdown")])


class KillNine(WithService):
    def test_in_the_middle_of_a_drain_leaves_a_log_that_verifies_and_is_told_by_the_next(self):
        for moment in (0, 0.01, 0.05, 0.2, 0.35):
            with self.subTest(seconds=moment):
                self.log.unlink(missing_ok=True)
                self.start()
                in_flight = [self.client("rollout v1"), self.client("publish v2"), self.client("work 2000")]
                self.wait_for("rollout_cancel", "publish_abort")
                self.terminate()
                time.sleep(moment)
                self.service.kill()
                self.service.wait()
                for client in in_flight:
                    client.close()
                self.verify()
                self.start()
                told = [line for line in self.before if line.startswith("unfinished: ")]
                self.assertRegex("\n".join(told),
                                 r"unfinished: lifecycle_shutdown#1 service was DRAINING \(line \d+\)")
                self.terminate("FINALIZED")
                self.assertEqual(self.status(), 0)
                self.verify()

    def test_that_cuts_a_line_loses_only_that(self):
        self.start()
        self.terminate("FINALIZED")
        self.assertEqual(self.status(), 0)
        whole = self.log.read_bytes()
        lines = whole.count(b"\n")
        self.log.write_bytes(whole[:-25])
        self.assertIn(str(lines - 1), self.verify())
        self.start()
        self.terminate("FINALIZED")
        self.assertEqual(self.status(), 0)
        self.verify()
        self.assertTrue(self.log.read_bytes().startswith(whole[:whole.rindex(b"\n", 0, -1) + 1]))


class Protocol(WithService):
    def test_runs_each_operation_to_its_end(self):
        self.start()
        clients = [self.client("rollout v42"), self.client("publish v7"), self.client("epoch")]
        self.assertEqual([client.hear() for client in clients],
                         ["rollout v42: done", "publish v7: done", "epoch epoch-1: done"])
        self.terminate("FINALIZED")
        self.assertEqual(self.status(), 0)
        self.assertEqual([e["event"] for e in self.events("rollout_cancel")], ["opened", "completed"])

    def test_calls_an_operation_off(self):
        self.start()
        client = self.client("rollout v42")
        self.wait_for("rollout_cancel")
        self.assertEqual(self.client("cancel v42").hear(), "cancel v42: ok")
        self.assertEqual(client.hear(), "rollout v42: taken back, cancelled")
        client.say("work 0")  # the service goes on
        self.assertEqual(client.hear(), "done")
        self.terminate("FINALIZED")
        self.assertEqual(self.status(), 0)
        self.verify()

    def test_gives_two_rollouts_the_fence_one_after_the_other(self):
        self.start()
        first = self.client("rollout a")
        self.wait_for("rollout_cancel")
        second = self.client("rollout b")
        self.wait_for("rollout_cancel", "rollout_cancel")
        self.assertEqual(self.client("cancel a").hear(), "cancel a: ok")
        self.assertEqual(first.hear(), "rollout a: taken back, cancelled")
        self.assertEqual(second.hear(), "rollout b: done")

    def test_says_what_is_wrong_with_a_request(self):
        self.start()
        client = self.client()
        for line, answer in [
                ("work soon", "error: work 'soon': expected milliseconds, 0 to 3600000"),
                ("rollout", "error: rollout: expected a name of 1 to 31 bytes"),
                ("cancel nothing", "error: cancel: nothing of the name 'nothing' runs"),
                ("dance", "error: 'dance': expected work, health, rollout, publish, epoch, cancel or stuck"),
                ("x" * 300, "error: expected a line of less than 256 bytes")]:
            client.say(line)
            self.assertEqual(client.hear(), answer)

    def test_says_what_is_wrong_with_its_arguments(self):
        for arguments, code, message in [
                (["--port", "70000"], 2, "service: --port '70000': expected a number, 0 to 65535\n"),
                (["--budget"], 2, "service: --budget: expected a value\n"),
                (["--colour"], 2, "service: no option '--colour'; there are --port N"),
                (["--audit", "/nonexistent/log"], 1,
                 "service: can't open the audit log /nonexistent/log: no such file or directory\n")]:
            with self.subTest(arguments):
                result = subprocess.run([SERVICE, *arguments], capture_output=True, text=True, timeout=60,
                                        check=False)
                self.assertEqual(result.returncode, code)
                self.assertTrue(result.stderr.startswith(message), result.stderr)

    def test_says_why_it_can_not_listen(self):
        self.start()
        second = subprocess.run([SERVICE, "--port", str(self.port)], capture_output=True, text=True,
                                timeout=60, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn("can't listen on 127.0.0.1 port %d: address already in use" % self.port, second.stderr)


def rehearse():
    return subprocess.run([SERVICE, "--inject"], capture_output=True, text=True, timeout=580, check=False)


class Rehearsal(unittest.TestCase):
    def test_holds_at_every_point_of_every_workflow_and_is_the_same_every_time(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = rehearse()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        found = re.findall(r"^(\w+): (\d+) suspension points, (\d+) runs, (\d+) forced: all oracles hold$",
                           result.stdout, re.MULTILINE)
        self.assertEqual([name for name, *_ in found],
                         ["lifecycle_shutdown", "health_check_cancel", "rollout_cancel", "publish_abort",
                          "epoch_transition_cancel"])
        self.assertGreaterEqual(sum(int(runs) for _, _, runs, _ in found), 500)
        self.assertTrue(all(int(forced) > 0 for *_, forced in found))
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        # 4 to 10 s of the processor, and 15 to 66 s with sanitizers
        self.assertLess(spent, 240 if is_sanitized(SERVICE) else 60)
        self.assertEqual(rehearse().stdout, result.stdout)


if __name__ == "__main__":
    EBB, SERVICE = sys.argv[1], sys.argv[2]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
