"""Read files, list folders, search for text."""

import base64
import codecs
import hashlib
import io
import os
import re
import stat
from collections.abc import Callable
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any

from sandbox.guest.files.places import (
    FileToolRefused,
    Parts,
    clip,
    demand_file,
    folder,
    kind_of,
    open_file,
    parent,
    parts_of,
    shown_path,
    walk,
)

ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252", "base64")
MOST_READ = 256 << 10
MOST_LISTED = 2000
MOST_SEARCHED = 8 << 20
_PROBE = 8192
_LONGEST_LINE = 400
_GLOB = re.compile(
    r"""
      (?P<folders>(?<![^/{,])(?:\*\*/)+)
    | (?P<below>(?<![^/{,])\*\*(?![^},]))
    | (?P<many>\*+)
    | (?P<any>\?)
    | \[(?P<not>[!^]?)(?P<among>\]?[^]/]*)(?P<set>\])
    | (?P<brace>[{},])
    | \\?.
    """,
    re.VERBOSE | re.DOTALL,
)
_GLOBBED = {"folders": "(?:[^/]+/)*", "below": "(?s:.+)", "many": "[^/]*", "any": "[^/]"}
_IN_SET = re.compile(r"[\[\]\\&~|]")


def read_file(path: str, offset: int = 0, limit: int = 64 << 10, encoding: str | None = None) -> dict[str, Any]:
    """Return a part of a file: as text when it is text, else in base64."""
    parts = parts_of(path)
    with parent(parts) as (fd, name):
        size = demand_file(fd, name, parts).st_size
        data = _part(fd, name, offset, min(limit, MOST_READ))
    text, used, data = _text(data, encoding, shown_path(parts), whole=offset + len(data) >= size)
    end = offset + len(data)
    return {
        "path": shown_path(parts),
        "size": size,
        "encoding": used,
        "content": text,
        "offset": offset,
        "next_offset": end if end < size and data else None,
    }


def measure(paths: list[str]) -> dict[str, Any]:
    """Return the size and the SHA-256 of each file, or why there is none."""
    return {"files": [{"path": path} | _measured(path) for path in paths]}


def _measured(path: str) -> dict[str, Any]:
    try:
        parts = parts_of(path)
        with parent(parts) as (fd, name):
            size = demand_file(fd, name, parts).st_size
            with os.fdopen(open_file(fd, name), "rb") as opened:
                return {"size": size, "sha256": hashlib.file_digest(opened, "sha256").hexdigest()}
    except FileToolRefused as refused:
        return {"error": str(refused)[:500]}
    except OSError as error:
        return {"error": f"{path[:200]}: {error.strerror or type(error).__name__}"}


def content_of(fd: int, name: str, most: int) -> bytes:
    """Return a whole file.

    Raises Refused when it is larger than `most`.
    """
    data = _part(fd, name, 0, most + 1)
    if len(data) > most:
        raise FileToolRefused(f"{clip(name)} is larger than {most} bytes, which is the most that is edited")
    return data


def list_directory(path: str = ".", offset: int = 0, limit: int = 500, *, recursive: bool = False) -> dict[str, Any]:
    """Return what is in a folder, sorted by path."""
    parts = parts_of(path)
    skipped: list[str] = []
    with folder(parts):
        found = sorted(_listed(parts, skipped, recursive=recursive), key=itemgetter(0))
    shown = found[offset : offset + min(limit, MOST_LISTED)]
    end = offset + len(shown)
    return {
        "path": shown_path(parts),
        "entries": [_entry(*entry) for entry in shown],
        "total": len(found),
        "next_offset": end if end < len(found) and shown else None,
        "skipped": sorted(skipped)[:20],
    }


def search(
    pattern: str,
    path: str = ".",
    glob: str | None = None,
    limit: int = 100,
    *,
    literal: bool = False,
    ignore_case: bool = False,
) -> dict[str, Any]:
    """Return the lines of text files that fit a regular expression, or that hold a string."""
    fits = _fits(pattern, literal=literal, ignore_case=ignore_case)
    named = _named("**" if glob is None else glob)
    parts = parts_of(path)
    skipped: list[str] = []
    matches: list[dict[str, Any]] = []
    searched = 0
    with folder(parts):
        files = sorted(file for file, facts in walk(parts, skipped) if stat.S_ISREG(facts.st_mode))
    for file in files:
        if len(matches) >= limit:
            break
        if named(file[len(parts) :]):
            searched += 1
            lines = enumerate(_lines(file, skipped), 1)
            found = ((number, line[:_LONGEST_LINE]) for number, line in lines if fits(line))
            for number, text in islice(found, limit - len(matches)):
                matches.append({"path": shown_path(file), "line": number, "text": text})
    complete = len(matches) < limit
    return {"matches": matches, "files": searched, "skipped": sorted(skipped)[:20], "complete": complete}


def _part(fd: int, name: str, offset: int, limit: int) -> bytes:
    opened = open_file(fd, name)
    with os.fdopen(opened, "rb", buffering=0) as file:
        file.seek(offset)
        data = bytearray()
        while len(data) < limit and (came := file.read(limit - len(data))):
            data += came
    return bytes(data)


