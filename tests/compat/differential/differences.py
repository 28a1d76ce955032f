"""The one table of differences between this Broker and nsqd 1.3.0, each wanted by a decision. Whatever is not here must be the same on both sides.

"D-" numbers are decisions; "10 quirk": page 10 says of what nsqd does there that it is an artefact that no client depends on; other numbers are pages and
sections that set a rule of this Broker's own.
"""

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


NO_OPTION = json_answer("400 Bad Request", '{"message": "INVALID_OPTION"}')
GRANTED = 'response {"identity":"","identity_url":"","permission_count":1}'

# One probe: name -> (decision, why, what this Broker answers).
PROBES = {
    "line long 1025": ("D-01", "command lines end at 1,024 bytes, and that is said", TOO_LONG),
    "line long 16383": ("D-01", "the same", TOO_LONG),
    "line long 16384": ("D-01", "the same", TOO_LONG),
    "IDENTIFY size most": ("D-01", "IDENTIFY takes 1 MiB", ["error E_BAD_BODY IDENTIFY body too big 2147483647 > 1048576", "closed"]),
    "IDENTIFY size over": ("D-01", "the same", ["error E_BAD_BODY IDENTIFY body too big 1048577 > 1048576", "closed"]),
    "AUTH size most": ("D-01", "AUTH takes 1 MiB", ["error E_BAD_BODY AUTH body too big 2147483647 > 1048576", "closed"]),
    "IDENTIFY nested": ("31 section 8", "JSON of a client nests at most 32 deep", NO_JSON),
    "IDENTIFY lone surrogate": ("10 quirk", "half a UTF-16 pair is no text", NO_JSON),
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
    "config: e2e_processing_latency_window_time": ("31 section 7", "latency is in the metrics", NO_OPTION),
    "config: log_prefix": ("31 section 1.9", "log lines have no prefix", NO_OPTION),
    "auth: wrong": ("31 section 3.8", "401 and 403 of the auth server are a denial, not a failure (B-34)", ["error E_UNAUTHORIZED AUTH no authorizations found", "closed"]),
    "auth: identity": ("10 section 6.1", "`<` needs no escape in JSON", ['response {"identity":"i<d>","identity_url":"http://u","permission_count":2}', "closed"]),
    "auth: first PUB of nothing": ("D-12", "authorisation is checked before a body is read", ["error E_AUTH_FIRST AUTH required before PUB", "closed"]),
    "auth: PUB of nothing with publish and no channels": ("D-12", "the same", [GRANTED, 'error E_UNAUTHORIZED AUTH failed for PUB on "TOPIC" ""', "closed"]),
    "auth: PUB of nothing with subscribe only": ("D-12", "the same", [GRANTED, 'error E_UNAUTHORIZED AUTH failed for PUB on "TOPIC" ""', "closed"]),
    "auth: PUB of nothing with other topic": ("D-12", "the same", [GRANTED, 'error E_UNAUTHORIZED AUTH failed for PUB on "TOPIC" ""', "closed"]),
    "tls: garbage instead of a handshake": ("D-04", "a failed handshake closes without a frame in clear",
        ['response {"max_rdy_count":2500,"version":"1.3.0","max_msg_timeout":900000,"msg_timeout":60000,"tls_v1":true,"deflate":false,"deflate_level":6,"max_deflate_level":6,"snappy":false,'
         '"sample_rate":0,"auth_required":false,"output_buffer_size":16384,"output_buffer_timeout":250}', "closed"]),
}

