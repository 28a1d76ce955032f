#!/usr/bin/env python3
"""SIGKILL on real files: publishers and consumers run, the process is killed at random moments, and a ledger is held against what comes back.

    kill.py --server build/dev/bin/rustqueued [--rounds 30] [--seed N] [--keep]

Over ten rounds at a time on one data directory:
    K1  a publish that was answered OK is delivered to every Channel
    K2  what is delivered was published, byte for byte, and a message id never stands for two messages
    K3  a message whose FIN was durable is never delivered to that Channel again. A consumer at RDY 1 knows: the next message
        arrives only when the FIN before it gave its credit back, and that is after its barrier
    K4  the timestamp of a message never changes, and it is delivered with at least attempt 1
    K5  after each kill `rustqueued --verify` and v7decode.py find nothing wrong with the directory

After each ten everything is consumed and held against the ledger, and the next ten start with an empty directory. Some rounds are
killed while the process opens the directory. One line per round, a last line `N passed, N failed`.
"""
import argparse, os, pathlib, random, shutil, struct, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
import check, v7decode

# Small segments, so that rounds cross rotations; two Topics share barriers. No message times out, however slow the machine is: the arrival of the next
# message would not prove that a FIN is durable.
CONFIG = {
    "queue": {"max_message_bytes": 16384, "message_timeout_ms": 60000, "max_delivery_attempts": 1000, "bootstrap_retention_seconds": 86400},
    "limits": {"max_body_bytes": 65536},
    "storage": {"max_segment_bytes": 131072},
}
TOPICS, CHANNELS = ("alpha", "beta"), ("first", "second")
GONE = (OSError, EOFError)
LIFE = 10


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.attempted, self.acknowledged = {}, {}          # topic -> bodies
        self.by_id, self.by_body = {}, {}                   # (topic, id) -> (body, timestamp), and back
        self.finished, self.delivered = {}, {}              # (topic, channel) -> ids, bodies
        self.findings = []
        self.stopping = False                               # the Broker was told to stop, and may refuse publishes
        for t in TOPICS:
            self.attempted[t], self.acknowledged[t] = set(), set()
            for c in CHANNELS:
                self.finished[t, c], self.delivered[t, c] = set(), set()

    def find(self, what):
        with self.lock:
            self.findings.append(what)

    def attempt(self, topic, bodies):
        with self.lock:
            self.attempted[topic].update(bodies)

    def acknowledge(self, topic, bodies):
        with self.lock:
            self.acknowledged[topic].update(bodies)

    def deliver(self, topic, channel, message):
        id_, stamp, attempts, body = message
        where = "%s/%s %s" % (topic, channel, id_)
        with self.lock:
            if body not in self.attempted[topic]:
                self.findings.append("K2 %s: body %r was never published" % (where, body[:40]))
            known = self.by_id.setdefault(id_, (topic, body, stamp))
            if known[:2] != (topic, body):
                self.findings.append("K2 %s: the id stood for %r of %s before" % (where, known[1][:40], known[0]))
            elif known[2] != stamp:
                self.findings.append("K4 %s: timestamp %d was %d" % (where, stamp, known[2]))
            if self.by_body.setdefault((topic, body), id_) != id_:
                self.findings.append("K2 %s: body %r had id %s before" % (where, body[:40], self.by_body[topic, body]))
            if id_ in self.finished[topic, channel]:
                self.findings.append("K3 %s: delivered after a durable FIN" % where)
            if attempts < 1:
                self.findings.append("K4 %s: attempts %d" % (where, attempts))
            self.delivered[topic, channel].add(body)

    def finish(self, topic, channel, id_):
        with self.lock:
            self.finished[topic, channel].add(id_)

    def missing(self):
        return [(t, c, b) for t in TOPICS for c in CHANNELS for b in sorted(self.acknowledged[t] - self.delivered[t, c])]


