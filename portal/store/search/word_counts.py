"""Words in the chunks that are enabled for a user: visible, not deleted, switched on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

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

# The queries and patterns. OFFSET 0 keeps each query from being parsed for every row.
_WANTED = """(
        SELECT number, to_tsquery('simple', query) AS query, pattern
        FROM unnest(CAST(:queries AS text[]), CAST(:patterns AS text[]))
            WITH ORDINALITY AS given (query, pattern, number)
        OFFSET 0
    ) wanted"""
_WORDS = "concat_ws(E'\\n', c.content, c.context, c.heading, d.title)"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence to look for in chunks with their headings, table header and title: a match of
    `query` (for `to_tsquery('simple', …)`) and of the regular expression `pattern`, if given."""

    query: str
    pattern: str | None = None


# One plan for all queries. Patterns are only tried on chunks that are switched on: only CASE keeps
# the order of conditions.
_MATCHES = text(
    f"""
    SELECT wanted.number, few.found
    FROM {_WANTED}
    CROSS JOIN LATERAL (
        SELECT COALESCE(substring(whole.words FROM wanted.pattern), '') AS found
        FROM document_chunks c
        JOIN documents d ON d.current_job_id = c.job_id
        CROSS JOIN LATERAL (SELECT {_WORDS} AS words) whole
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
# If there are few chunks, all are read once: the index may have a word in any number of others.
_MATCHES_IN_FEW = text(
    f"""
    WITH counted AS MATERIALIZED (
        SELECT c.terms_vector, {_WORDS} AS words
        FROM unnest(CAST(:jobs AS uuid[])) AS job (id)
        JOIN documents d ON d.current_job_id = job.id
        JOIN document_chunks c ON c.job_id = job.id
        {SELECTION_JOINS}
        WHERE d.collection_id = (SELECT id FROM collections WHERE name = :collection)
          AND {SELECTION_WHERE}
    )
    SELECT wanted.number, few.found
    FROM {_WANTED}
    CROSS JOIN LATERAL (
        SELECT COALESCE(substring(words FROM wanted.pattern), '') AS found
        FROM counted
        WHERE terms_vector @@ wanted.query
          AND (wanted.pattern IS NULL OR words ~ wanted.pattern)
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


@dataclass(frozen=True, slots=True)
class SearchableWords:
    """The words of the chunks that are enabled for a user in a conversation. `jobs` lists all jobs
    with such chunks, as a PostgreSQL array, if these chunks are few."""

    session: Session
    user: User
    conversation_id: UUID | None = None
    jobs: str | None = None

    def matches(
        self, wanted: Mapping[Key, Evidence], *, max_matches: int = 1
    ) -> dict[Key, list[str]]:
        """Return what matches each evidence's pattern ("" without one), one string per chunk, from
        at most `max_matches` chunks; evidence without a match is left out."""
        if not wanted:
            return {}
        evidence = wanted.values()
        binds = self._binds([one.pattern for one in evidence], max_matches)
        binds["queries"] = [one.query for one in evidence]
        if self.jobs is None:
            return _by_key(wanted, fetch(self.session, _MATCHES, binds))
        few = binds | {"jobs": self.jobs}
        return _by_key(wanted, fetch(self.session, _MATCHES_IN_FEW, few))

    def title_matches(
        self, wanted: Mapping[Key, str], *, max_matches: int = 1
    ) -> dict[Key, list[str]]:
        """Return what matches each regular expression in titles, one string per document, from at
        most `max_matches` documents; expressions without a match are left out."""
        if not wanted:
            return {}
        binds = self._binds(list(wanted.values()), max_matches)
        return _by_key(wanted, fetch(self.session, _TITLES, binds))

    def _binds(self, patterns: Sequence[str | None], max_matches: int) -> dict[str, Any]:
        return selection_binds(self.user, self.conversation_id) | {
            "collection": PORTAL_COLLECTION,
            "patterns": patterns,
            "max_matches": max_matches,
        }


def _by_key(wanted: Iterable[Key], rows: Iterable[Any]) -> dict[Key, list[str]]:
    keys = list(wanted)
    found: dict[Key, list[str]] = {}
    for number, string in rows:
        found.setdefault(keys[number - 1], []).append(string)
    return found
