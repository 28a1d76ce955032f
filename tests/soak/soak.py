#!/usr/bin/env python3
"""A long run of the real process: disk pressure, drains, quiesces, clean restarts and SIGKILLs under steady traffic, a ledger beside it.

    soak.py --server build/dev/bin/rustqueued [--minutes 20] [--seed N] [--keep]

The first 40 % of the time the process is also stopped and killed; the rest is one life, whose memory and descriptors must stay flat.
    S1  a publish that was answered OK is delivered to both Channels
    S2  what is delivered was published, byte for byte, under one id and one timestamp, and no two messages share an id
    S3  a publish that was answered E_THROTTLED or E_DRAINING is never delivered: it was refused
    S4  a message whose FIN was durable is never delivered to that Channel again. At RDY 1 a consumer knows: the next message arrives
        only when the FIN before it gave its credit back
    S5  every other exit than the SIGKILLs is clean, and `--verify` finds nothing wrong after each
    S6  while quiesced nothing is delivered; readiness and its reason are what the Broker was brought into
    S7  in the last life resident memory in its last quarter is no more than 10 % + 8 MiB above that of its second quarter, and
        no descriptors are left behind

One line per event, a last line `N passed, N failed`.
"""
import argparse, array, json, os, pathlib, random, shutil, signal, struct, subprocess, sys, tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
import check

MIB = 1 << 20
TOPICS, CHANNELS, PRODUCERS = ("alpha", "beta"), ("single", "batch"), 2
GONE = (OSError, EOFError)
ROOM = 2048 * MIB       # free space until pressure: others use the volume as well
CONFIG = {
    "queue": {"max_message_bytes": 65536, "message_timeout_ms": 5000, "max_delivery_attempts": 10000, "bootstrap_retention_seconds": 2},
    "limits": {"max_body_bytes": 262144, "connection_delivery_inflight_bytes": 104857600},
    "storage": {"max_segment_bytes": 4 * MIB, "entry_cache_bytes": 8 * MIB, "message_index_cache_bytes": 2 * MIB,
                "maintenance_startup_delay_seconds": 0, "scrub_interval_seconds": 30},
    "shutdown": {"grace_seconds": 10},
}
SENT, ACKNOWLEDGED, REFUSED = 1, 2, 3
BEHIND = 500       # messages of one producer that a Channel may have to come before the producer waits: what one drain has to consume


def body_of(stream, number):
    """Made anew from its name, so that the ledger keeps no bodies."""
    fill = (number * 2654435761) % 97
    length = 20 if fill < 60 else 400 if fill < 90 else 6000 if fill < 96 else 40000
    name = b"%d.%d " % (stream, number)
    return name + bytes([97 + number % 23]) * (length - len(name))


class Stream:
    """What one producer sent: a few bytes a message."""

    def __init__(self, topic):
        self.topic, self.state, self.stored = topic, bytearray(), 0
        self.came = dict.fromkeys(CHANNELS, 0)
        self.ids, self.stamps = array.array("Q"), array.array("q")
        self.delivered = {c: bytearray() for c in CHANNELS}
        self.finished = {c: bytearray() for c in CHANNELS}

    def grow(self):
        self.state.append(SENT)
        self.ids.append(0)
        self.stamps.append(0)
        for c in CHANNELS:
            self.delivered[c].append(0)
            self.finished[c].append(0)
        return len(self.state) - 1

    def behind(self):
        return self.stored - min(self.came.values())


class Ledger:
    def __init__(self):
        self.lock, self.findings = threading.Lock(), []
        self.streams = [Stream(t) for t in TOPICS for _ in range(PRODUCERS)]
        self.deliveries = self.throttled = self.draining = self.redelivered = 0
        self.quiet_since = None         # deliveries are frozen and nothing was in flight

    def find(self, what):
        with self.lock:
            self.findings.append(what)

    def deliver(self, topic, channel, message):
        """Returns (stream, number)."""
        id_, stamp, attempts, body = message
        stream_number, number = (int(x) for x in body.split(b" ", 1)[0].split(b"."))
        with self.lock:
            stream, where = self.streams[stream_number], "%s/%s %s" % (topic, channel, body[:24])
            self.deliveries += 1
            if stream.topic != topic or number >= len(stream.state) or body != body_of(stream_number, number):
                self.findings.append("S2 %s was never published" % where)
                return stream_number, None
            if stream.state[number] == REFUSED:
                self.findings.append("S3 %s was refused and is delivered" % where)
            value = int(id_, 16)
            if stream.ids[number] == 0:
                stream.ids[number], stream.stamps[number] = value, stamp
            elif (stream.ids[number], stream.stamps[number]) != (value, stamp):
                self.findings.append("S2 %s: id or timestamp changed" % where)
            if stream.finished[channel][number]:
                self.findings.append("S4 %s: delivered after a durable FIN" % where)
            if self.quiet_since and time.monotonic() - self.quiet_since > 1:
                self.findings.append("S6 %s: delivered while quiesced" % where)
            self.redelivered += stream.delivered[channel][number] and attempts > 1
            stream.came[channel] += not stream.delivered[channel][number]
            stream.delivered[channel][number] = 1
        return stream_number, number

    def finish(self, channel, key):
        if key and key[1] is not None:
            with self.lock:
                self.streams[key[0]].finished[channel][key[1]] = 1

    def missing(self):
        with self.lock:
            return [(s.topic, c, n) for s in self.streams for c in CHANNELS for n in range(len(s.state))
                    if s.state[n] == ACKNOWLEDGED and not s.delivered[c][n]]

    def counts(self):
        with self.lock:
            return (sum(s.state.count(ACKNOWLEDGED) for s in self.streams), sum(s.state.count(REFUSED) for s in self.streams),
                    sum(s.state.count(SENT) for s in self.streams))

    def shared_ids(self):
        seen = [i for s in self.streams for i in s.ids if i]
        return len(seen) - len(set(seen))


