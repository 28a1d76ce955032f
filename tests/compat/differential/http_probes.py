"""The HTTP interface: every endpoint with good and bad arguments, framing, methods, unknown paths."""
from registry import PROBES, probe
from wire import request, sized
import struct


def http(name, *requests, server="plain", half_close=True):
    PROBES.append((name, server, lambda p: p.http(*(r.replace(b"{t}", p.topic) for r in requests), half_close=half_close)))


def call(name, method, path, body=None, *headers, server="plain"):
    PROBES.append((name, server, lambda p: p.call(method, path.replace(b"{t}", p.topic), body, *headers)))


GET, POST, PUT = b"GET", b"POST", b"PUT"

# --- paths and methods
PATHS = {b"/ping": GET, b"/info": GET, b"/stats?topic=none&include_mem=false&include_clients=false": GET, b"/pub?topic={t}": POST, b"/mpub?topic={t}": POST, b"/config/log_level": GET,
         b"/topic/create?topic={t}": POST, b"/topic/delete?topic={t}": POST, b"/topic/empty?topic={t}": POST, b"/topic/pause?topic={t}": POST, b"/topic/unpause?topic={t}": POST,
         b"/channel/create?topic={t}&channel=c": POST, b"/channel/delete?topic={t}&channel=c": POST, b"/channel/empty?topic={t}&channel=c": POST,
         b"/channel/pause?topic={t}&channel=c": POST, b"/channel/unpause?topic={t}&channel=c": POST}
for path, right in PATHS.items():
    plain = path.split(b"?")[0].decode()
    for method in (GET, POST, PUT, b"DELETE", b"HEAD", b"OPTIONS", b"PATCH"):
        if method != right and not (plain.startswith("/config") and method in (GET, PUT)):
            call("%s %s" % (method.decode(), plain), method, path)
for path in (b"/", b"/nothing", b"/put?topic=t", b"/mput", b"/create_topic", b"/pause_channel", b"/config", b"/config/", b"/topic", b"/topic/", b"/topic/nothing", b"/channel", b"/config/a/b", b"//ping", b"/ping/x"):
    for method in (GET, POST):
        call("%s %s" % (method.decode(), path.decode()), method, path)
for path in (b"/ping/", b"/PING", b"/Stats", b"/info/", b"/topic/create/?topic=x", b"/TOPIC/CREATE?topic=x", b"/pub/?topic=x"):
    for method in (GET, POST):
        call("misspelt: %s %s" % (method.decode(), path.decode()), method, path)

# --- paths of one of the two only
OWN_GETS = (b"/lookup", b"/topics", b"/channels", b"/nodes", b"/metrics", b"/v1/health", b"/v1/stats", b"/v1/registry", b"/v1/registry/head", b"/v1/capabilities", b"/v1/observe",
            b"/v1/observe/head")
OWN_POSTS = (b"/v1/storage/scrub", b"/v1/manage/fences/sync", b"/v1/manage/topics/create", b"/v1/manage/channels/create")
for path in OWN_GETS + OWN_POSTS + (b"/v1/drain",):
    call("own: " + path.decode(), b"OPTIONS", path)
call("own: /lookup, unknown Topic", GET, b"/lookup?topic={t}-none")
call("own: /v1/nothing", GET, b"/v1/nothing")
for path in (b"/debug/pprof/", b"/debug/freememory", b"/debug/setblockrate"):
    call("debug: " + path.decode(), b"OPTIONS", path)

# --- answers that need nothing
call("ping", GET, b"/ping")
call("ping with a body", GET, b"/ping", b"abc")
call("ping with a query", GET, b"/ping?a=%zz;b")
call("info", GET, b"/info")

