#!/usr/bin/env python3
"""An example in the lab, with its clients: lab.py LAB_STORIES STORY

Many schedules, the same with faults, and each action at every suspension point. A run that fails is replayed: its file
stands in the output.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SCHEDULES = "200"
# A forced service does not wait for the pool, and leaves its record: see ebb_service_run.
LEAKS = {"explore": "detect_leaks=1", "inject": "detect_leaks=0"}


def run(program, *arguments, where):
    return subprocess.run([program, *arguments], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=580, env={**os.environ, "ASAN_OPTIONS": LEAKS[arguments[0]]})


def main():
    program, story = str(Path(sys.argv[1]).resolve()), sys.argv[2]
    bad = 0
    with tempfile.TemporaryDirectory() as where:
        for verb, name, *options in (("explore", story, "--schedules", SCHEDULES),
                                     ("explore", story + "_faults", "--schedules", SCHEDULES),
                                     ("inject", story)):
            done = run(program, verb, name, *options, "--out", "case.lab", where=where)
            # An example may print too.
            said = [line for line in done.stdout.splitlines() if re.search(r"(schedules|runs) hold$", line)]
            held = done.returncode == 0 and len(said) == 1
            print(said[0] if held else done.stdout)
            if held:
                continue
            bad = 1
            case = Path(where) / "case.lab"
            print(case.read_text() if case.exists() else "no file was written")
    return bad


if __name__ == "__main__":
    sys.exit(main())
