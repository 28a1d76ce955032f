"""The programs of NSQ 1.3.0 against the real Broker, found through a real nsqlookupd: every page and action of nsqadmin (and of one that is told the
Broker's address instead), nsq_stat, nsq_tail, nsq_to_file, nsq_to_nsq, nsq_to_http and to_nsq, each judged by the messages or counters that it leaves
(D-30, C-95)."""
import json, os, re, subprocess, time

import check, web
from programs import Lookupd, Program, drain, get, need, publish, reachable, request, topic_stats, until

BODIES = sorted("message %05d" % i for i in range(200))


class Admin:
    """One nsqadmin."""

    def __init__(self, world, option, source):
        self.source = source
        self.address = "127.0.0.1:%d" % check.free_port(None)
        world.program("nsqadmin", option, source, "-http-address", self.address, "-http-client-connect-timeout", "60s", "-http-client-request-timeout", "60s")
        until("nsqadmin serves", lambda: reachable(int(self.address.split(":")[1])))

    def ask(self, path, **query):
        return get(self.address, "/api" + path + "".join("?%s=%s" % pair for pair in query.items()))

    def act(self, method, path, body=None):
        status, answer, _ = request(self.address, method, "/api" + path, body)
        need(status == 200, "%s %s: %d %s" % (method, path, status, answer))


class World:
    """A Broker that is registered with a nsqlookupd, and beside them a nsqadmin that knows the nsqlookupd and one that knows the Broker only."""

    def __init__(self, programs, command, directory, config):
        self.programs, self.directory, self.running = programs, directory, []
        os.makedirs(directory)
        self.lookupd = self.start(Lookupd(programs["nsqlookupd"], directory))
        more = {"network": {"nsqlookupd_tcp_addresses": [self.lookupd.tcp]}}
        self.server = check.Server(command, os.path.join(directory, "data"), 1, 1, check.merge(config, more), tag="broker").wait_ready()
        self.tcp, self.http = "127.0.0.1:%d" % self.server.tcp, "127.0.0.1:%d" % self.server.http
        self.admin = Admin(self, "-lookupd-http-address", self.lookupd.http)
        self.direct = Admin(self, "-nsqd-http-address", self.http)

    def start(self, program):
        self.running.append(program)
        return program

    def program(self, name, *arguments, stdin=None):
        return self.start(Program(self.directory, name, [self.programs[name], *arguments], stdin))

    def registered(self, topic, channels):
        until("%s is registered with %s" % (topic, channels),
              lambda: self.lookupd.lookup(topic) == (sorted(channels), [self.server.tcp]))

    def end(self):
        for program in reversed(self.running):
            program.kill()
        self.server.kill()


# --- nsqadmin

def pages(w, admin, name, lookupds):
    """C-95: all pages, and what they ask for, with Topics and Channels in every state."""
    empty = name + "-empty"
    publish(w.server, name, BODIES)
    w.server.post("/channel/create?topic=%s&channel=c" % name)
    w.server.post("/topic/create?topic=" + empty)
    w.registered(name, ["c"])
    w.registered(empty, [])
    scripts = set()
    for page in ("/", "/topics/" + name, "/topics/%s/c" % name, "/nodes", "/nodes/" + w.http, "/counter", "/lookup"):
        status, body, headers = request(admin.address, "GET", page)
        need(status == 200 and headers["Content-Type"].startswith("text/html"), "%s: %d" % (page, status))
        shown = re.search(rb"var NSQLOOKUPD = (.*);", body)
        need(shown and json.loads(shown[1].replace(b",]", b"]")) == lookupds, "%s: %s" % (page, body))
        scripts.update(re.findall(rb'<script src="([^"]+)"', body))
    for script in scripts:      # each page is drawn by these
        need(request(admin.address, "GET", script.decode())[0] == 200, script.decode())
    need(len(scripts) == 2 and request(admin.address, "GET", "/nothing")[0] == 404, "scripts %s" % scripts)
    need(request(admin.address, "GET", "/ping")[1] == b"OK", "/ping")
    need({name, empty} <= set(admin.ask("/topics")["topics"]), "/api/topics: %s" % admin.ask("/topics"))
    topic = admin.ask("/topics/" + name)
    need((topic["topic_name"], topic["message_count"], topic["depth"], topic["paused"]) == (name, 200, 0, False), "topic %s" % topic)
    need([c["channel_name"] for c in topic["channels"]] == ["c"] and topic["channels"][0]["depth"] == 200, "channels of %s" % topic)
    need([n["node"] for n in topic["nodes"]] == [w.http], "nodes of %s" % topic)
    channel = admin.ask("/topics/%s/c" % name)
    need((channel["depth"], channel["in_flight_count"], channel["client_count"]) == (200, 0, 0), "channel %s" % channel)
    topic = admin.ask("/topics/" + empty)
    need((topic["message_count"], topic["channels"] or []) == (0, []), "topic without Channels %s" % topic)


