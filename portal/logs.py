"""Logs: one event a line, with the request's id, and nothing in them that is secret."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from portal.settings import Settings

_SECRET_WORDS = ("password", "token", "secret", "authorization", "cookie", "api_key")
# What people ask and write does not belong into logs either.
_PRIVATE_WORDS = ("query", "content", "excerpt", "text")
_REDACTED = "[redacted]"


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace values whose name says that they are secret or private."""
    for name in event:
        lowered = name.lower()
        if any(word in lowered for word in _SECRET_WORDS) or lowered in _PRIVATE_WORDS:
            event[name] = _REDACTED
    return event


def configure_logs(settings: Settings) -> None:
    """Set up structlog, and the standard library's loggers through it."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        redact,
    ]
    # Never with the values of local variables: questions and documents are among them.
    renderer: Any = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    if settings.log_format == "json":
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # At info these name every request to a model server and every queue poll.
    for name in ("httpx", "procrastinate", "alembic"):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
