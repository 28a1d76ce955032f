#!/usr/bin/env python3
"""This Broker beside nsqd 1.3.0, both on disk: `durable` against nsqd with --mem-queue-size=0 and --sync-every 1 and 2500 (page 60 section 6.3).

    compare.py [--runs 3] [--payloads 100,1024,10240] [--modes saturation,fixed] [--profiles durable,...] [--relaxed] [--measure 10] [--out FILE]

The load is rustqueue-bench: producers that wait for each answer, consumers that finish everything, at saturation and at a fixed 100 messages/s. Servers run one at
a time, in turn A B C, C B A, each on a fresh directory that is removed. --relaxed adds this Broker's modes write_ack and nsq_relaxed, under their own names, in
a table and a part of the document of their own: what promises less is never set against what promises more.

The document goes to --out: medians by profile, payload and mode, and how many runs were complete (everything published came back exactly once and in
time). Publish figures are medians of all runs that gave a report, receive rates of complete ones only. Tables go to stdout, what happens to stderr. Exit status:
0 when every run was complete, 1 otherwise, 2 wrong use. No run begins after --seconds and none writes more than --disk-gib; everything talks to
loopback only; Ctrl-C ends what was started.
"""
import argparse, datetime, json, os, pathlib, platform, shutil, statistics, sys, tempfile, time

import host, run

BIN = run.ROOT / "build" / "release" / "bin"
SCHEMA_VERSION = 1
FREE_BYTES = 2 << 30
MODES = ("saturation", "fixed")


class Profile:
    def __init__(self, kind, promise, config=None, flags=()):
        self.kind, self.promise, self.config, self.flags = kind, promise, config, flags


def on_disk(sync_every):
    return Profile("nsqd", "strict", flags=("-mem-queue-size=0", "-sync-every=%d" % sync_every))


