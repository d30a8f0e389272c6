"""The command `policy learn`: propose lines that stand for what people have approved again and again."""

import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from backstay.authority import principal
from backstay.errors import SettingsInvalid
from backstay.policies.accepted import AcceptedLine
from backstay.policies.learning.evidence import Gathering
from backstay.policies.learning.learning import HOLDS_S, LearningResult, ProposedLine, learn
from backstay.policies.learning.patterns import Pattern
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.yaml_text import written
from gateways.terminal.exit_codes import DONE
from gateways.terminal.flags import Output, OutputFile, duration
from gateways.terminal.policies.testing import facts_of_all
from gateways.terminal.reading import write_text
from gateways.terminal.session import open_store, require_store
from gateways.terminal.terminal import Terminal

_WIDTH = 300
_BY = "backstay policy learn"


async def learn_lines(
    *,
    since: str = "30d",
    user: str | None = None,
    keep: bool = False,
    output: Output = "text",
    output_file: OutputFile = None,
) -> int:
    """Propose the narrowest lines that cover repeated approvals and no rejection, and name unsafe patterns.

    Its output is a part of a policy, as YAML; nothing holds until somebody puts it there, or accepts what was kept.

    Parameters
    ----------
    since
        How far back decisions are looked at, such as 30d or 12h.
    user
        Only decisions about runs for this user.
    keep
        Keep the lines for --user as lines that wait, for `backstay policy accept`.
    """
    settings = Settings.load()
    begins = time.time() - duration(since, "--since")
    if keep and user is None:
        raise SettingsInvalid("--user: name the user whose runs are to obey the lines that are kept")
    require_store(settings)
    async with open_store(settings) as store:
        whose = None if user is None else principal(user)
        gathering = Gathering()
        async for case in store.decided.cases(begins, whose):
            gathering.add(case)
        learned = learn(gathering.evidence(), await store.decided.undos(begins))
        kept = await _keep(settings, store, learned.proposed, whose) if keep and whose is not None else {}
    day = datetime.fromtimestamp(begins, UTC).date().isoformat()
    found = _found(learned, day, kept)
    if output_file is None:
        Terminal().results(output, found, _told(found))
        return DONE
    write_text(output_file, "\n".join([*_told(found)] if output == "text" else [json.dumps(found, indent=2)]) + "\n")
    return DONE


async def _keep(settings: Settings, store: Any, proposed: Iterable[ProposedLine], user: str) -> dict[str, str]:
    """Keep lines as lines that wait; return their ids, as people accept them, by those of the proposals."""
    facts = await facts_of_all(settings, user)
    now = time.time()
    made = {
        each.id: AcceptedLine(
            verdict="allow",
            scope="always",
            tool=each.rule.tool,
            definition=facts[each.rule.tool].definition,
            when=each.rule.when,
            only=each.rule.only,
            user_id=user,
            at=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
            request=_BY,
            expires_at=now + HOLDS_S,
        ).identified()
        for each in proposed
        if each.rule.tool in facts
    }
    await store.accepted_lines.keep([*made.values()])
    return {proposal: line.id for proposal, line in made.items()}


def _found(learned: LearningResult, since: str, kept: dict[str, str]) -> dict[str, Any]:
    until = (datetime.now(UTC) + timedelta(seconds=HOLDS_S)).date().isoformat()
    lines = [
        {
            "line": kept.get(each.id, each.id),
            "rule": _rule_of(each, until),
            "runs": each.runs,
            "approved_by": [one_line(name, 100) for name in each.people],
            "would_have_allowed": each.allowed,
            "asked": each.asked,
            "changed": each.changed,
            "counter_examples": [{"by": one_line(c.by, 100), "arguments": one_line(c.said, 200)} for c in each.counter],
            "kept": each.id in kept,
        }
        for each in learned.proposed
    ]
    return {
        "since": since,
        "decisions": len(learned.evidence.kept) + learned.evidence.left_out,
        "evidence": len(learned.evidence.counted),
        "not_evidence": dict(learned.evidence.reasons.most_common()),
        "left_out": learned.evidence.left_out,
        "lines": lines,
        "more": learned.more,
        "unsafe": [_unsafe(pattern) for pattern in learned.patterns],
    }


def _rule_of(each: ProposedLine, until: str) -> dict[str, Any]:
    when = {} if each.rule.when is None else {"when": each.rule.when}
    return {"tool": each.rule.tool, **when, "only": list(each.rule.only), "until": until}


def _unsafe(pattern: Pattern) -> dict[str, Any]:
    about, names = one_line(pattern.about, 100), ", ".join(one_line(name, 60) for name in pattern.arguments if name)
    words = {
        "hasty": f"{about} approved {pattern.times} of {pattern.of} within 2 seconds, which is too fast to read",
        "edited": f"{about}: people changed {pattern.times} of {pattern.of} calls first"
        + (f", mostly {names}; say so in the prompt or in the tool" if names else ""),
        "undo_fails": f"{about}: the undo of {pattern.times} of {pattern.of} calls failed or ended unknown",
        "never_rejects": f"{about} has decided {pattern.times} times and rejected nothing",
        "never_rejected": f"{about}: asked {pattern.times} times and always approved",
    }
    return {"kind": pattern.kind, "about": about, "times": pattern.times, "of": pattern.of, "text": words[pattern.kind]}


def _told(found: dict[str, Any]) -> Iterator[str]:
    """Yield lines that are a part of a policy as YAML; what is not a line of it is a comment."""
    if not found["decisions"]:
        yield f"# nobody has decided about a call since {found['since']}, so there is nothing to learn from"
    else:
        yield f"# {found['evidence']} approvals of {found['decisions']} decisions since {found['since']} are evidence"
    for why, count in found["not_evidence"].items():
        yield f"#   {count} approvals are none: {why}"
    if found["left_out"]:
        yield f"#   {found['left_out']} decisions were too many to look at; name a shorter time with --since"
    if found["lines"]:
        yield "allow:"
    for line in found["lines"]:
        yield from _line(line)
    if found["decisions"] and not found["lines"]:
        yield "# no line is proposed: nothing was approved often enough that nobody rejected"
    if found["more"]:
        yield f"# {found['more']} further lines are not shown; they cover less"
    if found["unsafe"]:
        yield "# unsafe:"
    for pattern in found["unsafe"]:
        yield _comment(f"#   {pattern['text']}")
    if any(line["kept"] for line in found["lines"]):
        yield "# the lines wait: backstay policy list shows them, backstay policy accept lets them hold"


def _line(line: dict[str, Any]) -> Iterator[str]:
    by = ", ".join(line["approved_by"])
    yield _comment(f"  # line {line['line']}: approved in {line['runs']} runs by {by}")
    changed = f", {line['changed']} of them after a change of text" if line["changed"] else ""
    yield f"  # would have allowed {line['would_have_allowed']} of {line['asked']} calls that people decided{changed}"
    for counter in line["counter_examples"]:
        yield _comment(f"  # not covered, rejected by {counter['by']}: {counter['arguments']}")
    yield f"  - {written(line['rule'])}"


def _comment(text: str) -> str:
    """Return a comment that no text in it ends, in characters that YAML takes everywhere."""
    return one_line(text, _WIDTH).encode("ascii", "backslashreplace").decode()
