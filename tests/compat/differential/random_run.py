#!/usr/bin/env python3
"""Generated scripts against this Broker and nsqd 1.3.0: the same bytes to both, answers compared step by step (lockstep.py).

    random_run.py --server build/dev/bin/rustqueued --nsqd PATH [--seed N] [--scripts K | --seconds S] [--kinds tcp,http,flow] [--workers W]
    random_run.py ... --replay FILE        one script as it was printed

Script number i of a seed depends on both numbers alone. A difference that differences.RANDOM does not want, and that three runs of the script show, is a failure:
it is printed with its seed, its number and the shortest script that still shows it. The last line is `N passed, N failed`.
"""
import argparse, ast, os, pathlib, pprint, random, shutil, sys, tempfile, threading, time, traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[2] / "tests" / "fixtures")]
import check, differences, lockstep, random_checks, random_flow, random_http, random_tcp, run, web
from nsqd import Nsqd
from shorten import shorten

KINDS = {"tcp": random_tcp.script, "http": random_http.script, "flow": random_flow.script}
CONFIGS = {"plain": random_tcp.Limits(1048576, 5242880, 2500), "small": random_tcp.Limits(1000, 5000, 20), "auth": random_tcp.Limits(1048576, 5242880, 2500)}
RUNS = 3
FAILURES_MOST, SHORTEN_SECONDS = 10, 20.0


def configuration(name, site):
    """(configuration of this Broker, flags of nsqd)."""
    if name == "small":
        return ({"queue": {"max_message_bytes": 1000}, "limits": {"max_body_bytes": 5000, "max_rdy_count": 20}}, "-max-msg-size 1000 -max-body-size 5000 -max-rdy-count 20".split())
    if name == "auth":
        return run.asking(site.address)
    return run.NSQ_SIZES, []


def make(seed, number, kinds):
    """Script `number` of a seed."""
    r = random.Random("%d/%d" % (seed, number))
    kind = kinds[number % len(kinds)]
    config = r.choices(sorted(CONFIGS), (1, 4, 3) if kind == "tcp" else (0, 2, 1))[0]
    return {"kind": kind, "config": config, "steps": KINDS[kind](r, CONFIGS[config])}


def show(step, theirs, ours):
    print("%s\n    %s" % (str(step)[:300], "\n    ".join(theirs + (["here:"] + ours if theirs != ours else []))), flush=True)


def wanted(script, found):
    """The row of differences.RANDOM that wants this difference, or None."""
    case = random_checks.Case(script, found)
    return next((row for row in differences.RANDOM if case.fits(row)), None)


class Ended(Exception):
    """A server did, which is a failure whatever else happened."""


class Worker(threading.Thread):
    """One pair of servers for each configuration, and the scripts that fall to it."""

    def __init__(self, stage, number):
        super().__init__(daemon=True)
        self.stage, self.number, self.pairs, self.started = stage, number, {}, 0

    def pair(self, config):
        if config not in self.pairs:
            self.started += 1
            where = os.path.join(self.stage.directory, "%s-%d-%d" % (config, self.number, self.started))
            ours, flags = configuration(config, self.stage.site)
            self.pairs[config] = (Nsqd(self.stage.nsqd, where + "-nsqd", flags), check.Server("%s --config {config}" % self.stage.program, where, 1, 1, ours, tag=os.path.basename(where)))
            for server, data in zip(self.pairs[config], (where + "-nsqd", where)):
                server.wait_ready().data = data
        return self.pairs[config]

    def try_script(self, script, tag, patience=lockstep.PATIENCE, theirs=None):
        pair = self.pair(script["config"])
        try:
            found = lockstep.run(script, pair, run.clean, tag, patience, show if self.stage.show else None, theirs)
        except (OSError, ValueError) as e:
            found = lockstep.Found(0, ["runs"], ["broke: %s: %s" % (type(e).__name__, e)])
        for server, what in zip(pair, ("nsqd", "this Broker")):
            if server.process.poll() is not None:
                said = "%s ended with status %s: %s" % (what, server.process.returncode, server.tail())
                for each in self.pairs.pop(script["config"]):
                    each.kill()
                raise Ended(said)
        return found

    def judge(self, script, tag):
        """None, or the unwanted difference that every run of the script shows."""
        for attempt in range(RUNS):
            found = self.try_script(script, "%s/%d" % (tag, attempt))
            row = found and (wanted(script, found) or self.repairable(script, found, tag))
            if found is None or row:
                self.stage.count(row, attempt)
                return None
        return found

    def repairable(self, script, found, tag, patience=lockstep.PATIENCE):
        """The row of differences.REPAIRS for this difference, if nsqd answers the repaired script as this Broker answers the script itself."""
        what, *arguments = script["steps"][found.index]
        row = next((row for row in differences.REPAIRS if what == "http" and any(row[2](r) != r for r in arguments[0])), None)
        if row is None:
            return None
        better = random_checks.repaired(script, [repair for _, _, repair in differences.REPAIRS])
        again = self.try_script(script, tag + "/repaired", patience, better)
        return row if again is None or wanted(script, again) else None

    def run(self):
        try:
            self.work()
        except Exception:
            self.stage.broke(traceback.format_exc())

    def work(self):
        while (number := self.stage.next()) is not None:
            script = make(self.stage.seed, number, self.stage.kinds)
            try:
                found = self.judge(script, "%d/%d" % (self.stage.seed, number))
                if found:
                    self.fail(number, script, found)
            except Ended as e:
                self.stage.failed(number, script, lockstep.Found(0, ["runs"], [str(e)]))

    def fail(self, number, script, found):
        def still(candidate):
            again = self.try_script(candidate, "short", 1.0)
            same = again and again.ours != lockstep.SILENT and candidate["steps"][again.index][:2] == script["steps"][found.index][:2]
            return again if same and not wanted(candidate, again) and not self.repairable(candidate, again, "short", 1.0) else None
        short, at = shorten(script, found, still, SHORTEN_SECONDS)
        self.stage.failed(number, short, at)

    def close(self):
        for pair in self.pairs.values():
            for server in pair:
                server.kill()


