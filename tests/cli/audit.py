"""`ebb audit` from outside: audit.py PATH-OF-EBB PATH-OF-TEST_AUDIT.

The logs are of real workflows (`workflow.audit --log NAME`). They are doctored and sealed again here, by a second
implementation of docs/workflow.md, so that the two check each other."""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

EBB, TEST_AUDIT = "", ""


def real_log(scenario):
    run = subprocess.run([TEST_AUDIT, "--log", scenario], capture_output=True, check=True)
    return run.stdout.decode()


def as_ms(match):
    return f"{match.group(1)}{float(match.group(2)):.3f}"


def parsed(log):
    return [json.loads(line) for line in log.splitlines()]


def sealed(lines):
    """Numbers and chains all lines again."""
    out, prev = [], "0" * 64
    for i, line in enumerate(lines):
        body = {k: v for k, v in line.items() if k not in ("seq", "prev", "hash")}
        text = json.dumps({"seq": i + 1, **body, "prev": prev}, separators=(",", ":"), ensure_ascii=False)[:-1]
        text = re.sub(r'("(?:elapsed|budget)_ms":)([0-9.]+)', as_ms, text)
        prev = hashlib.sha256(text.encode()).hexdigest()
        out.append(f'{text},"hash":"{prev}"}}\n')
    return "".join(out)


def find(lines, event, nth=0):
    return [i for i, line in enumerate(lines) if line["event"] == event][nth]


