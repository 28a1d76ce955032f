#!/usr/bin/env python3
"""What transports cost: CPU a message over TLS, Snappy and Deflate beside nsqd 1.3.0 and the floor with the same feature, and memory under idle TLS
connections and compression bombs.

    transports.py --server build/release/bin/rustqueued [--only memory,plain,tls,snappy,deflate] [--works mpub,pub,sub] [--rounds 3] [--count 65536]
                  [--seconds 600]

The load is go-nsq (tests/bench/transports), the same for all servers; they run one at a time, in turn A B C, C B A, each on a fresh directory. CPU is that
of the server's process, user and system; "relaxed" is this Broker in mode nsq_relaxed, which promises what nsqd does; "floor" is the least that a durable
server does over the transport (floor.cpp), publishing only. Caches are filled before anything is measured. Everything is bounded and on loopback: no round begins
after --seconds, and the table is made of the rounds that were run.
"""
import argparse, os, pathlib, shutil, socket, ssl, statistics, struct, subprocess, sys, tempfile, time, urllib.request, zlib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "fixtures"), str(ROOT / "tests" / "compat" / "differential")]
import check, run, wire

OUT = ROOT / "build" / "bench"
TRANSPORTS, WORKS = ("plain", "tls", "snappy", "deflate"), ("mpub", "pub", "sub")
KINDS = ("rustqueued", "floor", "relaxed", "nsqd")
WARM_UP = 65536     # messages that fill the 64 MiB of bodies which this Broker keeps in memory, and nsqd's 10,000 messages
IDLE, CONNECTIONS, BODY_BYTES = 1000, 200, 15 << 16      # the body is within the limit of either server


class Server:
    def __init__(self, kind, program, directory, certificates):
        self.tcp, self.http = check.free_port(None), check.free_port(None)
        pem, key = (os.path.join(certificates, "node-1" + end) for end in (".pem", ".key"))
        if kind == "floor":
            os.makedirs(directory)
            argv = [str(OUT / "floor"), str(self.tcp), os.path.join(directory, "log"), "durable", "300", pem, key]
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.wait_listening()
        elif kind == "nsqd":
            os.makedirs(directory)
            argv = [str(OUT / "nsqd"), "-data-path", directory, "-tcp-address", "127.0.0.1:%d" % self.tcp, "-http-address", "127.0.0.1:%d" % self.http,
                    "-tls-cert", pem, "-tls-key", key]
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            check.Server.wait_ready(self)
        else:
            self.inner = check.Server("%s --config {config}" % os.path.abspath(program), directory, 1, 1, {
                "queue": {"bootstrap_retention_seconds": 90, "publish_ack_mode": "nsq_relaxed" if kind == "relaxed" else "durable"}, "security.tls": {"certificate_file": pem, "private_key_file": key}}).wait_ready()
            self.tcp, self.http, self.process = self.inner.tcp, self.inner.http, self.inner.process

    get, request, tail = check.Server.get, check.Server.request, lambda self: ""

    def wait_listening(self):
        end = time.monotonic() + check.START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.tcp), check.ANSWER_SECONDS).close()
            except OSError:
                time.sleep(0.02)
        sys.exit("Error: the floor does not start")

    def cpu_s(self):
        return time.clock_gettime(~self.process.pid << 3 | 2)    # of the process, all threads: clock_getcpuclockid(3)

    def memory_kb(self, key):
        with open("/proc/%d/status" % self.process.pid) as f:
            return next(int(l.split()[1]) for l in f if l.startswith(key + ":"))

    def create(self):
        for path in ("topic/create?topic=bench", "channel/create?topic=bench&channel=c"):
            urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:%d/%s" % (self.http, path), data=b"", method="POST"), timeout=check.ANSWER_SECONDS).close()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        check.release(self.tcp, self.http)


