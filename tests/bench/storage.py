#!/usr/bin/env python3
"""Memory and restart of the Broker with much in its directory: the table of docs/performance.md, section "Storage: memory and restart".

    storage.py --server build/release/bin/rustqueued [--scale 1.0] [--only backlog,segments,idle,channels] [--out FILE] [--dir DIR]

Works one after the other, each on a fresh data directory that is removed afterwards (the largest needs 12 GiB at --scale 1). Loads come
from qload (qload.cpp). Everything is bounded in count and time and talks to loopback only.
"""
import argparse, concurrent.futures, glob, http.client, json, os, pathlib, shutil, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run as bench
import check

START_SECONDS = 120
LOAD_SECONDS = 600
MIB = 1 << 20


class Broker:
    """One rustqueued on a directory; ended by its own id."""

    def __init__(self, server, directory):
        self.tcp, self.http = check.free_port(None), check.free_port(None)
        os.makedirs(directory, exist_ok=True)
        config = os.path.join(directory, "rustqueued.toml")
        with open(config, "w") as f:
            f.write(check.toml(check.merge(check.BASE_CONFIG, {
                "queue": {"bootstrap_retention_seconds": 90},
                "storage": {"data_path": os.path.join(directory, "data"), "maintenance_startup_delay_seconds": 30},
                "network": {"tcp_address": "127.0.0.1:%d" % self.tcp, "http_address": "127.0.0.1:%d" % self.http}})))
        self.log = open(os.path.join(directory, "output"), "wb")
        self.began = time.monotonic()
        self.process = subprocess.Popen([os.path.abspath(server), "--config", config], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.start_seconds = self.wait_open()

    def wait_open(self):
        """TCP connections are accepted once the directory is open: the first answer to IDENTIFY ends the start."""
        while True:
            try:
                with check.Nsq(self.tcp) as nsq:
                    nsq.send(b"IDENTIFY\n\0\0\0\2{}")
                    if nsq.frame(START_SECONDS) is not None:
                        return time.monotonic() - self.began
            except (OSError, EOFError):
                pass
            if self.process.poll() is not None or time.monotonic() - self.began > START_SECONDS:
                self.stop()
                sys.exit("Error: the Broker does not start")
            time.sleep(0.005)

    def rss_mib(self, key="VmRSS"):
        with open("/proc/%d/status" % self.process.pid) as f:
            return next(int(l.split()[1]) for l in f if l.startswith(key + ":")) / 1024.0

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def post(self, paths):
        """POSTs one path after the other over one connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=START_SECONDS)
        for path in paths:
            connection.request("POST", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                sys.exit("Error: %s answers %d" % (path, answer.status))
        connection.close()

    def post_all(self, groups, connections=16):
        """The same for many lists of paths, over several connections; each list stays in order."""
        with concurrent.futures.ThreadPoolExecutor(connections) as pool:
            list(pool.map(self.post, [sum(groups[i::connections], []) for i in range(connections)]))

    def load(self, *arguments):
        argv = [str(bench.OUT / "qload"), *map(str, arguments), "--port", str(self.tcp), "--pid", str(self.process.pid)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=LOAD_SECONDS)
        result = json.loads(done.stdout)
        if "error" in result:
            sys.exit("Error: qload: %s" % result["error"])
        return result

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        check.release(self.tcp, self.http)
        self.log.close()


def restart(args, directory, warm):
    """Starts on what is there, with the sidecars in the page cache or not; returns seconds and resident MiB."""
    for path in glob.glob(os.path.join(directory, "data/topics/*/segments/*")):
        descriptor = os.open(path, os.O_RDONLY)
        if warm:
            if path.endswith(".rqidx"):
                while os.read(descriptor, MIB):
                    pass
        else:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    broker = Broker(args.server, directory)
    result = broker.start_seconds, broker.rss_mib()
    broker.stop()
    return result


def sidecar_mib(directory):
    return sum(os.path.getsize(p) for p in glob.glob(os.path.join(directory, "data/topics/*/segments/*.rqidx"))) / MIB


def restarts(args, directory, messages, rows):
    """Three starts with warm sidecars, one cold; the first after filling is not measured, as it still finds dirty pages."""
    restart(args, directory, True)
    warm = [restart(args, directory, True) for _ in range(3)]
    cold = restart(args, directory, False)
    best = sorted(seconds for seconds, _ in warm)
    rows.append(("start, sidecars in the page cache", "%.2f s (%.2f to %.2f), %s messages a second, %.0f MiB resident" % (
        best[1], best[0], best[2], "{:,.0f}".format(messages / best[1]), warm[0][1])))
    rows.append(("start, cold page cache", "%.2f s, %s messages a second; sidecars hold %.0f MiB" % (
        cold[0], "{:,.0f}".format(messages / cold[0]), sidecar_mib(directory))))


def backlog(args, directory, rows):
    broker = Broker(args.server, directory)
    broker.post(["/topic/create?topic=t", "/channel/create?topic=t&channel=c"])
    empty = broker.rss_mib()
    done, resident = 0, []
    for part in (3, 3, 4):
        count = int(part * 1e6 * args.scale) // 1000 * 1000
        broker.load("mpub", "--topic", "t", "--conns", 8, "--size", 100, "--batch", 1000, "--count", count)
        done += count
        time.sleep(1)
        resident.append((done, broker.rss_mib()))
    rows.append(("100-byte messages: RSS", "empty %.0f MiB; " % empty + "; ".join("%.1f million %.0f MiB" % (n / 1e6, m) for n, m in resident)))
    result = broker.load("sub", "--topic", "t", "--channel", "c", "--conns", 4, "--rdy", 256, "--count", int(2e6 * args.scale))
    rows.append(("the same while 2 million are consumed from disk", "%s messages a second, RSS %.0f MiB, peak %.0f MiB" % (
        "{:,.0f}".format(result[bench.RATE]), broker.rss_mib(), broker.rss_mib("VmHWM"))))
    broker.stop()
    restarts(args, directory, done, rows)


def segments(args, directory, rows):
    broker = Broker(args.server, directory)
    broker.post(["/topic/create?topic=t", "/channel/create?topic=t&channel=c"])
    count = int(10 * MIB * args.scale) // 64 * 64
    broker.load("mpub", "--topic", "t", "--conns", 8, "--size", 1024, "--batch", 64, "--count", count)
    rows.append(("1 KiB messages: RSS", "%.1f GiB of segments, %.0f MiB" % (count / MIB, broker.rss_mib())))
    broker.stop()
    restarts(args, directory, count, rows)


def idle(args, directory, rows):
    broker = Broker(args.server, directory)
    topics = int(10_000 * args.scale)
    began = time.monotonic()
    broker.post_all([["/topic/create?topic=t%d" % i, "/channel/create?topic=t%d&channel=c" % i] for i in range(topics)])
    created = time.monotonic() - began
    time.sleep(40)  # past the start of collection
    before = broker.cpu_seconds()
    time.sleep(20)
    used = (broker.cpu_seconds() - before) / 20
    rows.append(("%s Topics with one Channel each" % "{:,}".format(topics), "created in %.0f s; idle %.2f %% of a core, %.0f MiB resident" % (
        created, 100 * used, broker.rss_mib())))
    broker.stop()
    clean = [restart(args, directory, True) for _ in range(3)]
    broker = Broker(args.server, directory)
    broker.process.kill()
    broker.stop()
    after_kill = restart(args, directory, True)
    times = sorted(seconds for seconds, _ in clean)
    rows.append(("start with them", "%.2f s (%.2f to %.2f) after a clean stop, %.2f s after a kill" % (times[1], times[0], times[2], after_kill[0])))


def channels(args, directory, rows):
    broker = Broker(args.server, directory)
    count, messages = int(1_000 * args.scale), 100
    began = time.monotonic()
    broker.post(["/topic/create?topic=t"])
    broker.post_all([["/channel/create?topic=t&channel=c%d" % i] for i in range(count)])
    created = time.monotonic() - began
    consumers = []
    for i in range(count):
        nsq = check.Nsq(broker.tcp, 60)
        nsq.send(b"SUB t c%d\nRDY %d\n" % (i, messages))
        consumers.append(nsq)
    time.sleep(2)
    began = time.monotonic()
    broker.load("mpub", "--topic", "t", "--conns", 1, "--size", 100, "--batch", messages, "--count", messages)
    for nsq in consumers:
        got = 0
        while got < messages:
            kind, body = nsq.frame(START_SECONDS)
            if kind == 2:
                got += 1
                nsq.send(b"FIN %s\n" % body[10:26])
    delivered = time.monotonic() - began
    time.sleep(1)
    rss = broker.rss_mib()
    for nsq in consumers:
        nsq.close()
    broker.stop()
    times = [restart(args, directory, True)[0] for _ in range(2)]
    rows.append(("one Topic with %s Channels" % "{:,}".format(count), "created in %.1f s; %d messages to every Channel and finished in %.1f s, %.0f MiB resident; start %.2f s" % (
        created, messages, delivered, rss, min(times))))


WORKS = {"backlog": backlog, "segments": segments, "idle": idle, "channels": channels}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=str(bench.ROOT / "build" / "release" / "bin" / "rustqueued"))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default=",".join(WORKS))
    parser.add_argument("--out", help="also write the table here")
    parser.add_argument("--dir", default=str(bench.OUT), help="where data directories are made")
    args = parser.parse_args()
    bench.build_programs([("qload", [])])
    rows, root = [], tempfile.mkdtemp(prefix="storage-", dir=args.dir)
    try:
        for name in args.only.split(","):
            directory = os.path.join(root, name)
            before = len(rows)
            WORKS[name](args, directory, rows)
            for what, figures in rows[before:]:
                print("%s: %s: %s" % (name, what, figures), file=sys.stderr, flush=True)
            shutil.rmtree(directory, ignore_errors=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    text = "%s\n\n| work | measured |\n| --- | --- |\n%s\n" % (bench.machine(args.dir), "\n".join("| %s | %s |" % row for row in rows))
    print(text)
    if args.out:
        pathlib.Path(args.out).write_text(text)


if __name__ == "__main__":
    main()
