"""The one table of differences between this Broker and nsqd 1.3.0, each wanted by a decision. Whatever is not here must be the same on both sides.

"D-" numbers are decisions; "10 quirk": page 10 says of what nsqd does there that it is an artefact that no client depends on; other numbers are pages and
sections that set a rule of this Broker's own.
"""
from random_checks import alike, asked_for_the_body, body_too_long, chunks_broken, never_published, no_bad_trailer, one_host, one_length, only_close, outer_size_wrong, topic_paused

# Everywhere: (decision, what, pattern, replacement), applied to every line of both transcripts.
EVERYWHERE = [
    ("D-14", "the version names the product", r"1\.3\.0\+rustqueue\.[0-9.]+", "1.3.0"),
    ("D-14", "the text form of /stats names its own compiler", r"built w/\S+\)", "built w/X)"),
    ("D-30", "keys of this Broker behind nsqd's", r', "(name|mode)": "[^"]*"|, "(memory_depth|node_id|data_format)": [0-9]+|, "blocked_by_ack_window": (true|false)', ""),
    ("D-30", "a text beside the code of an error", r', "detail": "[^"]*"', ""),
    ("D-30a", "empty lists instead of null", r'"(topics|clients|producers)": null', r'"\1": []'),
    ("D-30a", "an empty list is a list also alone (/config/nsqlookupd_tcp_addresses)", r"^null$", "[]"),
    ("10 quirk", "cipher suites that nsqd has no name for have one", r'"tls_cipher_suite": "(Unknown [0-9]+|TLS_[A-Z0-9_]+_(256_GCM_SHA384|POLY1305_SHA256))"', "suite"),
    ("D-36", "the whole depth counts as that of the backend", r'"backend_depth": [0-9]+|be-depth: [0-9]+ *', "backend"),
]

TOO_LONG = ["error E_INVALID command line too long", "closed"]
NO_JSON = ["error E_BAD_BODY IDENTIFY failed to decode JSON body", "closed"]
HTTP_OK = ["HTTP/1.1 200 OK", "content-type: text/plain; charset=utf-8", "date: now", "OK"]
BAD_REQUEST = ["HTTP/1.1 400 Bad Request", "connection: close", "content-type: text/plain; charset=utf-8", "400 Bad Request"]


def json_answer(status, text):
    return ["HTTP/1.1 " + status, "connection: close", "content-type: application/json; charset=utf-8", "date: now", "x-nsq-content-type: nsq; version=1.0", text]


EMPTY_OK = ["HTTP/1.1 200 OK", "connection: close", "date: now", "x-nsq-content-type: nsq; version=1.0"]
NO_OPTION = json_answer("400 Bad Request", '{"message": "INVALID_OPTION"}')
GRANTED = 'response {"identity":"","identity_url":"","permission_count":1}'
AUTH_FAILED = ["error E_AUTH_FAILED AUTH failed", "closed"]
NOT_ALLOWED = {"PUB": [GRANTED, 'error E_UNAUTHORIZED AUTH failed for PUB on "TOPIC" ""', "closed"], "SUB": [GRANTED, 'error E_UNAUTHORIZED AUTH failed for SUB on "TOPIC" "c"', "closed"]}
ALLOWED = [GRANTED, "response OK", "closed"]


def auth_document(name, decision, what, answers):
    """Both probes of one odd document."""
    return {"auth document: %s: %s" % (name, command): (decision, what, answers[command] if isinstance(answers, dict) else answers) for command in ("PUB", "SUB")}


# What answers here and is 404 in nsqd, by the methods it takes.
OWN_PATHS = {"GET, OPTIONS": ("/lookup", "/topics", "/channels", "/nodes", "/metrics", "/v1/health", "/v1/stats", "/v1/registry", "/v1/registry/head", "/v1/capabilities", "/v1/observe",
                              "/v1/observe/head"),
             "OPTIONS, POST": ("/v1/storage/scrub", "/v1/manage/fences/sync", "/v1/manage/topics/create", "/v1/manage/channels/create"), "GET, OPTIONS, POST": ("/v1/drain",)}

