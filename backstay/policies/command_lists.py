"""Check a command line against the lists of allowed and denied commands, as far as it can be read without a shell.

This prevents accidents and is not a security boundary: a name does not tell what a program does. The boundary is the
jail.
"""

import re
from collections.abc import Iterator, Sequence

from backstay.frozen import Frozen
from backstay.policies.glob import matches

_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "time", "case", "esac", "{", "}", "!"}
)
_PIPES = frozenset({"|", "|&"})
_ROUNDABOUT = ("$(", "`", "<(", ">(", "${", "$[", "$'", "((")
# The signs of bash's own grammar, each as long as bash reads it. Outside of quotes, a backslash before the end of a
# line joins two lines; after `<` and `(` it would hide what sign that makes.
_SIGN = re.compile(
    r"""
      (?P<blank>[ \t]+|(?<![<(])\\\n)
    | (?P<data>\#[^\n]*)
    | (?P<closing>[0-9]*[<>]&(?:[ \t]|\\\n)*-)
    | (?P<redirection>&>>?|[0-9]*(?:<<<|<<-?|>>|<>|>\||[<>]&|[<>]))
    | (?P<end>&&|\|\||\|&|;;&|;;|;&|[;&|()\n])
    """,
    re.VERBOSE,
)
# The parts of a word, up to a quotation in which commands can stand, and the parts of such a quotation.
_PART = re.compile(r"""(?:\\.|\$\$|\$'(?:\\.|[^'\\])*'|'[^']*'|[^ \t\n;&|()<>'"`\\])+""", re.DOTALL)
_TEXT = re.compile(r"""(?:\\.|\$(?!\()|[^"`$\\])+""", re.DOTALL)
_BACKQUOTED = re.compile(r"`((?:\\.|[^`\\])*)`", re.DOTALL)
_KEPT = re.compile(r"\\([`$\\])")
_KEPT_IN_QUOTES = re.compile(r"""\\([`$\\"])""")
_MOST_NESTED = 50
_HERE_DOCUMENT = re.compile(r"[0-9]*<<-?")
_QUOTED = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|\$'((?:\\.|[^'\\])*)'""", re.DOTALL)
_ESCAPED = re.compile(r"""\\([\\"$`])""")
_ANY_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SPELLING = re.compile(r"""\\\n|\\|\$?['"]""")
_NAMED = re.compile(r"""[^\s;&|()<>'"`]+""")


class CommandLists(Frozen):
    """Hold which commands an operator allows and denies.

    A pattern is one name or several words, such as `git push`; `*` and `?` stand for characters. Denied names are
    looked for at every word, since many programs start others; where there is a list of what is allowed, every
    command must be on it, and what cannot be read is refused.
    """

    allow: tuple[str, ...] | None = None
    """None: all that are not denied."""
    deny: tuple[str, ...] = ("rm -rf /", "docker", "ssh")

    def refusal(self, command: str) -> str | None:
        """Return why a command line is not run, in one line, or None."""
        fault = self._fault(command)
        return None if fault is None else f"not allowed: {fault}"

    def _fault(self, command: str) -> str | None:
        try:
            tokens = list(_tokens(command))
        except ValueError as error:
            if self.allow is not None:
                return f"the command line cannot be read: {error}"
            # Bash may be able to read it, so it is only searched for names, with their quotes and without.
            tokens = [("data", command), ("data", _SPELLING.sub("", command))]
        commands = list(_commands(tokens))
        data = [_NAMED.findall(line) for kind, text in tokens if kind == "data" for line in text.splitlines()]
        longest = max([1, *(len(pattern.split()) for pattern in self.deny)])
        for words in (*commands, *data):
            for number in range(len(words)):
                if pattern := _matching(words[number : number + longest], self.deny):
                    return f"{pattern!r} is on the list of commands that are not allowed"
        if self.allow is None:
            return None
        if any(sign in command for sign in _ROUNDABOUT):
            return "with a list of allowed commands, a command line holds no $(...), ${...}, ((...)), `...` or <(...)"
        if data:
            return "with a list of allowed commands, a command line holds no comments and no << documents"
        for words in commands:
            if _matching(words, self.allow) is None:
                return f"{words[0][:80]!r} is not on the list of allowed commands"
        return None


Token = tuple[str, str]
"""A kind, and the text."""


def _tokens(line: str) -> Iterator[Token]:
    """Yield the words and signs of a command line with their kinds; comments and here-documents are data.

    Commands inside of words, in `$(...)` and in backquotes, come last. Raises ValueError where a quotation has no end.
    """
    reader = _LineReader(line)
    yield from reader.tokens()
    yield "end", "\n"
    yield from reader.inner


