"""A request that a file tool does not fulfil."""


class Refused(Exception):
    """The file tool does not do this; the text says why, in one line."""
