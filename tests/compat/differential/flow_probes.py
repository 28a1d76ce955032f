"""Subscriptions: RDY, deliveries, FIN, REQ, TOUCH, CLS, heartbeats, timeouts, and what administration does to consumers."""
from registry import ALIVE, probe, raw
from wire import Deflate, Snappy, dpub, identify, mpub, pub, sized

ID = b"0123456789abcdef"
SUB = b"SUB {t} c\n"
SILENCE = 4.0       # where one server sends something and the other nothing

# --- parameters of a subscribed connection
for value in (b"RDY", b"RDY ", b"RDY 0", b"RDY 1", b"RDY 2500", b"RDY 2501", b"RDY -1", b"RDY +1", b"RDY x", b"RDY 1.0", b"RDY 1 zzz", b"RDY 18446744073709551615", b"RDY 18446744073709551616",
              b"RDY 18446744073709551617", b"RDY 007", b"RDY  1",
              b"FIN", b"FIN ", b"FIN " + ID, b"FIN " + ID[:15], b"FIN " + ID + b"0", b"FIN " + ID + b" x", b"FIN zzzz%%%%6789abcd", b"FIN 0123456789ABCDEF",
              b"REQ", b"REQ " + ID, b"REQ " + ID + b" ", b"REQ " + ID + b" 0", b"REQ " + ID + b" -1", b"REQ " + ID + b" x", b"REQ " + ID + b" 99999999999", b"REQ " + ID + b" 1.5",
              b"REQ " + ID[:15] + b" 0", b"REQ " + ID[:15] + b" x", b"REQ " + ID + b" 5 x",
              b"TOUCH", b"TOUCH ", b"TOUCH " + ID, b"TOUCH " + ID[:3], b"TOUCH " + ID + b" x",
              b"CLS", b"CLS x", b"CLS\nCLS", b"CLS\nRDY zz", b"CLS\nRDY", b"CLS\nFIN " + ID, b"CLS\nREQ " + ID + b" 0", b"CLS\nTOUCH " + ID, b"CLS\nNOP", b"CLS\nSUB {t} d", b"CLS\nASDF",
              b"CLS\nFIN", b"CLS\nREQ " + ID + b" zz", b"NOP", b"ASDF", b""):
    raw("subscribed: %s" % value.decode().replace("\n", "; "), SUB, value + b"\n", ALIVE)
raw("subscribed: IDENTIFY", SUB, identify(), ALIVE)
raw("closing: IDENTIFY", SUB, b"CLS\n", identify(), ALIVE)
raw("closing: AUTH", SUB, b"CLS\n", b"AUTH\n", sized(b"x"), ALIVE)
raw("closing: MPUB and DPUB", SUB, b"CLS\n", mpub(b"{t}", b"a"), dpub(b"{t}", 10, b"b"), ALIVE)
raw("subscribed: publishing", SUB, pub(b"{t}", b"x"), mpub(b"{t}", b"a", b"b"), dpub(b"{t}", 10, b"c"), ALIVE)


# --- deliveries
@probe("one message and FIN")
def _(p):
    p.published(b"hello")
    c = p.subscribed(rdy=1).expect(1)
    c.send(b"FIN " + c.ids[0] + b"\n").quiet().send(b"FIN " + c.ids[0] + b"\n").expect(1).send(ALIVE).expect(1)


@probe("SUB and RDY in one segment with a backlog")
def _(p):
    p.published(b"hello")
    p.tcp().send(b"SUB %s c\nRDY 1\n" % p.topic).expect(2).quiet()


@probe("REQ 0: same id, attempts 2")
def _(p):
    p.published(b"again")
    c = p.subscribed(rdy=1).expect(1)
    c.send(b"REQ " + c.ids[0] + b" 0\n").expect(1).send(b"REQ " + c.ids[0] + b"\x20\n").expect(1).send(b"FIN " + c.ids[0] + b"\n").quiet()


@probe("REQ 3000: later, and FIN meanwhile")
def _(p):
    p.published(b"again")
    c = p.subscribed(rdy=1).expect(1)
    c.send(b"REQ %s 3000\nFIN %s\nTOUCH %s\nREQ %s 0\n" % ((c.ids[0],) * 4)).expect(4)


