"""Words in the chunks that count for a user: visible, not deleted, switched on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from psycopg.rows import tuple_row
from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.people import User
from portal.store.documents.selection import (
    ENABLED,
    PORTAL_COLLECTION,
    SELECTION_JOINS,
    SELECTION_WHERE,
    selection_binds,
)
from portal.store.statements import fetch

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What to look for in chunks with their headings, table header and title: matches of `query`
    (for `to_tsquery('simple', …)`) and, if there is a `pattern`, of this regular expression too."""

    query: str
    pattern: str | None = None


# One plan for all queries; OFFSET 0 keeps each query from being parsed for every row. Patterns are
# tried only on what is switched on: CASE alone keeps the order of conditions.
_MATCHES = text(
    f"""
    SELECT wanted.number, few.found
    FROM (
        SELECT number, to_tsquery('simple', query) AS query, pattern
        FROM unnest(CAST(:queries AS text[]), CAST(:patterns AS text[]))
            WITH ORDINALITY AS given (query, pattern, number)
        OFFSET 0
    ) wanted
    CROSS JOIN LATERAL (
        SELECT COALESCE(substring(whole.words FROM wanted.pattern), '') AS found
        FROM document_chunks c
        JOIN documents d ON d.current_job_id = c.job_id
        CROSS JOIN LATERAL (
            SELECT concat_ws(E'\\n', c.content, c.context, c.heading, d.title) AS words
        ) whole
        {SELECTION_JOINS}
        WHERE c.terms_vector @@ wanted.query
          AND CASE WHEN {ENABLED}
                   THEN wanted.pattern IS NULL OR whole.words ~ wanted.pattern END
          AND d.collection_id = (SELECT id FROM collections WHERE name = :collection)
          AND {SELECTION_WHERE}
        LIMIT :max_matches
    ) few
    """
)

_TITLES = text(
    f"""
    SELECT wanted.number, few.found
    FROM unnest(CAST(:patterns AS text[])) WITH ORDINALITY AS wanted (pattern, number)
    CROSS JOIN LATERAL (
        SELECT substring(d.title FROM wanted.pattern) AS found
        FROM documents d
        {SELECTION_JOINS}
        WHERE d.title ~ wanted.pattern
          AND d.current_job_id IS NOT NULL
          AND d.collection_id = (SELECT id FROM collections WHERE name = :collection)
          AND {SELECTION_WHERE}
        LIMIT :max_matches
    ) few
    """
)


def visible_matches(
    session: Session,
    user: User,
    conversation_id: UUID | None,
    wanted: Mapping[Key, Evidence],
    *,
    max_matches: int = 1,
) -> dict[Key, list[str]]:
    """Return what matches each evidence's pattern ("" without one) in chunks that count for this
    user, one string per chunk, from at most `max_matches` chunks; evidence without a match is
    left out."""
    if not wanted:
        return {}
    keys, evidence = list(wanted), list(wanted.values())
    binds = selection_binds(user, conversation_id) | {
        "collection": PORTAL_COLLECTION,
        "queries": [each.query for each in evidence],
        "patterns": [each.pattern for each in evidence],
        "max_matches": max_matches,
    }
    return _by_key(keys, fetch(session, _MATCHES, binds, tuple_row))


def visible_titles(
    session: Session,
    user: User,
    conversation_id: UUID | None,
    wanted: Mapping[Key, str],
    *,
    max_matches: int = 1,
) -> dict[Key, list[str]]:
    """Return what matches each regular expression in the titles of documents that count for this
    user, one string per document, from at most `max_matches` documents; expressions without a
    match are left out."""
    if not wanted:
        return {}
    binds = selection_binds(user, conversation_id) | {
        "collection": PORTAL_COLLECTION,
        "patterns": list(wanted.values()),
        "max_matches": max_matches,
    }
    return _by_key(list(wanted), fetch(session, _TITLES, binds, tuple_row))


def _by_key(keys: Sequence[Key], rows: Iterable[Any]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = {}
    for number, string in rows:
        found.setdefault(keys[number - 1], []).append(string)
    return found