def cpu(kind, transport, args, directory, certificates):
    """Work -> CPU in us a message."""
    server = Server(kind, args.server, os.path.join(directory, "%s-%s" % (kind, transport)), certificates)
    out = {}
    try:
        works = [work for work in WORKS if work in args.works and not (work == "sub" and kind == "floor")]
        if kind != "floor":
            server.create()
        load(server, "plain", "mpub", WARM_UP)      # the page faults of a memory that grows are no cost of a transport
        for work in works:
            count = args.count if work == "mpub" else args.count // 4
            before = server.cpu_s()
            load(server, transport, work, count)
            out[work] = (server.cpu_s() - before) * 1e6 / count
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory, exist_ok=True)
    return out


def load(server, transport, work, count):
    run.run([str(OUT / "transports"), "--tcp", "127.0.0.1:%d" % server.tcp, "--transport", transport, "--work", work, "--count", str(count)], timeout=600)


def cpu_table(args, transports, directory, certificates):
    found, rounds, end = {}, dict.fromkeys(transports, 0), time.monotonic() + args.seconds
    for turn in range(args.rounds):
        for transport in transports:
            if turn > 0 and time.monotonic() > end:
                continue
            for kind in KINDS if turn % 2 == 0 else KINDS[::-1]:
                for work, us in cpu(kind, transport, args, directory, certificates).items():
                    found.setdefault((transport, work, kind), []).append(us)
            rounds[transport] += 1
    print("| transport | work | rustqueued | floor | relaxed | nsqd | rustqueued to nsqd | floor to nsqd | relaxed to nsqd | rounds |")
    print("| --- " * 10 + "|")
    for transport in transports:
        for work in WORKS:
            if work in args.works:
                print(cpu_row(transport, work, rounds[transport], *(found.get((transport, work, kind)) for kind in KINDS)))


def cpu_row(transport, work, rounds, ours, floor, relaxed, theirs):
    """CPU in us a message, median over the rounds, and ratios of the same round."""
    def median(values):
        return "%.1f" % statistics.median(values) if values else "-"

    def ratio(values):
        return "%.2f" % statistics.median(a / b for a, b in zip(values, theirs)) if values else "-"
    cells = [median(each) for each in (ours, floor, relaxed, theirs)] + [ratio(each) for each in (ours, floor, relaxed)]
    return "| %s | %s | %s | %d |" % (transport, work, " | ".join(cells), rounds)


def upgraded(server, layer=None, tls=None, **fields):
    """A raw connection with what those fields negotiate."""
    s = socket.create_connection(("127.0.0.1", server.tcp), 20)
    s.sendall(b"  V2" + wire.identify(feature_negotiation=True, tls_v1=tls is not None, **fields))
    size = struct.unpack(">i", s.recv(4, socket.MSG_WAITALL))[0]
    s.recv(size, socket.MSG_WAITALL)
    if tls is not None:
        s = tls.wrap_socket(s, server_hostname="localhost")
        s.recv(10)
    return s


def idle_tls(kind, args, directory, certificates):
    server, context, held = Server(kind, args.server, os.path.join(directory, kind + "-idle"), certificates), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), []
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        empty = server.memory_kb("VmRSS")
        for _ in range(IDLE):
            held.append(upgraded(server, tls=context))
        time.sleep(1)
        full = server.memory_kb("VmRSS")
        for s in held:
            s.close()
        time.sleep(1)
        print("| %d idle TLS connections | %s | %.1f | %.1f | %.1f KiB each; %.1f MiB once they are gone |"
              % (IDLE, kind, empty / 1024, full / 1024, (full - empty) / IDLE, server.memory_kb("VmRSS") / 1024))
    finally:
        server.stop()


