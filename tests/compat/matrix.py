"""The transport matrix: the same cases of each client over plain, compressed, encrypted and authenticated connections, as a table.

    B-93  the plain and the secure (TLS, client certificate, AUTH, Deflate) matrix of page 31 section 9.3; its part about lookup is in lookup.py
    C-99  go-nsq stops with messages in flight (graceful-stop)
    C-100 pynsq with REQ beyond an hour (requeue-beyond-an-hour), and streams through Snappy and Deflate
    C-101, C-102 nsqjs: many-connections, writer-close
"""
import concurrent.futures, json, os, pathlib, subprocess

import check, web

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET, NAME = "compat-secret", "rustqueue-1"
GO_CASES = ("publish-consume-finish,publish-async,multi-publish,deferred-publish,large-message,requeue-with-delay,touch,max-in-flight,"
            "fan-out,sampling,heartbeats,ephemeral-channel,graceful-stop,auth-refresh")
PYTHON_CASES = ("publish-consume-finish,multi-publish,pipelined-publishes,deferred-publish,requeue-with-delay,requeue-beyond-an-hour,touch,"
                "fan-out,lookup-and-direct,heartbeats,ephemeral-channel,sampling,auth-refresh")
NODE_CASES = ("publish-consume-finish,multi-publish,large-message,deferred-publish,requeue-with-delay,touch,max-in-flight,fan-out,sampling,"
              "heartbeats,ephemeral-channel,many-connections,writer-close,auth-refresh")
JAVA_CASES = ("publish-consume-finish,multi-publish,large-message,deferred-publish,requeue-with-delay,touch,max-in-flight,fan-out,sampling,"
              "heartbeats,ephemeral-channel,auth-refresh")


def auth_server(tls, common_name):
    """Grants everything for one second to the one secret, over a connection with or without TLS and with the certificate's name."""
    granted = {"ttl": 1, "identity": "compat", "identity_url": "", "authorizations": [
        {"topic": ".*", "channels": [".*"], "permissions": ["subscribe", "publish"]}]}

    def answer(method, path, query, body):
        good = (query.get("secret"), query.get("tls"), query.get("common_name")) == (SECRET, tls, common_name)
        return (200, json.dumps(granted).encode()) if good else (403, b"{}")
    return web.Site(answer)


def certificates(directory):
    def run(*argv):
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def file(name):
        return os.path.join(directory, name)
    run(str(ROOT / "scripts" / "dev-certs"), directory)
    # Java reads keys in PKCS#8 form only; the others read both.
    run("openssl", "pkcs8", "-topk8", "-nocrypt", "-in", file("node-1.key"), "-out", file("node-1.pk8"))
    return file


def servers(directory):
    """Name -> (configuration, auth server or None)."""
    file = certificates(os.path.join(directory, "certificates"))
    tls = {"certificate_file": file("node-1.pem"), "private_key_file": file("node-1.key"), "required": True}
    verified = dict(tls, client_auth="require-verify", client_ca_file=file("ca.pem"))
    secure = dict(tls, require_client_certificate=True, client_ca_file=file("ca.pem"))
    in_clear, encrypted, named = auth_server("false", ""), auth_server("true", ""), auth_server("true", NAME)

    def configuration(tls=None, auth=None, path="%s"):
        more = {"security.tls": tls} if tls else {}
        if auth:
            more["security"] = {"auth_http_addresses": [path % auth.address]}
        return {"limits": {"heartbeat_interval_ms": 2000, "auth_timeout_ms": 60000}, **more}, auth
    return {
        "plain": configuration(),
        "auth": configuration(auth=in_clear),
        "tls": configuration(tls),
        "tls+auth": configuration(tls, encrypted),
        "mtls": configuration(verified),
        "mtls+auth": configuration(secure, named, "http://%s/auth"),
    }, file


def transports(file):
    """Name -> (server, arguments that every client takes): each server without compression, with Snappy and with Deflate."""
    trust, own = ["--tls-ca", file("ca.pem")], ["--tls-cert", file("node-1.pem"), "--tls-key", file("node-1.pk8")]
    auth = ["--auth-secret", SECRET]
    reached = {"plain": [], "auth": auth, "tls": trust, "tls+auth": trust + auth, "mtls": trust + own, "mtls+auth": trust + own + auth}
    rows = {}
    for server, arguments in reached.items():
        rows[server] = server, arguments
        for compression in ("snappy", "deflate"):
            rows[compression if server == "plain" else "%s+%s" % (server, compression)] = server, arguments + ["--" + compression]
    return rows


def run_matrix(results, command, directory, clients, config):
    """`clients`: name -> (argv, cases), all of them at the same time over one transport. Each of these clients has every transport."""
    configurations, file = servers(directory)
    table = {}
    for server_name, (more, auth) in configurations.items():
        server = check.Server(command, os.path.join(directory, server_name), 1, 1, {**config, **more}, tag=server_name).wait_ready()
        try:
            for transport, (wanted, arguments) in transports(file).items():
                if wanted != server_name:
                    continue
                with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
                    runs = {client: pool.submit(run_client, argv + arguments, server, cases) for client, (argv, cases) in clients.items()}
                for client, (_, cases) in clients.items():
                    table[client, transport] = judge(results, client, transport, runs[client].result(), cases)
            status = server.terminate()
            if status != 0:
                results.line("matrix", "FAIL %s: exit status %d: %s" % (server_name, status, server.tail()))
        finally:
            server.kill()
            if auth:
                auth.close()
    print_table(table, list(clients), list(transports(file)))


def run_client(argv, server, cases):
    return subprocess.run(argv + ["--tcp", "127.0.0.1:%d" % server.tcp, "--http", "127.0.0.1:%d" % server.http, "--only", cases],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)


def judge(results, client, transport, done, cases):
    lines = [l for l in done.stdout.splitlines() if l.startswith(("ok ", "FAIL "))]
    good = sum(l.startswith("ok ") for l in lines)
    for l in lines:
        if l.startswith("FAIL "):
            results.line("%s over %s" % (client, transport), l)
    if len(lines) != cases.count(",") + 1 or done.returncode not in (0, 1):
        results.line("%s over %s" % (client, transport), "FAIL run: exit status %d: %s" % (done.returncode, " | ".join(done.stdout.splitlines()[-20:])))
    elif good == len(lines):
        results.line("%s over %s" % (client, transport), "ok %d cases" % good)
    return "%d/%d" % (good, cases.count(",") + 1)


def print_table(table, clients, names):
    width = max(map(len, names))
    print("%-*s  %s" % (width, "transport", "  ".join("%-8s" % c for c in clients)))
    for name in names:
        print("%-*s  %s" % (width, name, "  ".join("%-8s" % table[c, name] for c in clients)))