class AuditCli(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def file(self, text, name="log"):
        path = os.path.join(self.dir.name, name)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return path

    def ebb(self, code, *args):
        run = subprocess.run([EBB, *args], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout, run.stderr

    def refused(self, text, line, invariant, says):
        """`text` breaks that invariant at that line, counted from 1."""
        path = self.file(text)
        out, err = self.ebb(1, "audit", "verify", path)
        self.assertEqual(out, "")
        first = err.splitlines()[0]
        self.assertTrue(first.startswith(f"{path}:{line}: {invariant}: "), first)
        self.assertIn(says, first)

    # ---- logs as they are

    def test_real_logs_verify_and_seal_to_the_same_bytes(self):
        for scenario, workflows, unfinished in (
                ("clean", 1, 0), ("cancelled", 1, 0), ("timed_out", 1, 0), ("forced", 1, 0), ("extended", 1, 0),
                ("overdue", 1, 0), ("nested", 2, 0), ("nested_and_forced", 2, 0), ("absorbed", 1, 0),
                ("refused", 1, 0), ("completed", 0, 0), ("leaked_before", 1, 0), ("unfinished", 1, 2)):
            with self.subTest(scenario):
                log = real_log(scenario)
                self.assertEqual(sealed(parsed(log)), log)
                path = self.file(log)
                out, err = self.ebb(0, "audit", "verify", path)
                n = log.count("\n")
                opened = log.count('"event":"opened"')
                self.assertEqual(out.splitlines()[0], f"{path}: {n} lines, {workflows} of {opened} workflows stopped, "
                                 f"{unfinished} unfinished: the log keeps the protocol")
                self.assertEqual(err, "")
                out, err = self.ebb(0, "audit", "show", path)
                self.assertEqual(len(out.splitlines()), n)
                self.assertEqual(err, "")

    def test_what_is_unfinished_is_named(self):
        out, _ = self.ebb(0, "audit", "verify", self.file(real_log("unfinished")))
        self.assertEqual(out.splitlines()[1:], ["  unfinished: publish_abort#1 is IDLE at line 2",
                                                "  unfinished: rollout_cancel#2 v42 is DRAINING at line 5"])

    def test_a_log_that_is_cut_verifies_and_says_so(self):
        log = real_log("clean")
        path = self.file(log[:-30])
        out, _ = self.ebb(0, "audit", "verify", path)
        self.assertIn("8 lines, 1 of 1 workflows stopped, 1 unfinished", out)
        self.assertIn("rollout_cancel#1 v42 is FINALIZING at line 8", out)
        self.assertIn("the last line is incomplete", out)
        out, err = self.ebb(0, "audit", "show", path)
        self.assertEqual(len(out.splitlines()), 8)
        self.assertIn("the last line is incomplete", err)

    def test_show_has_everything_a_line_says(self):
        out, _ = self.ebb(0, "audit", "show", self.file(real_log("clean")))
        lines = out.splitlines()
        self.assertRegex(lines[2], r"^ +3  1970-01-01T00:00:00\.000Z  rollout_cancel#1 v42  requested CAN-001  "
                         r"IDLE -> CANCEL_REQUESTED  0\.000/3000\.000 ms  epoch 1  in flight 1  USER: enough$")
        self.assertRegex(lines[4], r'evidence  DRAINING .* handler=report  key=epoch  value=41 "last known good"$')
        self.assertRegex(lines[8], r"finalized CAN-005  FINALIZING -> FINALIZED  10\.000/3000\.000 ms .* left=0  "
                         r"drain_timed_out=0  cancelled=0  absorbed=0  status=EBB_OK$")
        out, _ = self.ebb(0, "audit", "show", self.file(real_log("nested")))
        self.assertRegex(out, r"rollout_cancel#2  requested .* PARENT < USER: enough\n")

    def test_show_goes_on_after_a_line_that_it_cannot_read(self):
        log = real_log("clean").replace("enough", "enouhg", 1)
        path = self.file(log)
        out, err = self.ebb(1, "audit", "show", path)
        self.assertEqual(len(out.splitlines()), 8)
        self.assertRegex(err, rf"^{re.escape(path)}:3: its hash is not that of its bytes: it says [0-9a-f]{{8}}")

    def test_nothing_in_a_log_talks_to_the_terminal(self):
        lines = parsed(real_log("clean"))
        for line in lines[1:]:
            line["name"] = "v42\u001b[2J\u009b31m\u007f"
            line["workflow"] = "roll\u001bout\u009b"
        out, _ = self.ebb(0, "audit", "show", self.file(sealed(lines)))
        self.assertFalse(set(out) & {"\u001b", "\u007f", "\u009b"})
        del lines[3]
        _, err = self.ebb(1, "audit", "verify", self.file(sealed(lines)))
        self.assertFalse(set(err) & {"\u001b", "\u007f", "\u009b"})

    def test_an_empty_log_has_no_lines(self):
        out, _ = self.ebb(0, "audit", "verify", self.file(""))
        self.assertIn(": no lines", out)
        out, _ = self.ebb(0, "audit", "verify", self.file('{"seq":1,"at'))
        self.assertIn(": no lines, only an incomplete one", out)

    def test_what_was_added_at_the_end_is_no_cut_line(self):
        log = real_log("clean")
        for tail in ("hello", " ", "\0\0\0", '{"seq":1,'):
            self.refused(log + tail, log.count("\n") + 1, "audit-complete", "are no line, nor the start of one")

    # ---- doctored: the bytes

    def test_an_edited_line(self):
        log = real_log("clean")
        self.refused(log.replace("enough", "enouhg", 1), 3, "audit-complete", "its hash is not that of its bytes")

    def test_an_edited_last_line(self):
        log = real_log("clean")
        self.refused(log.replace('"left":0', '"left":1'), 9, "audit-complete", "its hash is not that of its bytes")

    def test_an_edited_line_with_its_hash(self):
        """Whoever can hash one line has to do it for all that follow."""
        lines, log = parsed(real_log("clean")), real_log("clean").splitlines(True)
        lines[2]["reason"][0]["message"] = "please"
        log[2] = sealed(lines).splitlines(True)[2]
        self.refused("".join(log), 4, "audit-complete", "is not the hash of the line before")

    def test_a_removed_line(self):
        log = real_log("clean").splitlines(True)
        self.refused("".join(log[:4] + log[5:]), 5, "audit-complete", '"seq" should be 5, found 6')

    def test_swapped_lines(self):
        log = real_log("clean").splitlines(True)
        log[4], log[5] = log[5], log[4]
        self.refused("".join(log), 5, "audit-complete", '"seq" should be 5, found 6')

    def test_an_inserted_line(self):
        log, other = real_log("clean").splitlines(True), real_log("forced").splitlines(True)
        self.refused("".join(log[:4] + other[4:5] + log[4:]), 5, "audit-complete", "is not the hash of the line before")

    def test_a_doubled_line(self):
        log = real_log("clean").splitlines(True)
        self.refused("".join(log + log[-1:]), 10, "audit-complete", '"seq" should be 10, found 9')

    def test_a_line_that_is_cut_in_the_middle(self):
        log = real_log("clean").splitlines(True)
        log[4] = log[4][:100] + "\n"
        self.refused("".join(log), 5, "audit-complete", "of 100 bytes")

    def test_a_log_of_another_process_before_it(self):
        log = real_log("clean")
        self.refused(log + log, 10, "audit-complete", '"seq" should be 10, found 1')

    def test_other_files(self):
        for text in (b"hello\n", b"\0\0\0\n", b"{}\n", b"\xff" * 40000 + b"\n"):
            self.refused(text, 1, "audit-complete", "hex digits")

    # ---- doctored: the protocol. The chain is whole.

    def doctored(self, scenario, doctor, event, nth, invariant, says):
        lines = parsed(real_log(scenario))
        doctor(lines)
        self.refused(sealed(lines), find(lines, event, nth) + 1, invariant, says)

    def test_a_skipped_phase(self):
        def doctor(lines):
            lines[find(lines, "requested")]["to"] = "FINALIZING"
            for event in ("drain_started", "evidence", "handler_done", "drain_completed", "finalizing"):
                del lines[find(lines, event)]
        self.doctored("clean", doctor, "requested", 0, "three-phase", "requested does not lead from IDLE to FINALIZING")

    def test_a_missing_event(self):
        def doctor(lines):
            del lines[find(lines, "drain_completed")]
        self.doctored("clean", doctor, "finalizing", 0, "three-phase",
                      "workflow 1 (rollout_cancel): finalizing needs DRAIN_COMPLETE, found DRAINING")

    def test_a_missing_request(self):
        def doctor(lines):
            del lines[find(lines, "requested")]
        self.doctored("clean", doctor, "drain_started", 0, "three-phase", "needs CANCEL_REQUESTED, found IDLE")

    def test_the_wrong_order(self):
        def doctor(lines):
            i = find(lines, "finalizing")
            lines[i - 1], lines[i] = lines[i], lines[i - 1]
        self.doctored("clean", doctor, "finalizing", 0, "three-phase",
                      "finalizing needs DRAIN_COMPLETE, found DRAINING")

    def test_a_clean_end_with_a_leak(self):
        def doctor(lines):
            end = lines[find(lines, "leak_detected")]
            end.update(event="finalized", code="CAN-005", to="FINALIZED")
            end["evidence"]["left"] = 0
        self.doctored("timed_out", doctor, "finalized", 0, "finalize-clean", "finalized (CAN-005) with 2 leaks")

    def test_a_leak_that_is_not_named(self):
        def doctor(lines):
            del lines[find(lines, "left")]
        self.doctored("timed_out", doctor, "leak_detected", 0, "finalize-clean", '"left":2, the lines before it say 1')

    def test_a_drain_that_is_too_long(self):
        def doctor(lines):
            for line in lines[find(lines, "drain_completed"):]:
                line["elapsed_ms"] = 3000.5
        self.doctored("clean", doctor, "drain_completed", 0, "drain-bounded",
                      "drain_completed at 3000.500 ms, after the budget of 3000.000 ms, without CAN-004")

    def test_a_drain_that_is_exactly_as_long_as_its_budget_is_fine(self):
        lines = parsed(real_log("clean"))
        for line in lines[find(lines, "drain_completed"):]:
            line["elapsed_ms"] = 3000.0
        self.ebb(0, "audit", "verify", self.file(sealed(lines)))

    def test_a_timeout_that_nobody_told(self):
        def doctor(lines):
            i = find(lines, "drain_timeout")
            lines[i].update(event="drain_completed", code="CAN-003", to="DRAIN_COMPLETE", in_flight=0)
            lines[i]["elapsed_ms"] = 1000.001
        self.doctored("timed_out", doctor, "drain_completed", 0, "drain-bounded", "without CAN-004")

    def test_a_budget_that_rises(self):
        def doctor(lines):
            lines[find(lines, "drain_completed")]["budget_ms"] = 3001.0
        self.doctored("clean", doctor, "drain_completed", 0, "drain-bounded", "only extended gives more")

    def test_work_that_came_after_the_request(self):
        def doctor(lines):
            lines[find(lines, "drain_started")]["in_flight"] = 2
        self.doctored("clean", doctor, "drain_started", 0, "no-new-work", "at most 1 may be in flight, found 2")

    def test_a_workflow_that_was_opened_after_the_request(self):
        def doctor(lines):
            inner = lines.pop(find(lines, "opened", 1))
            lines.insert(find(lines, "drain_started") + 1, inner)
        self.doctored("nested", doctor, "opened", 1, "no-new-work", "opened in workflow 1 (lifecycle_shutdown)")

    def test_a_second_request(self):
        def doctor(lines):
            i = find(lines, "requested")
            lines.insert(i + 1, dict(lines[i]))
        self.doctored("clean", doctor, "requested", 1, "idempotent", "expected absorbed, found a second requested")

    def test_a_second_request_that_weakens(self):
        def doctor(lines):
            for line in lines[find(lines, "absorbed", 1):]:
                line["reason"][0].update(kind="USER", severity=1)
        self.doctored("absorbed", doctor, "absorbed", 1, "idempotent", "weakens the severity of the reason from 2 to 1")

    def test_a_lost_line(self):
        def doctor(lines):
            lines[find(lines, "finalizing")]["lost"] = 3
        self.doctored("clean", doctor, "finalizing", 0, "audit-complete", "3 could not be written before this one")

    def test_an_unknown_field(self):
        def doctor(lines):
            lines[find(lines, "finalizing")]["note"] = "trust me"
        self.doctored("clean", doctor, "finalizing", 0, "audit-complete", 'has no "note"')

    def test_another_code(self):
        def doctor(lines):
            lines[find(lines, "drain_timeout")]["code"] = "CAN-003"
        self.doctored("timed_out", doctor, "drain_timeout", 0, "audit-complete", "is CAN-004, found CAN-003")

    def test_a_line_that_is_refused_is_shown(self):
        lines = parsed(real_log("clean"))
        lines[find(lines, "drain_started")]["in_flight"] = 2
        _, err = self.ebb(1, "audit", "verify", self.file(sealed(lines)))
        self.assertRegex(err.splitlines()[1], r"^ +4 .* drain_started CAN-002  CANCEL_REQUESTED -> DRAINING")

    # ---- the command

    def test_help(self):
        for args in (("audit", "--help"), ("audit", "help"), ("audit", "-h"), ("audit", "show", "--help")):
            out, err = self.ebb(0, *args)
            self.assertIn("usage: ebb audit show FILE", out)
            self.assertEqual(err, "")
        out, _ = self.ebb(0, "help")
        self.assertIn("audit", out)

    def test_wrong_arguments(self):
        path = self.file("")
        for args, says in (((), "usage"), (("prove", path), "unknown audit command 'prove'"), (("show",), "takes 1 file, not 0"),
                           (("verify", path, path), "takes 1 file, not 2"),
                           (("show", "--all", path), "unknown option '--all'")):
            out, err = self.ebb(2, "audit", *args)
            self.assertEqual(out, "")
            self.assertIn(says, err)

    def test_files_that_cannot_be_read(self):
        for verb in ("show", "verify"):
            _, err = self.ebb(2, "audit", verb, os.path.join(self.dir.name, "none"))
            self.assertIn("No such file or directory", err)
            _, err = self.ebb(2, "audit", verb, self.dir.name)
            self.assertIn("Is a directory", err)

    def test_output_that_cannot_be_written(self):
        path = self.file(real_log("clean"))
        with open("/dev/full", "wb") as full:
            for verb in ("show", "verify"):
                run = subprocess.run([EBB, "audit", verb, path], stdout=full, stderr=subprocess.PIPE, check=False)
                self.assertEqual(run.returncode, 2)
                self.assertIn(b"No space left on device", run.stderr)


if __name__ == "__main__":
    EBB, TEST_AUDIT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
