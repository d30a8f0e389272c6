"""The proof that jails confine: every property tried through the profile that programs get, before any program runs."""

import asyncio
from pathlib import Path

from backstay.errors import IsolationUnavailable
from backstay.frozen import Frozen
from sandbox.images.image import Image, content_hash
from sandbox.isolation.cause import likely_cause
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.evidence import Evidence, gather_evidence
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import (
    SELF_TEST,
    command,
    environment,
    interpreter_arguments,
    outside_uid,
    render_profile,
)
from sandbox.isolation.properties import RULES, WORKSPACE_RULES, Expected, Property, Rule, judge, unproven
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

    @property
    def isolated(self) -> bool:
        """Whether programs may run: every property is proven but those a program may run without."""
        return all(one.proven or not one.required for one in self.properties)

    def demand(self) -> None:
        """Raise IsolationUnavailable, with the first cause and fix, unless programs may run."""
        missing = [one for one in self.properties if one.required and not one.proven]
        if missing:
            raise IsolationUnavailable(
                f"a jail {missing[0].name}: not proven: {missing[0].cause}; {missing[0].fix}",
                cause=missing[0].cause,
                fix=missing[0].fix,
                missing=tuple(one.name for one in missing),
            )


async def prove(
    nsjail: Nsjail,
    image: Image,
    folder: Path,
    *,
    limits: Limits | None = None,
    cgroups: Cgroups | None = None,
    uid: int | None = None,
) -> Proof:
    """Try every property through the profile of programs; the folder takes its configuration file.

    Never raises for what is missing: the proof says it.
    """
    limits, cgroups, uid = limits or Limits(), cgroups or Cgroups(), outside_uid() if uid is None else uid
    profile = render_profile(
        nsjail, image, folder=folder, limits=limits, cgroups=cgroups, outside_uid=uid, program=SELF_TEST
    )
    arguments = interpreter_arguments(SELF_TEST)
    expected = Expected(limits=limits, environment=environment("code", image), arguments=arguments, uid=uid)
    return await examine(nsjail, image, profile, expected, cgroups)


async def prove_workspace(
    nsjail: Nsjail, image: Image, folder: Path, workspace: Path, *, limits: Limits, cgroups: Cgroups
) -> Proof:
    """Try every property of the jails that commands get, over a folder that they may only read.

    Never raises for what is missing: the proof says it.
    """
    uid = outside_uid()
    profile = render_profile(
        nsjail,
        image,
        folder=folder,
        kind="shell",
        limits=limits,
        cgroups=cgroups,
        outside_uid=uid,
        workspace=workspace,
    )
    arguments = interpreter_arguments(SELF_TEST)
    expected = Expected(limits=limits, environment=environment("shell", image), arguments=arguments, uid=uid)
    return await examine(nsjail, image, profile, expected, cgroups, rules=WORKSPACE_RULES)


async def examine(
    nsjail: Nsjail,
    image: Image,
    profile: Path,
    expected: Expected,
    cgroups: Cgroups,
    *,
    rules: tuple[Rule, ...] = RULES,
) -> Proof:
    """Try every property through this very profile, whose program is the self-test.

    Profiles of commands leave open what is run.
    """
    named = () if rules is RULES else expected.arguments
    evidence, found = await asyncio.gather(
        gather_evidence(command(nsjail, profile), expected.arguments, named=named),
        asyncio.to_thread(_hash_of, image),
    )
    properties = [_unchanged(image, found)]
    if evidence.first.inside is None:
        cause, fix = likely_cause(evidence.first.log, image, cgroups)
        properties = [
            Property(name=_STARTS, proven=False, cause=cause, fix=fix),
            *properties,
            *unproven(cause, fix, rules),
        ]
    else:
        properties = [Property(name=_STARTS, proven=True), *properties, *judge(evidence, expected, rules)]
    return Proof(
        properties=(*properties, *_caps(evidence, cgroups)),
        nsjail=nsjail,
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
    """Caps on a whole jail: of use to shells above all, since a program is one process, which the limits bound."""
    said: list[Property] = []
    for name in _CAPS:
        label = f"is bounded by a {name} cgroup"
        folder = getattr(cgroups, name)
        if folder is None:
            cause = next((one for one in cgroups.missing if one.startswith(name)), "no cgroup was looked for")
            fix = "delegate cgroups to the worker: Delegate=yes in its unit, or a writable hierarchy in its container"
            said.append(Property(name=label, proven=False, required=False, cause=cause, fix=fix))
        elif "/NSJAIL." in evidence.first.outside.cgroups or evidence.first.inside is None:
            said.append(Property(name=label, proven=evidence.first.inside is not None))
        else:
            cause = f"the jail was not in a cgroup below {folder}"
            said.append(Property(name=label, proven=False, cause=cause, fix="let the worker write there"))
    return said
