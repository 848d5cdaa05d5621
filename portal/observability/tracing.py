"""Trace context: which trace a piece of work belongs to, as W3C Trace Context writes it.

The portal records no spans of its own. It reads where a request comes from, shows that in its log
lines, and passes it on to the servers that it asks and to the jobs that it enqueues, so that
a collector sees one trace.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace

import structlog

# Version 00 ends after the flags; a later one may go on after a dash.
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

    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{int(self.is_sampled):02x}"

    def child(self) -> Trace:
        """Return a span within this span."""
        return replace(self, span_id=secrets.token_hex(8))


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def parse(traceparent: str, tracestate: str = "") -> Trace | None:
    """Return the trace that a caller names; None unless it keeps to the format exactly."""
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
    caller = parse(traceparent, tracestate)
    trace = caller.child() if caller else Trace(secrets.token_hex(16), secrets.token_hex(8))
    _current.set(trace)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(
        request_id=request_id, trace_id=trace.trace_id, span_id=trace.span_id
    )


def end() -> None:
    """Delete the request: what this thread logs until the next one has no request's id."""
    _current.set(None)
    structlog.contextvars.clear_contextvars()


def outgoing() -> dict[str, str]:
    """Return the headers for a call of another server; none outside of a request or job."""
    trace = _current.get()
    if trace is None:
        return {}
    headers = {"traceparent": trace.child().traceparent()}
    if trace.state:
        headers["tracestate"] = trace.state
    if request_id := _request_id():
        headers["X-Request-ID"] = request_id
    return headers


def origin() -> dict[str, str]:
    """Return what a job keeps of the request that enqueues it; empty without one."""
    trace = _current.get()
    return {"traceparent": trace.traceparent(), "request_id": _request_id()} if trace else {}


def resume(origin: Mapping[str, str]) -> None:
    """Continue the trace of the request that enqueued a job."""
    sent_id = origin.get("request_id", "")
    request_id = sent_id if is_request_id(sent_id) else secrets.token_hex(16)
    begin(request_id, origin.get("traceparent", ""))


def is_request_id(text: str) -> bool:
    """Return whether a caller's id is safe in a log line."""
    return _REQUEST_ID.fullmatch(text) is not None


def _request_id() -> str:
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))
