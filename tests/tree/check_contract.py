#!/usr/bin/env python3
"""Every rule that the contract was made from has a ruling and a test that exists.

usage: check_contract.py ROOT NAMES

NAMES is a file with the names of all tests, one a line; CMake writes it to BUILD/tests/names.txt.

tests/contract_ids.txt has the id of each rule, one a line; lines that begin with # are comments.
tests/contract.tsv has the columns id, source, ruling, where, test. A ruling is "kept", "overridden" or "deferred";
`where` is a heading of a page, as docs/contract.md#task, and for what is overridden or deferred one that says so, with
"overridden" or "otherwise", or "deferred" in it. The tests, separated by blanks, show how it is; of what is deferred,
until then:

    fixture:ID            fixtures/cancel/ID.json
    ctest:NAME            a test that CMake registers
    LAYER/FILE.c:FUNCTION a test function of tests/LAYER/FILE.c
    FILE.test.js:ID       tests in web/ebb-web/test whose names begin with "ID: "
"""
import collections
import functools
import re
import sys
from pathlib import Path

COLUMNS = ["id", "source", "ruling", "where", "test"]


@functools.cache
def read(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


def rule_ids(root):
    return [line for line in read(root / "tests" / "contract_ids.txt").split("\n") if line and line[0] != "#"]


@functools.cache
def anchors(text):
    """The headings of a page, as links name them."""
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
            for heading in re.findall(r"^#+ +(.+)$", text, re.MULTILINE)}


@functools.cache
def words(text):
    """How often each word stands in a text."""
    return collections.Counter(re.findall(r"\w+", text))


def lacks(root, test, names):
    """Why a test is not there; None if it is."""
    kind, _, name = test.partition(":")
    if kind == "fixture":
        return None if (root / "fixtures" / "cancel" / (name + ".json")).exists() else "no such fixture"
    if kind == "ctest":
        return None if name in names else "no such test"
    if kind.endswith(".test.js"):
        text = read(root / "web" / "ebb-web" / "test" / kind)
        return None if re.search(r"\b(?:test|it)\(\s*['\"`]%s: " % re.escape(name), text) else "no such test"
    if not re.fullmatch(r"\w+/\w+\.c", kind):
        return "expected fixture:, ctest:, LAYER/NAME.c: or NAME.test.js:"
    text = read(root / "tests" / kind)
    if not text:
        return "no such file"
    uses = words(text)[name]
    if uses == 0 or not re.search(r"\b%s\(void \*\*" % re.escape(name), text):
        return "no such function"
    return None if uses >= 2 else "the function is never registered"


def check_row(root, row, names):
    if len(row) != len(COLUMNS):
        yield "%d columns, expected %s" % (len(row), ", ".join(COLUMNS))
        return
    _, source, ruling, where, tests = row
    if not source:
        yield "no source"
    if ruling not in ("kept", "overridden", "deferred"):
        yield "ruling '%s', expected kept, overridden or deferred" % ruling
    page, _, anchor = where.partition("#")
    if anchor not in anchors(read(root / page)):
        yield "where: '%s' has no heading '%s'" % (page, anchor)
    elif ruling == "overridden" and not re.search("overridden|otherwise", anchor):
        yield "overridden, but '%s' is no heading that says so" % where
    elif ruling == "deferred" and "deferred" not in anchor:
        yield "deferred, but '%s' is no heading that says so" % where
    if not tests:
        yield "no test"
    for test in tests.split():
        reason = lacks(root, test, names)
        if reason:
            yield "%s: %s" % (test, reason)


def problems(root, names):
    lines = read(root / "tests" / "contract.tsv").splitlines()
    if not lines or lines[0].split("\t") != COLUMNS:
        yield "tests/contract.tsv:1: expected the columns " + ", ".join(COLUMNS)
        return
    ids, seen = rule_ids(root), {}
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield "tests/contract_ids.txt: %s stands there twice" % name
    for number, line in enumerate(lines[1:], 2):
        row = line.split("\t")
        place = "tests/contract.tsv:%d: %s: " % (number, row[0])
        if row[0] in seen:
            yield place + "a second row, the first is in line %d" % seen[row[0]]
        elif row[0] not in ids:
            yield place + "not a rule that is known here"
        seen.setdefault(row[0], number)
        for problem in check_row(root, row, names):
            yield place + problem
    for missing in (name for name in ids if name not in seen):
        yield "tests/contract.tsv: no row for " + missing


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: check_contract.py ROOT NAMES")
    root, names = Path(sys.argv[1]), set(read(Path(sys.argv[2])).split())
    found = list(problems(root, names))
    for problem in found:
        print(problem)
    if not found:
        print("%d rules, each with a ruling and a test" % len(rule_ids(root)))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
