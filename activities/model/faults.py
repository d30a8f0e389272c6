"""Find errors in answers that call themselves a success, whole or streamed."""

from typing import Any

from activities.model.refusals import text_in

_NO_ERROR = (None, False, "")
"""What is in the place of an error where there is none."""


class AnswerRefused(Exception):
    """An answer that calls itself a success tells of an error and holds nothing else."""

    def __init__(self, data: dict[str, Any]) -> None:
        """Keep what it says."""
        super().__init__("the answer tells of an error")
        self.data = data


class AnswerBroken(Exception):
    """An endpoint tells of an error amid its answer; `data` is what it says."""

    def __init__(self, data: Any) -> None:
        """Keep what it says."""
        super().__init__("the answer was broken off")
        self.data = data


def fault_in(data: Any) -> dict[str, Any] | None:
    """Return the error that is in place of a completion in an answer that calls itself a success.

    Raises AnswerBroken where it is beside words, which are not a whole answer then.
    """
    if isinstance(data, list) and data and isinstance(data[0], dict) and "error" in data[0]:
        data = data[0]
    if not isinstance(data, dict):
        return None
    if choices := data.get("choices"):
        first = choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else {}
        if broken := next((holder for holder in (data, first) if holder.get("error")), None):
            raise AnswerBroken(broken)
        return None
    is_fault = tells_of_error(data) or "choices" not in data
    return data if is_fault and text_in(data) else None


def tells_of_error(chunk: dict[str, Any]) -> bool:
    """Return whether an answer, or a chunk of one, calls itself an error and holds no words."""
    if chunk.get("choices"):
        return False
    told = chunk.get("base_resp")
    is_refused = chunk.get("success") is False or (isinstance(told, dict) and bool(told.get("status_code")))
    return has_error(chunk) or is_refused or "error" in (chunk.get("object"), chunk.get("type"))


def has_error(holder: dict[str, Any]) -> bool:
    """Return whether an answer, a chunk or a choice has an error under its name."""
    return holder.get("error") not in _NO_ERROR


def status_in(data: dict[str, Any]) -> int:
    """Return the status that an error names itself; a gateway passes on what it was told."""
    error = data.get("error")
    for holder in (error if isinstance(error, dict) else {}, data):
        for name in ("code", "status", "status_code"):
            value = holder.get(name)
            number = int(value) if isinstance(value, int | str) and str(value).isdigit() else 0
            if 400 <= number < 600:
                return number
    return 200
