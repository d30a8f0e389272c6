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
_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t]+|(?<![<(])\\\n)
    | (?P<data>\#[^\n]*)
    | (?P<closing>[0-9]*[<>]&(?:[ \t]|\\\n)*-)
    | (?P<redirection>&>>?|[0-9]*(?:<<<|<<-?|>>|<>|>\||[<>]&|[<>]))
    | (?P<end>&&|\|\||\|&|;;&|;;|;&|[;&|()\n])
    | (?P<word>(?!\\\n)(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^ \t\n;&|()<>'"\\])+)
    """,
    re.VERBOSE | re.DOTALL,
)
_HERE_DOCUMENT = re.compile(r"[0-9]*<<-?")
_QUOTED = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""", re.DOTALL)
_ESCAPED = re.compile(r"""\\([\\"$`])""")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NAMED = re.compile(r"""[^\s;&|()<>'"]+""")


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
            return f"the command line cannot be read: {error}" if self.allow is not None or self.deny else None
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


def _tokens(line: str) -> Iterator[tuple[str, str]]:
    """Yield the words and signs of a command line with their kinds; comments and here-documents are data.

    Raises ValueError where a quotation has no end.
    """
    position, before = 0, ""
    ends: list[str] = []
    while position < len(line):
        token = _TOKEN.match(line, position)
        if token is None:
            raise ValueError(f"a quotation has no end, or signs have no meaning, at {line[position : position + 20]!r}")
        position, kind, text = token.end(), str(token.lastgroup), token[0]
        if kind == "blank":
            continue
        yield kind, text
        if kind == "word" and _HERE_DOCUMENT.fullmatch(before):
            ends.append(_plain(text))
            # Also an empty document is one.
            yield "data", "<<"
        before = text
        while text == "\n" and ends:
            last = re.compile(rf"^\t*{re.escape(ends.pop(0))}$", re.MULTILINE).search(line, position)
            end = len(line) if last is None else last.end()
            yield "data", line[position:end]
            position = end


def _commands(tokens: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
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
    return _QUOTED.sub(
        lambda part: (part[1] or "") + _ESCAPED.sub(r"\1", part[2] or "") + (part[3] or "").replace("\n", ""), word
    )


def _matching(words: Sequence[str], patterns: Sequence[str]) -> str | None:
    """Return the pattern that fits the beginning of these words; a program is known by its last name."""
    plain = [words[0].rpartition("/")[2], *words[1:]]
    for pattern in patterns:
        parts = pattern.split()
        if parts and len(parts) <= len(plain) and all(map(matches, parts, plain)):
            return pattern
    return None
