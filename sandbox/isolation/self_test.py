"""Check that jails confine what runs in them: test every property in real jails before any program runs."""

import asyncio
from pathlib import Path

from backstay.errors import IsolationUnavailable
from backstay.frozen import Frozen
from sandbox.images.image import Image, content_hash
from sandbox.isolation.cause import likely_cause
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.evidence import Evidence, gather_evidence
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import SELF_TEST, Profile, interpreter_arguments
from sandbox.isolation.properties import RULES, Property, judge
from sandbox.limits import Limits

_STARTS = "starts"
_IMAGE = "has the image it is named by"
_CAPS = ("memory", "pids", "cpu")


class SelfTestResult(Frozen):
    """State for each property of a jail whether it was proven on this machine."""

    properties: tuple[Property, ...]
    nsjail: Nsjail
    image: str
    """The hash of the image the jails had."""
    answered_s: float
    """How long a jail took to start and answer."""

    def require_isolation(self) -> None:
        """Raise IsolationUnavailable with the first cause and fix, unless every required property is proven."""
        missing = [each for each in self.properties if each.required and not each.proven]
        if missing:
            raise IsolationUnavailable(
                f"a jail {missing[0].name}: not proven: {missing[0].cause}; {missing[0].fix}",
                cause=missing[0].cause,
                fix=missing[0].fix,
                missing=tuple(each.name for each in missing),
            )


async def run_self_test(
    nsjail: Nsjail, image: Image, folder: Path, *, limits: Limits | None = None, cgroups: Cgroups | None = None
) -> SelfTestResult:
    """Test every property of the jails that programs get; the configuration file is written to the folder.

    A property that is missing does not raise; the result says so.
    """
    profile = Profile(nsjail, image, limits=limits, cgroups=cgroups or Cgroups(), program=SELF_TEST)
    return await check_profile(profile, await asyncio.to_thread(profile.start, folder))


async def run_workspace_self_test(
    nsjail: Nsjail, image: Image, folder: Path, workspace: Path, *, limits: Limits, cgroups: Cgroups
) -> SelfTestResult:
    """Test every property of the jails that commands get, with a workspace that they may only read.

    A property that is missing does not raise; the result says so.
    """
    profile = Profile(nsjail, image, kind="shell", limits=limits, cgroups=cgroups, workspace=workspace)
    return await check_profile(profile, await asyncio.to_thread(profile.start, folder))


async def check_profile(profile: Profile, start: list[str]) -> SelfTestResult:
    """Test every property of the profile with the command line that starts it, whose program is the self-test."""
    image, arguments = profile.image, interpreter_arguments(SELF_TEST)
    evidence, found = await asyncio.gather(
        # The profile of commands does not name a program, so the self-test is passed as the command.
        gather_evidence(start, arguments, named=arguments if profile.kind == "shell" else ()),
        asyncio.to_thread(_hash_of, image),
    )
    if evidence.first.inside is None:
        cause, fix = likely_cause(evidence.first.log, image, profile.cgroups)
        names = [name for name, _, _ in RULES[profile.kind]]
        starts, *others = [Property(name=name, proven=False, cause=cause, fix=fix) for name in (_STARTS, *names)]
    else:
        starts, others = Property(name=_STARTS, proven=True), judge(evidence, profile)
    return SelfTestResult(
        properties=(starts, _unchanged(image, found), *others, *_caps(evidence, profile.cgroups)),
        nsjail=profile.nsjail,
        image=image.hash,
        answered_s=evidence.first.answered_s,
    )


def _hash_of(image: Image) -> str:
    try:
        return content_hash(image.path)
    except OSError as error:
        return f"unreadable: {error.strerror}"


def _unchanged(image: Image, found: str) -> Property:
    if found == image.hash:
        return Property(name=_IMAGE, proven=True)
    return Property(
        name=_IMAGE,
        proven=False,
        cause=f"{image.path} has the content {found}, not {image.hash}",
        fix="remove that folder and run `backstay image build`",
    )


def _caps(evidence: Evidence, cgroups: Cgroups) -> list[Property]:
    """Return the caps on a whole jail; they matter most for commands, because a program is one process with limits."""
    caps: list[Property] = []
    for name in _CAPS:
        label = f"is bounded by a {name} cgroup"
        folder = getattr(cgroups, name)
        if folder is None:
            cause = next((reason for reason in cgroups.missing if reason.startswith(name)), "no cgroup was looked for")
            fix = "delegate cgroups to the worker: Delegate=yes in its unit, or a writable hierarchy in its container"
            caps.append(Property(name=label, proven=False, required=False, cause=cause, fix=fix))
        elif "/NSJAIL." in evidence.first.outside.cgroups or evidence.first.inside is None:
            caps.append(Property(name=label, proven=evidence.first.inside is not None))
        else:
            cause = f"the jail was not in a cgroup below {folder}"
            caps.append(Property(name=label, proven=False, cause=cause, fix="let the worker write there"))
    return caps
