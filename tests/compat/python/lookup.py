#!/usr/bin/env python3
"""Asks a nsqlookupd for a Topic's producers every second with pynsq 0.9.1 and prints N bodies, one a line; the line before them says
that it has asked.

    lookup.py --lookup HOST:PORT --topic T --count N
"""
import argparse, logging, os, sys

import nsq
import tornado.ioloop

logging.disable(logging.CRITICAL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lookup", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--count", type=int, required=True)
    args = parser.parse_args()
    loop, bodies = tornado.ioloop.IOLoop.current(), []

    def handle(message):
        bodies.append(message.body.decode())
        if len(bodies) == args.count:
            loop.add_callback(loop.stop)
        return True

    nsq.Reader(message_handler=handle, topic=args.topic, channel="python", lookupd_http_addresses=["http://" + args.lookup],
               lookupd_poll_interval=1, lookupd_poll_jitter=0.0, max_in_flight=10)
    loop.call_later(1, lambda: print("asking", flush=True))      # it asks as soon as the loop runs
    loop.call_later(180, loop.stop)
    loop.start()
    print("\n".join(bodies), flush=True)
    os._exit(0 if len(bodies) == args.count else 1)


if __name__ == "__main__":
    sys.exit(main())
