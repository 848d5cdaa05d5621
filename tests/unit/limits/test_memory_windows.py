"""Sliding windows in memory: at most `limit` units in any period, and bounded memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from portal.limits.storage import MemoryWindows
from tests.factories.clock import Clock


@given(st.lists(st.floats(0, 30), max_size=60), st.integers(1, 5))
def test_windows_never_exceed_their_limit_or_refuse_below_it(
    pauses: list[float], limit: int
) -> None:
    clock = Clock()
    windows = MemoryWindows(clock=clock)
    granted: list[float] = []
    for pause in pauses:
        clock.now += pause
        within = [then for then in granted if then >= clock.now - 60]
        assert windows.window("k", 60)[1] == len(within)
        is_granted = windows.acquire("k", limit, 60)
        assert is_granted == (len(within) < limit)
        if is_granted:
            granted.append(clock.now)


def test_refunded_units_can_be_used_again() -> None:
    windows = MemoryWindows()
    assert windows.acquire("k", 1, 60)
    assert not windows.acquire("k", 1, 60)
    windows.refund("k")
    assert windows.acquire("k", 1, 60)


def test_window_starts_at_its_first_charge() -> None:
    clock = Clock()
    windows = MemoryWindows(clock=clock)
    windows.acquire("k", 2, 60)
    clock.now += 10
    windows.acquire("k", 2, 60)
    assert windows.window("k", 60) == (1_000.0, 2)


def test_made_up_keys_evict_only_each_other() -> None:
    windows = MemoryWindows(max_keys=10)
    for number in range(1_000):
        windows.acquire(f"name {number}", 10, 60)
        windows.acquire("address", 100, 60)
    assert windows.window("address", 60)[1] == 100
    assert windows.reset() == 10


def test_threads_share_one_allowance() -> None:
    windows = MemoryWindows()
    with ThreadPoolExecutor(8) as threads:
        granted = list(threads.map(lambda _: windows.acquire("k", 50, 60), range(400)))
    assert granted.count(True) == 50
