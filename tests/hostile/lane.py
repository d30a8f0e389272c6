"""Run hostile programs one after the other and tell what the host saw; a process of its own, as one user, in one profile.

What to do comes as one line of JSON on standard input; one line of JSON for each program goes to standard output.
"""

import asyncio
import ctypes
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2

import sandbox.profile
from sandbox.halted import Halted
from sandbox.image import find_image
from sandbox.limits import Limits
from sandbox.nsjail import Nsjail
from sandbox.round import Round
from sandbox.sandbox import Sandbox
from tests.hostile.case import Case, read_case
from tests.hostile.processes import adopt_orphans, end, reap, strays
from tests.hostile.targets import Targets

LIMITS = Limits(memory_mb=256, cpu_s=1, tmp_mb=8, tmp_inodes=256, time_limit_s=60, wall_s=1.5, rounds=12)
READY = 1
TOOLS = frozenset({"mail.send", "mail.search"})
BINDINGS = {
    "mail": {
        name: f"async def {name}(*, to=None, **others):\n    return await call('mail.{name}', {{'to': to, **others}})\n"
        for name in ("send", "search")
    }
}
HONEST = "import json\n\nanswer = await mail.send(to='honest')\nprint('honest')\nreturn json.dumps([answer, sum(range(10))])\n"
HONEST_RESULT = '["sent", 45]'
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_LONGEST_S = 25.0
_HOST_MB = 96


@dataclass
class Seen:
    """Hold what came out of one program, as the host got it."""

    halts: list[Halted] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    calls: int = 0
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def last(self) -> Halted | None:
        return self.halts[-1] if self.halts else None

    @property
    def everything(self) -> bytes:
        parts = [
            one.round.came + one.output.encode("utf-8", "replace") + repr(one).encode("utf-8", "replace")
            for one in self.halts
        ]
        return b"\n".join(parts)


class Lane:
    """Run programs against one set of targets."""

    def __init__(self, box: Sandbox, targets: Targets) -> None:
        self._box = box
        self._targets = targets
        self._used_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self._own_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def judge(self, case: Case) -> dict[str, Any]:
        """Run one program and return every fact that does not hold."""
        began = time.monotonic()
        watching = asyncio.create_task(self._targets.watch_port()) if "no_listener" in case.holds else None
        seen = await self._run(case.program(self._targets.given()))
        if watching:
            watching.cancel()
        faults = dict(seen.faults)
        checks: dict[str, Callable[[], str | None]] = {
            "ends": lambda: self._ends(case, seen),
            "no_connection": lambda: ", ".join(self._targets.connections()) or None,
            "no_listener": lambda: "something answered on the spare port" if self._targets.answered else None,
            "secret_kept": lambda: ", ".join(self._targets.said(seen.everything)) or None,
            "no_breach": lambda: self._targets.confessed(seen.everything),
            "files_unchanged": lambda: ", ".join(self._targets.changed_files()) or None,
            "memory_bounded": self._outgrown,
            "host_memory_bounded": self._own_outgrown,
            "output_bounded": lambda: _outsized(seen),
            "text_is_text": lambda: _untextual(seen),
            "result_is_json": lambda: _unjson(seen),
            "error_is_one_line": lambda: _unlined(seen),
        }
        faults |= {name: fault for name, check in checks.items() if (fault := check())}
        for name, wait in (
            ("victim_untouched", self._targets.victim_fault),
            ("nothing_left", self._left),
            ("worker_healthy", self._ill),
        ):
            if fault := await wait():
                faults[name] = fault
        self._targets.answered = False
        return {
            "name": case.name,
            "faults": {name: fault[:600] for name, fault in faults.items()},
            "kind": seen.last.kind if seen.last else None,
            "error": seen.last.error if seen.last else None,
            "output": seen.last.output[-400:] if seen.last else "",
            "seconds": round(time.monotonic() - began, 2),
        }

    async def _run(self, source: str) -> Seen:
        seen = Seen()
        start = json.dumps(
            {"source": source, "bindings": BINDINGS, "seed": "0" * 32, "now": 1_700_000_000.0, "calls_from": 0}
        ).encode()
        frame: bytes | None = None
        while len(seen.halts) < 2 * LIMITS.rounds:
            given, key = list(seen.rounds), str(len(seen.rounds)) if seen.rounds else None

            async def before(given: list[Round] = given) -> list[Round]:
                return given

            try:
                async with asyncio.timeout(_LONGEST_S):
                    halted = await self._box.advance(
                        self._box.image_hash,
                        start,
                        key=key,
                        frame=frame,
                        rounds=before,
                        tools=TOOLS,
                        first_call=seen.calls,
                    )
            except TimeoutError:
                seen.faults["in_time"] = f"no answer after {_LONGEST_S} s"
                return seen
            except Exception as error:
                seen.faults["answered"] = repr(error)
                return seen
            seen.halts.append(halted)
            if given != seen.rounds or halted.round.sent != (frame or b""):
                seen.faults["journal_unchanged"] = "the rounds are not those that were given"
            seen.rounds.append(halted.round)
            if halted.kind != "waiting":
                break
            seen.faults |= _undeclared(halted, seen.calls)
            self._box.keep(str(len(seen.rounds)), halted)
            results = [{"i": call.i, "ok": "sent"} for call in halted.calls]
            seen.calls += len(halted.calls)
            frame = json.dumps({"now": 1_700_000_000.0 + len(seen.rounds), "results": results}).encode()
        await self._box.forget("")
        return seen

    async def _ill(self) -> str | None:
        seen = await self._run(HONEST)
        if seen.faults or not seen.last or seen.last.result != HONEST_RESULT or seen.last.output != "honest\n":
            return f"an honest program ended with {seen.faults or seen.last!r}"
        return None

    async def _left(self) -> str | None:
        assert self._targets.victim
        allowed = {self._targets.victim.pid}
        left: dict[int, str] = {}
        for _ in range(40):
            left = strays(os.getpid(), allowed=allowed, jails=READY)
            if not left:
                return None
            await asyncio.sleep(0.05)
        end(list(left))
        await asyncio.sleep(0.05)
        reap(allowed)
        return f"still running: {left}"

    def _ends(self, case: Case, seen: Seen) -> str | None:
        kind = seen.last.kind if seen.last else "nothing"
        return None if case.ends in ("any", kind) else f"{kind} instead of {case.ends}"

    def _outgrown(self) -> str | None:
        before, self._used_kb = self._used_kb, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        most = (LIMITS.memory_mb + LIMITS.tmp_mb) * 1024
        return f"a jail used {self._used_kb // 1024} MB" if self._used_kb > max(before, most) else None

    def _own_outgrown(self) -> str | None:
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._own_kb
        self._own_kb += max(0, grown)
        return f"the host grew by {grown // 1024} MB" if grown > _HOST_MB * 1024 else None


