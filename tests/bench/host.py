"""The machine under a measured run: cores, what it counted meanwhile, and a watch on the server and its disk."""
import contextlib, os, pathlib, re, signal, subprocess, sys, threading, time

import limits

SAMPLE_SECONDS = 1
PRESSURE = ("cpu", "io", "memory")
# /proc/diskstats, after the name of the device; sectors have 512 bytes.
DISK = ("reads", "reads_merged", "sectors_read", "ms_reading", "writes", "writes_merged", "sectors_written", "ms_writing", "in_flight", "ms_busy", "ms_weighted",
        "discards", "discards_merged", "sectors_discarded", "ms_discarding", "flushes", "ms_flushing")


def end_on_signals():
    """The first Ctrl-C, SIGTERM or hang-up unwinds, so that servers are stopped and directories removed; later ones must not cut that short."""
    def end(number, _):
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, end)


def mounts_of(text):
    """(device, mount point, file system, options) of each line of /proc/mounts."""
    return [tuple(limits.unescape(word) for word in line.split()[:4]) for line in text.splitlines() if len(line.split()) >= 4]


def mount_of(path, mounts):
    inside = [m for m in mounts if (path.rstrip("/") + "/").startswith(m[1].rstrip("/") + "/")]
    return max(enumerate(inside), key=lambda m: (len(m[1][1]), m[0]))[1] if inside else None  # of two at one place the later covers the first


def memory_behind(path, mounts, backing=lambda device: None, depth=4):
    """What keeps a directory in memory, where a barrier costs nothing; None when a device does. `backing` gives the file behind a loop device."""
    mount = mount_of(path, mounts)
    if mount is None or depth == 0:
        return None
    device, point, kind, options = mount
    if kind in ("tmpfs", "ramfs", "devtmpfs", "rootfs"):
        return "%s on %s" % (kind, point)
    if re.fullmatch(r"/dev/z?ram\d+", device):
        return "%s on %s" % (device, point)
    below = re.search(r"(?:^|,)upperdir=([^,]+)", options)[1] if kind == "overlay" and "upperdir=" in options else backing(device)
    return memory_behind(below, mounts, backing, depth - 1) if below else None


def loop_file(device):
    text = limits.read("/sys/block/%s/loop/backing_file" % os.path.basename(device)) if device.startswith("/dev/loop") else None
    return text.strip() if text else None


def refuse_memory(directory):
    found = memory_behind(os.path.realpath(directory), mounts_of(limits.read("/proc/mounts") or ""), loop_file)
    if found:
        sys.exit("Error: %s is in memory (%s), where a barrier costs nothing; --dir names another place" % (directory, found))


def cores():
    """Cores of the server and of the generator: two each where there are four."""
    own = sorted(os.sched_getaffinity(0))
    return {"server": own[:2], "generator": own[2:4]} if len(own) >= 4 else None


@contextlib.contextmanager
def pinned(role):
    """Processes that are started meanwhile inherit the cores."""
    own, wanted = os.sched_getaffinity(0), cores()
    if wanted:
        os.sched_setaffinity(0, wanted[role])
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def pinning():
    found = cores()
    return found or {"server": None, "generator": None, "why": "%d cores, pinning needs 4" % len(os.sched_getaffinity(0))}


def disk_counters(diskstats, device):
    """Those of a device (major, minor); None where the kernel has no such line."""
    for line in diskstats.splitlines():
        words = line.split()
        if words[:2] == [str(n) for n in device]:
            return {"device": words[2], **dict(zip(DISK, map(int, words[3:])))}
    return None


def pressure():
    """Microseconds during which something, or everything, waited; None where the kernel does not count it."""
    out = {}
    for name in PRESSURE:
        out.update(limits.numbers(name, limits.read("/proc/pressure/" + name) or ""))
    return out or None


def process_counters(pid):
    """/proc/PID/io: `write_bytes` is what went towards the device."""
    text = limits.read("/proc/%d/io" % pid)
    return {k: int(v) for k, v in (line.split(": ") for line in text.splitlines())} if text else None


def grown(before, after):
    """What was added to counters; names and momentary values (`in_flight`) are those of the end."""
    if before is None or after is None:
        return None
    return {k: v - before[k] if isinstance(v, int) and k in before and k != "in_flight" else v for k, v in after.items()}


def snapshot(directory):
    number = os.stat(directory).st_dev
    return {"pressure_us": pressure(), "disk": disk_counters(limits.read("/proc/diskstats") or "", (os.major(number), os.minor(number)))}


def cpu_us(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000000 // os.sysconf("SC_CLK_TCK")


def memory_bytes(pid, key):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))


def size_bytes(directory):
    total = 0
    for where, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
    return total


class Watch:
    """Looks once a second: resident memory of the server, counters of both groups, and the disk. Ends the generator when the disk must not take more."""

    def __init__(self, server, groups, directory, free_bytes, disk_bytes=None):
        self.server, self.groups, self.directory = server, groups, directory
        self.free_bytes, self.disk_bytes = free_bytes, disk_bytes
        self.generator, self.full = None, None
        self.rss, self.found = [], {}
        self.before = snapshot(directory)
        self.cpu_us = cpu_us(server)
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def work(self):
        while not self.stop.wait(SAMPLE_SECONDS):
            self.look()

    def look(self):
        with self.lock:
            with contextlib.suppress(OSError, StopIteration):  # a server that has ended has no memory
                self.rss.append(memory_bytes(self.server, "VmRSS"))
            for role, group in self.groups.items():
                pid = self.server if role == "server" else self.generator.pid if self.generator else None
                found = group.look(pid) if pid else None
                if found:
                    self.found[role] = found
            self.check_disk()

    def check_disk(self):
        left = os.statvfs(self.directory)
        if left.f_bavail * left.f_frsize < self.free_bytes:
            self.full = "less than %d bytes are left on the disk" % self.free_bytes
        elif self.disk_bytes is not None and size_bytes(self.directory) > self.disk_bytes:
            self.full = "the run wrote more than %d bytes" % self.disk_bytes
        if self.full and self.generator:
            self.generator.kill()

    def evidence(self):
        """What the machine counted since this began; ask before the server is stopped."""
        self.look()
        after = snapshot(self.directory)
        out = {key: grown(self.before[key], after[key]) for key in after}
        return dict(out, server_io=process_counters(self.server), cgroup={role: self.found.get(role) for role in self.groups}, rss_samples_bytes=list(self.rss))


def generate(argv, watch, seconds):
    """Runs the generator, in its group where it has one: (exit status, stdout, stderr). It never outlives this."""
    group = watch.groups.get("generator")
    with pinned("generator"):
        process = subprocess.Popen(group.wrap(argv) if group else argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with watch.lock:
            watch.generator = process
        out, err = process.communicate(timeout=seconds)
        return process.returncode, out, err.strip()
    except subprocess.TimeoutExpired:
        return None, "", "the generator did not end within %g s" % seconds
    finally:
        process.kill()
        with process:
            pass
