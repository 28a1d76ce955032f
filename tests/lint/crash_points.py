#!/usr/bin/env python3
"""Only the worker of tests/kill has crash points (D-43).  crash_points.py build/dev [build/release ...]"""
import pathlib, sys
from common import Report

MARK, WORKER = b"RQ_CRASH_AT", "rustqueued-crash"
programs = [p for top in sys.argv[1:] for p in sorted(pathlib.Path(top, "bin").glob("*")) if p.is_file()]
report = Report()
report.check("no program but the worker has crash points", (str(p) for p in programs if p.name != WORKER and MARK in p.read_bytes()))
report.check("the worker has them", (str(p) for p in programs if p.name == WORKER and MARK not in p.read_bytes()))
report.end()
