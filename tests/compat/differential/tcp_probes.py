"""Commands without a subscription: magic, lines, IDENTIFY, AUTH, publishing, and every command in the wrong state."""
import struct

from registry import ALIVE, probe, raw
from wire import dpub, identify, mpub, pub, sized

ID = b"0123456789abcdef"


def size(n):
    return struct.pack(">i", n)


# --- magic and lines
for name, magic in (("XXXX", b"XXXX"), ("V1", b"  V1"), ("GET", b"GET / HTTP/1.1\r\n\r\n"), ("POST", b"POST"), ("half", b"  V"), ("none", b""), ("V2 only", b"  V2"),
                    ("lower case", b"  v2"), ("zeros", b"\0\0\0\0")):
    raw("magic " + name, magic=magic)
for name, line in (("empty", b"\n"), ("CR", b"\r\n"), ("NOP", b"NOP\n"), ("NOP CR", b"NOP\r\n"), ("NOP parameters", b"NOP x y\n"), ("NOP space", b"NOP \n"), ("unknown", b"ASDF\n"),
                   ("unknown CR", b"ASDF\r\n"), ("unknown parameters", b"ASDF a b\n"), ("lower case", b"pub t\n"), ("leading space", b" NOP\n"), ("tab", b"NOP\tx\n"),
                   ("NUL", b"\0\n"), ("bytes", b"\xff\xfe\x80\n"), ("two CR", b"NOP\r\r\n"), ("UTF-8", "Ö\n".encode()), ("half", b"ASD"), ("half known", b"NOP"),
                   ("half behind whole", b"NOP\nASD"), ("spaces only", b"   \n"), ("long 1000", b"A" * 1000 + b"\n"), ("long 1024", b"A" * 1023 + b"\n"),
                   ("long 1025", b"A" * 1024 + b"\n"), ("long 16383", b"A" * 16383 + b"\n"), ("long 16384", b"A" * 16384), ("CR inside", b"NO\rP\n")):
    raw("line " + name, line, ALIVE)
raw("line half then end", b"NOP\nASD")
raw("pipelined mix", b"NOP\nNOP\n", pub(b"{t}", b"a"), b"NOP\n", mpub(b"{t}", b"b", b"c"), dpub(b"{t}", 5, b"d"), b"NOP\n")


@probe("byte by byte")
def _(p):
    c = p.tcp(magic=b"")
    for byte in b"  V2NOP\n" + pub(p.topic, b"slow") + b"NOP\n":
        c.send(bytes([byte]))
    c.expect(1).finish().end()


# --- IDENTIFY: what decodes
BODIES = {
    "empty object": b"{}", "null": b"null", "array": b"[]", "string": b'"x"', "number": b"1", "true": b"true", "spaces": b"  {} \n", "trailing": b"{} x", "two objects": b"{}{}",
    "malformed": b"{", "comma": b'{"a":1,}', "single quotes": b"{'a':1}", "unquoted key": b"{a:1}", "NaN": b'{"a":NaN}', "comment": b"{/**/}", "BOM": b"\xef\xbb\xbf{}",
    "unknown keys": b'{"short_id":1,"long_id":[1,{"x":null}],"z":{"a":[]}}', "case": b'{"Feature_NEGOTIATION":true}', "duplicate": b'{"feature_negotiation":true,"feature_negotiation":false}',
    "duplicate case": b'{"feature_negotiation":false,"FEATURE_NEGOTIATION":true}', "null fields": b'{"client_id":null,"feature_negotiation":null,"heartbeat_interval":null,"tls_v1":null}',
    "number for text": b'{"client_id":1}', "text for number": b'{"heartbeat_interval":"1000"}', "number for bool": b'{"feature_negotiation":1}', "text for bool": b'{"snappy":"true"}',
    "float": b'{"heartbeat_interval":1000.0}', "float half": b'{"heartbeat_interval":1000.5}', "exponent": b'{"heartbeat_interval":1e3}', "minus zero": b'{"heartbeat_interval":-0}',
    "leading zero": b'{"heartbeat_interval":01000}', "plus": b'{"heartbeat_interval":+1000}', "int64 max": b'{"heartbeat_interval":9223372036854775807}',
    "int64 over": b'{"heartbeat_interval":9223372036854775808}', "int32 over": b'{"sample_rate":2147483648}', "int32 under": b'{"sample_rate":-2147483649}', "int32 max": b'{"sample_rate":2147483647}',
    "array for text": b'{"user_agent":[]}', "object for number": b'{"msg_timeout":{}}', "bad UTF-8": b'{"client_id":"\xff"}', "bad escape": b'{"client_id":"\\x"}',
    "lone surrogate": b'{"client_id":"\\ud800"}', "control byte": b'{"client_id":"\x01"}', "NUL byte": b'{"client_id":"\x00"}', "escape": b'{"client_id":"\\u0041\\n\\/"}',
    "empty text": b'{"client_id":"","hostname":"","user_agent":""}', "nested": b'{"x":' + b"[" * 100 + b"]" * 100 + b"}", "topology": b'{"topology_region":"r","topology_zone":"z"}',
    "wrong before right": b'{"feature_negotiation":"x","client_id":"a"}', "unknown huge number": b'{"x":1e999}', "unknown bad literal": b'{"x":tru}', "empty key": b'{"":1}',
}
for name, body in BODIES.items():
    raw("IDENTIFY " + name, b"IDENTIFY\n", sized(body), ALIVE)
