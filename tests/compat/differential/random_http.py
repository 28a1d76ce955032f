"""Generated HTTP scripts: one to three connections with one to four requests each, on every endpoint of nsqd, with what may be odd about a method, a path, a query,
a head and a body. A connection is half-closed behind its requests and read to its end.
"""

from random_words import chance, name, number, size32, text

GETS = (b"/ping", b"/info", b"/stats", b"/config/log_level", b"/config/max_rdy_count", b"/config/nsqlookupd_tcp_addresses", b"/config/msg_timeout", b"/config/nothing")
POSTS = (b"/pub", b"/pub", b"/mpub", b"/mpub", b"/topic/create", b"/topic/create", b"/topic/delete", b"/topic/empty", b"/topic/pause", b"/topic/unpause", b"/channel/create", b"/channel/create",
         b"/channel/delete", b"/channel/empty", b"/channel/pause", b"/channel/unpause")
UNKNOWN = (b"/", b"//", b"/nothing", b"/put", b"/mput", b"/create_topic", b"/topic", b"/topic/", b"/channel/none", b"/config", b"/config/", b"/config/a/b", b"/ping/x", b"/%", b"/%zz", b"/\xff", b"/a b",
           b"/../ping", b"/./ping", b"http://h/ping", b"http://h", b"//h/ping", b"/ping#x", b"/ping;x", b"/ping%3Fa=b", b"/ping?", b"/stats/x")
METHODS = (b"GET", b"POST", b"PUT", b"HEAD", b"OPTIONS", b"DELETE", b"PATCH", b"CONNECT", b"TRACE", b"get", b"BREW", b"P\xd6ST", b"GE(T", b"")
PARAMETERS = {b"/stats": (b"format", b"topic", b"channel", b"include_clients", b"include_mem"), b"/pub": (b"topic", b"defer"), b"/mpub": (b"topic", b"binary", b"defer")}
BOOLEANS = (b"true", b"false", b"0", b"1", b"", b"TRUE", b"True", b"t", b"yes", b"no", b"2", b"00", b"%74rue", b"true%20", b"+true")
HEADERS = (b"Connection: close", b"Connection: keep-alive", b"connection: Close", b"Connection: x, close", b"Connection: upgrade\r\nUpgrade: h2c", b"Accept: application/vnd.nsq; version=1.0", b"Accept: */*", b"X: ",
           b"X:y", b"X:\ty\t", b"X: \xff\xfe", b"X: a\x00b", b"X: a\x07b", b"X : y", b" X: y", b"X", b": y", b"X: y\r\n z", b"X\xe9: y", b"X(: y", b"A: " + b"a" * 5000, b"Content-Type: application/json",
           b"Content-Type: application/x-www-form-urlencoded", b"Content-Type: multipart/form-data; boundary=x", b"Content-Encoding: gzip", b"Accept-Encoding: gzip, deflate", b"Expect: 100-continue", b"Expect: x",
           b"Range: bytes=0-1", b"If-None-Match: *", b"Cookie: a=b", b"Authorization: Bearer x", b"Origin: http://o", b"TE: trailers", b"Host: h", b"Host: h2", b"User-Agent: u", b"X-HTTP-Method-Override: PUT",
           b"Keep-Alive: timeout=5", b"Proxy-Connection: close", b"Transfer-Encoding: identity", b"Content-Length: 0", b"Trailer: X", b"X: y\rZ: w")
