"""`ebb trace` from outside: trace.py PATH-OF-EBB.

The files are written here, by a second implementation of docs/trace.md, so that the two check each
other."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

EBB = ""
TIME, TURN, GAP, TEXT, IDLE = 1, 2, 3, 4, 5
OPENED, CLOSING, CANCELLED, DRAINING, FINALIZING, CLOSED = 10, 11, 12, 14, 15, 16
SPAWNED, POLLED, WOKEN, REQUESTED, ACKED, CLEANUP_DONE, FINALIZED, COMPLETED, MASKED = 30, 31, 32, 33, 35, 37, 38, 39, 43
USER, RACE_LOST = 1, 2


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record(type_, phase=0, kind=0, severity=0, epoch=0, value=0, task=0, region=0, other=0):
    return struct.pack("<BBBBIQQQ", type_, phase, kind, severity << 4 | epoch, value & 0xFFFFFFFF, task, region, other)


def text(s, more=0):
    s = s.encode()
    return struct.pack("<BBBBI24s", TEXT, more, 0, 0, len(s), s)


def trace(records, magic=b"EBBTRACE", per_block=127, version=1):
    head = struct.pack("<8sII32sI8x", magic, version, 0, b"ebb-cancel-v2", 32)
    out = [head, struct.pack("<I", crc32c(head))]
    for i in range(0, len(records), per_block):
        part = records[i:i + per_block]
        covered = struct.pack("<IQ", len(part), 1 + i)
        body = b"".join(part)
        out += [b"EBLK", covered, struct.pack("<I", crc32c(covered + body)), bytes(12), body]
    return b"".join(out)


def ident(index, generation=1):
    return index << 32 | generation


ROOT, WORK, TASK, PEER = ident(1), ident(2), ident(1), ident(2)


def story(kind=USER, swapped=False, masked=False):
    """One region with two tasks that are cancelled; what they do first is independent."""
    told = dict(kind=kind, severity=1, epoch=1)
    one = record(WOKEN, 2, value=3, task=TASK, region=WORK)
    two = record(WOKEN, 2, value=3, task=PEER, region=WORK)
    ack = [record(MASKED, 3, **told, value=1, task=TASK, region=WORK)] if masked else []
    return [
        record(TURN, task=1, region=1), record(TIME, other=1_500_000_123),
        record(OPENED, 1, region=ROOT), record(OPENED, 1, region=WORK, other=ROOT),
        record(SPAWNED, 1, task=TASK, region=WORK), record(SPAWNED, 1, task=PEER, region=WORK),
        record(POLLED, 2, value=3, task=TASK, region=WORK), record(POLLED, 2, value=3, task=PEER, region=WORK),
        *([two, one] if swapped else [one, two]),
        record(CLOSING, 2, region=WORK), record(CANCELLED, 2, **told, value=9, region=WORK, other=2_000_000_000),
        text("closed by the \"operator", 1), text(" and\n friends"),
        record(REQUESTED, 3, **told, value=9, task=TASK, region=WORK, other=2_000_000_000),
        record(REQUESTED, 3, **told, value=9, task=PEER, region=WORK, other=2_000_000_000),
        record(DRAINING, 3, region=WORK),
        record(POLLED, 3, **told, value=1, task=TASK, region=WORK), *ack,
        record(ACKED, 4, **told, value=9, task=TASK, region=WORK, other=1_900_000_000),
        record(CLEANUP_DONE, 5, **told, task=TASK, region=WORK),
        record(FINALIZED, 6, **told, value=-1, task=TASK, region=WORK),
        record(POLLED, 3, **told, value=1, task=PEER, region=WORK),
        record(COMPLETED, 6, **told, value=-1003, task=PEER, region=WORK),
        record(FINALIZING, 4, region=WORK), record(CLOSED, 5, value=-1003, region=WORK), record(IDLE),
    ]


class TraceCli(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def file(self, name, data):
        path = os.path.join(self.dir.name, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def ebb(self, code, *args):
        run = subprocess.run([EBB, *args], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout, run.stderr

    def test_a_good_trace_verifies(self):
        path = self.file("good", trace(story()))
        out, err = self.ebb(0, "trace", "verify", path)
        self.assertRegex(out, r"^26 events, fingerprint [0-9a-f]{32}, ok\n$")
        self.assertEqual(err, "")
        out, _ = self.ebb(0, "trace", "verify", "--strict", "--quiescent", path)
        self.assertIn("every rule holds", out)

    def test_a_broken_rule_is_named_with_its_event(self):
        path = self.file("masked", trace(story(masked=True)))
        self.ebb(0, "trace", "verify", path)
        _, err = self.ebb(1, "trace", "verify", "--strict", path)
        offset = 64 + 32 + 19 * 32
        self.assertIn(f"ack_only_unmasked: event 20, offset {offset}: task 0.1.1", err)
        self.assertIn("expected 0, found 1", err)
        self.assertIn("cancel_acked  task 0.1.1  region 0.2.1  Cancelling  USER polite epoch 1", err)

    def test_what_lives_at_the_end_is_a_leak_only_if_asked(self):
        path = self.file("cut", trace(story()[:8]))
        self.ebb(0, "trace", "verify", "--strict", path)
        _, err = self.ebb(1, "trace", "verify", "--quiescent", path)
        self.assertIn("task_leak: at the end: task 0.", err)

    def test_damage_is_named_with_its_offset(self):
        data = trace(story(), per_block=10)
        block = 32 + 10 * 32
        cut = self.file("cut", data[:64 + block + 40])
        _, err = self.ebb(1, "trace", "verify", cut)
        self.assertIn(f"offset {64 + block}: cut short", err)
        self.assertIn("10 events before it", err)
        flipped = self.file("flipped", data[:110 + block] + b"\xff" + data[111 + block:])
        _, err = self.ebb(1, "trace", "verify", flipped)
        self.assertIn(f"offset {64 + block}", err)
        out, err = self.ebb(1, "trace", "show", flipped)
        self.assertEqual(len(out.splitlines()), 10)
        header = self.file("header", data[:20] + b"\xff" + data[21:])
        self.ebb(1, "trace", "verify", header)

    def test_a_file_of_another_kind_is_the_wrong_argument(self):
        text, good = self.file("text", b"hello, this is not a trace"), self.file("good", trace(story()))
        for verb in (["show"], ["verify"], ["export", "--format", "jsonl"], ["diff", good]):
            self.assertIn("offset 0", self.ebb(2, "trace", *verb, text)[1])
        for verb in ("show", "replay"):
            self.assertIn("is not a journal", self.ebb(2, "journal", verb, text)[1])
            self.assertIn("is a trace, not a journal", self.ebb(2, "journal", verb, good)[1])
        self.assertIn(text + ":1:", self.ebb(2, "lab", "replay", text)[1])

    def test_output_that_can_not_be_written_is_an_error(self):
        good = self.file("good", trace(story()))
        for args in (["--version"], ["help"], ["trace", "--help"], ["trace", "show", good], ["trace", "verify", good],
                     ["trace", "diff", good, good], ["trace", "export", "--format", "jsonl", good],
                     ["trace", "export", "--format", "chrome", good], ["lab", "list"], ["lab", "run", "race"],
                     ["fixture", "list"], ["fixture", "run"], ["journal", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                run = subprocess.run([EBB, *args], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(run.returncode, 2, args)
            self.assertEqual(run.stderr, "ebb: can't write the output: No space left on device\n", args)

    def test_flags_are_words(self):
        records = [record(TURN, task=1, region=1), record(OPENED, 1, region=ROOT),
                   record(OPENED, 1, region=WORK, other=ROOT, value=3),
                   record(SPAWNED, 1, task=TASK, region=WORK, value=1), record(SPAWNED, 1, task=PEER, region=WORK, value=6)]
        lines = self.ebb(0, "trace", "show", self.file("flags", trace(records)))[0].splitlines()
        for line, end in ((1, "Open"), (2, "cleanup  collect  parent 0.1.1"), (3, "Created  keep"),
                          (4, "Created  closer  flags 0x4")):
            self.assertTrue(lines[line].endswith(end), lines[line])

    def test_show_prints_a_line_an_event_with_its_text(self):
        lines = self.ebb(0, "trace", "show", self.file("good", trace(story())))[0].splitlines()
        self.assertEqual(len(lines), 24)
        cancelled = next(l for l in lines if "region_cancelled" in l)
        for part in ("12  1.500000123  1/1", "region 0.2.1", "Closing", "USER polite epoch 1", "polls 9",
                     "deadline 2.000000000", '"closed by the \\"operator and\\u000a friends"'):
            self.assertIn(part, cancelled)
        self.assertTrue(any("completed" in l and "(-1003)" in l for l in lines))

    def durable(self):
        """An instance that is evicted, replayed, fenced and told to cancel an activity, and a lease that is lost."""
        discarded, first = 50, 160
        inst, turn, act = 7, 3 << 32 | 7, 5 << 32 | 7
        records = [record(TURN, task=1, region=1), record(OPENED, 1, region=ROOT),
                   record(SPAWNED, 1, task=TASK, region=ROOT), record(discarded, 6, task=TASK, region=ROOT, value=-5),
                   record(first, other=inst, value=1), text("order-7"), record(first + 1, other=inst, value=-1),
                   record(first + 2, other=inst, value=-43), text("timer, found call"),
                   record(first + 3, other=turn, value=2), text("order-7"), record(first + 4, other=turn, value=4),
                   record(first + 5, other=turn, value=1), record(first + 6, other=turn, value=900),
                   record(first + 7, other=inst, value=12), record(first + 8, other=act, value=2), text("charge"),
                   record(first + 9, other=act, value=2), text("charge"), record(first + 10, other=act, value=RACE_LOST),
                   record(first + 11, other=act, value=-1), record(first + 12, other=act, value=USER),
                   record(first + 13, value=40, other=2), record(first + 14, value=38),
                   record(first + 15, other=turn, value=6), text("order-8")]
        return self.file("durable", trace(records))

    def test_the_events_of_orchestrations_are_shown_with_what_they_mean(self):
        path = self.durable()
        lines = self.ebb(0, "trace", "show", path)[0].splitlines()
        for name, end in (
                ("discarded", "Completed  status EBB_DISCARDED"),
                ("durable_instance_started", 'value 1  instance 7  "order-7"'),
                ("durable_instance_ended", "status EBB_CANCELLED  instance 7"),
                ("durable_instance_suspended", 'status EBB_ERR_DIVERGED  instance 7  "timer, found call"'),
                ("durable_turn_begun", 'value 2  instance 7  turn 3  "order-7"'),
                ("durable_turn_committed", "value 4  instance 7  turn 3"),
                ("durable_turn_fenced", "value 1  instance 7  turn 3"),
                ("durable_replayed", "value 900  instance 7  turn 3"),
                ("durable_evicted", "value 12  instance 7"),
                ("durable_activity_claimed", 'value 2  instance 7  activity 5  "charge"'),
                ("durable_activity_started", 'value 2  instance 7  activity 5  "charge"'),
                ("durable_activity_told", "RACE_LOST  instance 7  activity 5"),
                ("durable_activity_ended", "status EBB_CANCELLED  instance 7  activity 5"),
                ("durable_activity_late_ack", "USER  instance 7  activity 5"),
                ("durable_lease_renewed", "value 40  gone 2"),
                ("durable_lease_lost", "value 38"),
                ("durable_message_sent", 'value 6  instance 7  turn 3  "order-8"')):
            line = next((l for l in lines if "  %s" % name in l), None)
            self.assertIsNotNone(line, (name, lines))
            self.assertTrue(line.endswith(end), (line, end))
        self.ebb(0, "trace", "verify", "--strict", path)
        plain = self.file("plain", trace([record(TURN, task=1, region=1), record(OPENED, 1, region=ROOT),
                                          record(SPAWNED, 1, task=TASK, region=ROOT),
                                          record(50, 6, task=TASK, region=ROOT, value=-5)]))
        prints = [self.ebb(0, "trace", "verify", p)[0].split("fingerprint")[1] for p in (path, plain)]
        self.assertEqual(*prints)  # events of layers are not hashed

    def test_the_events_of_orchestrations_are_counted_and_exported(self):
        path = self.durable()
        summary = self.ebb(0, "trace", "summary", path)[0]
        for line in ("1  discarded", "1  instances, 1 ended", "1  turns, 1 committed", "1  replays", "1  evictions",
                     "1  activities, 1 ended"):
            self.assertIn("           %s\n" % line, summary)
        self.assertEqual(json.loads(self.ebb(0, "trace", "summary", "--json", path)[0])["counts"]["durable_evicted"], 1)
        events = [json.loads(l) for l in self.ebb(0, "trace", "export", "--format", "jsonl", path)[0].splitlines()]
        ended = next(e for e in events if e["type"] == "durable_activity_ended")
        self.assertEqual((ended["status"], ended["other"]), (-1, "0x0000000500000007"))
        exported = json.loads(self.ebb(0, "trace", "export", "--format", "chrome", path)[0])["traceEvents"]
        for category in ("instance", "turn", "activity"):
            spans = [(e["ph"], e["id"]) for e in exported if e.get("cat") == category]
            self.assertEqual(spans[0][0], "b", spans)
            self.assertIn(("e", spans[0][1]), spans)
        instants = {e["name"] for e in exported if e["ph"] == "i"}
        self.assertLessEqual({"discarded", "durable_evicted", "durable_lease_lost"}, instants)

    def test_diff_of_equal_traces_ignores_blocks(self):
        a = self.file("a", trace(story()))
        b = self.file("b", trace(story(), per_block=3))
        self.assertIn("the same", self.ebb(0, "trace", "diff", a, b)[0])

    def test_diff_shows_where_they_part(self):
        a = self.file("a", trace(story()))
        b = self.file("b", trace(story(kind=RACE_LOST)))
        out, _ = self.ebb(1, "trace", "diff", a, b)
        self.assertIn("event 12 differs", out)
        marked = [l for l in out.splitlines() if l.startswith("> ")]
        self.assertEqual(len(marked), 2)
        self.assertIn("USER", marked[0])
        self.assertIn("RACE_LOST", marked[1])
        self.assertEqual(out.count("task_woken"), 4)
        self.assertIn("differ in what they did", out)
        self.assertEqual(out.count("fingerprint "), 2)

    def test_diff_tells_an_order_that_does_not_matter(self):
        a = self.file("a", trace(story()))
        b = self.file("b", trace(story(swapped=True)))
        self.assertIn("only in the order of independent steps", self.ebb(1, "trace", "diff", a, b)[0])

    def test_diff_of_a_prefix_ends_at_the_end(self):
        a = self.file("a", trace(story()[:-1]))
        b = self.file("b", trace(story()))
        self.assertIn("> (the end)", self.ebb(1, "trace", "diff", a, b)[0])

    def test_json_lines_have_the_eight_fields(self):
        path = self.file("good", trace(story()))
        events = [json.loads(l) for l in self.ebb(0, "trace", "export", "--format", "jsonl", path)[0].splitlines()]
        self.assertEqual(len(events), 24)
        fields = {"task_id", "region_id", "cancel_epoch", "cancel_phase", "cancel_kind", "decision_seq",
                  "host_turn_id", "microtask_batch_id"}
        for event in events:
            self.assertLessEqual(fields, set(event))
        acked = next(e for e in events if e["type"] == "cancel_acked")
        self.assertEqual((acked["task_id"], acked["cancel_phase"], acked["cancel_kind"], acked["cancel_epoch"]),
                         ("0x0000000100000001", "Cancelling", "USER", 1))
        self.assertEqual(next(e for e in events if e["type"] == "finalized")["status"], -1)
        told = next(e for e in events if e["type"] == "region_cancelled")
        self.assertEqual(told["text"], 'closed by the "operator and\n friends')

    def test_chrome_has_matching_slices(self):
        path, out = self.file("good", trace(story())), os.path.join(self.dir.name, "out.json")
        self.ebb(0, "trace", "export", "--format", "chrome", "-o", out, path)
        with open(out, encoding="utf-8") as f:
            raw = f.read()
        self.assertIn('"ts":1500000.123', raw)
        events = json.loads(raw)["traceEvents"]
        for category in ("task", "region"):
            begun = {e["id"] for e in events if e["ph"] == "b" and e["cat"] == category}
            ended = {e["id"] for e in events if e["ph"] == "e" and e["cat"] == category}
            self.assertEqual(begun - ended, {"0:100000001"} if category == "region" else set())
        self.assertTrue(any(e["ph"] == "i" and e["name"] == "cancel_acked" for e in events))

    def test_names_are_text_in_the_export_and_harmless_on_a_terminal(self):
        string, named, completed = 6, 7, [record(COMPLETED, 6, task=TASK, region=WORK)]
        for name, shown in (("Büro", "Büro"), ("\x1b[2J\u009b2J", "?[2J?"), ("\x7f", "?")):
            records = [record(TURN, task=1, region=1), record(OPENED, 1, region=ROOT),
                       record(OPENED, 1, region=WORK, other=ROOT), record(SPAWNED, 1, task=TASK, region=WORK),
                       record(string, value=1), text(name), record(named, value=1 << 22, task=TASK)]
            path = self.file("named", trace(records + completed, version=2))
            exported = json.loads(self.ebb(0, "trace", "export", "--format", "chrome", path)[0])["traceEvents"]
            tracks = [e["args"]["name"] for e in exported if e["name"] == "thread_name"]
            self.assertTrue(any(t.startswith(shown) for t in tracks), tracks)
            for verb in "show", "summary":
                out = self.ebb(0, "trace", verb, path)[0]
                self.assertTrue(all(c == "\n" or (c >= " " and not "\x7f" <= c <= "\x9f") for c in out), repr(out))

    def test_a_summary_ranks_all_drains_however_many_and_counts_all_events(self):
        """The last of 5,000 drains is the longest: of a unit in it, which is not asked to end itself."""
        records, now = [record(TURN, task=1, region=1), record(TIME, other=1), record(OPENED, 1, region=ROOT)], 1
        most = 5000
        for i in range(most):
            work, inner = ident(2, 2 * i + 1), ident(3, 2 * i + 1)
            task = ident(1, 2 * i + 1)
            records += [record(OPENED, 1, region=work, other=ROOT), record(OPENED, 1, region=inner, other=work, value=4),
                        record(SPAWNED, 1, task=task, region=inner), record(POLLED, 2, value=3, task=task, region=inner),
                        record(CLOSING, 2, region=work), record(DRAINING, 3, region=work)]
            now += 1_000_000 if i < most - 1 else 70_000_000
            records += [record(TIME, other=now), record(COMPLETED, 6, task=task, region=inner),
                        record(CLOSING, 2, region=inner), record(FINALIZING, 4, region=inner),
                        record(CLOSED, 5, region=inner), record(FINALIZING, 4, region=work), record(CLOSED, 5, region=work)]
        path = self.file("drains", trace(records))
        summed = json.loads(self.ebb(0, "trace", "summary", "--json", path)[0])
        self.assertEqual(summed["events"], len(records))
        drains = summed["drains"]
        self.assertEqual((len(drains), drains[0]["ns"], drains[1]["ns"]), (10, 70_000_000, 1_000_000))
        self.assertEqual([w["after_ns"] for w in drains[0]["waited_for"]], [70_000_000])
        self.assertTrue(drains[0]["region"].endswith("#0.2.%d" % (2 * most - 1)), drains[0])
        summed = json.loads(self.ebb(0, "trace", "summary", "--json", self.file("story", trace(story())))[0])
        self.assertEqual(summed["events"], len(story()))  # its texts too

    def test_a_wait_goes_on_after_a_poll_that_found_nothing(self):
        """A close wakes a task that waits for a future; it goes on waiting, and the summary says for what."""
        string, waiting, poll_ended, made, settled, awaited = 6, 49, 48, 80, 81, 85
        ms = 1_000_000

        def poll(at, *inside, end=1):
            return [record(TIME, other=at * ms), record(POLLED, 2, value=3, task=TASK, region=WORK), *inside,
                    record(poll_ended, value=end, task=TASK, other=at * ms)]
        begins = [record(made, task=TASK, region=WORK, other=7, value=2 << 22 | 3 << 12),
                  record(waiting, task=TASK, value=1 << 22), record(awaited, task=TASK, other=7)]
        records = [record(TURN, task=1, region=1), record(TIME, other=ms), record(OPENED, 1, region=ROOT),
                   record(OPENED, 1, region=WORK, other=ROOT),
                   record(string, value=1), text("future"), record(string, value=2), text("read"),
                   record(string, value=3), text("jobs.c:12"),
                   record(SPAWNED, 1, task=TASK, region=WORK), *poll(10, *begins), record(CLOSING, 2, region=WORK),
                   *poll(20), record(TIME, other=500 * ms), record(settled, other=7), *poll(500, end=0),
                   record(COMPLETED, 6, task=TASK, region=WORK), record(FINALIZING, 4, region=WORK),
                   record(CLOSED, 5, region=WORK)]
        path = self.file("wait", trace(records, version=2))
        waited, = json.loads(self.ebb(0, "trace", "summary", "--json", path)[0])["waited"]
        self.assertEqual((waited["ns"], waited["for"]), (480 * ms, "read begun at jobs.c:12"))

    def test_usage_errors_say_what_there_is(self):
        self.assertIn("trace", self.ebb(2, "nonsense")[1])
        self.assertIn("trace", self.ebb(0, "help")[0])
        self.assertIn("ebb-cancel-v2", self.ebb(0, "--version")[0])
        self.assertIn("show, verify, diff", self.ebb(2, "trace", "nonsense")[1])
        self.assertIn("usage", self.ebb(0, "trace", "--help")[0])
        self.ebb(2)
        self.ebb(2, "trace")
        self.ebb(2, "trace", "show")
        self.ebb(2, "trace", "diff", "one")
        self.ebb(2, "trace", "verify", "--wrong", "x")
        self.assertIn("No such file", self.ebb(2, "trace", "show", "/nonexistent/x")[1])
        self.assertIn("can't read", self.ebb(2, "trace", "show", self.dir.name)[1])
        good = self.file("good", trace(story()))
        self.ebb(2, "trace", "export", good)
        self.ebb(2, "trace", "export", "--format", "xml", good)
        self.ebb(2, "trace", "export", "--format", "jsonl", "-o", "/nonexistent/x", good)
        journal = self.file("journal", trace([], magic=b"EBBJRNL\0"))
        self.assertIn("is a journal", self.ebb(2, "trace", "show", journal)[1])


if __name__ == "__main__":
    EBB = sys.argv.pop(1)
    unittest.main()
