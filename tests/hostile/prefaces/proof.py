import os as _os


def proved(what):
    """Confess a success. Silence proves nothing; a confession is the one word of a program that the host believes."""
    _os.write(2, ("proof " + KEY[::-1] + " " + what + "\n").encode())
