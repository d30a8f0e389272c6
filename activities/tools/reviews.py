"""Check what a plan has done: in jails over the workspace, in its files, and in the answers of read-only tools."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from activities.resources import Activities
from activities.retrying import implements, tell_progress
from backstay import calls
from backstay.errors import Final, InternalError
from backstay.plans.review import (
    RESULT,
    CheckResult,
    CheckRule,
    ExpectedArtifact,
    Review,
    judge_answer,
    score_of,
)
from backstay.shown import one_line
from backstay.tools.tool import BUILTIN
from toolbox.schema import CheckBounds, compile_schema, fault_of

_NO_WORKSPACE = "this run has no workspace; a plan whose files are checked names one in `workspace`"
_SCHEMA = "the schema of the check"
_BOUNDS = CheckBounds(seconds=3.0, rules=float("inf"), faults=100)
_PART = 256 << 10
_MOST_FILE = 2 << 20
_FILE_S = 20.0
_AT_ONCE = 10
_MOST_LINES = 50


@dataclass
class Report:
    """Collect what a check found."""

    counted: int = 0
    failed: int = 0
    lines: list[str] = field(default_factory=list)
    printed: str = ""

    def add(self, line: str) -> None:
        """Count a fault."""
        self.failed += 1
        if len(self.lines) < _MOST_LINES:
            self.lines.append(line)


class CannotCheck(Exception):
    """The check could not be made; the text says why."""


class Reviews(Activities):
    """Implement `review`."""

    @implements(calls.review)
    async def review(self, ask: calls.ReviewWork) -> Review:
        """Make every check, one after the other; one that cannot be made counts as 0 and says why."""
        await self.begin(ask)
        checks: list[CheckResult] = []
        for place, rule in enumerate(ask.rules.checks):
            tell_progress(f"{rule.name}, check {place + 1} of {len(ask.rules.checks)}")
            checks.append(await self._checked(ask, place, rule))
        return Review.of(ask.rules.threshold, checks)

    async def _checked(self, ask: calls.ReviewWork, place: int, rule: CheckRule) -> CheckResult:
        known: dict[str, Any] = {"name": rule.name, "weight": rule.weight, "critical": rule.critical}
        try:
            report = await self._report(ask, place, rule)
        except InternalError:
            raise
        except (CannotCheck, Final) as error:
            why = str(error) if isinstance(error, CannotCheck) else f"{type(error).__name__}: {error}"
            return CheckResult(**known, error=one_line(await self.records.text(ask.run, why), 500))
        score = score_of(rule.name, report.counted, report.failed)
        kept = await self.records.keep(ask.run, f"review.{rule.name}", vars(report) | {"score": score}, "review")
        found = "" if score == 1 else one_line(await self.records.text(ask.run, "; ".join(report.lines[:5])), 400)
        return CheckResult(**known, score=score, ref=kept.ref, found=found)

    async def _report(self, ask: calls.ReviewWork, place: int, rule: CheckRule) -> Report:
        if rule.name == "custom":
            return await self._custom(ask, place, rule)
        if not ask.workspace:
            raise CannotCheck(_NO_WORKSPACE)
        if rule.name == "artifacts":
            return await self._artifacts(ask, rule)
        if rule.name == "schema":
            return await self._schema(ask, rule)
        names = rule.modules if rule.name == "import" else rule.paths or (".",)
        found = await self._in_workspace(ask, "check", rule.timeout_s, name=rule.name, names=list(names))
        return Report(**found)

    async def _in_workspace(self, ask: calls.ReviewWork, tool: str, seconds: float, **arguments: Any) -> dict[str, Any]:
        said = await self.resources.workspaces.call(
            workspace=ask.workspace,
            place=ask.workspace_place,
            run=ask.run,
            tool=tool,
            arguments=arguments,
            seconds=seconds,
        )
        if "ok" not in said:
            raise CannotCheck(said["error"])
        return said["ok"]

    async def _artifacts(self, ask: calls.ReviewWork, rule: CheckRule) -> Report:
        """Compare files with what they must be."""
        expected = rule.expected or tuple((await self._written(ask)).values())
        if not expected:
            raise CannotCheck("no step says that it wrote a file, and the check names none in `expected`")
        report = Report(counted=len(expected))
        for start in range(0, len(expected), _AT_ONCE):
            some = expected[start : start + _AT_ONCE]
            found = await self._in_workspace(ask, "measure", _FILE_S, paths=[wanted.path for wanted in some])
            for wanted, file in zip(some, found["files"], strict=True):
                if (fault := _other_than(wanted, file)) is not None:
                    report.add(fault)
        return report

    async def _written(self, ask: calls.ReviewWork) -> dict[str, ExpectedArtifact]:
        """Return what the steps of the plan say they wrote; a later step counts more."""
        written: dict[str, ExpectedArtifact] = {}
        for _, ref in sorted(ask.results.items()):
            record, shown = await self.records.record(ask.run, ref), await self.records.shown(ask.run, ref)
            if str(record["label"]).partition(".")[0] in BUILTIN and isinstance(shown, dict):
                for change in shown.get("changes", ()):
                    written.pop(change["path"], None)
                for file in shown.get("artifacts", [shown] if "sha256" in shown else []):
                    known = _known(file)
                    written[known.path] = known
        return written

    async def _schema(self, ask: calls.ReviewWork, rule: CheckRule) -> Report:
        """Check JSON files against the schema."""
        validator = await asyncio.to_thread(_validator, rule)
        report = Report()
        for path in rule.paths:
            report.counted += 1
            try:
                fault = await asyncio.to_thread(_misfit, await self._read(ask, path), validator, path)
            except CannotCheck as error:
                fault = str(error)
            if fault is not None:
                report.add(fault)
        return report

    async def _read(self, ask: calls.ReviewWork, path: str) -> str:
        """Return the whole text of a file."""
        parts: list[str] = []
        offset: int | None = 0
        while offset is not None:
            if offset > _MOST_FILE:
                raise CannotCheck(f"{path}: it is larger than {_MOST_FILE} bytes")
            part = await self._in_workspace(
                ask, "read_file", _FILE_S, path=path, offset=offset, limit=_PART, encoding="utf-8"
            )
            parts.append(part["content"])
            offset = part["next_offset"]
        return "".join(parts)

    async def _custom(self, ask: calls.ReviewWork, place: int, rule: CheckRule) -> Report:
        """Judge the answer of the check's tool, which has been called by now."""
        result = ask.answers.get(place)
        if result is None or result.ref is None or not result.success:
            why = "its tool was not called" if result is None else result.error or "its tool gave no answer"
            raise CannotCheck(f"{rule.tool}: {why}")
        answer = await self.records.shown(ask.run, result.ref)
        report = Report(counted=1)
        holds, why = judge_answer(rule, answer)
        if holds and rule.value_schema is not None:
            validator = await asyncio.to_thread(_validator, rule)
            why = await asyncio.to_thread(_fault, answer, validator, RESULT) or ""
        if why:
            report.add(f"{rule.tool}: {why}")
        return report