def admin_pages(w):
    pages(w, w.admin, "pages", [w.lookupd.http])


def direct_pages(w):
    pages(w, w.direct, "direct-pages", [])


def nodes(w, admin, name):
    publish(w.server, name, BODIES)
    with check.Nsq(w.server.tcp) as c:
        c.send(b"SUB %s c\n" % name.encode())
        need(c.frame()[1] == b"OK", "SUB")
        w.registered(name, ["c"])
        node, = admin.ask("/nodes")["nodes"]
        need((node["broadcast_address"], node["tcp_port"], node["http_port"]) == ("127.0.0.1", w.server.tcp, w.server.http), "node %s" % node)
        need(node["version"].startswith("1.3.0+rustqueue.") and not node["out_of_date"], "version %s" % node)
        need(name in [t["topic"] for t in node["topics"]], "topics of %s" % node)
        one = admin.ask("/nodes/" + w.http)
        mine, = [t for t in one["topics"] if t["topic_name"] == name]
        need(mine["channels"][0]["clients"][0]["remote_address"].startswith("127.0.0.1:"), "clients of %s" % mine)
        need(one["total_messages"] >= 200 and one["total_clients"] >= 1, "totals %s %s" % (one["total_messages"], one["total_clients"]))
        channel = admin.ask("/topics/%s/c" % name)
        need((channel["client_count"], len(channel["clients"])) == (1, 1), "channel %s" % channel)


def admin_nodes(w):
    nodes(w, w.admin, "nodes")


def direct_nodes(w):
    nodes(w, w.direct, "direct-nodes")


def counter(w, admin, name):
    publish(w.server, name, BODIES)
    w.server.post("/channel/create?topic=%s&channel=c" % name)
    w.registered(name, ["c"])
    stats = admin.ask("/counter")["stats"]
    mine = [s for s in stats.values() if (s["topic_name"], s["channel_name"]) == (name, "c")]
    need(len(mine) == 1 and mine[0]["message_count"] == 200, "counter %s" % stats)


def admin_counter(w):
    counter(w, w.admin, "counted")


def direct_counter(w):
    counter(w, w.direct, "direct-counted")


def admin_creates(w):
    w.admin.act("POST", "/topics", {"topic": "made", "channel": "by-admin"})
    need(w.lookupd.lookup("made") == (["by-admin"], []), "lookup %s" % (w.lookupd.lookup("made"),))
    publish(w.server, "made", BODIES)     # nobody told the Broker of the Topic before: it asks the nsqlookupd for its Channels
    w.registered("made", ["by-admin"])
    until("the Channel is made", lambda: "by-admin" in topic_stats(w.server, "made")["channels"])
    need(drain(w.server, "made", "by-admin", 200) == BODIES, "what was published before the Channel was there")


def admin_creates_a_topic(w):
    """C-98: one without a Channel is nobody's until a Broker has it."""
    w.admin.act("POST", "/topics", {"topic": "bare"})
    need(w.lookupd.lookup("bare") == ([], []), "lookup %s" % (w.lookupd.lookup("bare"),))
    need(topic_stats(w.server, "bare") is None, "the Broker was not asked")
    need("bare" in w.admin.ask("/topics", inactive="true")["topics"], "inactive: %s" % w.admin.ask("/topics", inactive="true"))
    publish(w.server, "bare", BODIES)
    w.registered("bare", [])
    need("bare" not in w.admin.ask("/topics", inactive="true")["topics"] and "bare" in w.admin.ask("/topics")["topics"], "active once it is there")
    need(drain(w.server, "bare", "c", 200) == BODIES, "what was published")


def pauses(w, admin, name):
    publish(w.server, name, BODIES[:10])
    w.server.post("/channel/create?topic=%s&channel=c" % name)
    w.registered(name, ["c"])
    for action, wanted in (("pause", True), ("unpause", False)):
        admin.act("POST", "/topics/" + name, {"action": action})
        need(topic_stats(w.server, name)["paused"] == wanted and admin.ask("/topics/" + name)["paused"] == wanted, "topic " + action)
        admin.act("POST", "/topics/%s/c" % name, {"action": action})
        need(topic_stats(w.server, name)["channels"]["c"]["paused"] == wanted and admin.ask("/topics/%s/c" % name)["paused"] == wanted,
             "channel " + action)