class _LineReader:
    """Read a command line once, from its beginning."""

    def __init__(self, line: str, depth: int = 0) -> None:
        self.inner: list[Token] = []
        """The tokens of commands that stand inside of words."""
        self._line = line
        self._at = 0
        self._depth = depth

    def tokens(self, *, inside: bool = False) -> Iterator[Token]:
        """Yield the tokens up to the end, or inside of `$(...)` up to the end of that."""
        before, last = "", "end"
        ends: list[str] = []
        opened = cases = 0
        while self._at < len(self._line):
            kind, text = self._next()
            if kind == "blank":
                continue
            if kind == "word" and (last == "end" or before in _KEYWORDS):
                cases += {"case": 1, "esac": -1}.get(text, 0)
            opened += {"(": 1, ")": -1}.get(text, 0)
            if opened < 0:
                if inside and not cases:
                    return
                opened = 0
            yield kind, text
            if kind == "word" and _HERE_DOCUMENT.fullmatch(before):
                ends.append(_plain(text))
                # Also an empty document is one.
                yield "data", "<<"
            before, last = text, kind
            while text == "\n" and ends:
                yield "data", self._document(ends.pop(0))
        if inside:
            raise ValueError("a $( has no end")

    def _next(self) -> Token:
        sign = _SIGN.match(self._line, self._at)
        if sign is None:
            return "word", self._word()
        self._at = sign.end()
        return str(sign.lastgroup), sign[0]

    def _word(self) -> str:
        begin, line = self._at, self._line
        while self._at < len(line) and not line.startswith("\\\n", begin):
            if part := _PART.match(line, self._at):
                self._at = part.end()
            elif line[self._at] == '"':
                self._quoted()
            elif line[self._at] == "`":
                self._backquoted(_KEPT)
            else:
                break
        if self._at == begin:
            raise ValueError(f"a quotation has no end, or signs have no meaning, at {line[begin : begin + 20]!r}")
        return line[begin : self._at]

    def _quoted(self) -> None:
        """Go to the end of a quotation, through the commands in it."""
        begin, line = self._at, self._line
        self._at += 1
        while self._at < len(line):
            if text := _TEXT.match(line, self._at):
                self._at = text.end()
            elif line[self._at] == "`":
                self._backquoted(_KEPT_IN_QUOTES)
            elif line[self._at] == '"':
                self._at += 1
                return
            elif not line.startswith("$(", self._at):
                break
            else:
                self._substitution()
        raise ValueError(f"a quotation has no end, at {line[begin : begin + 20]!r}")

    def _substitution(self) -> None:
        self._at += len("$(")
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise ValueError("commands stand too deep in others")
        self.inner += [*self.tokens(inside=True), ("end", "\n")]
        self._depth -= 1

    def _backquoted(self, kept: re.Pattern[str]) -> None:
        found = _BACKQUOTED.match(self._line, self._at)
        if found is None:
            raise ValueError(f"a backquote has no end, at {self._line[self._at : self._at + 20]!r}")
        self._at = found.end()
        reader = _LineReader(kept.sub(r"\1", found[1]), self._depth)
        self.inner += [*reader.tokens(), ("end", "\n"), *reader.inner]

    def _document(self, end: str) -> str:
        last = re.compile(rf"^\t*{re.escape(end)}$", re.MULTILINE).search(self._line, self._at)
        begin, self._at = self._at, len(self._line) if last is None else last.end()
        return self._line[begin : self._at]


def _commands(tokens: Sequence[Token]) -> Iterator[list[str]]:
    """Yield the words of each simple command, without assignments, keywords and redirections."""
    words: list[str] = []
    begun = redirected = piped = False
    last_keyword = ""
    for kind, text in (*tokens, ("end", "")):
        if kind == "end":
            if words:
                yield words
            # Where a line goes on after `|`, nothing has begun yet.
            piped = text in _PIPES or (piped and text == "\n" and not begun)
            words, begun, redirected, last_keyword = [], False, False, ""
        elif kind == "closing":
            begun = True
        elif kind == "redirection":
            begun = redirected = True
        elif kind == "word":
            # Within a pipe, bash takes `time` for a program.
            is_keyword = text in _KEYWORDS and not (piped and text == "time")
            if not (redirected or begun) and (is_keyword or (last_keyword, text) == ("time", "-p")):
                last_keyword, piped = text, False
            elif not redirected:
                begun = True
                if words or not _ASSIGNED.match(text):
                    words.append(_plain(text))
            redirected = False


def _plain(word: str) -> str:
    """Return a word without its quotes."""

    def unquoted(part: re.Match[str]) -> str:
        literal, quoted, escaped, coded = (found or "" for found in part.groups())
        return literal + _ESCAPED.sub(r"\1", quoted) + escaped.replace("\n", "") + _ANY_ESCAPED.sub(r"\1", coded)

    return _QUOTED.sub(unquoted, word)


def _matching(words: Sequence[str], patterns: Sequence[str]) -> str | None:
    """Return the pattern that fits the beginning of these words; a program is known by its last name."""
    plain = [words[0].rpartition("/")[2], *words[1:]]
    for pattern in patterns:
        parts = pattern.split()
        if parts and len(parts) <= len(plain) and all(map(matches, parts, plain)):
            return pattern
    return None