def _known(file: Any) -> ExpectedArtifact:
    try:
        return ExpectedArtifact.model_validate(file)
    except ValidationError:
        name = one_line(str(file.get("path")), 100)
        raise CannotCheck(f"a file with the name {name!r} cannot be found again; name it in `expected`") from None


def _other_than(wanted: ExpectedArtifact, file: Mapping[str, Any]) -> str | None:
    """Return how a file differs from what it must be, or None."""
    if "error" in file:
        return str(file["error"])
    if wanted.size not in (None, file["size"]):
        return f"{wanted.path}: it has {file['size']} bytes, not {wanted.size}"
    if wanted.sha256 not in (None, file["sha256"]):
        return f"{wanted.path}: its SHA-256 is {file['sha256']}, not {wanted.sha256}"
    return None


def _validator(rule: CheckRule) -> Any:
    """Return what checks values against the rule's schema; raises CannotCheck for a schema that cannot be used."""
    validator = compile_schema(rule.value_schema, called=_SCHEMA)
    if isinstance(validator, str):
        raise CannotCheck(validator)
    return validator


def _misfit(text: str, validator: Any, path: str) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"{path}: it is not JSON: {one_line(str(error), 200)}"
    return _fault(value, validator, path)


def _fault(value: Any, validator: Any, root: str) -> str | None:
    return fault_of(validator, value, root=root, called=_SCHEMA, bounds=_BOUNDS)
