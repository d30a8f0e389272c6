"""The proof that jails confine: every property is tried in real jails, before any program runs."""

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


class Proof(Frozen):
    """Say of every property of a jail whether it is proven here."""

    properties: tuple[Property, ...]
    nsjail: Nsjail
    image: str
    """The hash of the image the jails had."""
    answered_s: float
    """How long a jail took from nothing to its answer."""

    def demand(self) -> None:
        """Raise IsolationUnavailable, with the first cause and fix, unless every required property is proven."""
        missing = [each for each in self.properties if each.required and not each.proven]
        if missing:
            raise IsolationUnavailable(
                f"a jail {missing[0].name}: not proven: {missing[0].cause}; {missing[0].fix}",
                cause=missing[0].cause,
                fix=missing[0].fix,
                missing=tuple(each.name for each in missing),
            )


async def prove(
    nsjail: Nsjail, image: Image, folder: Path, *, limits: Limits | None = None, cgroups: Cgroups | None = None
) -> Proof:
    """Try every property through the profile of programs; the folder takes its configuration file.

    Never raises for what is missing: the proof says it.
    """
    profile = Profile(nsjail, image, limits=limits, cgroups=cgroups or Cgroups(), program=SELF_TEST)
    return await examine(profile, await asyncio.to_thread(profile.start, folder))


async def prove_workspace(
    nsjail: Nsjail, image: Image, folder: Path, workspace: Path, *, limits: Limits, cgroups: Cgroups
) -> Proof:
    """Try every property of the jails that commands get, over a folder that they may only read.

    Never raises for what is missing: the proof says it.
    """
    profile = Profile(nsjail, image, kind="shell", limits=limits, cgroups=cgroups, workspace=workspace)
    return await examine(profile, await asyncio.to_thread(profile.start, folder))


async def examine(profile: Profile, start: list[str]) -> Proof:
    """Try every property of the profile with the command line that starts it, whose program is the self-test."""
    image, arguments = profile.image, interpreter_arguments(SELF_TEST)
    evidence, found = await asyncio.gather(
        # Profiles of commands leave open what is run.
        gather_evidence(start, arguments, named=arguments if profile.kind == "shell" else ()),
        asyncio.to_thread(_hash_of, image),
    )
    if evidence.first.inside is None:
        cause, fix = likely_cause(evidence.first.log, image, profile.cgroups)
        names = [name for name, _, _ in RULES[profile.kind]]
        starts, *others = [Property(name=name, proven=False, cause=cause, fix=fix) for name in (_STARTS, *names)]
    else:
        starts, others = Property(name=_STARTS, proven=True), judge(evidence, profile)
    return Proof(
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
    """Return the caps on a whole jail; they matter most for shells, since a program is one process with limits."""
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
