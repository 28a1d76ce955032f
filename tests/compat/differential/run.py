#!/usr/bin/env python3
"""Sends one script of raw bytes to this Broker and to nsqd 1.3.0 and compares the answers, frame by frame and header by header.

    run.py --server build/dev/bin/rustqueued --nsqd PATH [--only PATTERN] [--show]

What a decision wants to be different stands in differences.py; everything else fails. A probe that is not as wanted runs again, by itself, up to three
times in all (judge). --show prints both transcripts of what differs.
One line for each failed probe, the table of differences, a last line `N passed, N failed`.
"""
import argparse, concurrent.futures, difflib, fnmatch, json, os, pathlib, re, shutil, ssl, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "tests" / "fixtures")]
import check, differences, lockstep, registry, web, wire
from auth_documents import ALL, DOCUMENTS
from nsqd import Nsqd
import tcp_probes, flow_probes, http_probes, stats_probes, small_probes

AT_ONCE = 8
ONE_BY_ONE = {"stats", "config", "tls stats", "auth stats"}
RUNS = 3
NSQ_SIZES = {"queue": {"max_message_bytes": 1048576}, "limits": {"max_body_bytes": 5242880}}


def authorize(method, path, query, body):
    secret = query.get("secret", "")
    if secret == "echo":          # the answer shows the question
        return 200, json.dumps({"ttl": 60, "identity": "%s %s" % (method, path), "identity_url": ",".join("=".join(q) for q in query.items()), "authorizations": ALL}).encode()
    return 403 if secret == "wrong" else 200, DOCUMENTS.get(secret, b"garbage")


def asking(address):
    """(configuration of this Broker, flags of nsqd) with an auth server that may take its time: it runs in this process, beside the clients."""
    return {**NSQ_SIZES, "limits": {**NSQ_SIZES["limits"], "auth_timeout_ms": 60000}, "security": {"auth_http_addresses": [address]}}, [
        "-auth-http-address", address, "-http-client-connect-timeout", "60s", "-http-client-request-timeout", "60s"]


