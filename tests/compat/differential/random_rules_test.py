#!/usr/bin/env python3
"""The rules of generated scripts without servers: differences that a rule must want, and others that look like them and must not be wanted. One line each; the
last is `N passed, N failed`."""
import pathlib, sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]
import differences, lockstep, random_checks

OK, HTTP_OK, EMPTY = ["response OK"], ["HTTP/1.1 200 OK", "date: now", "OK"], ["HTTP/1.1 200 OK", "date: now"]


def error(status, code, *headers):
    return ["HTTP/1.1 " + status, *headers, "date: now", '{"message": "%s"}' % code]


def post(target, body=b"", *lines):
    return b"\r\n".join([b"POST %s HTTP/1.1" % target, b"Host: h", *lines, b"Content-Length: %d" % len(body), b"", b""]) + body


def stats(topics, producers="[]"):
    return ["HTTP/1.1 200 OK", "date: now", '{"version": "1.3.0", "topics": [%s], "producers": %s}' % (topics, producers)]


def topic(channels="", messages=0, depth=0):
    return '{"topic_name": "{t}", "channels": [%s], "depth": %d, backend, "message_count": %d, "message_bytes": 0}' % (channels, depth, messages)


def channel(name, depth):
    return '{"channel_name": "%s", "depth": %d, backend, "in_flight_count": 0, "deferred_count": 0, "message_count": %d, "requeue_count": 0}' % (name, depth, depth)


PUB, REFUSED_PUB = b"PUB {t}\n\0\0\0\1x", b"PUB {t}\n\0\0\0\0"
MISSING, NO_CHANNEL = error("404 Not Found", "TOPIC_NOT_FOUND"), error("404 Not Found", "CHANNEL_NOT_FOUND")
CHUNKED = b"POST /mpub?topic={t}&binary=true HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
KEPT = b"POST /pub?topic={t} HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\nContent-Length: 1001\r\n\r\n" + b"x" * 1001
PAUSE, CREATE, DELETE = post(b"/topic/pause?topic={t}"), post(b"/topic/create?topic={t}"), post(b"/topic/delete?topic={t}")
STATS = ("stats", b"topic={t}&format=json")
BAD, NO_VERSION = ["HTTP/1.1 400 Bad Request", "connection: close", "400 Bad Request"], ["HTTP/1.1 505 HTTP Version Not Supported", "connection: close", "505 HTTP Version Not Supported"]
EPHEMERAL = [("http", [post(b"/pub?topic={t}", b"x"), post(b"/channel/create?topic={t}&channel=e%23ephemeral")])], [HTTP_OK + EMPTY]


def sent(*parts):
    return ("send", "a", list(parts), "id", 0)


