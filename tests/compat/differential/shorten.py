"""Makes a failing script shorter as long as it still fails."""
import time


def cuts(script):
    """Scripts with one thing less: a step, or a part of one."""
    steps = script["steps"]
    for i in reversed(range(len(steps))):
        if steps[i][0] != "open" or not any(s[0] in ("send", "last", "ended", "close") and s[1] == steps[i][1] for s in steps):
            yield dict(script, steps=steps[:i] + steps[i + 1:])
    for i, step in enumerate(steps):
        parts = next((k for k, a in enumerate(step) if isinstance(a, list)), None)
        for j in reversed(range(len(step[parts]) if parts else 0)):
            yield dict(script, steps=steps[:i] + [step[:parts] + (step[parts][:j] + step[parts][j + 1:],) + step[parts + 1:]] + steps[i + 1:])


def shorten(script, found, still, seconds):
    """(script, difference): the shortest that `still(script)` gave a difference for, within the time. What is behind the difference goes first."""
    until = time.monotonic() + seconds
    first = dict(script, steps=script["steps"][:found[0] + 1])
    at = still(first)
    if not at:
        return script, found
    script, found = first, at
    shorter = True
    while shorter and time.monotonic() < until:
        shorter = False
        for candidate in cuts(script):
            at = still(candidate)
            if at:
                script, found, shorter = candidate, at, True
                break
            if time.monotonic() >= until:
                break
    return script, found