def publish(port, ledger, stop, topic, name, seed, limit):
    """PUB, MPUB and DPUB with a few commands in flight; ends when the process is gone or `limit` messages went out."""
    draw, count, waiting = random.Random(seed), 0, []
    try:
        with check.Nsq(port) as c:
            while (count < limit and not stop.is_set()) or waiting:
                if count < limit and not stop.is_set() and len(waiting) < 6:
                    kind = draw.choice(("PUB", "PUB", "MPUB", "DPUB"))
                    bodies = []
                    for _ in range(draw.randint(1, 12) if kind == "MPUB" else 1):
                        fill = draw.choice((0, 0, 0, 20, 20, 200, 400, 900, 900, 900, 900, 6000))
                        bodies.append(("%s.%d " % (name, count)).encode() + b"x" * draw.randint(0, fill))
                        count += 1
                    ledger.attempt(topic, bodies)
                    if kind == "MPUB":
                        c.body("MPUB %s" % topic, struct.pack(">I", len(bodies)) + b"".join(struct.pack(">I", len(b)) + b for b in bodies))
                    elif kind == "DPUB":
                        c.body("DPUB %s %d" % (topic, draw.randint(1, 400)), bodies[0])
                    else:
                        c.body("PUB %s" % topic, bodies[0])
                    waiting.append(bodies)
                    time.sleep(draw.uniform(0, 0.006))      # so that publishing lasts until the kill
                    continue
                frame = c.frame(120)
                if ledger.stopping and frame[0] == 1 and frame[1].startswith(b"E_DRAINING "):
                    return                                  # refused by a Broker that was told to stop
                if frame != (0, b"OK"):
                    ledger.find("K1 %s: publish answered %s" % (topic, frame))
                    return
                ledger.acknowledge(topic, waiting.pop(0))
    except GONE:
        pass


def consume_one_by_one(port, ledger, stop, topic, channel):
    """RDY 1: the arrival of a message proves that the FIN before it is durable."""
    before = None
    try:
        with check.Nsq(port) as c:
            c.subscribe(topic, channel, 1)
            while not stop.is_set():
                m = c.message(0.2)
                if m is None:
                    continue
                ledger.deliver(topic, channel, m)
                if before:
                    ledger.finish(topic, channel, before)
                c.fin(m[0])
                before = m[0]
    except GONE + (check.Mismatch,) as e:
        if isinstance(e, check.Mismatch):
            ledger.find("K3 %s/%s: %s" % (topic, channel, e))


def consume_many(port, ledger, stop, topic, channel, seed):
    """RDY 40: finishes most, requeues some, and leaves some without an answer."""
    draw = random.Random(seed)
    try:
        with check.Nsq(port) as c:
            c.subscribe(topic, channel, 40)
            while not stop.is_set():
                m = c.message(0.2)
                if m is None:
                    continue
                ledger.deliver(topic, channel, m)
                chance = draw.random()
                if chance < 0.86:
                    c.fin(m[0])
                elif chance < 0.95:
                    c.req(m[0], draw.choice((0, 0, 50, 300)))
                elif chance < 0.97:
                    c.send(b"TOUCH %s\n" % m[0].encode())
                    c.fin(m[0])
    except GONE + (check.Mismatch,) as e:
        if isinstance(e, check.Mismatch) and b"E_FIN_FAILED" not in str(e).encode():
            ledger.find("K3 %s/%s: %s" % (topic, channel, e))


def traffic(port, ledger, number, draw, limit):
    stop, threads = threading.Event(), []

    def go(function, *args):
        threads.append(threading.Thread(target=function, args=args, daemon=True))
        threads[-1].start()
    for t in TOPICS:
        for p in range(2):
            go(publish, port, ledger, stop, t, "%s.%d.%d" % (t, number, p), draw.getrandbits(64), limit)
        go(consume_one_by_one, port, ledger, stop, t, CHANNELS[0])
        go(consume_many, port, ledger, stop, t, CHANNELS[1], draw.getrandbits(64))
    return stop, threads


def join(threads):
    for t in threads:
        t.join(180)
        if t.is_alive():
            raise check.Mismatch("a client did not end")


