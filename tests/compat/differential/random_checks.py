"""What the rules of differences.RANDOM are held against: a Case is a generated script with the first difference of its answers, taken apart. Beside patterns a rule may have
a check of those at the end, which sees the whole case.

Requests that this Broker serves as if nothing were odd about them are judged in another way (REPAIRS): nsqd is sent the same script without the oddity, this
Broker with it, and then their answers must be the same.
"""
import re, struct, urllib.parse

import wire


def text(step):
    what, *arguments = step
    return what + " " + " ".join("".join(p.decode("latin-1") for p in a) if isinstance(a, list) else a.decode("latin-1") if isinstance(a, bytes) else a if isinstance(a, str) else "" for a in arguments)


def units(lines):
    """Lines, with those of one HTTP answer as one."""
    out = []
    for line in lines:
        if out and out[-1].startswith("HTTP/") and not line.startswith("HTTP/"):
            out[-1] += "\n" + line
        else:
            out.append(line)
    return out


def final(answers):
    return [a for a in answers if not re.match(r"HTTP/1\.\d 100 ", a)]


class Case:
    """sent: everything that was sent, with NOW before the request or the step whose answers differ, which ends it. theirs, ours: the first answer over HTTP, or all frames of
    the step, that differ. all_theirs, all_ours: that and what follows it."""

    def __init__(self, script, found):
        self.script, self.before, self.step = script, found.before, script["steps"][found.index]
        steps = [text(s) for s in script["steps"][:found.index]]
        a, b = units(found.theirs), units(found.ours)
        same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        self.same, self.all_theirs, self.all_ours = a[:same], a[same:], b[same:]
        if self.step[0] == "http":
            requests = self.step[1]
            self.request = min(len(final(self.same)), len(requests) - 1)
            steps += [text(("http", r)) for r in requests[:self.request]]
            now = "http " + requests[self.request].decode("latin-1")
            self.theirs, self.ours = "".join(self.all_theirs[:1]), "".join(self.all_ours[:1])
        else:
            if self.all_theirs[-1:] == self.all_ours[-1:] == ["closed"]:
                self.all_theirs, self.all_ours = self.all_theirs[:-1], self.all_ours[:-1]
            now = text(self.step)
            self.theirs, self.ours = "\n".join(self.all_theirs), "\n".join(self.all_ours)
        self.sent = "\n".join(steps) + "\nNOW " + now

    def fits(self, row):
        patterns, checks = row[2:5], row[5:]
        return all(re.search(p, t, re.S | re.I) for p, t in zip(patterns, (self.sent, self.theirs, self.ours))) and all(check(self) for check in checks)


def alike(but):
    """The answers are the same but for this pattern."""
    return lambda case: re.sub(but, "", case.theirs, flags=re.S) == re.sub(but, "", case.ours, flags=re.S)


def asked_for_the_body(case):
    """The same answer, behind a 100 of nsqd, and this Broker closes."""
    return [re.sub("\nconnection: close", "", a) for a in case.all_theirs[1:2]] == [re.sub("\nconnection: close", "", a) for a in case.all_ours[:1]]


# --- Topics that are there
def target(request):
    """(path, first value of each parameter) of a request's bytes."""
    words = request.split(b"\r\n", 1)[0].split(b" ")
    path, _, query = (words[1] if len(words) > 1 else b"").decode("latin-1").partition("?")
    arguments = {}
    for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True, encoding="latin-1"):
        arguments.setdefault(name, value)
    return path, arguments


def something_published(path, request):
    body = request.partition(b"\r\n\r\n")[2]
    if b"transfer-encoding" in request.lower():
        try:
            body = wire.unchunk(body)[0]
        except ValueError:
            pass
    return path == "/pub" or path == "/mpub" and body.strip(b"\n") != b""


def after_requests(there, requests, answers):
    for request, answer in zip(requests, final(answers)):
        path, arguments = target(request)
        topic = arguments.get("topic")
        if not re.match(r"HTTP/1\.\d 200 ", answer):
            continue
        if path == "/topic/create" or something_published(path, request) or path.startswith(("/topic/", "/channel/")) and path != "/topic/delete":
            there.add(topic)
        if path in ("/topic/delete", "/channel/delete") and (path == "/topic/delete" or topic.endswith("#ephemeral")):
            there.discard(topic)


ANSWERED = (b"IDENTIFY", b"AUTH", b"SUB", b"PUB", b"MPUB", b"DPUB", b"CLS")


def after_commands(there, parts, lines):
    answers = [l for l in lines if l.startswith(("response ", "error ")) and not re.match(r"error E_(FIN|REQ|TOUCH)_FAILED", l)]
    for part in parts:
        words = part.split(b"\n", 1)[0].rstrip(b"\r").split(b" ")
        if words[0] not in ANSWERED:
            continue
        if not answers or answers[0].startswith("error "):
            return
        if answers.pop(0) == "response OK" and words[0] in (b"SUB", b"PUB", b"MPUB", b"DPUB"):
            there.add(words[1].decode("latin-1"))


