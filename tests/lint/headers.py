#!/usr/bin/env python3
"""Every header compiles alone.  headers.py BUILD_DIR

A header that its own .cc includes first was proven by the build; the others are compiled here. Objects live in BUILD_DIR/headers, and
unchanged headers cost nothing.
"""
import concurrent.futures, os, pathlib, re, shutil, subprocess, sys
from common import ROOT, Report, cpp, text

out = pathlib.Path(sys.argv[1]) / "headers"
out.mkdir(parents=True, exist_ok=True)
ccache = [shutil.which("ccache")] if shutil.which("ccache") else []
FLAGS = ["-std=c++20", "-O0", "-I" + str(ROOT), "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-DASIO_STANDALONE", "-DASIO_NO_DEPRECATED",
         "-DRQ_EXPENSIVE_CHECKS", '-DRQ_VERSION="0"', '-DRQ_SOURCE_DIR="."', '-DRQ_PROGRAM="."']


def fresh(obj, dep):
    """True when the object is newer than everything it was made of."""
    if not obj.exists() or not dep.exists():
        return False
    made = obj.stat().st_mtime
    names = dep.read_text().replace("\\\n", " ").split()[1:]
    try:
        return all(os.stat(n).st_mtime <= made for n in names)
    except OSError:
        return False


def proven_by_the_build(header):
    source = header[:-2] + ".cc"
    first = re.search(r'^\s*#\s*include\s*[<"]([^>"]+)', text(source), re.M) if (ROOT / source).exists() else None
    return first is not None and first[1] == header


def compile_alone(header):
    stem = header.replace("/", "__")[:-2]
    source, obj, dep = out / (stem + ".cc"), out / (stem + ".o"), out / (stem + ".d")
    wanted = '#include "%s"\n' % header
    if not source.exists() or source.read_text() != wanted:
        source.write_text(wanted)
    if fresh(obj, dep):
        return None
    done = subprocess.run([*ccache, "g++", *FLAGS, "-MMD", "-MF", str(dep), "-c", str(source), "-o", str(obj)], cwd=ROOT, capture_output=True, text=True)
    return None if done.returncode == 0 else "%s\n%s" % (header, "\n".join("        " + l for l in done.stderr.splitlines()[:6]))


report = Report()
headers = [n for n in cpp("core", "io", "sim", "ledger", "bench", "services", "tests", "fuzz") if n.endswith(".h")]
with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 2))) as pool:
    wrong = [w for w in pool.map(compile_alone, [h for h in headers if not proven_by_the_build(h)]) if w]
report.check("each of %d headers compiles alone" % len(headers), wrong)
report.end()