class Traffic:
    """Producers and consumers that connect again whenever the Broker is back, for as long as the soak lasts."""

    def __init__(self, ledger, seed, rate):
        self.ledger, self.rate, self.port = ledger, rate, None
        self.stop, self.publishing, self.threads = threading.Event(), threading.Event(), []
        self.publishing.set()
        draw = random.Random(seed)
        for number, stream in enumerate(ledger.streams):
            self.go(self.publish, stream.topic, number, random.Random(draw.getrandbits(64)))
        for t in TOPICS:
            self.go(self.consume_one_by_one, t, CHANNELS[0])
            for _ in range(2):
                self.go(self.consume_batches, t, CHANNELS[1], random.Random(draw.getrandbits(64)))

    def go(self, function, *args):
        self.threads.append(threading.Thread(target=self.again, args=(function,) + args, daemon=True))
        self.threads[-1].start()

    def again(self, function, *args):
        while not self.stop.is_set():
            try:
                if self.port:
                    with check.Nsq(self.port) as connection:
                        function(connection, *args)
            except GONE:
                pass
            except check.Mismatch as e:
                if not any(text in str(e) for text in ("E_FIN_FAILED", "E_REQ_FAILED", "E_TOUCH_FAILED", "SUB")):
                    self.ledger.find("S2 %s: %s" % (args[0], e))
            self.stop.wait(0.05)

    def publish(self, c, topic, number, draw):
        stream, end = self.ledger.streams[number], time.monotonic() + draw.uniform(5, 60)
        while not self.stop.is_set() and time.monotonic() < end:    # then on a fresh connection
            if not self.publishing.is_set() or stream.behind() > BEHIND:
                time.sleep(0.05)
                continue
            count = draw.randint(2, 16) if draw.random() < 0.25 else 1
            with self.ledger.lock:
                sent = [stream.grow() for _ in range(count)]
            bodies = [body_of(number, n) for n in sent]
            if count > 1:
                c.body("MPUB %s" % topic, struct.pack(">I", count) + b"".join(struct.pack(">I", len(b)) + b for b in bodies))
            elif draw.random() < 0.1:
                c.body("DPUB %s %d" % (topic, draw.randint(1, 3000)), bodies[0])
            else:
                c.body("PUB %s" % topic, bodies[0])
            frame = c.frame(30)
            if frame is None:
                return self.ledger.find("S1 %s: no answer to a publish within 30 s" % topic)
            self.answered(stream, sent, frame)
            time.sleep(draw.uniform(0, 2 * count / self.rate) if frame == (0, b"OK") else 0.02)

    def answered(self, stream, sent, frame):
        kind, text = frame
        refused = kind == 1 and text.split(b" ")[0] in (b"E_THROTTLED", b"E_DRAINING")
        if frame != (0, b"OK") and not refused:
            return self.ledger.find("S1 %s: a publish was answered %s" % (stream.topic, frame))
        with self.ledger.lock:
            for n in sent:
                stream.state[n] = REFUSED if refused else ACKNOWLEDGED
                stream.stored += not refused
            self.ledger.throttled += text.startswith(b"E_THROTTLED")
            self.ledger.draining += text.startswith(b"E_DRAINING")

    def consume_one_by_one(self, c, topic, channel):
        before = None
        c.subscribe(topic, channel, 1)
        while not self.stop.is_set():
            m = c.message(0.2)
            if m is None:
                continue
            key = self.ledger.deliver(topic, channel, m)
            self.ledger.finish(channel, before)
            c.fin(m[0])
            before = key

    def consume_batches(self, c, topic, channel, draw):
        end = time.monotonic() + draw.uniform(5, 60)
        c.subscribe(topic, channel, 40)
        while not self.stop.is_set() and time.monotonic() < end:    # hangs up with messages in flight
            m = c.message(0.2)
            if m is None:
                continue
            self.ledger.deliver(topic, channel, m)
            chance = draw.random()
            if chance < 0.03:
                c.req(m[0], draw.choice((0, 50, 1000)))
            elif chance < 0.999:
                c.fin(m[0])

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(40)


