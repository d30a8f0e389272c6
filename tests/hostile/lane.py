"""Run hostile programs one after the other and tell what the host saw: one process, one user, one profile.

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
from pathlib import Path
from typing import Any

import jinja2

import sandbox.isolation.profile
from backstay.errors import ProgramDiverged, SandboxLost
from sandbox.images.image import find_image
from sandbox.isolation.nsjail import Nsjail
from sandbox.programs.frames import Round
from sandbox.programs.sandbox import Sandbox
from tests.hostile.case import CORPUS, Case, read_case
from tests.hostile.facts import LIMITS, TOOLS, Seen, outsized, undeclared, unjson, unlined, untextual
from tests.hostile.processes import adopt_orphans, end, reap, strays
from tests.hostile.targets import Targets

READY = 1
BINDINGS = {
    "mail": {
        name: f"async def {name}(*, to=None, **others):\n    return await call('mail.{name}', {{'to': to, **others}})\n"
        for name in ("send", "search")
    }
}
HONEST = "answer = await mail.send(to='honest')\nprint('honest')\nreturn [answer, sum(range(10))]\n"
HONEST_RESULT = ["sent", 45]
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_LONGEST_S = 25.0
_OFTEN, _DEEP = 5, 20
_HOST_MB = 96


class Lane:
    """Run programs against one set of targets."""

    def __init__(self, box: Sandbox, targets: Targets) -> None:
        self._box = box
        self._targets = targets
        self._used_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self._own_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._judged = 0

    async def judge(self, case: Case, *, last: bool = False) -> dict[str, Any]:
        """Run one program and return every fact that does not hold.

        What takes long to look at is looked at after some programs only: it may have been broken by one before.
        """
        began = time.monotonic()
        self._judged += 1
        deep = last or self._judged % _DEEP == 0
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
            "files_unchanged": lambda: ", ".join(self._targets.changed_files(image=deep)) or None,
            "memory_bounded": self._outgrown,
            "host_memory_bounded": self._own_outgrown,
            "output_bounded": lambda: outsized(seen),
            "text_is_text": lambda: untextual(seen),
            "result_is_json": lambda: unjson(seen),
            "error_is_one_line": lambda: unlined(seen),
        }
        faults |= {name: fault for name, check in checks.items() if (fault := check())}
        for name, wait in (
            ("victim_untouched", self._targets.victim_fault),
            ("nothing_left", self._left),
            ("worker_healthy", self._ill),
        ):
            if (name != "worker_healthy" or deep or self._judged % _OFTEN == 0) and (fault := await wait()):
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
            seen.faults |= undeclared(halted, seen.calls)
            self._box.keep(str(len(seen.rounds)), halted)
            results = [{"i": call.i, "ok": "sent"} for call in halted.calls]
            seen.calls += len(halted.calls)
            frame = json.dumps({"now": 1_700_000_000.0 + len(seen.rounds), "results": results}).encode()
        else:
            seen.faults["in_time"] = f"it went on for {len(seen.halts)} rounds"
        await self._box.forget("")
        await self._replay(seen, start)
        return seen

    async def _replay(self, seen: Seen, start: bytes) -> None:
        """Replay what was recorded in another jail: it leads there again or is refused by name, and nothing else."""
        if len(seen.rounds) < 2:
            return
        try:
            async with asyncio.timeout(_LONGEST_S):
                await self._box.verify(self._box.image_hash, start, seen.rounds[:-1], tools=TOOLS)
        except (ProgramDiverged, SandboxLost):
            pass
        except TimeoutError:
            seen.faults["in_time"] = "replaying it does not end"
        except Exception as error:
            seen.faults["answered"] = f"when replayed: {error!r}"

    async def _ill(self) -> str | None:
        """Run an honest program, live and replayed, and return what is wrong with its end."""
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
    environment = sandbox.isolation.profile._templates()
    environment.loader = jinja2.DictLoader(
        {"code.cfg.j2": Path(__file__).with_name("weak.cfg.j2").read_text(encoding="utf-8")}
    )
    environment.globals.update(targets=str(folder), token=targets.tokens["environment"])
    sandbox.isolation.profile._templates = lambda: environment


def tell(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def main(asked: dict[str, Any]) -> None:
    folder, images = Path(asked["folder"]), Path(asked["images"])
    image = find_image(asked["image"], images)
    assert image
    nsjail = Nsjail.find(asked["nsjail"])
    cases = [read_case(CORPUS / f"{name}.py") for name in asked["cases"]]
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
            tell({"ill": await lane._ill()})
            for case in cases:
                tell(await lane.judge(case, last=case is cases[-1]))
        finally:
            await targets.end_victim()
            targets.close()
    left = strays(os.getpid(), allowed=set(), jails=0)
    end(list(left))
    tell({"left": sorted(left.values())})


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.stdin.readline())))
