"""What a probe speaks with: raw NSQ connections and raw HTTP, every answer written into a transcript that two servers can be compared by.

A transcript is a list of lines. What differs from run to run is replaced: message ids by #1, #2... in order of appearance, the client's own port,
dates and times, host names. Everything else stays as it came, byte for byte.
"""
import json, re, socket, ssl, struct, time, zlib

WAIT = 60.0     # for what must come; it only ends what hangs
KINDS = {0: "response", 1: "error", 2: "message"}


def sized(body):
    return struct.pack(">i", len(body)) + body


def identify(**fields):
    return b"IDENTIFY\n" + sized(json.dumps(fields).encode())


def mpub(topic, *bodies, count=None, size=None):
    inner = struct.pack(">i", len(bodies) if count is None else count) + b"".join(map(sized, bodies))
    return b"MPUB %s\n" % topic + struct.pack(">i", len(inner) if size is None else size) + inner


def pub(topic, body):
    return b"PUB %s\n" % topic + sized(body)


def dpub(topic, ms, body):
    return b"DPUB %s %s\n" % (topic, str(ms).encode()) + sized(body)


def printable(data, whole=400):
    return data.decode("latin-1").encode("unicode_escape").decode() if len(data) <= whole else "%s... (%d bytes)" % (printable(data[:60]), len(data))


class Plain:
    def decode(self, data):
        return data

    def encode(self, data):
        return data


class Deflate:
    """Raw DEFLATE, one stream for each direction, flushed at every call."""

    def __init__(self):
        self.out, self.into = zlib.compressobj(6, zlib.DEFLATED, -15), zlib.decompressobj(-15)

    def encode(self, data):
        return self.out.compress(data) + self.out.flush(zlib.Z_SYNC_FLUSH)

    def decode(self, data):
        return self.into.decompress(data)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class Snappy:
    """The framing format with uncompressed chunks, and a decoder for both kinds of chunk (raw blocks as the format describes them)."""
    IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"

    def __init__(self):
        self.input, self.begun = b"", False

    def encode(self, data):
        out = b"" if self.begun else self.IDENTIFIER
        self.begun = True
        crc = crc32c(data)
        masked = ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
        return out + b"\x01" + struct.pack("<I", len(data) + 4)[:3] + struct.pack("<I", masked) + data

    def decode(self, data):
        self.input += data
        out = b""
        while len(self.input) >= 4:
            size = int.from_bytes(self.input[1:4], "little")
            if len(self.input) < 4 + size:
                break
            kind, chunk, self.input = self.input[0], self.input[4:4 + size], self.input[4 + size:]
            if kind in (0, 1):
                out += chunk[4:] if kind == 1 else self.block(chunk[4:])
        return out

    @staticmethod
    def block(data):
        at, shift, size = 0, 0, 0
        while True:
            byte = data[at]
            at, size, shift = at + 1, size | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        out = bytearray()
        while at < len(data):
            tag = data[at]
            at += 1
            if tag & 3 == 0:
                length = tag >> 2
                if length >= 60:
                    more = length - 59
                    length, at = int.from_bytes(data[at:at + more], "little"), at + more
                out += data[at:at + length + 1]
                at += length + 1
                continue
            if tag & 3 == 1:
                length, offset, at = (tag >> 2 & 7) + 4, tag >> 5 << 8 | data[at], at + 1
            else:
                width = 2 if tag & 3 == 2 else 4
                length, offset, at = (tag >> 2) + 1, int.from_bytes(data[at:at + width], "little"), at + width
            for _ in range(length):
                out.append(out[-offset])
        assert len(out) == size, "a block of %d bytes instead of %d" % (len(out), size)
        return bytes(out)


