"""Trace context: which trace a piece of work belongs to, as W3C Trace Context writes it.

The portal reads the trace of a request, shows it in its log lines, and passes it on to the servers
that it calls and the jobs that it enqueues, so that a collector sees one trace. With
`tracing.endpoint` it records spans itself (`portal.observability.spans`); otherwise `span` does
nothing.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import structlog

from portal.errors import ServerSetup

if TYPE_CHECKING:
    from portal.observability.spans import Recorder

Attribute = str | int | float | bool

# Version 00 ends after the flags; a later one may continue after a dash.
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16
_SAMPLED = 1
_MAX_STATE_LENGTH = 512
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


@dataclass(frozen=True, slots=True)
class Trace:
    """`trace_id` is 32 and `span_id` 16 hexadecimal digits: the whole, and this part of it."""

    trace_id: str
    span_id: str
    is_sampled: bool = False
    state: str = ""
    recorded: Any = field(default=None, compare=False, repr=False)
    """The span to export, if any."""

    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{int(self.is_sampled):02x}"

    def child(self) -> Trace:
        """Return a span within this span."""
        return replace(self, span_id=secrets.token_hex(8), recorded=None)


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)
_recorder: Recorder | None = None
_NOTHING = nullcontext()


def export_to(endpoint: str) -> None:
    """Record spans in this process and send them to a collector. Raises ServerSetup without the
    extra `tracing`."""
    global _recorder  # noqa: PLW0603 - one a process, as the context is
    if _recorder is not None:
        return
    try:
        from portal.observability import spans
    except ModuleNotFoundError as error:
        raise ServerSetup(
            "PORTAL_TRACING__ENDPOINT needs the extra `tracing`: ./run setup --tracing"
        ) from error
    _recorder = spans.connect(endpoint)


def span(name: str, **attributes: Attribute) -> AbstractContextManager[object]:
    """Record the block as a part of this request or job."""
    outer = _current.get()
    if _recorder is None or outer is None:
        return _NOTHING
    return _recording(_recorder.start(name, outer, attributes), outer)


@contextmanager
def _recording(inner: Trace, outer: Trace) -> Iterator[None]:
    _current.set(inner)
    try:
        yield
    except BaseException as error:
        _end(inner, error)
        raise
    else:
        _end(inner)
    finally:
        _current.set(outer)


def record_passed(name: str, seconds: float, **attributes: Attribute) -> None:
    """Record a part that has just ended, for streams, whose thread does other work in between."""
    outer = _current.get()
    if _recorder is not None and outer is not None:
        _end(_recorder.start(name, outer, attributes, started_s_ago=seconds))


def _end(
    trace: Trace, error: BaseException | None = None, attributes: dict[str, Attribute] | None = None
) -> None:
    if trace.recorded is not None:
        from portal.observability import spans

        spans.end(trace.recorded, attributes or {}, error)


def parse(traceparent: str, tracestate: str = "") -> Trace | None:
    """Return the trace that a caller sent; None unless it follows the format exactly."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or (found["version"] == "00" and found["more"]):
        return None
    if found["trace"] == _NO_TRACE or found["span"] == _NO_SPAN:
        return None
    is_state = len(tracestate) <= _MAX_STATE_LENGTH and tracestate.isascii()
    state = tracestate if is_state and tracestate.isprintable() else ""
    return Trace(found["trace"], found["span"], bool(int(found["flags"], 16) & _SAMPLED), state)


def begin(request_id: str, traceparent: str = "", tracestate: str = "") -> None:
    """Bind this thread or task to a request, in the caller's trace or a new one; log lines then
    carry both."""
    _bind("request", request_id, parse(traceparent, tracestate))


def _bind(name: str, request_id: str, caller: Trace | None) -> None:
    if _recorder is not None:
        trace = _recorder.start(name, caller, {})
    elif caller is not None:
        trace = caller.child()
    else:
        trace = Trace(secrets.token_hex(16), secrets.token_hex(8))
    _current.set(trace)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(
        request_id=request_id, trace_id=trace.trace_id, span_id=trace.span_id
    )


def current() -> Trace | None:
    return _current.get()


def end(trace: Trace | None = None, attributes: dict[str, Attribute] | None = None) -> None:
    """Unbind this thread from its request, so that later log lines do not carry its id, and end its
    span. Pass `trace` where another thread closes a stream."""
    ended = trace or _current.get()
    if ended is not None:
        _end(ended, attributes=attributes)
    _current.set(None)
    structlog.contextvars.clear_contextvars()


def outgoing() -> dict[str, str]:
    """Return the headers for a call to another server; none outside of a request or job."""
    trace = _current.get()
    if trace is None:
        return {}
    # Without a recorded span, which would be the parent, the call gets an id of its own.
    sent = trace.child() if trace.recorded is None else trace
    headers = {"traceparent": sent.traceparent()}
    if trace.state:
        headers["tracestate"] = trace.state
    if request_id := _request_id():
        headers["X-Request-ID"] = request_id
    return headers


def origin() -> dict[str, str]:
    """Return the trace and id of the current request, for a job to keep; empty without one."""
    trace = _current.get()
    return {"traceparent": trace.traceparent(), "request_id": _request_id()} if trace else {}


@contextmanager
def resume(origin: Mapping[str, str], **attributes: Attribute) -> Iterator[None]:
    """Continue the trace of the request that enqueued a job, until the job ends."""
    sent_id = origin.get("request_id", "")
    request_id = sent_id if is_request_id(sent_id) else secrets.token_hex(16)
    _bind("job", request_id, parse(origin.get("traceparent", "")))
    try:
        yield
    finally:
        end(attributes=attributes)


def is_request_id(text: str) -> bool:
    """Return whether a caller's id is safe in a log line."""
    return _REQUEST_ID.fullmatch(text) is not None


def _request_id() -> str:
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))
