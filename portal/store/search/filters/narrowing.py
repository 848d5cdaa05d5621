"""Query operators as conditions of the search statement.

Matching is by regular expression, because Chinese words are segmented differently next to different
neighbours; the index of terms limits the chunks that are matched. Both conditions are in the legs,
before their LIMIT.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from portal.domain.documents.selection import AskScope
from portal.domain.search import Facets
from portal.domain.search.metadata_filter import MetadataFilter
from portal.store.documents.selection import in_or_below, scope_conditions
from portal.store.search.filters.metadata import metadata_condition
from portal.text.characters.folding import spellings
from portal.text.characters.scripts import HAN, HANGUL, HIRAGANA, KATAKANA
from portal.text.terms.analyser import query_terms, tsquery_any_in_each
from portal.text.terms.query_syntax import ParsedQuery

_SPACE = "[\\s\u00a0\u3000]"
_UNSPACED = re.compile(f"[{HAN}{HIRAGANA}{KATAKANA}{HANGUL}]")
_LATIN = re.compile("[A-Za-z0-9\u00c0-\u024f\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
# The hyphen comes last: anywhere else it would mean a range.
_TITLE_GAP = "[\\s\u00a0\u3000_.\uff3f\uff0e\u2010-\u2015\uff0d-]"
_TITLE_GAPS = re.compile(f"{_TITLE_GAP}+")
# The content type that a program gave a chunk takes precedence over that of the file.
CONTENT_TYPE = "COALESCE(c.metadata ->> 'content_type', d.media_type)"
_FACETS = {
    "folder_id": in_or_below("id = :f_folder_id"),
    "tag": "d.tags @> ARRAY[CAST(:f_tag AS text)]",
    "media_type": "d.media_type = :f_media_type",
    "owner_id": "d.owner_id = :f_owner_id",
    "domain": "lower(d.domain) = lower(:f_domain)",
    "days": "d.created_at >= :f_days",
}
_NOT_AFTER, _NOT_BEFORE = f"(?<!{_LATIN.pattern})", f"(?!{_LATIN.pattern})"


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Conditions for a search: `documents` on the alias d, `chunks` on the alias c. Each is empty
    or begins with AND. `binds` are the values for both, with names that begin with ``f_``."""

    documents: str = ""
    chunks: str = ""
    binds: dict[str, Any] = field(default_factory=dict)


def narrowing(
    parsed: ParsedQuery,
    *,
    domain: str | None = None,
    content_type: str | None = None,
    language: str | None = None,
    job_id: UUID | None = None,
    without_job_id: UUID | None = None,
    metadata: MetadataFilter | None = None,
    facets: Facets | None = None,
    scope: AskScope | None = None,
) -> Narrowing:
    """Return conditions for a query's operators, its domain, the content type, the language of a
    chunk, the job whose chunks are included or excluded, the metadata filter, and the scope."""
    binds: dict[str, Any] = {}
    documents = []
    if job_id is not None:
        documents.append("AND d.current_job_id = :f_job")
        binds["f_job"] = job_id
    if without_job_id is not None:
        documents.append("AND d.current_job_id <> :f_without_job")
        binds["f_without_job"] = without_job_id
    documents += scope_conditions(scope, binds)
    if domain is not None:
        documents.append("AND lower(d.domain) = lower(:f_domain)")
        binds["f_domain"] = domain
    if facets is not None:
        documents += [f"AND {one}" for one in facet_conditions(facets, binds).values()]
    if parsed.media_types:
        documents.append("AND d.media_type = ANY(CAST(:f_types AS text[]))")
        binds["f_types"] = [media_type.value for media_type in parsed.media_types]
    for number, title in enumerate(parsed.titles):
        documents.append(f"AND d.title ~ :f_title_{number}")
        binds[f"f_title_{number}"] = title_pattern(title)
    chunks = [
        f"AND {_contains(phrase, f'f_phrase_{number}', binds)}"
        for number, phrase in enumerate(parsed.phrases)
    ] + [
        f"AND NOT ({_mentions(excluded, f'f_not_{number}', binds)})"
        for number, excluded in enumerate(parsed.excluded)
    ]
    if content_type is not None:
        chunks.append(f"AND {CONTENT_TYPE} = :f_content_type")
        binds["f_content_type"] = content_type
    if language is not None:
        chunks.append("AND c.language = :f_language")
        binds["f_language"] = language
    if metadata is not None:
        chunks.append(f"AND {metadata_condition(metadata, binds)}")
    return Narrowing(" ".join(documents), " ".join(chunks), binds)


def facet_conditions(facets: Facets, binds: dict[str, Any]) -> dict[str, str]:
    """Return the condition of each facet that is chosen, on the alias d."""
    conditions = {}
    for name, column in _FACETS.items():
        if (value := getattr(facets, name)) is not None:
            conditions[name] = column
            # Whole days, so that what is cached under these values stays right until the next.
            binds[f"f_{name}"] = days_ago(value) if name == "days" else value
    return conditions


def days_ago(days: int) -> datetime:
    """Return the beginning of the day that was this many `days` ago, in UTC."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days)


def _contains(phrase: str, name: str, binds: dict[str, Any]) -> str:
    """Return the condition that a chunk's text has a phrase, word for word."""
    binds[name] = pattern(phrase)
    exact = f"c.content ~ :{name}"
    if not (terms := tsquery_any_in_each(phrase)):
        return exact
    binds[f"{name}_terms"] = terms
    return f"c.terms_vector @@ to_tsquery('simple', :{name}_terms) AND {exact}"


def _mentions(words: str, name: str, binds: dict[str, Any]) -> str:
    """Return the condition that a chunk, its headings, table header or title have a word."""
    # A word matches in any form; a phrase as it is written.
    terms = query_terms(words)
    if len(terms) == 1:
        binds[f"{name}_terms"] = f"'{terms[0]}'"
        return f"c.terms_vector @@ to_tsquery('simple', :{name}_terms)"
    exact = _contains(words, name, binds)
    return f"{exact} OR concat_ws(E'\\n', c.heading, c.context) ~ :{name}"


@lru_cache(maxsize=256)
def title_pattern(text: str) -> str:
    """Return a regular expression, for PostgreSQL and Python, that finds a text anywhere in a
    title. Many titles are file names: hyphens, underscores, full stops and spaces are
    equivalent."""
    words = [word for word in _TITLE_GAPS.split(text) if word] or text.split()
    return f"{_TITLE_GAP}+".join(_word_pattern(word, gap=_TITLE_GAP) for word in words)


@lru_cache(maxsize=256)
def pattern(text: str) -> str:
    """Return a regular expression, for PostgreSQL and Python, that finds whole words in either
    Chinese script, any case and width, with any white space between them, and line breaks between
    characters of scripts written without spaces."""
    words = text.split()
    found = f"{_SPACE}+".join(_word_pattern(word) for word in words)
    before = _NOT_AFTER if _LATIN.match(words[0][0]) else ""
    after = _NOT_BEFORE if _LATIN.match(words[-1][-1]) else ""
    return f"{before}{found}{after}"


def _word_pattern(word: str, gap: str = _SPACE) -> str:
    parts: list[str] = []
    for place, character in enumerate(word):
        if place and _UNSPACED.match(character) and _UNSPACED.match(word[place - 1]):
            parts.append(f"{gap}*")
        parts.append(_class(spellings(character)))
    return "".join(parts)


def _class(characters: str) -> str:
    if len(characters) == 1:
        return re.escape(characters)
    return "[" + "".join(f"\\{c}" if c in "\\]^-[" else c for c in characters) + "]"
