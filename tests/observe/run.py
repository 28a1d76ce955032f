#!/usr/bin/env python3
"""The real process watched from outside (scripts/observe).

    run.py --server build/dev/bin/rustqueued [--only python,browser,prometheus]

One line per case, a last line `N passed, N failed`. A missing program is a failure, never a silent skip.
"""
import argparse, json, os, pathlib, shutil, subprocess, sys, tempfile, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / "fixtures"), str(HERE)]
import browser, check, prometheus

OUT = ROOT / "build" / "observe"
TOKEN = "console-token-of-the-test"


def venv():
    """Python with the pinned client library."""
    python, stamp = OUT / "venv" / "bin" / "python", OUT / "venv" / "requirements.txt"
    wanted = (HERE / "requirements.txt").read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(OUT / "venv", ignore_errors=True)
        for argv in ([sys.executable, "-m", "venv", str(OUT / "venv")],
                     [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(HERE / "requirements.txt")]):
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                sys.exit("Error: %s\n%s" % (" ".join(argv), done.stdout[-2000:]))
        stamp.write_text(wanted)
    return str(python)


def publish(http, topic, body):
    with urllib.request.urlopen(urllib.request.Request("http://%s/pub?topic=%s" % (http, topic), body, method="POST"), timeout=60) as r:
        r.read()


def manage(server, path, body):
    status, answer = server.request("POST", "/v1/manage/" + path, json.dumps(body).encode(),
                                    {"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
    if status != 200:
        raise check.Mismatch("%s: %d %s" % (path, status, answer[:200]))
    return json.loads(answer)


def prepare(server):
    """A TTL_DISCARD Topic for the feeds, and a Topic with something in every kind of number."""
    manage(server, "fences/sync", {})
    status, head = server.request("GET", "/v1/registry/head", None, {"Authorization": "Bearer " + TOKEN})
    manage(server, "topics/create", {"operation_id": "observe-the-live-feed", "topic": "live", "expected_revision": json.loads(head)["revision"],
                                     "delivery_mode": "TTL_DISCARD", "message_ttl_seconds": 600})
    server.post("/topic/create?topic=watched")
    server.post("/channel/create?topic=watched&channel=c")
    for _ in range(20):
        server.post("/pub?topic=watched", b"body")


class Results:
    passed = failed = 0

    def case(self, part, name, why):
        self.passed, self.failed = self.passed + (why is None), self.failed + (why is not None)
        print("ok   %s: %s" % (part, name) if why is None else "FAIL %s: %s: %s" % (part, name, why), flush=True)


def python_part(results, server, origin):
    done = subprocess.run([venv(), str(HERE / "feed_client.py"), "--http", "127.0.0.1:%d" % server.http, "--topic", "live", "--origin", origin],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "FAIL "))]
    for line in lines:
        name, _, why = line.split(" ", 2)[2].partition(": ")
        results.case("python", name, None if line.startswith("ok ") else why)
    if done.returncode != 0 or not lines:
        results.case("python", "run", "status %d: %s" % (done.returncode, done.stdout[-500:]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--only", default="python,browser,prometheus")
    args = parser.parse_args()
    parts, results = args.only.split(","), Results()
    OUT.mkdir(parents=True, exist_ok=True)
    for part, program in (("browser", browser.BROWSER), ("prometheus", "prometheus"), ("prometheus", "promtool")):
        if part in parts and shutil.which(program) is None:
            results.case(part, program, "is not installed")
            parts.remove(part)
    directory = tempfile.mkdtemp(prefix="rustqueue-observe-")
    site = browser.Site("live")
    origin = "http://127.0.0.1:%d" % site.port
    token = os.path.join(directory, "console")
    with open(token, "w") as file:
        file.write(TOKEN)
    config = {"websocket": {"enabled": True, "allowed_origins": [origin]},
              "security": {"console_management_enabled": True, "console_token_file": token},
              "metrics": {"detailed_queue_metrics": True}, "limits": {"heartbeat_interval_ms": 4000}}      # a client may be slow for that long
    try:
        server = check.Server("%s --config {config}" % os.path.abspath(args.server), os.path.join(directory, "data"), 1, 1, config)
        site.point_at("127.0.0.1:%d" % server.http)
        try:
            server.wait_ready()
            prepare(server)
            if "python" in parts:
                python_part(results, server, origin)
            if "browser" in parts:
                for name, why in browser.cases(site, server, "live", publish):
                    results.case("browser", name, why)
            if "prometheus" in parts:
                for name, why in prometheus.cases(directory, server, check.free_port(None)):
                    results.case("prometheus", name, why)
            status = server.terminate()
            results.case("server", "clean exit", None if status == 0 else "%s: %s" % (status, server.tail()))
        finally:
            if server.process.poll() is None:
                server.kill()
    finally:
        site.close()
        shutil.rmtree(directory, ignore_errors=True)
    print("%d passed, %d failed" % (results.passed, results.failed))
    return 1 if results.failed else 0


sys.exit(main())
