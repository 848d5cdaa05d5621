"""W3C Trace Context: parsed strictly, passed on, and not trusted beyond its fields."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from portal.observability import tracing
from portal.observability.tracing import Trace

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("header", "is_sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-ff", True),
        (f"01-{TRACE}-{SPAN}-01-what-comes-later", True),
    ],
)
def test_well_formed_headers_are_read(header, is_sampled):
    assert tracing.parse(header) == Trace(TRACE, SPAN, is_sampled)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "00",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01 ",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0g",
        f"00-{TRACE}-{SPAN}-01,00-{TRACE}-{SPAN}-01",
    ],
)
def test_malformed_headers_are_ignored(header):
    assert tracing.parse(header) is None


@given(st.text(max_size=80))
def test_parsed_header_can_be_written_again(header):
    found = tracing.parse(header)
    assert found is None or tracing.parse(found.traceparent()) is not None


def test_request_is_a_new_span_in_its_callers_trace():
    tracing.begin("a-request-id", f"00-{TRACE}-{SPAN}-01", "vendor=1")
    bound = structlog.contextvars.get_contextvars()
    assert bound["trace_id"] == TRACE
    assert bound["span_id"] not in {SPAN, ""}
    first, second = tracing.outgoing(), tracing.outgoing()
    spans = [re.fullmatch(rf"00-{TRACE}-([0-9a-f]{{16}})-01", one["traceparent"])[1]
             for one in (first, second)]  # fmt: skip
    assert len({*spans, bound["span_id"], SPAN}) == 4
    assert first["X-Request-ID"] == "a-request-id"
    assert first["tracestate"] == "vendor=1"


def test_request_without_a_trace_begins_an_unsampled_one():
    tracing.begin("a-request-id", "nonsense")
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-00", tracing.outgoing()["traceparent"])


@pytest.mark.parametrize("state", ["x" * 513, "wörld=1", "a=1\r\nX-Evil: 1"])
def test_tracestate_that_could_break_a_header_is_dropped(state):
    tracing.begin("a-request-id", f"00-{TRACE}-{SPAN}-01", state)
    assert "tracestate" not in tracing.outgoing()


def test_job_continues_the_trace_that_enqueued_it():
    tracing.begin("a-request-id", f"00-{TRACE}-{SPAN}-01")
    origin = tracing.origin()
    with ThreadPoolExecutor(1) as pool:

        def work():
            assert tracing.outgoing() == {}
            with tracing.resume(origin):
                return structlog.contextvars.get_contextvars()

        bound = pool.submit(work).result()
    assert bound["request_id"] == "a-request-id"
    assert bound["trace_id"] == TRACE
    assert bound["span_id"] != structlog.contextvars.get_contextvars()["span_id"]


@pytest.mark.parametrize("origin", [{}, {"request_id": "bad\nid", "traceparent": "x"}])
def test_job_without_an_origin_gets_new_ids(origin):
    with tracing.resume(origin):
        assert re.fullmatch(r"[0-9a-f]{32}", tracing.outgoing()["X-Request-ID"])
    assert tracing.outgoing() == {}
