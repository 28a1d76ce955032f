"""/stats, as text and as JSON. Its producers are those of the whole server, so these probes have servers of their own and run one by one."""
import ssl

from registry import probe
from wire import Deflate, Snappy, dpub, identify, pub, sized


def stats(p, query=b""):
    p.call(b"GET", b"/stats?" + query)


def both(p, query=b""):
    stats(p, b"format=json&" + query)
    stats(p, query)


@probe("stats: nothing there", "stats")
def _(p):
    both(p)
    both(p, b"include_mem=false")
    both(p, b"topic=none")
    both(p, b"channel=none&include_mem=false")
    stats(p, b"format=JSON&include_mem=false")
    stats(p, b"format=text&include_mem=0")
    stats(p, b"format=json&include_mem=False")
    stats(p, b"topic=%zz")
    stats(p, b"include_mem=%zz")


@probe("stats: Topics and Channels", "stats")
def _(p):
    for name in (b"bb", b"aa", b"cc#ephemeral"):
        p.call(b"POST", b"/topic/create?topic=" + name.replace(b"#", b"%23"))
    for name in (b"two", b"one"):
        p.call(b"POST", b"/channel/create?topic=aa&channel=" + name)
    p.call(b"POST", b"/pub?topic=aa", b"xyz")
    p.call(b"POST", b"/pub?topic=bb", b"wait")
    p.call(b"POST", b"/channel/pause?topic=aa&channel=one")
    p.call(b"POST", b"/topic/pause?topic=bb")
    p.routed(1, "aa")
    both(p, b"include_mem=false")
    both(p, b"include_mem=false&topic=aa")
    both(p, b"include_mem=false&topic=aa&channel=one")
    both(p, b"include_mem=false&topic=aa&channel=none")
    both(p, b"include_mem=false&channel=two")
    both(p, b"include_mem=false&topic=bb&include_clients=false")
    both(p, b"include_mem=false&topic=aa&topic=bb")
    for name in (b"aa", b"bb", b"cc%23ephemeral"):
        p.call(b"POST", b"/topic/delete?topic=" + name)


@probe("stats: consumers and producers", "stats")
def _(p):
    a = p.subscribed(rdy=5, client_id="id", hostname="hn", user_agent="ua/1", msg_timeout=30000, sample_rate=0)
    b = p.tcp("producer").send(identify(client_id="p", hostname="ph", user_agent="pua")).expect(1)
    b.send(pub(p.topic, b"12345"), pub(p.topic, b"6"), dpub(p.topic, 60000, b"later"), pub(p.topic, b"7")).expect(4)
    a.expect(3)
    a.send(b"FIN " + a.ids[0] + b"\n", b"REQ " + a.ids[1] + b" 60000\n").send(b"NOP\n")
    p.until_channel(lambda c: (c["in_flight_count"], c["deferred_count"], c["clients"][0]["finish_count"]) == (1, 2, 1))
    both(p, b"include_mem=false")
    both(p, b"include_mem=false&topic=%s&channel=c" % p.topic)
    both(p, b"include_mem=false&include_clients=false")
    both(p, b"include_mem=false&include_clients=0&topic=" + p.topic)
    both(p, b"include_mem=false&include_clients=nonsense&topic=none")
    a.send(b"CLS\n").expect(1)
    b.close()           # nsqd lists producers in any order, so there is one at a time
    p.until(lambda _, producers: not producers)
    a.send(pub(p.topic, b"8")).expect(1)
    p.until_channel(lambda c: c["depth"] == 1)
    both(p, b"include_mem=false&topic=" + p.topic)
    a.close()
    p.call(b"POST", b"/topic/delete?topic=" + p.topic)


@probe("stats: no IDENTIFY, no message", "stats")
def _(p):
    a = p.subscribed()
    both(p, b"include_mem=false")
    a.close()
    p.call(b"POST", b"/topic/delete?topic=" + p.topic)


@probe("stats: paused Topic and Channel", "stats")
def _(p):
    a = p.subscribed(rdy=1)
    p.call(b"POST", b"/topic/pause?topic=" + p.topic)
    p.call(b"POST", b"/pub?topic=" + p.topic, b"x")
    p.until_channel(lambda c: c["clients"][0]["ready_count"] == 1)
    both(p, b"include_mem=false")
    p.call(b"POST", b"/topic/unpause?topic=" + p.topic)
    a.expect(1)
    a.send(b"FIN " + a.ids[0] + b"\n")
    p.until_channel(lambda c: c["clients"][0]["finish_count"] == 1)
    both(p, b"include_mem=false")
    a.close()
    p.call(b"POST", b"/topic/delete?topic=" + p.topic)


@probe("stats: compressed consumer", "stats")
def _(p):
    c = p.tcp().send(identify(feature_negotiation=True, snappy=True, client_id="s", hostname="sh", user_agent="")).expect(1)
    c.switch(Snappy()).expect(1).send(b"SUB %s c\n" % p.topic).expect(1)
    both(p, b"include_mem=false")
    c.close()
    p.call(b"POST", b"/topic/delete?topic=" + p.topic)


for suite in ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"):
    @probe("stats: TLS 1.2 with " + suite, "tls stats")
    def _(p, suite=suite):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode, context.maximum_version = False, ssl.CERT_NONE, ssl.TLSVersion.TLSv1_2
        context.set_ciphers(suite)
        c = p.tcp().send(identify(feature_negotiation=True, tls_v1=True, deflate=True, client_id="i", hostname="h", user_agent="u")).expect(1)
        c.start_tls(context)
        c.expect(1).switch(Deflate()).expect(1)
        c.send(pub(p.topic, b"x"), b"SUB %s c\n" % p.topic).expect(2)
        p.routed(1)
        both(p, b"include_mem=false")
        c.close()
        p.call(b"POST", b"/topic/delete?topic=" + p.topic)


@probe("stats: authorised clients", "auth stats")
def _(p):
    a = p.tcp().send(b"AUTH\n" + sized(b"named"), b"SUB %s c\n" % p.topic).expect(2)
    b = p.tcp("plain").send(b"AUTH\n" + sized(b"all"), pub(p.topic, b"x")).expect(2)
    p.routed(1)
    both(p, b"include_mem=false")
    a.close()
    b.close()
    p.call(b"POST", b"/topic/delete?topic=" + p.topic)
