#!/usr/bin/env python3
"""Measures two builds of rustqueued in pairs and has rustqueue-qualify judge them (page 60 section 6.3).

    qualify.py --baseline BIN [--candidate BIN] [--calibration-only] [--pairs 10] [--calibration-pairs 2] [--scenarios raw_write,...] [--out FILE]

Odd pairs run the baseline first, even pairs the candidate; every run has a fresh data directory, and both builds the same rustqueue-bench. First comes a
calibration, the baseline against itself: where its own runs differ by more than --spread (max / min - 1 of throughput, then of p99), the machine cannot
tell builds apart, and the comparison is refused. The measurements go to --out, the verdict to stdout, what happens to stderr. Exit status: 0 pass, 1 fail or refused, 2 wrong use. Everything is bounded in time and talks to loopback only.
"""
import argparse, contextlib, datetime, hashlib, json, os, pathlib, platform, shutil, signal, subprocess, sys, tempfile, time, urllib.request

import run

BIN = run.ROOT / "build" / "release" / "bin"
# What rustqueue-bench does beside durations; bodies are 1 KiB. The second entry is the throughput that calibration looks at.
SCENARIOS = {
    "raw_write": (["--producers", "16", "--consumers", "0", "--batch-size", "64"], "publish_messages_per_second"),
    "sustainable": (["--producers", "16", "--consumers", "16", "--batch-size", "64"], "receive_messages_per_second"),
    "low_load_latency": (["--producers", "16", "--consumers", "16", "--rate", "100"], "publish_messages_per_second"),
}
P99 = "pub_ack_p99_us"
SETTLE_SECONDS = 120
FREE_BYTES = 1 << 30  # a run ends when less is left on the disk


def say(text):
    print(text, file=sys.stderr, flush=True)


class Build:
    def __init__(self, path, commit):
        self.path = os.path.abspath(path)
        self.sha256 = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
        self.version = subprocess.run([self.path, "--version"], stdout=subprocess.PIPE, text=True, timeout=run.check.START_SECONDS, check=True).stdout.strip()
        self.commit = commit or "sha256:" + self.sha256

    def json(self):
        return {"revision": self.version, "commit": self.commit, "image_id": "none", "binary_sha256": self.sha256}


@contextlib.contextmanager
def cores(first):
    """With 4 cores or more the server has the first two and the load generator the next two; children inherit."""
    own = os.sched_getaffinity(0)
    if len(own) >= 4:
        os.sched_setaffinity(0, sorted(own)[first:first + 2])
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def peak_bytes(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))


def get(server, path):
    with urllib.request.urlopen("http://127.0.0.1:%d/%s" % (server.http, path), timeout=run.check.ANSWER_SECONDS) as answer:
        return answer.read().decode()


def gauges(server):
    lines = [line.split() for line in get(server, "metrics").splitlines() if line and line[0] != "#"]
    return {words[0]: float(words[-1]) for words in lines if "{" not in words[0]}


def left_over(server, report):
    """What the Channel and the Broker still hold."""
    totals = gauges(server)
    out = {"broker_" + kind: int(totals["rustqueue_channel_%s_total" % kind]) for kind in ("depth", "in_flight", "deferred")}
    topics = json.loads(get(server, "stats?format=json&topic=%s&channel=%s" % (report["topic"], report["channel"])))["topics"]
    channel = topics[0]["channels"][0]
    return dict(out, channel_depth=channel["depth"], channel_in_flight=channel["in_flight_count"], channel_deferred=channel["deferred_count"])


def settled(server, report):
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        held = left_over(server, report)
        if not any(held.values()) or time.monotonic() > end:
            return held
        time.sleep(0.1)


def metrics(server, report):
    out = dict(report, pub_ack_p99_us=report["latency_us_p99"], rss_peak_bytes=peak_bytes(server.process.pid))
    if report["consumers"]:
        out.update(settled(server, report))
    out["broker_profile"] = gauges(server)
    return out


def measure(build, scenario, args, directory):
    """One run: the metrics that rustqueue-qualify wants."""
    if shutil.disk_usage(args.dir).free < 2 * FREE_BYTES:
        sys.exit("Error: %s has less than %d bytes free" % (args.dir, 2 * FREE_BYTES))
    with cores(0):
        server = run.Process("rustqueued", argparse.Namespace(server=build.path), directory, config={"storage": {"min_free_bytes": FREE_BYTES}})
    try:
        argv = [args.bench, "--json", "--address", "127.0.0.1:%d" % server.tcp, "--message-bytes", "1024", *SCENARIOS[scenario][0],
                "--warmup-seconds", str(args.warmup), "--duration-seconds", str(args.measure), "--drain-timeout-seconds", str(args.drain)]
        # After each phase up to a drain and the stop of consumers, 30 s.
        with cores(2):
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=args.warmup + args.measure + 2 * args.drain + 180)
        if done.returncode != 0:
            sys.exit("Error: %s: rustqueue-bench ended with %d: %s" % (scenario, done.returncode, (done.stderr or done.stdout).strip()))
        return metrics(server, json.loads(done.stdout))
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def measure_pairs(sides, pairs, args):
    """The runs of a document, in the order in which they ran."""
    runs = []
    with tempfile.TemporaryDirectory(prefix="qualify-", dir=args.dir) as directory:
        for scenario in args.scenarios:
            for pair in range(1, pairs + 1):
                for position, variant in enumerate(["baseline", "candidate"] if pair % 2 else ["candidate", "baseline"], 1):
                    found = measure(sides[variant], scenario, args, os.path.join(directory, "data"))
                    runs.append({"case": scenario, "pair": pair, "sequence": len(runs) + 1, "position_in_pair": position, "variant": variant,
                                 "commit": sides[variant].commit, "benchmark_exit_code": 0, "metrics": found})
                    say("%s, pair %d of %d, %s: %.0f messages/s, p99 %d us, peak %d MiB" % (
                        scenario, pair, pairs, variant, found[SCENARIOS[scenario][1]], found[P99], found["rss_peak_bytes"] >> 20))
    return runs