def admin_pauses(w):
    pauses(w, w.admin, "paused")


def direct_pauses(w):
    pauses(w, w.direct, "direct-paused")


def admin_empties(w):
    publish(w.server, "emptied", BODIES)
    w.registered("emptied", [])
    need(topic_stats(w.server, "emptied")["depth"] == 200, "backlog without a Channel")
    w.admin.act("POST", "/topics/emptied", {"action": "empty"})
    need(topic_stats(w.server, "emptied")["depth"] == 0, "topic emptied")
    w.server.post("/channel/create?topic=emptied&channel=c")
    publish(w.server, "emptied", BODIES[:5])
    w.registered("emptied", ["c"])
    need(topic_stats(w.server, "emptied")["channels"]["c"]["depth"] == 5, "only what came later")
    w.admin.act("POST", "/topics/emptied/c", {"action": "empty"})
    need(topic_stats(w.server, "emptied")["channels"]["c"]["depth"] == 0, "channel emptied")


def direct_empties_and_deletes(w):
    publish(w.server, "direct-gone", BODIES)
    for channel in ("a", "b"):
        w.server.post("/channel/create?topic=direct-gone&channel=" + channel)
    w.direct.act("POST", "/topics/direct-gone/a", {"action": "empty"})
    need([topic_stats(w.server, "direct-gone")["channels"][c]["depth"] for c in "ab"] == [0, 200], "one of two Channels emptied")
    w.direct.act("DELETE", "/topics/direct-gone/a")
    need(set(topic_stats(w.server, "direct-gone")["channels"]) == {"b"}, "the Channel is gone")
    w.direct.act("DELETE", "/topics/direct-gone")
    need(topic_stats(w.server, "direct-gone") is None, "the Topic is gone")
    need("direct-gone" not in w.direct.ask("/topics")["topics"], "/api/topics: %s" % w.direct.ask("/topics"))


def admin_deletes(w):
    """A Topic that comes back at once is found again, although nsqadmin took it off the nsqlookupd first."""
    publish(w.server, "deleted", BODIES)
    for channel in ("a", "b"):
        w.server.post("/channel/create?topic=deleted&channel=" + channel)
    w.registered("deleted", ["a", "b"])
    w.admin.act("DELETE", "/topics/deleted/a")
    w.registered("deleted", ["b"])
    need(set(topic_stats(w.server, "deleted")["channels"]) == {"b"}, "the Channel is gone")
    w.admin.act("DELETE", "/topics/deleted")
    need(topic_stats(w.server, "deleted") is None, "the Topic is gone")
    publish(w.server, "deleted", BODIES[:3])
    w.registered("deleted", [])
    need(drain(w.server, "deleted", "again", 3) == BODIES[:3], "a new Topic under the old name")


def admin_tombstones(w):
    publish(w.server, "tombstoned", BODIES)
    w.registered("tombstoned", [])
    w.admin.act("DELETE", "/nodes/" + w.http, {"topic": "tombstoned"})
    need(topic_stats(w.server, "tombstoned") is None, "the Topic is gone from the node")
    until("no producer is left", lambda: w.lookupd.lookup("tombstoned") in (([], []), None))


# --- the command line tools

def finished(w, topic, channel, count):
    c = topic_stats(w.server, topic)["channels"].get(channel)
    return c is not None and c["message_count"] == count and c["depth"] + c["in_flight_count"] + c["deferred_count"] == 0


def nsq_stat(w):
    publish(w.server, "stat", BODIES)
    w.server.post("/channel/create?topic=stat&channel=c")
    w.registered("stat", ["c"])
    for source in (("-nsqd-http-address", w.http), ("-lookupd-http-address", w.lookupd.http)):
        program = w.program("nsq_stat", "-topic", "stat", "-channel", "c", "-interval", "200ms", "-count", "2", *source)
        need(program.wait() == 0, "exit status: %s" % program.output()[-300:])
        # ingress egress | total mem disk inflt def | req t-o msgs clients
        rows = [list(map(int, re.findall(r"\d+", line))) for line in program.output().splitlines() if re.match(r"[\s\d|]*\d[\s\d|]*$", line)]
        need(rows and rows[-1] == [0, 0, 200, 0, 200, 0, 0, 0, 0, 200, 0], "%s shows %s" % (source[0], program.output()[-300:]))


