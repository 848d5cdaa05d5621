"""The claims of docs/cluster.md about dividing tables between servers by document."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

from portal.domain.search import KeywordBackend
from portal.domain.search.bm25 import ALL_CHUNKS, SHARED_CHUNKS
from portal.store.models import Base
from portal.store.search.found_chunks import _chunks
from portal.store.search.legs.statements import (
    KeywordLeg,
    KeywordPlan,
    Shape,
    VectorLeg,
    VectorPlan,
    given_statement,
    keyword_statement,
    vector_statement,
)

PAGE = Path(__file__).resolve().parents[5] / "docs" / "cluster.md"
# The tables with rows of documents, which would be divided by document id.
DIVIDED = {name for name, table in Base.metadata.tables.items() if "document_id" in table.c}
_TABLE = re.compile(r"(?:FROM|JOIN) (\w+) (\w+)")
_EQUAL = re.compile(r"(\w+)\.(document_id|id|job_id|current_job_id|chunk_id) = (\w+)\.(\w+)")


def joins_without_key(sql: str) -> set[tuple[str, str]]:
    """Return the column pairs that join divided tables without comparing their document ids."""
    tables = {alias: name for name, alias in _TABLE.findall(sql)}
    divided = {alias for alias, name in tables.items() if name in DIVIDED or name == "documents"}
    divided |= {alias for alias, name in tables.items() if name.startswith("chunk_embeddings")}
    by_key, others = set(), {}
    for left, one, right, other in _EQUAL.findall(sql):
        pair = frozenset((left, right))
        if len(pair & divided) == 2 or (pair & divided and "found" in pair):
            if {one, other} <= {"document_id", "id"} and "document_id" in {one, other}:
                by_key.add(pair)
            else:
                others[pair] = (one, other)
    return {names for pair, names in others.items() if pair not in by_key}


def hot_statements() -> list[str]:
    found = [str(_chunks(in_conversation=is_in)) for is_in in (False, True)]
    for plan, words, index, is_in, by_slots in product(
        VectorPlan, KeywordPlan, (ALL_CHUNKS, SHARED_CHUNKS), (False, True), (False, True)
    ):
        shape = Shape(
            vector=VectorLeg(plan, "chunk_embeddings_m1", "e.embedding", "e.embedding", 1),
            keyword=KeywordLeg(words, KeywordBackend.PG_TEXTSEARCH, index),
            limit=100,
            in_conversation=is_in,
            by_slots=by_slots,
        )
        found += [str(make(shape)) for make in (vector_statement, keyword_statement)]
        found.append(str(given_statement(shape)))
    return found


def test_page_names_the_joins_of_a_search_without_the_document() -> None:
    named = {
        "d.current_job_id = e.job_id": ("current_job_id", "job_id"),
        "e.chunk_id = found.chunk_id": ("chunk_id", "chunk_id"),
        "revision.id = job.revision_id": ("id", "revision_id"),
        "job.id = c.job_id": ("id", "job_id"),
    }
    assert set().union(*map(joins_without_key, hot_statements())) == set(named.values())
    page = PAGE.read_text(encoding="utf-8")
    assert [join for join in named if f"`{join}`" not in page] == []


def test_the_page_names_every_table_that_would_be_divided() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Past one PostgreSQL")[2]
    named = set(re.findall(r"`(\w+)`", section.partition("\n\n| ")[0]))
    assert DIVIDED | {"documents"} <= named
