"""The pages that chunks touch, their labels, and the headings above, from their revisions.

A chunk has the page and the headings of its first character. It may span several pages of a slide
show and several short sections, while the match is on one of them. A label is printed on a page
instead of its number: "iv", "A-3". Revisions list their pages in order, from 1 without gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import text

from portal.domain.documents import Heading, Page
from portal.store.statements import Reader, fetch_named
from portal.text.layout.outlines import Outline

# More pages than any chunk of readable text touches.
_MAX_PAGES = 400
# In a text with more headings, each chunk keeps the one that it begins under.
_MAX_HEADINGS = 2_000

# Strict paths: lax ones would look into each heading, which is an array itself.
_OUTLINES = text(
    f"""
    SELECT c.id,
           COALESCE(jsonb_path_query_array(r.pages, '$[$first to $last]', bounds), '[]') AS pages,
           CASE WHEN jsonb_array_length(r.headings) <= {_MAX_HEADINGS} AND jsonb_path_exists(
                    r.headings, 'strict $[*] ? (@[2] > $start && @[2] < $end)', bounds)
                THEN jsonb_path_query_array(r.headings, 'strict $[*] ? (@[2] < $end)', bounds)
                ELSE '[]' END AS headings
    FROM document_chunks c
    JOIN jobs j ON j.id = c.job_id
    JOIN document_revisions r ON r.id = j.revision_id
    CROSS JOIN LATERAL jsonb_build_object(
        'first', COALESCE(c.page - 1, 0),
        'last', CASE WHEN c.page IS NULL THEN 0 ELSE c.page - 1 + {_MAX_PAGES} END,
        'start', c.char_start, 'end', c.char_end
    ) AS bounds
    WHERE c.id = ANY(CAST(:chunk_ids AS uuid[])) AND c.char_start IS NOT NULL
      AND (c.page IS NOT NULL OR c.heading IS NOT NULL)
    """
)


def outlines(reader: Reader, chunk_ids: Sequence[UUID]) -> dict[UUID, Outline]:
    """Return the outlines of the chunks that have pages or headings, by id."""
    if not chunk_ids:
        return {}
    rows: Any = fetch_named(reader, _OUTLINES, {"chunk_ids": list(chunk_ids)})
    return {
        row.id: Outline(
            pages=tuple(Page(*page) for page in row.pages),
            headings=tuple(Heading(*heading) for heading in row.headings),
        )
        for row in rows
    }


def page_label(pages: str, page: str) -> str:
    """Return SQL for a page's label, NULL if that is the number; the arguments are columns."""
    return f"{pages} -> ({page} - 1) ->> 3"


def label_of_chunk(chunk: str) -> str:
    """Return SQL for the label of the page on which a chunk begins. `chunk` is the alias of its
    row. Text without pages costs nothing, other text two lookups by key."""
    return f"""(
        SELECT {page_label("revision.pages", f"{chunk}.page")}
        FROM jobs job JOIN document_revisions revision ON revision.id = job.revision_id
        WHERE job.id = {chunk}.job_id AND {chunk}.page IS NOT NULL
    )"""
