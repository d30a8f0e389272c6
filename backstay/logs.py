"""Write logs as JSON lines, or readable lines on a terminal; secrets are masked by the last processor.

An event of a run is redacted where it is made, and its line says what the event says.
"""

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from backstay.redaction.redactor import Redactor

_SAID = "_said"
"""The field of a line, never written, that holds what its event says."""
_SET_LATER = ("task_id", "user_id", "session_id")
"""Names that clients give, and an event gets after it was redacted."""
_OUR_OWN = {"level", "logger", "timestamp"}
"""What the pipeline itself sets in each line of an event."""
_timeline = structlog.get_logger("backstay.timeline")


class _EventFields(dict[str, Any]):
    """Hold the fields of an event that was redacted; no payload is of this class, so none can pass for redacted."""


def log_event(name: str, fields: Mapping[str, Any]) -> None:
    """Log an event that was redacted where it was made; what else is added to its line is redacted as ever."""
    _timeline.info(name, **fields, **{_SAID: _EventFields(fields, event=name)})


def _said(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a line that hold the very values of its event, and nothing put in their place since."""
    said = line.get(_SAID)
    if not isinstance(said, _EventFields):
        return {}
    return {name: value for name, value in said.items() if line.get(name) is value}


def _redacting(redactor: Redactor, mask: Callable[[Any], Any]) -> Callable[[Any, str, Any], Any]:
    """Return the processor that masks the secrets of a line."""

    def hide(value: Any) -> Any:
        return mask(redactor.redact(value))

    def redact(_logger: Any, _method: str, line: Any) -> Any:
        said = _said(line)
        if not said:
            return hide(dict(line))
        # Each by itself: beside its name, the id of a session would pass for a secret.
        said |= {name: hide(said[name]) for name in _SET_LATER if said.get(name)}
        ours = {name: line[name] for name in _OUR_OWN if name in line}
        added = {name: line[name] for name in line if name not in said and name not in ours and name != _SAID}
        return {**(hide(added) if added else {}), **said, **ours}

    return redact


def configure_logs(
    redactor: Redactor, level: int = logging.INFO, *, mask: Callable[[Any], Any] = lambda event: event
) -> None:
    """Send our own and the libraries' logs to stderr through one pipeline.

    `mask`: masks what else must not be logged, such as secrets of runs.
    """
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
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _redacting(redactor, mask), render],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in ("httpx2", "httpcore2", "openai", "aiosqlite", "alembic", "mcp", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
