# result: {"kind": "OrderError: bad order", "last": "place", "cause": "KeyError('items')", "notes": ["orders need items"], "chained": true}
import sys
import traceback


class OrderError(Exception):
    """Raised when an order cannot be placed."""


def place(order):
    try:
        return order["items"][0]
    except KeyError as error:
        error.add_note("orders need items")
        raise OrderError("bad order") from error


async def main():
    try:
        place({})
    except OrderError as error:
        lines = traceback.format_exception_only(error)
        names = [frame.name for frame in traceback.extract_tb(sys.exc_info()[2])]
        cause = repr(error.__cause__)
        notes = error.__cause__.__notes__
        text = traceback.format_exc()
    return {"kind": lines[0].strip().rpartition(".")[2], "last": names[-1], "cause": cause, "notes": notes, "chained": "direct cause" in text}