def _text(data: bytes, encoding: str | None, path: str, *, whole: bool) -> tuple[str, str, bytes]:
    """Return the data as text, how, and which part of it that is: half a character at the end is left for later."""
    if encoding is None or encoding == "utf-8":
        try:
            text, used = codecs.utf_8_decode(data, "strict", whole)
        except UnicodeDecodeError:
            text, used = "\0", 0
        if "\0" not in text:
            return text, "utf-8", data[:used]
        if encoding is not None:
            raise FileToolRefused(f"{path}: this part is no UTF-8 text; read it as base64")
    if encoding is None or encoding == "base64":
        return base64.b64encode(data).decode("ascii"), "base64", data
    if encoding not in ENCODINGS:
        raise FileToolRefused(f"{clip(encoding)}: unknown encoding; there is: {', '.join(ENCODINGS)}")
    try:
        return data.decode(encoding), encoding, data
    except UnicodeDecodeError:
        raise FileToolRefused(f"{path}: this part is no {encoding} text; read it as base64") from None


def _listed(parts: Parts, skipped: list[str], *, recursive: bool) -> list[tuple[Parts, os.stat_result]]:
    found = walk(parts, skipped)
    # Entries of the folder itself come before all that is deeper.
    return list(found if recursive else takewhile(lambda entry: len(entry[0]) == len(parts) + 1, found))


def _entry(parts: Parts, facts: os.stat_result) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": shown_path(parts), "kind": kind_of(facts), "size": facts.st_size}
    if stat.S_ISLNK(facts.st_mode):
        with parent(parts) as (fd, name):
            entry["target"] = clip(os.readlink(name, dir_fd=fd))
    elif stat.S_ISREG(facts.st_mode):
        entry["mode"] = f"{stat.S_IMODE(facts.st_mode):04o}"
    return entry


def _fits(pattern: str, *, literal: bool, ignore_case: bool) -> Callable[[str], object]:
    if literal and ignore_case:
        wanted = pattern.casefold()
        return lambda line: wanted in line.casefold()
    if literal:
        return lambda line: pattern in line
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
    except (re.error, RecursionError, OverflowError) as error:
        raise FileToolRefused(
            f"the pattern is not a regular expression: {clip(str(error))}; search literally instead"
        ) from None


def _named(glob: str) -> Callable[[Parts], object]:
    """Return whether a file fits: its name where the pattern has no slash, else its path from where it is searched."""
    whole = f"{glob}**" if glob.endswith("/") else glob
    try:
        fits = re.compile(_translated(re.sub(r"\A\.?/", "", whole))).fullmatch
    except (re.error, RecursionError, OverflowError) as error:
        raise FileToolRefused(f"{clip(glob)} is not a pattern of names: {clip(str(error))}") from None
    return lambda parts: fits("/".join(parts) if "/" in whole else parts[-1])


def _translated(glob: str) -> str:
    """Return the regular expression of a pattern, as git and ripgrep read it."""
    opened = 0
    pieces: list[tuple[str, str]] = []

    def translated(sign: re.Match[str]) -> str:
        nonlocal opened
        match sign.lastgroup, sign[0]:
            case "brace", "{":
                opened += 1
                return "(?:"
            case "brace", "}" if opened:
                opened -= 1
                return ")"
            case "brace", "," if opened:
                return "|"
            case "set", _:
                among = _IN_SET.sub(r"\\\g<0>", sign["among"])
                return f"(?!/)[{'^' if sign['not'] else ''}{among}]"
            case str(kind), _ if kind in _GLOBBED:
                return _GLOBBED[kind]
            case _:
                return re.escape(sign[0][-1])

    for sign in _GLOB.finditer(glob):
        text = translated(sign)
        kind = "sign" if text == re.escape(sign[0][-1]) else str(sign.lastgroup)
        pieces.append(("slash" if text == "/" else kind, text))
    if opened:
        raise FileToolRefused(f"{clip(glob)} is not a pattern of names: a '{{' has no '}}'")
    pieces = _atomic(pieces, "many", {"any", "set", "sign"})
    pieces = _atomic(pieces, "folders", {"any", "set", "sign", "many", "slash"})
    return "".join(text for _, text in pieces)


def _atomic(pieces: list[tuple[str, str]], star: str, between: set[str]) -> list[tuple[str, str]]:
    """Return the pieces with those from each star up to the next one as an atomic group, if they are of these kinds.

    If the text between two stars fits at several places, the first of them is as good as any, so no other is tried.
    """
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(pieces):
        end = at + 1
        while end < len(pieces) and pieces[end][0] in between:
            end += 1
        if pieces[at][0] == star and pieces[min(end, len(pieces) - 1)][0] == star and end > at + 1:
            rest = "".join(text for _, text in pieces[at + 1 : end])
            found.append(("sign", f"(?>{pieces[at][1]}?{rest})"))
            at = end
        else:
            found.append(pieces[at])
            at += 1
    return found


def _lines(parts: Parts, skipped: list[str]) -> list[str]:
    """Return the lines of a text file; another file has none, and is listed as skipped when it is large."""
    try:
        with parent(parts) as (fd, name):
            if demand_file(fd, name, parts).st_size > MOST_SEARCHED:
                skipped.append(shown_path(parts))
                return []
            data = _part(fd, name, 0, MOST_SEARCHED)
    except (OSError, FileToolRefused):
        skipped.append(shown_path(parts))
        return []
    if b"\0" in data[:_PROBE]:
        return []
    return [line.removesuffix("\n").removesuffix("\r") for line in lines_of(data.decode("utf-8", "replace"))]


def lines_of(text: str) -> list[str]:
    """Return the lines of text with their ends, counted as editors do: nothing but a line feed ends one."""
    return io.StringIO(text).readlines()
