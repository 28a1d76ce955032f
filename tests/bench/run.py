#!/usr/bin/env python3
"""Measures this Broker beside nsqd 1.3.0 and beside the floor: the same load generator, the same machine, the same run.

    run.py --server build/release/bin/rustqueued [--rounds 3] [--scale 1.0] [--only pub-16,...] [--out FILE]

Servers run one at a time, in turn A B B A, each with a fresh data directory on the same file system. Prints a table in Markdown: median
(lowest to highest). Everything is bounded in count and time and talks to loopback only. `floor` (floor.cpp) is the least that a
single-loop durable server can do and is no product; nsqd keeps messages in memory by default, so its figures are not durable.
"""
import argparse, json, os, pathlib, platform, shutil, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
import check

OUT = ROOT / "build" / "bench"
RUN_SECONDS = 120

# name, what, qload arguments, the key of the rate; fill: qload arguments run before (not measured). Counts are scaled by --scale.
WORK = [
    ("pub-16", "PUB, 16 producers, 1 KiB", ["pub", "--conns", "16", "--size", "1024", "--count", 60000], None),
    ("pub-1", "PUB, 1 producer, 1 KiB", ["pub", "--conns", "1", "--size", "1024", "--count", 8000], None),
    ("pub-64", "PUB, 64 producers, 100 B", ["pub", "--conns", "64", "--size", "100", "--count", 120000], None),
    ("mpub-64", "MPUB 64 x 1 KiB, 8 producers", ["mpub", "--conns", "8", "--size", "1024", "--batch", "64", "--count", 256000], None),
    ("sub", "consume with FIN, 4 consumers, RDY 256, 1 KiB", ["sub", "--channel", "c", "--conns", "4", "--rdy", "256", "--count", 150000],
     ["mpub", "--conns", "4", "--size", "1024", "--batch", "64", "--count", 150016]),
    ("e2e", "publish to delivery at 100/s", ["e2e", "--channel", "c", "--rate", "100", "--secs", "5", "--size", "1024"], None),
]


# Keys of qload's JSON object.
RATE, CPU, RSS = "per_second", "server_cpu_us_per_message", "peak_rss_kb"
ACK, DELIVERY = ("ack_p50_us", "ack_p99_us"), ("e2e_p50_us", "e2e_p99_us")


def run(argv, **more):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit("Error: %s\n%s" % (" ".join(map(str, argv)), done.stdout[-2000:]))


def build_programs(programs):
    OUT.mkdir(parents=True, exist_ok=True)
    for name, libraries in programs:
        program, source = OUT / name, HERE / (name + ".cpp")
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            run(["g++", "-O2", "-std=c++20", str(source), "-o", str(program), *libraries])


def build():
    build_programs([("qload", []), ("floor", ["-lisal", "-lpthread"])])
    env = dict(os.environ, GOFLAGS="-mod=readonly -buildvcs=false", GOTOOLCHAIN="local", GOBIN=str(OUT))
    if "HOME" not in env and "GOCACHE" not in env:
        env.update(GOCACHE=str(OUT / "go-cache"), GOPATH=str(OUT / "go"))
    run(["go", "install", "github.com/nsqio/nsq/apps/nsqd"], cwd=HERE / "nsqd", env=env)


class Process:
    """One server with a fresh directory; ended by its own id."""

    def __init__(self, kind, args, directory):
        self.tcp, http = check.free_port(None), check.free_port(None)
        os.makedirs(directory)
        if kind == "floor":
            argv = [str(OUT / "floor"), str(self.tcp), os.path.join(directory, "log"), "durable"]
        elif kind == "nsqd":
            argv = [str(OUT / "nsqd"), "-data-path", directory, "-tcp-address", "127.0.0.1:%d" % self.tcp, "-http-address", "127.0.0.1:%d" % http]
        else:
            config = os.path.join(directory, "rustqueued.toml")
            with open(config, "w") as f:
                f.write(check.toml(check.merge(check.BASE_CONFIG, {
                    "queue": {"bootstrap_retention_seconds": 90},
                    "storage": {"data_path": os.path.join(directory, "data")},
                    "network": {"tcp_address": "127.0.0.1:%d" % self.tcp, "http_address": "127.0.0.1:%d" % http}})))
            argv = [os.path.abspath(args.server), "--config", config]
        self.log = open(os.path.join(directory, "output"), "wb")
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 20
        while True:
            try:
                with check.Nsq(self.tcp):
                    return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    sys.exit("Error: %s does not start" % kind)
                time.sleep(0.02)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.log.close()


