"""ebb provider: a line a case and a count, what it does with URLs that lead nowhere.

usage: provider.py EBB
"""
import re
import subprocess
import sys

ebb = sys.argv[1]


def run(*args):
    return subprocess.run([ebb, "provider", *args], capture_output=True, text=True, timeout=120)


def check(what, found, expected):
    if found != expected:
        sys.exit("%s: %r, not %r" % (what, found, expected))


listed = re.findall(r"^(test_\w+)\n    \S", run("cases").stdout, re.MULTILINE)
assert len(listed) >= 200, len(listed)

whole = run("test", "lab:")
check("exit code", whole.returncode, 0)
lines = whole.stdout.splitlines()
check("last line", lines[-1], "%d passed, 0 failed" % len(listed))
check("cases", [line.split()[1] for line in lines[:-1]], listed)
assert all(line.startswith("ok ") for line in lines[:-1])

some = run("test", "lab:", "--match", "ack_work_item")
check("matched", some.stdout.splitlines()[-1], "3 passed, 0 failed")

none = run("test", "lab:", "--match", "no such")
check("no match", (none.returncode, none.stderr), (2, "ebb: no case has 'no such' in its name\n"))

bad = run("test", "mongo://me:secret@here/x")
check("bad scheme", (bad.returncode, bad.stderr), (2, "ebb: no provider has the scheme of 'mongo://me:***@here/x'\n"))
for args in [], ["test"], ["test", "lab:", "more"], ["test", "--often", "lab:"], ["quiz"]:
    wrong = run(*args)
    check("exit code of %r" % args, wrong.returncode, 2)
    assert "usage: ebb provider" in wrong.stderr, wrong.stderr
check("help", run("--help").returncode, 0)
