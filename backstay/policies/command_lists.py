"""Check a command line against the lists of allowed and denied commands, as far as it can be read without a shell.

This prevents accidents and is not a security boundary: a name does not tell what a program does. The boundary is the
jail.
"""

import shlex
from collections.abc import Iterator, Sequence

from backstay.frozen import Frozen
from backstay.policies.glob import matches

_ENDS = frozenset({";", "&", "&&", "|", "||", "|&", "(", ")", "\n", "{", "}", "!", ";;"})
_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "time", "case", "esac", "in"}
)
_ROUNDABOUT = ("$(", "`", "<(", ">(", "${", "$'")


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
            commands = list(_commands(command))
        except ValueError as error:
            return f"the command line cannot be read: {error}" if self.allow is not None or self.deny else None
        for words in commands:
            for number in range(len(words)):
                if pattern := _matching(words[number:], self.deny):
                    return f"{pattern!r} is on the list of commands that are not allowed"
        if self.allow is None:
            return None
        if any(sign in command for sign in _ROUNDABOUT):
            return "with a list of allowed commands, a command line holds no $(...), ${...}, `...` or <(...)"
        for words in commands:
            if _matching(words, self.allow) is None:
                return f"{words[0][:80]!r} is not on the list of allowed commands"
        return None


def _commands(command: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, without assignments, keywords and redirections."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    redirected = False
    for token in lexer:
        if token in _ENDS or (token and set(token) <= set(";&|()")):
            if words:
                yield words
            words = []
        elif set(token) <= set("<>&"):
            redirected = True
            continue
        elif redirected or (not words and (token in _KEYWORDS or _assigns(token))):
            pass
        else:
            words.append(token)
        redirected = False
    if words:
        yield words


def _assigns(token: str) -> bool:
    name, sign, _ = token.partition("=")
    return bool(sign) and name.isidentifier()


def _matching(words: Sequence[str], patterns: Sequence[str]) -> str | None:
    """Return the pattern that fits the beginning of these words; a program is known by its last name."""
    plain = [words[0].rpartition("/")[2], *words[1:]]
    for pattern in patterns:
        parts = pattern.split()
        if parts and len(parts) <= len(plain) and all(map(matches, parts, plain)):
            return pattern
    return None
