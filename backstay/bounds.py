"""How much people, programs and models may send: one table, in bytes of UTF-8 JSON, escaped as history holds it.

Temporal carries payloads of 2 MiB, and some text is escaped a second time when it goes into another payload, which at
most doubles it.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from backstay.canonical import canonical

TASK = DECISION = ARGUMENTS = 1_000_000
"""A task, a decision, or the arguments of one call, as a whole; none of them is escaped twice."""
STEPS = 8_000_000
"""The arguments of all steps of a plan with the input filled in: each is handed over once, and history is finite."""
DEEPEST = 200
"""How many levels deep; deeper JSON cannot be written to history."""
REFERENCES = 1_000
"""How many references one plan, or the arguments of one call, may hold."""
PAYLOAD = 1_900_000
"""What the engine itself may hand over in one piece."""
MESSAGE, MESSAGES = 32_000, 40_000
"""What a person says to a run while it works, and all that people say to it: the model is shown it at each step."""
MOST = 1_000_000_000
"""More than any run can use; larger numbers reach places that cannot hold them."""
_NAME = 1_200
_ID = 1_000
_WORDS = 16_000
_TEXT = 400_000
ANSWER = 65_536
_QUOTAS = 32_768
_POLICY = 131_072


def size_of(value: object) -> int:
    """Return the bytes of a JSON value as history holds it."""
    return len(canonical(value).encode("utf-8", "surrogatepass"))


def cut_to(text: str, most: int) -> str:
    """Return the beginning of a string, at most `most` bytes as JSON, which says that the rest is missing."""
    kept = text
    while (size := size_of(said := f"{kept} … (cut; all of it had {len(text):,} characters)")) > most:
        kept = kept[: len(kept) * most // (size + 1)]
    return said


def sent_size(value: object) -> int:
    """Return the bytes of JSON of what somebody sends; raises ValueError for what JSON cannot say."""
    try:
        return len(canonical(value).encode())
    except UnicodeEncodeError:
        raise ValueError("half a character is in it, which JSON cannot say; give whole ones") from None
    except ValueError:
        raise ValueError("a number is NaN or infinite, which JSON cannot say; use a string or null") from None


def _at_most(most: int) -> AfterValidator:
    def check(value: object) -> object:
        if value is not None and (size := sent_size(value)) > most:
            raise ValueError(f"{size:,} bytes of JSON are more than the {most:,} allowed; make it shorter")
        return value

    return AfterValidator(check)


def _short_id(value: str) -> str:
    if (size := len(value.encode())) > _ID:
        raise ValueError(f"{size:,} bytes are more than the {_ID:,} that Temporal allows; make it shorter")
    return value


Name = Annotated[str, _at_most(_NAME)]
"""Of a person, a session, a request, a tool, an event or a proof."""
Id = Annotated[str, Field(max_length=_ID), AfterValidator(_short_id)]
"""Of a run, as long as Temporal allows: it counts the bytes of the text itself."""
Words = Annotated[str, _at_most(_WORDS)]
"""A comment or a reason."""
Text = Annotated[str, _at_most(_TEXT)]
"""What a task wants, in words."""
AnswerOfPerson = Annotated[object, _at_most(ANSWER)]
"""It goes to the model as a string within a string."""
Quotas = _at_most(_QUOTAS)
PolicyOfTask = Annotated[dict[str, Any], _at_most(_POLICY)]
"""It is shown with each request that it asks."""