raw("IDENTIFY parameters", b"IDENTIFY a b\n", sized(b"{}"), ALIVE)
raw("IDENTIFY size 0", b"IDENTIFY\n", size(0), ALIVE)
raw("IDENTIFY size -1", b"IDENTIFY\n", size(-1), ALIVE)
raw("IDENTIFY size least", b"IDENTIFY\n", size(-2 ** 31), ALIVE)
raw("IDENTIFY size most", b"IDENTIFY\n", size(2 ** 31 - 1), ALIVE)
raw("IDENTIFY size over", b"IDENTIFY\n", size(1048577))
raw("IDENTIFY no size", b"IDENTIFY\n")
raw("IDENTIFY half a size", b"IDENTIFY\n\0\0")
raw("IDENTIFY short body", b"IDENTIFY\n", size(10), b"{}")
raw("IDENTIFY three times", identify(), identify(feature_negotiation=True), identify(), ALIVE)
raw("IDENTIFY behind PUB", pub(b"{t}", b"x"), identify(feature_negotiation=True), ALIVE)
raw("IDENTIFY behind SUB", b"SUB {t} c\n", identify(), ALIVE)

# --- IDENTIFY: ranges, with and without negotiation
RANGES = {"heartbeat_interval": (-2, -1, 0, 1, 999, 1000, 60000, 60001), "output_buffer_timeout": (-2, -1, 0, 1, 24, 25, 30000, 30001),
          "output_buffer_size": (-2, -1, 0, 1, 63, 64, 65536, 65537), "sample_rate": (-1, 0, 1, 99, 100), "msg_timeout": (-1, 0, 1, 999, 1000, 900000, 900001)}
for field, values in RANGES.items():
    for value in values:
        raw("IDENTIFY %s %d" % (field, value), identify(feature_negotiation=True, **{field: value}), ALIVE)
    raw("IDENTIFY %s plain out of range" % field, identify(**{field: -7}), ALIVE)
for level in (-1, 0, 1, 6, 7, 9, 100):
    raw("IDENTIFY deflate_level %d" % level, identify(feature_negotiation=True, deflate_level=level), ALIVE)
raw("IDENTIFY all wrong", identify(heartbeat_interval=1, output_buffer_timeout=1, output_buffer_size=1, sample_rate=100, msg_timeout=1))
raw("IDENTIFY last four wrong", identify(output_buffer_timeout=1, output_buffer_size=1, sample_rate=100, msg_timeout=1))
raw("IDENTIFY last three wrong", identify(output_buffer_size=1, sample_rate=100, msg_timeout=1))
raw("IDENTIFY last two wrong", identify(sample_rate=100, msg_timeout=1))
raw("IDENTIFY both compressions", identify(feature_negotiation=True, snappy=True, deflate=True), ALIVE)
raw("IDENTIFY both without negotiation", identify(snappy=True, deflate=True), ALIVE)
raw("IDENTIFY tls without certificate", identify(feature_negotiation=True, tls_v1=True), ALIVE)
raw("IDENTIFY upgrades without negotiation", identify(tls_v1=True, snappy=True), ALIVE)
raw("IDENTIFY everything", identify(feature_negotiation=True, client_id="i", hostname="h", user_agent="u/1", heartbeat_interval=5000, output_buffer_size=128, output_buffer_timeout=50,
                                    sample_rate=5, msg_timeout=2000, deflate_level=3), ALIVE)
