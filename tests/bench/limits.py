"""Limits of CPU and memory for a measured process (page 60 section 6.3): a control group of version 2 or 1, or a scope of systemd, whichever works here.

A way counts as working only when a process started through it was found in its group with the limits in force. Groups are made below the group of this program
(version 2 also beside it, where the one above hands out the controllers) and removed when the run ends; no other group is changed. Where no way works, `Limits.kind` is None and
`Limits.why` has the reasons; processes then start as they are.
"""
import contextlib, os, pathlib, re, shutil, subprocess, sys, threading, time

CPUS, MEMORY_BYTES = 2, 2 << 30
PERIOD_US = 100000
TRIAL_SECONDS = 120  # only ends what hangs
GROUP = "rustqueue-bench-%d-%d-%s"

# What is read of a group: of version 2, then of version 1.
COUNTERS = ("cpu.stat", "cpu.pressure", "io.pressure", "memory.pressure", "memory.current", "memory.peak", "memory.swap.current", "memory.events",
            "memory.max_usage_in_bytes", "memory.memsw.max_usage_in_bytes", "memory.failcnt", "memory.oom_control")


class Failed(Exception):
    pass


def unescape(text):
    """A path in /proc/mounts and mountinfo."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def group_mounts(mountinfo):
    """Controller -> (root, mount point); the one of version 2 is ""."""
    out = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if kind[:1] == ["cgroup2"]:
            out.setdefault("", (unescape(fields[3]), unescape(fields[4])))
        elif kind[:1] == ["cgroup"]:
            for name in kind[2].split(","):
                out.setdefault(name, (unescape(fields[3]), unescape(fields[4])))
    return out


def group_directories(cgroup, mounts):
    """Controller -> directory of a process, from its /proc/PID/cgroup."""
    out = {}
    for line in cgroup.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if name in mounts:
                root, point = mounts[name]
                inside = path[len(root):] if root != "/" and (path + "/").startswith(root + "/") else path
                out[name] = os.path.normpath(point + "/" + inside)
    return out


def numbers(name, text):
    """The counters in a file of a group or of /proc/pressure: one number, `key number` by line, or `some ... total=number`."""
    out = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 1 and words[0].isdigit():
            out[name] = int(words[0])
        elif len(words) == 2 and words[1].isdigit():
            out["%s %s" % (name, words[0])] = int(words[1])
        elif words and words[-1].startswith("total="):
            out["%s %s_us" % (name, words[0])] = int(words[-1][len("total="):])
    return out


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return None


def counters(directories):
    out = {}
    for directory in sorted(set(directories.values())):
        for name in COUNTERS:
            out.update(numbers(name, read(os.path.join(directory, name)) or ""))
    return out


def swap_bytes(swaps):
    """What /proc/swaps offers."""
    return sum(int(line.split()[2]) * 1024 for line in swaps.splitlines()[1:])


def in_force(directories, swap):
    """The limits of these groups: CPUs, bytes, bytes of swap beside them; None is no limit. `swap` is what the machine has."""
    def number(controller, name, index=0):
        words = (read(os.path.join(directories[controller], name)) or "").split() if controller in directories else []
        return int(words[index]) if len(words) > index and re.fullmatch(r"-?\d+", words[index]) else None
    if "memory" in directories:
        quota, period, memory, both = (number("cpu", "cpu.cfs_quota_us"), number("cpu", "cpu.cfs_period_us"), number("memory", "memory.limit_in_bytes"),
                                       number("memory", "memory.memsw.limit_in_bytes"))
        more = both - memory if both is not None and memory is not None else None
    else:
        quota, period, memory, more = (number("", "cpu.max"), number("", "cpu.max", 1), number("", "memory.max"), number("", "memory.swap.max"))
    if more is None and swap == 0:
        more = 0  # the kernel counts no swap, and there is none
    return {"cpus": quota / period if quota is not None and quota > 0 and period else None, "memory_bytes": memory, "swap_bytes": more}


WANTED = {"cpus": CPUS, "memory_bytes": MEMORY_BYTES, "swap_bytes": 0}


class Direct:
    """Groups made by hand. `parents` are directories, one for each hierarchy; `settings` their files and texts, with whether a file may be missing."""

    def __init__(self, kind, parents, settings):
        self.kind, self.parents, self.settings = kind, parents, settings

    def make(self, name):
        made = []
        try:
            for parent in self.parents:
                directory = os.path.join(parent, name)
                os.mkdir(directory)
                made.append(directory)
                for file, text, needed in self.settings:
                    path = os.path.join(directory, file)
                    if os.path.exists(path):
                        pathlib.Path(path).write_text(text)
                    elif needed and parent == self.parents[-1] and not any(os.path.exists(os.path.join(d, file)) for d in made):
                        raise Failed("%s has no %s" % (directory, file))
        except OSError as e:
            self.remove(made)
            raise Failed("%s: %s" % (e.filename or parent, e.strerror))
        except Failed:
            self.remove(made)
            raise
        return made

    def prefix(self, name, made):
        # The shell enters the group and becomes the program, so that its id is that of the program.
        return ["/bin/sh", "-c", 'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ >"$1/cgroup.procs" || exit 126; shift; n=$((n - 1)); done; exec "$@"',
                "enter", str(len(made)), *made]

    def remove(self, made):
        for directory in made:
            end = time.monotonic() + 60  # a process that ended leaves its group a moment later
            while True:
                try:
                    os.rmdir(directory)
                    break
                except FileNotFoundError:
                    break
                except OSError as e:
                    if time.monotonic() > end:
                        print("Warning: %s is left behind: %s" % (directory, e.strerror), file=sys.stderr)
                        break
                    time.sleep(0.02)


class Scope:
    """Scopes of systemd; the manager removes them."""

    def __init__(self, user):
        self.kind, self.user = "systemd-run", ["--user"] if user else []

    def make(self, name):
        return []

    def prefix(self, name, made):
        return ["systemd-run", *self.user, "--scope", "--quiet", "--collect", "--no-ask-password", "--unit=" + name, "-p", "CPUQuota=%d%%" % (100 * CPUS), "-p", "MemoryMax=%d" % MEMORY_BYTES,
                "-p", "MemorySwapMax=0", "--"]

    def remove(self, made):
        pass


def ways(mounts, own, systemd, user):
    """What could work here, best first: the manager of the tree where there is one."""
    if systemd:
        yield Scope(user)
    two = [("memory.max", str(MEMORY_BYTES), True), ("memory.swap.max", "0", False), ("cpu.max", "%d %d" % (CPUS * PERIOD_US, PERIOD_US), True)]
    if "" in own and "memory" not in own:
        for parent in (own[""], os.path.dirname(own[""])):
            if (parent + "/").startswith(mounts[""][1].rstrip("/") + "/"):
                yield Direct("cgroup v2", [parent], two)
    if "memory" in own and "cpu" in own:
        # The limit with swap cannot be below the one without, which is therefore first.
        one = [("memory.limit_in_bytes", str(MEMORY_BYTES), True), ("memory.memsw.limit_in_bytes", str(MEMORY_BYTES), False),
               ("cpu.cfs_period_us", str(PERIOD_US), True), ("cpu.cfs_quota_us", str(CPUS * PERIOD_US), True)]
        yield Direct("cgroup v1", sorted({own["memory"], own["cpu"]}), one)


def delegate(way, own):
    """Version 2 hands controllers to the groups below one that says so; only our own group is asked to."""
    if way.kind != "cgroup v2":
        return
    control = os.path.join(way.parents[0], "cgroup.subtree_control")
    if {"cpu", "memory"} <= set((read(control) or "").split()):
        return
    if way.parents[0] != own.get(""):
        raise Failed("%s does not hand out cpu and memory" % way.parents[0])
    try:
        pathlib.Path(control).write_text("+cpu +memory")
    except OSError as e:
        raise Failed("%s: %s" % (control, e.strerror))


def trial(way, mounts, swap):
    """Starts a process this way and looks where it is."""
    name = GROUP % (os.getpid(), 0, "trial")
    made = way.make(name)
    try:
        child = subprocess.Popen([*way.prefix(name, made), "/bin/sh", "-c", "cat /proc/self/cgroup; echo; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
        limit = threading.Timer(TRIAL_SECONDS, child.kill)
        limit.start()
        try:
            lines = []
            for line in child.stdout:
                if line == "\n":
                    break
                lines.append(line)
            found = in_force(group_directories("".join(l for l in lines if l.count(":") >= 2), mounts), swap)
            if name not in "".join(lines):
                raise Failed("".join(lines).strip() or "a process does not get into its group")
            if found != WANTED:
                raise Failed("limits do not hold: %s" % found)
        finally:
            limit.cancel()
            child.kill()
            with child:
                pass
    finally:
        way.remove(made)


class Group:
    """One process under limits, or without them."""

    def __init__(self, limits, name, made):
        self.limits, self.name, self.made, self.directories = limits, name, made, {}

    def wrap(self, argv):
        return [*self.limits.way.prefix(self.name, self.made), *argv] if self.limits.way else list(argv)

    def look(self, pid):
        """The limits in force on the process of this group and its counters, also after its end; None before it is there and where the group is not ours."""
        cgroup = read("/proc/%d/cgroup" % pid) or ""
        if self.limits.way and self.name in cgroup:
            self.directories = {k: d for k, d in group_directories(cgroup, self.limits.mounts).items() if self.name in d}
        found = counters(self.directories)
        return {"in_force": in_force(self.directories, self.limits.swap), "counters": found} if found else None


class Limits:
    def __init__(self):
        self.mounts = group_mounts(read("/proc/self/mountinfo") or "")
        self.swap = swap_bytes(read("/proc/swaps") or "")
        own = group_directories(read("/proc/self/cgroup") or "", self.mounts)
        systemd = shutil.which("systemd-run") is not None and os.path.isdir("/run/systemd/system")
        self.way, self.count, refused = None, 0, []
        for way in ways(self.mounts, own, systemd, os.geteuid() != 0):
            try:
                delegate(way, own)
                trial(way, self.mounts, self.swap)
                self.way = way
                break
            except (Failed, OSError) as e:
                refused.append("%s: %s" % (way.kind, " ".join(str(e).split())))
        self.kind = self.way.kind if self.way else None
        self.why = None if self.way else "; ".join(refused) or "no control groups of CPU and memory are mounted"

    def json(self):
        return dict(WANTED, kind=self.kind) if self.way else {"kind": None, "why": self.why}

    def __str__(self):
        return "%d CPUs, %d GiB, no swap for the server and for the generator, by %s" % (CPUS, MEMORY_BYTES >> 30, self.kind) if self.way else "none, not permitted here (%s)" % self.why

    @contextlib.contextmanager
    def group(self, role):
        """A fresh group, so that its counters are those of one process."""
        self.count += 1
        name = GROUP % (os.getpid(), self.count, role)
        try:
            made = self.way.make(name) if self.way else []
        except Failed as e:
            sys.exit("Error: no control group: %s" % e)
        try:
            yield Group(self, name, made)
        finally:
            if self.way:
                self.way.remove(made)
