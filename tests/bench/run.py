#!/usr/bin/env python3
"""Measures this Broker beside nsqd 1.3.0 and beside the floor: the same load generator, the same machine, the same run.

    run.py --server build/release/bin/rustqueued [--rounds 3] [--scale 1.0] [--only pub-16,...] [--out FILE]

Servers run one at a time, in turn A B C, C B A, each with a fresh data directory on the same file system. Prints two tables in Markdown,
median (lowest to highest) over the rounds: what each server did, and this Broker's figures as ratios to the others' in the same round. Everything is
bounded in count and time and talks to loopback only. Exit status 1 when a run failed or messages were missing. `floor` (floor.cpp) is the least that a single-loop durable server can do and is
no product; nsqd keeps messages in memory by default, so its figures are not durable. Works named relaxed run this Broker with
`publish_ack_mode = "nsq_relaxed"` and the floor without waiting for its barriers, which is the promise that nsqd makes.
"""
import argparse, json, os, pathlib, platform, resource, shutil, statistics, subprocess, sys, tempfile, time, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "fixtures")]
import check, host

OUT = ROOT / "build" / "bench"
RUN_SECONDS = 600

# What qload does; integers among its arguments are counts and are scaled by --scale. `fill` runs before and is not measured.
# `channels` are made before anything is published, since nsqd's later ones start empty.
class Work:
    def __init__(self, name, what, load, fill=None, channels=(), relaxed=False, floor=True):
        self.name, self.what, self.load, self.fill = name, what, load, fill
        self.channels, self.relaxed, self.floor = channels, relaxed, floor


def pub(conns, size, count):
    return ["pub", "--conns", str(conns), "--size", str(size), "--count", count]


def mpub(conns, batch, size, count):
    return ["mpub", "--conns", str(conns), "--size", str(size), "--batch", str(batch), "--count", count]


def paced(mode, rate, seconds):
    return [mode, "--channel", "c", "--rate", str(rate), "--secs", str(seconds), "--size", "1024"]


WORK = [
    Work("pub-16", "PUB, 16 producers, 1 KiB", pub(16, 1024, 60000)),
    Work("pub-1", "PUB, 1 producer, 1 KiB", pub(1, 1024, 8000)),
    Work("pub-64", "PUB, 64 producers, 100 B", pub(64, 100, 120000)),
    Work("mpub-1k", "MPUB 64 x 1 KiB, 8 producers", mpub(8, 64, 1024, 256000)),
    Work("mpub-100", "MPUB 200 x 100 B, 8 producers", mpub(8, 200, 100, 1600000)),
    Work("pub-16-relaxed", "PUB, 16 producers, 1 KiB, relaxed", pub(16, 1024, 120000), relaxed=True),
    Work("pub-64-relaxed", "PUB, 64 producers, 100 B, relaxed", pub(64, 100, 200000), relaxed=True),
    Work("sub", "consume with FIN, 4 consumers, RDY 256, 1 KiB", ["sub", "--channel", "c", "--conns", "4", "--rdy", "256", "--count", 300000],
         fill=mpub(4, 64, 1024, 300032), channels=["c"]),
    Work("fan", "10 Channels, each a consumer, RDY 256, 1 KiB", ["fan", "--channel", "c", "--channels", "10", "--rdy", "256", "--count", 64000],
         fill=mpub(4, 64, 1024, 64000), channels=["c%d" % i for i in range(10)]),
    Work("e2e", "publish to delivery at 100/s", paced("e2e", 100, 5), floor=False),  # the floor has no path from a producer to a consumer
    Work("pace", "PUB at 100/s, 1 producer, 1 KiB", paced("pace", 100, 5)),
    Work("e2e-1000", "publish to delivery at 1,000/s, one connection", paced("e2e", 1000, 5), floor=False),
]


# Keys of qload's JSON object, and two of ours.
RATE, CPU, RSS, EMPTY, LOAD_CPU = "per_second", "server_cpu_us_per_message", "peak_rss_kb", "empty_rss_kb", "load_cpu_us_per_message"
ACK, DELIVERY = ("ack_p50_us", "ack_p99_us"), ("e2e_p50_us", "e2e_p99_us")


def run(argv, **more):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit("Error: %s\n%s" % (" ".join(map(str, argv)), done.stdout[-2000:]))


def build_programs(programs):
    OUT.mkdir(parents=True, exist_ok=True)
    for name, libraries in programs:
        program, source = OUT / name, HERE / (name + ".cpp")
        newest = max(path.stat().st_mtime for path in [source, *HERE.glob(name + "_*.hpp")])
        if not program.exists() or program.stat().st_mtime < newest:
            run(["g++", "-O2", "-std=c++20", str(source), "-o", str(program), *libraries])