class Stage:
    def __init__(self, args, directory):
        self.show, self.seed, self.kinds, self.directory = args.show, args.seed, args.kinds.split(","), directory
        self.program, self.nsqd = os.path.abspath(args.server), os.path.abspath(args.nsqd)
        self.site = web.Site(run.authorize)
        self.lock, self.number, self.first = threading.Lock(), 0, args.first
        self.most, self.until = args.scripts, time.monotonic() + args.seconds if args.seconds else None
        self.rows, self.unsteady, self.failures, self.ran = {}, 0, 0, 0

    def next(self):
        with self.lock:
            if self.failures >= FAILURES_MOST or (self.most and self.number >= self.most) or (self.until and time.monotonic() >= self.until):
                return None
            self.number += 1
            return self.first + self.number - 1

    def count(self, row, attempt):
        with self.lock:
            self.ran += 1
            self.unsteady += attempt > 0
            if row:
                self.rows[row[:2]] = self.rows.get(row[:2], 0) + 1

    def broke(self, trace):
        with self.lock:
            self.failures += 1
            print("FAIL random: a worker ended\n%s" % trace, flush=True)

    def failed(self, number, script, found):
        index, theirs, ours, _ = found
        with self.lock:
            self.failures += 1
            print("FAIL random %d of seed %d (%s): step %d differs" % (number, self.seed, script["kind"], index))
            print("    nsqd: %s\n    here: %s" % ("\n          ".join(theirs), "\n          ".join(ours)))
            print("\n".join("    " + l for l in pprint.pformat(script, width=160).splitlines()), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--nsqd", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first script")
    parser.add_argument("--scripts", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--kinds", default=",".join(sorted(KINDS)))
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--replay", metavar="FILE")
    parser.add_argument("--show", action="store_true", help="every step and its answers")
    args = parser.parse_args()
    if not args.seconds and not args.scripts:
        args.scripts = 1 if args.replay else 500
    directory = tempfile.mkdtemp(prefix="rustqueue-random-")
    stage = Stage(args, directory)
    workers = [Worker(stage, i) for i in range(1 if args.replay else args.workers)]
    try:
        if args.replay:
            script = ast.literal_eval(pathlib.Path(args.replay).read_text())
            found = workers[0].judge(script, "replay")
            if found:
                stage.failed(0, script, found)
        else:
            for w in workers:
                w.start()
            for w in workers:
                w.join()
    finally:
        for w in workers:
            w.close()
        shutil.rmtree(directory, ignore_errors=True)
    for (decision, what), times in sorted(stage.rows.items()):
        print("wanted %6d x  %s: %s" % (times, decision, what))
    print("%d generated scripts of seed %d against nsqd 1.3.0, %d of them not the same in a first run" % (stage.ran + stage.failures, stage.seed, stage.unsteady))
    print("%d passed, %d failed" % (stage.ran, stage.failures))
    return 1 if stage.failures else 0


if __name__ == "__main__":
    sys.exit(main())
