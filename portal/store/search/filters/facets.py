"""Counts of the documents that a search may find, by folder, tag, kind, owner, domain and date."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.people import User
from portal.domain.search import FacetCount, Facets
from portal.store.documents.selection import (
    PORTAL_COLLECTION,
    SELECTION_JOINS,
    SELECTION_WHERE,
    selection_binds,
)
from portal.store.search.filters.narrowing import facet_conditions

MAX_VALUES = 50

# The value and its label of each facet, and what is joined for it.
_COUNTED = {
    "folder_id": ("s.folder_id", "''", ""),
    "tag": ("t.tag", "t.tag", "CROSS JOIN unnest(s.tags) AS t(tag)"),
    "media_type": ("s.media_type", "''", ""),
    "owner_id": ("s.owner_id", "u.name", "JOIN users u ON u.id = s.owner_id"),
    "domain": ("lower(s.domain)", "min(s.domain)", ""),
    "days": (
        "v.days",
        "''",
        """JOIN (VALUES (7), (30), (365)) AS v(days)
        ON s.created_at >= date_trunc('day', now(), 'UTC') - make_interval(days => v.days)""",
    ),
}


def count_facets(session: Session, user: User, chosen: Facets) -> list[FacetCount]:
    """Count the documents that the user may see and has switched on, the most frequent first,
    dates from the latest on.

    The values of a facet are counted under what is chosen of the others, so that another value can
    be chosen instead. Folders count the documents directly in them.
    """
    binds: dict[str, Any] = {}
    conditions = facet_conditions(chosen, binds)
    fits = "".join(f", ({sql}) AS fits_{name}" for name, sql in conditions.items())
    counts = " UNION ALL ".join(_count(facet, set(conditions) - {facet}) for facet in _COUNTED)
    statement = text(
        f"""
        WITH s AS MATERIALIZED (
            SELECT d.folder_id, d.tags, d.media_type, d.owner_id, d.domain, d.created_at {fits}
            FROM documents d {SELECTION_JOINS}
            WHERE d.collection_id = (SELECT id FROM collections WHERE name = :collection)
              AND d.current_job_id IS NOT NULL AND {SELECTION_WHERE}
        )
        {counts}
        """
    )
    binds |= selection_binds(user, None) | {"collection": PORTAL_COLLECTION}
    return [FacetCount(*row) for row in session.execute(statement, binds)]


def _count(facet: str, others: set[str]) -> str:
    value, label, joined = _COUNTED[facet]
    where = " AND ".join([f"{value} IS NOT NULL", *(f"s.fits_{name}" for name in sorted(others))])
    # A label that is not aggregated is one of the groups.
    groups = value if label in {"''", "min(s.domain)"} or label == value else f"{value}, {label}"
    order = value if facet == "days" else "n DESC, 2"
    return f"""(
        SELECT '{facet}', CAST({value} AS text), {label}, count(*) AS n FROM s {joined}
        WHERE {where} GROUP BY {groups} ORDER BY {order} LIMIT {MAX_VALUES})"""
