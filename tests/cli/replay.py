#!/usr/bin/env python3
"""`ebb journal`: what the lab records replays to the same bytes, also by another compiler's build.

usage: replay.py EBB [OTHER_EBB...]

OTHER_EBB is used if it is there and newer than the sources it was built from.
"""
import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EBB, OTHERS = "", []
SEEDS = [1, 7]


def run(*args, code=0):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{args}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@functools.lru_cache
def builds():
    found = [EBB]
    for other in map(Path, OTHERS):
        sources = [f for d in ("base", "kernel", "sched", "cli", "include") for f in Path(d).rglob("*.*")]
        if other.exists() and other.stat().st_mtime > max(f.stat().st_mtime for f in sources):
            found.append(str(other))
    return found


def scenarios():
    return [line.split()[0] for line in run(EBB, "lab", "list").splitlines()]


def replays_to_the_same_bytes(where, scenario, seed):
    trace, journal, again = where / "trace", where / "journal", where / "again"
    for old in where.iterdir():
        old.unlink()
    run(EBB, "lab", "run", scenario, "--seed", seed, "--trace", trace, "--journal", journal)
    journals = sorted(where.glob("journal*"))
    assert journals, f"{scenario} has no journal"
    for one in journals:
        recorded = Path(str(one).replace("journal", "trace"))
        for build in builds():
            out = run(build, "journal", "replay", one, "--trace", again, "--compare", recorded)
            assert "byte for byte" in out, out
            assert again.read_bytes() == recorded.read_bytes(), f"{scenario} {seed} {one.name} {build}"
    return trace, journal


def same_events_in_every_build(where, scenario, seed):
    """Decisions must not depend on the order in which a compiler evaluates arguments. The line of a call that is longer
    than one is the first for GCC, the last for Clang."""
    traces = set()
    for build in builds():
        run(build, "lab", "run", scenario, "--seed", seed, "--trace", where / "trace")
        traces.add(re.sub(r"(\.c):\d+", r"\1", run(EBB, "trace", "show", where / "trace")))
    assert len(traces) == 1, f"{scenario} {seed}: the builds {builds()} differ"


def says_what_is_wrong(where):
    trace, journal = replays_to_the_same_bytes(where, "storm", 7)
    shown = run(EBB, "journal", "show", journal)
    assert " start  turn 1/1" in shown and " pump  polls " in shown and " spawn  region " in shown, shown
    whole = journal.read_bytes()
    cut = where / "cut"
    cut.write_bytes(whole[:-5])
    assert "EBB_ERR_TRUNCATED" in run(EBB, "journal", "replay", cut, code=1)
    assert "offset" in run(EBB, "journal", "show", cut, code=1)
    cut.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
    assert "EBB_ERR_CORRUPT" in run(EBB, "journal", "replay", cut, code=1)
    other = where / "other"
    run(EBB, "lab", "run", "storm", "--seed", 8, "--trace", other)
    assert "the trace differs" in run(EBB, "journal", "replay", journal, "--compare", other, code=1)
    assert "not a journal" in run(EBB, "journal", "replay", trace, code=2)
    run(EBB, "journal", "replay", journal, "--compare", journal, code=2)
    run(EBB, "journal", "replay", where / "nothing", code=2)
    run(EBB, "journal", "replay", code=2)
    run(EBB, "journal", "replay", journal, "--what", code=2)
    run(EBB, "journal", "what", code=2)
    assert "usage" in run(EBB, "journal", "--help")


def main():
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        for scenario in scenarios():
            for seed in SEEDS:
                replays_to_the_same_bytes(where, scenario, seed)
        says_what_is_wrong(where)
        for scenario in scenarios() if len(builds()) > 1 else []:
            for seed in range(100, 161):
                same_events_in_every_build(where, scenario, seed)
    print(f"replayed by {', '.join(builds())}")


if __name__ == "__main__":
    EBB, OTHERS = sys.argv[1], sys.argv[2:]
    main()
