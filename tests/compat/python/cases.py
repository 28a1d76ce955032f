#!/usr/bin/env python3
"""Compatibility cases with pynsq 0.9.1 (tornado 6.0.4) against a running NSQ V2 server on this machine.

    cases.py --tcp HOST:PORT --http HOST:PORT [--only NAME,...] [--nsqd]

--nsqd: the server is nsqd, which samples by chance and has no /lookup.
One line per case: `ok NAME (seconds)` or `FAIL NAME: why`. All cases run side by side in one event loop, each on a Topic of its own.
"""
import argparse, asyncio, json, logging, os, ssl, sys, time, urllib.request

import nsq
import tornado.ioloop

logging.disable(logging.CRITICAL)
PATIENCE = 60       # seconds; only ends what hangs: a machine may be busy, or stand still for seconds


class Failure(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Failure(why)


class Case:
    """What one case works with."""

    def __init__(self, name, args):
        self.topic = "py-%s.%d" % (name, os.getpid())
        self.tcp, self.http, self.secret, self.nsqd = args.tcp, args.http, args.auth_secret, args.nsqd
        self.over = transport_options(args)
        self.asked = {"snappy": args.snappy, "deflate": args.deflate, "tls": bool(args.tls_ca), "authed": bool(args.auth_secret)}
        self.readers, self.seen = [], {}

    async def writer(self, **settings):
        w = nsq.Writer([self.tcp], heartbeat_interval=2, **{**self.over, **settings})
        end = time.monotonic() + PATIENCE
        while not w.conns:
            need(time.monotonic() < end, "the writer does not connect")
            await asyncio.sleep(0.01)
        return w

    def call(self, method, *args):
        """One publish of a Writer as a future of its answer."""
        future = asyncio.get_event_loop().create_future()
        method(*args, callback=lambda conn, data: future.done() or future.set_result(data))
        return asyncio.wait_for(future, PATIENCE)

    async def ok(self, method, *args):
        answer = await self.call(method, *args)
        need(answer == b"OK", "%s: %r" % (method.__name__, answer))

    async def reader(self, channel, handler, **settings):
        """`handler(message, seen)` runs for every message; what came is in self.seen[channel]. Without other settings it is told the server's address."""
        seen = self.seen.setdefault(channel, [])
        before = (await self.stats(channel) or {}).get("client_count", 0)

        def handle(message):
            seen.append((message.id, message.body, message.attempts, time.monotonic()))
            return handler(message, seen)

        options = dict(max_in_flight=100, heartbeat_interval=2, msg_timeout=20, output_buffer_size=4096,
                       output_buffer_timeout=100, max_tries=0, max_backoff_duration=1)
        options.update(self.over)
        options.update(settings)
        if "lookupd_http_addresses" not in options:
            options["nsqd_tcp_addresses"] = [self.tcp]
        self.readers.append(nsq.Reader(message_handler=handle, topic=self.topic, channel=channel, **options))
        await self.until(channel, "subscribed", lambda s: s and s["client_count"] > before)
        return self.readers[-1], seen

    async def document(self):
        def get():
            url = "http://%s/stats?format=json&topic=%s" % (self.http, self.topic)
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)
        return await asyncio.get_event_loop().run_in_executor(None, get)

    async def stats(self, channel):
        for t in (await self.document())["topics"] or []:
            for c in t["channels"] or []:
                if (t["topic_name"], c["channel_name"]) == (self.topic, channel):
                    return c
        return None

    async def need_granted(self, channel):
        """The Channel's consumer and the Topic's producer have all that was asked for and nothing else: a client goes on without it when it is refused."""
        def shown(rows):
            return [{key: row.get(key, False) for key in self.asked} for row in rows]
        consumers = shown((await self.stats(channel))["clients"])
        producers = shown(p for p in (await self.document())["producers"] or [] if p.get("pub_counts", [{}])[0].get("topic") == self.topic)
        need((consumers, producers) == ([self.asked], [self.asked]), "consumers %s and producers %s instead of %s" % (consumers, producers, self.asked))

    async def until(self, channel, what, holds, limit=PATIENCE):
        end = time.monotonic() + limit
        while True:
            s = await self.stats(channel)
            if holds(s):
                return s
            need(time.monotonic() < end, "%s: not within %d s, stats %s" % (what, limit, s))
            await asyncio.sleep(0.02)

    async def drained(self, channel):
        return await self.until(channel, "drained",
                                lambda s: s and s["depth"] + s["in_flight_count"] + s["deferred_count"] == 0)

    async def messages(self, channel, n, limit=PATIENCE):
        end = time.monotonic() + limit
        while len(self.seen[channel]) < n:
            need(time.monotonic() < end, "%d messages after %d s instead of %d" % (len(self.seen[channel]), limit, n))
            await asyncio.sleep(0.01)
        return self.seen[channel]

    def close(self):
        for r in self.readers:
            if r.redist_periodic:       # a reader that has not started yet cannot be closed
                r.close()


