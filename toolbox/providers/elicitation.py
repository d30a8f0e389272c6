"""Questions that servers of older revisions ask over the open connection, in the middle of a call."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.types import ElicitResult

from toolbox.providers.question import Asked, Question, asked_by


@dataclass(slots=True)
class Reply:
    """Hold what a person answered before the call is made again."""

    question: Question
    content: Any
    declined: bool = False


@dataclass(slots=True)
class Talk:
    """Hold the questions of one call."""

    reply: Reply | None = None
    asked: list[Asked] = field(default_factory=list)

    def answer(self, one: Asked) -> ElicitResult:
        """Answer what a person has answered, once; anything else is kept and told that nobody answered."""
        known = self._known(one)
        if known is not None:
            return known
        self.asked.append(one)
        return ElicitResult(action="cancel")

    def _known(self, one: Asked) -> ElicitResult | None:
        if self.reply is None:
            return None
        for asked in self.reply.question.asked:
            if (asked.message, asked.form, asked.url) == (one.message, one.form, one.url):
                reply = self.reply
                return reply.question.responses(reply.content, declined=reply.declined)[asked.key]
        return None


class Interview:
    """Tell which call a question belongs to; a server of an older revision does not say."""

    def __init__(self) -> None:
        """Begin without calls."""
        self._talks: list[Talk] = []
        self.asks = False
        """Whether this server has ever asked: its calls must then run one after another."""

    @contextmanager
    def during(self, reply: Reply | None) -> Generator[Talk]:
        """Collect the questions of one call."""
        talk = Talk(reply)
        self._talks.append(talk)
        try:
            yield talk
        finally:
            self._talks.remove(talk)

    async def elicit(self, context: Any, params: Any) -> ElicitResult:
        """Answer one question; among several calls nobody knows whose it is, so it is told that nobody answered."""
        self.asks = True
        if len(self._talks) != 1:
            return ElicitResult(action="cancel")
        talk = self._talks[0]
        return talk.answer(asked_by(params, f"answer{len(talk.asked) + 1}" if talk.asked else "answer"))