raw("IDENTIFY timeout off with size off", identify(feature_negotiation=True, output_buffer_size=-1, output_buffer_timeout=50), ALIVE)
raw("IDENTIFY keeps from the one before", identify(msg_timeout=5000, sample_rate=3), identify(feature_negotiation=True), ALIVE)

# --- AUTH without auth servers
raw("AUTH disabled", b"AUTH\n", sized(b"secret"), ALIVE)
raw("AUTH parameter", b"AUTH x\n", sized(b"secret"), ALIVE)
raw("AUTH empty parameter", b"AUTH \n", sized(b"secret"), ALIVE)
for name, n in (("0", 0), ("-1", -1), ("most", 2 ** 31 - 1)):
    raw("AUTH size " + name, b"AUTH\n", size(n), ALIVE)
raw("AUTH no size", b"AUTH\n")
raw("AUTH short body", b"AUTH\n", size(10), b"x")
raw("AUTH behind SUB", b"SUB {t} c\n", b"AUTH\n", sized(b"x"), ALIVE)

# --- names
NAMES = {"empty": b"", "64": b"a" * 64, "65": b"a" * 65, "dots": b".-_", "colon": b"a:b", "dollar": b"a$", "non-ASCII": "é".encode(), "byte": b"\xff\x01", "quote": b'a"\\b', "NUL": b"a\0b",
         "only ephemeral": b"#ephemeral", "ephemeral 64": b"a" * 54 + b"#ephemeral", "ephemeral 65": b"a" * 55 + b"#ephemeral", "ephemeral inside": b"a#ephemeralx", "hash": b"a#b",
         "upper case": b"ABC", "digit": b"9", "slash": b"a/b", "control": b"a\x07\x0b\x7f", "line separator": " ".encode(), "emoji": "😀".encode()}
for name, value in NAMES.items():
    raw("SUB topic " + name, b"SUB " + value + b" c\n", ALIVE)
    raw("SUB channel " + name, b"SUB {t} " + value + b"\n", ALIVE)
    raw("PUB topic " + name, b"PUB " + value + b"\n", sized(b"x"), ALIVE)
raw("MPUB topic bad", b"MPUB a$\n", ALIVE)
raw("DPUB topic bad", b"DPUB a$ 0\n", sized(b"x"), ALIVE)

# --- SUB
raw("SUB no parameters", b"SUB\n", ALIVE)
raw("SUB one parameter", b"SUB t\n", ALIVE)
raw("SUB two spaces", b"SUB  {t} c\n", ALIVE)
raw("SUB more parameters", b"SUB {t} c x y\n", ALIVE)
raw("SUB trailing space", b"SUB {t} c \n", ALIVE)
raw("SUB CR", b"SUB {t} c\r\n", ALIVE)
raw("SUB twice", b"SUB {t} c\n", b"SUB {t} c\n", ALIVE)
raw("SUB without heartbeats", identify(heartbeat_interval=-1), b"SUB {t} c\n", ALIVE)
raw("SUB without heartbeats and names", identify(heartbeat_interval=-1), b"SUB\n", ALIVE)
raw("SUB behind PUB", pub(b"{t}", b"x"), b"SUB {t} c\n", ALIVE)