@probe("RDY window: 2 of 4, then one for each FIN")
def _(p):
    p.published(b"1", b"2", b"3", b"4")
    c = p.subscribed(rdy=2).expect(2).quiet()
    c.send(b"FIN " + c.ids[0] + b"\n").expect(1).quiet()
    c.send(b"RDY 1\n", b"FIN " + c.ids[1] + b"\n").quiet()
    c.send(b"FIN " + c.ids[2] + b"\n").expect(1)


@probe("RDY 0 holds")
def _(p):
    c = p.subscribed(rdy=0)
    p.published(b"x")
    c.quiet().send(b"RDY 1\n").expect(1)


@probe("TOUCH of a message in flight")
def _(p):
    p.published(b"x")
    c = p.subscribed(rdy=1).expect(1)
    c.send(b"TOUCH " + c.ids[0] + b"\n").quiet().send(b"FIN " + c.ids[0] + b"\n").quiet().send(b"TOUCH " + c.ids[0] + b"\n").expect(1)


@probe("another connection's message")
def _(p):
    p.published(b"x")
    a = p.subscribed("a", rdy=1).expect(1)
    b = p.subscribed("b", rdy=0)
    for line in (b"FIN %s\n", b"TOUCH %s\n", b"REQ %s 0\n"):
        b.send(line % a.ids[0]).expect(1)
    b.send(ALIVE).expect(1)
    a.send(b"FIN " + a.ids[0] + b"\n", ALIVE).expect(1)


@probe("two Channels get the same message")
def _(p):
    a, b = p.subscribed("a", b"one", rdy=1), p.subscribed("b", b"two", rdy=1)
    p.published(b"x")
    a.expect(1)
    b.expect(1)
    a.send(b"REQ " + a.ids[0] + b" 0\n").expect(1)
    b.send(b"FIN " + b.ids[0] + b"\n").quiet()


@probe("message timeout")
def _(p):
    p.published(b"x")
    c = p.subscribed(rdy=1, msg_timeout=4000).expect(2)
    c.send(b"FIN " + c.ids[0] + b"\n").quiet()


@probe("DPUB 3000: not at once, attempts 1")
def _(p):
    c = p.subscribed(rdy=2)
    p.tcp("producer").send(dpub(p.topic, 3000, b"later"), pub(p.topic, b"now")).expect(2)
    c.expect(2)


@probe("publishing on a subscribed connection")
def _(p):
    c = p.subscribed(rdy=0)
    c.send(pub(p.topic, b"x")).expect(1).send(b"RDY 1\n").expect(1)


@probe("CLS with a message in flight")
def _(p):
    p.published(b"1", b"2")
    c = p.subscribed(rdy=1).expect(1)
    c.send(b"CLS\n").expect(1).send(b"RDY 5\n").quiet().send(b"TOUCH " + c.ids[0] + b"\n").quiet()
    c.send(b"FIN " + c.ids[0] + b"\n").quiet().send(ALIVE).expect(1)


@probe("heartbeats of 3 s, answered")
def _(p):
    c = p.subscribed(heartbeat_interval=3000)
    for _ in range(3):
        c.expect(1, beats=True).send(b"NOP\n")


@probe("heartbeats of 1 s, silent")
def _(p):
    c = p.subscribed(heartbeat_interval=1000)
    c.expect(1, beats=True).end()


@probe("heartbeats off, no read limit")
def _(p):
    p.tcp().send(identify(heartbeat_interval=-1)).expect(1).quiet(2.5).send(ALIVE).expect(1)


# --- administration under a consumer
def admin(p, path, channel=b""):
    p.call(b"POST", b"/%s?topic=%s" % (path, p.topic) + (b"&channel=" + channel if channel else b""))


@probe("Channel deleted under its consumer")
def _(p):
    c = p.subscribed(rdy=1)
    admin(p, b"channel/delete", b"c")
    c.end()


