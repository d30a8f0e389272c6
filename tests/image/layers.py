"""Run the steps of the Dockerfile in a clean root, layer by layer; a layer whose step did not change is kept.

It knows the words that our Dockerfile uses, and refuses others. The base image is stood in for by a root of Debian's
own packages: the release that the image's tag names, with Debian's Python of the same version.
"""

import fnmatch
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from filelock import FileLock

from tests.image.containers import Container, Mount, ran

HOUSE = Path(__file__).resolve().parents[2]
BUILD = HOUSE / "build" / "image"
BASE = BUILD / "base"
DOCKERFILE = HOUSE / "Dockerfile"
SETTINGS = ("ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD", "HEALTHCHECK", "LABEL", "STOPSIGNAL")


@dataclass
class Stage:
    """One stage while it is built, and what it says of the programs that run in it."""

    layers: list[Path]
    """The newest first."""
    key: str
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    said: dict[str, str] = field(default_factory=dict)

    def words(self, name: str) -> list[str]:
        """Return a command in its JSON form."""
        return json.loads(self.said[name])


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction with its words."""
    joined = re.sub(r"\\\n", "", re.sub(r"(?m)^\s*#.*\n", "", text))
    for line in filter(None, map(str.strip, joined.splitlines())):
        name, _, words = line.partition(" ")
        yield name, words.strip()


def built(dockerfile: Path = DOCKERFILE, place: Path = BUILD, house: Path = HOUSE) -> Stage:
    """Return the last stage, after running all steps that changed since they were run last.

    `place`: where its layers are kept. `house`: the folder that files are copied from.
    """
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / "lock"):
        builder = Builder(place / "layers", house)
        for name, words in instructions(dockerfile.read_text(encoding="utf-8")):
            builder.follow(name, words)
        builder.sweep()
    assert builder.stage is not None
    return builder.stage


class Builder:
    """Follow a Dockerfile."""

    def __init__(self, kept: Path, house: Path) -> None:
        self.kept, self.house = kept, house
        self.stage: Stage | None = None
        self.stages: dict[str, Stage] = {}
        self.arguments: dict[str, str] = {}
        self.used: set[Path] = set()

    def follow(self, name: str, words: str) -> None:
        if name == "FROM":
            self._from(words)
        elif name == "ARG":
            key, _, value = words.partition("=")
            (self.arguments if self.stage is None else self.stage.arguments)[key] = value
        else:
            assert self.stage is not None
            if name == "RUN":
                self._layer(f"RUN {words} {self.stage.environment} {self.stage.arguments}", self._run, words)
            elif name == "COPY":
                self._copy(words)
            else:
                self._set(name, words)

    def _from(self, words: str) -> None:
        image, _, name = words.partition(" AS ")
        image = re.sub(r"\$\{(\w+)\}", lambda found: self.arguments[found[1]], image)
        described = re.fullmatch(r"python:([\d.]+)-slim-(\w+)", image)
        assert described, image
        release = dict(
            line.split("=", 1) for line in (BASE / "etc/os-release").read_text(encoding="utf-8").splitlines()
        )
        assert release["VERSION_CODENAME"] == described[2], "build/image/base is another release; remove it"
        assert (BASE / f"usr/bin/python{described[1]}").exists(), f"build/image/base has no Python {described[1]}"
        key = hashlib.sha256(f"{image}{BASE.stat().st_ctime_ns}".encode()).hexdigest()
        self.stage = Stage(
            [BASE], key, environment={"PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"}
        )
        self.stages[name or str(len(self.stages))] = self.stage

    def _set(self, name: str, words: str) -> None:
        assert self.stage is not None
        assert name in SETTINGS, f"{name} is not known here"
        if name == "ENV":
            for pair in shlex.split(words):
                key, _, value = pair.partition("=")
                self.stage.environment[key] = Template(value).safe_substitute(self.stage.environment)
        elif name == "WORKDIR":
            self.stage.folder = words
            self._layer(f"WORKDIR {words}", self._folder, words)
        self.stage.said[name] = words

    def _folder(self, upper: Path, words: str) -> None:
        assert self.stage is not None
        script = f"mkdir -p {shlex.quote(words)}"
        ran(Container(lower=self.stage.layers, command=["/bin/sh", "-c", script]), upper)

    def _run(self, upper: Path, words: str) -> None:
        assert self.stage is not None
        flags = re.findall(r"--mount=(\S+)", words)
        script = re.sub(r"--mount=\S+\s*", "", words)
        mounts = [Mount(Path("/etc/resolv.conf").resolve(), "/etc/resolv.conf", read_only=True)]
        for flag in flags:
            facts = dict(part.split("=", 1) for part in flag.split(","))
            assert facts["type"] == "cache"
            cache = BUILD / "cache" / facts["target"].strip("/").replace("/", "-")
            cache.mkdir(parents=True, exist_ok=True)
            mounts.append(Mount(cache, facts["target"]))
        environment, more = pip_of_this_machine()
        ran(
            Container(
                lower=self.stage.layers,
                command=["/bin/sh", "-c", script],
                environment={**self.stage.environment, **self.stage.arguments, **environment, "HOME": "/root"},
                folder=self.stage.folder,
                mounts=(*mounts, *more),
            ),
            upper,
        )
        without_places(upper, [*mounts, *more])

    def _copy(self, words: str) -> None:
        assert self.stage is not None
        given = shlex.split(words)
        source = next((word.removeprefix("--from=") for word in given if word.startswith("--from=")), None)
        *sources, target = [word for word in given if not word.startswith("--")]
        if source is not None:
            other = self.stages[source]
            self._layer(f"COPY {words} {other.key}", self._copy_from, other, sources[0], target)
            return
        files = {Path(name): path for each in sources for name, path in context(each, self.house)}
        digest = hashlib.sha256()
        for name, path in sorted(files.items()):
            digest.update(f"{name}\0{path.stat().st_mode:o}\0".encode() + path.read_bytes())
        self._layer(f"COPY {words} {digest.hexdigest()}", self._copy_files, files, sources, target)

    def _copy_from(self, upper: Path, other: Stage, source: str, target: str) -> None:
        assert self.stage is not None
        script = f'mkdir -p "{target}" && cp -a "/.other0{source}/." "{target}/" && rmdir /.other0 2>/dev/null || true'
        ran(Container(lower=self.stage.layers, others=[other.layers], command=["/bin/sh", "-ec", script]), upper)
        assert (upper / target.lstrip("/")).is_dir()
        shutil.rmtree(upper / ".other0", ignore_errors=True)

    def _copy_files(self, upper: Path, files: Mapping[Path, Path], sources: Sequence[str], target: str) -> None:
        assert self.stage is not None
        place = upper / Path(self.stage.folder, target).as_posix().lstrip("/")
        named = len(sources) == 1 and Path(sources[0]) in files and not target.endswith(("/", "."))
        for name, path in files.items():
            # A file that is named goes into the folder by its last name; of a folder, the content goes there.
            inside = next(
                (name.relative_to(each) for each in sources if name.is_relative_to(each) and name != Path(each)), None
            )
            to = place if named else place / (inside or name.name)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
            to.chmod(path.stat().st_mode & 0o755)

    def _layer(self, what: str, make: Any, *details: Any) -> None:
        assert self.stage is not None
        self.stage.key = hashlib.sha256(f"{self.stage.key}\0{what}".encode()).hexdigest()
        place = self.kept / self.stage.key[:16]
        if not place.exists():
            making = place.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(parents=True)
            sys.stderr.write(f"{what[:100]}\n")
            make(making, *details)
            making.rename(place)
        self.used.add(place)
        self.stage.layers.insert(0, place)

    def sweep(self) -> None:
        """Remove what this Dockerfile no longer has."""
        for place in self.kept.iterdir():
            if place not in self.used:
                shutil.rmtree(place, ignore_errors=True)


def context(source: str, house: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder that a COPY takes, as its .dockerignore leaves them."""
    ignore = house / ".dockerignore"
    lines = ignore.read_text(encoding="utf-8").splitlines() if ignore.exists() else []
    patterns = [line for line in lines if line and not line.startswith("#")]
    place = house / source
    found = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    taken = [(path.relative_to(house).as_posix(), path) for path in found]
    kept = [(name, path) for name, path in taken if not ignored(name, patterns)]
    assert kept, f"{source}: .dockerignore leaves nothing of it"
    yield from kept


