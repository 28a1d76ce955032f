#!/usr/bin/env python3
"""Words that must not stand in the tree, files that are too long, and what each source must have."""
import re
from common import CPP, ROOT, Report, cpp, text, tracked
import pathlib

SELF = "tests/lint/words.py"
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|stubs?|stubbed|placeholders?|for now|not implemented|unimplemented|not yet implemented|coming soon|lorem ipsum)\b", re.I)
# The wire has its own meaning of XXXX (a wrong magic), so XXX counts only as a word in a comment.
FOREIGN = re.compile(r"\.\./shared|(?<![\w./-])/(work|root|home|Users)/\w|https?://(?!127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0)[\w.-]*(proxy\.golang|pypi|npmjs|crates|deb\.debian|maven)", re.I)
AUTHOR = re.compile(r"@author|\bcopyright \(c\)|\b(Mon|Tue|Wed|Thu|Fri) \w{3} \d+ \d{4}", re.I)
TEXT = CPP | {".py", ".go", ".sh", ".md", ".toml", ".txt", ".json", ".cmake", ""}
LONG, TOO_LONG = 300, 600
DATA = ("tests/fixtures/v7/", "fuzz/corpus/")


def lines(names, pattern, but=None):
    for n in names:
        for number, line in enumerate(text(n).splitlines(), 1):
            m = pattern.search(line if but is None else but.sub("", line))
            if m:
                yield "%s:%d: `%s`" % (n, number, m[0].strip())


def header_comment(name):
    first = text(name).splitlines()[:1]
    if name.endswith(".cc") and (ROOT / (name[:-3] + ".h")).exists():
        return      # its header says it
    if not first or not first[0].startswith("//"):
        yield "%s: does not open with a comment that says what it is" % name
    if name.endswith(".h") and "#pragma once" not in text(name):
        yield "%s: no #pragma once" % name


def list_faults(name):
    """Lists of invariants (I1, I2 ... or L1, L2 ...): one item begins a line each, and its other lines are indented. A comment that
    was too long and was broken by the formatter loses that."""
    last = None     # letter and number of the item before; None outside a list
    for number, line in enumerate(text(name).splitlines(), 1):
        item = re.match(r"//  ([IL])(\d+) +\S", line)
        if item and item[2] == "1":
            last = (item[1], 1)
        elif last and item and item[1] == last[0]:
            if int(item[2]) != last[1] + 1:
                yield "%s:%d: %s%s after %s%d" % (name, number, item[1], item[2], *last)
            last = (item[1], int(item[2]))
        elif last and re.match(r"//  +\S", line):
            if not line.startswith("//     "):
                yield "%s:%d: neither an item nor indented below one" % (name, number)
        else:
            last = None
        if last and re.search(r"[.:;)] %s%d [A-Z`]" % (last[0], last[1] + 1), line):
            yield "%s:%d: %s%d stands behind another item" % (name, number, last[0], last[1] + 1)


files = [n for n in tracked() if pathlib.Path(n).suffix in TEXT and n != SELF and not n.startswith(DATA)]
code = [n for n in cpp() if not n.startswith("tests/bench/")]
report = Report()
report.check("no words of unfinished work", lines(files, UNFINISHED, re.compile(r'"Not Implemented"')))      # the reason phrase of status 501
report.check("the tree stands alone", lines(files, FOREIGN))
report.check("no authors, no history in files", lines(files, AUTHOR))
report.check("each source says what it is", (f for n in cpp("core", "io", "services", "sim", "ledger", "bench", "fuzz") for f in header_comment(n)))
report.check("each invariant of a list begins a line", (f for n in cpp() for f in list_faults(n)))
sizes = sorted(((text(n).count("\n"), n) for n in code), reverse=True)
for size, name in sizes:
    if size > LONG:
        print("note: %s has %d lines" % (name, size))
report.check("no source is longer than %d lines" % TOO_LONG, ("%s: %d lines" % (n, s) for s, n in sizes if s > TOO_LONG))
report.check("no tabs and no trailing blanks in sources", lines([n for n in code], re.compile(r"\t|[ \t]+$")))
report.end()
