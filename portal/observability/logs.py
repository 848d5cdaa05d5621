"""Logs: one event per line, with the request's id and trace, without secrets."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any

import structlog

from portal.observability.redaction import (
    escape_controls,
    escape_controls_in_json,
    redact,
    render_exception,
    shorten_foreign,
)
from portal.settings import Settings

log = structlog.get_logger(__name__)
_JSON = structlog.processors.JSONRenderer(ensure_ascii=False)


def configure_logs(settings: Settings) -> None:
    """Set up structlog, and the standard library's loggers through it."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    # Redaction comes last, so that it covers all that the others add.
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        render_exception,
        redact,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[shorten_foreign, *shared],
            pass_foreign_args=True,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _renderer(settings.log_format),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    # If a line cannot be formatted, logging would print its arguments to stderr, unredacted.
    logging.raiseExceptions = False
    # At level info, these log every request to a model server and every queue poll.
    for name in ("httpx", "procrastinate", "alembic"):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def _renderer(log_format: str) -> Any:
    if log_format == "json":
        return _render_json
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )

    def render(logger: Any, name: str, event: MutableMapping[str, Any]) -> str:
        # Escape before rendering, which adds line breaks and colours of its own.
        escaped = {
            escape_controls(key): escape_controls(value, keep="\n" if key == "exception" else "")
            if isinstance(value, str)
            else value
            for key, value in event.items()
        }
        return str(console(logger, name, escaped))

    return render


def _render_json(logger: Any, name: str, event: MutableMapping[str, Any]) -> str:
    return escape_controls_in_json(str(_JSON(logger, name, event)))


def log_uncaught() -> None:
    """Log uncaught exceptions like all others. For serving processes."""

    def log_exception(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.critical("process_failed", error_type=kind.__name__, exc_info=error)

    def log_thread_exception(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, SystemExit):
            name = args.exc_type.__name__
            log.error("thread_failed", error_type=name, exc_info=args.exc_value)

    sys.excepthook = log_exception
    threading.excepthook = log_thread_exception
