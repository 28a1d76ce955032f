"""Runs one generated script against both servers at once, step by step, and compares after each step: the first difference ends it.

A script is {"kind", "config", "steps"}; a step is a tuple of plain data, so that a script can be printed, shortened and given back:

    ("open", c, layer)                  a connection `c`; layer "" (no IDENTIFY), "plain", "snappy" or "deflate"
    ("send", c, [parts], mark, n)       one segment and what answers it: up to the answer to a mark, and n messages. Marks: "id" (an IDENTIFY whose reply
                                        names its number), "fin" (a FIN of a message that is nobody's), "" (nothing is awaited but the messages)
                                        n None: messages may come, and are not looked at
    ("last", c, [parts], n)             one segment and the end of writing; everything up to the end of the connection
    ("ended", c)                        the server closes the connection
    ("close", c)                        the client closes it
    ("http", [requests], half_close)    one connection's requests in one segment; everything up to its end
    ("stats", query)                    /stats, asked again while the two differ: what a command set in motion may still be on its way
    ("gone", topic, channel)            /stats until the Channel is not there

In parts, `{t}` is the script's own Topic and `{m:BODY}` the id of the message with that body, as this server numbered it. Messages are compared as a set
within a step, since no order of theirs is promised (page 10 section 5.1); everything else in order.
"""
import collections, json, re, struct, time, zlib

import wire

# The first difference: the step, the lines of both, and those of the steps before it.
Found = collections.namedtuple("Found", "index theirs ours before", defaults=((),))
PATIENCE = 30.0
NOBODY = b"00000000%08x"
NEVER = b"\0 no answer holds this"
UNKNOWN = b"ffffffffffffffff"
SILENT = ["a step that neither answers tells nothing"]
ID = re.compile(rb"\{m:([^}]*)\}")
SELF = {"client_id": "id", "hostname": "host", "user_agent": "agent/1", "output_buffer_timeout": 25}
LAYERS = {"snappy": wire.Snappy, "deflate": wire.Deflate}


