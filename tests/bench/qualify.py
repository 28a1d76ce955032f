#!/usr/bin/env python3
"""Measures two builds of rustqueued in pairs and has rustqueue-qualify judge them (page 60 section 6.3).

    qualify.py --baseline-ref TAG [--candidate-ref REF] --evidence
    qualify.py --baseline BIN [--candidate BIN] [--calibration-only] [--pairs 10] [--calibration-pairs 2] [--scenarios raw_write,...] [--out FILE]

A side is a program, or a commit that is built from its archived sources. Odd pairs run the baseline first, even pairs the candidate; every run has a fresh data
directory, and both builds the same rustqueue-bench. Server and generator have 2 CPUs and 2 GiB each and no swap, where the machine permits it (limits.py), and cores of
their own where it has four; what was in force is in the document. First comes a calibration, the baseline against itself: where its own runs differ by more
than --spread (max / min - 1 of throughput, then of p99), the machine cannot tell builds apart, and the comparison is refused.

The measurements go to --out, the verdict to stdout, what happens to stderr. --evidence also puts the judged document into docs/evidence; that is for the whole
protocol with limits in force and a version tag as the baseline, and anything else is development, which cannot write there. Exit status: 0 pass, 1 fail or
refused, 2 wrong use. Everything is bounded in time and talks to loopback only; Ctrl-C ends what was started.
"""
import argparse, datetime, hashlib, json, os, pathlib, platform, re, shutil, subprocess, sys, tempfile, time, urllib.request

import host, limits, run

BIN = run.ROOT / "build" / "release" / "bin"
# What rustqueue-bench does beside durations; bodies are 1 KiB. The second entry is the throughput that calibration looks at.
SCENARIOS = {
    "raw_write": (["--producers", "16", "--consumers", "0", "--batch-size", "64"], "publish_messages_per_second"),
    "sustainable": (["--producers", "16", "--consumers", "16", "--batch-size", "64"], "receive_messages_per_second"),
    "low_load_latency": (["--producers", "16", "--consumers", "16", "--rate", "100"], "publish_messages_per_second"),
}
P99 = "pub_ack_p99_us"
SETTLE_SECONDS = 30  # of looking: a machine that stands still meanwhile does not count
LOOK_SECONDS = 0.1
BUILD_SECONDS = 3600
FREE_BYTES = 1 << 30  # a run ends when less is left on the disk
PROTOCOL = {"pairs": 10, "warmup": 30, "measure": 120, "drain": 1800, "iterations": 100000, "seed": 802, "calibration_pairs": 2, "spread": [0.05, 0.10]}
EVIDENCE = run.ROOT / "docs" / "evidence"
VERSION_TAG = re.compile(r"v\d+\.\d+\.\d+")


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


def git(*arguments):
    return subprocess.run(["git", "-C", str(run.ROOT), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=run.RUN_SECONDS).stdout.strip()


def commit_of(ref):
    return git("rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}")


def is_version_tag(ref):
    return bool(VERSION_TAG.fullmatch(ref or "")) and bool(commit_of("refs/tags/" + ref))


def build_commit(commit):
    """rustqueued of a commit, compiled from its archived sources and nothing else; what was compiled before is taken again."""
    sources = run.OUT / "sources" / commit
    if not sources.exists():
        sources.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=sources.parent) as directory:
            archive = os.path.join(directory, "archive.tar")
            run.run(["git", "-C", str(run.ROOT), "archive", "--format=tar", "--output=" + archive, commit], timeout=run.RUN_SECONDS)
            unpacked = os.path.join(directory, "sources")
            os.mkdir(unpacked)
            run.run(["tar", "-xf", archive, "-C", unpacked], timeout=run.RUN_SECONDS)
            os.rename(unpacked, sources)
    say("building rustqueued of %s" % commit[:12])
    run.run(["cmake", "--preset", "release"], cwd=sources, timeout=run.RUN_SECONDS)
    run.run(["ninja", "-C", "build/release", "-j", os.environ.get("JOBS", str(os.cpu_count() or 1)), "rustqueued"], cwd=sources, timeout=BUILD_SECONDS)
    return str(sources / "build" / "release" / "bin" / "rustqueued")


