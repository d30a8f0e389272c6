"""What the product promises, area by area (`areas/*.yaml`), and the mark by which a test says what it proves."""

import pytest


def promise(name: str) -> pytest.MarkDecorator:
    """Mark a test as a proof of one promise, by its area and its key: `@promise("page:strangers")`."""
    return pytest.mark.promise(name)
