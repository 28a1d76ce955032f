#!/usr/bin/env python3
"""What network threads take off the loop: CPU of each kind of thread a message, for values of `network.io_threads`.

    io_threads.py --server build/release/bin/rustqueued [--rounds 3] [--threads 0,1,2] [--only pub-64,...] [--other PROGRAM]

The works and the load generator are those of run.py; modes take turns within a round, each on a fresh data directory. `loop` is the thread that runs
the Broker: what it takes a message is the rate that one Broker cannot exceed, however many cores there are. `network` is the sum over the network threads,
`files` that over the workers. --other measures another build with sockets on the loop beside it. Figures of CPU hold beside other work, rates do not.
"""
import argparse, glob, json, os, shutil, statistics, sys, tempfile

import run

KINDS = ["loop", "network", "files"]


def cpu_ns(pid):
    """CPU of a process so far by kind of thread, in ns."""
    out = dict.fromkeys(KINDS, 0)
    for task in glob.glob("/proc/%d/task/*" % pid):
        try:
            with open(task + "/comm") as f:
                name = f.read()
            with open(task + "/schedstat") as f:
                spent = int(f.read().split()[0])
        except OSError:
            continue
        kind = "loop" if int(os.path.basename(task)) == pid else "network" if name.startswith("rq-net") else "files"
        out[kind] += spent
    return out


def load(arguments, server, scale):
    before = cpu_ns(server.process.pid)
    result = run.qload(arguments, server, scale)
    after = cpu_ns(server.process.pid)
    if "error" in result:
        sys.exit("Error: %s" % result["error"])
    given = run.scaled(arguments, scale)
    count = int(given[given.index("--count") + 1])
    return {k: (after[k] - before[k]) / 1000 / count for k in KINDS} | {"rate": result[run.RATE]}


def measure(mode, work, args, directory):
    program, threads = mode
    os.environ.pop("RUSTQUEUE_IO_THREADS", None)
    if threads is not None:
        os.environ["RUSTQUEUE_IO_THREADS"] = str(threads)
    server = run.Process("rustqueued", argparse.Namespace(server=program), directory, work.relaxed)
    try:
        if work.fill:
            server.create(work.channels)
            load(work.fill, server, args.scale)
        return load(work.load, server, args.scale)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=str(run.ROOT / "build" / "release" / "bin" / "rustqueued"))
    parser.add_argument("--other", help="a build without network.io_threads, measured as `other`")
    parser.add_argument("--threads", default="0,1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="pub-64,pub-64-relaxed,mpub-1k,sub")
    parser.add_argument("--dir", default=str(run.OUT), help="where data directories are made")
    args = parser.parse_args()
    unknown = set(args.only.split(",")) - {w.name for w in run.WORK}
    if unknown:
        parser.error("unknown: %s" % ", ".join(sorted(unknown)))
    run.build(["rustqueued"])
    modes = [("other", (args.other, None))] if args.other else []
    modes += [(t, (args.server, int(t))) for t in args.threads.split(",")]
    works = [w for w in run.WORK if w.name in args.only.split(",")]
    results, directory = {}, tempfile.mkdtemp(prefix="run-", dir=args.dir)
    try:
        for number in range(args.rounds):
            for work in works:
                for name, mode in modes if number % 2 == 0 else modes[::-1]:
                    result = measure(mode, work, args, os.path.join(directory, "data"))
                    results.setdefault((work.name, name), []).append(result)
                    print("round %d %s %s: %s" % (number + 1, work.name, name, json.dumps(result)), file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)

    def row(work, name):
        rows = results[(work.name, name)]
        total = [sum(r[k] for k in KINDS) for r in rows]
        ceiling = 1e6 / statistics.median(r["loop"] for r in rows)
        return [work.what, str(name)] + [run.spread([r[k] for r in rows], 2) for k in KINDS] + [run.spread(total, 2), "{:,.0f}".format(ceiling), run.spread([r["rate"] for r in rows])]
    head = ["work", "io_threads"] + ["%s us" % k for k in KINDS] + ["all us", "1 s / loop", "messages/s here"]
    print("%s; %d rounds, scale %g\n" % (run.machine(args.dir), args.rounds, args.scale))
    print(run.lines(head, [row(w, name) for w in works for name, _ in modes]))


if __name__ == "__main__":
    main()
