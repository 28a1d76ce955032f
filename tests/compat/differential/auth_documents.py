"""What an auth server may answer: name -> the document, as it is sent. Each is asked for with its name as the secret (small_probes.py)."""
import json

ALL = [{"topic": ".*", "channels": [".*"], "permissions": ["subscribe", "publish"]}]
DOCUMENTS = {name: json.dumps(dict({"ttl": 60}, **document)).encode() for name, document in {
    "all": {"authorizations": ALL}, "none": {"authorizations": []}, "ttl0": {"ttl": 0, "authorizations": ALL},
    "badword": {"authorizations": [dict(ALL[0], permissions=["publish", "fly"])]}, "badregex": {"authorizations": [dict(ALL[0], topic="(")]},
    "identity": {"identity": "i<d>", "identity_url": "http://u", "authorizations": ALL * 2},
    "named": {"identity": "someone", "identity_url": "http://u", "authorizations": ALL},
    "publish": {"authorizations": [dict(ALL[0], permissions=["publish"])]}, "subscribe": {"authorizations": [dict(ALL[0], permissions=["subscribe"])]},
    "nochannels": {"authorizations": [{"topic": ".*", "permissions": ["publish"]}]}, "other": {"authorizations": [dict(ALL[0], topic="^other$")]}}.items()}

GOOD = b'{"topic":".*","channels":[".*"],"permissions":["subscribe","publish"]}'
BOTH = b'"permissions":["subscribe","publish"]'


def grant(entry):
    return b'{"ttl":60,"authorizations":[%s]}' % entry


def pattern(text):
    return grant(b'{"topic":"%s","channels":["%s",".*"],%s}' % (text, text, BOTH))