@probe("Topic deleted under its consumer")
def _(p):
    c = p.subscribed(rdy=1)
    admin(p, b"topic/delete")
    c.end()


@probe("Topic with a Channel emptied while it is paused")
def _(p):
    c = p.subscribed(rdy=1)
    admin(p, b"topic/pause")
    p.published(b"1")
    admin(p, b"topic/empty")
    admin(p, b"topic/unpause")
    c.expect(1, SILENCE)


@probe("Channel emptied while its Topic is paused")
def _(p):
    c = p.subscribed()
    p.published(b"1")
    p.routed(1)
    admin(p, b"topic/pause")
    p.published(b"2")
    p.call(b"POST", b"/channel/empty?topic=%s&channel=c" % p.topic)
    admin(p, b"topic/unpause")
    p.published(b"3")
    c.send(b"RDY 5\n").expect(2, SILENCE)


@probe("Topic without a Channel emptied")
def _(p):
    p.published(b"1", b"2")
    admin(p, b"topic/empty")
    p.subscribed(rdy=1).quiet()


@probe("a later Channel")
def _(p):
    p.subscribed("first", b"one")
    p.published(b"1")
    p.routed(1)
    p.subscribed("later", b"two", rdy=1).expect(1, SILENCE)
    p.published(b"2")


@probe("a consumer leaves with a message in flight")
def _(p):
    p.published(b"1")
    c = p.subscribed(rdy=1, msg_timeout=60000).expect(1)
    c.close()
    p.subscribed("next", rdy=1).expect(1, SILENCE)


@probe("Channel emptied with messages in flight")
def _(p):
    c = p.subscribed(rdy=1)
    p.published(b"1", b"2")
    p.routed(2)
    c.expect(1)
    admin(p, b"channel/empty", b"c")
    c.quiet().send(b"FIN " + c.ids[0] + b"\n").expect(1)
    p.published(b"3")
    c.expect(1)


@probe("paused Channel")
def _(p):
    c = p.subscribed(rdy=1)
    admin(p, b"channel/pause", b"c")
    p.published(b"1")
    c.quiet()
    admin(p, b"channel/unpause", b"c")
    c.expect(1)


@probe("paused Topic")
def _(p):
    c = p.subscribed(rdy=1)
    admin(p, b"topic/pause")
    p.published(b"1")
    c.quiet()
    admin(p, b"topic/unpause")
    c.expect(1)


@probe("ephemeral Channel goes with its consumer")
def _(p):
    c = p.subscribed(channel=b"e#ephemeral", rdy=1)
    p.published(b"1")
    c.expect(1)
    c.close()
    p.gone("e#ephemeral")
    p.call(b"POST", b"/channel/pause?topic=%s&channel=e%%23ephemeral" % p.topic)


@probe("ephemeral Topic")
def _(p):
    p.topic += b"#ephemeral"
    p.published(b"1")
    c = p.subscribed(channel=b"e#ephemeral", rdy=1).expect(1)
    c.close()
    p.gone()
    p.call(b"POST", b"/topic/pause?topic=%s" % p.topic.replace(b"#", b"%23"))


# --- compression
def compressed(p, layer, **fields):
    c = p.tcp().send(identify(feature_negotiation=True, **fields)).expect(1)
    return c.switch(layer).expect(1)


for name, layer, fields in (("snappy", Snappy, {"snappy": True}), ("deflate", Deflate, {"deflate": True}), ("deflate level 1", Deflate, {"deflate": True, "deflate_level": 1})):
    @probe(name + " round trip")
    def _(p, layer=layer, fields=fields):
        c = compressed(p, layer(), **fields)
        c.send(pub(p.topic, b"squeeze " * 500), b"SUB %s c\n" % p.topic, b"RDY 1\n").expect(3)
        c.send(b"FIN " + c.ids[0] + b"\n", b"FIN " + ID + b"\n").expect(1).send(b"ASDF\n").end()

    @probe(name + ": garbage closes")
    def _(p, layer=layer, fields=fields):
        c = compressed(p, layer(), **fields)
        c.send_raw(b"CLS\n" + b"\xff" * 64)
        c.end()