# One probe: name -> (decision, why, what this Broker answers).
PROBES = {
    "line long 1025": ("D-01", "command lines end at 1,024 bytes, and that is said", TOO_LONG),
    "line long 16383": ("D-01", "the same", TOO_LONG),
    "line long 16384": ("D-01", "the same", TOO_LONG),
    "IDENTIFY size most": ("D-01", "IDENTIFY takes 1 MiB", ["error E_BAD_BODY IDENTIFY body too big 2147483647 > 1048576", "closed"]),
    "IDENTIFY size over": ("D-01", "the same", ["error E_BAD_BODY IDENTIFY body too big 1048577 > 1048576", "closed"]),
    "AUTH size most": ("D-01", "AUTH takes 1 MiB", ["error E_BAD_BODY AUTH body too big 2147483647 > 1048576", "closed"]),
    "IDENTIFY nested": ("31 section 8", "JSON of a client nests at most 32 deep", NO_JSON),
    "MPUB count 2": ("D-01", "the outer size of an MPUB counts", ["error E_BAD_BODY MPUB message(1) exceeds body size", "closed"]),
    "MPUB outer size too large": ("D-01", "the same", ["error E_BAD_BODY MPUB trailing bytes", "closed"]),
    "MPUB outer size too small": ("D-01", "the same", ["error E_BAD_BODY MPUB message(1) exceeds body size", "closed"]),
    "MPUB of 65537": ("D-01", "at most 65,536 messages in a batch", ["error E_BAD_BODY MPUB invalid message count 65537", "closed"]),
    "mpub: 65537 lines": ("D-01", "the same", json_answer("400 Bad Request", '{"message": "E_BAD_BODY"}')),
    "a later Channel": ("D-20", "it starts at the bootstrap window, not empty",
                        ["first: response OK", "producer: response OK", "later: response OK", "later: message #1 attempts=1 1", "producer: response OK"]),
    "a consumer leaves with a message in flight": ("10 section 5.5", "its messages are handed out again at once",
                                                   ["producer: response OK", "response OK", "response OK", "message #1 attempts=1 1", "next: response OK", "next: message #1 attempts=2 1"]),
    "Topic with a Channel emptied while it is paused": ("D-23", "what its Channels are owed stays",
        ["response OK", *json_answer("200 OK", "")[:1], "connection: close", "date: now", "x-nsq-content-type: nsq; version=1.0", "producer: response OK"]
        + ["HTTP/1.1 200 OK", "connection: close", "date: now", "x-nsq-content-type: nsq; version=1.0"] * 2 + ["message #1 attempts=1 1"]),
    "Channel emptied while its Topic is paused": ("30 section 3.9", "everything that was written is finished, also what came since the pause",
        ["response OK", "producer: response OK"] + EMPTY_OK + ["producer: response OK"] + EMPTY_OK * 2 + ["producer: response OK", "message #1 attempts=1 3", "nothing"]),
    "framing: no Host": ("10 quirk", "a request without Host is served", HTTP_OK),
    "framing: bare line feeds": ("10 quirk", "lines of a head end with CR LF", BAD_REQUEST),
    "framing: empty line first": ("10 quirk", "empty lines before a request are skipped (RFC 9112 section 2.2)", HTTP_OK),
    "framing: both lengths": ("D-37", "Content-Length beside Transfer-Encoding is refused", BAD_REQUEST),
    "framing: version 2": ("10 quirk", "only HTTP/1.0 and HTTP/1.1 are HTTP here", BAD_REQUEST),
    "framing: version 1.9": ("10 quirk", "the same", BAD_REQUEST),
    "framing: space in a header name": ("10 quirk", "the reason phrase does not say more", BAD_REQUEST),
    "framing: body cut by the end": ("10 quirk", "the answer says that the connection closes", json_answer("500 Internal Server Error", '{"message": "INTERNAL_ERROR"}')),
    "config: id": ("31 section 2.3", "the node id is configured, not made of the host name", json_answer("200 OK", "1")),
    "config: tls_min_version": ("D-49a", "TLS 1.2 at least", json_answer("200 OK", "771")),
    "config: sync_timeout": ("31 section 2.7", "10 ms in a relaxed mode", json_answer("200 OK", "10000000")),
    "config: https_address": ("D-04", "no HTTPS listener", NO_OPTION),
    "config: statsd_prefix": ("31 section 7", "metrics are scraped", NO_OPTION),
    **{"config: statsd_" + option: ("31 section 7", "the same", NO_OPTION) for option in ("address", "interval", "mem_stats", "udp_packet_size", "exclude_ephemeral")},
    **{"config: queue_scan_" + option: ("10 section 5.3", "timers are punctual, nothing is scanned", NO_OPTION) for option in ("selection_count", "worker_pool_max")},
    **{"own: " + path: ("31 section 4", "an endpoint of this Broker's own", ["HTTP/1.1 200 OK", "allow: " + allow, "connection: close", "date: now"])
       for allow, paths in OWN_PATHS.items() for path in paths},
    "own: /lookup, unknown Topic": ("D-32", "the same", json_answer("404 Not Found", '{"message": "TOPIC_NOT_FOUND"}')),
    **{"debug: " + path: ("10 section 6.2", "profiling of nsqd's own", json_answer("404 Not Found", '{"message": "NOT_FOUND"}')) for path in ("/debug/pprof/", "/debug/freememory", "/debug/setblockrate")},
    "config: e2e_processing_latency_window_time": ("31 section 7", "latency is in the metrics", NO_OPTION),
    "config: log_prefix": ("31 section 1.9", "log lines have no prefix", NO_OPTION),
    "auth: wrong": ("31 section 3.8", "401 and 403 of the auth server are a denial, not a failure (B-34)", ["error E_UNAUTHORIZED AUTH no authorizations found", "closed"]),
    "auth: identity": ("10 section 6.1", "`<` needs no escape in JSON", ['response {"identity":"i<d>","identity_url":"http://u","permission_count":2}', "closed"]),
    "auth: first PUB of nothing": ("D-12", "authorisation is checked before a body is read", ["error E_AUTH_FIRST AUTH required before PUB", "closed"]),
    "auth: PUB of nothing with publish and no channels": ("D-12", "the same", [GRANTED, 'error E_UNAUTHORIZED AUTH failed for PUB on "TOPIC" ""', "closed"]),
    "auth: PUB of nothing with subscribe only": ("D-12", "the same", [GRANTED, 'error E_UNAUTHORIZED AUTH failed for PUB on "TOPIC" ""', "closed"]),
    "auth: PUB of nothing with other topic": ("D-12", "the same", [GRANTED, 'error E_UNAUTHORIZED AUTH failed for PUB on "TOPIC" ""', "closed"]),
    **auth_document("list twice, then less", "10 quirk", "a list that comes twice starts anew; nothing of the first is left", NOT_ALLOWED),
    **auth_document("list twice, then null inside", "10 quirk", "the same", NOT_ALLOWED),
    **auth_document("channels twice, then null behind", "10 quirk", "the same", ALLOWED),
    **auth_document("permissions twice, then null inside", "10 quirk", "the same", AUTH_FAILED),
    **auth_document("nested 1000", "31 section 8", "JSON nests at most 32 deep", AUTH_FAILED),
    **auth_document("pattern named short", "10 section 4.3", "RE2 knows (?P<n>...) only, as Go did when nsqd 1.3.0 came out", AUTH_FAILED),
    **auth_document("pattern nested deeper", "10 section 4.3", "RE2 has no limit of 1,000 for groups in groups; its automaton is bounded", ALLOWED),
    "tls: garbage instead of a handshake": ("D-04", "a failed handshake closes without a frame in clear",
        ['response {"max_rdy_count":2500,"version":"1.3.0","max_msg_timeout":900000,"msg_timeout":60000,"tls_v1":true,"deflate":false,"deflate_level":6,"max_deflate_level":6,"snappy":false,'
         '"sample_rate":0,"auth_required":false,"output_buffer_size":16384,"output_buffer_timeout":250}', "closed"]),
}

