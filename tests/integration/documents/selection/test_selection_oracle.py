"""No search shows a disabled, deleted or foreign document, nor hides an enabled one.

A portal changes at random, and after each change a user searches in one of two processes, each of
which caches enabled sets. Every result is compared with an oracle in plain Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from portal.domain.search import SearchMode
from portal.services import Services
from tests.integration.documents.selection.selection_changes import CHANGES
from tests.integration.documents.selection.selection_world import World
from tests.integration.documents.selection.small_portal import SLOTS, Step

# Ten thousand take some minutes; CONTRIBUTING.md says when to run them.
STATES = int(os.environ.get("PORTAL_ORACLE_STATES", "1500"))
STEPS = 40  # Steps before the portal starts over.
NEVER = {"exact_always_chunks": 0, "exact_chunks": 0, "exact_share": 0.0}
ALWAYS = {"exact_always_chunks": 1_000_000, "exact_chunks": 1_000_000, "exact_share": 1.0}
PLANS = {"index": NEVER, "exact": ALWAYS, "default": {}}
EXAMPLES = -(-STATES // (STEPS * len(PLANS)))

steps = st.builds(
    Step,
    change=st.sampled_from(sorted(CHANGES)),
    process=st.integers(0, 1),
    user=st.integers(0, 5),
    slot=st.integers(0, SLOTS - 1),
    seed=st.integers(0, 2**20),
    mode=st.sampled_from(SearchMode),
    moves=st.sampled_from((True, False, False, False, False)),
    asks=st.integers(0, 2),
    in_conversation=st.booleans(),
    is_narrow=st.sampled_from((True, False, False)),
)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("plan", PLANS)
def test_searches_find_just_what_the_oracle_allows(
    make_services: Callable[..., Services], plan: str
) -> None:
    world = World.of(*(make_services(search={"plan": PLANS[plan]}) for _ in range(2)))
    if plan == "index":
        prefer_indexes(world.processes)
    states = 0

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(steps, min_size=STEPS, max_size=STEPS))
    def live(life: list[Step]) -> None:
        nonlocal states
        world.reset()
        for step in life:
            world.apply(step)
            world.check(step)
            states += 1
        world.let_go()
        world.check_strangers()

    live()
    assert states * len(PLANS) >= STATES


def prefer_indexes(processes: tuple[Services, ...]) -> None:
    """Make the planner use indexes even on tables small enough for a sequential scan."""
    for services in processes:
        name = services.database.engine.url.database
        with services.database.begin() as session:
            for setting in ("enable_seqscan", "enable_sort"):
                session.execute(text(f'ALTER DATABASE "{name}" SET {setting} = off'))
        services.database.dispose()