def inspect(program, data, ledger, number):
    """K5. Returns what it took, in seconds."""
    began = time.monotonic()
    done = subprocess.run([program, "--verify", data], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    if done.returncode != 0:
        ledger.find("K5 round %d: --verify: status %d, %s" % (number, done.returncode, done.stdout.decode(errors="replace")[-300:]))
    found = v7decode.decode(data, 1, None, messages=False)
    for what in found["violations"] + found["refusals"]:
        ledger.find("K5 round %d: decoder: %s" % (number, what))
    return time.monotonic() - began


def drain(server, ledger):
    """Consumes until every acknowledged message was seen on every Channel and nothing is left."""
    stop, threads = threading.Event(), []
    for t in TOPICS:
        for c in CHANNELS:
            threads.append(threading.Thread(target=consume_one_by_one, args=(server.tcp, ledger, stop, t, c), daemon=True))
            threads[-1].start()
    end, empty = time.monotonic() + 600, None
    while True:
        left = sum(c["depth"] for t in server.stats().values() for c in t["channels"].values())
        empty = None if left else empty or time.monotonic()
        if empty and (not ledger.missing() or time.monotonic() - empty > 3):
            break
        if time.monotonic() > end:
            ledger.find("K1 not drained within 600 s: depth %d" % left)
            break
        time.sleep(0.1)
    stop.set()
    join(threads)


class Life:
    """One data directory from its creation to its audit."""

    def __init__(self, program, data, draw, messages):
        self.program, self.data, self.draw, self.messages, self.ledger = program, data, draw, messages, Ledger()
        os.makedirs(os.path.dirname(data), exist_ok=True)

    def judge(self, name, step):
        """Runs one step; prints what it says and what the ledger found. Returns whether nothing was found."""
        known, said = len(self.ledger.findings), ""
        try:
            said = step()
        except (check.Mismatch, OSError, EOFError, subprocess.TimeoutExpired) as e:
            self.ledger.find("%s: %s" % (name, e))
        new = self.ledger.findings[known:]
        print("%s %s: %s" % ("FAIL" if new else "ok  ", name, said), flush=True)
        for f in new[:10]:
            print("    %s" % f, flush=True)
        return not new

    def start(self, tag):
        return check.Server("%s --config {config}" % self.program, self.data, 1, 1, CONFIG, tag=tag)

    def stop(self, server):
        status = server.terminate()
        if status != 0:
            self.ledger.find("clean stop: exit status %d: %s" % (status, server.tail()))

    def create(self):
        server = self.start("create")
        try:
            server.wait_ready()
            for t in TOPICS:
                server.post("/topic/create?topic=%s" % t)
                for c in CHANNELS:
                    server.post("/channel/create?topic=%s&channel=%s" % (t, c))
            self.stop(server)
        finally:
            server.kill()
        return "an empty directory"

    def round(self, number):
        server, note = self.start("round"), ""
        try:
            if self.draw.random() < 0.15:
                moment, note = self.draw.uniform(0.0, 0.06), " while opening"
                time.sleep(moment)
                server.kill()
            else:
                server.wait_ready()
                stop, threads = traffic(server.tcp, self.ledger, number, self.draw, self.messages)
                moment = self.draw.choice((self.draw.uniform(0.02, 0.3), self.draw.uniform(0.3, 1.0)))
                time.sleep(moment)
                ended = server.process.poll()
                server.kill()
                if ended is not None:
                    self.ledger.find("the process ended by itself with status %d: %s" % (ended, server.tail()))
                stop.set()
                join(threads)
        finally:
            server.kill()
        spent = inspect(self.program, self.data, self.ledger, number)
        return "after %.2f s%s; %d acknowledged, %d finished for good; looked for %.1f s" % (
            moment, note, sum(map(len, self.ledger.acknowledged.values())), sum(map(len, self.ledger.finished.values())), spent)

    def audit(self):
        server = self.start("audit")
        try:
            server.wait_ready()
            drain(server, self.ledger)
            self.stop(server)
        finally:
            server.kill()
        inspect(self.program, self.data, self.ledger, 0)
        gone = self.ledger.missing()
        for t, c, b in gone[:5]:
            self.ledger.find("K1 %s/%s: acknowledged %r never came" % (t, c, b[:40]))
        return "%d acknowledged on each of %d Channels, %d never came" % (
            sum(map(len, self.ledger.acknowledged.values())), len(CHANNELS), len(gone))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--messages", type=int, default=400, help="of one publisher in one round, at most")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().getrandbits(32)
    print("seed %d" % seed, flush=True)
    draw = random.Random(seed)
    program = os.path.abspath(args.server)
    directory = tempfile.mkdtemp(prefix="rustqueue-kill-")
    passed = failed = 0
    try:
        for first in range(1, args.rounds + 1, LIFE):
            life = Life(program, os.path.join(directory, "data-%d" % first), draw, args.messages)
            rounds = range(first, min(first + LIFE, args.rounds + 1))
            for step, name in [(life.create, "create")] + [(lambda n=n: life.round(n), "kill %d" % n) for n in rounds] + [(life.audit, "audit")]:
                good = life.judge(name, step)
                passed, failed = passed + good, failed + (not good)
            if failed > 20:
                break
    finally:
        if args.keep or failed:
            print("kept: %s" % directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    if failed:
        print("again with: %s --server %s --rounds %d --seed %d" % (sys.argv[0], args.server, args.rounds, seed))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
