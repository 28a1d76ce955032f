#!/usr/bin/env python3
"""What docs/operations/broker.md promises about the program: its table of log events, and the packages that the program needs."""
import re, sys
from common import ROOT, Report, cpp, text

sys.path.insert(0, str(ROOT / "tests" / "image"))
import dockerfile

PAGE = "docs/operations/broker.md"


def second_arguments(source):
    """Of every call `log(level, event, ...)` and `append(level, event, ...)` of the log: the text of `event`."""
    for m in re.finditer(r"\b(?:log|append|format_line)\(", source):
        arguments, depth, at, quoted = [""], 0, m.end(), False
        while at < len(source) and depth >= 0:
            c = source[at]
            if quoted and c == "\\":
                arguments[-1] += source[at:at + 2]
                at += 2
                continue
            quoted ^= c == '"'
            if not quoted:
                depth += (c in "([{") - (c in ")]}")
                if c == "," and depth == 0:
                    arguments.append("")
                    at += 1
                    continue
            arguments[-1] += c
            at += 1
        for first, second in zip(arguments, arguments[1:]):
            if "Level::" in first:
                yield second


def logged():
    """Event -> file that writes it."""
    found = {}
    for name in cpp("core", "services", "io"):
        if name.startswith(("services/rustqueued/", "core/", "io/real/")):
            source = re.sub(r"(?m)//[^\n\"]*$", "", text(name))
            for argument in second_arguments(source):
                for event in re.findall(r'"([a-z_]+)"', argument):
                    found[event] = name
    return found


def documented():
    section = text(PAGE).split("\n## Logs\n")[1].split("\n## ")[0]
    return {event for line in section.splitlines() if line.startswith("| `") for event in re.findall(r"`([a-z_]+)`", line.split("|")[1])}


report = Report()
events, rows = logged(), documented()
report.check("every log event stands in the table of %s" % PAGE, ("%s: %s" % (events[e], e) for e in sorted(events.keys() - rows)))
report.check("every event of that table is logged", sorted(rows - events.keys()) + ([] if len(events) > 20 else ["only %d events found" % len(events)]))
needed = set(dockerfile.packages(dockerfile.stages()[-1][2])) - {"curl"}
report.check("that page names the packages of the image", sorted(p for p in needed if not re.search(r"[ `]%s[ `]" % re.escape(p), text(PAGE))))
report.end()