def measure(kind, work, args, directory):
    name, _, load, fill = work
    server = Process(kind, args, directory)

    def qload(arguments):
        scaled = [str(max(1000, int(a * args.scale) // 64 * 64)) if isinstance(a, int) else a for a in arguments]
        argv = [str(OUT / "qload"), *scaled, "--port", str(server.tcp), "--topic", "bench", "--pid", str(server.process.pid)]
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=RUN_SECONDS)
            return json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError) as e:
            return {"error": str(e)[:100]}
    try:
        if fill and kind != "floor":
            filled = qload(fill)
            if "error" in filled:
                return filled
        return qload(load)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def spread(values, digits=0):
    if not values:
        return "-"
    form = "{:,.%df}" % digits
    low, middle, high = (form.format(x) for x in (min(values), statistics.median(values), max(values)))
    return middle if low == high else "%s (%s to %s)" % (middle, low, high)


def table(results, works, kinds):
    out = ["| work | server | messages/s | CPU us a message | ack p50 / p99 ms | delivery p50 / p99 ms | peak RSS MiB |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, what, _, _ in works:
        for kind in kinds:
            if (name, kind) not in results:
                continue
            rows = [r for r in results.get((name, kind), []) if "error" not in r]
            bad = [r for r in results.get((name, kind), []) if "error" in r]

            def column(key, divide):
                return [r[key] / divide for r in rows if key in r]

            def pair(keys):
                low, high = column(keys[0], 1000.0), column(keys[1], 1000.0)
                return "-" if not low else "%s / %s" % (spread(low, 2), spread(high, 2))
            rate = spread(column(RATE, 1)) if rows else "failed: %s" % bad[0]["error"] if bad else "-"
            lost = sum(max(0, r.get("missing", 0)) for r in rows)
            out.append("| %s | %s | %s | %s | %s | %s | %s |" % (
                what, kind, rate + (", %d missing" % lost if lost else ""), spread(column(CPU, 1), 1), pair(ACK), pair(DELIVERY),
                spread(column(RSS, 1024.0))))
    return "\n".join(out)


def machine(directory):
    with open("/proc/cpuinfo") as f:
        model = next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), platform.machine())
    with open("/proc/mounts") as f:
        mounts = [(point, kind) for _, point, kind, *_ in (l.split() for l in f) if (os.path.abspath(directory) + "/").startswith(point.rstrip("/") + "/")]
    kind = max(mounts, key=lambda m: len(m[0]))[1] if mounts else "an unknown file system"
    return "%d x %s, Linux %s, data on %s" % (os.cpu_count() or 1, model, platform.release().split("-")[0], kind)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=str(ROOT / "build" / "release" / "bin" / "rustqueued"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--servers", default="rustqueued,nsqd,floor")
    parser.add_argument("--out", help="also write the table here")
    parser.add_argument("--dir", default=str(OUT), help="where data directories are made")
    args = parser.parse_args()
    build()
    kinds = args.servers.split(",")
    works = [w for w in WORK if not args.only or w[0] in args.only.split(",")]
    results, directory = {}, tempfile.mkdtemp(prefix="run-", dir=args.dir)
    try:
        for number in range(args.rounds):
            for work in works:
                for kind in kinds if number % 2 == 0 else kinds[::-1]:
                    if kind == "floor" and work[0] == "e2e":
                        continue        # the floor has no path from a producer to a consumer
                    result = measure(kind, work, args, os.path.join(directory, "%s-%s-%d" % (work[0], kind, number)))
                    results.setdefault((work[0], kind), []).append(result)
                    print("round %d %s %s: %s" % (number + 1, work[0], kind, json.dumps(result)), file=sys.stderr, flush=True)
        text = "%s; %d rounds\n\n%s\n" % (machine(directory), args.rounds, table(results, works, kinds))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(text)
    if args.out:
        pathlib.Path(args.out).write_text(text)


if __name__ == "__main__":
    main()
