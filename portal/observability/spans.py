"""Spans for a collector, with OpenTelemetry's SDK. Only this module uses the SDK; it is imported
only if `tracing.endpoint` is set.

Attributes are names from the code (endpoints, methods, providers) and numbers, never an address, a
message or anything that a user wrote. For an error, the span has its type. A caller's `tracestate`
is passed on in headers and not exported.
"""

from __future__ import annotations

import os
import time
from typing import Any

from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from portal.observability.tracing import Attribute, Trace

_KINDS = {"request": SpanKind.SERVER, "job": SpanKind.CONSUMER, "chat": SpanKind.CLIENT}
# A process that stops waits this long for a collector that does not answer.
_TIMEOUT_S = 3.0


class Recorder:
    """Starts and ends spans. The SDK's variables (OTEL_…) set headers, sampling and the rest."""

    def __init__(self, processor: SpanProcessor) -> None:
        os.environ.setdefault("OTEL_SERVICE_NAME", "portal")
        provider = TracerProvider()
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer("portal")

    def start(
        self,
        name: str,
        parent: Trace | None,
        attributes: dict[str, Attribute],
        *,
        started_s_ago: float = 0,
    ) -> Trace:
        """Start a span within another, or the first of a trace."""
        span = self._tracer.start_span(
            name,
            Context() if parent is None else _within(parent),
            _KINDS.get(name, SpanKind.INTERNAL),
            attributes,
            start_time=time.time_ns() - int(started_s_ago * 1e9),
        )
        ids = span.get_span_context()
        return Trace(
            f"{ids.trace_id:032x}",
            f"{ids.span_id:016x}",
            ids.trace_flags.sampled,
            parent.state if parent else "",
            span,
        )


def connect(endpoint: str) -> Recorder:
    """Return a recorder that sends spans to a collector, in batches from a separate thread."""
    timeout_s = float(os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT", _TIMEOUT_S))
    return Recorder(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=timeout_s)))


def end(span: Any, attributes: dict[str, Attribute], error: BaseException | None = None) -> None:
    """End a span. Only the type of an error is recorded, since messages quote data."""
    span.set_attributes(attributes)
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
    span.end()


def _within(parent: Trace) -> Context:
    flags = TraceFlags(TraceFlags.SAMPLED if parent.is_sampled else TraceFlags.DEFAULT)
    ids = SpanContext(int(parent.trace_id, 16), int(parent.span_id, 16), True, flags)
    return otel.set_span_in_context(NonRecordingSpan(ids), Context())
