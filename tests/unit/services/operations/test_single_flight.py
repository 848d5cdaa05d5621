"""Concurrent calls share one computation."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from portal.services.operations.single_flight import SingleFlight


def test_concurrent_callers_share_one_result():
    flight: SingleFlight[int] = SingleFlight()
    asked: list[int] = []
    under_way: Future[int] = Future()
    under_way.set_result(7)
    flight._under_way = under_way
    assert flight.ask(lambda: asked.append(1) or 8) == 7
    assert asked == []


def test_later_call_is_computed_again():
    flight: SingleFlight[int] = SingleFlight()
    answers = iter((1, 2))
    assert [flight.ask(lambda: next(answers)) for _ in range(2)] == [1, 2]


def test_error_is_not_cached():
    flight: SingleFlight[int] = SingleFlight()

    def fail() -> int:
        raise ValueError("once")

    with pytest.raises(ValueError, match="once"):
        flight.ask(fail)
    assert flight.ask(lambda: 1) == 1
