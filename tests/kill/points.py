#!/usr/bin/env python3
"""SIGKILL at the boundaries (D-43): the worker rustqueued-crash kills itself there, and the ledger of kill.py is held against what comes back.

    points.py --server build/dev/bin/rustqueued --worker build/dev/bin/rustqueued-crash [--rounds 2] [--seed N] [--keep]

    append      records appended, nothing synced           synced      segment synced, nobody answered
    checkpoint  checkpoint's temporary synced, not renamed collect     manifest durable, a finished segment not removed yet
    collected   the segment removed, its sidecar not

An occurrence may come while the directory is opened: repairs append and sync too. Each round dies at one of them, at a drawn occurrence. After it `--verify` and v7decode.py find nothing wrong (K5); at the end everything
acknowledged was delivered (K1) and nothing finished for good came back (K3). One line per round, a last line `N passed, N failed`.
"""
import argparse, os, random, shutil, signal, subprocess, sys, tempfile, time

import kill
from kill import check

POINTS = {"append": 40, "synced": 40, "checkpoint": 2, "collect": 2, "collected": 2}        # occurrences to draw from
COLLECTING = {"queue": {"bootstrap_retention_seconds": 1}, "storage": {"maintenance_startup_delay_seconds": 0}}


class Life(kill.Life):
    def __init__(self, program, worker, data, draw, messages):
        super().__init__(program, data, draw, messages)
        self.worker = worker

    def round_at(self, number, point):
        after = self.draw.randrange(POINTS[point])
        collecting = point.startswith("collect")
        if collecting:
            self.finish_everything(number)
        server = check.Server("%s --config {config}" % self.worker, self.data, 1, 1,
                              check.merge(kill.CONFIG, COLLECTING if collecting else {"storage": {"barrier": "fdatasync"}}),
                              tag="point", env={"RQ_CRASH_AT": "%s:%d" % (point, after)})
        try:
            opened = not collecting and self.wait_ready_or_dead(server)
            if opened:
                # How many messages share a batch depends on the machine, so publishers go on until the point has come.
                stop, threads = kill.traffic(server.tcp, self.ledger, number, self.draw, self.messages if point == "checkpoint" else sys.maxsize)
                if point == "checkpoint":       # a clean stop writes one for each Channel that has something to say
                    self.wait_for_fins(server, 8)
                    self.ledger.stopping = True
                    server.process.send_signal(signal.SIGTERM)
            try:
                status = server.process.wait(300)
            except subprocess.TimeoutExpired:
                status = None
            server.kill()
            if opened:
                stop.set()
                kill.join(threads)
                self.ledger.stopping = False
            if status != -signal.SIGKILL:
                self.ledger.find("the worker did not die at %s:%d but ended with %s: %s" % (point, after, status, server.tail()))
        finally:
            server.kill()
        spent = kill.inspect(self.program, self.data, self.ledger, number)
        return "at %s:%d%s; %d acknowledged, %d finished for good; looked for %.1f s" % (
            point, after, "" if opened or collecting else " while opening", sum(map(len, self.ledger.acknowledged.values())), sum(map(len, self.ledger.finished.values())), spent)

    def wait_ready_or_dead(self, server):
        """Whether it came to serve; a death at the point is the other end, any other raises."""
        try:
            server.wait_ready()
        except check.Mismatch:
            if server.process.poll() != -signal.SIGKILL:
                raise
            return False
        return True

    def wait_for_fins(self, server, more):
        count = lambda: min(len(self.ledger.finished[t, kill.CHANNELS[0]]) for t in kill.TOPICS)
        target, end = count() + more, time.monotonic() + 300
        while count() < target and server.process.poll() is None:
            if time.monotonic() > end:
                raise check.Mismatch("less than %d messages were finished on each Topic within 300 s" % more)
            time.sleep(0.02)

    def finish_everything(self, number):
        """Several sealed segments that nobody needs any more."""
        server = self.start("finish")
        try:
            server.wait_ready()
            stop, threads = kill.traffic(server.tcp, self.ledger, 1000 + number, self.draw, self.messages)
            time.sleep(1.5)
            stop.set()
            kill.join(threads)
            for topic in kill.TOPICS:       # enough for three segments, whatever the traffic came to
                for i in range(30):
                    body = ("%s.fill.%d.%d " % (topic, number, i)).encode() + b"x" * 15000
                    self.ledger.attempt(topic, [body])
                    server.post("/pub?topic=%s" % topic, body)
                    self.ledger.acknowledge(topic, [body])
            kill.drain(server, self.ledger)
            time.sleep(1.1)                 # older than the bootstrap window
            self.stop(server)
        finally:
            server.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--rounds", type=int, default=2, help="at each point")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().getrandbits(32)
    print("seed %d" % seed, flush=True)
    draw = random.Random(seed)
    directory = tempfile.mkdtemp(prefix="rustqueue-points-")
    order = list(POINTS) * args.rounds
    draw.shuffle(order)
    passed = failed = 0
    try:
        life = Life(os.path.abspath(args.server), os.path.abspath(args.worker), os.path.join(directory, "data"), draw, 150)
        steps = [("create", life.create)]
        steps += [("%s %d" % (point, n), lambda n=n, point=point: life.round_at(n, point)) for n, point in enumerate(order, 1)]
        for name, step in steps + [("audit", life.audit)]:
            good = life.judge(name, step)
            passed, failed = passed + good, failed + (not good)
    finally:
        if args.keep or failed:
            print("kept: %s" % directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    if failed:
        print("again with: %s --server %s --worker %s --rounds %d --seed %d" % (sys.argv[0], args.server, args.worker, args.rounds, seed))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
