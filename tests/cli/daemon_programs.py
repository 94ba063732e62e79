#!/usr/bin/env python3
"""`ebb serve --programs`: programs of typestate machines in the daemon, from outside.

usage: daemon_programs.py EBB EXAMPLES [CLASS[.TEST]...]
"""
import shutil
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import daemon
from phases import without_phases  # noqa: E402, by the path of daemon.py

OK, USAGE = 0, 2
EXAMPLES = Path()

SHOP = """
protocol Shop {
    msg Pay = { cents: i64 }
    msg Paid = { total: i64 }
    msg Slowly
    msg Break
    msg Say = { text: string }
    req Customer -> Order: Pay => Paid
    req Customer -> Order: Slowly => Paid
    req Customer -> Order: Break => Paid
    role Customer { state Only; }
    role Order {
        state Open {
            on Pay { effects: [reply Paid] }
            on Slowly -> Waits;
            on Break { effects: [reply Paid] }
            on Say@System;
        }
        state Waits;
    }
}
typestate Order : Shop::Order {
    fields { total: i64 }
    fn new() -> Open { Open { total: 0 } }
    state Open {
        on Pay(p) { self.total += p.cents; reply(Paid { total: self.total }); }
        on Slowly(_s, cap: ReplyCap<Paid>) -> Waits { Waits { cap } }
        on Break { assert(false, "broken"); reply(Paid { total: 0 }); }
        on Say(s) { print(s.text); }
    }
    state Waits {
        fields { cap: ReplyCap<Paid> }
        after 1s -> Open { reply(self.cap, Paid { total: self.total }); Open }
    }
}
fn main() { let o = Order::spawn(); start(o); print("begun"); }
"""


class WithPrograms(daemon.WithDaemons):
    def setUp(self):
        super().setUp()
        self.folder = Path(self.where) / "programs"
        self.folder.mkdir()

    def put(self, name, text):
        (self.folder / name).write_text(text)

    def serve(self, *args):
        return self.daemon("--programs", "programs", "--store", "lab:", *args)

    def stop(self, d):
        """What it prints may have been read with its first lines already, which communicate() does not know."""
        d.process.terminate()
        said = d.process.stdout.read()
        errors = without_phases(d.process.stderr.read())
        return d.process.wait(timeout=daemon.PATIENCE_S), said, errors

    def tell(self, d, name, message, fields=None, **more):
        body = dict(more) if fields is None else dict(more, fields=fields)
        return d.ask("POST", "/api/v1/programs/%s/%s" % (name, message), body)


class Runs(WithPrograms):
    def test_each_program_of_the_folder_takes_what_system_may_send(self):
        self.put("shop.ebb", SHOP)
        shutil.copy(EXAMPLES / "auth.ebb", self.folder)
        self.put("note.txt", "no program")
        self.put("numbers.ebb", "pub fn two() -> i64 { return 2; }\n")
        d = self.serve()
        said = d.ask("GET", "/api/v1/programs")[1]["programs"]
        self.assertEqual([p["name"] for p in said], ["auth", "shop"])
        self.assertEqual(self.tell(d, "shop", "Pay", {"cents": 5}), (200, {"reply": "Paid", "fields": {"total": 5}}))
        self.assertEqual(self.tell(d, "shop", "Pay", {"cents": "5"})[1]["error"]["where"], "/fields/cents")
        self.assertEqual(self.tell(d, "shop", "Say", {"text": "a\x1b[31mb\nc"})[0], 202)
        self.assertEqual(self.tell(d, "auth", "IncomingRequest", {"user": "alice"})[0], 202)
        self.assertEqual(self.tell(d, "auth", "AuthorizeReq", {"user": "alice"})[0], 404)
        self.until("both are done", lambda: b"ebb_machine_queued 0\n" in d.ask("GET", "/metrics")[1])
        code, out, errors = self.stop(d)
        self.assertEqual((code, errors), (OK, ""))
        self.assertEqual(sorted(out.splitlines()),
                         ["auth: alice may", "auth: alice may", "shop: a?[31mb?c", "shop: begun"])

    def test_a_fault_says_its_code_and_place(self):
        self.put("shop.ebb", SHOP)
        d = self.serve()
        status, said = self.tell(d, "shop", "Break")
        self.assertEqual((status, said["error"]["fault"]), (500, "ASSERT"))
        self.assertRegex(said["error"]["where"], r"^programs/shop\.ebb:28:\d+$")
        self.assertEqual(self.tell(d, "shop", "Pay", {"cents": 1})[0], 410)
        code, _, errors = self.stop(d)
        self.assertEqual(code, OK)
        self.assertRegex(errors, r"^programs/shop\.ebb:28:\d+: Order faulted on Break: an assertion does not hold: "
                                 r"broken\n$")

    def test_a_request_that_was_accepted_is_answered_when_it_stops(self):
        self.put("shop.ebb", SHOP)
        d = self.serve()
        answers = []
        asking = threading.Thread(target=lambda: answers.append(self.tell(d, "shop", "Slowly")))
        asking.start()
        self.until("it waits", lambda: d.ask("GET", "/api/v1/machines?state=Waits")[1]["machines"])
        code, _, errors = self.stop(d)
        asking.join(daemon.PATIENCE_S)
        self.assertEqual((code, errors), (OK, ""))
        self.assertEqual(answers, [(200, {"reply": "Paid", "fields": {"total": 0}})])


class Refuses(WithPrograms):
    def bad(self, *texts):
        r = subprocess.run([daemon.EBB, "serve", "--listen", "127.0.0.1:0", "--store", "lab:", "--programs", "programs"],
                           cwd=self.where, text=True, capture_output=True, timeout=daemon.PATIENCE_S)
        self.assertEqual((r.returncode, r.stdout if "begun" not in texts else ""), (USAGE, ""), r.stderr)
        for text in texts:
            self.assertIn(text, r.stderr)
        return r

    def test_a_program_that_does_not_compile(self):
        self.put("one.ebb", "fn main() { let x: i64 = true; }\n")
        self.put("two.ebb", "fn main( {\n")
        self.bad("E0301", "programs/one.ebb:1", "programs/two.ebb:1")
        self.assertFalse((Path(self.where) / ".ebb").exists())

    def test_a_folder_without_programs(self):
        self.bad("ebb: programs has no program: no file *.ebb with a main")
        self.put("module.ebb", "pub fn two() -> i64 { return 2; }\n")
        self.bad("no file *.ebb with a main")
        shutil.rmtree(self.folder)
        self.bad("ebb: can't read the directory programs: No such file or directory")

    def test_more_programs_than_a_runtime_has_room_for(self):
        for i in range(64):
            self.put("p%02d.ebb" % i, "fn main() {}\n")
        self.bad("ebb: programs has 64 programs; a daemon runs at most 63")
        (self.folder / "p63.ebb").unlink()
        d = self.serve()
        self.assertEqual(len(d.ask("GET", "/api/v1/programs")[1]["programs"]), 63)
        self.assertEqual(self.stop(d), (OK, "", ""))

    def test_a_main_that_fails(self):
        self.put("shop.ebb", "fn main() { assert(1 == 2, \"no\"); }\n")
        self.bad("programs/shop.ebb:1:13: main faulted: an assertion does not hold: no")


if __name__ == "__main__":
    daemon.EBB = str(Path(sys.argv[1]).resolve())
    EXAMPLES = Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
