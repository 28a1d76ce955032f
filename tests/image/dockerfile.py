"""Reads the Dockerfile: instructions with their words, stages with their packages."""
import json, pathlib, shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]


def instructions():
    """(name, argument text) of every instruction, continuation lines joined, comments dropped."""
    out, text = [], ""
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.lstrip().startswith("#") or not (text or line.strip()):
            continue
        text += line.rstrip()
        if text.endswith("\\"):
            text = text[:-1] + " "
            continue
        name, argument = text.split(None, 1)
        out.append((name.upper(), argument.strip()))
        text = ""
    return out


def words(argument):
    """Of the JSON form or of the plain one."""
    return json.loads(argument) if argument.startswith("[") else shlex.split(argument)


def stages():
    """A list of (name or None, base, instructions of that stage)."""
    out = []
    for name, argument in instructions():
        if name == "FROM":
            parts = argument.split()
            out.append((parts[2] if len(parts) == 3 else None, parts[0], []))
        else:
            out[-1][2].append((name, argument))
    return out


def packages(steps):
    """What the `apt-get install` of a stage names."""
    found = []
    for name, argument in steps:
        if name == "RUN" and "apt-get install" in argument:
            listed = argument.split("apt-get install", 1)[1].split("&&")[0]
            found += [word for word in listed.split() if not word.startswith("-")]
    return found
