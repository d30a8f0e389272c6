"""Ask a model for one token before any run does, and learn from what its endpoint refuses."""

from dataclasses import dataclass

from activities.endpoints.dialect import told
from activities.endpoints.endpoints import Target
from activities.model.completion import RequestRefused, complete, say_nothing, written
from activities.model.learned import LearnedDialects
from activities.model.learning import Lessons
from activities.model.sending import dialect_of, request_in, with_names
from activities.model.shaping import LIMIT, shaped

_LEAST = {"responses": 16}
"""An answer is not asked for any shorter."""


@dataclass(frozen=True)
class ProbeResult:
    """Hold what one token has shown."""

    refused: tuple[str, ...] = ()
    """What the endpoint refused, in its own words."""
    lesson: str = ""
    """How it is asked because of that; empty where it takes what every endpoint takes, or nothing helped."""
    answered: bool = True


async def probe(target: Target, learned: LearnedDialects, *, within_s: float) -> ProbeResult:
    """Ask for one token, in another form where one is refused; a change that helped is remembered.

    Raises ModelUnavailable or ModelRefused where the model cannot be asked at all. A refusal of the form alone is told:
    an endpoint that refuses it has read it, so the key and the model are known.
    """
    given = dialect_of(target)
    begun = given.taught(learned.of(target))
    lessons, refused = Lessons(begun, given=given), list[str]()
    request = {"model": target.model, "messages": [{"role": "user", "content": "Hi"}], LIMIT: _LEAST.get(target.api, 1)}
    while True:
        try:
            asked = shaped(request, lessons.dialect)
            form = await request_in(target, asked, written(asked))
            client = await target.client.opened()
            is_stream = lessons.dialect.stream
            post = form.streamed(lessons.dialect.without) if is_stream else form.whole()
            say = say_nothing if is_stream else None
            await complete(client, post, listed=target.listed, within_s=within_s, say=say)
        except RequestRefused as error:
            if error.refusal.cause == "unknown_model":
                raise await with_names(error, target) from error
            refused.append(str(error))
            if lessons.learns(error.refusal, request):
                continue
            return ProbeResult(tuple(refused), answered=False)
        lesson = lessons.dialect.lesson(begun)
        if lesson:
            learned.note(target, lesson, f"; {refused[-1]}")
        return ProbeResult(tuple(refused), told(lesson))