# Generated scripts: (decision, what, what was sent, what nsqd answers, what this Broker answers), the last three as patterns that are searched for: in all
# that was sent, with NOW before the step that differs, and in the frames or HTTP answers of both without those with which they begin alike; upper and lower
# case are one. A difference that a row wants ends its script, since the two connections may not be where they were together.
REFUSED = r"^HTTP/1\.\d (400|417|431|501|505) (?!.*message).*connection: close"
BAD_CHUNKS = r".*(z\r\n\r\n|\n-1\r\n|ffffffffffffffffff|0x0\r\n|\n\r\n\r\n|\n1\r\nab\r|0\n\n|bad trailer|\n3\r\nab$|\n\+0\r\n)"
RANDOM = [
    ("D-01", "command lines end at 1,024 bytes, and that is said", r"", r"", r"^error E_INVALID command line too long\b"),
    ("D-01", "IDENTIFY and AUTH take 1 MiB", r"", r"(IDENTIFY|AUTH) (body too big|failed to read body)", r"^error E_BAD_BODY (IDENTIFY|AUTH) (body too big \d+ > 1048576|failed to read body)$"),
    ("D-01", "at most 65,536 messages in a batch", r"MPUB", r"", r"^error E_BAD_BODY MPUB invalid message count \d+$"),
    ("D-01", "at most 65,536 messages in a batch", r"/mpub.*\r\n\x00[\x01-\x0f]", r"BAD_MESSAGE", r'"BAD_BODY'),
    ("D-01", "the outer size of an MPUB counts", r"MPUB", r"", r"^error E_BAD_BODY MPUB (message\(\d+\) exceeds body size|trailing bytes|failed to read message count)(\nclosed)?$"),
    ("D-12", "authorisation is checked before a body is read", r"PUB", r"E_BAD_MESSAGE D?PUB", r"^error (E_AUTH_FIRST|E_UNAUTHORIZED) AUTH [^\n]*$"),
    ("D-12", "a Topic is created when its first publish commits", r"(PUB |/m?pub\?).*", r"", r"TOPIC_NOT_FOUND"),
    ("D-12", "a Topic is created when its first publish commits", r"(PUB |/m?pub\?).*NOW stats", r"", r'Topics: None|"topics": \[\]'),
    ("D-37", "Content-Length beside Transfer-Encoding is refused", r"(content-length:.*transfer-encoding:|transfer-encoding:.*content-length:)", r"", REFUSED),
    ("D-22", "a paused Topic delivers nothing", r"/topic/pause.*NOW send", r"^(nothing\n)?message ", r"^(nothing)?$"),
    ("10 quirk", "a body that cannot be read is told before its Topic", r"/mpub.*content-length", r"(INVALID|MISSING_ARG)_(TOPIC|REQUEST)", r"500 Internal.*INTERNAL_ERROR"),
    ("10 section 5.5", "a consumer leaves, and its messages are handed out again at once", r"\nclose c.*NOW stats", r'"in_flight_count": [1-9]|inflt: [1-9]', r""),
    ("10 section 6.3", "a body that is too long is refused before it is read, and ends its connection", r"(/m?pub\?|PUT /config/)", r"^HTTP/1.\d 413 .*(TOO_BIG|INVALID_VALUE|BAD_)",
     r"^HTTP/1.\d 413 .*connection: close.*(TOO_BIG|INVALID_VALUE)"),
    ("10 quirk", "half a UTF-16 pair is no text", r"\\ud800", r"", r"IDENTIFY failed to decode JSON body"),
    ("10 quirk", "letters that fold to s and k are not these", "\xc5\xbf|\xe2\x84\xaa|u017f|u212a", r"IDENTIFY failed to decode JSON body|^response|^error", r""),
    ("10 quirk", "milliseconds beyond 64 bits of nanoseconds are out of range", r"DPUB \S+ \d{14,}", r"", r"DPUB timeout \d+ out of range"),
    ("10 quirk", "milliseconds beyond 64 bits of nanoseconds are out of range", r"defer=-?\d{14,}", r"", r"INVALID_DEFER"),
    ("31 section 3.8", "a secret is UTF-8", r"AUTH", r"E_AUTH_FAILED AUTH failed", r"E_UNAUTHORIZED AUTH no authorizations found"),
    ("10 quirk", "a Host is not looked at", r"", r"(malformed|missing required|too many) Host header", r""),
    ("10 quirk", "a Host is not looked at", r"NOW .*\nhost:((?!\n\r?\n).)*\nhost:", r"", r""),
    ("10 quirk", "which of its faults a bad head is told, and that in short", r"", REFUSED, REFUSED),
    ("10 quirk", "lines of a head end with CR LF", r"HTTP/1\.[01]\n", r"", REFUSED),
    ("10 quirk", "only HTTP/1.0 and HTTP/1.1 are HTTP here", r"HTTP/(?!1\.[01]\r)", r"", REFUSED),
    ("10 quirk", "a transfer coding in HTTP/1.0 is refused (RFC 9112 section 6.1)", r"HTTP/1\.0\r.*transfer-encoding", r"", REFUSED),
    ("10 quirk", "an empty length is none", r"content-length: \r", r"", REFUSED),
    ("10 quirk", "a list of equal lengths is one length (RFC 9110 section 8.6)", r"content-length: (\d+), ?\1\r", REFUSED, r""),
    ("10 quirk", "a body with broken chunks is told also where nothing reads it", r"transfer-encoding: chunked" + BAD_CHUNKS, r"", r"INVALID_REQUEST|INTERNAL_ERROR"),
    ("10 quirk", "trailers are not looked at", r"0\r\nbad trailer", r"connection: close", r""),
    ("10 quirk", "blanks before a chunk extension are allowed (RFC 9112 section 7.1.1)", r"transfer-encoding: chunked.*[0-9a-f] ;", r"INVALID_REQUEST|INTERNAL_ERROR", r""),
    ("10 quirk", "/config/ is known in this spelling only", r"/config", r"HTTP/1.\d 30", r"NOT_FOUND"),
    ("10 quirk", "a path that cannot be decoded", r"NOW http .*[A-Z]+ /\S*%\S* HTTP", REFUSED, r"INVALID_REQUEST"),
    ("10 quirk", "the path * is like any other", r" \*(\?\S*)? HTTP", r"", r"NOT_FOUND|INVALID_REQUEST"),
    ("10 quirk", "an empty query is none", r"\? HTTP", r"HTTP/1.\d 30", r"HTTP/1.\d 30"),
    ("10 quirk", "every Expect counts, and all of it", r"expect: [^\r]*\r\n( |.*expect:)", r"", r"417 Expectation"),
    ("10 quirk", "a Connection that is no list", r"connection: [^\r]*\r\n ", r"", REFUSED),
    ("10 quirk", "of close and keep-alive in one head, close holds", r"HTTP/1\.0\r((?!\n\r?\n).)*connection: (keep-alive|close)\r((?!\n\r?\n).)*connection: (keep-alive|close)\r", r"", r""),
    ("10 quirk", "null is no list", r"PUT /config/nsqlookupd_tcp_addresses.*null", r"\[\]", r"INVALID_VALUE"),
    ("10 quirk", "bytes behind a batch do not end a connection that expected to be asked for them", r"expect: 100-continue", r"connection: close", r"^HTTP/1.1 100 Continue"),
    ("31 section 8", "a length beyond the limit is told at once", r"PUT /config/.*content-length: \d{7,}", r"INTERNAL_ERROR", r"INVALID_VALUE"),
    ("10 quirk", "the answer to a body cut by the end says that the connection closes", r"content-length", r"INTERNAL_ERROR", r"500 Internal.*connection: close.*INTERNAL_ERROR"),
    ("30 section 5", "an ephemeral Channel of a durable Topic starts at the tail", r"/m?pub\?.*/channel/create\S*%23ephemeral.*NOW stats", r"e#ephemeral", r"e#ephemeral"),
    ("31 section 8", "a body that the route has no use for is not asked for", r"Expect: 100-continue", r"^HTTP/1.1 100 Continue", r""),
]
