#!/usr/bin/env python3
"""The parts of qualify.py and compare.py without servers: limits, the disk, what may become evidence, medians and ratios. One line each; the last is
`N passed, N failed`."""
import argparse, contextlib, io, json, os, pathlib, signal, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import compare, host, limits, qualify, run

passed = failed = 0


def test(function):
    """Runs it; its name is the sentence."""
    global passed, failed
    name = function.__name__.replace("_", " ")
    try:
        function()
    except (Exception, SystemExit) as e:
        failed += 1
        line = e.__traceback__.tb_next.tb_lineno if e.__traceback__.tb_next else 0
        print("FAIL %s: line %d: %s %s" % (name, line, type(e).__name__, e))
        return
    passed += 1
    print("ok   %s" % name)


def equal(found, wanted):
    if found != wanted:
        raise AssertionError("%r is not %r" % (found, wanted))


def refused(call, *words):
    """The exit status and text of a call that ends the program; the text has all words."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            call()
    except SystemExit as e:
        text = said.getvalue() + (e.code if isinstance(e.code, str) else "")
        missing = [w for w in words if w not in text]
        if missing:
            raise AssertionError("%r has no %r" % (text[-400:], missing))
        return 1 if isinstance(e.code, str) else e.code
    raise AssertionError("was not refused")


@contextlib.contextmanager
def patched(thing, **values):
    before = {name: getattr(thing, name) for name in values}
    for name, value in values.items():
        setattr(thing, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(thing, name, value)


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        yield


# Control groups.

ONE = """30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 /box /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
TWO = "30 25 0:26 / /sys/fs/cgroup\\040two rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@test
def groups_of_version_1_and_of_both_are_found_by_their_controllers():
    mounts = limits.group_mounts(ONE)
    equal(mounts["memory"], ("/box", "/sys/fs/cgroup/memory"))
    own = limits.group_directories("4:memory:/box/a\n2:cpu,cpuacct:/\n0::/b\n", mounts)
    equal((own["memory"], own["cpu"], own[""]), ("/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/unified/b"))
    found = list(limits.ways(mounts, own, False, False))
    equal([(w.kind, w.parents) for w in found], [("cgroup v1", ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory/a"])])
    files = [name for name, _, _ in found[0].settings]
    if files.index("memory.limit_in_bytes") > files.index("memory.memsw.limit_in_bytes"):
        raise AssertionError("the limit with swap cannot be written first")


@test
def groups_of_version_2_are_made_below_ours_or_beside_it_but_not_above_the_mount():
    mounts = limits.group_mounts(TWO)
    own = limits.group_directories("0::/user/a\n", mounts)
    equal([w.parents for w in limits.ways(mounts, own, False, True)], [["/sys/fs/cgroup two/user/a"], ["/sys/fs/cgroup two/user"]])
    equal([w.parents for w in limits.ways(mounts, {"": "/sys/fs/cgroup two"}, False, True)], [["/sys/fs/cgroup two"]])


@test
def the_manager_of_the_tree_is_asked_first_and_where_there_is_nothing_nothing_is_tried():
    equal([w.kind for w in limits.ways(limits.group_mounts(TWO), {"": "/sys/fs/cgroup two"}, True, True)], ["systemd-run", "cgroup v2"])
    argv = limits.Scope(True).prefix("name", [])
    for word in ("--user", "--scope", "CPUQuota=200%", "MemoryMax=2147483648", "MemorySwapMax=0"):
        equal((word, word in argv), (word, True))
    equal(list(limits.ways({}, {}, False, True)), [])


@test
def counters_of_groups_and_of_pressure_are_read():
    equal(limits.numbers("cpu.stat", "usage_usec 12\nnr_throttled 3\n"), {"cpu.stat usage_usec": 12, "cpu.stat nr_throttled": 3})
    equal(limits.numbers("io", "some avg10=0.00 avg60=0.31 avg300=0.05 total=71\nfull avg10=0.00 total=5\n"), {"io some_us": 71, "io full_us": 5})
    equal(limits.numbers("memory.peak", "4096\n"), {"memory.peak": 4096})
    equal(limits.numbers("memory.swap.max", "max\n"), {})


@test
def limits_in_force_are_read_back_and_no_limit_is_none():
    with tempfile.TemporaryDirectory() as d:
        def write(**files):
            for name, text in files.items():
                pathlib.Path(d, name.replace("__", ".")).write_text(text + "\n")
        write(cpu__max="200000 100000", memory__max=str(2 << 30), memory__swap__max="0")
        equal(limits.in_force({"": d}, 1), limits.WANTED)
        write(memory__swap__max="max")
        equal(limits.in_force({"": d}, 1)["swap_bytes"], None)
        equal(limits.in_force({"": d}, 0)["swap_bytes"], 0)
        write(cpu__max="max 100000", memory__max="max")
        equal(limits.in_force({"": d}, 0), {"cpus": None, "memory_bytes": None, "swap_bytes": 0})
        write(cpu__cfs_quota_us="200000", cpu__cfs_period_us="100000", memory__limit_in_bytes=str(2 << 30), memory__memsw__limit_in_bytes=str(3 << 30))
        equal(limits.in_force({"memory": d, "cpu": d}, 1), dict(limits.WANTED, swap_bytes=1 << 30))
        write(memory__memsw__limit_in_bytes=str(2 << 30))
        equal(limits.in_force({"memory": d, "cpu": d}, 1), limits.WANTED)
        write(cpu__cfs_quota_us="-1")
        equal(limits.in_force({"memory": d, "cpu": d}, 1)["cpus"], None)
    equal(limits.swap_bytes("Filename Type Size Used Priority\n/dev/vdb partition 1024 0 -2\n"), 1 << 20)


@test
def a_directory_that_is_no_group_is_refused_and_left_as_it_was():
    with tempfile.TemporaryDirectory() as d:
        way = limits.Direct("cgroup v2", [d], [("memory.max", "1", True)])
        for where, word in ((d, "has no memory.max"), (os.path.join(d, "none"), "No such file")):
            way.parents = [where]
            try:
                way.make("group")
                raise AssertionError("was made")
            except limits.Failed as e:
                equal((word, word in str(e)), (word, True))
        equal(os.listdir(d), [])


@test
def version_2_hands_out_controllers_only_by_our_own_group():
    with tempfile.TemporaryDirectory() as d:
        control = pathlib.Path(d, "cgroup.subtree_control")
        control.write_text("pids\n")
        way = limits.Direct("cgroup v2", [d], [])
        try:
            limits.delegate(way, {"": d + "/own"})
            raise AssertionError("asked another group")
        except limits.Failed:
            equal(control.read_text(), "pids\n")
        limits.delegate(way, {"": d})
        equal(control.read_text(), "+cpu +memory")
        control.write_text("cpu memory pids\n")
        limits.delegate(way, {"": d + "/own"})  # hands them out already


@test
def a_process_here_is_under_the_limits_or_the_reason_is_told():
    found = limits.Limits()
    with found.group("server") as group:
        argv = group.wrap(["sh", "-c", "echo; read line"])
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            seen, made = group.look(process.pid), list(group.made)
            process.communicate(b"\n", timeout=120)
        if found.kind is None:
            equal((bool(found.why), argv[0], seen, found.json()["kind"]), (True, "sh", None, None))
            return
        equal((seen["in_force"], process.returncode), (limits.WANTED, 0))
        equal(any(name.startswith("memory") for name in seen["counters"]), True)
    equal([d for d in made if os.path.exists(d)], [])


# The machine.

MOUNTS = host.mounts_of("""/dev/vda / ext4 rw 0 0
tmpfs /dev/shm tmpfs rw 0 0
/dev/vdb /dev/shm/disk ext4 rw 0 0
/dev/ram0 /ram ext4 rw 0 0
/dev/zram1 /zram ext4 rw 0 0
overlay /over overlay rw,lowerdir=/a,upperdir=/dev/shm/up,workdir=/w 0 0
overlay /over2 overlay rw,lowerdir=/dev/shm,upperdir=/var/up,workdir=/w 0 0
/dev/loop0 /loop ext4 rw 0 0
/dev/loop1 /loop1 ext4 rw 0 0
/dev/vdc /twice ext4 rw 0 0
tmpfs /twice tmpfs rw 0 0
ramfs /with\\040blank ramfs rw 0 0
""")


@test
def a_directory_in_memory_is_known_whatever_lies_between():
    backing = {"/dev/loop0": "/dev/shm/image", "/dev/loop1": "/var/image"}.get
    in_memory = {path: host.memory_behind(path, MOUNTS, backing) is not None for path in (
        "/data", "/dev/shm", "/dev/shm/a", "/dev/shmother", "/dev/shm/disk/a", "/ram/a", "/zram", "/over/a", "/over2/a", "/loop", "/loop1", "/twice/a", "/with blank/a")}
    equal([path for path, found in in_memory.items() if found], ["/dev/shm", "/dev/shm/a", "/ram/a", "/zram", "/over/a", "/loop", "/twice/a", "/with blank/a"])


@test
def both_scripts_refuse_a_data_directory_in_memory():
    if host.memory_behind("/dev/shm", host.mounts_of(limits.read("/proc/mounts"))) is None:
        return  # a machine without one
    where = "/dev/shm/rustqueue-%d" % os.getpid()
    for script, arguments in (("qualify.py", ["--baseline", "/bin/true", "--candidate", "/bin/true", "--qualify", "/bin/true"]), ("compare.py", ["--server", "/bin/true"])):
        done = subprocess.run([sys.executable, str(HERE / script), *arguments, "--bench", "/bin/true", "--dir", where], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        equal((done.returncode, done.stdout, done.stderr.split(" (")[0], os.path.exists(where)), (1, "", "Error: %s is in memory" % where, False))


@test
def counters_of_the_disk_are_those_of_its_device_and_of_the_run():
    text = " 254 0 vda 10 1 80 4 20 2 160 8 3 9 12 0 0 0 0 7 5\n 254 1 vda1 1 1 1 1 1 1 1 1 1 1 1\n"
    before, after = host.disk_counters(text, (254, 0)), host.disk_counters(text.replace(" 20 2 160 8 3", " 25 2 200 9 1"), (254, 0))
    found = host.grown(before, after)
    equal((found["device"], found["writes"], found["sectors_written"], found["in_flight"], found["flushes"]), ("vda", 5, 40, 1, 0))
    equal(host.disk_counters(text, (254, 1))["device"], "vda1")
    equal((host.disk_counters(text, (8, 0)), host.grown(None, None)), (None, None))


@test
def the_generator_is_ended_when_the_run_wrote_what_it_may_and_when_its_time_is_over():
    with tempfile.TemporaryDirectory() as d:
        pathlib.Path(d, "file").write_bytes(b"x" * 65536)
        with host.Watch(os.getpid(), {}, d, 0, 4096) as watch:
            status, _, _ = host.generate(["sleep", "600"], watch, 300)
            equal((status, watch.full), (-signal.SIGKILL, "the run wrote more than 4096 bytes"))
        with host.Watch(os.getpid(), {}, d, 1 << 60) as watch:
            host.generate(["sleep", "600"], watch, 300)
            equal("are left on the disk" in watch.full, True)
        with host.Watch(os.getpid(), {}, d, 0) as watch:
            equal(host.generate(["sleep", "60"], watch, 0.2), (None, "", "the generator did not end within 0.2 s"))
            equal(host.generate(["sh", "-c", "echo out; echo err >&2; exit 3"], watch, 30), (3, "out\n", "err"))
            found = watch.evidence()
            equal((len(found["rss_samples_bytes"]) >= 1, found["rss_samples_bytes"][0] > 1 << 20, watch.full), (True, True, None))
            if found["disk"]:
                equal(found["disk"]["reads"] >= 0, True)


@test
def ctrl_c_ends_the_generator_and_the_program_with_it():
    program = """
import os, sys
sys.path.insert(0, %r)
import host
host.end_on_signals()
with host.Watch(os.getpid(), {}, ".", 0) as watch:
    host.generate(["sh", "-c", "echo $$ >&2; exec sleep 600"], watch, 500)
""" % str(HERE)
    # The generator's stderr is the program's to keep, so its id comes through /proc.
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        children, end = "", time.monotonic() + 120
        while not children and time.monotonic() < end:
            for task in os.listdir("/proc/%d/task" % process.pid):
                children += limits.read("/proc/%d/task/%s/children" % (process.pid, task)) or ""
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        equal(process.wait(120), 130)
    equal((bool(children), [pid for pid in children.split() if os.path.exists("/proc/" + pid)]), (True, []))


# qualify.

def qualify_args(**more):
    return argparse.Namespace(**dict(dict(qualify.PROTOCOL, scenarios=list(qualify.SCENARIOS), baseline_ref="v1.2.3", candidate_ref="HEAD", any_disk=False, dir=".",
                                          limits=argparse.Namespace(kind="cgroup v2", why=None, json=lambda: {"kind": "cgroup v2"})), **more))


@test
def only_the_whole_protocol_against_a_version_tag_is_no_development():
    with patched(qualify, is_version_tag=lambda ref: ref == "v1.2.3"):
        equal(qualify.development(qualify_args()), [])
        for more, word in (({"pairs": 9}, "--pairs is not 10"), ({"warmup": 29}, "--warmup is not 30"), ({"measure": 60}, "--measure is not 120"), ({"drain": 60}, "--drain is not 1800"),
                           ({"iterations": 1000}, "--iterations is not 100000"), ({"seed": 1}, "--seed is not 802"), ({"calibration_pairs": 0}, "--calibration-pairs is not 2"),
                           ({"spread": [0.5, 0.1]}, "--spread is not 0.05,0.1"), ({"scenarios": ["raw_write"]}, "--scenarios has not all of them"),
                           ({"baseline_ref": "main"}, "--baseline-ref is no version tag"), ({"baseline_ref": None}, "the baseline is no version tag (--baseline-ref)"),
                           ({"candidate_ref": None}, "the candidate is no commit (--candidate-ref)"), ({"any_disk": True}, "--any-disk"),
                           ({"limits": argparse.Namespace(kind=None, why="read-only")}, "limits are not in force: read-only")):
            equal(qualify.development(qualify_args(**more)), [word])


def repository(directory):
    def git(*arguments):
        subprocess.run(["git", "-C", directory, "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    git("init")
    git("commit", "--allow-empty", "-m", "one")
    git("tag", "v1.2.3")
    git("tag", "-a", "v1.2.4", "-m", "annotated")
    git("tag", "latest")
    git("branch", "v9.9.9")


@test
def a_version_tag_is_a_tag_and_not_a_branch_of_that_name():
    with tempfile.TemporaryDirectory() as d:
        repository(d)
        with patched(run, ROOT=pathlib.Path(d)):
            found = {ref: qualify.is_version_tag(ref) for ref in ("v1.2.3", "v1.2.4", "latest", "v9.9.9", "v1.2", "v1.2.3-rc1", "v3.2.1", "HEAD", "", None)}
            equal([ref for ref, good in found.items() if good], ["v1.2.3", "v1.2.4"])
            equal((len(qualify.commit_of("v1.2.4")), qualify.commit_of("v1.2.4") == qualify.commit_of("HEAD"), qualify.commit_of("--all")), (40, True, ""))


@test
def evidence_is_refused_before_anything_is_measured():
    programs = ["--baseline", "/bin/true", "--candidate", "/bin/true", "--bench", "/bin/true", "--qualify", "/bin/true"]
    equal(refused(lambda: qualify.arguments([*programs, "--evidence", "--pairs", "2", "--measure", "5"]), "no evidence from development: --pairs is not 10; --measure is not 120",
                  "the baseline is no version tag", "the candidate is no commit"), 2)
    equal(qualify.arguments([*programs, "--pairs", "2"]).pairs, 2)


@test
def wrong_use_of_qualify_is_told_precisely():
    tools = ["--candidate", "/bin/true", "--bench", "/bin/true", "--qualify", "/bin/true"]
    for argv, words in (([], "the baseline is --baseline or --baseline-ref"), (["--baseline", "/bin/true", "--baseline-ref", "HEAD"], "the baseline is --baseline or --baseline-ref"),
                        (["--baseline", "/none"], "/none is no program"), (["--baseline", "/tmp"], "/tmp is no program"), (["--baseline-ref", "no-such"], "--baseline-ref: no-such is no commit here"),
                        (["--baseline", "/bin/true", "--pairs", "0"], "numbers are whole and above 0"), (["--baseline", "/bin/true", "--spread", "x"], "--spread is two numbers"),
                        (["--baseline", "/bin/true", "--scenarios", "raw_write,raw_write"], "each at most once")):
        equal(refused(lambda: qualify.arguments([*tools, *argv]), words), 2)


@test
def development_cannot_write_where_evidence_is():
    with tempfile.TemporaryDirectory() as d:
        root = pathlib.Path(d)
        (root / "docs" / "evidence").mkdir(parents=True)
        (root / "link").symlink_to(root / "docs" / "evidence")
        with patched(qualify, EVIDENCE=root / "docs" / "evidence"), patched(run, ROOT=root):
            for name in ("docs/evidence/a.json", "docs/../docs/evidence/a/b.json", "link/a.json"):
                refused(lambda: qualify.refuse_out(str(root / name)), "only --evidence writes to docs/evidence")
            qualify.refuse_out(str(root / "docs" / "a.json"))


def main_of(root, judged, **more):
    args = qualify_args(calibration_only=False, out=str(root / "out.json"), evidence=True, **more)
    args.any_disk, args.calibration_pairs = True, 0
    with patched(qualify, EVIDENCE=root / "docs", arguments=lambda: args, side=lambda *_: None, document=lambda *_: {"runs": []}, judge=lambda *_: judged,
                 commit_of=lambda ref: "c" * 40), patched(run, ROOT=root), patched(host, end_on_signals=lambda: None), quiet():
        status = qualify.main()
    return status, [p.name for p in (root / "docs").iterdir()] if (root / "docs").exists() else []


@test
def evidence_is_the_judged_document_whatever_the_verdict_but_none_after_a_broken_rule():
    for judged, wanted in (((0, "{}\n"), (0, ["v1.2.3-to-cccccccccccc.json"])), ((1, "{}\n"), (1, ["v1.2.3-to-cccccccccccc.json"])), ((1, ""), (1, []))):
        with tempfile.TemporaryDirectory() as d:
            equal(main_of(pathlib.Path(d), judged, limits=argparse.Namespace(kind="x", why=None)), wanted)


def fake_metrics(throughput, p99=100):
    return {"publish_messages_per_second": throughput, "receive_messages_per_second": throughput, "pub_ack_p99_us": p99, "rss_peak_bytes": 1 << 20}


@test
def pairs_run_baseline_first_and_then_candidate_first():
    sides = {name: argparse.Namespace(commit=name[0]) for name in ("baseline", "candidate")}
    with patched(qualify, measure=lambda build, *_: fake_metrics(10)), quiet():
        runs = qualify.measure_pairs(sides, 2, qualify_args(scenarios=["raw_write", "sustainable"]))
    equal([(r["pair"], r["position_in_pair"], r["variant"], r["commit"]) for r in runs[:4]], [(1, 1, "baseline", "b"), (1, 2, "candidate", "c"), (2, 1, "candidate", "c"), (2, 2, "baseline", "b")])
    equal(([r["sequence"] for r in runs], runs[4]["case"]), (list(range(1, 9)), "sustainable"))


@test
def calibration_measures_one_build_four_times_and_refuses_a_machine_that_wavers():
    for rates, p99, wavers in (([100, 104, 101, 100], [100] * 4, False), ([100, 106, 101, 100], [100] * 4, True), ([100] * 4, [100, 100, 111, 100], True), ([100] * 4, [100, 109, 100, 100], False)):
        found = list(map(fake_metrics, rates, p99))
        with patched(qualify, measure=lambda *_: found.pop(0)), quiet():
            call = lambda: qualify.calibrate(argparse.Namespace(commit="c"), qualify_args(scenarios=["raw_write"]))
            if wavers:
                refused(call, "runs of one build differ by more than 5 % of throughput or 10 % of p99")
            else:
                equal(call()[0]["runs"], 4)
            equal(found, [])


@test
def a_run_whose_limits_did_not_hold_ends_the_comparison():
    held = {"in_force": dict(limits.WANTED), "counters": {}}
    qualify.check_limits({"server": held, "generator": held}, "cgroup v2")
    qualify.check_limits({"server": None, "generator": None}, None)  # nothing was promised
    refused(lambda: qualify.check_limits({"server": held, "generator": None}, "cgroup v2"), "limits of the generator did not hold: it was not in its group")
    refused(lambda: qualify.check_limits({"server": {"in_force": dict(limits.WANTED, memory_bytes=None)}}, "cgroup v1"), "limits of the server did not hold", "'memory_bytes': None")


@test
def what_is_left_on_the_channel_is_looked_at_until_it_is_gone_or_the_looks_are_used_up():
    left = [3, 2, 0, 9]
    with patched(qualify, left_over=lambda *_: {"channel_depth": left.pop(0)}, LOOK_SECONDS=0.01, SETTLE_SECONDS=0.05):
        equal((qualify.settled(None, None), left), ({"channel_depth": 0}, [9]))
        left[:] = [1] * 9
        equal((qualify.settled(None, None), left), ({"channel_depth": 1}, [1] * 4))


@test
def the_document_says_what_was_in_force():
    with patched(qualify, is_version_tag=lambda ref: True):
        full, short = qualify.environment([], qualify_args()), qualify.environment([], qualify_args(pairs=1, limits=argparse.Namespace(kind=None, why="no", json=lambda: {"kind": None, "why": "no"})))
    equal((full["mode"], full["development_because"], full["limits"]), ("full protocol", [], {"kind": "cgroup v2"}))
    equal((short["mode"], len(short["development_because"]), short["limits"]["why"]), ("development", 2, "no"))
    equal(("server" in short["cores"], json.loads(json.dumps(short)) == short), (True, True))


# compare.

def report(**more):
    return dict({"messages": 10, "delivery_verified": True, "delivery_complete": True, "drain_timed_out": False, "missing_messages": 0, "duplicate_messages": 0, "received_unique_messages": 10,
                 "publish_messages_per_second": 100.0, "receive_messages_per_second": 90.0, "latency_us_p50": 1000, "latency_us_p99": 2000, "latency_us_p999": 3000, "latency_us_max": 4000,
                 compare.CPU: 5.0, compare.RSS: 1 << 20}, **more)


def ran(profile, number, found, payload=1024, mode="saturation", status=0, why=None):
    return {"profile": profile, "payload_bytes": payload, "mode": mode, "run": number, "incomplete": why or compare.incomplete(status, found), "report": found}


@test
def a_run_is_complete_when_all_came_back_once_and_in_time():
    for status, found, why in ((0, report(), None), (0, None, "no report"), (0, report(messages=0), "nothing was published"), (0, report(delivery_verified=False), "delivery was not verified"),
                               (1, report(drain_timed_out=True, missing_messages=3), "the drain limit was reached, 3 missing"), (1, report(missing_messages=2), "2 missing"),
                               (0, report(received_unique_messages=9), "1 missing"), (1, report(duplicate_messages=1), "1 came twice"),
                               (1, report(), "the generator ended with 1"), (None, report(), "the generator ended with None"), (0, report(delivery_complete=False), "the generator ended with 0")):
        equal(compare.incomplete(status, found), why)


@test
def receive_medians_are_of_complete_runs_and_publish_medians_of_all_reports():
    runs = [ran("durable", 1, report()), ran("durable", 2, report(publish_messages_per_second=300.0, receive_messages_per_second=10.0, duplicate_messages=1)),
            ran("durable", 3, report(publish_messages_per_second=200.0, receive_messages_per_second=70.0)), ran("durable", 4, None, why="killed")]
    found = compare.summary(runs)
    equal((found["complete_runs"], found["incomplete_runs"]), (2, 2))
    equal((found["median"]["publish_messages_per_second"], found["median"]["receive_messages_per_second"]), (200.0, 80.0))
    none = compare.summary(runs[1:2] + runs[3:])
    equal((none["complete_runs"], none["median"]["publish_messages_per_second"], none["median"]["receive_messages_per_second"]), (0, 300.0, None))
    equal(compare.summary(runs[3:])["median"]["latency_us_p50"], None)


@test
def ratios_are_of_runs_of_one_round_that_both_have():
    ours = [ran("durable", 1, report(publish_messages_per_second=200.0)), ran("durable", 2, report(publish_messages_per_second=50.0)), ran("durable", 3, None)]
    theirs = [ran("nsqd_sync_1", 2, report(drain_timed_out=True)), ran("nsqd_sync_1", 1, report(receive_messages_per_second=45.0)), ran("nsqd_sync_1", 3, report())]
    equal(compare.ratio(ours, theirs, "publish_messages_per_second"), {"lowest": 0.5, "median": 1.25, "highest": 2.0})
    equal(compare.ratio(ours, theirs, compare.RECEIVE), {"lowest": 2.0, "median": 2.0, "highest": 2.0})
    equal(compare.ratio(ours[2:], theirs, compare.RECEIVE), None)


@test
def what_is_strict_and_what_is_relaxed_never_meet():
    runs = [ran(name, number, report(), payload, mode) for number in (1, 2) for payload in (100, 1024) for mode in compare.MODES for name in compare.PROFILES]
    doc = compare.document(runs, {"runs": 2, "measurement_seconds": 1}, {"machine": "m"})
    equal((set(doc["strict"]["profiles"]), set(doc["relaxed"]["profiles"])), ({"durable", "nsqd_sync_1", "nsqd_sync_2500"}, {"write_ack", "nsq_relaxed"}))
    equal({(c["profile"], c["over"]) for c in doc["strict"]["comparisons"]}, {("durable", "nsqd_sync_1"), ("durable", "nsqd_sync_2500")})
    equal((len(doc["strict"]["comparisons"]), len(doc["strict"]["profiles"]["durable"]), set(doc["relaxed"])), (8, 4, {"profiles"}))
    parts = [part for part in compare.tables(doc).split("\n\n") if part.startswith("|")]
    equal([("durable" in part, "write_ack" in part) for part in parts], [(True, False), (True, False), (False, True)])
    equal(json.loads(json.dumps(doc)) == doc, True)


@test
def the_tables_say_how_many_runs_were_complete_and_leave_out_what_is_not_known():
    doc = compare.document([ran("durable", 1, report(drain_timed_out=True, missing_messages=4)), ran("nsqd_sync_1", 1, None)], {"runs": 1, "measurement_seconds": 1}, {"machine": "m"})
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in compare.tables(doc).splitlines() if line.startswith("| 1,024")]
    equal(rows[0], ["1,024", "saturation", "durable", "0 of 1", "100", "-", "1.00 / 2.00", "5.0", "1"])
    equal(rows[1], ["1,024", "saturation", "nsqd_sync_1", "0 of 1", "-", "-", "- / -", "-", "-"])
    equal(rows[2], ["1,024", "saturation", "nsqd_sync_1", "-", "-", "-", "-", "-"])


def compare_args(*argv):
    return compare.arguments(["--server", "/bin/true", "--bench", "/bin/true", *argv])


@test
def servers_take_turns_and_relaxed_ones_only_when_asked_for():
    def names(args):
        order = []
        with patched(compare, measure=lambda profile, *_: order.append(next(n for n, p in compare.PROFILES.items() if p is profile)) or (0, report(), None)), quiet():
            runs = compare.measure_all(args, ".")
        return order, runs
    order, runs = names(compare_args("--runs", "2", "--payloads", "100", "--modes", "fixed"))
    equal(order, ["durable", "nsqd_sync_1", "nsqd_sync_2500", "nsqd_sync_2500", "nsqd_sync_1", "durable"])
    equal([r["sequence"] for r in runs], [1, 2, 3, 4, 5, 6])
    equal(names(compare_args("--runs", "1", "--payloads", "100", "--modes", "fixed", "--relaxed"))[0][3:], ["write_ack", "nsq_relaxed"])
    late = compare_args()
    late.seconds = -1
    equal(names(late), ([], []))


@test
def profiles_are_what_their_names_say():
    equal(compare.PROFILES["nsqd_sync_2500"].flags, ("-mem-queue-size=0", "-sync-every=2500"))
    for name in ("durable", "write_ack", "nsq_relaxed"):
        equal(compare.PROFILES[name].config["queue"]["publish_ack_mode"], name)
    args = compare_args()
    equal((args.payloads, args.runs, args.modes, args.rate, args.profiles), ([100, 1024, 10240], 3, ["saturation", "fixed"], 100, compare.STRICT))


@test
def wrong_use_of_compare_is_told_precisely():
    for argv, words in ((["--profiles", "nsq_relaxed"], "--relaxed adds write_ack and nsq_relaxed"), (["--modes", "slow"], "modes are saturation, fixed"), (["--payloads", "7"], "below 8 bytes"),
                        (["--payloads", "100,100"], "one stands twice"), (["--runs", "0"], "above 0"), (["--rate", "15"], "--rate 15 is below the number of producers, 16"),
                        (["--server", "/none"], "/none is no program"), (["--payloads", "x"], "invalid numbers value")):
        equal(refused(lambda: compare_args(*argv), words), 2)


print("%d passed, %d failed" % (passed, failed))
sys.exit(failed > 0)