def calibrate(baseline, args):
    """How far runs of one build are apart, by scenario; ends the program where that is too far."""
    runs = measure_pairs({"baseline": baseline, "candidate": baseline}, args.calibration_pairs, args)
    out, wide = [], False
    for scenario in args.scenarios:
        spreads = []
        for key in (SCENARIOS[scenario][1], P99):
            values = [r["metrics"][key] for r in runs if r["case"] == scenario]
            spreads.append(max(values) / min(values) - 1)
        out.append({"case": scenario, "runs": 2 * args.calibration_pairs, "throughput_spread": spreads[0], "p99_spread": spreads[1]})
        wide = wide or any(s > limit for s, limit in zip(spreads, args.spread))
        say("calibration, %s: throughput within %.1f %%, p99 within %.1f %%" % (scenario, spreads[0] * 100, spreads[1] * 100))
    if wide:
        sys.exit("Error: runs of one build differ by more than %g %% of throughput or %g %% of p99: this machine cannot compare builds now" %
                 tuple(limit * 100 for limit in args.spread))
    return out


def document(sides, calibration, args):
    return {
        "schema_version": 1, "release": sides["candidate"].version.split()[-1],
        "generated_at_utc": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "baseline": sides["baseline"].json(), "candidate": sides["candidate"].json(),
        "environment": {"machine": run.machine(args.dir), "python": platform.python_version(), "calibration": calibration},
        "protocol": {"pairs": args.pairs, "warmup_seconds": args.warmup, "measurement_seconds": args.measure, "drain_timeout_seconds": args.drain,
                     "alternating_order": "AB_then_BA", "bootstrap_iterations": args.iterations, "bootstrap_seed": args.seed,
                     "throughput_regression_ratio": 0.95, "latency_rss_regression_ratio": 1.10, "scenarios": args.scenarios},
        "runs": measure_pairs(sides, args.pairs, args)}


def judge(path, args):
    verdict = subprocess.run([args.qualify, "--input", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=600)
    print(verdict.stdout, end="", flush=True)
    if verdict.stdout:
        for s in json.loads(verdict.stdout)["statistics"]:
            say("%s:%s %.3f (%.3f to %.3f)%s" % (s["case"], s["metric"], s["candidate_over_baseline"], s["bootstrap_p05"], s["bootstrap_p95"],
                                                 ", a regression" if s["regression"] else ""))
    return verdict.returncode


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--baseline", required=True, help="rustqueued, the older build")
    parser.add_argument("--candidate", default=str(BIN / "rustqueued"), help="rustqueued, the build to be judged")
    parser.add_argument("--calibration-only", action="store_true")
    parser.add_argument("--baseline-commit", help="its commit; without it the SHA-256 of the program stands for it")
    parser.add_argument("--candidate-commit")
    whole = {"pairs": 10, "warmup": 30, "measure": 120, "drain": 1800, "iterations": 100000}
    for name, value in whole.items():
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--seed", type=int, default=802)
    parser.add_argument("--calibration-pairs", type=int, default=2, help="0: none")
    parser.add_argument("--spread", default="0.05,0.10", help="limits of the calibration: throughput, p99")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--bench", default=str(BIN / "rustqueue-bench"))
    parser.add_argument("--qualify", default=str(BIN / "rustqueue-qualify"))
    parser.add_argument("--out", default=str(run.OUT / "qualify.json"), help="the measurements")
    parser.add_argument("--dir", default=str(run.OUT), help="where data directories are made")
    parser.add_argument("--any-disk", action="store_true", help="also one in memory")
    args = parser.parse_args()
    args.scenarios = args.scenarios.split(",")
    args.spread = [float(s) for s in args.spread.split(",")]
    for program in (args.baseline, args.candidate, args.bench, args.qualify):
        if not os.access(program, os.X_OK):
            parser.error("%s is no program" % program)
    if set(args.scenarios) - set(SCENARIOS) or len(set(args.scenarios)) < len(args.scenarios):
        parser.error("scenarios are %s, each at most once" % ", ".join(SCENARIOS))
    if min([getattr(args, name) for name in whole] + [args.seed + 1, args.calibration_pairs + 1]) < 1 or len(args.spread) != 2:
        parser.error("numbers are whole and above 0, --seed and --calibration-pairs from 0; --spread is two")
    return args


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are stopped on the way out
    os.makedirs(args.dir, exist_ok=True)
    if not args.any_disk and run.file_system(args.dir) in ("tmpfs", "ramfs"):
        sys.exit("Error: %s is in memory, where a barrier costs nothing" % args.dir)
    baseline = Build(args.baseline, args.baseline_commit)
    calibration = calibrate(baseline, args) if args.calibration_pairs else []
    if args.calibration_only:
        return 0
    sides = {"baseline": baseline, "candidate": Build(args.candidate, args.candidate_commit)}
    os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
    pathlib.Path(args.out).write_text(json.dumps(document(sides, calibration, args), indent=1) + "\n")
    say("measurements in %s" % args.out)
    return judge(args.out, args)


if __name__ == "__main__":
    sys.exit(main())
