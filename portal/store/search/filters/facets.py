"""Counts of the documents that a search may find, by folder, tag, type, owner, domain and date."""

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
from portal.store.search.filters.narrowing import days_ago, facet_conditions

MAX_VALUES = 50
_SPANS = (365, 30, 7)

# For each facet, SQL for its value, for its label, and for the join that both need.
_COUNTED = {
    "folder_id": ("s.folder_id", "''", ""),
    "tag": ("t.tag", "t.tag", "CROSS JOIN unnest(s.tags) AS t(tag)"),
    "media_type": ("s.media_type", "''", ""),
    "owner_id": ("s.owner_id", "u.name", "JOIN users u ON u.id = s.owner_id"),
    "domain": ("lower(s.domain)", "min(s.domain)", ""),
    "days": (
        "v.days",
        "''",
        "JOIN unnest(CAST(:spans AS int[])) WITH ORDINALITY AS v(days, age) ON s.age >= v.age",
    ),
}
# The number of spans of `_SPANS` that a document is recent enough for.
_AGE = "width_bucket(d.created_at, CAST(:starts AS timestamptz[]))"


def count_facets(session: Session, user: User, chosen: Facets) -> list[FacetCount]:
    """Count the documents that the user may see and has switched on, by the values of each facet:
    the most frequent first, dates latest first.

    The values of a facet are counted under the values chosen for the other facets, so that another
    value can be chosen instead. Folders count the documents directly in them.

    Documents that agree in all facets are first counted as one group: there are far fewer groups
    than documents.
    """
    binds: dict[str, Any] = {}
    conditions = facet_conditions(chosen, binds)
    fits = "".join(f", ({sql}) AS fits_{name}" for name, sql in conditions.items())
    columns = f"d.folder_id, d.tags, d.media_type, d.owner_id, d.domain, {_AGE} AS age {fits}"
    places = ", ".join(str(place + 1) for place in range(len(_COUNTED) + len(conditions)))
    counts = " UNION ALL ".join(_count(facet, set(conditions) - {facet}) for facet in _COUNTED)
    statement = text(
        f"""
        WITH s AS MATERIALIZED (
            SELECT {columns}, count(*) AS n
            FROM documents d {SELECTION_JOINS}
            WHERE d.collection_id = (SELECT id FROM collections WHERE name = :collection)
              AND d.current_job_id IS NOT NULL AND {SELECTION_WHERE}
            GROUP BY {places}
        )
        {counts}
        """
    )
    binds |= selection_binds(user, None) | {"collection": PORTAL_COLLECTION}
    binds |= {"spans": list(_SPANS), "starts": [days_ago(days) for days in _SPANS]}
    return [FacetCount(*row) for row in session.execute(statement, binds)]


def _count(facet: str, others: set[str]) -> str:
    value, label, joined = _COUNTED[facet]
    where = " AND ".join([f"{value} IS NOT NULL", *(f"s.fits_{name}" for name in sorted(others))])
    # A label that is not aggregated has to be grouped by.
    groups = value if label in {"''", "min(s.domain)"} or label == value else f"{value}, {label}"
    order = value if facet == "days" else "n DESC, 2"
    return f"""(
        SELECT '{facet}', CAST({value} AS text), {label}, CAST(sum(s.n) AS int) AS n FROM s {joined}
        WHERE {where} GROUP BY {groups} ORDER BY {order} LIMIT {MAX_VALUES})"""