class Soak:
    def __init__(self, args, directory, draw):
        self.program, self.draw, self.directory = os.path.abspath(args.server), draw, directory
        self.data, self.filler = os.path.join(directory, "data"), os.path.join(directory, "filler")
        self.ledger, self.server, self.samples, self.done = Ledger(), None, [], {}
        self.passed = self.failed = 0
        self.traffic = Traffic(self.ledger, draw.getrandbits(64), args.rate)

    # --- the process
    def start(self):
        self.min_free = max(0, self.available() - ROOM)
        limit = {"storage": {"min_free_bytes": self.min_free}}
        self.server = check.Server("%s --config {config}" % self.program, self.data, 1, 2, check.merge(CONFIG, limit), tag="broker")
        self.server.wait_ready()
        self.until("S6 the opening", lambda: self.health() != "recovering")
        self.traffic.port = self.server.tcp

    def available(self):
        volume = os.statvfs(self.directory)
        return volume.f_bavail * volume.f_frsize

    def verify(self):
        done = subprocess.run([self.program, "--verify", self.data], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300)
        if done.returncode != 0:
            self.ledger.find("S5 --verify: status %d, %s" % (done.returncode, done.stdout.decode(errors="replace")[-300:]))

    def end_life(self, kill):
        self.traffic.port = None
        if self.server.process.poll() is not None:
            self.ledger.find("S5 it ended by itself with status %d: %s" % (self.server.process.returncode, self.server.tail()))
        elif kill:
            self.server.kill()
        else:
            began, status = time.monotonic(), self.server.terminate()
            if status != 0:
                self.ledger.find("S5 SIGTERM: status %s after %.1f s: %s" % (status, time.monotonic() - began, self.server.tail()))
        self.verify()

    def alive(self):
        if self.server.process.poll() is not None:
            raise check.Mismatch("S5 the process ended by itself with status %d: %s" % (self.server.process.returncode, self.server.tail()))

    def until(self, what, condition, seconds=40):
        end = time.monotonic() + seconds
        while not condition():
            self.alive()
            if time.monotonic() > end:
                raise check.Mismatch("%s: not within %d s" % (what, seconds))
            time.sleep(0.1)

    def health(self):
        status, body = self.server.get("/v1/health")
        return json.loads(body).get("reason", "ready") if status in (200, 503) else "status %d" % status

    def drain(self, **request):
        self.server.post("/v1/drain", json.dumps(request), {"Content-Type": "application/json"})

    def drained(self, key):
        return json.loads(self.server.get("/v1/drain")[1])[key]

    def consumed(self, what):
        """However slow the machine is, the backlog shrinks."""
        depth = lambda: sum(c["depth"] for t in self.server.stats().values() for c in t["channels"].values())
        least = depth()
        while least > 0:
            self.until("%s: depth %d" % (what, least), lambda: depth() < least)
            least = depth()

    # --- what happens to it
    def event_pressure(self):
        with open(self.filler, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, max(self.available() - self.min_free, 0) + 256 * MIB)
        try:
            self.until("S6 readiness under pressure", lambda: self.health() == "disk_pressure")
            time.sleep(self.draw.uniform(1, 6))
        finally:
            os.unlink(self.filler)
        self.until("S6 readiness after pressure", lambda: self.health() == "ready")
        return "publishing throttled"

    def event_quiesce(self):
        self.drain(enabled=True, freeze_deliveries=True)
        self.until("S6 quiesced", lambda: self.drained("quiesced"))
        if self.health() != "draining":
            raise check.Mismatch("S6 readiness while quiesced: %s" % self.health())
        self.ledger.quiet_since = time.monotonic()
        time.sleep(self.draw.uniform(1, 4))
        if not self.drained("quiesced"):
            raise check.Mismatch("S6 no longer quiesced although nobody lifted it")
        self.ledger.quiet_since = None
        self.drain(enabled=False)
        return "quiesced and lifted"

    def event_drain(self):
        self.drain(enabled=True)
        self.consumed("S6 consumed while draining")
        self.drain(enabled=False)
        return "drained to depth 0 and lifted"

    def event_restart(self):
        self.end_life(kill=False)
        self.start()
        return "clean stop and start"

    def event_kill(self):
        self.end_life(kill=True)
        if self.draw.random() < 0.3:
            early = check.Server("%s --config {config}" % self.program, self.data, 1, 2, CONFIG, tag="broker")
            time.sleep(self.draw.uniform(0, 0.1))
            early.kill()
        self.start()
        return "SIGKILL and start"

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.alive()
            time.sleep(0.5)

    def sample(self):
        """On a thread of its own, once a second; of a process that is just being replaced there is none."""
        while not self.traffic.stop.wait(1):
            try:
                pid = self.server.process.pid
                with open("/proc/%d/statm" % pid) as f:
                    rss = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                self.samples.append((time.monotonic(), rss, len(os.listdir("/proc/%d/fd" % pid))))
            except OSError:
                pass

    def judge(self, name, step):
        known, said, began = len(self.ledger.findings), "", time.monotonic()
        try:
            said = step()
        except (check.Mismatch, OSError, EOFError, subprocess.TimeoutExpired) as e:
            self.ledger.find("%s: %s" % (name, e))
        new = self.ledger.findings[known:]
        self.passed, self.failed = self.passed + (not new), self.failed + bool(new)
        print("%s %s (%.1f s): %s" % ("FAIL" if new else "ok  ", name, time.monotonic() - began, said), flush=True)
        for f in new[:10]:
            print("    %s" % f, flush=True)
        if new and self.server.process.poll() is not None:
            self.start()

    def phase(self, end, events):
        while time.monotonic() < end and self.failed < 10:
            event = self.draw.choice(events)
            self.done[event] = self.done.get(event, 0) + 1
            self.judge("%s %d" % (event, self.done[event]), getattr(self, "event_" + event))
            self.rest(min(self.draw.uniform(2, 12), max(0, end - time.monotonic())))

    def steady(self):
        """S7 over the samples of the last life."""
        quarter = len(self.samples) // 4
        mean = lambda part, index: sum(s[index] for s in part) / len(part)
        second, last = self.samples[quarter:2 * quarter], self.samples[3 * quarter:]
        if quarter < 5:
            return "too short to judge memory: %d samples" % len(self.samples)
        rss, fds = [mean(p, 1) / MIB for p in (second, last)], [mean(p, 2) for p in (second, last)]
        if rss[1] > rss[0] * 1.1 + 8:
            self.ledger.find("S7 resident memory grew from %.1f to %.1f MiB" % tuple(rss))
        if fds[1] > fds[0] + 20:
            self.ledger.find("S7 open descriptors grew from %.0f to %.0f" % tuple(fds))
        return "resident %.1f MiB, then %.1f MiB; peak %.1f MiB; descriptors %.0f, then %.0f; %.0f s" % (
            *rss, max(s[1] for s in self.samples) / MIB, *fds, self.samples[-1][0] - self.samples[0][0])

    def audit(self):
        self.traffic.publishing.clear()
        end = time.monotonic() + 120
        while self.ledger.missing() and time.monotonic() < end:
            self.alive()
            time.sleep(1)
        self.consumed("S1 depth 0")
        self.traffic.end()
        self.end_life(kill=False)
        for topic, channel, number in self.ledger.missing()[:5]:
            self.ledger.find("S1 %s/%s: acknowledged message %d never came" % (topic, channel, number))
        if self.ledger.shared_ids():
            self.ledger.find("S2 %d ids stand for two messages" % self.ledger.shared_ids())
        return "%d acknowledged, %d refused, %d unanswered; %d deliveries, %d of them again; throttled %d times, draining %d times" % (
            self.ledger.counts() + (self.ledger.deliveries, self.ledger.redelivered, self.ledger.throttled, self.ledger.draining))

    def run(self, minutes):
        began = time.monotonic()
        self.start()
        threading.Thread(target=self.sample, daemon=True).start()
        self.phase(began + minutes * 24, ("pressure", "quiesce", "drain", "restart", "kill", "kill", "kill"))
        self.samples.clear()
        self.phase(began + minutes * 60, ("pressure", "quiesce", "drain"))
        self.judge("steady", self.steady)
        self.judge("audit", self.audit)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--rate", type=float, default=200, help="messages a second of each of the %d producers" % (PRODUCERS * len(TOPICS)))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().getrandbits(32)
    print("seed %d" % seed, flush=True)
    directory = tempfile.mkdtemp(prefix="rustqueue-soak-")
    soak = Soak(args, directory, random.Random(seed))
    try:
        soak.run(args.minutes)
    finally:
        if soak.server:
            soak.server.kill()
        if args.keep or soak.failed:
            print("kept: %s" % directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print("%d passed, %d failed" % (soak.passed, soak.failed))
    return 1 if soak.failed else 0


if __name__ == "__main__":
    sys.exit(main())
