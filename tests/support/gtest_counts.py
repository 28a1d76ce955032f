#!/usr/bin/env python3
"""Adds up what test programs wrote with GTEST_OUTPUT=json:DIR/.  gtest_counts.py DIR PROGRAM... : a program without a report counts as one failure."""
import json, pathlib, sys

directory, passed, failed = pathlib.Path(sys.argv[1]), 0, 0
for program in sys.argv[2:]:
    try:
        report = json.loads((directory / (pathlib.Path(program).name + ".json")).read_text())
    except (OSError, ValueError):
        print("FAIL %s left no report: it crashed or ran out of time" % program)
        failed += 1
        continue
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("failures"):
                failed += 1
                print("FAIL %s.%s" % (suite["name"], test["name"]))
            elif test.get("status") == "RUN":
                passed += 1
print("%d passed, %d failed" % (passed, failed))
sys.exit(1 if failed else 0)