def bodies(n):
    return [b"message %05d" % i for i in range(n)]


def need_exactly(seen, n):
    need(sorted(s[1] for s in seen) == bodies(n), "%d messages, not each of %d once" % (len(seen), n))
    need(len({s[0] for s in seen}) == n, "an id came twice")
    need(all(s[2] == 1 for s in seen), "attempts above 1 at the first delivery")


def finish(message, seen):
    return True


async def publish_consume_finish(c):
    await c.reader("c", finish)
    w = await c.writer()
    for b in bodies(50):
        await c.ok(w.pub, c.topic, b)
    need_exactly(await c.messages("c", 50), 50)
    s = await c.drained("c")
    need(s["message_count"] == 50 and s["clients"][0]["user_agent"].startswith("pynsq/"), "stats %s" % s)
    await c.need_granted("c")


async def multi_publish(c):
    await c.reader("c", finish, max_in_flight=1)
    w = await c.writer()
    await c.ok(w.mpub, c.topic, bodies(100))
    need_exactly(await c.messages("c", 100), 100)
    await c.drained("c")


async def pipelined_publishes(c):
    await c.reader("c", finish)
    w = await c.writer()
    answers = await asyncio.gather(*[c.call(w.pub, c.topic, b) for b in bodies(500)])
    need(answers == [b"OK"] * 500, "answers %s" % set(map(repr, answers)))
    need_exactly(await c.messages("c", 500), 500)


async def deferred_publish(c):
    await c.reader("c", finish)
    w = await c.writer()
    sent = time.monotonic()
    await c.ok(w.dpub, c.topic, 3000, b"later")
    await c.ok(w.pub, c.topic, b"now")
    seen = await c.messages("c", 2)
    after = seen[1][3] - sent
    need(seen[0][1] == b"now" and seen[1][1] == b"later", "order %s" % [s[1] for s in seen])
    need(2.95 <= after and seen[1][2] == 1, "after %.3f s with attempts %d" % (after, seen[1][2]))


async def requeue_with_delay(c):
    def handle(message, seen):
        if message.attempts == 1:
            message.enable_async()
            message.requeue(backoff=False, delay=1)
            return None
        return True
    await c.reader("c", handle)
    w = await c.writer()
    await c.ok(w.pub, c.topic, b"again")
    seen = await c.messages("c", 2)
    after = seen[1][3] - seen[0][3]
    need(seen[0][0] == seen[1][0] and seen[1][2] == 2, "second delivery %s" % (seen[1],))
    need(0.99 <= after, "redelivered after %.3f s" % after)
    s = await c.drained("c")
    need(s["requeue_count"] == 1 and s["timeout_count"] == 0, "stats %s" % s)


async def requeue_beyond_an_hour(c):
    """C-100: a delay that the server cuts to its maximum; the connection lives on."""
    def handle(message, seen):
        if message.body == b"late":
            message.enable_async()
            message.requeue(backoff=False, delay=7200)
            return None
        return True
    reader, _ = await c.reader("c", handle)
    w = await c.writer()
    await c.ok(w.pub, c.topic, b"late")
    await c.until("c", "deferred", lambda s: s["deferred_count"] == 1 and s["requeue_count"] == 1)
    await c.ok(w.pub, c.topic, b"message 00000")
    await c.messages("c", 2)
    need(len(reader.conns) == 1, "the connection was lost")


