"""Reads live feeds with the websockets package and checks every rule a client meets (page 31 section 6).

    feed_client.py --http 127.0.0.1:PORT --topic T --origin ALLOWED

Prints one line per case, `ok NAME` or `FAIL NAME: why`.
"""
import argparse, asyncio, json, struct, urllib.request

from websockets.asyncio.client import ClientConnection, connect as open_feed
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Opcode

PROTOCOL = "rustqueue.live.v1"
WAIT_SECONDS = 120      # only ends what hangs


class Wrong(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Wrong(why)


def publish(http, topic, body):
    with urllib.request.urlopen(urllib.request.Request("http://%s/pub?topic=%s" % (http, topic), body, method="POST"), timeout=WAIT_SECONDS) as r:
        need(r.read() == b"OK", "publish")


async def receive(feed):
    return await asyncio.wait_for(feed.recv(), WAIT_SECONDS)


async def ready(feed, topic):
    control = json.loads(await receive(feed))
    need(control["type"] == "ready" and control["topic"] == topic and control["start"] == "tail" and control["ack"] == "auto", control)
    need(control["subscription_id"].isdigit(), control)


def connect(args, topic=None, **more):
    return open_feed("ws://%s/v1/ws/topics/%s" % (args.http, topic or args.topic), subprotocols=[PROTOCOL], max_size=None,
                     **{"open_timeout": WAIT_SECONDS, "ping_timeout": WAIT_SECONDS, **more})


class Counting(ClientConnection):
    """Counts the pings of the Broker, which the library answers."""
    pings = 0

    def process_event(self, event):
        self.pings += getattr(event, "opcode", None) is Opcode.PING      # the first event is the answer to the handshake
        super().process_event(event)


def unpack(frame):
    need(isinstance(frame, bytes) and frame[:4] == b"RQW1", "a binary frame")
    header, attempts, timestamp, message_id = struct.unpack(">HHqQ", frame[4:24])
    need(header == 24 and attempts == 1 and message_id > 0 and timestamp > 0, frame[:24].hex())
    return message_id, frame[24:]


async def messages(args):
    """Published after ready, in order, byte for byte, also large and empty-looking ones."""
    async with connect(args) as feed:
        need(feed.subprotocol == PROTOCOL and not feed.protocol.extensions, feed.subprotocol)
        await ready(feed, args.topic)
        bodies = [b"hello", bytes(range(256)), b"\0", b"x" * 126, b"y" * 65536, b"z" * (3 << 20)]
        for body in bodies:
            await asyncio.to_thread(publish, args.http, args.topic, body)
        got = [unpack(await receive(feed)) for _ in bodies]
        need([body for _, body in got] == bodies, [len(body) for _, body in got])
        need(sorted(i for i, _ in got) == [i for i, _ in got] and len({i for i, _ in got}) == len(got), "ids")


async def ping(args):
    async with connect(args) as feed:
        await ready(feed, args.topic)
        await asyncio.wait_for(await feed.ping(), WAIT_SECONDS)


async def kept_alive(args):
    """Pings of the Broker are answered by the library: the next one comes to a feed only that has answered the one before."""
    async with connect(args, ping_interval=None, create_connection=Counting) as feed:
        await ready(feed, args.topic)
        end = asyncio.get_running_loop().time() + WAIT_SECONDS
        while feed.pings < 3:
            need(asyncio.get_running_loop().time() < end, "%d pings" % feed.pings)
            await asyncio.sleep(0.05)
        await asyncio.to_thread(publish, args.http, args.topic, b"still here")
        need(unpack(await receive(feed))[1] == b"still here", "body")


async def control(args):
    async with connect(args) as feed:
        await ready(feed, args.topic)
        await feed.send("hello")
        error = json.loads(await receive(feed))
        need(error["type"] == "error" and error["code"] == "E_WS_CONTROL", error)
        try:
            await receive(feed)
            raise Wrong("no close")
        except ConnectionClosed as closed:
            need(closed.rcvd.code == 1008 and closed.rcvd.reason == "E_WS_CONTROL", str(closed))


async def origins(args):
    async with connect(args, origin=args.origin) as feed:
        await ready(feed, args.topic)
    await refused(args, 403, "E_WS_ORIGIN", origin="http://other.example")


async def refused(args, status, code, topic=None, **more):
    try:
        async with connect(args, topic, **more):
            raise Wrong("accepted")
    except InvalidStatus as error:
        need(error.response.status_code == status, error.response.status_code)
        need(json.loads(error.response.body)["message"] == code, error.response.body)


async def refusals(args):
    await refused(args, 404, "E_BAD_TOPIC", "missing")
    await refused(args, 400, "E_WS_QUERY_FORBIDDEN", args.topic + "?token=x")


CASES = [messages, ping, kept_alive, control, origins, refusals]


def main():
    parser = argparse.ArgumentParser()
    for name in ("--http", "--topic", "--origin"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    for case in CASES:
        try:
            asyncio.run(asyncio.wait_for(case(args), 2 * WAIT_SECONDS))
            print("ok python %s" % case.__name__, flush=True)
        except Exception as error:  # whatever a client library throws is a failed case
            print("FAIL python %s: %s %s" % (case.__name__, type(error).__name__, error), flush=True)


main()
