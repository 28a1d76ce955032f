"""Odd pieces that generated scripts are made of: names, numbers, sizes, JSON documents. Each function takes the script's own generator `r`."""
import json
import struct

KINDS_OF_NAME = ("#", "a" * 54 + "#ephemeral", "a" * 55 + "#ephemeral", "a#ephemeralx", "#ephemeral", "x#Ephemeral", "a" * 64, "a" * 65, "a" * 200, ".", "-", "_", "..", "a.b-c_D9", "a$", "a:b", "a/b",
                 "a%20b", "a\\b", 'a"b', "a'b", "a\tb", "a\x00b", "a\x7f", "a\x07\x08\x0b\x0c\r", "é", "中文", "😀", "\u2028", "\u00a0", "\ufeff", "a\u0301", "\u00ad", "\U000e0001", "\ue000")
RAW_NAMES = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"a\x80b", b"\xef\xbf\xbd", b"\xef\xbf\xbe", b"\xf0\x9f\x98")
UNKNOWN_ID = b"0123456789abcdef"
NUMBERS = (b"", b"0", b"1", b"2", b"00", b"007", b"+1", b"-1", b"-0", b"+0", b"1.0", b"1e3", b"0x10", b"1_0", b" 1", b"1 ", b"\t1", b"1\t", b"x", b"1x", b"\xff", b"\xd9\xa1", b"2147483647", b"2147483648",
           b"4294967296", b"9223372036854", b"9223372036855", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615", b"18446744073709551616", b"18446744073709551617",
           b"99999999999999999999", b"0" * 30 + b"1", b"1" * 40, b"3600000", b"3600001", b"3599999", b"nil", b"NaN", b"1,000", b"'1'", b'"1"')


def size32(n):
    return struct.pack(">I", n & 0xffffffff)


def chance(r, share):
    return r.random() < share


def name(r, odd=0.5):
    """Bytes of a Topic's or a Channel's name; valid for sure when `odd` is 0."""
    if not chance(r, odd):
        return r.choice((b"{t}", b"{t}", b"{t}-b", b"{t}#ephemeral"))
    if chance(r, 0.2):
        return r.choice(RAW_NAMES)
    if chance(r, 0.1):
        return bytes(r.choice(b"abc.#$ \x01\x1f\x7f\x80\xe9\xff") for _ in range(r.randint(1, 8)))
    return r.choice(KINDS_OF_NAME).encode().replace(b" ", b"\xc2\xa0")


def number(r, near=()):
    """A count or a time in text; `near`: limits that matter here."""
    if near and chance(r, 0.4):
        return b"%d" % (r.choice(near) + r.choice((-1, 0, 0, 1)))
    return b"%d" % r.randint(0, 10 ** r.randint(1, 20)) if chance(r, 0.15) else r.choice(NUMBERS)


def body_size(r, right, limits):
    """The size that stands before a body; right most of the time."""
    if chance(r, 0.8):
        return right
    return r.choice((0, -1, -2 ** 31, 2 ** 31 - 1, right + 1, max(0, right - 1), 1, 4, *limits, *(n + 1 for n in limits), 0x4e4f500a))


def text(r, most):
    """A body of 1 to `most` bytes."""
    length = r.choice((1, 1, 2, r.randint(1, min(most, 40)), r.randint(1, most)))
    return bytes(r.choice(b"ab\n\r\x00 \xffNOP") for _ in range(length))


# --- documents of IDENTIFY
FIELDS = {"client_id": str, "hostname": str, "user_agent": str, "feature_negotiation": bool, "heartbeat_interval": int, "output_buffer_size": int, "output_buffer_timeout": int,
          "sample_rate": int, "msg_timeout": int, "tls_v1": bool, "snappy": bool, "deflate": bool, "deflate_level": int, "short_id": str, "topology_region": str}