HOSTS = (b"Host: h", b"Host: h", b"Host: h", b"Host: h", b"Host: h", b"Host: h", b"Host: ", b"Host: h:1", b"Host: h:x", b"Host: [::1]:80", b"Host: a b", b"Host: a/b", b"Host: h\xff", b"host: h", b"Host:h", b"Host: a@b", b"Host: h,h")
VERSIONS = (b"HTTP/1.1",) * 12 + (b"HTTP/1.0",) * 3
ODD_VERSIONS = (b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.1 ", b"HTTP/1", b"HTTP/01.1", b"HTTP/1.10", b"", b"HTTPS/1.1", b"HTTP/3.0")


def encode(r, value):
    """Percent-encoded as much as it must be, or more."""
    more = chance(r, 0.15)
    return b"".join(b"%%%02x" % c if c < 33 or c > 126 or c in b'#%&+;?"<>\\^`{|}' and not more or more and c not in b"{}" and chance(r, 0.5) else b"%c" % c for c in value)


def argument(r, key):
    if key in (b"topic", b"channel"):
        valid = chance(r, 0.8)
        value = encode(r, r.choice((b"{t}", b"{t}", b"{t}-b", b"{t}#ephemeral") if key == b"topic" else (b"c", b"c", b"d", b"e#ephemeral")) if valid else name(r, 1)).replace(b"%7bt%7d", b"{t}")
        return value.replace(b"%7Bt%7D", b"{t}")
    if key == b"defer":
        return r.choice((b"0", b"3600000", b"3600001", encode(r, number(r)), b"%2B5", b"+5", b"5+", b"-0", b"9223372036854775807", b"-9223372036854775808"))
    if key == b"format":
        return r.choice((b"json", b"json", b"text", b"JSON", b"", b"xml", b"j%73on"))
    return r.choice(BOOLEANS)


def query(r, path):
    keys = list(PARAMETERS.get(path, (b"topic", b"channel") if path.startswith(b"/channel") else (b"topic",) if path.startswith(b"/topic") else ()))
    if path == b"/stats":       # without a Topic of its own, and with the numbers of memory, it is for the stage that runs alone
        return b"topic=%s&include_mem=false&" % argument(r, b"topic") + b"&".join(b"%s=%s" % (k, argument(r, k)) for k in r.sample(keys[:4], r.randint(0, 3)))
    pairs = [b"%s=%s" % (k, argument(r, k)) for k in keys if chance(r, 0.97 if k in (b"topic", b"channel") else 0.3)]
    if chance(r, 0.12):
        pairs.insert(r.randint(0, len(pairs)), r.choice((b"", b"topic", b"topic=", b"=", b"=x", b"x", b"x=y", b"x=%zz", b"%zz", b"%", b"x=%4", b"a;b", b"topic=a$", b"topic={t}-c", b"TOPIC={t}", b"topic%20={t}", b"channel=",
                                                         b"x=?", b"?topic={t}", b"%74opic={t}-d", b"topic[]=x", b"x=\xff", b"x=%ff", b"x=%00", b"binary", b"x=a=b", b"+=+")))
    return b"&".join(pairs)


def batch(r, limits):
    bodies = [text(r, 30) for _ in range(r.choice((0, 1, 2, 5)))]
    count = len(bodies) if chance(r, 0.8) else r.choice((0, -1, len(bodies) + 1, (limits.body - 4) // 5, (limits.body - 4) // 5 + 1, 65536, 65537, 2 ** 31 - 1, -2 ** 31))
    data = size32(count) + b"".join(size32(len(b) if chance(r, 0.9) else r.choice((0, -1, len(b) + 1, limits.message, limits.message + 1, 2 ** 31 - 1))) + b for b in bodies)
    return data[:r.randint(0, len(data))] if chance(r, 0.08) else data + b"zz" if chance(r, 0.1) else data


def body(r, path, limits):
    if path == b"/mpub":
        if chance(r, 0.5):
            return batch(r, limits)
        lines = [r.choice((b"", b"a", b"b\r", b"\r", b" ", b"\x00", b"\xff", text(r, 20))) for _ in range(r.choice((0, 1, 2, 3, 8)))]
        if limits.message < 10000 and chance(r, 0.2):
            lines.append(b"x" * r.choice((limits.message - 1, limits.message, limits.message + 1)))
        if limits.body < 10000 and chance(r, 0.1):
            lines += [b"y" * 99] * r.choice((limits.body // 100, limits.body // 100 + 1))
        return b"\n".join(lines)
    if chance(r, 0.15):
        return b""
    if limits.message < 10000 and chance(r, 0.2):
        return b"x" * r.choice((limits.message - 1, limits.message, limits.message + 1, limits.message * 3))
    return text(r, 60)


def chunked(r, data, broken):
    out = b""
    while data:
        n = r.randint(1, len(data))
        out += r.choice((b"%x", b"%X", b"0%x", b"00000%x")) % n + (r.choice((b";x", b";x=y")) if chance(r, 0.1) else b"") + b"\r\n" + data[:n] + b"\r\n"
        data = data[n:]
    if broken:
        return out + r.choice((b"z\r\n\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"0x0\r\n\r\n", b"\r\n", b"1\r\nab\r\n0\r\n\r\n", b"0\n\n", b"0\r\nbad trailer\r\n\r\n", b"3\r\nab", b"+0\r\n\r\n"))
    return out + r.choice((b"0", b"0", b"000", b"0;x")) + b"\r\n" + (b"X: y\r\n" if chance(r, 0.1) else b"") + b"\r\n"


def request(r, limits):
    path = r.choice(POSTS if chance(r, 0.65) else GETS)
    method = b"GET" if path in GETS else b"POST"
    if path.startswith(b"/config") and chance(r, 0.3):
        method = b"PUT"
    if chance(r, 0.08):
        method = r.choice(METHODS)
    target = path
    if chance(r, 0.06):
        target = r.choice((path + b"/", path.upper(), path.title(), b"/" + path, path.replace(b"/", b"/./", 1), path[:2] + b"%%%02x" % path[2] + path[3:], path + b"/..", path + b"%2f", path + b"%00", path + b"."))
    elif chance(r, 0.05):
        target = path = r.choice(UNKNOWN)
    arguments = query(r, path)
    if arguments or chance(r, 0.05):
        target += b"?" + arguments
    version = r.choice(ODD_VERSIONS) if chance(r, 0.02) else r.choice(VERSIONS)
    head = [r.choice(HOSTS) if chance(r, 0.02) else b"Host: h"] if not chance(r, 0.01) else []
    head += [r.choice(HEADERS) for _ in range(r.choice((0, 0, 0, 0, 1, 1, 2)))]
    data, publish = b"", method == b"POST" and target.partition(b"?")[0] in (b"/pub", b"/mpub")      # only there a body that is broken matters
    if method == b"PUT":
        data = r.choice((b"", b"info", b"INFO", b'"info"', b"info\n", b" info", b"loud", b"[]", b"[ ]", b"{}", b"[1]", b"[]x", b"x"))
    elif publish or chance(r, 0.05):
        data = body(r, path, limits)
    if chance(r, 0.2) and version != b"HTTP/1.0":
        head.append(r.choice((b"Transfer-Encoding: chunked",) * 8 + (b"transfer-encoding: Chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding:", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked")))
        data = chunked(r, data, publish and chance(r, 0.06))
    elif data or chance(r, 0.1):
        length = b"%d" % len(data)
        if publish and chance(r, 0.04):
            length = r.choice((b"-1", b"+" + length, b"0" + length, b"0x" + length, length + b" ", b"", b"x", length + b"," + length, length + b", " + length, length + b"\r\nContent-Length: " + length, b"1\r\nContent-Length: 2",
                               b"99999999999999999999", b"9223372036854775807", length + b".0", b"%d" % (len(data) + 3)))
        head.append(b"Content-Length: " + length)
    if chance(r, 0.05):
        r.shuffle(head)
    end = b"\n" if chance(r, 0.005) else b"\r\n"
    return end.join([b" ".join((method, target, version)), *head, b"", b""]) + data


def script(r, limits):
    steps = []
    if chance(r, 0.7):      # with Topics there from the start, more of what follows gets past their lookup
        steps.append(("http", [b"POST /topic/create?topic=%s HTTP/1.1\r\nHost: h\r\n\r\n" % t for t in (b"{t}", b"{t}-b", b"{t}%23ephemeral")]))
    for _ in range(r.choice((1, 1, 2, 3))):
        steps.append(("http", [request(r, limits) for _ in range(r.choice((1, 1, 2, 4)))]))
        if chance(r, 0.3):
            steps.append(("stats", query(r, b"/stats")))
    return steps