def ignored(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a file stays out: the last pattern that matches it or a folder above it decides."""
    out = False
    places = [name, *(parent.as_posix() for parent in Path(name).parents if parent != Path())]
    for pattern in patterns:
        bare = pattern.removeprefix("!")
        # `**/` stands for any folders, and one pattern is one folder deep otherwise.
        if any(
            fnmatch.fnmatch(place, bare.removeprefix("**/"))
            if "/" not in place and not bare.startswith("**/")
            else fnmatch.fnmatch(Path(place).name, bare.removeprefix("**/"))
            if bare.startswith("**/")
            else place == bare
            for place in places
        ):
            out = not pattern.startswith("!")
    return out


def pip_of_this_machine() -> tuple[dict[str, str], list[Mount]]:
    """Return what tells pip inside where this machine's pip finds packages, and the folders that this names."""
    told = subprocess.run(
        (sys.executable, "-m", "pip", "config", "list"), capture_output=True, text=True, check=True, timeout=60
    ).stdout
    values: dict[str, str] = {}
    # Variables come first in the list, and win.
    for name, value in re.findall(r"(?m)^(?::env:|global|install|download)\.([\w-]+)='(.*)'$", told):
        values.setdefault(f"PIP_{name.upper().replace('-', '_')}", value)
    words = [word for value in values.values() for word in value.split()]
    # An index leads to files beside it.
    places = {Path(word.removeprefix("file://")).parent for word in words if word.startswith("file:///")}
    places |= {Path(word) for word in words if word.startswith("/") and Path(word).exists()}
    mounts = [Mount(path.resolve(), str(path), read_only=True) for path in sorted(places)]
    return values, mounts


def without_places(upper: Path, mounts: Sequence[Mount]) -> None:
    """Remove from a layer what was only a place to mount something at."""
    for each in mounts:
        place = upper / each.target.lstrip("/")
        if place.is_file() and not place.stat().st_size:
            place.unlink()
        while place != upper:
            with suppress(OSError):
                place.rmdir()
            place = place.parent
