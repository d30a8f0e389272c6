"""The commands `audit verify`, `audit export`, `audit roots` and `ledger key`."""

import json
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from backstay.errors import RunNotFound, SettingsInvalid
from backstay.settings import Settings
from backstay.task.ledger.anchors import Anchors, read_anchors, roots_told
from backstay.task.ledger.chain import time_of
from backstay.task.ledger.evidence import evidence_of, verify_evidence
from backstay.task.ledger.findings import Findings
from backstay.task.ledger.keys import PublicKeys, Signer, read_keys
from backstay.task.ledger.report import report_markdown
from gateways.terminal.exit_codes import DONE, FAILED
from gateways.terminal.flags import Output, OutputFile, duration
from gateways.terminal.reading import write_text
from gateways.terminal.session import open_store, require_store
from gateways.terminal.terminal import Terminal

Keys = Annotated[
    Path | None, Parameter(help="The list of public keys; that of BACKSTAY_LEDGER_PUBLIC_KEYS by default.")
]
OneRun = Annotated[str | None, Parameter(help="Workflow ID of the run; by default all of them.")]
Day = Annotated[str | None, Parameter(help="A day, such as 2026-03-04, by UTC.")]
Format = Annotated[
    Literal["markdown", "json"], Parameter(help="markdown for people; json is evidence, which verifies by itself.")
]
_DAY_S = 86_400


async def verify(
    workflow: OneRun = None,
    *,
    since: str | None = None,
    anchor: Path | None = None,
    evidence: Path | None = None,
    keys: Keys = None,
    output: Output = "text",
) -> int:
    """Verify the ledger: name every row that was changed, is missing or stands elsewhere; needs public keys only.

    The exit code is 1 when something is wrong.

    Parameters
    ----------
    since
        Only runs with a row since then, such as 30d or 2026-03-04.
    anchor
        A file from elsewhere that tells an older copy apart: what `audit roots` printed, a Result, or a memo.
    evidence
        A file that `audit export --format json` wrote, in place of the store.
    """
    settings, terminal = Settings.load(), Terminal()
    listed = _keys(settings, keys)
    if evidence is not None:
        findings = verify_evidence(
            _text(evidence, "--evidence"), str(evidence), listed or None, kept_from=_kept_from(settings)
        )
    else:
        findings = await _verified(settings, workflow, since, listed, anchor)
    terminal.results(output, findings.plain() | {"good": findings.is_good}, findings.lines)
    return DONE if findings.is_good else FAILED


async def export(
    workflow: OneRun = None,
    *,
    from_: Annotated[str | None, Parameter(name="--from", help="The first day, such as 2026-03-04, by UTC.")] = None,
    to: Annotated[str | None, Parameter(help="The last day.")] = None,
    format: Format = "markdown",  # noqa: A002 - the flag's name
    keys: Keys = None,
    output_file: OutputFile = None,
) -> int:
    """Write the report of a run, or of all runs of some days, or the evidence that verifies by itself."""
    settings, terminal = Settings.load(), Terminal()
    listed = _keys(settings, keys)
    require_store(settings)
    made_at = time_of(time.time())
    async with open_store(settings) as store:
        names = await _names(store, workflow) if workflow else await store.chains.holding(*_days(from_, to))
        findings = await store.auditing.verify(listed, names=names, kept_from=_kept_from(settings))
        first_root = next(iter(await store.roots.all()), None)
        chains = [chain async for chain in store.chains.read(names)]
    if format == "json":
        told = evidence_of(findings.store, chains, listed, made_at, first_root)
        text = json.dumps(told, indent=1, ensure_ascii=True)
    else:
        text = report_markdown(chains, findings, made_at)
    _write(terminal, text, output_file)
    return DONE if findings.is_good else FAILED


async def roots(*, since: Day = None, output_file: OutputFile = None) -> int:
    """Print the daily roots over all heads, to be kept where nobody can change them: an anchor for `audit verify`."""
    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with open_store(settings) as store:
        found = await store.roots.all("" if since is None else _day(since, "--since").isoformat())
        _write(terminal, json.dumps(roots_told(store.identity.id, found)), output_file)
    return DONE


async def key(*, public: bool = False) -> int:
    """Make a new key for BACKSTAY_LEDGER_KEY, and the line for the list of public keys.

    Parameters
    ----------
    public
        Make none: print the line for the list, signing from today, of the BACKSTAY_LEDGER_KEY that is set here.
    """
    terminal = Terminal()
    if public:
        terminal.result(_line(Signer(_set_key(Settings.load()))))
        return DONE
    text, signer = Signer.make()
    terminal.result(f"BACKSTAY_LEDGER_KEY={text}")
    terminal.result(_line(signer))
    terminal.say("Give the first line to workers in the runs role only.", "dim")
    terminal.say(f"The second one is public: add it to the list of keys. Heads name it as {signer.id}.", "dim")
    return DONE


def _line(signer: Signer) -> str:
    """Return the line for the list of public keys, from today."""
    return f"{signer.public} {datetime.now(UTC).date().isoformat()}"


def _set_key(settings: Settings) -> str:
    if settings.ledger_key is None:
        raise SettingsInvalid("BACKSTAY_LEDGER_KEY: not set here; run this where workers have it")
    return settings.ledger_key.get_secret_value()


async def _verified(
    settings: Settings, workflow: str | None, since: str | None, listed: PublicKeys, anchor: Path | None
) -> Findings:
    require_store(settings)
    anchors: Anchors | None = None if anchor is None else read_anchors(_text(anchor, "--anchor"), str(anchor))
    async with open_store(settings) as store:
        return await store.auditing.verify(
            listed,
            names=None if workflow is None else await _names(store, workflow),
            since="" if since is None else _moment(since),
            kept_from=_kept_from(settings),
            anchors=anchors,
            where=str(anchor),
        )


async def _names(store: Any, workflow: str) -> list[str]:
    """Return the runs of a workflow id; raises RunNotFound."""
    found = await store.chains.of_workflow(workflow)
    if not found:
        raise RunNotFound(f"workflow: the ledger of this store knows no run {workflow}")
    return found


def _write(terminal: Terminal, text: str, output_file: Path | None) -> None:
    if output_file is None:
        terminal.result(text)
    else:
        write_text(output_file, text)


def _keys(settings: Settings, named: Path | None) -> PublicKeys:
    path = named or settings.ledger_public_keys
    return PublicKeys(()) if path is None else read_keys(_text(path, "--keys"), str(path))


def _kept_from(settings: Settings) -> str:
    return time_of(time.time() - settings.ledger_days * _DAY_S)


def _text(path: Path, flag: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{flag}: {path} cannot be read: {error}") from None


def _moment(text: str) -> str:
    """Return the time that `--since` names: a day, or how long ago."""
    if "-" in text:
        return _day(text, "--since").isoformat()
    return time_of(time.time() - duration(text, "--since"))


def _day(text: str, flag: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SettingsInvalid(f"{flag}: {text[:40]!r} is not a day; write one such as 2026-03-04") from None


def _days(first: str | None, last: str | None) -> tuple[str, str]:
    """Return the times from which, and before which, rows are looked for."""
    begins = "" if first is None else _day(first, "--from").isoformat()
    ends = date.max if last is None else _day(last, "--to") + timedelta(days=1)
    return begins, ends.isoformat()