INTEGERS = {"heartbeat_interval": ("-2", "-1", "0", "999", "10000", "60000", "60001"), "output_buffer_size": ("-2", "-1", "0", "63", "64", "65536", "65537"),
            "output_buffer_timeout": ("-2", "-1", "0", "24", "25", "30000", "30001"), "sample_rate": ("-1", "0", "1", "99", "100"), "msg_timeout": ("-1", "0", "999", "60000", "900000", "900001"),
            "deflate_level": ("-1", "0", "1", "6", "7", "9", "100")}
LITERALS = ("null", "false", "0", "1", "-0", "1.0", "1e3", "1E+2", "0.5", "-1.5e-3", "01", "+1", ".5", "5.", "1e", "-", "0x10", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
            "-9223372036854775809", "2147483648", "-2147483649", "1e400", "1" + "0" * 50, "NaN", "Infinity", "nul", "nulll", "True", "FALSE", "tru", "undefined", "''", '""', '"x"', '"1000"', '"true"', "[]",
            "{}", "[1]", '{"a":1}', "[null]", "[[]]", '{"a":{"b":[1,2,{"c":"d"}]}}', "[1,]", "{,}", '{"a"}', '{"a":}', '{"a":1,}', '{1:2}', "[1 2]", "[,1]", "/**/1", "")
STRINGS = ('"\\u0041"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\u0000"', '"\\/\\b\\f\\n\\r\\t\\\\\\""', '"\\a"', '"\\u12"', '"\\uZZZZ"', '"\\U0041"', '"a\tb"', '"a\nb"', '"a\x00b"', '"\x7f"', '"é"', '"😀"', '"<&>"',
           '"', '"abc', '"\\"', '"' + "x" * 300 + '"', '"\u2028"', '"%s%d%n"')
TURNED_ON = ("snappy", "deflate")       # never asked for here: the connection would change its coding, which ("open", c, layer) does


def key(r, field):
    spelled = r.choice((field, field, field, field, field.upper(), field.title(), field.swapcase(), field + " ", field.replace("_", ""), field.replace("_", "-")))
    if chance(r, 0.05):
        spelled = field.replace("s", "\u017f").replace("k", "\u212a")      # letters that fold to s and k
    quoted = json.dumps(spelled, ensure_ascii=chance(r, 0.5))
    return quoted.replace("e", "\\u0065", 1) if chance(r, 0.1) else quoted


def value(r, field):
    kind = FIELDS[field]
    if chance(r, 0.25):
        return r.choice(LITERALS)
    if kind is bool:
        return r.choice(("false", "false", "null") if field in TURNED_ON else ("true", "true", "false", "null"))
    if kind is int:
        return r.choice(INTEGERS[field])
    return r.choice(STRINGS) if chance(r, 0.5) else '"x"'


def document(r):
    """The bytes of an IDENTIFY body, mostly an object, sometimes broken somewhere."""
    if chance(r, 0.08):
        whole = r.choice(LITERALS)
    else:
        space = r.choice(("", "", "", " ", "\n", "\t", "\r\n", "\x0b", "\u00a0", "\x00") if chance(r, 0.3) else ("",))
        pairs = [key(r, f) + space + ":" + space + value(r, f) for f in r.choices(sorted(FIELDS), k=r.choice((0, 1, 1, 2, 3, 8)))]
        if chance(r, 0.1):
            pairs.insert(r.randint(0, len(pairs)), r.choice(('"":1', '"x":' + "[" * 9 + "]" * 9, '"x":' + r.choice(LITERALS), '"feature_negotiation":true', '"\\ud800":1')))
        whole = space + "{" + ("," + space).join(pairs) + "}" + space
    data = bytearray(whole.encode("utf-8", "surrogatepass"))
    if chance(r, 0.15) and data:
        at = r.randrange(len(data))
        act = r.randint(0, 2)
        if act == 0:
            del data[at]
        elif act == 1:
            data.insert(at, r.choice(b'{}[],:"\\ \x00\xff0e-+.'))
        else:
            data += r.choice((b"x", b"{}", b",", b"\x00", b"]", b"null"))
    return bytes(data)