def broker(promise, mode):
    return Profile("rustqueued", promise, config={"queue": {"publish_ack_mode": mode}, "storage": {"min_free_bytes": FREE_BYTES // 2}})


PROFILES = {"durable": broker("strict", "durable"), "nsqd_sync_1": on_disk(1), "nsqd_sync_2500": on_disk(2500),
            "write_ack": broker("relaxed", "write_ack"), "nsq_relaxed": broker("relaxed", "nsq_relaxed")}
STRICT = [name for name, p in PROFILES.items() if p.promise == "strict"]
RELAXED = [name for name, p in PROFILES.items() if p.promise == "relaxed"]
OURS = "durable"  # what ratios are of

RECEIVE = "receive_messages_per_second"
CPU, RSS = "server_cpu_us_per_message", "rss_peak_bytes"
# Of all runs that gave a report.
MEDIANS = ("publish_messages_per_second", "latency_us_p50", "latency_us_p99", "latency_us_p999", "latency_us_max", CPU, RSS)
# Name and key of ratios; the first two are better above 1, the others below.
RATIOS = (("publish rate", "publish_messages_per_second"), ("receive rate", RECEIVE), ("ack p50", "latency_us_p50"), ("ack p99", "latency_us_p99"), ("CPU a message", CPU))


def incomplete(status, report):
    """Why a run is not complete; None when it is."""
    if report is None:
        return "no report"
    if not report["messages"]:
        return "nothing was published"
    if not report["delivery_verified"]:
        return "delivery was not verified"
    if report["drain_timed_out"]:
        return "the drain limit was reached, %d missing" % report["missing_messages"]
    if report["missing_messages"] or report["received_unique_messages"] != report["messages"]:
        return "%d missing" % max(report["missing_messages"], report["messages"] - report["received_unique_messages"])
    if report["duplicate_messages"]:
        return "%d came twice" % report["duplicate_messages"]
    if not report["delivery_complete"] or status != 0:
        return "the generator ended with %s" % status
    return None


def middle(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def summary(rows):
    """One profile at one payload and mode."""
    reports = [r["report"] for r in rows if r["report"]]
    complete = [r["report"] for r in rows if r["incomplete"] is None]
    median = {key: middle(r.get(key) for r in reports) for key in MEDIANS}
    return {"complete_runs": len(complete), "incomplete_runs": len(rows) - len(complete), "median": dict(median, **{RECEIVE: middle(r[RECEIVE] for r in complete)})}


def ratio(ours, theirs, key):
    """Lowest, median, highest of the runs of the same round, None without any; receive rates only where both were complete."""
    found = []
    for a in ours:
        for b in theirs:
            if a["run"] != b["run"] or not a["report"] or not b["report"] or (key == RECEIVE and (a["incomplete"] or b["incomplete"])):
                continue
            if a["report"].get(key) and b["report"].get(key):
                found.append(a["report"][key] / b["report"][key])
    return {"lowest": min(found), "median": statistics.median(found), "highest": max(found)} if found else None


def of(runs, profile, payload, mode):
    return [r for r in runs if (r["profile"], r["payload_bytes"], r["mode"]) == (profile, payload, mode)]


def cells(runs):
    """(payload, mode) of what was run, in order."""
    return list(dict.fromkeys((r["payload_bytes"], r["mode"]) for r in runs))


def part(runs, names):
    """Medians of the profiles of one promise."""
    out = {}
    for name in names:
        rows = [dict(payload_bytes=payload, mode=mode, **summary(found)) for payload, mode in cells(runs) for found in [of(runs, name, payload, mode)] if found]
        if rows:
            out[name] = rows
    return out


def comparisons(runs):
    """Ratios of `durable` to each other profile that is on disk too, and to no other."""
    out = []
    for payload, mode in cells(runs):
        for other in STRICT:
            ours, theirs = of(runs, OURS, payload, mode), of(runs, other, payload, mode)
            if other != OURS and ours and theirs:
                out.append({"payload_bytes": payload, "mode": mode, "profile": OURS, "over": other, "ratios": {key: ratio(ours, theirs, key) for _, key in RATIOS}})
    return out


def document(runs, protocol, environment):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"schema_version": SCHEMA_VERSION, "generated_at_utc": now, "environment": environment, "protocol": protocol,
            "strict": {"profiles": part(runs, STRICT), "comparisons": comparisons(runs)}, "relaxed": {"profiles": part(runs, RELAXED)}, "runs": runs}


def figure(value, digits=0, divide=1.0):
    return "-" if value is None else ("{:,.%df}" % digits).format(value / divide)


def medians_table(profiles):
    rows = []
    for payload, mode in dict.fromkeys((row["payload_bytes"], row["mode"]) for found in profiles.values() for row in found):
        for name, found in profiles.items():
            for row in found:
                if (row["payload_bytes"], row["mode"]) == (payload, mode):
                    m = row["median"]
                    rows.append([figure(payload), mode, name, "%d of %d" % (row["complete_runs"], row["complete_runs"] + row["incomplete_runs"]),
                                 figure(m["publish_messages_per_second"]), figure(m[RECEIVE]), "%s / %s" % (figure(m["latency_us_p50"], 2, 1000), figure(m["latency_us_p99"], 2, 1000)),
                                 figure(m[CPU], 1), figure(m[RSS], 0, 1 << 20)])
    return run.lines(["bytes", "mode", "profile", "complete", "published/s", "received/s", "ack p50 / p99 ms", "CPU us a message", "peak RSS MiB"], rows)


def comparisons_table(found):
    def cell(r):
        return "-" if r is None else run.spread(list(r.values()), 2)
    rows = [[figure(c["payload_bytes"]), c["mode"], c["over"], *(cell(c["ratios"][key]) for _, key in RATIOS)] for c in found]
    return run.lines(["bytes", "mode", OURS + " over", *(name for name, _ in RATIOS)], rows)


def tables(doc):
    out = ["%s; %d runs of %d s" % (doc["environment"]["machine"], doc["protocol"]["runs"], doc["protocol"]["measurement_seconds"])]
    if doc["strict"]["profiles"]:
        out.append("On disk:\n\n" + medians_table(doc["strict"]["profiles"]))
    if doc["strict"]["comparisons"]:
        out.append("The same as ratios of one round, median (lowest to highest):\n\n" + comparisons_table(doc["strict"]["comparisons"]))
    if doc["relaxed"]["profiles"]:
        out.append("Relaxed, which promises less than any of the above:\n\n" + medians_table(doc["relaxed"]["profiles"]))
    return "\n\n".join(out) + "\n"


def measure(profile, payload, mode, args, directory):
    """(exit status, report or None, why there is none)."""
    free = shutil.disk_usage(args.dir).free
    if free < FREE_BYTES + args.disk_bytes:
        sys.exit("Error: %s has %d bytes free, a run may need %d (--disk-gib)" % (args.dir, free, FREE_BYTES + args.disk_bytes))
    with host.pinned("server"):
        server = run.Process(profile.kind, argparse.Namespace(server=args.server), directory, config=profile.config, flags=profile.flags)
    try:
        with host.Watch(server.process.pid, {}, directory, FREE_BYTES, args.disk_bytes) as watch:
            def load(seconds):
                argv = [os.path.abspath(args.bench), "--json", "--address", "127.0.0.1:%d" % server.tcp, "--message-bytes", str(payload), "--producers", str(args.producers),
                        "--consumers", str(args.consumers), "--batch-size", str(args.batch_size if mode == "saturation" else 1), "--duration-seconds", str(seconds),
                        "--drain-timeout-seconds", str(args.drain), *(["--rate", str(args.rate)] if mode == "fixed" else [])]
                status, out, err = host.generate(argv, watch, seconds + args.drain + 60)  # consumers have 30 s to stop
                if server.process.poll() is not None:
                    return status, None, "%s ended with %d: %s" % (profile.kind, server.process.returncode, server.tail())
                try:
                    return status, json.loads(out), None
                except ValueError:
                    return status, None, watch.full or err or "the generator ended with %s" % status
            if args.warmup:
                status, report, why = load(args.warmup)
                why = why or incomplete(status, report)
                if why:
                    return status, None, "warm-up: " + why
            before = host.cpu_us(server.process.pid)
            status, report, why = load(args.measure)
            if report:
                report[CPU] = round((host.cpu_us(server.process.pid) - before) / max(1, report["messages"]), 2)
                report[RSS] = host.memory_bytes(server.process.pid, "VmHWM")
                report["host"] = watch.evidence()
            return status, report, why
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def measure_all(args, root):
    runs, end = [], time.monotonic() + args.seconds
    for number in range(1, args.runs + 1):
        for payload in args.payloads:
            for mode in args.modes:
                for name in args.profiles if number % 2 else args.profiles[::-1]:
                    if time.monotonic() > end:
                        print("Warning: %d s are over, what is missing was not run" % args.seconds, file=sys.stderr)
                        return runs
                    status, report, why = measure(PROFILES[name], payload, mode, args, os.path.join(root, "data"))
                    why = why or incomplete(status, report)
                    runs.append({"profile": name, "payload_bytes": payload, "mode": mode, "run": number, "sequence": len(runs) + 1, "benchmark_exit_code": status,
                                 "incomplete": why, "report": report})
                    said = "%.0f published/s, p99 %d us" % (report["publish_messages_per_second"], report["latency_us_p99"]) if report else "no report"
                    print("run %d, %d bytes, %s, %s: %s%s" % (number, payload, mode, name, said, ", incomplete: " + why if why else ""), file=sys.stderr, flush=True)
    return runs


def numbers(text):
    return [int(n) for n in text.split(",")]


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="scripts/bench compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--payloads", type=numbers, default=[100, 1024, 10240], help="bytes of a body (100,1024,10240)")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--profiles", default=",".join(STRICT), help="of %s (%%(default)s)" % ", ".join(STRICT))
    parser.add_argument("--relaxed", action="store_true", help="also %s" % " and ".join(RELAXED))
    whole = {"runs": (3, "of each"), "measure": (10, "seconds"), "drain": (60, "seconds, at most"), "rate": (100, "messages/s of the fixed mode"), "producers": (16, ""), "consumers": (16, ""),
             "batch-size": (1, "at saturation; 1: PUB, more: MPUB"), "seconds": (3600, "no run begins afterwards"), "disk-gib": (8, "what one run may write")}
    for name, (value, what) in whole.items():
        parser.add_argument("--" + name, type=int, default=value, help=(what + " (%(default)s)").strip())
    parser.add_argument("--warmup", type=int, default=2, help="seconds (%(default)s)")
    parser.add_argument("--server", default=str(BIN / "rustqueued"))
    parser.add_argument("--bench", default=str(BIN / "rustqueue-bench"))
    parser.add_argument("--out", default=str(run.OUT / "compare.json"), help="the document (%(default)s)")
    parser.add_argument("--dir", default=str(run.OUT), help="where data directories are made (%(default)s)")
    parser.add_argument("--any-disk", action="store_true", help="also one in memory")
    args = parser.parse_args(argv)
    args.modes, args.profiles = args.modes.split(","), args.profiles.split(",")
    if set(args.profiles) - set(STRICT):
        parser.error("profiles are %s; --relaxed adds %s" % (", ".join(STRICT), " and ".join(RELAXED)))
    if set(args.modes) - set(MODES):
        parser.error("modes are %s" % ", ".join(MODES))
    for values in (args.profiles, args.modes, args.payloads):
        if len(set(values)) < len(values):
            parser.error("%s: one stands twice" % ",".join(map(str, values)))
    if min(getattr(args, name.replace("-", "_")) for name in whole) < 1 or args.warmup < 0:
        parser.error("numbers are whole and above 0, --warmup from 0")
    if min(args.payloads) < 8:
        parser.error("--payloads: bodies below 8 bytes carry no number, so delivery cannot be verified")
    if args.rate < args.producers:
        parser.error("--rate %d is below the number of producers, %d" % (args.rate, args.producers))
    for program in (args.server, args.bench):
        if not (os.path.isfile(program) and os.access(program, os.X_OK)):
            parser.error("%s is no program" % program)
    args.profiles += RELAXED if args.relaxed else []
    args.disk_bytes = args.disk_gib << 30
    return args


def main():
    args = arguments()
    host.end_on_signals()
    if not args.any_disk:
        host.refuse_memory(args.dir)
    os.makedirs(args.dir, exist_ok=True)
    run.build([PROFILES[name].kind for name in args.profiles])
    with tempfile.TemporaryDirectory(prefix="compare-", dir=args.dir) as root:
        runs = measure_all(args, root)
    protocol = {"runs": args.runs, "warmup_seconds": args.warmup, "measurement_seconds": args.measure, "drain_timeout_seconds": args.drain, "producers": args.producers,
                "consumers": args.consumers, "batch_size": args.batch_size, "rate": args.rate, "payload_bytes": args.payloads, "modes": args.modes,
                "profiles": {name: {"server": PROFILES[name].kind, "promise": PROFILES[name].promise, "flags": list(PROFILES[name].flags),
                                    "config": PROFILES[name].config} for name in args.profiles}}
    environment = {"machine": run.machine(args.dir), "python": platform.python_version(), "cores": host.pinning()}
    doc = document(runs, protocol, environment)
    os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
    pathlib.Path(args.out).write_text(json.dumps(doc, indent=1) + "\n")
    print(tables(doc), flush=True)
    print("document in %s" % args.out, file=sys.stderr)
    bad = ["%s at %d bytes, %s: %s" % (r["profile"], r["payload_bytes"], r["mode"], r["incomplete"]) for r in runs if r["incomplete"]]
    wanted = args.runs * len(args.payloads) * len(args.modes) * len(args.profiles)
    if len(runs) < wanted:
        bad.append("%d of %d runs did not begin" % (wanted - len(runs), wanted))
    if bad:
        sys.exit("Error: %s" % "; ".join(bad))


if __name__ == "__main__":
    main()
