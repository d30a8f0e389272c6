"""The report for people who check what agents did: of each run who, what, by which rule, and who decided."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from backstay.shown import markdown_line
from backstay.task.ledger.chain import Chain, Row
from backstay.task.ledger.findings import Findings

_CELL = 400
_DECIDED = ("request_id", "args_digest", "comment", "option", "changed", "left_out", "toggles", "remember")
_DIGITS = 16
_LONGEST_DIFF = 20_000


def report_markdown(chains: Iterable[Chain], findings: Findings, made_at: str) -> str:
    """Return the report as Markdown."""
    lines = ["# SafeNet report", "", f"Store {findings.store}, made at {made_at}.", "", "## Integrity", ""]
    lines += [*(f"- {_cell(line)}" for line in findings.lines), ""]
    lines += [f"Public keys: {', '.join(findings.keys) or 'none'}.", ""]
    for chain in chains:
        lines += [*_run(chain), ""]
    return "\n".join(lines)


def _run(chain: Chain) -> Iterator[str]:
    yield from (f"## Run {_cell(chain.run)}", "")
    if chain.head is not None:
        signed = f"signed at {chain.head.at} with key {chain.head.key}" if chain.head.key else "not signed"
        yield from (f"Head {chain.head.name}, {signed}.", "")
    if not chain.rows:
        yield "Only the head is left: the run was pruned." if chain.pruned else "There are no rows."
        return
    bodies = [(row, _body(row)) for row in chain.rows]
    yield from ("| row | time | what | details | digest |", "|---|---|---|---|---|")
    for row, body in bodies:
        yield f"| {row.n} | {row.at} | {_cell(row.name)} | {_cell(_details(row, body))} | {row.digest[:_DIGITS]} |"
    for row, body in bodies:
        yield from _diffs(row, body)


def _details(row: Row, body: Mapping[str, Any]) -> str:
    """Return what a row says, in one line."""
    match row.kind:
        case "decision":
            return _decision(body)
        case "event":
            ruling = f"; {body['ruling']}" if body.get("ruling") else ""
            return f"{body.get('text', '')}{ruling}"
        case "effect":
            facts = ("tool", "effect", "send", "args_digest", "ruling", "outcome", "undo_shown")
            return _named(body, facts)
        case "request":
            asked = body.get("question") or body.get("request_id", "")
            return f"{asked}; {_named(body, ('rule', 'kind', 'digest', 'decision'))}"
        case "plan":
            return _named(body.get("plan", body), ("id", "plan_id", "title", "version", "state")) + _hash(body)
        case _:
            return json.dumps(body, ensure_ascii=False)


def _decision(body: Mapping[str, Any]) -> str:
    proven = "verified" if body.get("verified") else "not verified"
    told = f"{body.get('by', '')} ({proven}): {body.get('verdict') or body.get('state', '')}"
    more = _named(body, _DECIDED)
    return f"{told}; {more}" if more else told


def _diffs(row: Row, body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the calls of a request, or the steps of a plan, would change, with the hash of each diff."""
    if row.kind == "plan":
        found = [
            (step.get("action", ""), step.get("diff_preview")) for step in body.get("proposal", {}).get("steps", ())
        ]
    else:
        found = [(call.get("tool", ""), call.get("diff")) for call in body.get("calls", ()) if isinstance(call, dict)]
    for tool, diff in found:
        if not isinstance(diff, str) or not diff:
            continue
        sha256 = hashlib.sha256(diff.encode("utf-8", "surrogatepass")).hexdigest()
        yield from ("", f"### Diff of row {row.n}: {_cell(tool)}", "", f"sha256 {sha256}", "")
        yield from (f"    {line}" for line in diff[:_LONGEST_DIFF].splitlines())


def _named(body: Mapping[str, Any], names: Iterable[str]) -> str:
    told = [(name, body[name]) for name in names if body.get(name) not in (None, "", [], {})]
    return ", ".join(
        f"{name} {value if isinstance(value, str | int) else json.dumps(value, ensure_ascii=False)}"
        for name, value in told
    )


def _hash(body: Mapping[str, Any]) -> str:
    return f", sha256 {body['sha256']}" if "sha256" in body else ""


def _body(row: Row) -> dict[str, Any]:
    try:
        said = json.loads(row.body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _cell(text: str) -> str:
    return markdown_line(str(text), _CELL)