def side(args, name):
    ref = getattr(args, name + "_ref")
    if ref:
        commit = commit_of(ref)
        return Build(build_commit(commit), commit)
    return Build(getattr(args, name), getattr(args, name + "_commit"))


def get(server, path):
    with urllib.request.urlopen("http://127.0.0.1:%d/%s" % (server.http, path), timeout=run.check.ANSWER_SECONDS) as answer:
        return answer.read().decode()


def series(server):
    """Every series of /metrics, by its name and labels."""
    out = {}
    for line in get(server, "metrics").splitlines():
        if line and line[0] != "#":
            name, _, value = line.rpartition(" ")
            out[name] = float(value)
    return out


def left_over(server, report):
    """What the Channel and the Broker still hold."""
    totals = series(server)
    out = {"broker_" + kind: int(totals["rustqueue_channel_%s_total" % kind]) for kind in ("depth", "in_flight", "deferred")}
    topics = json.loads(get(server, "stats?format=json&topic=%s&channel=%s" % (report["topic"], report["channel"])))["topics"]
    channel = topics[0]["channels"][0]
    return dict(out, channel_depth=channel["depth"], channel_in_flight=channel["in_flight_count"], channel_deferred=channel["deferred_count"])


def settled(server, report):
    for _ in range(int(SETTLE_SECONDS / LOOK_SECONDS)):
        held = left_over(server, report)
        if not any(held.values()):
            break
        time.sleep(LOOK_SECONDS)
    return held


def check_limits(cgroup, kind):
    """Found to work before the first run, limits must have held in each."""
    for role, found in cgroup.items():
        if kind is not None and (found is None or found["in_force"] != limits.WANTED):
            sys.exit("Error: limits of the %s did not hold: %s" % (role, found["in_force"] if found else "it was not in its group"))


def metrics(server, report, watch, kind):
    out = dict(report, pub_ack_p99_us=report["latency_us_p99"])
    if report["consumers"]:
        out.update(settled(server, report))
    out["host"] = watch.evidence()
    check_limits(out["host"]["cgroup"], kind)
    # The kernel's high-water mark is that of each moment; samples show its course.
    out["rss_peak_bytes"] = host.memory_bytes(server.process.pid, "VmHWM")
    out["broker_profile"] = series(server)
    return out


def measure(build, scenario, args, directory):
    """One run: the metrics that rustqueue-qualify wants, and what the machine did meanwhile."""
    if shutil.disk_usage(args.dir).free < 2 * FREE_BYTES:
        sys.exit("Error: %s has less than %d bytes free" % (args.dir, 2 * FREE_BYTES))
    with args.limits.group("server") as server_group, args.limits.group("generator") as generator_group:
        with host.pinned("server"):
            server = run.Process("rustqueued", argparse.Namespace(server=build.path), directory, config={"storage": {"min_free_bytes": FREE_BYTES}}, wrap=server_group.wrap)
        try:
            argv = [os.path.abspath(args.bench), "--json", "--address", "127.0.0.1:%d" % server.tcp, "--message-bytes", "1024", *SCENARIOS[scenario][0],
                    "--warmup-seconds", str(args.warmup), "--duration-seconds", str(args.measure), "--drain-timeout-seconds", str(args.drain)]
            with host.Watch(server.process.pid, {"server": server_group, "generator": generator_group}, directory, FREE_BYTES) as watch:
                # After each phase up to a drain and the stop of consumers, 30 s.
                status, out, err = host.generate(argv, watch, args.warmup + args.measure + 2 * args.drain + 180)
                if status != 0:
                    why = watch.full or err or out.strip()
                    if server.process.poll() is not None:
                        why += "; rustqueued ended with %d: %s" % (server.process.returncode, server.tail())
                    sys.exit("Error: %s: rustqueue-bench ended with %s: %s" % (scenario, status, why))
                return metrics(server, json.loads(out), watch, args.limits.kind)
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


