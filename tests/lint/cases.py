#!/usr/bin/env python3
"""Which numbered cases of the specification have a test that names them.  cases.py [--list]

cases.txt says which are needed. A case counts as named when its id stands in a C++, Python or Go source of tests/, sim/, fuzz/ or
ledger/, as letter and number with `-`, `_` or nothing between (leading zeros do not matter). Naming one is a promise that the test
fails when the case's required result does not hold.
"""
import pathlib, re, sys
from common import Report, text, tracked

SOURCES = {".cc", ".cpp", ".h", ".py", ".go"}


def needed():
    out = []
    for line in text("tests/lint/cases.txt").splitlines():
        line = line.split("#")[0].strip()
        if line:
            letter, numbers = line.split(":")
            for part in numbers.split():
                first, _, last = part.partition("-")
                out += [(letter, n) for n in range(int(first), int(last or first) + 1)]
    return out


def named():
    where = {}
    for n in tracked():
        if n.split("/")[0] in ("tests", "sim", "fuzz", "ledger") and pathlib.Path(n).suffix in SOURCES and not n.startswith("tests/lint/"):
            for m in re.finditer(r"(?<![A-Za-z0-9])([CSQBL])[-_]?0*([0-9]{1,3})(?![0-9A-Za-z])", text(n)):
                where.setdefault((m[1], int(m[2])), set()).add(n)
    return where


want, have = needed(), named()
if "--list" in sys.argv:
    for letter, number in want:
        print("%s-%02d  %s" % (letter, number, " ".join(sorted(have.get((letter, number), ["-"])))))
report = Report()
for letter in dict.fromkeys(l for l, _ in want):
    missing = [n for l, n in want if l == letter and (l, n) not in have]
    report.check("every needed case of series %s has a test" % letter, [" ".join("%s-%02d" % (letter, n) for n in missing)] if missing else [])
report.end()