# Documents that are wrong, odd or just unusual: `odd NAME` is probed with a SUB, a PUB and a document that follows.
ODD = {
    # entries
    "topic missing": grant(b'{"channels":[".*"],%s}' % BOTH), "topic null": grant(b'{"topic":null,"channels":[".*"],%s}' % BOTH), "topic empty": grant(b'{"topic":"","channels":[".*"],%s}' % BOTH),
    "topic number": grant(b'{"topic":5,"channels":[".*"],%s}' % BOTH), "topic list": grant(b'{"topic":[".*"],"channels":[".*"],%s}' % BOTH), "topic false": grant(b'{"topic":false,"channels":[".*"],%s}' % BOTH),
    "permissions missing": grant(b'{"topic":".*","channels":[".*"]}'), "permissions null": grant(b'{"topic":".*","channels":[".*"],"permissions":null}'),
    "permissions empty": grant(b'{"topic":".*","channels":[".*"],"permissions":[]}'), "permissions text": grant(b'{"topic":".*","channels":[".*"],"permissions":"publish"}'),
    "permissions of null": grant(b'{"topic":".*","channels":[".*"],"permissions":[null]}'), "permissions null behind": grant(b'{"topic":".*","channels":[".*"],"permissions":["publish",null]}'),
    "permissions of number": grant(b'{"topic":".*","channels":[".*"],"permissions":[1]}'), "permissions upper case": grant(b'{"topic":".*","channels":[".*"],"permissions":["PUBLISH"]}'),
    "permissions twice the same": grant(b'{"topic":".*","channels":[".*"],"permissions":["publish","publish"]}'), "permissions empty word": grant(b'{"topic":".*","channels":[".*"],"permissions":[""]}'),
    "permissions object": grant(b'{"topic":".*","channels":[".*"],"permissions":{}}'),
    "no permissions beside some": grant(b'{"topic":".*","channels":[".*"],"permissions":[]},' + GOOD),
    "channels null": grant(b'{"topic":".*","channels":null,%s}' % BOTH), "channels text": grant(b'{"topic":".*","channels":".*",%s}' % BOTH), "channels of null": grant(b'{"topic":".*","channels":[null],%s}' % BOTH),
    "channels of number": grant(b'{"topic":".*","channels":[1],%s}' % BOTH), "channels of empty": grant(b'{"topic":".*","channels":[""],%s}' % BOTH),
    "channels badregex": grant(b'{"topic":".*","channels":["["],%s}' % BOTH),
    "badregex without permissions": grant(b'{"topic":"(","channels":[".*"]}'), "badregex behind what allows": grant(GOOD + b',{"topic":"(","channels":[".*"],%s}' % BOTH),
    "badregex in channels of other": grant(b'{"topic":"^other$","channels":["("],%s}' % BOTH), "bad channel behind what allows": grant(b'{"topic":".*","channels":[".*","("],%s}' % BOTH),
    "entry null": grant(b"null"), "entry empty": grant(b"{}"), "entry null beside": grant(b"null," + GOOD), "entry number": grant(b"1"), "entry list": grant(b"[]"), "entry unknown keys": grant(b'{"topic":".*","x":{"y":[1]},"channels":[".*"],%s}' % BOTH),
    # keys
    "keys upper case": b'{"TTL":60,"AUTHORIZATIONS":[{"TOPIC":".*","CHANNELS":[".*"],"PERMISSIONS":["subscribe","publish"]}]}',
    "keys capital": b'{"Ttl":60,"Identity":"i","Identity_URL":"u","Authorizations":[{"Topic":".*","Channels":[".*"],"Permissions":["subscribe","publish"]}]}',
    "keys of fields": b'{"ttl":60,"identity":"i","identityurl":"u","IdentityURL":"v","authorizations":[%s]}' % GOOD,
    "key escaped": b'{"\\u0074tl":60,"authorizations":[%s]}' % GOOD, "keys with long s": b'{"ttl":60,"authorization\xc5\xbf":[%s]}' % GOOD,
    "key twice": b'{"ttl":0,"ttl":60,"identity":"a","identity":"b","authorizations":[%s]}' % GOOD, "key twice in two cases": b'{"ttl":60,"TTL":0,"authorizations":[%s]}' % GOOD,
    "key twice, then null": b'{"ttl":60,"ttl":null,"identity":"a","identity":null,"authorizations":[%s]}' % GOOD, "key twice, bad first": b'{"ttl":"x","ttl":60,"authorizations":[%s]}' % GOOD,
    "list twice": b'{"ttl":60,"authorizations":[%s,%s],"authorizations":[%s]}' % (GOOD, GOOD, GOOD), "list twice, empty": b'{"ttl":60,"authorizations":[%s],"authorizations":[]}' % GOOD,
    "list twice, null": b'{"ttl":60,"authorizations":[%s],"authorizations":null}' % GOOD,
    "entry keys twice": grant(b'{"topic":"^other$","topic":".*","channels":["^c$"],"channels":[".*"],"permissions":[],%s}' % BOTH),
    "permissions twice, empty last": grant(b'{"topic":".*","channels":[".*"],%s,"permissions":[]}' % BOTH),
    "bad permissions, then good": grant(b'{"topic":".*","channels":[".*"],"permissions":["fly"],%s}' % BOTH),
    "bad expression, then good": grant(b'{"topic":"(","topic":".*","channels":["("],"channels":[".*"],%s}' % BOTH),
    "list twice, then less": b'{"ttl":60,"authorizations":[%s],"authorizations":[{}]}' % GOOD, "list twice, then null inside": b'{"ttl":60,"authorizations":[%s],"authorizations":[null]}' % GOOD,
    "list twice, then part": b'{"ttl":60,"authorizations":[%s],"authorizations":[{"topic":"^other$"}]}' % GOOD, "list twice, shorter between": b'{"ttl":60,"authorizations":[%s,%s],"authorizations":[],"authorizations":[{},{}]}' % (GOOD, GOOD),
    "channels twice, then null inside": grant(b'{"topic":".*","channels":[".*"],"channels":[null],%s}' % BOTH), "channels twice, null between": grant(b'{"topic":".*","channels":["^x$"],"channels":null,"channels":[null],%s}' % BOTH),
    "channels twice, then null behind": grant(b'{"topic":".*","channels":["^x$","^x$"],"channels":["^x$",null],%s}' % BOTH),
    "permissions twice, then null inside": grant(b'{"topic":".*","channels":[".*"],%s,"permissions":[null,null]}' % BOTH), "topic, then null": grant(b'{"topic":"^other$","topic":null,"channels":[".*"],%s}' % BOTH),
    "channels number and good": grant(b'{"topic":".*","channels":[1],"channels":[".*"],%s}' % BOTH),
    # the whole
    "ttl missing": b'{"authorizations":[%s]}' % GOOD, "ttl null": b'{"ttl":null,"authorizations":[%s]}' % GOOD, "ttl text": b'{"ttl":"60","authorizations":[%s]}' % GOOD,
    "ttl 60.0": b'{"ttl":60.0,"authorizations":[%s]}' % GOOD, "ttl 6e1": b'{"ttl":6e1,"authorizations":[%s]}' % GOOD, "ttl -1": b'{"ttl":-1,"authorizations":[%s]}' % GOOD, "ttl -0": b'{"ttl":-0,"authorizations":[%s]}' % GOOD,
    "ttl 2^31": b'{"ttl":2147483648,"authorizations":[%s]}' % GOOD, "ttl 2^63": b'{"ttl":9223372036854775808,"authorizations":[%s]}' % GOOD, "ttl 2^64": b'{"ttl":18446744073709551616,"authorizations":[%s]}' % GOOD,
    "ttl 2^64 - 1": b'{"ttl":18446744073709551615,"authorizations":[%s]}' % GOOD, "ttl 290 years": b'{"ttl":9214646400,"authorizations":[%s]}' % GOOD,
    "identity null": b'{"ttl":60,"identity":null,"identity_url":null,"authorizations":[%s]}' % GOOD, "identity number": b'{"ttl":60,"identity":5,"authorizations":[%s]}' % GOOD,
    "identity_url list": b'{"ttl":60,"identity_url":[],"authorizations":[%s]}' % GOOD, "identity of bytes": b'{"ttl":60,"identity":"a\xff\xfe\xc3b","authorizations":[%s]}' % GOOD,
    "identity escapes": b'{"ttl":60,"identity":"\\u00e9\\n\\"\\\\\\/\\ud83d\\ude00","authorizations":[%s]}' % GOOD, "identity half a pair": b'{"ttl":60,"identity":"a\\ud83db","authorizations":[%s]}' % GOOD,
    "identity control": b'{"ttl":60,"identity":"a\nb","authorizations":[%s]}' % GOOD,
    "list missing": b'{"ttl":60}', "list null": b'{"ttl":60,"authorizations":null}', "list object": b'{"ttl":60,"authorizations":{}}', "list text": b'{"ttl":60,"authorizations":"x"}',
    "no ttl and nothing granted": b"{}", "null": b"null", "list": b"[]", "text": b'"x"', "empty": b"", "blank": b"  ", "number": b"60", "true": b"true",
    "blanks around": b" \r\n\t{ \"ttl\" : 60 , \"authorizations\" : [ %s ] } \n" % GOOD, "something behind": b'{"ttl":60,"authorizations":[%s]} x' % GOOD, "two documents": b'{"ttl":60,"authorizations":[%s]}{}' % GOOD,
    "byte order mark": b'\xef\xbb\xbf{"ttl":60,"authorizations":[%s]}' % GOOD, "comma behind": b'{"ttl":60,"authorizations":[%s],}' % GOOD, "comment": b'{"ttl":60,/**/"authorizations":[%s]}' % GOOD,
    "single quotes": b"{'ttl':60}", "cut": b'{"ttl":60,"authorizations":[%s' % GOOD, "unknown keys": b'{"a":1,"ttl":60,"b":{"ttl":0,"authorizations":[1]},"authorizations":[%s],"c":[[[]]]}' % GOOD,
    "nested 30": b'{"ttl":60,"x":%s,"authorizations":[%s]}' % (b"[" * 30 + b"]" * 30, GOOD), "nested 1000": b'{"ttl":60,"x":%s,"authorizations":[%s]}' % (b"[" * 1000 + b"]" * 1000, GOOD),
    "number of an unknown key": b'{"ttl":60,"x":1e999,"authorizations":[%s]}' % GOOD, "leading zero": b'{"ttl":060,"authorizations":[%s]}' % GOOD,
    # expressions
    "pattern of class": pattern(b"[[:alnum:]]+"), "pattern of Unicode class": pattern(b"\\\\pL|\\\\d"), "pattern named": pattern(b"(?P<n>.)"), "pattern named short": pattern(b"(?<n>.)"), "pattern look-ahead": pattern(b"(?=a)"),
    "pattern reference": pattern(b"(.)\\\\1"), "pattern one byte": pattern(b"\\\\C"), "pattern quoted": pattern(b"\\\\Q.\\\\E|."), "pattern of 1000": pattern(b"x{0,1000}"), "pattern of 1001": pattern(b"x{0,1001}"),
    "pattern of 40 times 40": pattern(b"(x{0,40}){0,40}"), "pattern folded": pattern(b"(?i)[A-Z_0-9]"), "pattern lazy": pattern(b".*?"), "pattern possessive": pattern(b".*+"), "pattern twice repeated": pattern(b"a**"),
    "pattern end": pattern(b"\\\\z"), "pattern Z": pattern(b"\\\\Z"), "pattern word edge": pattern(b"\\\\b"), "pattern escape of a letter": pattern(b"\\\\y"), "pattern of bytes": pattern(b"\xff|."), "pattern NUL": pattern(b"\\u0000|."),
    "pattern octal": pattern(b"\\\\060|."), "pattern hex": pattern(b"\\\\x{10FFFF}|."), "pattern too hex": pattern(b"\\\\x{110000}|."), "pattern empty class": pattern(b"[]a]|."), "pattern range back": pattern(b"[z-a]|."), "pattern flags": pattern(b"(?sm-iU:.)"),
    "pattern unknown flag": pattern(b"(?x).") , "pattern brace": pattern(b"a{,2}|."), "pattern open brace": pattern(b"a{|."), "pattern nested deep": pattern(b"(" * 500 + b"." + b")" * 500), "pattern nested deeper": pattern(b"(" * 1001 + b"." + b")" * 1001),
    "pattern half a pair": pattern(b"\\ud83d|."), "pattern named twice": pattern(b"(?P<n>.)|(?P<n>.)"), "pattern empty name": pattern(b"(?P<>.)"), "pattern R": pattern(b"\\\\R|."), "pattern h": pattern(b"\\\\h|."), "pattern class of word": pattern(b"[\\\\w-]"),
}
DOCUMENTS.update({"odd " + name: document for name, document in ODD.items()})