def _undeclared(halted: Halted, first: int) -> dict[str, str]:
    for number, call in enumerate(halted.calls, first):
        fine = call.i == number and type(call.i) is int and call.tool in TOOLS | {"engine.result"}
        if not fine or not isinstance(call.arguments, dict):
            return {"calls_declared": repr(call)[:200]}
    return {} if halted.calls else {"calls_declared": "it waits for nothing"}


def _outsized(seen: Seen) -> str | None:
    for one in seen.halts:
        message = one.error["message"] if one.error else ""
        if (
            len(one.output.encode()) > 3 * LIMITS.output_kept
            or len(one.round.came) > LIMITS.frame_bytes
            or len(message) > 2000
        ):
            return f"{len(one.output)} characters printed, a frame of {len(one.round.came)} bytes, an error of {len(message)}"
    return None


def _untextual(seen: Seen) -> str | None:
    for one in seen.halts:
        try:
            json.dumps(
                [one.result, one.error, one.output, [call.arguments for call in one.calls]], ensure_ascii=False
            ).encode()
        except (ValueError, TypeError, RecursionError) as error:
            return repr(error)
    return None


def _unjson(seen: Seen) -> str | None:
    for one in seen.halts:
        try:
            if json.loads(json.dumps(one.result, allow_nan=False)) != one.result:
                return f"{one.result!r} is not what is read back"
        except (ValueError, TypeError, RecursionError) as error:
            return repr(error)
    return None


def _unlined(seen: Seen) -> str | None:
    for one in seen.halts:
        if one.kind == "crashed":
            fine = one.error and set(one.error) == {"type", "message"} and all(one.error.values())
            if not fine or any(len(text.splitlines()) > 1 for text in (one.error or {}).values()):
                return f"the error is {one.error!r}"
    return None


def become(uid: int) -> None:
    """Give up every right that another user does not have, for good."""
    library = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        library.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    assert library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0


def weaken(folder: Path, targets: Targets) -> None:
    """Let profiles be rendered from the careless template."""
    environment = sandbox.profile._templates()
    environment.loader = jinja2.DictLoader(
        {"code.cfg.j2": Path(__file__).with_name("weak.cfg.j2").read_text(encoding="utf-8")}
    )
    environment.globals.update(targets=str(folder), token=targets.tokens["environment"])
    sandbox.profile._templates = lambda: environment


async def main(asked: dict[str, Any]) -> None:
    folder, images = Path(asked["folder"]), Path(asked["images"])
    image = find_image(asked["image"], images)
    assert image
    nsjail = Nsjail.find(asked["nsjail"])
    cases = [read_case(Path(path)) for path in asked["cases"]]
    adopt_orphans()
    if asked["uid"] != os.geteuid():
        # What is imported late must be here before the files of another user can no longer be read.
        async with Sandbox(
            nsjail=nsjail, image=image, images=images, folder=folder / "before", limits=LIMITS, ready=0
        ) as box:
            warm = Lane.__new__(Lane)
            warm._box = box
            assert (await warm._run(HONEST)).last
        os.chown(folder, asked["uid"], asked["uid"])
        become(asked["uid"])
    targets = Targets(folder, image.path)
    if asked["weak"]:
        weaken(folder, targets)
    async with Sandbox(
        nsjail=nsjail, image=image, images=images, folder=folder / "profiles", limits=LIMITS, ready=READY
    ) as box:
        await targets.start_victim()
        lane = Lane(box, targets)
        try:
            print(json.dumps({"ill": await lane._ill()}), flush=True)
            for case in cases:
                print(json.dumps(await lane.judge(case)), flush=True)
        finally:
            await targets.end_victim()
            targets.close()
    left = strays(os.getpid(), allowed=set(), jails=0)
    end(list(left))
    print(json.dumps({"left": sorted(left.values())}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.stdin.readline())))
