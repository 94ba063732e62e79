#!/usr/bin/env python3
"""Every test that version 0.1 had is still there, under a name that tests/renamed.tsv has.

usage: check_renamed.py ROOT NAMES

NAMES is a file with the names of all tests, one a line; CMake writes it to BUILD/tests/names.txt. The table has the
columns old and new. A test that is split has a row for each part.
"""
import sys
from pathlib import Path

OLD_TESTS = 285  # of version 0.1: `ctest -N`


def problems(table, names):
    if not table or table[0] != ["old", "new"]:
        yield "tests/renamed.tsv:1: expected the columns old, new"
        return
    seen = set()
    for number, row in enumerate(table[1:], 2):
        place = "tests/renamed.tsv:%d: " % number
        if len(row) != 2:
            yield place + "%d columns, expected old, new" % len(row)
        elif tuple(row) in seen:
            yield place + "%s, %s stands there twice" % tuple(row)
        elif row[1] not in names:
            yield place + "%s is now %s, and there is no such test" % tuple(row)
        seen.add(tuple(row))
    old = len({row[0] for row in seen})
    if old != OLD_TESTS:
        yield "tests/renamed.tsv: %d old names, expected %d" % (old, OLD_TESTS)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: check_renamed.py ROOT NAMES")
    lines = (Path(sys.argv[1]) / "tests" / "renamed.tsv").read_text(encoding="utf-8").splitlines()
    found = list(problems([line.split("\t") for line in lines],
                          set(Path(sys.argv[2]).read_text(encoding="utf-8").split())))
    print("\n".join(found) if found else "%d tests of version 0.1, each has a new name" % OLD_TESTS)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
