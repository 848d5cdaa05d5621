"""Redaction of log lines: no secrets, no queries, no text of documents.

They could appear as a value with a known name, inside a text, or in the message of an exception,
which quotes its input. The log has an exception's type, its place in the code and its codes, but
not its message.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from portal.errors import InvalidSetting, ServerSetup

REDACTED = "[redacted]"

_SECRET_WORDS = ("password", "token", "secret", "authorization", "cookie", "api_key")
_PRIVATE_WORDS = frozenset(
    {
        *("answer", "body", "content", "excerpt", "file_name", "filename", "passage", "prompt"),
        *("q", "query", "question", "quote", "snippet", "text", "title"),
    }
)
# Patterns of secrets, wherever they occur in a text.
_SECRETS = (
    # A name and a password in an address; also one with an @ in the password.
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/]*@", re.IGNORECASE), rf"\1{REDACTED}@"),
    (re.compile(r"\b(bearer|basic)\s+[^\s\"',]+", re.IGNORECASE), rf"\1 {REDACTED}"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+(\.[\w-]*)?"), REDACTED),
    (re.compile(r"\bsk-[\w-]{8,}"), REDACTED),
    (
        re.compile(
            r"((?:password|passwd|secret|token|api[_-]?key)[\"']?\s*[=:]\s*)"
            r"(\"[^\"]*\"|'[^']*'|[^\s\"',;&}]+)",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    # An option of a command, with its value as the next word.
    (
        re.compile(
            r"(?<!\S)(--(?:\w+-)*(?:password|passphrase|secret|token|key)[ \t]+)"
            r"(\"[^\"]*\"|'[^']*'|\S+)",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    # The query string of an address holds queries.
    (re.compile(r"(/[^\s?\"']*)\?[^\s\"']+"), rf"\1?{REDACTED}"),
)
# Codes that libraries give their exceptions: for errors of the database, the system and HTTP.
_CODES = ("code", "sqlstate", "errno", "status_code")
_MAX_CODE_LENGTH = 40
_CODE = re.compile(r"[A-Za-z0-9_.-]+")
_MAX_CAUSES = 10
# C0, DEL and C1; directional marks, embeddings, overrides and isolates; line and paragraph
# separators; lone surrogates, which cannot be encoded; the byte order mark.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_MAX_BYTE = 0xFF


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace values whose name says that they are secret or private, and secrets in the others."""
    for name, value in event.items():
        # Private fields of the library, and what `render_exception` wrote.
        if not name.startswith("_") and name != "exception":
            event[name] = REDACTED if is_private(name) else _clean(value)
    return event


def is_private(name: str) -> bool:
    """Return whether values with this name stay out of logs."""
    lowered = name.lower()
    return lowered in _PRIVATE_WORDS or any(word in lowered for word in _SECRET_WORDS)


def scrub(text: str) -> str:
    """Return the text without passwords, tokens and query strings."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def escape_controls(text: str, *, keep: str = "") -> str:
    """Return the text with control characters written out, except those in `keep`.

    Line breaks forge log lines, ESC and C1 steer terminals, and bidirectional controls reorder
    what a reader sees.
    """
    return _CONTROLS.sub(
        lambda found: found[0] if found[0] in keep else _write_out(ord(found[0])), text
    )


def escape_controls_in_json(line: str) -> str:
    """Return the same JSON with control characters written as JSON escapes."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _write_out(code: int) -> str:
    return f"\\x{code:02x}" if code <= _MAX_BYTE else f"\\u{code:04x}"


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, BaseException):
        return type(value).__name__
    if isinstance(value, Mapping):
        return {
            name: REDACTED if is_private(str(name)) else _clean(inner)
            for name, inner in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clean(inner) for inner in value]
    return value


def shorten_foreign(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Return the first line of what a library logs, without the messages of exceptions, which
    repeat the data being processed."""
    message = _message(event["_record"].msg, event.pop("positional_args", ()), event["event"])
    exc_info = event.get("exc_info")
    if isinstance(exc_info, tuple) and isinstance(exc_info[1], BaseException):
        # Some libraries put the exception into the message as well.
        for quoted in (repr(exc_info[1]), str(exc_info[1]) or repr(exc_info[1])):
            message = message.replace(quoted, type(exc_info[1]).__name__)
    event["event"] = next(iter(message.splitlines()), "")
    return event


def _message(template: Any, args: Any, formatted: str) -> str:
    if isinstance(template, BaseException):
        return type(template).__name__
    if not isinstance(args, tuple) or not any(isinstance(arg, BaseException) for arg in args):
        return formatted
    named = tuple(type(arg).__name__ if isinstance(arg, BaseException) else arg for arg in args)
    try:
        return str(template) % named
    except (TypeError, ValueError):
        return str(template)


def render_exception(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replace an exception with the parts that may be logged, in every format."""
    exc_info = event.pop("exc_info", None)
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if error is True:
        error = sys.exception()  # The exception being handled.
    if isinstance(error, BaseException):
        event["exception"] = "\n".join(format_exception(error))
    event.pop("stack_info", None)
    return event


def format_exception(error: BaseException, *, depth: int = 0) -> list[str]:
    """Return the types, codes and places of an exception and its causes, the first cause first."""
    lines: list[str] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and depth < _MAX_CAUSES:
        joint = "which led to:" if error.__cause__ else "while handling that:"
        lines += [*format_exception(cause, depth=depth + 1), joint]
    if error.__traceback__ is not None:
        lines += "".join(traceback.format_tb(error.__traceback__)).splitlines()
    lines.append(_name_of(error))
    if isinstance(error, BaseExceptionGroup) and depth < _MAX_CAUSES:
        for part in error.exceptions:
            lines += ["  together with:", *format_exception(part, depth=depth + 1)]
    return lines


def _name_of(error: BaseException) -> str:
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    codes = []
    for attribute in _CODES:
        # A property of a library's exception may raise anything.
        with suppress(Exception):
            value = getattr(error, attribute, None)
            if isinstance(value, (int, str)) and _is_code(str(value)):
                codes.append(f"{attribute} {value}")
    described = f"{name} ({', '.join(codes)})" if codes else name
    # These say what the operator has to set, and quote nothing else.
    is_for_operators = isinstance(error, (InvalidSetting, ServerSetup))
    return f"{described}: {scrub(str(error))}" if is_for_operators else described


def _is_code(text: str) -> bool:
    return len(text) <= _MAX_CODE_LENGTH and _CODE.fullmatch(text) is not None
