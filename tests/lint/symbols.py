#!/usr/bin/env python3
"""core/ does not even link to the outside: every undefined symbol of librq_core.a stands on this list.  symbols.py build/dev/librq_core.a

No clock, file, socket, thread, environment or random number is on it. A new entry is a decision about determinism: say in its group
why it cannot reach outside.
"""
import re, subprocess, sys
from common import Report

ALLOWED = [
    # memory and text, by value
    r"mem(cpy|move|set|cmp|chr|rchr)", r"str(len|cmp|ncmp|chr|rchr|ncpy|str|nlen)", r"__mem\w+_chk", r"bcmp", r"vsnprintf|snprintf|__snprintf_chk|__vsnprintf_chk",
    r"operator (new|delete)(\[\])?", r"malloc|free|calloc|realloc|aligned_alloc",
    # arithmetic that the compiler puts into functions
    r"__(popcount|clz|ctz|mul|u?div|u?mod|u?divmod|ashl|ashr|lshr)[dst]i[234]",
    # which instructions the processor has: chooses between two ways to the same result (core/base/crc32c.cc)
    r"__cpu_model", r"__cpu_indicator_init",
    # the C++ runtime: exceptions that libraries may throw, type information, static initialisation
    r"__cxa_\w+", r"_Unwind_\w+", r"__gxx_personality_v0", r"__dso_handle", r"__dynamic_cast", r"_GLOBAL_OFFSET_TABLE_", r"__stack_chk_fail", r"__tls_get_addr",
    r"(vtable|typeinfo|typeinfo name|VTT) for (__cxxabiv1::.*|std::.*(exception|error|argument|range|cast|alloc|failure).*|boost::(json|system|beast|container|core|source_location).*|fmt::.*)",
    r"abort", r"__assert_fail", r"std::terminate", r"std::__throw_\w+", r"std::uncaught_exceptions?", r"std::rethrow_exception|std::current_exception|std::__exception_ptr::.*",
    # the standard library's values: strings, lists, number conversion, errors as values
    r"std::(__cxx11::)?basic_string.*", r"std::(exception|logic_error|runtime_error|length_error|out_of_range|invalid_argument|bad_alloc|range_error|overflow_error|domain_error|underflow_error|bad_\w+|system_error)::.*",
    r"std::(_V2::)?(error_category|error_code|generic_category|system_category|error_condition).*", r"std::__detail::_(List|Prime|Hash)\w*.*", r"std::_Rb_tree_\w+.*",
    r"std::(from_chars|to_chars)", r"std::_Hash_bytes", r"std::pmr::.*", r"std::nothrow", r"strerror_r", r"__errno_location",
    # pure libraries
    r"fmt::v\d+::.*", r"(vtable for )?boost::json::.*", r"boost::(beast::http|system|container|core|throw_exception|exception_detail|assertion_failed|asio::(buffer|const_buffer|mutable_buffer)).*",
    r"boost::beast::.*", r"crc32_iscsi|crc32_\w+", r"snappy::.*|snappy_\w+", r"(in|de)flate\w*|crc32(_combine\w*)?|adler32\w*|zlibVersion|compressBound", r"(EVP|SHA\d*|MD5|HMAC|CRYPTO_memcmp)_?\w*",
    r"re2::.*",
]
ALLOWED_RE = re.compile("(?:%s)" % "|".join(ALLOWED))
OURS = re.compile(r"(vtable for |typeinfo for |typeinfo name for |guard variable for |non-virtual thunk to |construction vtable for |VTT for )?rq::")


def names(*flags):
    out = subprocess.run(["nm", "-C", *flags, sys.argv[1]], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        m = re.match(r"^[0-9a-f ]{16} ([A-Za-z]) (.+)$", line)
        if m:
            yield m[1], m[2]


def plain(symbol):
    """Without parameters and template arguments: what the list speaks about."""
    s = re.sub(r"\[abi:\w+\]", "", symbol)
    s = re.sub(r"\(anonymous namespace\)", "{anonymous}", s)
    s = s.split("(")[0] if not s.startswith("operator") else re.match(r"operator \w+(\[\])?", s)[0]
    while re.search(r"<[^<>]*>", s):
        s = re.sub(r"<[^<>]*>", "", s)
    return re.sub(r"^(?:[\w:&* ]+ )?(?=(std|fmt|boost|snappy|re2|rq)::)", "", s) if not re.match(r"(vtable|typeinfo|VTT|guard|non-virtual|construction)", s) else s


defined = {symbol for kind, symbol in names("--defined-only")}
outside = {}
for kind, symbol in names("--undefined-only"):
    if symbol in defined:
        continue
    name = plain(symbol)
    if not ALLOWED_RE.fullmatch(name):
        outside.setdefault(name, symbol)
report = Report()
report.check("librq_core.a defines everything of its own", ("%s" % s for n, s in sorted(outside.items()) if OURS.match(n)))
report.check("librq_core.a reaches nothing of the outside", ("%s" % s for n, s in sorted(outside.items()) if not OURS.match(n)))
report.end()
