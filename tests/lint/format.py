#!/usr/bin/env python3
"""Every C++ source is formatted as .clang-format says (clang-format 14; other versions differ).  format.py [--fix]"""
import concurrent.futures, os, re, shutil, subprocess, sys
from common import ROOT, Report, cpp

tool = shutil.which("clang-format-14")
if tool is None:
    sys.exit("Error: no clang-format-14")
names = cpp()
chunks = [names[i:i + 16] for i in range(0, len(names), 16)]
mode = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror"]


def look(chunk):
    return subprocess.run([tool, *mode, *chunk], cwd=ROOT, capture_output=True, text=True).stderr


with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 2))) as pool:
    found = "".join(pool.map(look, chunks))
places = {}
for m in re.finditer(r"^([^\s:]+):(\d+):\d+: error", found, re.M):
    places.setdefault(m[1], m[2])
report = Report()
report.check("%d sources are formatted" % len(names), ("%s:%s: clang-format-14 -i %s" % (n, line, n) for n, line in places.items()))
report.end()
