"""Rounds of faults: a short one in every run, a long one with --faults, each with its seed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

_LONG_TIMEOUT_S = 3600


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--faults"):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.timeout(_LONG_TIMEOUT_S))


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--faults"))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Chance that can be had again: what a failed test printed goes into --seed."""
    seed = request.config.getoption("--seed")
    seed = random.SystemRandom().randrange(10**6) if seed is None else seed
    print(f"\nrepeat with: ./run test {request.node.nodeid} --seed {seed}")  # noqa: T201
    return random.Random(seed)
