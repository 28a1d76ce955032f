"""Registration of the real Broker with a real nsqlookupd 1.3.0, and consumers of every client library that find it there (D-19a), and by asking the Broker
itself, which answers /lookup for its own Topics.

    C-96  consumers that ask for a Topic nobody has heard of go on asking, and get its messages once it is there
    C-97  go-nsq reads the flat answer of /lookup and finds the producer in it
"""
import json, os, subprocess

import check
from programs import Lookupd, get, lookup, need, publish, request, until

BODIES = sorted("message %05d" % i for i in range(100))


class World:
    def __init__(self, programs, command, directory, config):
        self.programs, self.command, self.directory, self.config, self.lookupds = programs, command, directory, config, []
        os.makedirs(directory)
        for name in ("first", "second"):
            self.lookupds.append(Lookupd(programs["nsqlookupd"], directory, name))
        self.server = self.broker("broker", self.lookupds[0])

    def broker(self, tag, *lookupds):
        more = {"network": {"nsqlookupd_tcp_addresses": [l.tcp for l in lookupds]}}
        return check.Server(self.command, os.path.join(self.directory, "data"), 1, 1, check.merge(self.config, more), tag=tag).wait_ready()

    def shows(self, topic, channels, producers=1, lookupd=0):
        wanted = (sorted(channels), [self.server.tcp] * producers)
        until("%s: %s" % (topic, wanted), lambda: self.lookupds[lookupd].lookup(topic) == wanted)

    def end(self):
        self.server.kill()
        for lookupd in self.lookupds:
            lookupd.kill()


def names_come_and_go(w):
    w.server.post("/topic/create?topic=names")
    w.shows("names", [])
    w.server.post("/channel/create?topic=names&channel=a")
    w.server.post("/channel/create?topic=names&channel=b%23ephemeral")
    w.shows("names", ["a", "b#ephemeral"])
    need(sorted(get(w.lookupds[0].http, "/channels?topic=names")["channels"]) == ["a", "b#ephemeral"], "/channels")
    node, = get(w.lookupds[0].http, "/nodes")["producers"]
    need((node["broadcast_address"], node["tcp_port"], node["http_port"]) == ("127.0.0.1", w.server.tcp, w.server.http), "node %s" % node)
    need("names" in node["topics"] and node["version"].startswith("1.3.0+rustqueue."), "node %s" % node)
    w.server.post("/channel/delete?topic=names&channel=a")
    w.server.post("/channel/delete?topic=names&channel=b%23ephemeral")
    until("the ephemeral Channel is forgotten", lambda: "b#ephemeral" not in w.lookupds[0].lookup("names")[0])
    w.server.post("/topic/delete?topic=names")
    until("no producer", lambda: w.lookupds[0].lookup("names")[1] == [])


def ephemeral_topic(w):
    with check.Nsq(w.server.tcp) as c:
        c.send(b"SUB brief#ephemeral c#ephemeral\n")
        need(c.frame()[1] == b"OK", "SUB")
        until("registered", lambda: w.lookupds[0].lookup("brief%23ephemeral") == (["c#ephemeral"], [w.server.tcp]))
    until("forgotten", lambda: w.lookupds[0].lookup("brief%23ephemeral") is None)


def nsqlookupd_restarts(w):
    w.server.post("/topic/create?topic=restarts")
    w.shows("restarts", [])
    old = w.lookupds[0]
    old.kill()
    publish(w.server, "meanwhile", BODIES)
    w.lookupds[0] = Lookupd(w.programs["nsqlookupd"], w.directory, "first-again", (old.tcp_port, old.http_port))
    w.shows("restarts", [])
    w.shows("meanwhile", [])


