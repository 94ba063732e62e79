#!/usr/bin/env python3
"""The long tests: the same as the short ones, with other seeds, for EBB_SOAK_SECONDS (60).

usage: soak.py model TEST_MODEL
       soak.py explore EBB
       soak.py replay EBB [OTHER_EBB...]
       soak.py workflows TEST_WORKFLOW_RANDOM

Seeds come from a fixed range, one after the other: who has more time gets further. What fails names
the command that repeats it.
"""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
import replay  # noqa: E402

MODEL_OPS = 1000000
SCHEDULES = 5000
PROGRAMS = 1000
FIRST_SEED = 1000


def check(args, env=None):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, **(env or {})})
    if done.returncode == 0:
        return
    again = " ".join([*(f"{k}={v}" for k, v in (env or {}).items()), *args])
    sys.exit(f"{done.stdout}exit {done.returncode}; again: {again}")


def model(seed, program):
    check([program], {"EBB_MODEL_OPS": str(MODEL_OPS), "EBB_MODEL_SEED": str(seed)})
    return f"{MODEL_OPS} operations"


def explore(seed, ebb):
    first = FIRST_SEED + (seed - FIRST_SEED) * SCHEDULES
    check([ebb, "lab", "explore", "storm", "--seed", str(first), "--schedules", str(SCHEDULES),
           "--out", os.path.join(os.path.dirname(ebb), "soak.lab")])
    return f"{SCHEDULES} schedules"


def same_when_replayed(seed, ebb, *others):
    replay.EBB, replay.OTHERS = ebb, others
    with tempfile.TemporaryDirectory() as name:
        for scenario in replay.scenarios():
            replay.replays_to_the_same_bytes(Path(name), scenario, seed)
            replay.same_events_in_every_build(Path(name), scenario, seed)
    return f"all scenarios by {len(replay.builds())} builds"


def workflows(seed, program):
    first = FIRST_SEED + (seed - FIRST_SEED) * PROGRAMS
    check([program, str(first), str(first + PROGRAMS - 1)])
    return f"{PROGRAMS} random programs"


def main():
    what = {"model": model, "explore": explore, "replay": same_when_replayed, "workflows": workflows}[sys.argv[1]]
    seconds = float(os.environ.get("EBB_SOAK_SECONDS", "60"))
    end, rounds, each = time.monotonic() + seconds, 0, ""
    while time.monotonic() < end:
        each = what(FIRST_SEED + rounds, *sys.argv[2:])
        rounds += 1
    print(f"{rounds} rounds of {each} in {seconds:.0f} s")


if __name__ == "__main__":
    main()
