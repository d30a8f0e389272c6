"""Match `provider.tool` against patterns of `*` and `?` in bounded time, without a regular expression."""


def matches(pattern: str, text: str) -> bool:
    """Return whether the whole text fits the pattern; `*` is any run of characters, `?` exactly one; case counts."""
    at = position = 0
    star = -1
    resume = 0
    while position < len(text):
        # A star is looked at first: a string that holds a star itself must not be taken for a literal match.
        if at < len(pattern) and pattern[at] == "*":
            star, resume = at, position
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[position]):
            at += 1
            position += 1
        elif star >= 0:
            # Only the last star may grow: earlier ones already took the shortest run, so no choice is ever revisited.
            resume += 1
            at, position = star + 1, resume
        else:
            return False
    return all(sign == "*" for sign in pattern[at:])


def overlap(left: str, right: str) -> bool:
    """Return whether some text fits both patterns."""
    reachable = _closed({0}, right)
    for sign in left:
        if sign == "*":
            reachable = set(range(min(reachable), len(right) + 1))
            continue
        step = {at if right[at] == "*" else at + 1 for at in reachable if _fits(right, at, sign)}
        reachable = _closed(step, right)
        if not reachable:
            return False
    return len(right) in reachable


def _fits(pattern: str, at: int, sign: str) -> bool:
    return at < len(pattern) and (pattern[at] in ("*", "?", sign) or sign == "?")


def _closed(positions: set[int], pattern: str) -> set[int]:
    """Add what can be reached if stars match nothing."""
    closed: set[int] = set()
    for start in positions:
        at = start
        closed.add(at)
        while at < len(pattern) and pattern[at] == "*":
            at += 1
            closed.add(at)
    return closed