def configurations(directory):
    """Name -> (configuration of this Broker, flags of nsqd)."""
    file = lambda name: os.path.join(directory, "certificates", name)
    subprocess.run([str(ROOT / "scripts" / "dev-certs"), os.path.join(directory, "certificates")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    auth = web.Site(authorize)
    private = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    private.load_cert_chain(file("node-1.pem"), file("node-1.key"))
    over_tls = "https://%s/auth" % web.Site(authorize, private).address
    tls = {"certificate_file": file("node-1.pem"), "private_key_file": file("node-1.key")}
    tls_flags = ["-tls-cert", file("node-1.pem"), "-tls-key", file("node-1.key")]
    small = {"queue": {"max_message_bytes": 100, "max_defer_ms": 1000, "message_timeout_ms": 2000, "max_message_timeout_ms": 8000, "ephemeral_queue_messages": 3},
             "limits": {"max_body_bytes": 1000, "max_rdy_count": 5, "max_channel_consumers": 1, "heartbeat_interval_ms": 10000, "max_heartbeat_interval_ms": 10000, "output_buffer_size": 1024,
                        "max_output_buffer_size": 1024, "max_output_buffer_timeout_ms": 1000}, "network": {"snappy_enabled": False, "deflate_enabled": False, "max_deflate_level": 3}}
    small_flags = ("-max-msg-size 100 -max-body-size 1000 -max-rdy-count 5 -max-channel-consumers 1 -max-req-timeout 1s -msg-timeout 2s -max-msg-timeout 8s -max-heartbeat-interval 10s "
                   "-max-output-buffer-size 1024 -max-output-buffer-timeout 1s -mem-queue-size 3 -snappy=false -deflate=false -max-deflate-level 3").split()
    secure = {"security.tls": dict(tls, client_ca_file=file("ca.pem"))}
    unknown, unknown_flags = asking(over_tls)
    return {"auth over TLS": ({**unknown, **secure}, tls_flags + ["-tls-root-ca-file", file("ca.pem")] + unknown_flags), "auth of an unknown CA": (unknown, unknown_flags), "plain": (NSQ_SIZES, []), "stats": (NSQ_SIZES, []), "config": (NSQ_SIZES, []), "small": (small, small_flags),
            "tls": ({**NSQ_SIZES, "security.tls": tls}, tls_flags), "tls stats": ({**NSQ_SIZES, "security.tls": tls}, tls_flags), "tls required": ({**NSQ_SIZES, "security.tls": dict(tls, required=True)}, tls_flags + ["-tls-required=tcp-https"]),
            **{name: asking(address)
               for name, address in {"auth": auth.address, "auth stats": auth.address, "auth at root": "http://" + auth.address, "auth at check": "http://u:p@%s/check" % auth.address,
                                     "auth below a path": auth.address + "/a"}.items()}}


def run_probe(server, name, run, attempt=0):
    p = wire.Probe(server, name + attempt * " again")
    try:
        run(p)
    except Exception as e:
        p.lines.append("probe broke: %s: %s" % (type(e).__name__, e))
    p.finish()
    return [clean(line, server).replace(p.topic.decode(), "TOPIC") for line in p.lines]


# What no server can be held to.
VOLATILE = [(r'"(start_time|connect_ts)": [0-9]+', r'"\1": T'), (r"start_time \S+", "start_time T"), (r"uptime \S+", "uptime T"), (r"connected: [0-9hms]+", "connected: T"),
            (r'"(heap_[a-z_]+|gc_[a-z_0-9]+|next_gc_bytes)": [0-9]+', r'"\1": N'), (r"((heap|gc|next_gc)_[a-z_0-9]+ +\\t)[0-9]+", r"\1N"), (r"(127\.0\.0\.1|\[V2 [a-z]+):[0-9]{5}\b", r"\1:PORT"), (r'"hostname": "[^"]*", "http_port"', '"hostname": "H", "http_port"')]


def clean(line, server):
    for port, name in ((server.tcp, "TCP"), (server.http, "HTTP")):
        line = re.sub(r"\b%d\b" % port, name, line)
    line = line.replace(server.data, "DATA")
    for pattern, by in VOLATILE:
        line = re.sub(pattern, by, line)
    for _, _, pattern, by in differences.EVERYWHERE:
        line = re.sub(pattern, by, line)
    return line


def run_pair(name, program, nsqd, directory, config, flags, probes):
    """Probe name -> (nsqd's transcript, ours)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    where = os.path.join(directory, name.replace(" ", "-"))
    theirs = Nsqd(nsqd, where + "-nsqd", flags)
    ours = check.Server("%s --config {config}" % program, where, 1, 1, config, tag=name.replace(" ", "-"))
    out = {}
    try:
        for server, data in ((theirs, where + "-nsqd"), (ours, where)):
            server.wait_ready().context, server.data = context, data
        with concurrent.futures.ThreadPoolExecutor(2 if name in ONE_BY_ONE else 2 * AT_ONCE) as pool:
            def alone(server, *arguments):
                if name.endswith("stats"):
                    lockstep.forget(server)
                return run_probe(server, *arguments)

            def one(server):
                return [alone(server, probe, run) for probe, run in probes]
            if name in ONE_BY_ONE:
                results = [f.result() for f in [pool.submit(one, s) for s in (theirs, ours)]]
            else:
                futures = [[pool.submit(run_probe, s, probe, run) for s in (theirs, ours)] for probe, run in probes]
                results = list(zip(*([f.result() for f in pair] for pair in futures)))
            for (probe, run), a, b in zip(probes, *results):
                out[probe] = [(a, b)]
                while not as_wanted(probe, *out[probe][-1]) and len(out[probe]) < RUNS:
                    out[probe].append(tuple(f.result() for f in [pool.submit(alone, s, probe, run, len(out[probe])) for s in (theirs, ours)]))
        for server, what in ((theirs, "nsqd"), (ours, "this Broker")):
            if server.process.poll() is not None:
                out["%s: %s goes on" % (name, what)] = [(["running"], ["ended with status %s: %s" % (server.process.returncode, server.tail())])]
    finally:
        theirs.kill()
        ours.kill()
    return out


def as_wanted(name, theirs, ours):
    wanted = differences.PROBES.get(name)
    return theirs == ours if wanted is None else theirs != ours and ours == wanted[2]


def judge(results, show):
    """nsqd's goroutines may answer one way or the other (a Channel that was just paused delivers, now and then): one of its answers must fit. This Broker's
    must be the same each time."""
    passed = failed = 0
    for name, runs in results.items():
        theirs, ours = runs[-1]
        wanted = differences.PROBES.get(name)
        if as_wanted(name, theirs, ours) and all(each == ours for _, each in runs):
            passed += 1
            if len(runs) > 1:
                print("nsqd answered %s in another way before" % name)
            continue
        failed += 1
        print("FAIL %s: %s" % (name, "here in one way and in another" if as_wanted(name, theirs, ours) else "as nsqd, but differences.py lists it" if theirs == ours else
                               "not what differences.py says" if wanted else "differs from nsqd"))
        for theirs, ours in runs if show else []:
            print("\n".join("    " + l for l in difflib.unified_diff(theirs, ours, "nsqd", "here", lineterm="", n=1)))
    return passed, failed


def table(results):
    print("| probe | decision | difference |\n| --- | --- | --- |")
    for decision, what, _, _ in differences.EVERYWHERE:
        print("| everywhere | %s | %s |" % (decision, what))
    for name in results:
        if name in differences.PROBES:
            print("| %s | %s | %s |" % (name, *differences.PROBES[name][:2]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--nsqd", required=True)
    parser.add_argument("--only", default="*")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    names = [p[0] for p in registry.PROBES]
    doubled = {n for n in names if names.count(n) > 1}
    unknown = set(differences.PROBES) - set(names)
    if doubled or unknown:
        sys.exit("Error: named twice: %s; differences of no probe: %s" % (sorted(doubled), sorted(unknown)))
    directory, results = tempfile.mkdtemp(prefix="rustqueue-differential-"), {}
    try:
        for name, (config, flags) in configurations(directory).items():
            probes = [(probe, run) for probe, server, run in registry.PROBES if server == name and fnmatch.fnmatch(probe, args.only)]
            if probes:
                results.update(run_pair(name, os.path.abspath(args.server), os.path.abspath(args.nsqd), directory, config, flags, probes))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    passed, failed = judge(results, args.show)
    table(results)
    print("%d probes against nsqd 1.3.0, %d with a listed difference" % (len(results), len(set(results) & set(differences.PROBES))))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
