"""What the host can see of a program that has run, and what is wrong with it."""

import json
from dataclasses import dataclass, field

from sandbox.limits import Limits
from sandbox.programs.frames import Round
from sandbox.programs.sandbox import RoundOutcome

LIMITS = Limits(memory_mb=256, cpu_s=1, tmp_mb=8, tmp_inodes=256, time_limit_s=60, wall_s=2.5, rounds=12)
TOOLS = frozenset({"mail.send", "mail.search"})
FACTS = frozenset(
    {
        "calls_declared",
        "error_is_one_line",
        "files_unchanged",
        "host_memory_bounded",
        "in_time",
        "journal_unchanged",
        "memory_bounded",
        "no_breach",
        "no_connection",
        "no_listener",
        "nothing_left",
        "output_bounded",
        "result_is_json",
        "secret_kept",
        "text_is_text",
        "victim_untouched",
        "worker_healthy",
    }
)
"""What is checked after every program, whatever it attacks; `answered` and `ends` are checked besides."""


@dataclass
class Seen:
    """Hold what came out of one program, as the host got it."""

    halts: list[RoundOutcome] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    calls: int = 0
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def last(self) -> RoundOutcome | None:
        return self.halts[-1] if self.halts else None

    @property
    def everything(self) -> bytes:
        parts = [
            halt.round.came + halt.output.encode("utf-8", "replace") + repr(halt).encode("utf-8", "replace")
            for halt in self.halts
        ]
        return b"\n".join(parts)


def undeclared(halted: RoundOutcome, first: int) -> dict[str, str]:
    for number, call in enumerate(halted.calls, first):
        fine = call.i == number and type(call.i) is int and call.tool in TOOLS | {"engine.result"}
        if not fine or not isinstance(call.arguments, dict):
            return {"calls_declared": repr(call)[:200]}
    return {} if halted.calls else {"calls_declared": "it waits for nothing"}


def outsized(seen: Seen) -> str | None:
    for halt in seen.halts:
        message = halt.error["message"] if halt.error else ""
        if (
            len(halt.output.encode()) > 3 * LIMITS.output_kept
            or len(halt.round.came) > LIMITS.frame_bytes
            or len(message) > 2000
        ):
            return f"{len(halt.output)} printed, a frame of {len(halt.round.came)}, an error of {len(message)}"
    return None


def untextual(seen: Seen) -> str | None:
    for halt in seen.halts:
        try:
            json.dumps(
                [halt.result, halt.error, halt.output, [call.arguments for call in halt.calls]], ensure_ascii=False
            ).encode()
        except (ValueError, TypeError, RecursionError) as error:
            return repr(error)
    return None


def unjson(seen: Seen) -> str | None:
    for halt in seen.halts:
        try:
            if json.loads(json.dumps(halt.result, allow_nan=False)) != halt.result:
                return f"{halt.result!r} is not what is read back"
        except (ValueError, TypeError, RecursionError) as error:
            return repr(error)
    return None


def unlined(seen: Seen) -> str | None:
    for halt in seen.halts:
        if halt.kind == "crashed":
            fine = halt.error and set(halt.error) == {"type", "message"} and all(halt.error.values())
            if not fine or any(len(text.splitlines()) > 1 for text in (halt.error or {}).values()):
                return f"the error is {halt.error!r}"
    return None