# --- /pub
PUBS = {"good": (b"topic={t}", b"hello"), "empty, no topic": (b"", b""), "no topic": (b"", b"x"), "empty topic": (b"topic=", b"x"), "bad topic": (b"topic=a$", b"x"), "empty body": (b"topic={t}", b""),
        "bad query": (b"topic=%zz", b"x"), "semicolon": (b"topic={t};a=b", b"x"), "repeated topic": (b"topic={t}&topic=a$", b"x"), "repeated, bad first": (b"topic=a$&topic={t}", b"x"),
        "unknown keys": (b"topic={t}&x=y&&z", b"x"), "plus": (b"topic=a+b", b"x"), "escaped": (b"topic=%7Bt%7D", b"x"), "ephemeral": (b"topic={t}%23ephemeral", b"x"),
        "65 bytes": (b"topic=" + b"a" * 65, b"x"), "key in upper case": (b"TOPIC={t}", b"x"), "1 MiB": (b"topic={t}", b"x" * 1048576), "channel ignored": (b"topic={t}&channel=a$", b"x")}
for name, (query, body) in PUBS.items():
    call("pub: " + name, POST, b"/pub?" + query, body)
for defer in (b"", b"0", b"1", b"abc", b"-1", b"+5", b"-0", b"+0", b"3600000", b"3600001", b"1.5", b"1e3", b"0x10", b"1_000", b"99999999999999999999", b"%205", b"9223372036854775807", b"007", b"%2B5"):
    call("pub: defer [%s]" % defer.decode(), POST, b"/pub?topic={t}&defer=" + defer, b"x")
call("pub: defer bad and topic bad", POST, b"/pub?topic=a$&defer=x", b"x")
call("pub: form content type", POST, b"/pub?topic={t}", b"topic=zz&a=b", b"Content-Type: application/x-www-form-urlencoded")
call("pub: topic only in a form", POST, b"/pub", b"topic=zz", b"Content-Type: application/x-www-form-urlencoded")
call("pub: accept", POST, b"/pub?topic={t}", b"x", b"Accept: application/vnd.nsq; version=1.0")
call("pub: multipart", POST, b"/pub?topic={t}", b"--x--", b"Content-Type: multipart/form-data; boundary=x")
http("pub: no length, no body", request(POST, b"/pub?topic={t}"), half_close=True)
http("pub: too long, body not sent", request(POST, b"/pub?topic={t}", b"", b"Connection: close", length=3000000), half_close=False)
http("pub: one byte too long", request(POST, b"/pub?topic={t}", b"x" * 1048577, b"Connection: close"), half_close=False)


@probe("pub: what was published")
def _(p):
    p.call(POST, b"/pub?topic=" + p.topic, b"a=b\r\n\0", b"Content-Type: application/x-www-form-urlencoded")
    p.subscribed(rdy=5).expect(1).quiet()


@probe("pub: deferred")
def _(p):
    c = p.subscribed(rdy=5)
    p.http(request(POST, b"/pub?topic=%s&defer=3000" % p.topic, b"later") + request(POST, b"/pub?topic=" + p.topic, b"now"), methods=[POST, POST])
    c.expect(2)


# --- /mpub
def batch(*bodies, count=None, tail=b""):
    return struct.pack(">i", len(bodies) if count is None else count) + b"".join(map(sized, bodies)) + tail


