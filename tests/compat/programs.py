"""Processes of the compatibility tests, and how to wait for what they do. Each is ended by its own process id."""
import http.client, json, os, socket, subprocess, time

import check

START_SECONDS = STOP_SECONDS = 120      # only end what hangs


class Program:
    """One program of NSQ with its output in a file."""

    def __init__(self, directory, name, argv, stdin=None):
        self.name, self.log = name, os.path.join(directory, name + ".log")
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, stdin=stdin or subprocess.DEVNULL, cwd=directory)

    def output(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def wait(self, seconds=STOP_SECONDS):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise check.Mismatch("%s did not end within %d s: %s" % (self.name, seconds, self.output()[-300:]))

    def terminate(self):
        self.process.terminate()
        return self.wait()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Lookupd(Program):
    def __init__(self, program, directory, name="nsqlookupd", ports=None):
        self.tcp_port, self.http_port = ports or (check.free_port(None), check.free_port(None))
        self.tcp, self.http = "127.0.0.1:%d" % self.tcp_port, "127.0.0.1:%d" % self.http_port
        super().__init__(directory, name, [program, "-tcp-address", self.tcp, "-http-address", self.http, "-broadcast-address", "127.0.0.1"])
        until("%s serves" % name, lambda: reachable(self.http_port), START_SECONDS)

    def lookup(self, topic):
        return lookup(self.http, topic)


def lookup(address, topic):
    """What /lookup says there: (Channels, ports of producers), or None for an unknown Topic."""
    status, body, headers = request(address, "GET", "/lookup?topic=" + topic)
    need(headers.get("X-NSQ-Content-Type") == "nsq; version=1.0", "/lookup: %d %s" % (status, headers))
    if status == 404:
        need(body.get("message") == "TOPIC_NOT_FOUND", "/lookup: 404 %s" % body)
        return None
    need(status == 200, "/lookup: %d %s" % (status, body))
    return sorted(body["channels"]), [p["tcp_port"] for p in body["producers"]]


def request(address, method, path, body=None, headers=None):
    """(status, JSON or bytes, headers)."""
    connection = http.client.HTTPConnection(address, timeout=START_SECONDS)
    try:
        connection.request(method, path, json.dumps(body) if isinstance(body, (dict, list)) else body, headers or {})
        answer = connection.getresponse()
        data = answer.read()
        if answer.headers.get("Content-Type", "").startswith("application/json") and data:
            data = json.loads(data)
        return answer.status, data, answer.headers
    except http.client.HTTPException as e:
        raise OSError(str(e))
    finally:
        connection.close()


def get(address, path):
    status, body, _ = request(address, "GET", path)
    need(status == 200, "GET %s: %d %s" % (path, status, body))
    return body


def reachable(port):
    try:
        socket.create_connection(("127.0.0.1", port), START_SECONDS).close()
        return True
    except OSError:
        return False


def need(condition, why):
    if not condition:
        raise check.Mismatch(why)


def until(what, holds, seconds=START_SECONDS):
    """Polls until `holds()` gives something true, which is returned."""
    end = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        need(time.monotonic() < end, "%s: not within %d s" % (what, seconds))
        time.sleep(0.03)


def topic_stats(server, topic):
    for t in get("127.0.0.1:%d" % server.http, "/stats?format=json&topic=" + topic)["topics"]:
        if t["topic_name"] == topic:
            return dict(t, channels={c["channel_name"]: c for c in t["channels"]})
    return None


def publish(server, topic, bodies):
    status, answer = server.post("/mpub?topic=" + topic, "\n".join(bodies).encode())
    need(answer == b"OK", "/mpub: %r" % answer)


def drain(server, topic, channel, count, seconds=START_SECONDS):
    """Consumes and finishes `count` messages over a raw connection; their bodies, sorted."""
    bodies = []
    with check.Nsq(server.tcp) as c:
        c.send(b"SUB %s %s\nRDY 100\n" % (topic.encode(), channel.encode()))
        end = time.monotonic() + seconds
        while len(bodies) < count:
            frame = c.frame(max(0.01, end - time.monotonic()))
            need(frame is not None, "%d of %d messages of %s:%s" % (len(bodies), count, topic, channel))
            if frame[0] == 2:
                bodies.append(frame[1][26:].decode())
                c.send(b"FIN " + frame[1][10:26] + b"\n")
            need(frame[0] != 1, "error %r" % (frame[1],))
        until("%s:%s drained" % (topic, channel), lambda: topic_stats(server, topic)["channels"][channel]["depth"] == 0
              and topic_stats(server, topic)["channels"][channel]["in_flight_count"] == 0)
    return sorted(bodies)
