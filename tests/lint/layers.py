#!/usr/bin/env python3
"""Who may include whom, and what core/ may use at all.

base <- io <- {codec, nsq, http} <- storage <- queue <- broker; the worlds see ports only; programs never include each other.
"""
import re
from common import Report, cpp, text, without_comments

LEVEL = {"base": 0, "io": 1, "codec": 2, "http": 2, "ws": 2, "nsq": 2, "wire": 2, "storage": 3, "queue": 4, "broker": 5}

# Third-party headers that core/ may include; everything else in <> must be on the list of standard headers.
LIBRARIES = re.compile(r"fmt/(core|format|compile)\.h|boost/(json|beast/http|beast/core|intrusive|container|unordered|system|utility|asio/buffer)[/.].*"
                       r"|tl/expected\.hpp|isa-l(/crc)?\.h|immintrin\.h|re2/re2\.h|snappy\.h|zlib\.h|openssl/(evp|sha|crypto|rand)\.h")
STANDARD = set("""algorithm array bit cassert charconv cinttypes climits cmath compare concepts cstddef cstdint cstdio cstdlib cstring deque
    functional initializer_list iterator limits list map memory new numeric optional queue ratio set span stack stdexcept string
    string_view tuple type_traits unordered_map unordered_set utility variant vector version exception cerrno system_error""".split())
# What core/ must not say, as tokens of code.
FORBIDDEN = [
    (r"std::(function|regex|shared_ptr|weak_ptr|thread|jthread|mutex|atomic\w*|condition_variable|future|promise|async|random_device|mt19937\w*)\b", "not in core/"),
    (r"std::(shuffle|sample|uniform_\w+_distribution|cout|cerr|clog|chrono|filesystem|ifstream|ofstream|rand)\b", "not in core/"),
    (r"\b(co_await|co_return|co_yield|thread_local)\b", "not in core/"),
    (r"(?<![\w:.>])(getenv|rand|srand|clock_gettime|gettimeofday|fopen|printf|fprintf|usleep)\s*\(", "a call into the outside"),
    (r"\busing\s+namespace\s+std\b", "using namespace std"),
    (r"reinterpret_cast<\s*(std::)?uintptr_t", "a pointer as a number"),
]
NO_FLOATING_POINT = {"io", "nsq", "storage", "queue"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def includes(name):
    source = text(name)
    for m in INCLUDE.finditer(source):
        yield source.count("\n", 0, m.start()) + 1, m[1], m[2]


def core_direction(name):
    layer = name.split("/")[1]
    for line, kind, path in includes(name):
        at = "%s:%d includes %s" % (name, line, path)
        if kind == '"':
            parts = path.split("/")
            if parts[0] != "core":
                yield at + ": core/ includes core/ only, by its whole path"
            elif parts[1] not in LEVEL:
                yield at + ": unknown layer"
            elif parts[1] != layer and LEVEL[parts[1]] >= LEVEL[layer]:
                yield at + ": against the include order"
        elif path not in STANDARD and not LIBRARIES.fullmatch(path):
            yield at + ": not on the list of what core/ may use"


def core_tokens(name):
    source = without_comments(text(name))
    lines = source.splitlines()
    original = text(name).splitlines()
    layer = name.split("/")[1]
    for number, line in enumerate(lines, 1):
        for pattern, why in FORBIDDEN:
            m = re.search(pattern, line)
            if m:
                yield "%s:%d: `%s`: %s" % (name, number, m[0].strip(), why)
        if layer in NO_FLOATING_POINT and re.search(r"\b(float|double)\b", line.replace("on_double(double", "")) and "not a decision" not in original[number - 1]:
            yield "%s:%d: floating point (say `not a decision` in a comment where it only reports)" % (name, number)


def hash_iteration(name):
    """A range-for over something declared as a hash container in the same file or its header."""
    source = without_comments(text(name))
    other = name[:-3] + ".h" if name.endswith(".cc") else None
    try:
        declared = source + (without_comments(text(other)) if other else "")
    except OSError:
        declared = source
    names = set(re.findall(r"(?:unordered_flat_map|unordered_flat_set|unordered_node_map|unordered_map|unordered_set)\s*<[^;{}]*?>\s+(\w+)\s*[;{=]", declared))
    for n in names:
        for m in re.finditer(r"for\s*\([^;)]*:\s*\*?(?:this->)?%s\s*\)" % re.escape(n), source):
            line = source.count("\n", 0, m.start()) + 1
            if "order does not matter" not in "\n".join(text(name).splitlines()[max(0, line - 2):line]):
                yield "%s:%d: iterates the hash container %s (say `order does not matter` beside it if that is so)" % (name, line, n)


def outside(name):
    top = name.split("/")
    for line, kind, path in includes(name):
        if kind != '"':
            continue
        at = "%s:%d includes %s" % (name, line, path)
        to = path.split("/")
        if top[0] == "io":
            if to[0] == "core" and to[1] not in ("base", "io"):
                yield at + ": a world sees core/base and core/io only"
            elif to[0] == "io" and to[1] != top[1]:
                yield at + ": the worlds do not know each other"
            elif to[0] not in ("core", "io"):
                yield at + ": a world sees core/base and core/io only"
        elif top[0] == "ledger" and to[0] not in ("ledger",) and to[:2] != ["core", "base"]:
            yield at + ": the ledger is a model of its own"
        elif top[0] == "bench" and to[0] != "bench" and (to[0] != "core" or to[1] not in ("base", "io", "nsq", "storage")):
            yield at + ": the load generator is a client on ports; it knows the protocol and names, not the Broker"
        elif top[0] == "sim" and (to[:2] == ["io", "real"] or to[0] == "services"):
            yield at + ": the simulator never sees the real world"
        elif top[0] == "services":
            if to[0] == "services" and to[1] != top[1]:
                yield at + ": programs never include each other"
            if to[:2] == ["io", "sim"] or (to[0] == "sim" and top[1] != "rustqueue-sim"):
                yield at + ": only the simulator's program sees the simulator"


report = Report()
core = cpp("core")
report.check("core/ includes lower layers and allowed libraries only", (f for n in core for f in core_direction(n)))
report.check("core/ uses nothing of the outside, and no floating point where it decides", (f for n in core for f in core_tokens(n)))
report.check("core/ does not iterate hash containers", (f for n in core for f in hash_iteration(n)))
report.check("io/, ledger/, bench/, sim/ and services/ include what they may", (f for n in cpp("io", "ledger", "bench", "sim", "services") for f in outside(n)))
report.end()
