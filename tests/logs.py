"""Read what a worker would log."""

import io
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import structlog

from backstay.logs import configure_logs
from backstay.redaction.redactor import Redactor


@contextmanager
def logged(redactor: Redactor, **more: Any) -> Generator[io.StringIO]:
    """Send the logs as a worker does into a buffer; afterwards they go where they went before."""
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    configure_logs(redactor, **more)
    (handler,) = root.handlers
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(buffer := io.StringIO())
    try:
        yield buffer
    finally:
        structlog.configure(**before)
        root.handlers[:] = handlers
        root.setLevel(level)
