#!/usr/bin/env python3
"""Real clients against the real process: go-nsq 1.1.0 and pynsq 0.9.1, on loopback ports that the system chooses.

    run.py --server build/dev/bin/rustqueued [--only go,python,kill,matrix,differential] [--cases NAME,...]
    run.py --nsqd PATH        the same cases against nsqd, which shows that they are right about the wire

One line per case, a last line `N passed, N failed`. What the clients need is built under build/compat/.
"""
import argparse, os, pathlib, re, shutil, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
import check
import matrix

OUT = ROOT / "build" / "compat"
CONFIG = {"queue": {"bootstrap_retention_seconds": 90}}
CASE_SECONDS = 180


def run(argv, cwd=None, env=None):
    done = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit("Error: %s\n%s" % (" ".join(map(str, argv)), done.stdout[-3000:]))
    return done.stdout


def go_client():
    program = OUT / "go-client"
    run(["go", "build", "-o", str(program), "."], HERE / "go", dict(go_environment(), GOFLAGS="-mod=readonly -buildvcs=false", GOTOOLCHAIN="local"))
    return [str(program)]


def go_environment():
    env = dict(os.environ)
    if "HOME" not in env and "GOCACHE" not in env:
        env.update(GOCACHE=str(OUT / "go-cache"), GOPATH=str(OUT / "go"))
    return env


def nsqd_program():
    """nsqd 1.3.0, of the module that pins it for the benchmarks."""
    run(["go", "build", "-o", str(OUT / "nsqd"), "github.com/nsqio/nsq/apps/nsqd"], ROOT / "tests" / "bench" / "nsqd",
        dict(go_environment(), GOFLAGS="-mod=readonly -buildvcs=false", GOTOOLCHAIN="local"))
    return str(OUT / "nsqd")


def python_client():
    venv = OUT / "venv"
    python, stamp = venv / "bin" / "python", venv / "requirements.txt"
    wanted = (HERE / "python" / "requirements.txt").read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(venv, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(venv)])
        run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(HERE / "python" / "requirements.txt")])
        stamp.write_text(wanted)
    return [str(python), "-W", "ignore", str(HERE / "python" / "cases.py")]


class Nsqd:
    """nsqd in the place of our server, for checking the cases themselves."""

    def __init__(self, program, directory):
        self.tcp, self.http = check.free_port(None), check.free_port(None)
        os.makedirs(directory)
        self.log = directory + ".log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, "-data-path", directory, "-tcp-address", "127.0.0.1:%d" % self.tcp,
                                             "-http-address", "127.0.0.1:%d" % self.http], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    wait_ready, get, request, kill, tail, output = (check.Server.wait_ready, check.Server.get, check.Server.request, check.Server.kill,
                                                    check.Server.tail, check.Server.output)
    terminate = check.Server.terminate


class Results:
    passed = failed = 0

    def line(self, client, text):
        good = text.startswith("ok ")
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print("%s %s: %s" % ("ok  " if good else "FAIL", client, text.split(" ", 1)[1]), flush=True)


def run_differential(results, server, nsqd):
    done = subprocess.run([sys.executable, str(HERE / "differential" / "run.py"), "--server", server, "--nsqd", nsqd, "--show"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    *lines, last = done.stdout.strip().splitlines() or [""]
    print("\n".join(lines), flush=True)
    counts = re.fullmatch(r"([0-9]+) passed, ([0-9]+) failed", last)
    if counts and (done.returncode == 0) == (counts[2] == "0"):
        results.passed, results.failed = results.passed + int(counts[1]), results.failed + int(counts[2])
    else:
        results.line("differential", "FAIL run: %s" % last)


def run_cases(results, client, argv, server, cases, late):
    argv = argv + ["--tcp", "127.0.0.1:%d" % server.tcp, "--http", "127.0.0.1:%d" % server.http] + (["--only", cases] if cases else [])
    argv += late
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
        said, _ = publisher.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        publisher.kill()
        publisher.wait()
        said = "the publisher did not notice"
    server = start("kill-2")
    try:
        done = subprocess.run(client + ["drain", "--tcp", "127.0.0.1:%d" % server.tcp, "--ledger", ledger], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, timeout=120)
        good = done.returncode == 0 and ready.strip() == "ready" and said.startswith("acknowledged")
        results.line("go", "%s sigkill-in-mid-stream: %s; %s" % ("ok" if good else "FAIL", said.strip(), done.stdout.strip()))
    finally:
        server.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server")
    parser.add_argument("--nsqd")
    parser.add_argument("--only", default="go,python,kill,matrix,differential")
    parser.add_argument("--cases", default="")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    if not args.server and not args.nsqd:
        parser.error("--server or --nsqd")
    parts, results = args.only.split(","), Results()
    OUT.mkdir(parents=True, exist_ok=True)
    go = go_client() if {"go", "kill", "matrix"} & set(parts) else None
    python = python_client() if {"python", "matrix"} & set(parts) else None
    directory = tempfile.mkdtemp(prefix="rustqueue-compat-")
    try:
        if args.nsqd:
            server = Nsqd(args.nsqd, os.path.join(directory, "nsqd"))
        else:
            command = "%s --config {config}" % os.path.abspath(args.server)
            server = check.Server(command, os.path.join(directory, "data"), 1, 1, CONFIG)
        try:
            server.wait_ready()
            if "go" in parts:
                run_cases(results, "go", go + ["cases"], server, args.cases, ["--late", "15s"] if args.nsqd else [])
            if "python" in parts:
                run_cases(results, "python", python, server, args.cases, ["--late", "15"] if args.nsqd else [])
            status = server.terminate()
            if status != 0:
                results.line("server", "FAIL clean-stop: exit status %d: %s" % (status, server.tail()))
        except check.Mismatch as e:
            results.line("server", "FAIL run: %s" % e)
        finally:
            server.kill()
        if "kill" in parts and not args.nsqd and not args.cases:
            def start(tag):
                return check.Server(command, os.path.join(directory, "kill"), 1, 1, CONFIG, tag=tag).wait_ready()
            try:
                kill_in_mid_stream(results, go, start, directory)
            except (check.Mismatch, subprocess.TimeoutExpired) as e:
                results.line("go", "FAIL sigkill-in-mid-stream: %s" % e)
        if "matrix" in parts and not args.nsqd and not args.cases:
            try:
                snappy = subprocess.run(python[:1] + ["-c", "import snappy"], stderr=subprocess.DEVNULL).returncode == 0
                clients = {"go-nsq": (go + ["cases"], matrix.GO_CASES, lambda t: ""),
                           "pynsq": (python, matrix.PYTHON_CASES, lambda t: "" if snappy or "snappy" not in t else "python-snappy is missing")}
                matrix.run_matrix(results, command, directory, clients, CONFIG)
            except (check.Mismatch, subprocess.TimeoutExpired) as e:
                results.line("matrix", "FAIL run: %s" % e)
        if "differential" in parts and not args.nsqd and not args.cases:
            run_differential(results, os.path.abspath(args.server), nsqd_program())
    finally:
        if args.keep or results.failed:
            print("kept: %s" % directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print("%d passed, %d failed" % (results.passed, results.failed))
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
