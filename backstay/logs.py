"""Write logs as JSON lines, or readable lines on a terminal; secrets are masked by the last processor."""

import logging
import sys
from collections.abc import Callable
from typing import Any

import structlog

from backstay.redaction.redactor import Redactor


def configure_logs(
    redactor: Redactor, level: int = logging.INFO, *, mask: Callable[[Any], Any] = lambda event: event
) -> None:
    """Send our own and the libraries' logs to stderr through one pipeline.

    `mask`: masks what else must not be logged, such as secrets of runs.
    """

    def redact(_logger: Any, _method: str, event: Any) -> Any:
        return mask(redactor.redact(dict(event)))

    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    render = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=processors,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, render],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in ("httpx2", "httpcore2", "openai", "aiosqlite", "alembic", "mcp", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