class Side(wire.Probe):
    """One server's part of a script."""

    def __init__(self, server, topic, clean, patience):
        super().__init__(server, "")
        self.topic, self.tidy, self.patience = topic, clean, patience
        self.conns, self.by_body, self.marks = {}, {}, 0
        self.said = {}          # id -> body it was last sent for: messages of two Topics may have the same id in nsqd

    def fill(self, parts):
        def ident(m):
            found = self.by_body.get(m[1], UNKNOWN)
            self.said[found] = m[1]
            return found
        return ID.sub(ident, b"".join(parts).replace(b"{t}", self.topic))

    def text(self, payload):
        shown = wire.printable(payload)
        for body, ident in self.by_body.items():
            shown = shown.replace(ident.decode("latin-1"), "{m:%s}" % wire.printable(self.said.get(ident, body)))
        return shown.replace(self.topic.decode(), "{t}")

    def mark(self, kind):
        """(bytes to send, what its answer begins with)."""
        self.marks += 1
        if kind == "fin":
            ident = NOBODY % self.marks
            return b"FIN " + ident + b"\n", b"E_FIN_FAILED FIN " + ident
        return wire.identify(feature_negotiation=True, msg_timeout=100000 + self.marks, **SELF), b'"msg_timeout":%d,' % (100000 + self.marks)

    def collect(self, c, answer, messages):
        """Frames up to the answer to a mark (None: none is awaited) and that many messages, or to the end: those in order and the messages sorted."""
        others, come, until = [], [], time.monotonic() + self.patience
        while answer is not None or len(come) < (messages or 0):
            got = c.next(max(0.0, until - time.monotonic()), False)
            if isinstance(got, str):
                return others + [got] + (sorted(come) if messages is not None else [])
            kind, payload = got
            if kind == 2:
                known = self.by_body.setdefault(payload[26:], payload[10:26]) == payload[10:26]
                come.append("message attempts=%d%s %s" % (struct.unpack(">H", payload[8:10])[0], "" if known else " under another id", wire.printable(payload[26:])))
                continue
            others.append("%s %s" % (wire.KINDS.get(kind, kind), self.text(payload)))
            if answer is not None and answer in payload:
                answer = None
        return others + (sorted(come) if messages is not None else [])

    # --- steps
    def do_open(self, name, layer):
        c = self.conns[name] = self.tcp()
        if not layer:
            return []
        c.send(wire.identify(feature_negotiation=True, **SELF, **({} if layer == "plain" else {layer: True})))
        lines = self.collect(c, b"{", 0)
        if layer == "plain":
            return lines
        c.switch(LAYERS[layer]())
        return lines + self.collect(c, b"OK", 0)

    def do_send(self, name, parts, mark, messages):
        c, data, answer = self.conns[name], self.fill(parts), None
        if mark:
            more, answer = self.mark(mark)
            data += more
        if data:
            c.send(data)
        return self.collect(c, answer, messages)

    def do_last(self, name, parts, messages):
        c = self.conns[name]
        c.send(self.fill(parts)).finish()
        return self.collect(c, NEVER, messages)

    def do_ended(self, name):
        return self.collect(self.conns[name], NEVER, 0)

    def do_close(self, name):
        """Until the server has noticed: what is published before that may go to the one that left."""
        c, until = self.conns[name], time.monotonic() + self.patience
        own = b":%d\"" % c.socket.getsockname()[1]
        c.close()
        while time.monotonic() < until:
            if own not in self.server.get("/stats?format=json&include_mem=false")[1]:
                return ["gone"]
            time.sleep(0.01)
        return ["still there"]

    def do_http(self, requests, half_close=True):
        self.lines = []
        wire.Probe.http(self, self.fill([b"".join(requests)]), half_close=half_close, methods=[r.split(b" ", 1)[0] for r in requests])
        return [line.replace(self.topic.decode(), "{t}") for line in self.lines]

    def do_stats(self, query):
        return self.do_http([wire.request(b"GET", b"/stats?" + query, None, b"Connection: close")], False)

    def do_gone(self, topic, channel):
        until = time.monotonic() + self.patience
        query = b"/stats?format=json&include_mem=false&topic=%s&channel=%s" % (self.fill([topic]).replace(b"#", b"%23"), channel.replace(b"#", b"%23"))
        while time.monotonic() < until:
            if not json.loads(self.server.get(query.decode())[1])["topics"]:
                return ["gone"]
            time.sleep(0.01)
        return ["still there"]


def forget(server, patience=60.0):
    """Deletes all Topics and waits until no producer is left, so that each script finds the servers as new."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        document = json.loads(server.get("/stats?format=json&include_mem=false")[1])
        if not document["topics"] and not document["producers"]:
            return
        for topic in document["topics"]:
            server.request("POST", "/topic/delete?topic=" + topic["topic_name"].replace("#", "%23"))
        time.sleep(0.005)
    raise TimeoutError("Topics or producers of a script do not go")


def run(script, pair, clean, tag, patience=PATIENCE, trace=None, theirs=None):
    """None, or the first difference. `clean(line, server)` takes away what may differ. `theirs`: nsqd is sent the steps of this script instead, one for one."""
    topic = b"t%08x" % zlib.crc32(tag.encode())
    for server in pair:
        forget(server)
    sides = [Side(server, topic, clean, patience) for server in pair]
    before = []
    try:
        for index, (step, other) in enumerate(zip(script["steps"], (theirs or script)["steps"])):
            what = step[0]
            until = time.monotonic() + (2.0 if what == "stats" else 0.0)
            while True:
                lines = []
                for side, (_, *arguments) in zip(sides, (other, step)):
                    try:
                        lines.append([clean(line, side.server) for line in getattr(side, "do_" + what)(*arguments)])
                    except Exception as e:      # a frame or an answer that cannot be taken apart is an answer too
                        lines.append(["broke: %s: %s" % (type(e).__name__, e)])
                if lines[0] == lines[1] or time.monotonic() >= until:
                    break
                time.sleep(0.02)
            if trace:
                trace(step, *lines)
            if lines[0] != lines[1]:
                return Found(index, lines[0], lines[1], before)
            if what in ("send", "last") and "nothing" in lines[0] or lines[0][-1:] and lines[0][-1].startswith("broke: "):
                return Found(index, lines[0], SILENT, before)
            before.append(lines[1])
    finally:
        for side in sides:
            side.finish()
    return None