MPUBS = {"lines": (b"topic={t}", b"a\n\nb\r\nc"), "one line": (b"topic={t}", b"a"), "empty": (b"topic={t}", b""), "line feeds only": (b"topic={t}", b"\n\n\n"), "no topic": (b"", b"a"),
         "no topic, no body": (b"", b""), "bad topic": (b"topic=a$", b"a"), "bad query": (b"topic={t}&x=%z", b"a"), "binary=0": (b"topic={t}&binary=0", b"a\nb"), "binary=false": (b"topic={t}&binary=false", b"a"),
         "binary=true": (b"topic={t}&binary=true", batch(b"a", b"b")), "binary=1": (b"topic={t}&binary=1", batch(b"a", b"b")), "binary=TRUE": (b"topic={t}&binary=TRUE", batch(b"a")),
         "binary=": (b"topic={t}&binary=", batch(b"a")), "binary": (b"topic={t}&binary", batch(b"a")), "binary=no": (b"topic={t}&binary=no", b"a\nb"), "binary=False": (b"topic={t}&binary=False", b"a\nb"),
         "binary empty": (b"topic={t}&binary=true", b""), "binary count cut": (b"topic={t}&binary=true", b"\0\0"), "binary count 0": (b"topic={t}&binary=true", batch(b"a", count=0)),
         "binary count -1": (b"topic={t}&binary=true", batch(b"a", count=-1)), "binary count too large": (b"topic={t}&binary=true", batch(b"a", count=1048577)),
         "binary count above content": (b"topic={t}&binary=true", batch(b"a", count=2)), "binary message empty": (b"topic={t}&binary=true", batch(b"a", b"")),
         "binary message cut": (b"topic={t}&binary=true", batch(b"a", tail=b"") [:-1]), "binary message too large": (b"topic={t}&binary=true", struct.pack(">ii", 1, 1048577) + b"x"),
         "binary message negative": (b"topic={t}&binary=true", struct.pack(">ii", 1, -1) + b"x"), "binary trailing": (b"topic={t}&binary=true", batch(b"a", tail=b"zz")),
         "defer ignored": (b"topic={t}&defer=abc", b"a"), "line too long": (b"topic={t}", b"x" * 1048577), "65536 lines": (b"topic={t}", b"x\n" * 65536), "65537 lines": (b"topic={t}", b"x\n" * 65537), "line just right": (b"topic={t}", b"x" * 1048576 + b"\n")}
for name, (query, body) in MPUBS.items():
    call("mpub: " + name, POST, b"/mpub?" + query, body)
