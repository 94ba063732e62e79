"""What a service records, from outside: record.py PATH-OF-EBB PATH-OF-HTTP_LOOPS_SERVER PATH-OF-EXAMPLE-SERVICE."""
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

EBB = SERVER = SERVICE = ""
RECEIVED, CLOSE = 72, 3
PATHS = ("/where", "/p/slow?ms=3", "/missing", "/where")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def records_of(data):
    """The records of a trace; each block is 32 bytes, then its records."""
    at = 64
    while at < len(data):
        n = struct.unpack_from("<I", data, at + 4)[0]
        for i in range(n):
            yield data[at + 32 + i * 32:at + 64 + i * 32]
        at += 32 + n * 32


def rewritten(data, change):
    out, seq, part = [data[:64]], 1, []

    def flush():
        covered = struct.pack("<IQ", len(part), seq)
        body = b"".join(part)
        out.append(b"EBLK" + covered + struct.pack("<I", crc32c(covered + body)) + bytes(12) + body)

    for record in records_of(data):
        part.append(change(record))
        if len(part) == 127:
            flush()
            seq += 127
            part = []
    if part:
        flush()
    return b"".join(out)


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.trace, cls.journal = cls.path("run.trace"), cls.path("run.journal")
        cls.server = subprocess.Popen([SERVER, "--loops", "2", "--trace", cls.trace, "--journal", cls.journal],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.server.stdout.close)
        cls.addClassCleanup(cls.server.stderr.close)
        port = int(cls.server.stdout.readline().split()[1])
        for _ in range(8):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            for path in PATHS:
                client.request("GET", path)
                client.getresponse().read()
            client.close()
        left = socket.create_connection(("127.0.0.1", port))
        left.sendall(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(0.2)
        left.close()
        time.sleep(0.2)
        cls.server.send_signal(signal.SIGTERM)
        cls.err = cls.server.communicate(timeout=60)[1]
        cls.files = [cls.trace, cls.trace + ".1"]

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir.name, name)

    def ebb(self, *args, code=0):
        p = subprocess.run([EBB, *args], capture_output=True, text=True, timeout=120)
        self.assertEqual(p.returncode, code, p.stdout + p.stderr)
        return p.stdout + p.stderr

    def test_the_service_ends_in_order(self):
        self.assertEqual(self.server.returncode, 0, self.err)

    def test_every_rule_holds_in_each_file_and_between_them(self):
        out = self.ebb("trace", "verify", "--strict", "--quiescent", *self.files)
        self.assertIn("2 runtimes, ok, every rule between them holds", out)

    def test_the_journals_replay_to_the_traces(self):
        for number in ("", ".1"):
            out = self.ebb("journal", "replay", self.journal + number, "--compare", self.trace + number)
            self.assertIn("the trace is the same", out)

    def test_the_traces_have_connections_and_exchanges(self):
        shown = "".join(self.ebb("trace", "show", f) for f in self.files)
        self.assertEqual(shown.count("exchange_begun"), 8 * len(PATHS) + 1)
        self.assertEqual(shown.count("exchange_ended"), 8 * len(PATHS) + 1)
        self.assertEqual(shown.count("connection_opened"), shown.count("connection_closed"))
        self.assertIn("GET /p/slow", shown)
        self.assertIn("connection of a client", shown)

    def test_an_export_has_named_tracks_slices_and_flows(self):
        out = self.path("out.json")
        self.ebb("trace", "export", "--format", "chrome", "-o", out, *self.files)
        with open(out, encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        names = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
        slices = [e for e in events if e["ph"] == "X"]
        self.assertTrue(slices)
        for e in slices:
            self.assertIn((e["pid"], e["tid"]), names)
        self.assertTrue(any(e["cat"] == "poll" and e["dur"] > 0 for e in slices))
        self.assertTrue(any(e["cat"] == "wait" for e in slices))
        end = {}
        for e in sorted(slices, key=lambda e: e["ts"]):
            track = e["pid"], e["tid"]
            if e["tid"] != 0: # a task does one thing at a time
                self.assertGreaterEqual(e["ts"], end.get(track, 0))
                end[track] = e["ts"] + e["dur"]
        asyncs = {kind: [e for e in events if e.get("cat") == kind] for kind in
                  ("region", "operation", "connection", "exchange")}
        for kind, found in asyncs.items():
            begun = sum(e["ph"] == "b" for e in found)
            self.assertTrue(begun > 0 and begun == sum(e["ph"] == "e" for e in found), kind)
        self.assertIn("GET /p/slow", {e["name"] for e in asyncs["exchange"]})
        starts = {e["id"] for e in events if e["ph"] == "s"}
        ends = {e["id"] for e in events if e["ph"] == "f"}
        self.assertTrue(ends)
        self.assertEqual(ends - starts, set())
        self.assertTrue(any(e["ph"] == "f" and e["cat"] == "message" for e in events))

    def test_a_summary_says_who_ran_who_waited_and_what_drains_waited_for(self):
        sums = json.loads(self.ebb("trace", "summary", "--json", *self.files))
        self.assertEqual(sums["runtimes"], 2)
        self.assertEqual(sums["counts"]["exchange_begun"], 8 * len(PATHS) + 1)
        self.assertTrue(sums["ran"][0]["ns"] >= sums["ran"][-1]["ns"] > 0)
        self.assertTrue(all(w["for"] for w in sums["waited"]))
        self.assertTrue(any(d["waited_for"] for d in sums["drains"]))
        text = self.ebb("trace", "summary", *self.files)
        for part in ("Ran longest", "Waited longest", "What drains waited for"):
            self.assertIn(part, text)

    def test_files_that_can_t_be_of_one_run_are_refused(self):
        self.assertIn("are of the same runtime",
                      self.ebb("trace", "verify", "--strict", self.trace, self.trace, code=1))
        with open(self.trace + ".1", "rb") as f:
            data = f.read()
        stamps = [r for r in records_of(data) if r[0] == RECEIVED and r[31] != 0]
        self.assertTrue(stamps)
        sent = max(struct.unpack_from("<Q", r, 24)[0] for r in stamps)

        def late(record):
            other = struct.unpack_from("<Q", record, 24)[0]
            if record[0] != RECEIVED or other != sent:
                return record
            return record[:24] + struct.pack("<Q", other >> 56 << 56 | 1 << 40)

        def early(record):
            other = struct.unpack_from("<Q", record, 24)[0]
            if record[0] != RECEIVED or other != sent:
                return record
            return record[:4] + struct.pack("<I", CLOSE) + record[8:24] + struct.pack("<Q", other >> 56 << 56 | 2)

        for change, text in ((late, "a message came before its cause"), (early, ", but nothing was ")):
            with open(self.path("doctored"), "wb") as f:
                f.write(rewritten(data, change))
            out = self.ebb("trace", "verify", "--strict", self.trace, self.path("doctored"), code=1)
            self.assertIn(text, out)

    def test_a_file_that_can_t_be_opened_is_an_error(self):
        p = subprocess.run([SERVER, "--trace", self.path("no/such/place")], capture_output=True, text=True, timeout=60)
        self.assertEqual((p.returncode, p.stderr.strip()), (1, "ENOENT"))

    def test_a_trace_and_a_journal_in_one_file_are_an_error(self):
        one = self.path("one")
        p = subprocess.run([SERVER, "--trace", one, "--journal", one], capture_output=True, text=True, timeout=60)
        self.assertEqual((p.returncode, p.stderr.strip()), (1, "EBB_ERR_INVALID"))
        self.assertFalse(os.path.exists(one))

    def test_a_file_that_something_else_records_to_is_an_error_and_stays_as_it_is(self):
        trace = self.path("taken")
        first = subprocess.Popen([SERVER, "--trace", trace], stdout=subprocess.PIPE, text=True)
        self.addCleanup(first.stdout.close)
        self.addCleanup(first.kill)
        self.assertIn("port", first.stdout.readline())
        for args in (["--trace", trace], ["--trace", self.path("other"), "--journal", trace],
                     ["--trace", self.path("two"), "--journal", os.path.join(self.dir.name, ".", "two")]):
            p = subprocess.run([SERVER, *args], capture_output=True, text=True, timeout=20)
            self.assertEqual((p.returncode, p.stderr.strip()), (1, "EBUSY"))
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(60), 0)
        self.ebb("trace", "verify", "--strict", "--quiescent", trace)

    def test_a_disk_without_space_is_reported_and_does_not_stop_the_service(self):
        server = subprocess.Popen([SERVER, "--trace", "/dev/full"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("port", server.stdout.readline())
        server.send_signal(signal.SIGTERM)
        err = server.communicate(timeout=60)[1]
        self.assertEqual((server.returncode, err.strip()), (0, "recording: ENOSPC"))
        service = subprocess.Popen([SERVICE, "--port", "0", "--trace", "/dev/full"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        service.stdout.readline()
        service.send_signal(signal.SIGTERM)
        self.assertIn("the trace or the journal is not whole: no space left", service.communicate(timeout=60)[1])


class UnderLoad(unittest.TestCase):
    """The example's service with many clients, of which some break off, stopped while work is in flight."""

    def talk(self, port, n):
        for i in range(n):
            client = socket.create_connection(("127.0.0.1", port), timeout=60)
            with client, client.makefile("rb") as answers:
                for _ in range(5):
                    client.sendall(b"work 1\n")
                    self.assertTrue(answers.readline())
                if i % 3 == 0:
                    client.sendall(b"work 500\n")

    def test_its_trace_keeps_every_rule_and_its_journal_replays(self):
        with tempfile.TemporaryDirectory() as place:
            trace, journal = os.path.join(place, "run.trace"), os.path.join(place, "run.journal")
            p = subprocess.Popen([SERVICE, "--port", "0", "--operator", "0", "--trace", trace, "--journal", journal],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            operators, port = (int(p.stdout.readline().split()[-1]) for _ in range(2))
            clients = [threading.Thread(target=self.talk, args=(port, 20)) for _ in range(8)]
            for c in clients:
                c.start()
            for _ in range(5):
                asked = http.client.HTTPConnection("127.0.0.1", operators, timeout=60)
                asked.request("GET", "/explain")
                asked.getresponse().read()
                asked.close()
            for c in clients:
                c.join()
            left = socket.create_connection(("127.0.0.1", port))
            left.sendall(b"work 300\n")
            time.sleep(0.1)
            p.send_signal(signal.SIGTERM)
            out, err = p.communicate(timeout=60)
            left.close()
            self.assertEqual(p.returncode, 0, out + err)
            for args, said in ((["trace", "verify", "--strict", "--quiescent", trace], "every rule holds"),
                               (["journal", "replay", journal, "--compare", trace], "the trace is the same")):
                done = subprocess.run([EBB, *args], capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(said, done.stdout)
            done = subprocess.run([EBB, "trace", "summary", "--json", trace], capture_output=True, text=True, timeout=120)
            sums = json.loads(done.stdout)
            self.assertGreater(sums["counts"]["task_polled"], 160 * 5)
            self.assertEqual(sums["counts"]["operation_begun"], sums["counts"]["operation_ended"])
            self.assertEqual(sums["counts"]["connection_opened"], sums["counts"]["connection_closed"])
            root = [d for d in sums["drains"] if "root" in d["region"]]
            self.assertTrue(root and root[0]["waited_for"], sums["drains"])


class Killed(unittest.TestCase):
    def sizes(self, *paths):
        return [os.path.getsize(p) for p in paths]

    def test_the_files_of_a_quiet_service_have_all_that_it_did(self):
        with tempfile.TemporaryDirectory() as place:
            trace, journal = os.path.join(place, "run.trace"), os.path.join(place, "run.journal")
            p = subprocess.Popen([SERVER, "--trace", trace, "--journal", journal], stdout=subprocess.PIPE, text=True)
            client = http.client.HTTPConnection("127.0.0.1", int(p.stdout.readline().split()[1]), timeout=20)
            client.request("GET", "/missing")
            client.getresponse().read()
            until, sizes = time.monotonic() + 20, None
            while time.monotonic() < until and (sizes != self.sizes(trace, journal) or sizes[1] <= 64):
                sizes = self.sizes(trace, journal)
                time.sleep(2.5) # what is not handed over in a second never is: nothing else happens
            self.assertEqual(sizes, self.sizes(trace, journal))
            p.kill()
            p.wait()
            p.stdout.close()
            client.close()
            for args, said in ((["trace", "show", trace], "exchange_ended"),
                               (["journal", "replay", journal, "--compare", trace], "the trace is the same")):
                done = subprocess.run([EBB, *args], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(said, done.stdout)

    def test_the_file_of_a_killed_service_can_be_read_to_its_last_block(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "run.trace")
            p = subprocess.Popen([SERVICE, "--port", "0", "--trace", path], stdout=subprocess.PIPE, text=True)
            port = int(p.stdout.readline().split()[-1])
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(b"work 1\n")
            until = time.monotonic() + 20
            while os.path.getsize(path) < 4096 and time.monotonic() < until:
                socket.create_connection(("127.0.0.1", port)).close()
            p.kill()
            p.wait()
            out = subprocess.run([EBB, "trace", "verify", "--strict", path], capture_output=True, text=True, timeout=60)
            self.assertEqual(out.returncode, 0, out.stderr)


if __name__ == "__main__":
    EBB, SERVER, SERVICE = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
