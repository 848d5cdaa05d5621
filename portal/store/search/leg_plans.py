"""Which way a leg looks, by how much is switched on (ADR 10)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from portal.settings.search import PlanSettings
from portal.store.embedding_models.vector_index import scan_settings
from portal.store.search.enabled_sets import EnabledSet
from portal.store.search.keyword_index import ALL_CHUNKS, SHARED_CHUNKS
from portal.store.search.statement import KeywordLeg, KeywordPlan, VectorLeg, VectorPlan

if TYPE_CHECKING:
    from portal.store.search.legs import Legs

# A corrected query is not like the chunks that the graph was made of, and needs a broader front.
# Recall@10 of 100 rows at 50,000 chunks: .979 with a front of 100, .994 with 150.
_FRONT_OF_A_SCAN = 1.5
# Of fewer chunks than these all are compared, where that is not forbidden.
_MIN_SHARE = 0.1


def max_compared(plan: PlanSettings, total_chunks: int) -> int:
    """Comparing all of a few is faster than passing over most of many, and misses nothing."""
    few = min(plan.exact_chunks, int(plan.exact_share * total_chunks))
    return max(plan.exact_always_chunks, few)


def vector_leg(legs: Legs, enabled: EnabledSet) -> VectorLeg | None:
    """Compare all of a few, walk the index otherwise."""
    if legs.vector is None:
        return None
    plan = VectorPlan.INDEX if enabled.ids is None else VectorPlan.EXACT
    return VectorLeg.of(legs.vector.model, plan, limit=legs.leg_limit, of_chunks=enabled.of_chunks)


def keyword_leg(legs: Legs, enabled: EnabledSet) -> KeywordLeg | None:
    """Score the words of a narrow selection here, ask the index of words otherwise."""
    if legs.keywords is None:
        return None
    # The index of words passes over much of a small corpus as fast as not. How many hits the leg
    # offers depends on its plan, and that must not depend on hidden chunks.
    plan = legs.settings.plan
    share = enabled.chunk_count / max(legs.visible_chunks, 1)
    is_narrow = enabled.of_chunks or share < plan.exact_share
    is_small = enabled.chunk_count <= max_compared(plan, legs.visible_chunks)
    is_selection = enabled.ids is not None and is_narrow and is_small
    return KeywordLeg(
        legs.keywords.backend,
        KeywordPlan.SELECTION if is_selection else KeywordPlan.INDEX,
        limit=legs.leg_limit,
        of_chunks=enabled.of_chunks,
        index=ALL_CHUNKS if legs.corpus is None else SHARED_CHUNKS,
    )


def planner_settings(legs: Legs, enabled: EnabledSet) -> dict[str, str]:
    """What PostgreSQL's planner is told for a search."""
    return {
        **scan_settings(legs.settings, _front(legs, enabled)),
        # A generic plan would rescore every row in the keyword leg.
        "plan_cache_mode": "force_custom_plan",
        # The planner cannot know how many rows of an ordered scan are needed, and prefers to join
        # everything and sort.
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
    }


def _front(legs: Legs, enabled: EnabledSet) -> int:
    """How many near vectors a walk of the index keeps in view. With chunks switched off it is as
    many more as bring enough that count at once: a walk that has to go on repeats most of its
    work."""
    wanted, vector = legs.leg_limit, legs.vector
    factor = vector.model.candidate_factor if vector else 1
    is_broad = vector is not None and vector.is_corrected
    front = math.ceil(wanted * factor * (_FRONT_OF_A_SCAN if is_broad else 1))
    share = enabled.chunk_count / max(1, legs.total_chunks, legs.visible_chunks)
    spread = math.sqrt(wanted * max(0.0, 1.0 - share))
    return max(front, math.ceil((wanted + 2 * spread) / max(share, _MIN_SHARE)))
