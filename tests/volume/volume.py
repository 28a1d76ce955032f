#!/usr/bin/env python3
"""Disk pressure, protective eviction and a volume without a free byte, on a real small file system (page 30 section 8, D-13, D-42b).

    volume.py --server build/dev/bin/rustqueued [--keep]

The script runs itself again in a user and mount namespace of its own and mounts a tmpfs of 96 MiB there. Where that is not permitted
it says so and counts as skipped. One line per step, a last line `N passed, N failed, N skipped`.
"""
import argparse, glob, json, os, pathlib, re, shutil, signal, struct, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
import check

KIB, MIB = 1 << 10, 1 << 20
VOLUME = 96 * MIB
BODY = 64 * KIB
CONFIG = {
    "queue": {"max_message_bytes": 128 * KIB, "message_timeout_ms": 60000, "bootstrap_retention_seconds": 1},
    "limits": {"max_body_bytes": 512 * KIB},
    "storage": {"max_segment_bytes": MIB, "disk_high_watermark_percent": 80, "disk_low_watermark_percent": 60, "min_free_bytes": 4 * MIB,
                "maintenance_startup_delay_seconds": 0, "entry_cache_bytes": 4 * MIB},
}


class Failed(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Failed(what)


def body_of(number):
    return b"%d " % number + b"x" * (BODY - 16)


def until(what, condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        need(time.monotonic() < end, "%s: not within %d s" % (what, seconds))
        time.sleep(0.05)


class Volume:
    """The Broker on the small volume, and what it acknowledged."""

    def __init__(self, program, mount):
        self.program, self.mount, self.server = program, mount, None
        # Configuration and log stay outside the volume, so that they find room when it is full.
        self.data = mount + ".data"
        os.mkdir(os.path.join(mount, "data"))
        os.symlink(os.path.join(mount, "data"), self.data)
        self.filler = os.path.join(mount, "filler")
        self.next, self.acknowledged, self.consumed = 0, set(), set()

    def reset(self):
        """An empty directory; what was published before is forgotten."""
        shutil.rmtree(os.path.join(self.mount, "data"))
        os.mkdir(os.path.join(self.mount, "data"))
        self.acknowledged, self.consumed = set(), set()

    def start(self, grace_seconds=5, **storage):
        self.server = check.Server("%s --config {config}" % self.program, self.data, 1, 1,
                                   check.merge(CONFIG, {"storage": storage, "shutdown": {"grace_seconds": grace_seconds}}))
        self.server.wait_ready()
        until("the opening", lambda: self.health() != "recovering")

    def stop(self):
        status = self.server.terminate()
        need(status == 0, "exit status %s: %s" % (status, self.server.tail()))

    def health(self):
        status, body = self.server.get("/v1/health")
        answer = json.loads(body)
        need(status == (503 if "reason" in answer else 200), "/v1/health: %d %s" % (status, body))
        return answer.get("reason", "ready")

    def metric(self, name):
        return int(float(re.search(rb"^%s (\S+)$" % name.encode(), self.server.get("/metrics")[1], re.M).group(1)))

    def used(self):
        at = os.statvfs(self.mount)
        return 100 * (at.f_blocks - at.f_bavail) // at.f_blocks

    def publish_until_throttled(self, c, limit=VOLUME // BODY):
        """On one connection that must stay open (D-13). Returns how many were stored."""
        stored = 0
        while stored <= limit:
            number, self.next = self.next, self.next + 1
            c.body("PUB t", body_of(number))
            kind, text = c.frame()
            if (kind, text) == (0, b"OK"):
                stored += 1
                self.acknowledged.add(number)
                continue
            need((kind, text) == (1, b"E_THROTTLED PUB disk pressure"), "a publish was answered %s" % text)
            return stored
        raise Failed("%d publishes were stored and none was throttled" % stored)

    def consume(self, channel, seconds=60, want=None):
        """Until everything acknowledged and not yet consumed has come, or nothing comes any more."""
        target = self.acknowledged if want is None else want
        with check.Nsq(self.server.tcp) as c:
            c.subscribe("t", channel, 50)
            quiet = 0
            while not target <= self.consumed and quiet < seconds:
                m = c.message(1)
                quiet = quiet + 1 if m is None else 0
                if m is None:
                    continue
                number = int(m[3].split(b" ")[0])
                need(m[3] == body_of(number) and number in self.acknowledged, "message %d was never acknowledged" % number)
                self.consumed.add(number)
                c.fin(m[0])
            # The FINs are durable when their room is back: the depth says so.
            until("the FINs", lambda: self.server.stats()["t"]["channels"][channel]["in_flight_count"] == 0)

    def fill(self):
        fd, piece = os.open(self.filler, os.O_WRONLY | os.O_CREAT, 0o600), 64 * KIB
        while piece:
            try:
                os.write(fd, bytes(piece))
            except OSError:
                piece //= 2
        os.close(fd)

    # --- steps
    def step_filled_until_publishing_is_throttled(self):
        self.start()
        self.server.post("/channel/create?topic=t&channel=c", want=404)
        self.server.post("/topic/create?topic=t")
        self.server.post("/channel/create?topic=t&channel=c")
        need(self.health() == "ready", "not ready on an empty volume: %s" % self.health())
        with check.Nsq(self.server.tcp) as c:
            stored = self.publish_until_throttled(c)
            need(self.health() == "disk_pressure", "readiness says %s" % self.health())
            c.body("MPUB t", struct.pack(">II", 1, 5) + b"hello")
            need(c.frame() == (1, b"E_THROTTLED MPUB disk pressure"), "MPUB is not throttled")
            c.body("DPUB t 10", b"hello")
            need(c.frame() == (1, b"E_THROTTLED DPUB disk pressure"), "DPUB is not throttled")
            c.subscribe("t", "later")           # the same connection goes on
        status, answer = self.server.request("POST", "/pub?topic=t", b"x")
        need(status == 429 and b"E_THROTTLED" in answer, "/pub: %d %s" % (status, answer))
        need(self.server.get("/ping") == (200, b"OK"), "/ping")
        need(self.metric("rustqueue_disk_pressure") == 1, "the metric does not say it")
        return "%d messages at %d %%" % (stored, self.used())

    def step_consumed_and_collected_until_it_ends(self):
        self.consume("c")
        need(self.consumed == self.acknowledged, "%d messages are lost" % len(self.acknowledged - self.consumed))
        self.server.post("/channel/delete?topic=t&channel=later")
        until("the end of the pressure", lambda: self.health() == "ready")
        with check.Nsq(self.server.tcp) as c:
            c.body("PUB t", body_of(self.next))
            c.expect_ok("a publish after the pressure")
        self.acknowledged.add(self.next)
        self.next += 1
        return "publishing again at %d %%" % self.used()

    def step_filled_by_a_stranger_to_the_last_byte(self):
        with check.Nsq(self.server.tcp) as c:
            for _ in range(20):
                c.body("PUB t", body_of(self.next))
                c.expect_ok("PUB")
                self.acknowledged.add(self.next)
                self.next += 1
            self.fill()
            until("pressure", lambda: self.health() == "disk_pressure")
            self.publish_until_throttled(c)
            self.consume("c")           # FINs find room in what was given back from the reserve
        need(self.consumed == self.acknowledged, "%d messages are lost" % len(self.acknowledged - self.consumed))
        return "consumed and finished at %d %%" % self.used()

    def step_killed_and_opened_without_a_free_byte(self):
        os.unlink(self.filler)
        self.stop()
        self.start()                # takes the reserve; a running one waits a minute before it takes it again
        lock = os.path.join(self.data, ".rustqueue.lock")
        until("the reserve", lambda: os.stat(lock).st_blocks * 512 >= 16 * MIB)
        with check.Nsq(self.server.tcp) as c:
            for _ in range(30):
                c.body("PUB t", body_of(self.next))
                c.expect_ok("PUB")
                self.acknowledged.add(self.next)
                self.next += 1
        self.server.process.send_signal(signal.SIGSTOP)         # so that it does not give the reserve back before the kill
        self.fill()
        self.server.kill()
        self.start()
        need(self.health() == "disk_pressure", "readiness says %s" % self.health())
        with check.Nsq(self.server.tcp) as c:
            self.publish_until_throttled(c, 0)
        self.consume("c")
        need(self.consumed == self.acknowledged, "%d messages are lost" % len(self.acknowledged - self.consumed))
        self.stop()
        os.unlink(self.filler)
        return "opened, consumed, finished and stopped cleanly"

    def step_a_write_that_fails_ends_the_process(self):
        """Fail closed (page 31 section 1.8). The stranger is faster than the guard's next look, or the attempt counts for nothing."""
        self.start(grace_seconds=3600)      # which it does not wait for, nor for a client
        for _ in range(100):
            until("room", lambda: self.health() == "ready")
            with check.Nsq(self.server.tcp) as c:
                # Half a segment at once: more than what is left of the blocks that the files have.
                self.fill()
                bodies = [body_of(self.next + i) for i in range(7)]
                c.body("MPUB t", struct.pack(">I", 7) + b"".join(struct.pack(">I", len(b)) + b for b in bodies))
                try:
                    kind, text = c.frame()
                except (OSError, EOFError):
                    kind, text = 1, b"E_CLOSED"
                need(kind == 1, "a publish without a free byte was answered OK")
            os.unlink(self.filler)
            if not text.startswith(b"E_THROTTLED"):
                break
        else:
            raise Failed("the guard was faster a hundred times")
        status = self.server.process.wait(120)
        need(status == 1 and "Error: storage fault" in self.server.output(), "exit status %d: %s" % (status, self.server.tail()))
        self.start()
        with check.Nsq(self.server.tcp) as c:
            c.body("PUB t", body_of(self.next + 7))
            c.expect_ok("a publish after the restart")
        maybe = set(range(self.next, self.next + 7))
        self.acknowledged |= maybe | {self.next + 7}
        self.consume("c", want=self.acknowledged - maybe)
        need(self.acknowledged - maybe <= self.consumed, "%d messages are lost" % len(self.acknowledged - maybe - self.consumed))
        self.stop()
        self.reset()
        return "%s, exit status 1" % text.split(b" ")[0].decode()

    def step_evicted_only_when_that_is_switched_on(self):
        self.start(disk_pressure_grace_seconds=1)
        self.server.post("/topic/create?topic=t")
        self.server.post("/channel/create?topic=t&channel=c")
        with check.Nsq(self.server.tcp) as c:
            self.publish_until_throttled(c)
        time.sleep(4)
        need(self.metric("rustqueue_protective_evictions_total") == 0, "it evicted although that is off")
        need(self.health() == "disk_pressure", "readiness says %s" % self.health())
        self.stop()
        self.start(disk_pressure_grace_seconds=1, protective_eviction_enabled=True, disk_high_watermark_percent=60,
                   disk_low_watermark_percent=45)
        until("the end of the pressure", lambda: self.metric("rustqueue_protective_evictions_total") > 0 and self.health() == "ready")
        segments = self.metric("rustqueue_protective_evictions_total")
        evicted = self.metric("rustqueue_protective_evicted_messages_total")
        audits = glob.glob(os.path.join(self.data, "audit", "eviction-*.json"))
        need(segments > 0 and len(audits) == segments, "%d evictions and %d audit files" % (segments, len(audits)))
        told = [json.load(open(path)) for path in audits]
        need(sum(t["messages"] for t in told) == evicted, "the metric says %d evicted messages, the audit files %s" % (evicted, told))
        # One producer and no failed publish: message n of those acknowledged has position n.
        through = max(t["through_position"] for t in told)
        gone, kept = sorted(self.acknowledged)[:through], sorted(self.acknowledged)[through:]
        before = set(self.consumed)
        self.consume("c", want=set(kept))
        need(self.consumed - before <= set(kept), "an evicted message was delivered")
        need(set(kept) <= self.consumed, "a message that was not evicted is lost")
        self.stop()
        return "%d segments with %d messages, the oldest; %d unfinished gone, %d kept and consumed" % (
            segments, evicted, len(set(gone) - before), len(kept))

    STEPS = (step_filled_until_publishing_is_throttled, step_consumed_and_collected_until_it_ends,
             step_filled_by_a_stranger_to_the_last_byte, step_killed_and_opened_without_a_free_byte,
             step_a_write_that_fails_ends_the_process, step_evicted_only_when_that_is_switched_on)


def run_steps(program, mount):
    volume, passed, failed = Volume(program, mount), 0, 0
    for step in Volume.STEPS:
        name = step.__name__[5:].replace("_", " ")
        try:
            if failed:
                raise Failed("a step before it failed")
            print("ok   %s: %s" % (name, step(volume)), flush=True)
            passed += 1
        except (Failed, check.Mismatch, OSError, EOFError, subprocess.TimeoutExpired) as e:
            print("FAIL %s: %s" % (name, e), flush=True)
            failed += 1
    if volume.server:
        if failed:
            print(volume.server.output()[-2000:])
        volume.server.kill()
    return passed, failed


def inside(args):
    """In the namespace: the mount is seen by this process and its children only, and goes away with them."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % VOLUME, "tmpfs", args.inside], stderr=subprocess.PIPE)
    if done.returncode != 0:
        print("skipped: no tmpfs can be mounted here: %s" % done.stderr.decode(errors="replace").strip())
        print("0 passed, 0 failed, 1 skipped")
        return 0
    passed, failed = run_steps(os.path.abspath(args.server), args.inside)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        return inside(args)
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    tools = shutil.which("unshare") and shutil.which("mount")
    probe = subprocess.run(namespace + ["true"], stderr=subprocess.PIPE) if tools else None
    if probe is None or probe.returncode != 0:
        why = probe.stderr.decode(errors="replace").strip() if probe else "no unshare or no mount"
        print("skipped: no user and mount namespace can be made here: %s" % why)
        print("0 passed, 0 failed, 1 skipped")
        return 0
    directory = tempfile.mkdtemp(prefix="rustqueue-volume-")
    os.mkdir(os.path.join(directory, "volume"))
    try:
        return subprocess.run(namespace + [sys.executable, __file__, "--server", args.server, "--inside", os.path.join(directory, "volume")]).returncode
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
