"""The trace of one request is one connected picture: connected.py PATH-OF-EBB PATH-OF-CONNECTED."""
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

EBB = PROGRAM = ""
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Service:
    def __init__(self, test, name, *args):
        self.trace = os.path.join(test.dir.name, name)
        self.process = subprocess.Popen([PROGRAM, self.trace, *args], stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.kill)
        self.port = self.process.stdout.readline().strip()

    def get(self, path):
        request = urllib.request.Request("http://127.0.0.1:%s%s" % (self.port, path),
                                         headers={"traceparent": "00-%s-%s-01" % (TRACE, SPAN)})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


class Picture:
    """Slices, and the arrows between them, of an export."""

    def __init__(self, events):
        self.names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
                      if e["ph"] == "M" and e["name"] == "thread_name"}
        self.lanes = collections.defaultdict(list)
        for e in events:
            if e["ph"] == "X":
                self.lanes[e["pid"], e["tid"]].append(e)
        ends = collections.defaultdict(lambda: ([], []))
        for e in events:
            if e["ph"] in "sf":
                ends[e["cat"], e["id"]][e["ph"] == "f"].append(e)
        self.next = collections.defaultdict(set)
        self.loose = []
        for key, (starts, finishes) in ends.items():
            for s in starts:
                for f in finishes:
                    a, b = self.around(s), self.around(f)
                    if a is None or b is None:
                        self.loose.append((s, f))
                    else:
                        self.next[id(a)].add(id(b))
        self.by_id = {id(e): e for lane in self.lanes.values() for e in lane}
        # What runs on a lane goes on in its later slices.
        for lane in self.lanes.values():
            lane.sort(key=lambda e: e["ts"])
            for a, b in zip(lane, lane[1:]):
                if a["tid"] != 0 and a["tid"] < 1 << 45:
                    self.next[id(a)].add(id(b))

    def around(self, end):
        """The innermost slice that an arrow binds to."""
        found = [e for e in self.lanes[end["pid"], end["tid"]]
                 if e["ts"] - 1e-6 <= end["ts"] <= e["ts"] + e["dur"] + 2e-3]
        return min(found, key=lambda e: e["dur"]) if found else None

    def find(self, category, name="", pid=None):
        return [e for lane in self.lanes.values() for e in lane
                if e["cat"] == category and name in e["name"] and pid in (None, e["pid"])]

    def reach(self, start):
        """All slices that follow from one, by arrows and lanes."""
        seen, todo = {id(start)}, [id(start)]
        while todo:
            for after in self.next[todo.pop()]:
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        return [self.by_id[i] for i in seen]


class Connected(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def export(self, *files):
        out = subprocess.run([EBB, "trace", "export", "--format", "chrome", *files], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        return json.loads(out.stdout)["traceEvents"]

    def kinds(self, slices):
        return {e["cat"] for e in slices}

    def test_one_process(self):
        service = Service(self, "a.trace")
        self.assertEqual(service.get("/order"), 200)
        self.assertEqual(service.stop(), 0)
        checked = subprocess.run([EBB, "trace", "verify", "--strict", service.trace], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        picture = Picture(self.export(service.trace))
        (request,) = picture.find("request", "GET /order")
        self.assertEqual(request["args"]["trace"], TRACE)
        reached = picture.reach(request)
        self.assertLessEqual({"request", "poll", "turn", "activity", "machine"}, self.kinds(reached))
        for kind in ("turn", "activity"):
            for e in picture.find(kind):
                self.assertEqual(e["args"]["trace"], TRACE)
                self.assertIn(e, reached)
        self.assertIn("instance order-7", picture.names.values())
        self.assertIn("activity pack", picture.names.values())
        # Nothing but the request leads to the order: without its arrow the machine is out of reach.
        dispatch = [e for e in reached if e["cat"] == "machine"]
        self.assertTrue(dispatch)

    def test_without_a_context_nothing_leads_from_the_request_to_the_order(self):
        service = Service(self, "a.trace")
        with urllib.request.urlopen("http://127.0.0.1:%s/order" % service.port, timeout=60) as answer:
            self.assertEqual(answer.status, 200)
        self.assertEqual(service.stop(), 0)
        picture = Picture(self.export(service.trace))
        self.assertEqual(picture.find("request"), [])
        self.assertTrue(picture.find("turn"))
        self.assertTrue(all("args" not in e for e in picture.find("turn")))

    def test_two_processes(self):
        back = Service(self, "back.trace")
        front = Service(self, "front.trace", back.port)
        self.assertEqual(front.get("/front"), 200)
        self.assertEqual(front.stop(), 0)
        self.assertEqual(back.stop(), 0)
        picture = Picture(self.export(front.trace, back.trace))
        (request,) = picture.find("request", "GET /front")
        (asked,) = picture.find("request", "GET /order")
        self.assertNotEqual(request["pid"], asked["pid"])
        reached = picture.reach(request)
        self.assertIn(asked, reached)
        there = [e for e in reached if e["pid"] == asked["pid"]]
        self.assertLessEqual({"request", "turn", "activity", "machine"}, self.kinds(there))


if __name__ == "__main__":
    EBB, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