async def backoff(c):
    """Failing handlers take the reader to RDY 0, then RDY 1, then back to full speed."""
    failures = []

    def handle(message, seen):
        if len(failures) < 3:
            failures.append(message.id)
            return False
        return True
    reader, seen = await c.reader("c", handle, requeue_delay=0)
    blocks, original = [], reader._start_backoff_block
    reader._start_backoff_block = lambda: (blocks.append(1), original())
    w = await c.writer()
    await c.ok(w.mpub, c.topic, bodies(20))
    await c.until("c", "all finished", lambda s: s["message_count"] == 20 and s["depth"] + s["in_flight_count"] +
                  s["deferred_count"] == 0)
    need({s[1] for s in seen} == set(bodies(20)), "not every message came")
    need(blocks, "the reader never backed off")
    s = await c.stats("c")
    need(s["requeue_count"] == 3, "requeue_count %d instead of 3" % s["requeue_count"])


async def touch(c):
    def handle(message, seen):
        message.enable_async()

        async def work():
            for _ in range(6):
                await asyncio.sleep(1)
                message.touch()
            message.finish()
        asyncio.ensure_future(work())
    await c.reader("c", handle, msg_timeout=4)
    w = await c.writer()
    await c.ok(w.pub, c.topic, b"slow")
    await c.messages("c", 1)
    s = await c.drained("c")
    need(len(c.seen["c"]) == 1 and s["timeout_count"] == 0, "%d deliveries, stats %s" % (len(c.seen["c"]), s))


async def message_timeout(c):
    def handle(message, seen):
        if message.attempts > 1:
            return True
        message.enable_async()      # never answered
    await c.reader("c", handle, msg_timeout=4)
    w = await c.writer()
    await c.ok(w.pub, c.topic, b"forgotten")
    seen = await c.messages("c", 2)
    after = seen[1][3] - seen[0][3]
    need(seen[1][2] == 2 and seen[0][0] == seen[1][0], "second delivery %s" % (seen[1],))
    need(3.9 < after, "redelivered after %.3f s" % after)
    # A counter is shown once no crash can take it back, which may be a checkpoint later.
    await c.until("c", "one timeout counted", lambda s: s["timeout_count"] == 1 and s["requeue_count"] == 0)


async def fan_out(c):
    await c.reader("a", finish)
    await c.reader("b", finish)
    w = await c.writer()
    await c.ok(w.mpub, c.topic, bodies(60))
    a, b = await c.messages("a", 60), await c.messages("b", 60)
    need_exactly(a, 60)
    need_exactly(b, 60)
    need({s[:2] for s in a} == {s[:2] for s in b}, "the Channels disagree about ids")


async def lookup_and_direct(c):
    """Two readers, one of which finds the server by its own /lookup."""
    w = await c.writer()
    await c.ok(w.pub, c.topic, b"message 00000")        # nobody is told of a Topic that is not there
    await c.reader("direct", finish)
    await c.reader("found", finish, lookupd_http_addresses=["http://" + c.http], lookupd_poll_interval=1, lookupd_poll_jitter=0.0)
    await c.ok(w.mpub, c.topic, bodies(60)[1:])
    for channel in ("direct", "found"):
        need_exactly(await c.messages(channel, 60), 60)
        await c.drained(channel)


async def heartbeats(c):
    reader, _ = await c.reader("c", finish)
    w = await c.writer()
    await asyncio.sleep(6)
    need(len(reader.conns) == 1 and len(w.conns) == 1, "a silent connection was lost")
    await c.ok(w.pub, c.topic, b"message 00000")
    need_exactly(await c.messages("c", 1), 1)


async def refused_publish(c):
    w = await c.writer()
    answer = await c.call(w.pub, "not!a!topic", b"x")
    need(isinstance(answer, nsq.Error) and str(answer).find("E_BAD_TOPIC") >= 0, "answer %r" % (answer,))