def environment(calibration, args):
    because = development(args)
    return {"machine": run.machine(args.dir), "python": platform.python_version(), "mode": "development" if because else "full protocol", "development_because": because,
            "limits": args.limits.json(), "cores": host.pinning(), "calibration": calibration}


def development(args):
    """Why a run is none of the protocol, which alone may become evidence; empty when it is."""
    out = ["--%s is not %s" % (name.replace("_", "-"), ",".join(map(str, value)) if isinstance(value, list) else value)
           for name, value in PROTOCOL.items() if getattr(args, name) != value]
    if set(args.scenarios) != set(SCENARIOS):
        out.append("--scenarios has not all of them")
    if not is_version_tag(args.baseline_ref):
        out.append("--baseline-ref is no version tag" if args.baseline_ref else "the baseline is no version tag (--baseline-ref)")
    if not args.candidate_ref:
        out.append("the candidate is no commit (--candidate-ref)")
    if args.any_disk:
        out.append("--any-disk")
    if args.limits.kind is None:
        out.append("limits are not in force: %s" % args.limits.why)
    return out


def evidence_path(args):
    return EVIDENCE / ("%s-to-%s.json" % (args.baseline_ref, commit_of(args.candidate_ref)[:12]))


def refuse_out(path):
    """--out is for development; that directory holds what --evidence put there."""
    where = pathlib.Path(os.path.realpath(path))
    if EVIDENCE.resolve() in where.parents:
        sys.exit("Error: --out: only --evidence writes to %s" % EVIDENCE.relative_to(run.ROOT))


def document(sides, calibration, args):
    return {
        "schema_version": 1, "release": sides["candidate"].version.split()[-1],
        "generated_at_utc": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "baseline": sides["baseline"].json(), "candidate": sides["candidate"].json(),
        "environment": environment(calibration, args),
        "protocol": {"pairs": args.pairs, "warmup_seconds": args.warmup, "measurement_seconds": args.measure, "drain_timeout_seconds": args.drain,
                     "alternating_order": "AB_then_BA", "bootstrap_iterations": args.iterations, "bootstrap_seed": args.seed,
                     "throughput_regression_ratio": 0.95, "latency_rss_regression_ratio": 1.10, "scenarios": args.scenarios},
        "runs": measure_pairs(sides, args.pairs, args)}


