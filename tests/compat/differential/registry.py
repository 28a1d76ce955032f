"""The list of probes: name, the pair of servers it runs against, and what it does."""

PROBES = []


def probe(name, server="plain"):
    def keep(run):
        PROBES.append((name, server, run))
        return run
    return keep


def raw(name, *parts, server="plain", magic=b"  V2"):
    """Bytes in one segment, the end of writing, everything that comes back. `{t}` in a part is the probe's own Topic."""
    def run(p):
        p.once(*(part.replace(b"{t}", p.topic) for part in parts), magic=magic)
    PROBES.append((name, server, run))


# Behind a script: says whether the connection went on.
ALIVE = b"PUB alive\n\x00\x00\x00\x01x"