def packed(layer, head, zeros):
    """`head`, then that many zeros, as few bytes of the layer."""
    if layer == "deflate":
        z = zlib.compressobj(9, zlib.DEFLATED, -15)
        return z.compress(head + bytes(zeros)) + z.flush(zlib.Z_SYNC_FLUSH)
    # One chunk of 64 KiB zeros, as a literal of one byte and copies of up to 64 bytes at offset 1, repeated.
    block = b"\x80\x80\x04" + b"\x00\x00" + b"\xfe\x01\x00" * 1023 + b"\xfa\x01\x00"
    assert wire.Snappy.block(block) == bytes(65536) and zeros % 65536 == 0

    def chunk(kind, data, plain):
        crc = wire.crc32c(plain)
        masked = ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
        return bytes([kind]) + struct.pack("<I", len(data) + 4)[:3] + struct.pack("<I", masked) + data
    return wire.Snappy.IDENTIFIER + (chunk(1, head, head) if head else b"") + chunk(0, block, bytes(65536)) * (zeros // 65536)


# What, bytes before the zeros, zeros. The first is refused at its line; of the second a byte is missing, so that all of them are held at once.
BOMBS = (("endless lines", b"", 64 << 20), ("bodies but for a byte", b"PUB bench\n" + struct.pack(">I", BODY_BYTES + 1), BODY_BYTES))


def bombs(what, head, zeros, kind, layer, args, directory, certificates):
    server, held = Server(kind, args.server, os.path.join(directory, "%s-%s-bombs" % (kind, layer)), certificates), []
    try:
        empty, before, payload = server.memory_kb("VmRSS"), server.cpu_s(), packed(layer, head, zeros)
        for _ in range(CONNECTIONS):
            s = upgraded(server, **{layer: True})
            s.settimeout(0.5)
            try:
                s.sendall(payload)
            except OSError:
                pass                # refused before all of it was taken
            held.append(s)
        time.sleep(1)
        peak = server.memory_kb("VmHWM")
        print("| %d %s %s, %d KiB for %d KiB each | %s | %.1f | %.1f (peak) | %.0f us of CPU each |"
              % (CONNECTIONS, layer, what, len(payload) // 1024, zeros >> 10, kind, empty / 1024, peak / 1024, (server.cpu_s() - before) * 1e6 / CONNECTIONS))
        if server.get("/ping")[0] != 200:
            sys.exit("Error: %s does not answer any more" % kind)
    finally:
        for s in held:
            s.close()
        server.stop()
        shutil.rmtree(os.path.join(directory, "%s-%s-bombs" % (kind, layer)), ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=65536)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--only", default=",".join(("memory",) + TRANSPORTS))
    parser.add_argument("--works", default=",".join(WORKS))
    args = parser.parse_args()
    parts, args.works = args.only.split(","), args.works.split(",")
    if args.count < 4 * 16 or args.count // 4 > WARM_UP:
        parser.error("--count is 64 to %d" % (4 * WARM_UP))
    unknown = [name for name in parts if name not in ("memory",) + TRANSPORTS] + [name for name in args.works if name not in WORKS]
    if unknown:
        parser.error("unknown part or work: %s" % ", ".join(unknown))
    run.build(["nsqd"])
    env = dict(os.environ, GOFLAGS="-mod=readonly -buildvcs=false", GOTOOLCHAIN="local")
    run.run(["go", "build", "-o", str(OUT / "transports"), "."], cwd=HERE / "transports", env=env)
    base = tempfile.mkdtemp(prefix="rustqueue-transports-")
    directory, certificates = os.path.join(base, "data"), os.path.join(base, "certificates")
    os.makedirs(directory)
    subprocess.run([str(ROOT / "scripts" / "dev-certs"), certificates], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if "memory" in parts:
            print("| what | server | RSS MiB before | RSS MiB then | |\n| --- | --- | --- | --- | --- |")
            for kind in ("rustqueued", "nsqd"):
                idle_tls(kind, args, directory, certificates)
                for what, layer in ((what, layer) for what in BOMBS for layer in ("snappy", "deflate")):
                    bombs(*what, kind, layer, args, directory, certificates)
        transports = [transport for transport in TRANSPORTS if transport in parts]
        if transports:
            cpu_table(args, transports, directory, certificates)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