def nsq_tail(w):
    publish(w.server, "tail", BODIES[:1])
    w.registered("tail", [])
    program = w.program("nsq_tail", "-topic", "tail", "-lookupd-http-address", w.lookupd.http, "-n", "200", "-print-topic")
    until("nsq_tail subscribed", lambda: any(c["clients"] for c in topic_stats(w.server, "tail")["channels"].values()))
    channel, = topic_stats(w.server, "tail")["channels"]
    need(channel.endswith("#ephemeral"), "channel %s" % channel)
    publish(w.server, "tail", BODIES)
    need(program.wait() == 0, "exit status: %s" % program.output()[-300:])
    shown = sorted(line.split("|")[1].strip() for line in program.output().splitlines() if line.startswith("tail"))
    need(shown == BODIES, "%d lines: %s" % (len(shown), program.output()[-300:]))
    until("its Channel is gone", lambda: topic_stats(w.server, "tail")["channels"] == {})


def nsq_to_file(w):
    publish(w.server, "archive", BODIES)
    w.registered("archive", [])
    output = os.path.join(w.directory, "archive")
    os.makedirs(output)
    program = w.program("nsq_to_file", "-topic", "archive", "-channel", "archive", "-lookupd-http-address", w.lookupd.http, "-output-dir",
                        output, "-sync-interval", "200ms", "-skip-empty-files")
    until("archived", lambda: finished(w, "archive", "archive", 200))
    need(program.terminate() == 0, "exit status: %s" % program.output()[-300:])
    lines = sorted(line for name in os.listdir(output) for line in open(os.path.join(output, name)).read().splitlines())
    need(lines == BODIES, "%d lines in %s" % (len(lines), os.listdir(output)))
    stats = topic_stats(w.server, "archive")["channels"]["archive"]
    need((stats["depth"], stats["in_flight_count"], stats["requeue_count"]) == (0, 0, 0), "channel %s" % stats)


def nsq_to_nsq(w):
    publish(w.server, "source", BODIES)
    w.registered("source", [])
    program = w.program("nsq_to_nsq", "-topic", "source", "-channel", "copy", "-lookupd-http-address", w.lookupd.http, "-destination-topic",
                        "target", "-destination-nsqd-tcp-address", w.tcp)
    until("copied", lambda: finished(w, "source", "copy", 200))
    need(program.terminate() == 0, "exit status: %s" % program.output()[-300:])
    need(drain(w.server, "target", "c", 200) == BODIES, "bodies of the copies")


def nsq_to_http(w):
    bodies = []

    def take(method, path, query, body):
        bodies.append(body.decode())
        return 200, b""

    sink = web.Site(take)
    try:
        publish(w.server, "posted", BODIES)
        w.registered("posted", [])
        program = w.program("nsq_to_http", "-topic", "posted", "-channel", "http", "-lookupd-http-address", w.lookupd.http, "-post",
                            "http://%s/" % sink.address)
        until("posted", lambda: finished(w, "posted", "http", 200))
        need(program.terminate() == 0, "exit status: %s" % program.output()[-300:])
        need(sorted(bodies) == BODIES, "%d bodies arrived" % len(bodies))
    finally:
        sink.close()


def to_nsq(w):
    program = w.program("to_nsq", "-topic", "typed", "-nsqd-tcp-address", w.tcp, stdin=subprocess.PIPE)
    program.process.stdin.write(("\n".join(BODIES) + "\n").encode())
    program.process.stdin.close()
    need(program.wait() == 0, "exit status: %s" % program.output()[-300:])
    need(drain(w.server, "typed", "c", 200) == BODIES, "what was typed")


CASES = [admin_pages, admin_nodes, admin_counter, admin_creates, admin_creates_a_topic, admin_pauses, admin_empties, admin_deletes, admin_tombstones,
         direct_pages, direct_nodes, direct_counter, direct_pauses, direct_empties_and_deletes, nsq_stat, nsq_tail, nsq_to_file, nsq_to_nsq, nsq_to_http, to_nsq]


def run_tools(results, programs, command, directory, config, only=""):
    """`only`: names of cases with commas between them; all without."""
    w = None
    try:
        w = World(programs, command, directory, config)
        for case in CASES:
            name = case.__name__.replace("_", "-")
            if only and name not in only.split(","):
                continue
            began = time.monotonic()
            try:
                case(w)
                results.line("tools", "ok %s (%.1f s)" % (name, time.monotonic() - began))
            except (check.Mismatch, OSError, KeyError, ValueError, IndexError) as e:
                results.line("tools", "FAIL %s: %s" % (name, " ".join(("%s %s" % (type(e).__name__, e)).split())))
        status = w.server.terminate()
        if status != 0:
            results.line("tools", "FAIL clean-stop: exit status %d: %s" % (status, w.server.tail()))
    finally:
        if w is not None:
            w.end()
