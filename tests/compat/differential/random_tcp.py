"""Generated TCP scripts in which commands matter and deliveries do not: every command in every state, right and wrong, on one to three connections.

A command is (bytes, whether the server is still at a command line behind it for sure). Behind one that may leave it in the middle of a body, the connection is
half-closed and read to its end, so that nothing ever waits for a time limit.
"""

from random_words import RAW_NAMES, UNKNOWN_ID, body_size, chance, document, name, number, size32, text

COMMANDS = (b"IDENTIFY", b"AUTH", b"SUB", b"PUB", b"MPUB", b"DPUB", b"RDY", b"FIN", b"REQ", b"TOUCH", b"CLS", b"NOP")


class Limits:
    """What a pair of servers is configured with."""

    def __init__(self, message, body, ready, defer_ms=3600000):
        self.message, self.body, self.ready, self.defer_ms = message, body, ready, defer_ms


def line(r, *words):
    """A command line with what may go wrong with it."""
    words = list(words)
    if chance(r, 0.04):
        words[0] = r.choice((words[0].lower(), words[0].title(), words[0][:-1], words[0] + b"X", b" " + words[0], b"\t" + words[0], b"\x00" + words[0], b""))
    if chance(r, 0.06):
        words.insert(r.randint(1, len(words)), r.choice((b"", b"x", b"\t", b"\xff")))
    if chance(r, 0.05) and len(words) > 1:
        words.pop(r.randint(1, len(words) - 1))
    gap = r.choice((b" ", b" ", b"  ", b"\t", b"\x0b", b"\xc2\xa0")) if chance(r, 0.03) else b" "
    end = r.choice((b"\n", b"\r\n", b"\r\r\n", b" \n", b" \r\n", b"\t\n")) if chance(r, 0.15) else b"\n"
    return gap.join(words) + end


def whole(r, head, right, limits):
    """A command with one body: its size is right or it is not, and then nothing behind it is sure."""
    size = body_size(r, len(right), limits)
    return head + size32(size) + right, size == len(right)


def identify(r, limits):
    return whole(r, line(r, b"IDENTIFY"), document(r), (limits.body,))


def auth(r, limits):
    secret = r.choice((b"all", b"none", b"publish", b"subscribe", b"nochannels", b"other", b"named", b"garbage", b"", b"\xff", text(r, 20)))
    return whole(r, line(r, b"AUTH"), secret, (limits.body,))


def subscribe(r, limits):
    return line(r, b"SUB", name(r, 0.25), r.choice((b"c", b"d", b"e#ephemeral", name(r)))), True


def publish(r, limits):
    body = text(r, 60) if chance(r, 0.8) or limits.message > 10000 else b"x" * r.choice((limits.message, limits.message + 1))
    words = (b"PUB", name(r, 0.2)) if chance(r, 0.5) else (b"DPUB", name(r, 0.2), number(r, (limits.defer_ms,)))
    return whole(r, line(r, *words), body, (limits.message,))


def batch(r, limits):
    """Count, sizes and the size around them, each of which may be off; then nothing is sure."""
    bodies = [text(r, 30) for _ in range(r.choice((0, 1, 1, 2, 3, 10)))]
    sure = bool(bodies)
    count = len(bodies)
    if chance(r, 0.12):
        most = (limits.body - 4) // 5
        count, sure = r.choice((0, -1, count + 1, max(0, count - 1), most, most + 1, 65536, 65537, 2 ** 31 - 1, -2 ** 31)), False
    inner = size32(count)
    for one in bodies:
        size = body_size(r, len(one), (limits.message,)) if chance(r, 0.15) else len(one)
        sure = sure and size == len(one)
        inner += size32(size) + one
    size = body_size(r, len(inner), (limits.body,)) if chance(r, 0.3) else len(inner)
    return line(r, b"MPUB", name(r, 0.2)) + size32(size) + inner, sure and size == len(inner)


def ready(r, limits):
    return (line(r, b"RDY") if chance(r, 0.1) else line(r, b"RDY", number(r, (limits.ready, 0)))), True


def about_message(r, limits):
    ident = r.choice((UNKNOWN_ID, UNKNOWN_ID, UNKNOWN_ID, UNKNOWN_ID.upper(), UNKNOWN_ID[:15], UNKNOWN_ID + b"0", b"", b"{m:x}", b"zzzz%%%%6789abcd", b"\xff" * 16, b"'" * 16, b"\xc3\xa9" * 8, b"a\x00" * 8))
    what = r.choice((b"FIN", b"REQ", b"TOUCH"))
    return line(r, what, ident, *((number(r, (limits.defer_ms,)),) if what == b"REQ" else ())), True


def bare(r, limits):
    return line(r, r.choice((b"CLS", b"NOP", b"NOP", b"NOP x y", b"CLS x"))), True


def nonsense(r, limits):
    if chance(r, 0.5):
        return line(r, r.choice(COMMANDS), *(r.choice((b"{t}", b"c", b"", number(r), *RAW_NAMES)) for _ in range(r.randint(0, 3)))), False
    return r.choice((b"\n", b"\r\n", b" \n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00\x00\x00\x04NOP\n", b"A" * r.choice((100, 1022, 1023, 1024, 2000)) + b"\n", b"\r", b"\x80\x81\n",
                     bytes(r.randrange(256) for _ in range(r.randint(1, 30))) + b"\n", b"ASDF a b\n", "Ö ü\n".encode(), b"%s%d\n", b"V2\n", b"  V2\n")), False


ANY = (identify, auth, subscribe, publish, batch, ready, about_message, bare, nonsense)
# What is drawn in which state: the same list, weighted for what is allowed there.
WEIGHTS = {0: (5, 1, 4, 4, 3, 1, 1, 1, 1), 3: (1, 1, 1, 3, 2, 4, 6, 2, 1), 4: (1, 1, 1, 3, 2, 2, 5, 2, 1)}


def segment(r, limits, state, coded):
    """(parts, state behind them, whether the server is at a command line for sure). A connection that is `coded` sends no IDENTIFY: nsqd then answers in clear."""
    parts, sure = [], True
    for _ in range(r.choice((1, 1, 1, 2, 3, 5))):
        make = r.choices(ANY, WEIGHTS[state])[0]
        if coded and make is identify:
            continue
        data, sure = make(r, limits)
        parts.append(data)
        if make is subscribe:
            state = 3
        elif make is bare and data.startswith(b"CLS"):
            state = 4
        if not sure:
            break
    return parts, state, sure


def script(r, limits, layers=("", "", "", "snappy", "deflate")):
    conns = {c: 0 for c in ("a", "b", "c")[:r.choice((1, 1, 2, 3))]}
    layer = {c: r.choice(layers) for c in conns}
    steps = [("open", c, layer[c]) for c in conns]
    ended = set()
    for _ in range(r.randint(1, 8)):
        c = r.choice(sorted(conns))
        if c in ended:
            continue
        parts, conns[c], sure = segment(r, limits, conns[c], layer[c])
        if sure:
            steps.append(("send", c, parts, "fin" if conns[c] else "id", None))
        else:
            steps.append(("last", c, parts, None))
            ended.add(c)
    return steps + [("last", c, [], None) for c in conns if c not in ended]
