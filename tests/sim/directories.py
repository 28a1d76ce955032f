#!/usr/bin/env python3
"""What seeds leave on the simulator's disks, read by a decoder that shares nothing with the Broker (tests/fixtures/v7decode.py).

    directories.py --program build/dev/bin/rustqueue-sim [--seeds 1..40]

Two moments a seed: in the middle of the faults, as a SIGKILL there leaves it, and at the end. No writer rule is broken, nothing would be
refused. Flipped bits are switched off, they are no writer's doing. One line per seed, a last line `N passed, N failed`.
"""
import argparse, os, pathlib, shutil, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fixtures"))
import v7decode

parser = argparse.ArgumentParser()
parser.add_argument("--program", required=True)
parser.add_argument("--seeds", default="1..40")
args = parser.parse_args()
top = tempfile.mkdtemp(prefix="rustqueue-directories-")
passed = failed = 0
try:
    done = subprocess.run([args.program, "--seeds", args.seeds, "--set", "rot_ms=0", "--export", top], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        failed += 1
        print("FAIL the run: %s" % done.stdout.decode(errors="replace")[-2000:])
    for name in sorted(os.listdir(top)):
        found = v7decode.decode(os.path.join(top, name, "data"), None, None, messages=False)
        wrong = found["violations"] + found["refusals"]
        passed, failed = passed + (not wrong), failed + bool(wrong)
        if wrong:
            print("FAIL %s: %s" % (name, wrong[:5]))
    print("ok   %d directories without a finding" % passed)
finally:
    shutil.rmtree(top, ignore_errors=True)
print("%d passed, %d failed" % (passed, failed))
sys.exit(1 if failed else 0)
