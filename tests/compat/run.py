#!/usr/bin/env python3
"""Real clients and tools against the real process, on loopback ports that the system chooses: go-nsq 1.1.0, pynsq 0.9.1, nsqjs 0.13.0,
nsq-j 1.2, and the programs of NSQ 1.3.0.

    run.py --server build/dev/bin/rustqueued [--only go,python,node,java,kill,lookup,tools,matrix,differential,random] [--cases NAME,...]
    run.py --nsqd PATH        the same cases against nsqd, which shows that they are right about the wire

One line per case, a last line `N passed, N failed`. What they need is built under build/compat/ (build.py).
"""
import argparse, os, pathlib, re, shutil, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
import build, check, lookup, matrix, tools
from nsqd import Nsqd

CONFIG = {"queue": {"bootstrap_retention_seconds": 90}}
CASE_SECONDS = 900
CLIENTS = ("go", "python", "node", "java")


class Results:
    passed = failed = 0

    def line(self, client, text):
        good = text.startswith("ok ")
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print("%s %s: %s" % ("ok  " if good else "FAIL", client, text.split(" ", 1)[1]), flush=True)


def run_counting(results, name, program, *arguments, timeout=3600):
    """A program of differential/, which counts by itself."""
    done = subprocess.run([sys.executable, str(HERE / "differential" / program), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=timeout)
    *lines, last = done.stdout.strip().splitlines() or [""]
    print("\n".join(lines), flush=True)
    counts = re.fullmatch(r"([0-9]+) passed, ([0-9]+) failed", last)
    if counts and (done.returncode == 0) == (counts[2] == "0"):
        results.passed, results.failed = results.passed + int(counts[1]), results.failed + int(counts[2])
    else:
        results.line(name, "FAIL run: %s" % last)


def seed_of_commit():
    """Each commit is tried with scripts of its own, and the same ones again."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return int(done.stdout[:8] or "1", 16)


def run_cases(results, client, argv, server, cases):
    argv = argv + ["--tcp", "127.0.0.1:%d" % server.tcp, "--http", "127.0.0.1:%d" % server.http] + (["--only", cases] if cases else [])
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    other = []
    try:
        out, _ = process.communicate(timeout=CASE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        out += "\nFAIL run: not finished after %d s" % CASE_SECONDS
    for text in out.splitlines():
        if text.startswith(("ok ", "FAIL ")):
            results.line(client, text)
        elif text.strip():
            other.append(text)
    if process.returncode not in (0, 1):
        results.line(client, "FAIL run: exit status %d, %s" % (process.returncode, " | ".join(other[-5:])))
    if server.process.poll() is not None:
        results.line(client, "FAIL run: the server ended with status %d: %s" % (server.process.returncode, server.tail()))


def kill_in_mid_stream(results, client, start, directory):
    """SIGKILL while go-nsq publishes; every acknowledged message is there after the restart."""
    ledger = os.path.join(directory, "ledger")
    server = start("kill-1")
    publisher = subprocess.Popen(client + ["publish", "--tcp", "127.0.0.1:%d" % server.tcp, "--ledger", ledger], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, text=True)
    ready = publisher.stdout.readline()
    time.sleep(0.7)
    server.kill()
    try:
        said, _ = publisher.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        publisher.kill()
        publisher.wait()
        said = "the publisher did not notice"
    server = start("kill-2")
    try:
        done = subprocess.run(client + ["drain", "--tcp", "127.0.0.1:%d" % server.tcp, "--ledger", ledger], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, timeout=600)
        good = done.returncode == 0 and ready.strip() == "ready" and said.startswith("acknowledged")
        results.line("go", "%s sigkill-in-mid-stream: %s; %s" % ("ok" if good else "FAIL", said.strip(), done.stdout.strip()))
    finally:
        server.kill()


class Run:
    """What every part needs; the parts do not depend on each other."""

    def __init__(self, args, directory):
        self.args, self.directory, self.results = args, directory, Results()
        self.command = "%s --config {config}" % os.path.abspath(args.server or "")
        self.clients = {}

    def client(self, name):
        if name not in self.clients:
            make = {"go": build.go_client, "python": build.python_client, "node": build.node_client, "java": build.java_client}[name]
            argv = make()
            self.clients[name] = argv if name == "python" else argv + ["cases"]
        return self.clients[name]

    def by_lookup(self, name):
        argv = self.client(name)
        return argv[:-1] + ([str(HERE / "python" / "lookup.py")] if name == "python" else ["lookup"])

    def cases(self, parts):
        """One Broker, or nsqd, for the cases of all clients."""
        if self.args.nsqd:
            sizes = ("-max-msg-size", "20971520", "-max-body-size", "20971520")      # this Broker's
            server = Nsqd(self.args.nsqd, os.path.join(self.directory, "nsqd"), sizes)
        else:
            server = check.Server(self.command, os.path.join(self.directory, "data"), 1, 1, CONFIG)
        try:
            server.wait_ready()
            for name in parts:
                run_cases(self.results, name, self.client(name) + (["--nsqd"] if self.args.nsqd else []), server, self.args.cases)
            status = server.terminate()
            if status != 0:
                self.results.line("server", "FAIL clean-stop: exit status %d: %s" % (status, server.tail()))
        finally:
            server.kill()

    def kill(self):
        def start(tag):
            return check.Server(self.command, os.path.join(self.directory, "kill"), 1, 1, CONFIG, tag=tag).wait_ready()
        kill_in_mid_stream(self.results, self.client("go")[:-1], start, self.directory)

    def lookup(self):
        consumers = {name: self.by_lookup(name) for name in CLIENTS}
        lookup.run_lookup(self.results, build.nsq_programs(), consumers, self.command, os.path.join(self.directory, "lookup"), CONFIG)

    def tools(self):
        tools.run_tools(self.results, build.nsq_programs(), self.command, os.path.join(self.directory, "tools"), CONFIG, self.args.cases)

    def matrix(self):
        clients = {"go-nsq": (self.client("go"), matrix.GO_CASES), "pynsq": (self.client("python"), matrix.PYTHON_CASES),
                   "nsqjs": (self.client("node"), matrix.NODE_CASES), "nsq-j": (self.client("java"), matrix.JAVA_CASES)}
        matrix.run_matrix(self.results, self.command, self.directory, clients, CONFIG)

    def beside_nsqd(self):
        return ["--server", os.path.abspath(self.args.server), "--nsqd", build.nsq_programs()["nsqd"]]

    def differential(self):
        run_counting(self.results, "differential", "run.py", *self.beside_nsqd(), "--show")

    def random(self):
        # By default scripts known to be clean, so that a failure is this change's. What the rules do not know yet is searched for by hand.
        seconds = os.environ.get("RANDOM_SECONDS")
        which = ["--seed", str(seed_of_commit()), "--seconds", seconds] if seconds else ["--seed", "1", "--scripts", "1500"]
        run_counting(self.results, "rules", "random_rules_test.py")
        run_counting(self.results, "random", "random_run.py", *self.beside_nsqd(), *which, timeout=3600 + float(seconds or 0))

    def part(self, name, function, *arguments):
        began = time.monotonic()
        try:
            function(*arguments)
        except (check.Mismatch, subprocess.TimeoutExpired, OSError) as e:
            self.results.line(name, "FAIL run: %s" % e)
        print("== %s: %d s" % (name, time.monotonic() - began), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server")
    parser.add_argument("--nsqd")
    parser.add_argument("--only", default=",".join(CLIENTS + ("kill", "lookup", "tools", "matrix", "differential", "random")))
    parser.add_argument("--cases", default="")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    if not args.server and not args.nsqd:
        parser.error("--server or --nsqd")
    parts = args.only.split(",")
    build.OUT.mkdir(parents=True, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="rustqueue-compat-")
    run = Run(args, directory)
    try:
        cases = [name for name in CLIENTS if name in parts]
        if cases:
            run.part("cases", run.cases, cases)
        others = [] if args.nsqd else ["tools"] if args.cases else ["kill", "lookup", "tools", "matrix", "differential", "random"]
        for name in others:
            if name in parts:
                run.part(name, getattr(run, name))
    finally:
        if args.keep or run.results.failed:
            print("kept: %s" % directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print("%d passed, %d failed" % (run.results.passed, run.results.failed))
    return 1 if run.results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