# --- PUB and DPUB
for command in (b"PUB {t}", b"DPUB {t} 0"):
    what = command.split()[0].decode()
    raw(what + " one byte", command + b"\n", sized(b"x"), ALIVE)
    for name, n in (("0", 0), ("-1", -1), ("least", -2 ** 31), ("most", 2 ** 31 - 1), ("1 MiB and one", 1048577)):
        raw("%s size %s" % (what, name), command + b"\n", size(n), ALIVE)
    raw(what + " no size", command + b"\n")
    raw(what + " half a size", command + b"\n\0\0\0")
    raw(what + " short body", command + b"\n", size(5), b"abc")
    raw(what + " more parameters", command + b" x y\n", sized(b"x"), ALIVE)
    raw(what + " trailing space", command + b" \n", sized(b"x"), ALIVE)
raw("PUB no parameters", b"PUB\n", ALIVE)
raw("PUB forgot its size", b"PUB {t}\nNOP\n", ALIVE)
raw("PUB 1 MiB", b"PUB {t}\n", sized(b"x" * 1048576), ALIVE)
raw("DPUB no parameters", b"DPUB\n", ALIVE)
raw("DPUB one parameter", b"DPUB {t}\n", ALIVE)
for value in (b"", b"0", b"1", b"3600000", b"3600001", b"-1", b"+1", b"1.5", b"1e3", b"x", b"99999999999999999999", b"18446744073709551616", b"18446744073709551615", b"9223372036855", b"007", b"0x1", b" 5"):
    raw("DPUB delay [%s]" % value.decode(), b"DPUB {t} " + value + b"\n", sized(b"x"), ALIVE)


@probe("PUB then half close")
def _(p):
    p.once(pub(p.topic, b"x"))


@probe("PUB 1000 pipelined")
def _(p):
    p.once(pub(p.topic, b"x") * 1000)


@probe("PUB too big is told while its body is sent")
def _(p):
    c = p.tcp().send(b"PUB " + p.topic + b"\n", size(3000000), b"x" * 3000000)
    c.end()


# --- MPUB
raw("MPUB no parameters", b"MPUB\n", ALIVE)
raw("MPUB two", mpub(b"{t}", b"a", b"b"), ALIVE)
raw("MPUB one", mpub(b"{t}", b"a"), ALIVE)
raw("MPUB more parameters", b"MPUB {t} x\n", mpub(b"", b"a")[6:], ALIVE)
for name, n in (("0", 0), ("-1", -1), ("most", 2 ** 31 - 1), ("5 MiB and one", 5242881)):
    raw("MPUB size " + name, b"MPUB {t}\n", size(n), ALIVE)
for n in (0, -1, 2, 1048576, 2 ** 31 - 1, -2 ** 31):
    raw("MPUB count %d" % n, mpub(b"{t}", b"a", count=n))
raw("MPUB no size", b"MPUB {t}\n")
raw("MPUB no count", b"MPUB {t}\n", size(20))
raw("MPUB half a count", b"MPUB {t}\n", size(20), b"\0\0")
raw("MPUB first message empty", b"MPUB {t}\n", size(14), size(2), size(0), size(1), b"a")
raw("MPUB second message empty", b"MPUB {t}\n", size(13), size(2), size(1), b"a", size(0))
raw("MPUB message negative", b"MPUB {t}\n", size(13), size(2), size(1), b"a", size(-1))
raw("MPUB message too big", b"MPUB {t}\n", size(13), size(2), size(1), b"a", size(1048577))
raw("MPUB message without size", b"MPUB {t}\n", size(20), size(2), size(1), b"a", b"\0\0")
raw("MPUB message cut", b"MPUB {t}\n", size(18), size(2), size(1), b"a", size(5), b"ab")
raw("MPUB of 65536", mpub(b"{t}", *[b"x"] * 65536), ALIVE)
raw("MPUB of 65537", mpub(b"{t}", *[b"x"] * 65537), ALIVE)
raw("MPUB outer size too large", mpub(b"{t}", b"a", b"b", size=30), b"NOP\n" * 4)
raw("MPUB outer size too small", mpub(b"{t}", b"a", b"b", size=9), ALIVE)

# --- commands in the wrong state
for line in (b"RDY 1", b"RDY", b"RDY x", b"FIN " + ID, b"FIN", b"REQ " + ID + b" 0", b"REQ", b"TOUCH " + ID, b"TOUCH", b"CLS", b"CLS x"):
    raw("state 0: %s" % line.decode(), line + b"\n", ALIVE)
