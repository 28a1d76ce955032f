#!/usr/bin/env python3
"""SIGKILL on real files: publishers and consumers run, the process is killed at random moments, and a ledger is held against what comes back.

    kill.py --server build/dev/bin/rustqueued [--rounds 30] [--seed N] [--keep]

Over all rounds on one data directory:
    K1  a publish that was answered OK is delivered to every Channel
    K2  what is delivered was published, byte for byte, and a message id never stands for two messages
    K3  a message whose FIN was durable is never delivered to that Channel again. A consumer at RDY 1 knows: the next message
        arrives only when the FIN before it gave its credit back, and that is after its barrier
    K4  the timestamp of a message never changes, and it is delivered with at least attempt 1
    K5  after each kill `rustqueued --verify` and v7decode.py find nothing wrong with the directory

Some rounds are killed while the process opens the directory. One line per round, a last line `N passed, N failed`.
"""
import argparse, os, pathlib, random, shutil, struct, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
import check, v7decode

# Small segments, so that rounds cross rotations; two Topics share barriers.
CONFIG = {
    "queue": {"max_message_bytes": 16384, "message_timeout_ms": 3000, "max_delivery_attempts": 1000, "bootstrap_retention_seconds": 86400},
    "limits": {"max_body_bytes": 65536},
    "storage": {"max_segment_bytes": 131072},
}
TOPICS, CHANNELS = ("alpha", "beta"), ("first", "second")
GONE = (OSError, EOFError)


class Ledger:
    def __init__(self):
        self.lock = threading.Lock()
        self.attempted, self.acknowledged = {}, {}          # topic -> bodies
        self.by_id, self.by_body = {}, {}                   # (topic, id) -> (body, timestamp), and back
        self.finished, self.delivered = {}, {}              # (topic, channel) -> ids, bodies
        self.findings = []
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
                        fill = draw.choice((0, 0, 20, 200, 900, 900, 6000))
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
                    continue
                frame = c.frame(15)
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
        t.join(30)


def inspect(program, data, ledger, number):
    """K5. Returns what it took, in seconds."""
    began = time.monotonic()
    done = subprocess.run([program, "--verify", data], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    if done.returncode != 0:
        ledger.find("K5 round %d: --verify: status %d, %s" % (number, done.returncode, done.stdout.decode(errors="replace")[-300:]))
    found = v7decode.decode(data, 1, None, messages=False)
    for what in found["violations"] + found["refusals"]:
        ledger.find("K5 round %d: decoder: %s" % (number, what))
    return time.monotonic() - began


def drain(server, ledger, draw):
    """Consumes until every acknowledged message was seen on every Channel and nothing is left."""
    stop, threads = threading.Event(), []
    for t in TOPICS:
        for c in CHANNELS:
            threads.append(threading.Thread(target=consume_one_by_one, args=(server.tcp, ledger, stop, t, c), daemon=True))
            threads[-1].start()
    end = time.monotonic() + 120
    while time.monotonic() < end:
        stats = server.stats()
        left = sum(c["depth"] for t in stats.values() for c in t["channels"].values())
        if left == 0 and not ledger.missing():
            break
        time.sleep(0.1)
    else:
        ledger.find("K1 not drained within 120 s: depth %d" % left)
    stop.set()
    join(threads)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--messages", type=int, default=250, help="of one publisher in one round, at most")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().getrandbits(32)
    print("seed %d" % seed, flush=True)
    draw, ledger = random.Random(seed), Ledger()
    program = os.path.abspath(args.server)
    command = "%s --config {config}" % program
    directory = tempfile.mkdtemp(prefix="rustqueue-kill-")
    data = os.path.join(directory, "data")
    passed = failed = 0

    def start(tag):
        return check.Server(command, data, 1, 1, CONFIG, tag=tag)
    try:
        server = start("create").wait_ready()
        for t in TOPICS:
            for c in CHANNELS:
                server.post("/topic/create?topic=%s" % t)
                server.post("/channel/create?topic=%s&channel=%s" % (t, c))
        status = server.terminate()
        if status != 0:
            ledger.find("clean stop: exit status %d: %s" % (status, server.tail()))
        for number in range(1, args.rounds + 1):
            known = len(ledger.findings)
            note, moment = "", 0.0
            server = start("round")
            try:
                if draw.random() < 0.2:
                    moment = draw.uniform(0.0, 0.06)
                    time.sleep(moment)
                    note = "while opening"
                    server.kill()
                    threads = []
                else:
                    server.wait_ready()
                    stop, threads = traffic(server.tcp, ledger, number, draw, args.messages)
                    moment = draw.choice((draw.uniform(0.02, 0.3), draw.uniform(0.3, 1.2)))
                    time.sleep(moment)
                    ended = server.process.poll()
                    server.kill()
                    if ended is not None:
                        ledger.find("round %d: the process ended by itself with status %d: %s" % (number, ended, server.tail()))
                    stop.set()
                join(threads)
                spent = inspect(program, data, ledger, number)
            except (check.Mismatch, subprocess.TimeoutExpired) as e:
                ledger.find("round %d: %s" % (number, e))
                spent = 0
            finally:
                server.kill()
            new = ledger.findings[known:]
            passed, failed = passed + (not new), failed + bool(new)
            print("%s kill %d after %.2f s%s: %d acknowledged, %d known finished, looked for %.1f s" % (
                "FAIL" if new else "ok  ", number, moment, " " + note if note else "", sum(map(len, ledger.acknowledged.values())),
                sum(map(len, ledger.finished.values())), spent), flush=True)
            for f in new[:10]:
                print("    %s" % f, flush=True)
            if len(ledger.findings) > 200:
                break
        known = len(ledger.findings)
        try:
            server = start("drain").wait_ready()
            drain(server, ledger, draw)
            status = server.terminate()
            if status != 0:
                ledger.find("clean stop: exit status %d: %s" % (status, server.tail()))
            inspect(program, data, ledger, args.rounds + 1)
        except (check.Mismatch, OSError, EOFError, subprocess.TimeoutExpired) as e:
            ledger.find("drain: %s" % e)
        finally:
            server.kill()
        gone = ledger.missing()
        for t, c, b in gone[:5]:
            ledger.find("K1 %s/%s: acknowledged %r never came" % (t, c, b[:40]))
        new = ledger.findings[known:]
        passed, failed = passed + (not new), failed + bool(new)
        print("%s audit: %d acknowledged on each of %d Channels, %d never came" % (
            "FAIL" if new else "ok  ", sum(map(len, ledger.acknowledged.values())), len(CHANNELS), len(gone)))
        for f in new[:10]:
            print("    %s" % f)
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