def judge(path, args):
    """The exit status of rustqueue-qualify and the judged document, empty when a rule was broken."""
    verdict = subprocess.run([args.qualify, "--input", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=600)
    print(verdict.stdout, end="", flush=True)
    if verdict.stdout:
        for s in json.loads(verdict.stdout)["statistics"]:
            say("%s:%s %.3f (%.3f to %.3f)%s" % (s["case"], s["metric"], s["candidate_over_baseline"], s["bootstrap_p05"], s["bootstrap_p95"],
                                                 ", a regression" if s["regression"] else ""))
    return verdict.returncode, verdict.stdout


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="scripts/bench qualify", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", help="rustqueued, the older build")
    parser.add_argument("--baseline-ref", help="or a commit or tag to build it from")
    parser.add_argument("--candidate", default=str(BIN / "rustqueued"), help="rustqueued, the build to be judged (%(default)s)")
    parser.add_argument("--candidate-ref", help="or a commit or tag to build it from")
    parser.add_argument("--evidence", action="store_true", help="put the judged document into docs/evidence")
    parser.add_argument("--calibration-only", action="store_true")
    parser.add_argument("--baseline-commit", help="the commit of --baseline; without it the SHA-256 of the program stands for it")
    parser.add_argument("--candidate-commit")
    units = {"pairs": "number of pairs", "warmup": "seconds", "measure": "seconds", "drain": "seconds, at most", "iterations": "of the bootstrap"}
    for name, unit in units.items():
        parser.add_argument("--" + name, type=int, default=PROTOCOL[name], help=unit + " (%(default)s)")
    parser.add_argument("--seed", type=int, default=PROTOCOL["seed"], help="of the bootstrap (%(default)s)")
    parser.add_argument("--calibration-pairs", type=int, default=PROTOCOL["calibration_pairs"], help="0: none (%(default)s)")
    parser.add_argument("--spread", default=",".join(map(str, PROTOCOL["spread"])), help="limits of the calibration: throughput, p99 (%(default)s)")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--bench", default=str(BIN / "rustqueue-bench"))
    parser.add_argument("--qualify", default=str(BIN / "rustqueue-qualify"))
    parser.add_argument("--out", default=str(run.OUT / "qualify.json"), help="the measurements")
    parser.add_argument("--dir", default=str(run.OUT), help="where data directories are made")
    parser.add_argument("--any-disk", action="store_true", help="also one in memory")
    args = parser.parse_args(argv)
    args.scenarios = args.scenarios.split(",")
    try:
        args.spread = [float(s) for s in args.spread.split(",")]
    except ValueError:
        parser.error("--spread is two numbers, like %s" % ",".join(map(str, PROTOCOL["spread"])))
    if bool(args.baseline) == bool(args.baseline_ref):
        parser.error("the baseline is --baseline or --baseline-ref")
    for name in ("baseline", "candidate"):
        ref = getattr(args, name + "_ref")
        if ref and not commit_of(ref):
            parser.error("--%s-ref: %s is no commit here" % (name, ref))
        if ref and getattr(args, name + "_commit"):
            parser.error("--%s-ref names the commit already" % name)
    for program in ([] if args.baseline_ref else [args.baseline]) + ([] if args.candidate_ref else [args.candidate]) + [args.bench, args.qualify]:
        if not (os.path.isfile(program) and os.access(program, os.X_OK)):
            parser.error("%s is no program" % program)
    if set(args.scenarios) - set(SCENARIOS) or len(set(args.scenarios)) < len(args.scenarios):
        parser.error("scenarios are %s, each at most once" % ", ".join(SCENARIOS))
    if min([getattr(args, name) for name in units] + [args.seed + 1, args.calibration_pairs + 1]) < 1 or len(args.spread) != 2:
        parser.error("numbers are whole and above 0, --seed and --calibration-pairs from 0; --spread is two")
    args.limits = limits.Limits()
    if args.evidence:
        because = development(args) + (["--calibration-only judges nothing"] if args.calibration_only else [])
        if because:
            parser.error("no evidence from development: " + "; ".join(because))
        if evidence_path(args).exists():
            parser.error("%s is there already" % evidence_path(args).relative_to(run.ROOT))
    return args


def main():
    args = arguments()
    host.end_on_signals()
    refuse_out(args.out)
    if not args.any_disk:
        host.refuse_memory(args.dir)
    os.makedirs(args.dir, exist_ok=True)
    cores = host.pinning()
    say("limits: %s" % args.limits)
    say("cores: %s" % cores.get("why", "server %s, generator %s" % (cores["server"], cores["generator"])))
    sides = {"baseline": side(args, "baseline")}
    if not args.calibration_only:
        sides["candidate"] = side(args, "candidate")
    calibration = calibrate(sides["baseline"], args) if args.calibration_pairs else []
    if args.calibration_only:
        return 0
    os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
    pathlib.Path(args.out).write_text(json.dumps(document(sides, calibration, args), indent=1) + "\n")
    say("measurements in %s" % args.out)
    status, judged = judge(args.out, args)
    if args.evidence and judged:
        EVIDENCE.mkdir(exist_ok=True)
        evidence_path(args).write_text(judged)
        say("evidence in %s" % evidence_path(args).relative_to(run.ROOT))
    return status


if __name__ == "__main__":
    sys.exit(main())