def build(kinds):
    build_programs([("qload", []), ("floor", ["-lisal", "-lpthread", "-lssl", "-lcrypto", "-lz", "-lsnappy"])])
    if "nsqd" not in kinds:
        return
    env = dict(os.environ, GOFLAGS="-mod=readonly -buildvcs=false", GOTOOLCHAIN="local", GOBIN=str(OUT))
    if "HOME" not in env and "GOCACHE" not in env:
        env.update(GOCACHE=str(OUT / "go-cache"), GOPATH=str(OUT / "go"))
    run(["go", "install", "github.com/nsqio/nsq/apps/nsqd"], cwd=HERE / "nsqd", env=env)


class Process:
    """One server with a fresh directory; ended by its own id."""

    def __init__(self, kind, args, directory, relaxed=False, config=None, flags=(), wrap=lambda argv: argv):
        self.tcp, self.http = check.free_port(None), check.free_port(None)
        http = self.http
        os.makedirs(directory)
        if kind == "floor":
            argv = [str(OUT / "floor"), str(self.tcp), os.path.join(directory, "log"), "relaxed" if relaxed else "durable"]
        elif kind == "nsqd":
            argv = [str(OUT / "nsqd"), "-data-path", directory, "-tcp-address", "127.0.0.1:%d" % self.tcp, "-http-address", "127.0.0.1:%d" % http, *flags]
        else:
            path = os.path.join(directory, "rustqueued.toml")
            with open(path, "w") as f:
                f.write(check.toml(check.merge(check.merge(check.BASE_CONFIG, {
                    "queue": {"bootstrap_retention_seconds": 90, "publish_ack_mode": "nsq_relaxed" if relaxed else "durable"},
                    "storage": {"data_path": os.path.join(directory, "data")},
                    "network": {"tcp_address": "127.0.0.1:%d" % self.tcp, "http_address": "127.0.0.1:%d" % http}}), config)))
            argv = [os.path.abspath(args.server), "--config", path]
        self.log = open(os.path.join(directory, "output"), "wb")
        self.process = subprocess.Popen(wrap(argv), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            self.wait_open(kind)
        except BaseException:  # also Ctrl-C
            self.stop()
            raise

    def wait_open(self, kind):
        end = time.monotonic() + check.START_SECONDS
        while True:
            try:
                with check.Nsq(self.tcp):
                    return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit("Error: %s does not start: %s" % (kind, self.tail()))
                time.sleep(0.02)

    def tail(self):
        """The last that it said."""
        with open(self.log.name, errors="replace") as f:
            return " | ".join(line.strip() for line in f.read()[-2000:].splitlines()[-3:])

    def rss_kb(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return next(int(l.split()[1]) for l in f if l.startswith("VmRSS:"))

    def create(self, channels):
        for path in ["topic/create?topic=bench"] + ["channel/create?topic=bench&channel=" + c for c in channels]:
            request = urllib.request.Request("http://127.0.0.1:%d/%s" % (self.http, path), data=b"", method="POST")
            urllib.request.urlopen(request, timeout=check.ANSWER_SECONDS).close()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        check.release(self.tcp, self.http)
        self.log.close()


def scaled(arguments, scale):
    """A work's arguments for qload: its counts are numbers."""
    return [str(max(1000, int(a * scale) // 64 * 64)) if isinstance(a, int) else a for a in arguments]


def qload(arguments, server, scale):
    """What the load generator says of one run against a server."""
    argv = [str(OUT / "qload"), *scaled(arguments, scale), "--port", str(server.tcp), "--topic", "bench", "--pid", str(server.process.pid)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=RUN_SECONDS)
    return json.loads(done.stdout)


def measure(kind, work, args, directory):
    server = Process(kind, args, directory, work.relaxed)

    def load(arguments):
        try:
            return qload(arguments, server, args.scale)
        except (subprocess.TimeoutExpired, ValueError) as e:
            return {"error": str(e)[:100]}
    try:
        empty = server.rss_kb()
        if work.fill and kind != "floor":
            server.create(work.channels)
            filled = load(work.fill)
            if "error" in filled:
                return filled
        before = resource.getrusage(resource.RUSAGE_CHILDREN)  # the server still runs, so what is added is qload's
        result = load(work.load)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return dict(result, **{EMPTY: empty, LOAD_CPU: round(spent * 1e6 / max(1, result.get("messages", 1)), 2)})
    except OSError as e:
        return {"error": str(e)[:100]}
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def spread(values, digits=0):
    if not values:
        return "-"
    form = "{:,.%df}" % digits
    low, middle, high = (form.format(x) for x in (min(values), statistics.median(values), max(values)))
    return middle if low == high else "%s (%s to %s)" % (middle, low, high)


def good(rows):
    return [r for r in rows if "error" not in r]


def lines(head, rows):
    return "\n".join("| %s |" % " | ".join(r) for r in [head, ["---"] * len(head)] + rows)


def figures(results, works, kinds):
    """What each server did."""
    def row(work, kind):
        rows = good(results[(work.name, kind)])
        errors = [r["error"] for r in results[(work.name, kind)] if "error" in r]

        def column(key, divide):
            return [r[key] / divide for r in rows if key in r]

        def pair(keys):
            low, high = column(keys[0], 1000.0), column(keys[1], 1000.0)
            return "-" if not low else "%s / %s" % (spread(low, 2), spread(high, 2))
        lost = sum(max(0, r.get("missing", 0)) for r in rows)
        rate = spread(column(RATE, 1)) if rows else "failed: %s" % errors[0]
        title = {"nsqd": "nsqd (not durable)", "rustqueued": "rustqueued (nsq_relaxed)", "floor": "floor (relaxed)"}.get(kind) if work.relaxed else None
        return [work.what, title or {"nsqd": "nsqd (not durable)"}.get(kind, kind), rate + (", %d missing" % lost if lost else ""), spread(column(CPU, 1), 1), spread(column(LOAD_CPU, 1), 1),
                pair(ACK), pair(DELIVERY), spread(column(RSS, 1024.0)), spread([(r[RSS] - r[EMPTY]) / 1024.0 for r in rows if RSS in r])]
    head = ["work", "server", "messages/s", "CPU us a message", "load generator's", "ack p50 / p99 ms", "delivery p50 / p99 ms", "peak RSS MiB", "above empty MiB"]
    return lines(head, [row(w, k) for w in works for k in kinds if (w.name, k) in results])


def ratios(results, works, others):
    """This Broker's figures over another's of the same round: rate (more is better), then CPU, latency and memory (less is better)."""
    def column(work, other, key):
        pairs = zip(results.get((work.name, "rustqueued"), []), results.get((work.name, other), []))
        return spread([a[key] / b[key] for a, b in pairs if a.get(key) and b.get(key)], 2)
    keys = [("rate", RATE), ("CPU a message", CPU), ("ack p50", ACK[0]), ("ack p99", ACK[1]), ("delivery p50", DELIVERY[0]), ("peak RSS", RSS)]
    rows = [[w.what, o] + [column(w, o, key) for _, key in keys] for w in works for o in others if (w.name, o) in results]
    return lines(["rustqueued / other, work", "other"] + [k for k, _ in keys], rows)


def file_system(directory):
    with open("/proc/mounts") as f:
        mount = host.mount_of(os.path.realpath(directory), host.mounts_of(f.read()))
    return mount[2] if mount else "an unknown file system"


def machine(directory):
    with open("/proc/cpuinfo") as f:
        model = next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), platform.machine())
    return "%d x %s, Linux %s, data on %s" % (os.cpu_count() or 1, model, platform.release().split("-")[0], file_system(directory))


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
    kinds = args.servers.split(",")
    only = [n for n in args.only.split(",") if n]
    unknown = (set(only) - {w.name for w in WORK}) | (set(kinds) - {"rustqueued", "nsqd", "floor"})
    if unknown:
        parser.error("unknown: %s; works are %s" % (", ".join(sorted(unknown)), ", ".join(w.name for w in WORK)))
    build(kinds)
    works = [w for w in WORK if not only or w.name in only]
    results, directory = {}, tempfile.mkdtemp(prefix="run-", dir=args.dir)
    try:
        for number in range(args.rounds):
            for work in works:
                for kind in kinds if number % 2 == 0 else kinds[::-1]:
                    if kind == "floor" and not work.floor:
                        continue
                    result = measure(kind, work, args, os.path.join(directory, "%s-%s-%d" % (work.name, kind, number)))
                    results.setdefault((work.name, kind), []).append(result)
                    print("round %d %s %s: %s" % (number + 1, work.name, kind, json.dumps(result)), file=sys.stderr, flush=True)
        tables = [figures(results, works, kinds)]
        if "rustqueued" in kinds and len(kinds) > 1:
            tables.append(ratios(results, works, [k for k in kinds if k != "rustqueued"]))
        text = "%s; %d rounds, scale %g\n\n%s\n" % (machine(directory), args.rounds, args.scale, "\n\n".join(tables))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(text)
    if args.out:
        pathlib.Path(args.out).write_text(text)
    bad = ["%s %s" % key for key, rows in results.items() if any("error" in r or r.get("missing", 0) > 0 for r in rows)]
    if bad:
        sys.exit("Error: failed or lost messages: %s" % ", ".join(bad))


if __name__ == "__main__":
    main()
