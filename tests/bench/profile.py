#!/usr/bin/env python3
"""Where the server's CPU goes, by work: system calls by name, this program's own code, libraries.

    profile.py --server build/release/bin/rustqueued [--only sub,fan,...] [--servers rustqueued,nsqd,floor] [--scale 1.0] [--out FILE]

The works are those of run.py. The server runs under `perf record` while the load runs; each sample counts for the system call that it is in, or for the code
of the program, or for a library, or for the kernel outside of calls (interrupts, page faults). Shares are multiplied by the CPU that qload measured, which
gives microseconds a message. The profiler itself takes some per cent. Shares hold beside other work; rates are not printed.
"""
import argparse, collections, os, pathlib, re, shutil, signal, subprocess, sys, tempfile, time

import run

SYSCALL = re.compile(r"^(?:__x64_sys_(\w+)|do_(preadv|writev))$")  # the latter two have no frame of their own
SHOWN = 0.02  # of the CPU; smaller parts are summed up
SAME = {"sendto": "send", "recvfrom": "receive", "read": "receive", "write": "send", "preadv": "read a file", "preadv2": "read a file", "pread64": "read a file", "writev": "write a file",
        "pwrite64": "write a file", "fdatasync": "sync a file", "fsync": "sync a file", "epoll_wait": "wait for sockets", "epoll_pwait": "wait for sockets",
        "futex": "hand over between threads"}


def part_of(frames):
    """Frames of one sample, innermost first, each (symbol, object)."""
    for symbol, _ in frames:
        call = SYSCALL.search(symbol)
        if call:
            name = call.group(1) or call.group(2)
            return SAME.get(name, name)
    dso = frames[0][1] if frames else ""
    if "kernel" in dso or dso.startswith("[") or not dso:
        return "kernel outside of calls"
    if "/lib" in dso or ".so" in dso:
        return "libraries"
    return "the program's code"


def parts(data):
    script = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym,dso"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    counts = collections.Counter()
    for sample in script.stdout.split("\n\n"):
        frames = []
        for line in sample.strip().splitlines():
            found = re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)$", line)
            if found:
                frames.append((found.group(1), found.group(2)))
        if frames:
            counts[part_of(frames)] += 1
    return counts


def profile(kind, work, args, directory):
    server = run.Process(kind, args, directory, work.relaxed)
    data = directory + ".perf"
    try:
        if work.fill and kind != "floor":
            server.create(work.channels)
            run.qload(work.fill, server, args.scale)
        recorder = subprocess.Popen(["perf", "record", "-q", "-F", "4999", "-g", "-o", data, "-p", str(server.process.pid)], stderr=subprocess.DEVNULL)
        time.sleep(0.5)  # perf says nothing when it is ready; what it misses of the load's begin is not counted
        try:
            result = run.qload(work.load, server, args.scale)
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.wait(60)
        counts = parts(data)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)
    total = sum(counts.values())
    if total == 0:
        sys.exit("Error: perf recorded nothing; it needs the right to profile (kernel.perf_event_paranoid)")
    shares = sorted(((n / total, name) for name, n in counts.items()), reverse=True)
    small = sum(s for s, _ in shares if s < SHOWN)
    return result[run.CPU], [(s, n) for s, n in shares if s >= SHOWN] + ([(small, "the rest")] if small else [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=str(run.ROOT / "build" / "release" / "bin" / "rustqueued"))
    parser.add_argument("--only", default="mpub-1k,pub-64,sub,fan")
    parser.add_argument("--servers", default="rustqueued")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--out", help="also write the table here")
    args = parser.parse_args()
    if shutil.which("perf") is None:
        sys.exit("Error: needs perf (Debian package linux-perf)")
    only, kinds = args.only.split(","), args.servers.split(",")
    unknown = (set(only) - {w.name for w in run.WORK}) | (set(kinds) - {"rustqueued", "nsqd", "floor"})
    if unknown:
        parser.error("unknown: %s; works are %s" % (", ".join(sorted(unknown)), ", ".join(w.name for w in run.WORK)))
    run.build(kinds)
    directory, rows = tempfile.mkdtemp(prefix="profile-", dir=str(run.OUT)), []
    try:
        for work in [w for w in run.WORK if w.name in only]:
            for kind in kinds:
                cpu, shares = profile(kind, work, args, os.path.join(directory, "%s-%s" % (work.name, kind)))
                rows.append([work.what, kind, "%.2f" % cpu, ", ".join("%s %.2f (%.0f %%)" % (name, cpu * share, 100 * share) for share, name in shares)])
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    text = run.lines(["work", "server", "CPU us a message", "of which"], rows)
    print(text)
    if args.out:
        pathlib.Path(args.out).write_text(text + "\n")


if __name__ == "__main__":
    main()