def topics(case):
    """Names of those that the answers before the difference say are there."""
    there = set()
    for (what, *arguments), lines in zip(case.script["steps"], case.before):
        if what == "http":
            after_requests(there, arguments[0], units(lines))
        elif what in ("send", "last"):
            after_commands(there, arguments[1], lines)
        if what in ("close", "last", "ended"):      # ephemeral ones may have gone with a consumer
            there = {t for t in there if not t.endswith("#ephemeral")}
    if case.step[0] == "http":
        after_requests(there, case.step[1][:case.request], case.same)
    return there


def never_published(case):
    """No answer said that the Topic is there that the request is about."""
    path, arguments = target(case.step[1][case.request]) if case.step[0] == "http" else target(b"GET /stats?" + case.step[1])
    return "topic" in arguments and arguments["topic"] not in topics(case)


# --- others
def outer_size_wrong(case):
    """The size of an MPUB is not that of the messages in it, as far as they are there."""
    for part in case.step[2]:
        head, _, rest = part.partition(b"\n")
        if head.strip().startswith(b"MPUB") and len(rest) >= 4:
            size, inner = struct.unpack(">i", rest[:4])[0], rest[4:]
            count, at = (struct.unpack(">i", inner[:4])[0], 4) if len(inner) >= 4 else (0, 0)
            for _ in range(min(max(count, 0), len(inner))):
                at += 4 + (struct.unpack(">i", inner[at:at + 4])[0] if at + 4 <= len(inner) else 0)
            if size != at:
                return True
    return False


def chunks_broken(case):
    """The body of the request is in chunks, and they do not end as they should."""
    head, _, rest = case.step[1][case.request].partition(b"\r\n\r\n")
    if not re.search(rb"(?i)\r\ntransfer-encoding: chunked(\r|$)", head):
        return False
    while True:
        line, end, rest = rest.partition(b"\r\n")
        size = line.partition(b";")[0]
        if not end or not re.fullmatch(rb"[0-9a-fA-F]+", size):
            return True
        if int(size, 16) == 0:
            return False
        if rest[int(size, 16):int(size, 16) + 2] != b"\r\n":
            return True
        rest = rest[int(size, 16) + 2:]


def body_too_long(case):
    """The body of the request is in good chunks, and longer than the configuration allows."""
    return not chunks_broken(case) and len(wire.unchunk(case.step[1][case.request].partition(b"\r\n\r\n")[2])[0]) > (5000 if case.script["config"] == "small" else 5242880)


def topic_paused(case):
    """The Topic that the connection subscribed to is paused."""
    name, paused, topic = case.step[1], set(), None
    for what, *arguments in case.script["steps"][:len(case.before)] + [case.step]:
        if what == "http":
            for path, query in map(target, arguments[0]):
                paused = paused | {query.get("topic")} if path == "/topic/pause" else paused - {query.get("topic")} if path in ("/topic/unpause", "/topic/delete") else paused
        elif what == "send" and arguments[0] == name:
            topic = next((p.split()[1].decode("latin-1") for p in arguments[1] if p.startswith(b"SUB ")), topic)
    return topic in paused


# --- repairs: each gives a request without the oddity, or the same
def one_host(request):
    head, end, body = request.partition(b"\r\n\r\n")
    lines, out, dropped = head.split(b"\r\n"), [], False
    for line in lines:
        dropped = line.lower().startswith(b"host:") or dropped and line[:1] in b" \t" and line != b""
        if not dropped:
            out.append(line)
    return b"\r\n".join(out[:1] + [b"Host: h"] + out[1:]) + end + body


def one_length(request):
    return re.sub(rb"(?i)(\r\ncontent-length: *)(\d+), ?\2(?=\r\n)", rb"\1\2", request)


def only_close(request):
    """Of HTTP/1.0 with both."""
    head, end, body = request.partition(b"\r\n\r\n")
    if head.split(b"\r\n")[0].endswith(b"HTTP/1.0") and re.search(rb"(?i)\r\nconnection:[^\r]*close", head):
        head = re.sub(rb"(?i)\r\nconnection: *keep-alive(?=\r\n|$)", b"", head)
    return head + end + body


def no_bad_trailer(request):
    return request.replace(b"0\r\nbad trailer\r\n\r\n", b"0\r\n\r\n") if re.search(rb"(?i)\r\ntransfer-encoding: chunked\r", request) else request


def repaired(script, repairs):
    """The script with every request repaired."""
    def steps():
        for what, *arguments in script["steps"]:
            if what == "http":
                requests = arguments[0]
                for repair in repairs:
                    requests = [repair(r) for r in requests]
                arguments = [requests] + arguments[1:]
            yield (what, *arguments)
    return dict(script, steps=list(steps()))