class Tcp:
    def __init__(self, probe, name, magic):
        self.probe, self.name = probe, name
        self.socket = socket.create_connection(("127.0.0.1", probe.server.tcp), WAIT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.layer = b"", Plain()
        self.ids = []           # of the messages received here
        self.send_raw(magic)

    def send_raw(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass                # what the peer said before it closed is still read

    def send(self, *parts):
        self.send_raw(self.layer.encode(b"".join(parts)))
        return self

    def finish(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return self

    def start_tls(self, context):
        self.socket.settimeout(WAIT)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.note("tls %s" % self.socket.version())

    def switch(self, layer):
        """Another layer from here on; what has come already belongs to it."""
        self.layer, come = layer, self.buffer
        self.buffer = layer.decode(come) if come else b""
        return self

    def note(self, text):
        self.probe.lines.append("%s%s" % (self.name, text))

    def read(self, until):
        """More bytes before `until`: True. Nothing came: None. The end: False."""
        left = until - time.monotonic()
        if left <= 0:
            return None
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(262144)
        except (socket.timeout, ssl.SSLWantReadError):
            return None
        except (OSError, ssl.SSLError):
            return False
        if not data:
            return False
        self.buffer += self.layer.decode(data)
        return True

    def next(self, seconds, beats):
        """(kind, payload), "nothing" or "closed"."""
        until = time.monotonic() + seconds
        while True:
            if len(self.buffer) >= 4:
                size = struct.unpack(">i", self.buffer[:4])[0]
                if len(self.buffer) >= 4 + size:
                    kind, payload = struct.unpack(">i", self.buffer[4:8])[0], self.buffer[8:4 + size]
                    self.buffer = self.buffer[4 + size:]
                    if beats or payload != b"_heartbeat_":
                        return kind, payload
                    continue
            more = self.read(until)
            if more is None:
                return "nothing"
            if not more:
                return "closed"

    def show(self, got):
        if isinstance(got, str):
            return self.note(got)
        kind, payload = got
        if kind == 2:
            attempts, ident = struct.unpack(">H", payload[8:10])[0], payload[10:26]
            self.ids.append(ident)
            return self.note("message %s attempts=%d %s" % (self.probe.number(ident), attempts, printable(payload[26:])))
        self.note("%s %s" % (KINDS.get(kind, kind), self.probe.clean(printable(payload))))

    def expect(self, n, seconds=WAIT, beats=False):
        """The next n frames."""
        for _ in range(n):
            got = self.next(seconds, beats)
            self.show(got)
            if isinstance(got, str):
                break
        return self

    def quiet(self, seconds=0.4):
        """Nothing comes for that long."""
        return self.expect(1, seconds)

    def end(self, seconds=WAIT, beats=False):
        """Everything up to the end of the connection."""
        while True:
            got = self.next(seconds, beats)
            self.show(got)
            if isinstance(got, str):
                return self

    def close(self):
        self.socket.close()


class Probe:
    """One probe against one server."""

    def __init__(self, server, name):
        self.server = server
        self.topic = b"t%08x" % zlib.crc32(name.encode())       # of its own, and the same for both servers
        self.lines, self.ids, self.open = [], {}, []

    def number(self, ident):
        return self.ids.setdefault(ident, "#%d" % (len(self.ids) + 1))

    def clean(self, text):
        for ident, short in self.ids.items():
            text = text.replace(ident.decode("latin-1"), short)
        return text

    def tcp(self, name="", magic=b"  V2"):
        self.open.append(Tcp(self, name and name + ": ", magic))
        return self.open[-1]

    def once(self, *parts, magic=b"  V2"):
        """Everything in one segment, then the end of writing; all that comes back."""
        self.tcp(magic=magic + b"".join(parts)).finish().end()

    def subscribed(self, name="", channel=b"c", rdy=None, **fields):
        c = self.tcp(name)
        if fields:
            c.send(identify(**fields)).expect(1)
        c.send(b"SUB %s %s\n" % (self.topic, channel)).expect(1)
        if rdy is not None:
            c.send(b"RDY %d\n" % rdy)
        return c

    def published(self, *bodies):
        c = self.tcp("producer")
        for body in bodies:
            c.send(pub(self.topic, body)).expect(1)
        return c

    def http(self, *requests, half_close=True, methods=None):
        """Requests as raw bytes on one connection; everything until the server closes it, split into answers (to those methods)."""
        with socket.create_connection(("127.0.0.1", self.server.http), WAIT) as s:
            try:
                for r in requests:
                    s.sendall(r)
                if half_close:
                    s.shutdown(socket.SHUT_WR)
            except OSError:
                pass        # what the peer said before it closed is still read
            s.settimeout(WAIT)
            data = b""
            try:
                while True:
                    more = s.recv(262144)
                    if not more:
                        break
                    data += more
            except socket.timeout:
                self.lines.append("the connection stays open")
            except OSError:
                pass
        self.lines += answers(data, methods or [r.split(b" ", 1)[0] for r in requests])

    def call(self, method, path, body=None, *headers):
        """One request on a connection of its own, answered and closed."""
        self.http(request(method, path, body, b"Connection: close", *headers), half_close=False)

    def until(self, holds):
        """Asks /stats until `holds(topics, producers)` says yes: Topics by name, in them Channels by name."""
        end = time.monotonic() + WAIT
        while True:
            document = json.loads(self.server.get("/stats?format=json&include_mem=false")[1])
            topics = {t["topic_name"]: dict(t, channels={c["channel_name"]: c for c in t["channels"]}) for t in document["topics"] or []}
            if holds(topics, document["producers"] or []):
                return
            if time.monotonic() > end:
                raise TimeoutError("/stats goes on saying %s" % (topics.get(self.topic.decode()),))
            time.sleep(0.02)

    def until_channel(self, holds):
        """The same for the Channel "c" of the probe's own Topic."""
        self.until(lambda topics, _: holds(topics[self.topic.decode()]["channels"]["c"]))

    def gone(self, channel=None):
        """Until the Channel, or the Topic, is not there any more."""
        name = self.topic.decode()
        self.until(lambda topics, _: name not in topics or channel is not None and channel not in topics[name]["channels"])

    def routed(self, messages, topic=None):
        """Until that many messages are in each Channel: nsqd moves them there when it comes to it."""
        name = topic or self.topic.decode()
        self.until(lambda topics, _: {c["message_count"] for c in topics[name]["channels"].values()} == {messages})

    def finish(self):
        for c in self.open:
            c.close()


def request(method, path, body=None, *headers, length=None):
    lines = [b"%s %s HTTP/1.1" % (method, path), b"Host: h"] + list(headers)
    if body is not None or length is not None:
        lines.append(b"Content-Length: %d" % (len(body or b"") if length is None else length))
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


# Their values are the length of what follows, which the splitting below relies on; whether a body is chunked is the server's affair.
FRAMING = {"content-length", "transfer-encoding"}


def unchunk(data):
    body = b""
    while True:
        line, _, data = data.partition(b"\r\n")
        size = int(line.split(b";")[0], 16)
        body, data = body + data[:size], data[size + 2:]
        if size == 0:
            return body, data


def portless(text):
    """What rows are put in order by: nsqd gives them in any, and the ports of the two servers' clients differ."""
    return re.sub(r":[0-9]{4,5}\b", "", text)


def by_client(lines):
    """Text lines with each Channel's consumers in a fixed order."""
    out, block = [], []
    for line in lines + [""]:
        if line.startswith("        [V2"):
            block.append(line)
            continue
        out, block = out + sorted(block, key=portless) + [line], []
    return out[:-1]


def answers(data, methods):
    lines = []
    while data:
        head, found, rest = data.partition(b"\r\n\r\n")
        if not found:
            return lines + ["rest %s" % printable(data)]
        status, *fields = head.decode("latin-1").split("\r\n")
        lines.append(status)
        headers = {}
        for f in fields:
            name, _, value = f.partition(": ")
            headers[name.lower()] = value
        lines += ["%s: %s" % (n, v if n != "date" else "now") for n, v in sorted(headers.items()) if n not in FRAMING]
        data = rest
        if status.split(" ")[1] == "100":
            continue
        method = methods.pop(0) if methods else b""
        if method == b"HEAD":
            continue
        if headers.get("transfer-encoding") == "chunked":
            body, data = unchunk(data)
        else:
            size = int(headers.get("content-length", len(data)))
            body, data = data[:size], data[size:]
        if headers.get("content-type", "").startswith("application/json"):
            document = json.loads(body)
            if isinstance(document, dict) and isinstance(document.get("producers"), list):
                document["producers"].sort(key=lambda row: portless(json.dumps(row)))
            for topic in document.get("topics") or [] if isinstance(document, dict) else []:
                for channel in topic["channels"]:
                    (channel["clients"] or []).sort(key=lambda row: portless(json.dumps(row)))
            lines.append(json.dumps(document))
        elif body:
            text = printable(body, 20000).replace("\\n", "\n").split("\n")
            at = text.index("Producers:") + 1 if "Producers:" in text else len(text)
            lines += by_client(text[:at]) + sorted(text[at:], key=portless)
    return lines
