"""Generated scripts in which messages flow: publishing, subscriptions, RDY windows, FIN, REQ, TOUCH, CLS, pausing, emptying and deleting, on TCP and over HTTP.

A small model says how many messages each step must bring, so that a step waits for exactly those. It keeps to what page 10 fixes for every server: one consumer
of a Channel takes messages at a time; a message is put back only when all that waits may be delivered, since no order is promised; Channels are there before
the first message (D-20), a Topic is paused when its Channels hold nothing (D-22), no Channel is emptied while its paused Topic holds something (page 30 section 3.9),
nothing depends on a timer.
"""
from random_words import UNKNOWN_ID, chance, number
from wire import dpub, mpub, pub, request

CHANNELS = (b"c", b"d", b"e#ephemeral")
LATER = 3600000     # ms: never within a script


class Channel:
    def __init__(self):
        self.waiting, self.paused, self.consumers = [], False, []


class Conn:
    def __init__(self, name):
        self.name, self.topic, self.channel, self.ready, self.closing, self.held = name, None, None, 0, False, []


def absent():
    """A Topic that is not there; whatever needs one makes it."""
    return {"there": False, "channels": {}, "paused": False, "backlog": [], "later": False, "used": False}


class Flow:
    def __init__(self, r, limits):
        self.r, self.limits, self.steps, self.bodies = r, limits, [], 0
        self.topics, self.conns, self.names = {}, [], 0

    # --- what the servers do
    def deliver(self, c):
        """How many messages come to a connection now."""
        if c.channel is None or c.channel.paused or c.closing or self.topics[c.topic]["paused"]:
            return 0
        n = max(0, min(c.ready - len(c.held), len(c.channel.waiting)))
        c.held += c.channel.waiting[:n]
        del c.channel.waiting[:n]
        return n

    def taker(self, channel):
        """The consumer that takes messages of a Channel."""
        return next((c for c in channel.consumers if c.ready > 0 and not c.closing), None)

    def route(self, topic, bodies):
        """Bodies into the Channels of a Topic, or into its backlog."""
        t = self.topics.setdefault(topic, absent())
        t["used"] = t["there"] = True
        t["backlog"] += bodies
        self.spread(t)

    def spread(self, t):
        if t["paused"] or not t["channels"]:
            return
        for channel in t["channels"].values():
            channel.waiting += t["backlog"]
        t["backlog"] = []

    def settle(self, but=None):
        """Steps that wait for what comes to the other connections."""
        for c in self.conns:
            if c is not but and c.channel is not None:
                n = self.deliver(c)
                if n:
                    self.steps.append(("send", c.name, [], "", n))

    def step(self, c, parts):
        mark = "fin" if c.channel is not None else "id"
        self.steps.append(("send", c.name, parts, mark, self.deliver(c)))
        self.settle(c)

    # --- what a client does
    def connect(self):
        self.names += 1
        c = Conn("c%d" % self.names)
        self.steps.append(("open", c.name, self.r.choice(("plain", "plain", "plain", "snappy", "deflate"))))
        self.conns.append(c)
        return c

    def body(self):
        self.bodies += 1
        return b"m%d" % self.bodies

    def publish(self, c):
        topic, r = self.topic(), self.r
        kind = r.randint(0, 4)
        bodies = [self.body() for _ in range(r.choice((1, 2, 5)) if kind == 1 else 1)]
        if kind == 0 or kind == 3:
            part = pub(topic, bodies[0])
        elif kind == 1:
            part = mpub(topic, *bodies)
        elif kind == 2:
            part = dpub(topic, 0, bodies[0])
        else:
            part, bodies = dpub(topic, LATER, bodies[0]), []
            self.topics[topic]["later"] |= self.topics[topic]["paused"]
        self.route(topic, bodies)
        self.step(c, [part])

    def publish_http(self):
        topic, r = self.topic(), self.r
        bodies = [self.body() for _ in range(r.choice((1, 3)))]
        path = b"/%s?topic=%s" % (b"mpub" if len(bodies) > 1 else b"pub", topic.replace(b"#", b"%23"))
        self.route(topic, bodies)
        self.steps.append(("http", [request(b"POST", path, b"\n".join(bodies))]))
        self.settle()

    def topic(self):
        return self.r.choice(sorted(self.topics))

    def subscribe(self, c):
        topic = self.topic()
        t = self.topics[topic]
        name = self.r.choice([n for n in CHANNELS if n in t["channels"]] or [b"c"])
        if name not in t["channels"]:
            if t["used"]:
                return
            t["channels"][name], t["there"] = Channel(), True
        c.topic, c.channel = topic, t["channels"][name]
        c.channel.consumers.append(c)
        parts = [b"SUB %s %s\n" % (topic, name)]
        if chance(self.r, 0.5):
            parts += self.window(c)
        self.step(c, parts)

    def window(self, c):
        n = self.r.choice((0, 1, 1, 2, 3, 10, self.limits.ready))
        other = self.taker(c.channel)
        if c.closing or other is not None and other is not c:
            n = 0 if not c.closing else n
        if not c.closing:
            c.ready = n
        return [b"RDY %d\n" % n]

    def about_message(self, c):
        r = self.r
        if not c.held or chance(r, 0.1):
            return [r.choice((b"FIN %s\n" % UNKNOWN_ID, b"TOUCH %s\n" % UNKNOWN_ID, b"REQ %s 0\n" % UNKNOWN_ID, b"NOP\n"))]
        body = r.choice(c.held)
        ident = b"{m:%s}" % body
        act = r.randint(0, 5)
        if act <= 2:
            c.held.remove(body)
            return [b"FIN %s\n" % ident] + ([b"FIN %s\n" % ident] if chance(r, 0.2) else [])
        if act == 3:
            return [b"TOUCH %s\n" % ident]
        if act == 4:
            c.held.remove(body)
            return [b"REQ %s %d\n" % (ident, r.choice((LATER, LATER + 1, 99999999999)))]
        taker = self.taker(c.channel)
        if c.channel.waiting or c.channel.paused or taker is not None and taker is not c:
            return [b"NOP\n"]       # which message came first would be the server's choice
        c.held.remove(body)
        c.channel.waiting.append(body)
        return [b"REQ %s 0\n" % ident]

    def foreign(self, c):
        """Something about a message that another connection holds, or that nobody does."""
        held = [b for o in self.conns if o is not c and o.channel is c.channel for b in o.held]
        return [self.r.choice((b"FIN %s\n", b"TOUCH %s\n", b"REQ %s 0\n")) % (b"{m:%s}" % self.r.choice(held) if held else UNKNOWN_ID)]

    def stop_taking(self, c):
        if c.closing:
            return [b"RDY %s\n" % number(self.r)]
        c.closing, c.ready = True, 0
        return [b"CLS\n"]

    def leave(self, c):
        """Only with nothing in flight: nsqd would keep it until its time is over."""
        if c.held or c.channel is None:
            return
        topic, t = c.topic, self.topics[c.topic]
        name = next(n for n, ch in t["channels"].items() if ch is c.channel)
        c.channel.consumers.remove(c)
        self.conns.remove(c)
        self.steps.append(("close", c.name))
        if name.endswith(b"#ephemeral") and not c.channel.consumers:
            del t["channels"][name]
            self.steps.append(("gone", topic, name))
            if topic.endswith(b"#ephemeral") and not t["channels"]:
                t.update(absent(), used=True)

    # --- what an operator does
    def admin(self):
        r, topic = self.r, self.topic()
        t = self.topics[topic]
        on_channel = bool(t["channels"]) and chance(r, 0.5)
        action = r.choice((b"pause", b"unpause", b"unpause", b"empty", b"delete", b"create"))
        query = b"?topic=" + topic.replace(b"#", b"%23")
        if on_channel:
            name = r.choice(sorted(t["channels"]))
            channel = t["channels"][name]
            if action == b"delete" and len(t["channels"]) == 1:
                return      # whether the Topic stays is another script's affair
            if action == b"empty" and t["paused"] and (t["backlog"] or t["later"]):
                return      # page 30 section 3.9
            self.call(b"/channel/%s%s&channel=%s" % (action, query, name.replace(b"#", b"%23")))
            if action == b"delete":
                del t["channels"][name]
                self.end(channel)
            elif action == b"empty":
                channel.waiting = []
                for c in channel.consumers:
                    c.held = []
            elif action != b"create":
                channel.paused = action == b"pause"
        elif action == b"empty" and t["paused"] and t["channels"]:
            return          # D-23
        elif action == b"pause" and any(ch.waiting or any(c.held for c in ch.consumers) for ch in t["channels"].values()):
            return          # D-22
        else:
            self.call(b"/topic/%s%s" % (action, query))
            if action == b"delete":
                for channel in t["channels"].values():
                    self.end(channel)
                self.topics[topic] = absent()
            elif action == b"empty":
                t["backlog"] = []
            elif action == b"create":
                t["there"] = True
            elif t["there"]:
                t["paused"], t["later"] = action == b"pause", False
                self.spread(t)
        self.settle()

    def call(self, path):
        self.steps.append(("http", [request(b"POST", path)]))

    def end(self, channel):
        for c in channel.consumers:
            self.steps.append(("ended", c.name))
            self.conns.remove(c)

    def stats(self):
        r, query = self.r, [b"topic=" + self.topic().replace(b"#", b"%23"), b"include_mem=false"]
        query += [b"format=json"] * chance(r, 0.7) + [b"include_clients=false"] * chance(r, 0.2) + [b"channel=" + r.choice(CHANNELS).replace(b"#", b"%23")] * chance(r, 0.2)
        self.steps.append(("stats", b"&".join(query)))

    def one(self):
        r = self.r
        c = r.choice(self.conns) if self.conns else self.connect()
        what = r.random()
        if what < 0.08 and len(self.conns) < 5:
            return self.connect()
        if what < 0.3:
            return self.publish(c)
        if what < 0.35:
            return self.publish_http()
        if what < 0.42:
            return self.stats()
        if what < 0.5:
            return self.admin()
        if c.channel is None:
            return self.subscribe(c)
        if what < 0.54:
            return self.leave(c)
        if what < 0.58:
            return self.step(c, self.stop_taking(c))
        if what < 0.64:
            return self.step(c, self.foreign(c))
        if what < 0.75:
            return self.step(c, self.window(c))
        return self.step(c, self.about_message(c))


def script(r, limits):
    flow = Flow(r, limits)
    for topic in (b"{t}", b"{t}#ephemeral")[:r.choice((1, 1, 2))]:
        flow.topics[topic] = {**absent(), "there": True}
        flow.call(b"/topic/create?topic=" + topic.replace(b"#", b"%23"))
        for channel in r.sample(CHANNELS[:2], r.choice((0, 1, 1, 2))):
            flow.topics[topic]["channels"][channel] = Channel()
            flow.call(b"/channel/create?topic=%s&channel=%s" % (topic.replace(b"#", b"%23"), channel))
    for _ in range(r.randint(5, 40)):
        flow.one()
    flow.stats()
    return flow.steps