for name, head in {"bad": b"POST /mpub?topic=a$ HTTP/1.1\r\nHost: h\r\n", "no": b"POST /mpub HTTP/1.1\r\nHost: h\r\n"}.items():
    http("mpub: %s topic, expect" % name, head + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    http("mpub: %s topic, broken chunk" % name, head + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n")
    http("mpub: %s topic, body cut by the end" % name, head + b"Content-Length: 5\r\n\r\nab")
    http("mpub: %s topic, and another request" % name, head + b"Content-Length: 2\r\n\r\nab", request(GET, b"/ping"))
    http("mpub: %s topic, too long" % name, head + b"Content-Length: 6000000\r\n\r\n", half_close=False)
http("mpub: too long, body not sent", request(POST, b"/mpub?topic={t}", b"", b"Connection: close", length=6000000), half_close=False)


@probe("mpub: what was published")
def _(p):
    p.call(POST, b"/mpub?topic=" + p.topic, b"a\n\nb\r\nc")
    p.subscribed(rdy=1).expect(1).send(b"RDY 5\n").expect(2).quiet()


# --- framing
chunked = b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
http("framing: chunked", chunked + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
http("framing: chunked with a trailer", chunked + b"3\r\nabc\r\n0\r\nX: y\r\n\r\n")
http("framing: chunked, empty", chunked + b"0\r\n\r\n")
http("framing: chunked too long", chunked.replace(b"Host: h", b"Host: h\r\nConnection: close") + b"100001\r\n" + b"x" * 1048577 + b"\r\n0\r\n\r\n", half_close=False)
http("framing: chunked mpub", chunked.replace(b"/pub", b"/mpub") + b"4\r\na\nb\n\r\n0\r\n\r\n")
http("framing: keep-alive", request(GET, b"/ping"), request(POST, b"/pub?topic={t}", b"x"), request(GET, b"/nothing"), request(GET, b"/ping"))
http("framing: pipelined", request(GET, b"/ping") + request(POST, b"/pub?topic={t}", b"x") + request(GET, b"/nothing") + request(POST, b"/pub", b"y") + request(GET, b"/ping"))
http("framing: Connection: close in the middle", request(GET, b"/ping", None, b"Connection: close") + request(GET, b"/ping"))
http("framing: HTTP/1.0", b"GET /ping HTTP/1.0\r\n\r\n")
http("framing: HTTP/1.0 keep-alive", b"GET /ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /ping HTTP/1.0\r\n\r\n")
http("framing: HTTP/1.0 publish", b"POST /pub?topic={t} HTTP/1.0\r\nContent-Length: 1\r\n\r\nx")
http("framing: expect", request(POST, b"/pub?topic={t}", b"x", b"Expect: 100-continue"))
http("framing: expect, upper case", request(POST, b"/pub?topic={t}", b"x", b"Expect: 100-Continue"))
http("framing: expect, too long", request(POST, b"/pub?topic={t}", b"", b"Expect: 100-continue", length=3000000), half_close=False)
http("framing: expect, mpub too long", request(POST, b"/mpub?topic={t}", b"", b"Expect: 100-continue", length=6000000), half_close=False)
http("framing: expect something else", request(POST, b"/pub?topic={t}", b"x", b"Expect: tea"))
http("framing: absolute target", b"GET http://h/ping HTTP/1.1\r\nHost: h\r\n\r\n")
http("framing: no Host", b"GET /ping HTTP/1.1\r\n\r\n")
http("framing: lower-case header names", b"GET /ping HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
http("framing: bare line feeds", b"GET /ping HTTP/1.1\nHost: h\n\n")
http("framing: a head of 60 KB", request(GET, b"/ping", None, b"A: " + b"a" * 60000))
http("framing: a line that continues a long one", request(GET, b"/ping", None, b"A: " + b"a" * 5000 + b"\r\n X: y"), request(GET, b"/ping", None, b"A: a\r\n\t \r\n  b"), b"GET /ping HTTP/1.1\r\n Host: h\r\n\r\n")
http("framing: empty line first", b"\r\nGET /ping HTTP/1.1\r\nHost: h\r\n\r\n")
http("framing: escaped path", request(GET, b"/p%69ng"))
http("framing: dots in the path", request(GET, b"/topic/../ping"))
http("framing: both lengths", b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
http("framing: bad length", b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n")
http("framing: negative length", b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n")
http("framing: two equal lengths", b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx")
http("framing: two different lengths", b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy")
http("framing: unknown transfer encoding", b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n")
http("framing: bad chunk", chunked + b"zz\r\n")
http("framing: garbage", b"\0\1\2\3\r\n\r\n")
http("framing: NSQ magic", b"  V2IDENTIFY\n\r\n\r\n")
http("framing: version 2", b"GET /ping HTTP/2.0\r\nHost: h\r\n\r\n")
http("framing: version 1.9", b"GET /ping HTTP/1.9\r\nHost: h\r\n\r\n")
http("framing: no version", b"GET /ping\r\n\r\n")
http("framing: space in a header name", b"GET /ping HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n")
http("framing: header without colon", b"GET /ping HTTP/1.1\r\nHost: h\r\nabc\r\n\r\n")
http("framing: unknown method", request(b"BREW", b"/ping"))
http("framing: body cut by the end", b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
http("framing: head cut by the end", b"GET /ping HTTP/1.1\r\nHost")

# --- Topics and Channels
BAD = {"no arguments": b"", "empty": b"topic=", "bad name": b"topic=a$", "bad query": b"topic=%zz", "unknown": b"topic={t}-none", "repeated": b"topic=a$&topic={t}"}
for action in (b"create", b"delete", b"empty", b"pause", b"unpause"):
    for name, query in BAD.items():
        call("topic/%s: %s" % (action.decode(), name), POST, b"/topic/%s?%s" % (action, query))
    call("topic/%s: in the body" % action.decode(), POST, b"/topic/" + action, b"topic={t}", b"Content-Type: application/x-www-form-urlencoded")
for action in (b"create", b"delete", b"empty", b"pause", b"unpause"):
    for name, query in {**BAD, "no channel": b"topic={t}", "empty channel": b"topic={t}&channel=", "bad channel": b"topic={t}&channel=a$", "both bad": b"topic=a$&channel=a$", "only channel": b"channel=c",
                        "unknown topic": b"topic={t}-none&channel=c", "ephemeral topic": b"topic={t}-x%23ephemeral&channel=c"}.items():
        call("channel/%s: %s" % (action.decode(), name), POST, b"/channel/%s?%s" % (action, query))


@probe("life of a Topic and a Channel")
def _(p):
    for path in (b"topic/create", b"topic/create", b"topic/pause", b"topic/pause", b"topic/unpause", b"topic/unpause", b"topic/empty"):
        p.call(POST, b"/%s?topic=%s" % (path, p.topic))
    for path in (b"channel/pause", b"channel/create", b"channel/create", b"channel/pause", b"channel/pause", b"channel/unpause", b"channel/empty", b"channel/delete", b"channel/delete"):
        p.call(POST, b"/%s?topic=%s&channel=c" % (path, p.topic))
    for _ in range(2):
        p.call(POST, b"/topic/delete?topic=" + p.topic, b"unwanted body")


# --- /config
for option in (b"tcp_address", b"http_address", b"broadcast_address", b"nothing", b"LOG_LEVEL", b"log_level", b"id", b"node_id", b"msg_timeout", b"max_msg_timeout", b"max_msg_size", b"max_body_size",
               b"max_req_timeout", b"max_heartbeat_interval", b"max_rdy_count", b"max_output_buffer_size", b"max_output_buffer_timeout", b"min_output_buffer_timeout", b"output_buffer_timeout",
               b"max_channel_consumers", b"max_deflate_level", b"deflate", b"snappy", b"nsqlookupd_tcp_addresses", b"auth_http_addresses", b"e2e_processing_latency_percentiles", b"tls_cert",
               b"tls_key", b"tls_root_ca_file", b"tls_required", b"tls_min_version", b"tls_client_auth_policy", b"mem_queue_size", b"data_path", b"max_bytes_per_file", b"sync_every", b"sync_timeout",
               b"https_address", b"broadcast_tcp_port", b"broadcast_http_port", b"statsd_prefix", b"queue_scan_interval", b"e2e_processing_latency_window_time", b"http_client_connect_timeout",
               b"http_client_request_timeout", b"verbose", b"log_prefix", b"client_timeout", b"max-rdy-count", b"statsd_address", b"statsd_interval", b"statsd_mem_stats",
               b"statsd_udp_packet_size", b"statsd_exclude_ephemeral", b"queue_scan_selection_count", b"queue_scan_worker_pool_max", b"worker_id", b"version", b"config",
               b"lookupd_tcp_address", b"auth_http_address", b"e2e_processing_latency_percentile"):
    call("config: " + option.decode(), GET, b"/config/" + option)
PUTS = {"unknown": (b"nothing", b"1"), "not settable": (b"max_rdy_count", b"5"), "empty": (b"log_level", b""), "empty, unknown": (b"nothing", b""), "log level quoted": (b"log_level", b'"info"'),
        "log level bad": (b"log_level", b"loud"), "log level": (b"log_level", b"info"), "log level upper case": (b"log_level", b"WARN"), "log level again": (b"log_level", b"info"),
        "lookup bad JSON": (b"nsqlookupd_tcp_addresses", b"x"), "lookup not a list": (b"nsqlookupd_tcp_addresses", b'"a"'), "lookup numbers": (b"nsqlookupd_tcp_addresses", b"[1]"),
        "lookup empty list": (b"nsqlookupd_tcp_addresses", b"[]"), "too long": (b"log_level", b"x" * 1048577)}
for name, (option, body) in PUTS.items():
    call("config put: " + name, PUT, b"/config/" + option, body, server="config")