def addresses_change_live(w):
    w.server.post("/topic/create?topic=live")
    both = json.dumps([w.lookupds[0].tcp, "localhost:%d" % w.lookupds[1].tcp_port])
    status, answer, _ = request("127.0.0.1:%d" % w.server.http, "PUT", "/config/nsqlookupd_tcp_addresses", both)
    need((status, answer) == (200, json.loads(both)), "PUT: %d %s" % (status, answer))
    w.shows("live", [], lookupd=1)
    request("127.0.0.1:%d" % w.server.http, "PUT", "/config/nsqlookupd_tcp_addresses", json.dumps([w.lookupds[0].tcp]))
    until("taken off", lambda: w.lookupds[1].lookup("live")[1] == [])
    w.shows("live", [])


def broker_restarts(w):
    publish(w.server, "kept", BODIES)
    w.server.post("/channel/create?topic=kept&channel=c")
    w.shows("kept", ["c"])
    need(w.server.terminate() == 0, "exit status: %s" % w.server.tail())
    until("a stopped Broker is gone", lambda: w.lookupds[0].lookup("kept")[1] == [])
    w.server = w.broker("broker-again", w.lookupds[0])
    w.shows("kept", ["c"])


def broker_answers_lookup(w):
    """C-96, C-97: the Broker itself knows its Topics; one that it does not have is 404."""
    http = "127.0.0.1:%d" % w.server.http
    need(lookup(http, "own") is None, "unknown before it is created")
    w.server.post("/topic/create?topic=own")
    need(lookup(http, "own") == ([], [w.server.tcp]), "a Topic without a Channel: %s" % (lookup(http, "own"),))
    w.server.post("/channel/create?topic=own&channel=b")
    w.server.post("/channel/create?topic=own&channel=a")
    need(lookup(http, "own") == (["a", "b"], [w.server.tcp]), "with Channels: %s" % (lookup(http, "own"),))
    node, = get(http, "/nodes")["producers"]
    need((node["broadcast_address"], node["tcp_port"], node["http_port"]) == ("127.0.0.1", w.server.tcp, w.server.http), "node %s" % node)
    need("own" in node["topics"] and len(node["tombstones"]) == len(node["topics"]), "node %s" % node)
    need("own" in get(http, "/topics")["topics"] and get(http, "/channels?topic=own")["channels"] == ["a", "b"], "/topics, /channels")
    w.server.post("/topic/delete?topic=own")
    need(lookup(http, "own") is None, "unknown again")


CASES = [names_come_and_go, ephemeral_topic, nsqlookupd_restarts, addresses_change_live, broker_restarts, broker_answers_lookup]


def consumers_find_it(results, w, clients, prefix, address):
    """Each consumer asks at `address` before the Topic exists; all of them wait at the same time."""
    running = {}
    for name, argv in clients.items():
        topic = prefix + name
        need(lookup(address, topic) is None, topic + " is unknown")
        running[topic] = subprocess.Popen(argv + ["--lookup", address, "--topic", topic, "--count", str(len(BODIES))],
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for topic, process in running.items():
            if process.stdout.readline().strip() == "asking":
                publish(w.server, topic, BODIES)
        for topic, process in running.items():
            try:
                out, _ = process.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
            good = sorted(out.splitlines()) == BODIES
            results.line("lookup", "ok %s" % topic if good else "FAIL %s: %s" % (topic, out[-300:]))
    finally:
        for process in running.values():
            if process.poll() is None:
                process.kill()
            process.wait()


def run_lookup(results, programs, clients, command, directory, config):
    w = None
    try:
        w = World(programs, command, directory, config)
        for case in CASES:
            name = case.__name__.replace("_", "-")
            try:
                case(w)
                results.line("lookup", "ok " + name)
            except (check.Mismatch, OSError, KeyError, ValueError, TypeError) as e:
                results.line("lookup", "FAIL %s: %s" % (name, " ".join(("%s %s" % (type(e).__name__, e)).split())))
        consumers_find_it(results, w, clients, "found-by-", w.lookupds[0].http)
        consumers_find_it(results, w, clients, "found-at-the-broker-by-", "127.0.0.1:%d" % w.server.http)
    finally:
        if w is not None:
            w.end()