# Generated scripts: (decision, what, what was sent, what nsqd answers, what this Broker answers, checks of random_checks), the three as patterns that are searched for in what
# random_checks.Case says; upper and lower case are one. A difference that a row wants ends its script, since the two connections may not be where they were together.
HEAD = r"((?!\r\n\r\n).)*"       # within the head of the request
REFUSED = r"^HTTP/1\.\d (400|417|431|501|505) (?!.*message).*connection: close"
ABOVE_65536 = r"(6553[7-9]|655[4-9]\d|65[6-9]\d\d|6[6-9]\d{3}|[7-9]\d{4}|\d{6,})"
BEYOND_64_BITS = r"(9223372036855|\d{14,})\b"
RANDOM = [
    ("D-01", "command lines end at 1,024 bytes, and that is said", r"NOW .*[^\n]{1024}", r"^error E_INVALID invalid command ", r"^error E_INVALID command line too long$"),
    *[("D-01", "IDENTIFY and AUTH take 1 MiB", r"NOW .*" + command, r"^error E_BAD_BODY %s (body too big \d+ > (5000|5242880)|failed to read body)$" % command,
       r"^error E_BAD_BODY %s (body too big \d+ > 1048576|failed to read body)$" % command) for command in ("IDENTIFY", "AUTH")],
    ("D-01", "at most 65,536 messages in a batch", r"NOW .*MPUB", r"^error E_BAD_MESSAGE MPUB ", r"^error E_BAD_BODY MPUB invalid message count %s$" % ABOVE_65536),
    ("D-01", "at most 65,536 messages in a batch", r"NOW http POST /mpub.*\r\n\x00[\x01-\x0f]", r'^HTTP/1\.\d 413 .*"BAD_MESSAGE"', r'^HTTP/1\.\d 413 .*"BAD_BODY"'),
    ("D-01", "the outer size of an MPUB counts", r"NOW .*MPUB", r"^(response OK|error E_BAD_MESSAGE MPUB |error E_BAD_BODY MPUB invalid message count -?\d+)",
     r"^error E_BAD_BODY MPUB (message\(\d+\) exceeds body size|trailing bytes|failed to read message count)(\nclosed)?$", outer_size_wrong),
    ("D-12", "authorisation is checked before a body is read", r"NOW .*PUB", r"^error E_BAD_MESSAGE D?PUB ", r"^error (E_AUTH_FIRST|E_UNAUTHORIZED) AUTH [^\n]*$"),
    ("D-12", "a Topic is created when its first publish commits", r"(PUB |/m?pub\?).*NOW http POST /(topic|channel)/", r"^HTTP/1\.\d (200 |404 .*CHANNEL_NOT_FOUND)",
     r"^HTTP/1\.\d 404 .*TOPIC_NOT_FOUND", never_published),
    ("D-12", "a Topic is created when its first publish commits", r"(PUB |/m?pub\?).*NOW (stats|http GET /stats)", r'"channels": \[\], "depth": 0, backend, "message_count": 0,|Topics:\n   \[[^\n]* depth: 0 +backendmsgs: 0 [^\n]*\n\n',
     r'Topics: None|"topics": \[\]', never_published),
    ("10 quirk", "which of its faults a bad head is told, and that in short", r"NOW http", REFUSED, REFUSED),
    ("D-37", "Content-Length beside Transfer-Encoding is refused", r"NOW " + HEAD + "(content-length:" + HEAD + "transfer-encoding:|transfer-encoding:" + HEAD + "content-length:)", r"^HTTP/", REFUSED),
    ("D-22", "a paused Topic delivers nothing", r"/topic/pause.*NOW send", r"^(nothing\n)?message ", r"^(nothing)?$", topic_paused),
    ("10 section 6.3", "a body that is too long is refused before it is read, and ends its connection", r"NOW http [^\n]*(/m?pub\?|PUT /config/)", r"^HTTP/1\.\d 413 .*(TOO_BIG|INVALID_VALUE)",
     r"^HTTP/1\.(1 413 .*connection: close|0 413 (?!.*connection: keep-alive)).*(TOO_BIG|INVALID_VALUE)", alike("\nconnection: (close|keep-alive)")),
    ("10 quirk", "milliseconds beyond 64 bits of nanoseconds are out of range", r"NOW .*DPUB \S+ " + BEYOND_64_BITS, r"^(response OK|error E_BAD_MESSAGE DPUB |error E_(AUTH_FIRST|UNAUTHORIZED) AUTH )", r"^error E_INVALID DPUB timeout \d+ out of range"),
    ("10 quirk", "milliseconds beyond 64 bits of nanoseconds are out of range", r"NOW http POST /pub\S*defer=(-|%2d)?((%3)?\d){13}", r"^HTTP/1\.\d 200 ", r"^HTTP/1\.\d 400 .*INVALID_DEFER"),
    ("31 section 3.8", "a secret is UTF-8", r"NOW .*AUTH.*\xff", r"^error E_AUTH_FAILED AUTH failed$", r"^error E_UNAUTHORIZED AUTH no authorizations found$"),
    ("10 quirk", "lines of a head end with CR LF", r"NOW http [^\n]*HTTP/1\.[01]\n", r"^HTTP/", REFUSED),
    ("10 quirk", "only HTTP/1.0 and HTTP/1.1 are HTTP here", r"NOW http [^\r\n]*(?<!HTTP/1\.[01])\r\n", r"^HTTP/", REFUSED),
    ("10 quirk", "a transfer coding in HTTP/1.0 is refused (RFC 9112 section 6.1)", r"NOW http [^\r\n]*HTTP/1\.0\r" + HEAD + "transfer-encoding", r"^HTTP/", REFUSED),
    ("10 quirk", "an empty length is none", r"NOW " + HEAD + r"content-length: \r", r"^HTTP/", REFUSED),
    ("10 quirk", "a body with broken chunks is told also where nothing reads it", r"NOW http", r"^HTTP/",
     r"^HTTP/1\.\d (400 .*connection: close.*INVALID_REQUEST|500 .*connection: close.*INTERNAL_ERROR)", chunks_broken),
    ("10 quirk", "a body that is too long and has broken chunks is too long", r"NOW http", r"^HTTP/1\.\d 500 .*connection: close.*INTERNAL_ERROR",
     r"^HTTP/1\.\d 413 .*connection: close.*(MSG|BODY)_TOO_BIG", chunks_broken),
    ("10 quirk", "a body that is too long and no batch is too long", r"NOW http POST /mpub\?\S*binary" + HEAD + "\ntransfer-encoding: chunked", r'^HTTP/1\.\d 413 .*"BAD_(BODY|MESSAGE)"',
     r"^HTTP/1\.\d 413 .*connection: close.*BODY_TOO_BIG", body_too_long),
    ("10 quirk", "/config/ is known in this spelling only", r"NOW http \S+ \S*/config", r"^HTTP/1\.\d 30[17] ", r"^HTTP/1\.\d 404 .*NOT_FOUND"),
    ("10 quirk", "a path that cannot be decoded", r"NOW http \S+ [^\s?]*%(?![0-9a-f]{2})\S* HTTP", REFUSED, r"^HTTP/1\.\d 400 .*INVALID_REQUEST"),
    ("10 quirk", "an empty query is none", r"NOW http \S+ \S+\? HTTP", r"^HTTP/1\.\d 30[17] ", r"^HTTP/1\.\d 30[17] ", alike(r"\?(?=[\n\"])")),
    ("10 quirk", "every Expect counts, and all of it", r"NOW " + HEAD + r"expect: [^\r]*\r\n( |" + HEAD + "expect:)", r"^HTTP/1\.\d (?!417)", r"^HTTP/1\.\d 417 "),
    ("10 quirk", "a Connection that is no list", r"NOW " + HEAD + r"connection: [^\r]*\r\n ", r"^HTTP/", REFUSED),
    ("31 section 8", "a length beyond the limit is told at once", r"NOW http PUT /config/" + HEAD + r"content-length: \d{7,}", r"^HTTP/1\.\d 500 .*INTERNAL_ERROR", r"^HTTP/1\.\d 413 .*INVALID_VALUE"),
    ("10 quirk", "the answer to a body cut by the end says that the connection closes", r"NOW " + HEAD + "content-length", r"^HTTP/1\.\d 500 .*INTERNAL_ERROR", r"^HTTP/1\.\d 500 .*connection: close.*INTERNAL_ERROR",
     alike("\nconnection: close")),
    ("30 section 5", "an ephemeral Channel of a durable Topic starts at the tail", r"/m?pub\?.*/channel/create\S*%23ephemeral.*NOW (stats|http GET /stats)", r"e#ephemeral", r"e#ephemeral",
     alike(r'"channel_name": "e#ephemeral", "depth": \d+, backend, "in_flight_count": 0, "deferred_count": \d+, "message_count": \d+|(?<=\]), "depth": \d+|\[e#ephemeral[^\n]*|(?<=\]) depth: \d+ *(?=backendmsgs)')),
    ("31 section 8", "a body that the route has no use for is not asked for", r"NOW http (?!POST /m?pub\?|PUT /config/)" + HEAD + "expect: 100-continue", r"^HTTP/1\.1 100 Continue", r"^HTTP/1\.\d (?!100)",
     asked_for_the_body),
]

# Generated requests that are served here as if they were not odd: (decision, what, the function of random_checks that makes the request nsqd is sent instead). The answers must then
# be the same.
REPAIRS = [
    ("10 quirk", "a Host is not looked at", one_host),
    ("10 quirk", "a list of equal lengths is one length (RFC 9110 section 8.6)", one_length),
    ("10 quirk", "of close and keep-alive in one head, close holds", only_close),
    ("10 quirk", "trailers are not looked at", no_bad_trailer),
]
