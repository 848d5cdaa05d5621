"""Query plans of the legs, chosen by how much is switched on (ADR 10)."""

from __future__ import annotations

import math
from typing import Any

from portal.domain.search.bm25 import ALL_CHUNKS, SHARED_CHUNKS
from portal.settings.search import PlanSettings
from portal.store.embedding_models.vector_index import scan_settings
from portal.store.search.legs.statements import (
    KeywordLeg,
    KeywordPlan,
    Shape,
    VectorLeg,
    VectorPlan,
)
from portal.store.search.queries import Legs
from portal.store.search.selection.enabled import EnabledSet

# A corrected query is unlike the chunks that the graph was built from, and needs a larger
# ef_search. Recall@10 of 100 rows at 50,000 chunks: .979 at 100, .994 at 150.
_CORRECTED_EF_SEARCH_FACTOR = 1.5
# The larger a graph, the more of it a walk has to see for the same recall (docs/performance.md).
_EF_SEARCH_BASE_CHUNKS = 50_000
_EF_SEARCH_GROWTH = 0.4
# The smallest share of enabled chunks that ef_search is raised for.
_MIN_SHARE = 0.1


def max_compared(plan: PlanSettings, total_chunks: int) -> int:
    """Return how many chunks to compare exhaustively: for few that is faster than an index scan
    that rejects many rows, and it misses nothing."""
    few = min(plan.exact_chunks, int(plan.exact_share * total_chunks))
    return max(plan.exact_always_chunks, few)


def shape_for(legs: Legs, enabled: EnabledSet) -> Shape:
    """Choose the plan of each leg."""
    narrowing, conversation_id = legs.scope.narrowing, legs.scope.conversation_id
    by_slots = enabled.slots is not None and bool(enabled.slots.bits) and not narrowing.chunks
    return Shape(
        vector=_vector_leg(legs, enabled),
        keyword=_keyword_leg(legs, enabled),
        limit=legs.leg_limit,
        of_chunks=enabled.of_chunks,
        documents="" if by_slots else narrowing.documents,
        chunks=narrowing.chunks,
        by_document=legs.by_document,
        in_conversation=conversation_id is not None and not by_slots,
        by_slots=by_slots,
    )


def _vector_leg(legs: Legs, enabled: EnabledSet) -> VectorLeg | None:
    """Choose to compare a small set exhaustively, and to use the index otherwise."""
    if legs.vector is None:
        return None
    plan = VectorPlan.INDEX if enabled.ids is None else VectorPlan.EXACT
    return VectorLeg.of(legs.vector.model, plan)


def _keyword_leg(legs: Legs, enabled: EnabledSet) -> KeywordLeg | None:
    """Choose to look up a narrow selection beforehand, and to use the index otherwise."""
    if legs.keywords is None:
        return None
    # In a small corpus the index of words is as fast with a selection as without. The number of
    # hits that the leg offers depends on its plan, and must not depend on hidden chunks.
    plan = legs.settings.plan
    share = enabled.chunk_count / max(legs.visible_chunks, 1)
    is_narrow = enabled.of_chunks or share < plan.exact_share
    is_small = enabled.chunk_count <= max_compared(plan, legs.visible_chunks)
    is_selection = enabled.ids is not None and is_narrow and is_small
    return KeywordLeg(
        KeywordPlan.SELECTION if is_selection else KeywordPlan.INDEX,
        legs.keywords.backend,
        ALL_CHUNKS if legs.corpus is None else SHARED_CHUNKS,
    )


def server_settings(legs: Legs, enabled: EnabledSet) -> dict[str, Any]:
    """Return the server's settings for the statements of a search."""
    return {
        **scan_settings(legs.settings, _ef_search(legs, enabled)),
        # A generic plan would rescore every row in the keyword leg.
        "plan_cache_mode": "force_custom_plan",
        # The planner cannot estimate how many rows of an ordered scan are needed, and prefers to
        # join everything and sort.
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
        # Conditions on chunks may be so selective that reading what they find is faster.
        "enable_sort": "on" if legs.scope.narrowing.chunks else "off",
        "statement_timeout": legs.deadline.milliseconds,
    }


def _ef_search(legs: Legs, enabled: EnabledSet) -> int:
    """Return ef_search, raised if chunks are switched off, so that one scan finds enough."""
    # A scan that has to continue repeats much of its work.
    wanted, vector = legs.leg_limit, legs.vector
    factor = vector.model.candidate_factor if vector else 1
    is_corrected = vector is not None and vector.is_corrected
    chunks = max(1, legs.total_chunks, legs.visible_chunks)
    growth = math.pow(max(1.0, chunks / _EF_SEARCH_BASE_CHUNKS), _EF_SEARCH_GROWTH)
    ef_search = math.ceil(
        wanted * factor * growth * (_CORRECTED_EF_SEARCH_FACTOR if is_corrected else 1)
    )
    share = enabled.chunk_count / chunks
    spread = math.sqrt(wanted * max(0.0, 1.0 - share))
    return max(ef_search, math.ceil((wanted + 2 * spread) / max(share, _MIN_SHARE)))