async def compression_asked_for(c):
    await c.reader("c", finish, deflate=True)
    w = await c.writer(deflate=True)
    await c.ok(w.mpub, c.topic, bodies(50))
    need_exactly(await c.messages("c", 50), 50)


async def sampling(c):
    """Half of the messages exactly (D-09). nsqd draws for each message, 51 % of them, so there it is a band of five deviations."""
    count, least, most = (1000, 430, 590) if c.nsqd else (100, 50, 50)
    w = await c.writer()
    await c.ok(w.mpub, c.topic, bodies(count))
    await c.reader("c", finish, sample_rate=50)
    await c.drained("c")
    need(least <= len({s[1] for s in c.seen["c"]}) == len(c.seen["c"]) <= most, "%d of %d messages at 50 %%" % (len(c.seen["c"]), count))


async def auth_refresh(c):
    """Grants live for a second: a publish after that makes the server ask again. A wrong secret is refused."""
    await c.reader("c", finish)
    w = await c.writer()
    for i, b in enumerate(bodies(3)):
        if i:
            await asyncio.sleep(1.2)
        await c.ok(w.pub, c.topic, b)
    need_exactly(await c.messages("c", 3), 3)
    if c.secret:
        wrong = nsq.Writer([c.tcp], heartbeat_interval=2, **{**c.over, "auth_secret": "wrong"})
        await asyncio.sleep(1)
        end = time.monotonic() + PATIENCE
        while wrong.conns:
            need(time.monotonic() < end, "a wrong secret stays connected")
            await asyncio.sleep(0.01)


async def ephemeral_channel(c):
    reader, _ = await c.reader("gone#ephemeral", finish)
    w = await c.writer()
    await c.ok(w.pub, c.topic, b"message 00000")
    need_exactly(await c.messages("gone#ephemeral", 1), 1)
    reader.close()
    await c.until("gone#ephemeral", "channel gone", lambda s: s is None)


CASES = [publish_consume_finish, multi_publish, pipelined_publishes, deferred_publish, requeue_with_delay, requeue_beyond_an_hour, backoff, touch,
         message_timeout, fan_out, lookup_and_direct, heartbeats, refused_publish, compression_asked_for, ephemeral_channel, sampling, auth_refresh]


def transport_options(args):
    """What every Writer and Reader of this run is given."""
    options = {"snappy": True} if args.snappy else {"deflate": True} if args.deflate else {}
    if args.auth_secret:
        options["auth_secret"] = args.auth_secret
    if args.tls_ca:
        options.update(tls_v1=True, tls_options={"cert_reqs": ssl.CERT_REQUIRED, "ca_certs": args.tls_ca})
        if args.tls_cert:
            options["tls_options"].update(certfile=args.tls_cert, keyfile=args.tls_key)
    return options


async def run_case(function, args):
    name, started = function.__name__.replace("_", "-"), time.monotonic()
    case = Case(name, args)
    try:
        await asyncio.wait_for(function(case), 4 * PATIENCE)
        print("ok %s (%.1f s)" % (name, time.monotonic() - started), flush=True)
        return True
    except Exception as e:
        print("FAIL %s: %s" % (name, " ".join((str(e) or repr(e)).split())), flush=True)
        return False
    finally:
        case.close()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tcp", required=True)
    parser.add_argument("--http", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--nsqd", action="store_true", help="the server is nsqd")
    parser.add_argument("--snappy", action="store_true")
    parser.add_argument("--deflate", action="store_true")
    for name in ("--tls-ca", "--tls-cert", "--tls-key", "--auth-secret"):
        parser.add_argument(name, default="")
    args = parser.parse_args()
    wanted = set(filter(None, args.only.split(",")))
    chosen = [f for f in CASES if f.__name__.replace("_", "-") in wanted or not wanted and not (args.nsqd and f is lookup_and_direct)]
    results = await asyncio.gather(*[run_case(f, args) for f in chosen])
    sys.stdout.flush()
    os._exit(0 if all(results) else 1)      # readers and writers go on reconnecting otherwise


if __name__ == "__main__":
    asyncio.get_event_loop_policy().get_event_loop()
    loop = tornado.ioloop.IOLoop.current()
    loop.run_sync(main)
