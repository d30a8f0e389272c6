"""Turn names of tools into names for models and files and into words for a search, and shorten what describes them."""

import hashlib
import re
import unicodedata

_LIMIT = 64
_FILE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_RUN = re.compile(r"_{3,}")
_WORDS = re.compile(r"[A-Za-z0-9-]+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_HYPHENATED = re.compile(r"\w+(?:-\w+)+")


def function_name(provider: str, tool: str) -> str:
    """Return the name under which a model calls the tool: `<provider>__<tool>`, at most 64 plain characters.

    A tool whose own name has other characters, or too many, gets the beginning of a digest of its name: that of no
    other tool, and always the same whatever else its server lists.
    """
    plain = _FORBIDDEN.sub("_", f"{provider}__{tool}")
    if len(plain) <= _LIMIT and _FORBIDDEN.search(tool) is None:
        return plain
    readable = _RUN.sub("_", plain[: _LIMIT - 9]).rstrip("_") if tool.isascii() else _spelt(provider, tool)
    return f"{readable}_{hash_of(f'{provider}.{tool}', 8)}"


def _spelt(provider: str, tool: str) -> str:
    """Return the beginning of a name, with what plain letters can tell of it."""
    folded = unicodedata.normalize("NFKD", tool).encode("ascii", "ignore").decode()
    words = "_".join(_WORDS.findall(folded)) or "tool"
    return f"{_FORBIDDEN.sub('_', provider)}__{words}"[: _LIMIT - 9].rstrip("_")


def is_spelt_out(provider: str, tool: str) -> bool:
    """Return whether the name under which a model calls the tool tells the tool's own name."""
    return function_name(provider, tool).endswith(f"__{tool}")


def file_name(name: str) -> str:
    """Return a name that is safe as one part of a path, and another one for every other name.

    A fine file name keeps itself; others get a digest behind a dot, which no fine one has.
    """
    if _FILE.fullmatch(name):
        return name
    return f"{_FORBIDDEN.sub('_', name[:40]) or '_'}.{hash_of(name, 16)}"


def hash_of(text: str, digits: int) -> str:
    """Return the first hex digits of the text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def first_sentence(text: str, limit: int) -> str:
    """Return the first sentence of a string in one line of at most `limit` characters."""
    line = " ".join(text[: limit * 10].split())
    end = line.find(". ")
    line = line[: end + 1] if end > 0 else line
    return line if len(line) <= limit else line[: limit - 3] + "..."


def is_presentable(name: str) -> bool:
    """Return whether people can read the name: not empty, no control, format or private characters."""
    return bool(name.strip()) and not any(unicodedata.category(character).startswith("C") for character in name)


def words_of(text: str) -> list[str]:
    """Return the words of a string in lower case, split at case, underscore and hyphen, and the joined forms too."""
    words = [part.lower() for part in _PART.findall(text)]
    if "-" in text:
        words += [found.replace("-", "").lower() for found in _HYPHENATED.findall(text)]
    return words
