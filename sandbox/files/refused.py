"""A request that a file tool does not fulfil."""


class Refused(Exception):  # noqa: N818 - it is an answer and no fault
    """The file tool does not do this; the text says why, in one line."""