# name -> (whether a rule wants it, steps before, what both answered to those, the step, nsqd's lines, ours)
CASES = {
    "a Topic of a refused publish": (True, [sent(REFUSED_PUB)], [["error E_BAD_MESSAGE PUB invalid message body size 0", "closed"]], ("http", [PAUSE]), EMPTY, MISSING),
    "a Topic that was published to": (False, [sent(PUB)], [OK], ("http", [PAUSE]), EMPTY, MISSING),
    "a Topic that was published to over HTTP": (False, [("http", [post(b"/pub?topic={t}", b"x")])], [HTTP_OK], ("http", [PAUSE]), EMPTY, MISSING),
    "a Topic that was published to in the same step": (False, [], [], ("http", [post(b"/pub?topic={t}", b"x"), PAUSE]), HTTP_OK + EMPTY, HTTP_OK + MISSING),
    "a Topic of an empty batch": (True, [("http", [post(b"/mpub?topic={t}", b"\n\n")])], [HTTP_OK], ("http", [PAUSE]), EMPTY, MISSING),
    "a Topic that was created": (False, [("http", [CREATE]), sent(REFUSED_PUB)], [EMPTY, ["error E_BAD_MESSAGE PUB", "closed"]], ("http", [PAUSE]), EMPTY, MISSING),
    "a Topic that was deleted since": (True, [("http", [CREATE, DELETE]), sent(REFUSED_PUB)], [EMPTY * 2, ["error E_BAD_MESSAGE PUB", "closed"]], ("http", [PAUSE]), EMPTY, MISSING),
    "a Topic that was subscribed to": (False, [sent(REFUSED_PUB), sent(b"SUB {t} c\n")], [["error E_BAD_MESSAGE PUB", "closed"], OK], ("http", [PAUSE]), EMPTY, MISSING),
    "no Topic where nsqd has no Channel": (True, [sent(REFUSED_PUB)], [["error E_BAD_MESSAGE PUB", "closed"]], ("http", [post(b"/channel/empty?topic={t}&channel=c")]), NO_CHANNEL, MISSING),
    "no Topic where nsqd fails": (False, [sent(REFUSED_PUB)], [["error E_BAD_MESSAGE PUB", "closed"]], ("http", [PAUSE]), error("500 Internal Server Error", "INTERNAL_ERROR"), MISSING),
    "stats without a Topic of a refused publish": (True, [sent(REFUSED_PUB)], [["error E_BAD_MESSAGE PUB", "closed"]], STATS, stats(topic()), stats("")),
    "stats without a Topic that holds messages": (False, [sent(REFUSED_PUB)], [["error E_BAD_MESSAGE PUB", "closed"]], STATS, stats(topic("", 1, 1)), stats("")),
    "stats without a Topic that has a Channel": (False, [sent(REFUSED_PUB)], [["error E_BAD_MESSAGE PUB", "closed"]], STATS, stats(topic(channel("c", 0))), stats("")),
    "stats without a Topic that was published to": (False, [sent(PUB)], [OK], STATS, stats(topic()), stats("")),
    "stats among requests": (True, [sent(REFUSED_PUB)], [["error E_BAD_MESSAGE PUB", "closed"]], ("http", [b"GET /stats?topic={t}&format=json HTTP/1.1\r\nHost: h\r\n\r\n"]), stats(topic()), stats("")),
    "stats of another Topic than the one created": (True, [("http", [post(b"/topic/create?topic={t}-b")]), sent(REFUSED_PUB)], [EMPTY, ["error E_BAD_MESSAGE PUB", "closed"]], STATS, stats(topic()), stats("")),
    "a delay beyond 64 bits": (True, [], [], sent(b"DPUB {t} 9223372036854775808\n\0\0\0\1x"), OK, ["error E_INVALID DPUB timeout 9223372036854775808 out of range 0-3600000", "closed"]),
    "a delay beyond 64 bits and no body": (True, [], [], sent(b"DPUB {t} 9223372036854775808\n"), ["error E_BAD_MESSAGE DPUB failed to read message body size"], ["error E_INVALID DPUB timeout 9223372036854775808 out of range 0-3600000"]),
    "a delay within 64 bits": (False, [], [], sent(b"DPUB {t} 3600000\n\0\0\0\1x"), OK, ["error E_INVALID DPUB timeout 3600000 out of range 0-3600000", "closed"]),
    "a body too long with broken chunks": (True, [], [], ("http", [b"POST /pub?topic={t} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001 + b"\r\n0\n\n"]),
                                           error("500 Internal Server Error", "INTERNAL_ERROR", "connection: close"), error("413 Request Entity Too Large", "MSG_TOO_BIG", "connection: close")),
    "chunks that end without a last one, behind a whole batch": (True, [], [], ("http", [CHUNKED + b"1\r\nx\r\n\r\n"]), HTTP_OK, error("500 Internal Server Error", "INTERNAL_ERROR", "connection: close")),
    "chunks with a wrong size": (True, [], [], ("http", [CHUNKED + b"2\r\nx\r\n0\r\n\r\n"]), HTTP_OK, error("500 Internal Server Error", "INTERNAL_ERROR", "connection: close")),
    "chunks that end well": (False, [], [], ("http", [CHUNKED + b"1;x=y\r\nx\r\n00\r\nX: y\r\n\r\n"]), HTTP_OK, error("500 Internal Server Error", "INTERNAL_ERROR", "connection: close")),
    "broken chunks of another request": (False, [], [], ("http", [post(b"/pub?topic={t}", b"x"), CHUNKED + b"z\r\n"]), HTTP_OK, error("500 Internal Server Error", "INTERNAL_ERROR", "connection: close")),
    "no chunks": (False, [], [], ("http", [post(b"/pub?topic={t}", b"\r\n\r\n")]), HTTP_OK, error("500 Internal Server Error", "INTERNAL_ERROR", "connection: close")),
    "a body too long that is no batch": (True, [], [], ("http", [CHUNKED + b"1389\r\n" + b"y" * 5001 + b"\r\n0\r\n\r\n"]), error("413 Request Entity Too Large", "BAD_BODY"),
                                         error("413 Request Entity Too Large", "BODY_TOO_BIG", "connection: close")),
    "a body short enough that is no batch": (False, [], [], ("http", [CHUNKED + b"1388\r\n" + b"y" * 5000 + b"\r\n0\r\n\r\n"]), error("413 Request Entity Too Large", "BAD_BODY"),
                                             error("413 Request Entity Too Large", "BODY_TOO_BIG", "connection: close")),
    "a body too long over a kept HTTP/1.0": (True, [], [], ("http", [KEPT]), ["HTTP/1.0 413 Request Entity Too Large", "connection: keep-alive", "date: now", '{"message": "MSG_TOO_BIG"}'],
                                             ["HTTP/1.0 413 Request Entity Too Large", "date: now", '{"message": "MSG_TOO_BIG"}']),
    "a body too long, and kept here": (False, [], [], ("http", [KEPT]), ["HTTP/1.0 413 Request Entity Too Large", "date: now", '{"message": "MSG_TOO_BIG"}'],
                                       ["HTTP/1.0 413 Request Entity Too Large", "connection: keep-alive", "date: now", '{"message": "MSG_TOO_BIG"}']),
    "an ephemeral Channel at the tail": (True, *EPHEMERAL, STATS, stats(topic(channel("e#ephemeral", 1), 1)), stats(topic(channel("e#ephemeral", 0), 1, 1))),
    "another Channel beside an ephemeral one": (False, *EPHEMERAL, STATS, stats(topic(channel("c", 1) + ", " + channel("e#ephemeral", 1), 1)), stats(topic(channel("c", 0) + ", " + channel("e#ephemeral", 0), 1))),
    "requeues beside an ephemeral Channel": (False, *EPHEMERAL, STATS, stats(topic(channel("e#ephemeral", 1), 1)), stats(topic(channel("e#ephemeral", 0).replace('"requeue_count": 0', '"requeue_count": 1'), 1))),
    "a line of 1,025 bytes": (True, [], [], sent(b"A" * 1025 + b"\n"), ["error E_INVALID invalid command " + "A" * 60, "closed"], ["error E_INVALID command line too long", "closed"]),
    "a line of 500 bytes": (False, [], [], sent(b"A" * 500 + b"\n"), ["error E_INVALID invalid command " + "A" * 60, "closed"], ["error E_INVALID command line too long", "closed"]),
    "65,537 messages": (True, [], [], sent(b"MPUB {t}\n"), ["error E_BAD_MESSAGE MPUB failed to read message(0) body size"], ["error E_BAD_BODY MPUB invalid message count 65537"]),
    "2 messages are not too many": (False, [], [], sent(b"MPUB {t}\n"), ["error E_BAD_MESSAGE MPUB failed to read message(0) body size"], ["error E_BAD_BODY MPUB invalid message count 2"]),
    "an MPUB with bytes behind it": (True, [], [], sent(b"MPUB {t}\n\0\0\0\x0b\0\0\0\1\0\0\0\1xzz"), OK, ["error E_BAD_BODY MPUB trailing bytes", "closed"]),
    "an MPUB whose size ends before its messages": (True, [], [], sent(b"MPUB {t}\n\0\0\0\1\0\0\0\1\x80\0\0\0"), ["error E_BAD_MESSAGE MPUB invalid message(0) body size -2147483648", "closed"],
                                                    ["error E_BAD_BODY MPUB failed to read message count", "closed"]),
    "an MPUB of the right size and a message of a wrong one": (False, [], [], sent(b"MPUB {t}\n\0\0\0\x08\0\0\0\1\0\0\0\0"), ["error E_BAD_MESSAGE MPUB invalid message(0) body size 0", "closed"],
                                                               ["error E_BAD_BODY MPUB message(0) exceeds body size", "closed"]),
    "an MPUB of the right size": (False, [], [], sent(b"MPUB {t}\n\0\0\0\x09\0\0\0\1\0\0\0\1x"), OK, ["error E_BAD_BODY MPUB trailing bytes", "closed"]),
    "both lengths": (True, [], [], ("http", [post(b"/pub?topic={t}", b"x", b"Transfer-Encoding: chunked")]), HTTP_OK, BAD),
    "both lengths in another request": (False, [], [], ("http", [PAUSE, post(b"/pub?topic={t}", b"x", b"Transfer-Encoding: chunked")]), MISSING, BAD),
    "a refusal that says less": (True, [], [], ("http", [PAUSE]), NO_VERSION, BAD),
    "a paused Topic": (True, [sent(b"SUB {t} c\n"), ("http", [PAUSE])], [OK, EMPTY], sent(b"RDY 1\n"), ["message attempts=1 x"], []),
    "a Topic that goes on again": (False, [sent(b"SUB {t} c\n"), ("http", [PAUSE, post(b"/topic/unpause?topic={t}")])], [OK, EMPTY * 2], sent(b"RDY 1\n"), ["message attempts=1 x"], []),
    "a body that is too long ends its connection": (True, [], [], ("http", [post(b"/pub?topic={t}", b"x" * 1001)]), error("413 Request Entity Too Large", "MSG_TOO_BIG"),
                                                    error("413 Request Entity Too Large", "MSG_TOO_BIG", "connection: close")),
    "a body that is too long, another code": (False, [], [], ("http", [post(b"/pub?topic={t}", b"x" * 1001)]), error("413 Request Entity Too Large", "MSG_TOO_BIG"),
                                              error("413 Request Entity Too Large", "BODY_TOO_BIG", "connection: close")),
    "two Hosts, which is for REPAIRS": (False, [], [], ("http", [post(b"/topic/create?topic={t}", b"", b"Host: h2")]), BAD, EMPTY),
}
# function -> (request, what nsqd is sent instead)
REPAIRS = [
    (random_checks.one_host, b"GET /ping HTTP/1.1\r\nhost: a b\r\n c\r\nX: y\r\nHost: h2\r\n\r\nHost: body", b"GET /ping HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\nHost: body"),
    (random_checks.one_length, b"POST / HTTP/1.1\r\nContent-Length: 12, 12\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\n"),
    (random_checks.one_length, b"POST / HTTP/1.1\r\nContent-Length: 12, 13\r\n\r\n", None),
    (random_checks.only_close, b"GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", b"GET / HTTP/1.0\r\nConnection: close\r\n\r\n"),
    (random_checks.only_close, b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", None),
    (random_checks.no_bad_trailer, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
]


def main():
    failed = 0
    for name, (want, steps, before, step, theirs, ours) in CASES.items():
        case = random_checks.Case({"config": "small", "steps": steps + [step]}, lockstep.Found(len(steps), theirs, ours, before))
        row = next((row for row in differences.RANDOM if case.fits(row)), None)
        if (row is not None) != want:
            failed += 1
            print("FAIL rules: %s: %s" % (name, "nobody wants it" if want else "wanted by %s: %s" % row[:2]))
    for repair, request, wanted in REPAIRS:
        if repair(request) != (wanted or request):
            failed += 1
            print("FAIL rules: %s makes %r of %r" % (repair.__name__, repair(request), request))
    print("%d passed, %d failed" % (len(CASES) + len(REPAIRS) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
