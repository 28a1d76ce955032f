"""Other configurations: small limits, TLS optional and required, an auth server."""
import time

from auth_documents import ODD
from registry import ALIVE, probe, raw
from wire import Deflate, Snappy, dpub, identify, mpub, pub, sized
from http_probes import call, POST
import struct


def size(n):
    return struct.pack(">i", n)


# --- small limits (differential.py: CONFIGURATIONS)
raw("small: RDY 5", b"SUB {t} c\n", b"RDY 5\n", ALIVE, server="small")
raw("small: RDY 6", b"SUB {t} c\n", b"RDY 6\n", ALIVE, server="small")
raw("small: PUB of 100 bytes", b"PUB {t}\n", sized(b"x" * 100), ALIVE, server="small")
raw("small: PUB of 101 bytes", b"PUB {t}\n", sized(b"x" * 101), server="small")
raw("small: MPUB of 1000 bytes", mpub(b"{t}", *[b"x" * 79] * 12), ALIVE, server="small")
raw("small: MPUB of 1001 bytes", mpub(b"{t}", *[b"x" * 79] * 12, size=1001), server="small")
raw("small: MPUB of too many", mpub(b"{t}", b"x", count=200), server="small")
raw("small: DPUB 1000", dpub(b"{t}", 1000, b"x"), ALIVE, server="small")
raw("small: DPUB 1001", dpub(b"{t}", 1001, b"x"), ALIVE, server="small")
raw("small: IDENTIFY reply", identify(feature_negotiation=True, snappy=True, deflate=True, deflate_level=9, output_buffer_size=512), ALIVE, server="small")
for field, values in {"heartbeat_interval": (10000, 10001), "output_buffer_size": (1024, 1025), "output_buffer_timeout": (1000, 1001), "msg_timeout": (8000, 8001)}.items():
    for value in values:
        raw("small: IDENTIFY %s %d" % (field, value), identify(**{"feature_negotiation": True, "output_buffer_size": 512, field: value}), ALIVE, server="small")
call("small: pub of 101 bytes", POST, b"/pub?topic={t}", b"x" * 101, server="small")
call("small: mpub of 1001 bytes", POST, b"/mpub?topic={t}", b"x\n" * 500 + b"x", server="small")
call("small: mpub line of 101 bytes", POST, b"/mpub?topic={t}", b"x" * 101, server="small")
call("small: defer 1001", POST, b"/pub?topic={t}&defer=1001", b"x", server="small")
call("small: info", b"GET", b"/info", server="small")


@probe("small: second consumer of a Channel", "small")
def _(p):
    p.subscribed("a")
    p.subscribed("b").end()


@probe("small: TOUCH up to the maximum", "small")
def _(p):
    p.published(b"x")
    c = p.subscribed(rdy=1, msg_timeout=4000).expect(1)
    for _ in range(5):
        time.sleep(1)
        c.send(b"TOUCH " + c.ids[0] + b"\n")
    c.expect(1)


@probe("small: ephemeral Channel holds three", "small")
def _(p):
    c = p.subscribed(channel=b"e#ephemeral", rdy=0, msg_timeout=8000)
    producer = p.tcp("producer")
    for n in range(1, 7):
        producer.send(pub(p.topic, b"%d" % n)).expect(1)
        p.routed(n)
    c.send(b"RDY 5\n").expect(3).quiet()


# --- TLS
def encrypted(p, layer=None, **fields):
    c = p.tcp().send(identify(feature_negotiation=True, tls_v1=True, **fields)).expect(1)
    c.start_tls(p.server.context)
    c.expect(1)
    if layer:
        c.switch(layer).expect(1)
    return c


for name, layer, fields in (("alone", None, {}), ("and snappy", Snappy, {"snappy": True}), ("and deflate", Deflate, {"deflate": True})):
    for server in ("tls", "tls required"):
        @probe("%s: TLS %s" % (server, name), server)
        def _(p, layer=layer, fields=fields):
            c = encrypted(p, layer and layer(), **fields)
            c.send(pub(p.topic, b"secret " * 100), b"SUB %s c\n" % p.topic, b"RDY 1\n").expect(3)
            c.send(b"FIN " + c.ids[0] + b"\n", b"ASDF\n").end()
for line in (b"NOP", b"", b"ASDF x", b"SUB {t} c", b"PUB {t}", b"RDY", b"AUTH", b"CLS"):
    raw("tls required: plain %s" % line.decode(), line + b"\n", server="tls required")
raw("tls required: IDENTIFY without negotiation", identify(), b"NOP\n", server="tls required")
raw("tls required: IDENTIFY without tls_v1", identify(feature_negotiation=True), b"NOP\n", server="tls required")
raw("tls: plain connection", identify(feature_negotiation=True), ALIVE, server="tls")
raw("tls: tls_v1 without negotiation", identify(tls_v1=True), ALIVE, server="tls")
call("tls required: ping", b"GET", b"/ping", server="tls required")


@probe("tls: garbage instead of a handshake", "tls")
def _(p):
    p.tcp().send(identify(feature_negotiation=True, tls_v1=True)).expect(1).send(b"garbage, not TLS\n" * 4).finish().end()


# --- AUTH
def auth(secret):
    return b"AUTH\n" + sized(secret)


raw("auth: IDENTIFY", identify(feature_negotiation=True), server="auth")
raw("auth: good", auth(b"all"), pub(b"{t}", b"x"), b"SUB {t} c\n", server="auth")
raw("auth: twice", auth(b"all"), auth(b"all"), ALIVE, server="auth")
raw("auth: wrong", auth(b"wrong"), ALIVE, server="auth")
raw("auth: not JSON", auth(b"garbage"), ALIVE, server="auth")
raw("auth: no authorizations", auth(b"none"), ALIVE, server="auth")
raw("auth: ttl 0", auth(b"ttl0"), ALIVE, server="auth")
raw("auth: bad permission", auth(b"badword"), ALIVE, server="auth")
raw("auth: bad expression", auth(b"badregex"), ALIVE, server="auth")
raw("auth: identity", auth(b"identity"), server="auth")
raw("auth: before IDENTIFY and behind", auth(b"all"), identify(), b"SUB {t} c\n", server="auth")
for line, name in ((b"SUB {t} c\n", "SUB"), (pub(b"{t}", b"x"), "PUB"), (mpub(b"{t}", b"x"), "MPUB"), (dpub(b"{t}", 1, b"x"), "DPUB"), (b"NOP\n", "NOP"), (b"SUB a$ c\n", "SUB bad name"),
                   (b"PUB {t}\n" + size(0), "PUB of nothing"), (b"MPUB {t}\n" + size(0), "MPUB of nothing")):
    raw("auth: first %s" % name, line, server="auth")
    raw("auth: %s with publish only" % name, auth(b"publish"), line, server="auth")
    raw("auth: %s with publish and no channels" % name, auth(b"nochannels"), line, server="auth")
    raw("auth: %s with subscribe only" % name, auth(b"subscribe"), line, server="auth")
    raw("auth: %s with other topic" % name, auth(b"other"), line, server="auth")
for server in ("auth", "auth at root", "auth at check", "auth below a path", "auth over TLS", "auth of an unknown CA"):
    raw("%s: what is asked" % server, auth(b"echo"), auth(b"echo"), server=server)
for name in ODD:
    raw("auth document: %s: PUB" % name, auth(b"odd " + name.encode()), pub(b"{t}", b"x"), server="auth")
    raw("auth document: %s: SUB" % name, auth(b"odd " + name.encode()), b"SUB {t} c\n", server="auth")
