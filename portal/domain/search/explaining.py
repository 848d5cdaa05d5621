"""Reasons why a document is not among the results of a search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from portal.domain.documents import DocumentStatus, Failure


class MissingReason(StrEnum):
    """The reasons, in order: the first that applies is given."""

    IN_TRASH = "in_trash"
    NOT_READY = "not_ready"
    OFF_IN_CONVERSATION = "off_in_conversation"
    OFF_BY_DEFAULT = "off_by_default"
    # Nothing was searched: the query has no words, or keyword search is unavailable.
    NO_WORDS = "no_words"
    KEYWORD_UNAVAILABLE = "keyword_unavailable"
    EXCLUDED_BY_FILTER = "excluded_by_filter"
    NO_EMBEDDING_YET = "no_embedding_yet"
    BELOW_THRESHOLD = "below_threshold"
    DUPLICATE_OF = "duplicate_of"
    RANKED = "ranked"
    NO_WORD_IN_COMMON = "no_word_in_common"
    # The document is among the results after all.
    IN_RESULTS = "in_results"


@dataclass(frozen=True, slots=True)
class FailedFilter:
    """A filter of the search that the document does not pass: `kind` is ``domain``, ``type``,
    ``title``, ``phrase``, ``word`` (one that must not occur), ``facet`` (without an operand) or
    ``together``, if no single chunk passes all of several."""

    kind: str
    operand: str


@dataclass(frozen=True, slots=True)
class OtherDocument:
    """A result with the same text, at place `rank`, from 1."""

    id: UUID
    title: str
    rank: int


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The reason, with the fields that belong to it; the others are None.

    `rank` is the place of the document's best chunk among all chunks of the search, from 1; with
    ``ranked`` and no `rank` it comes after the first `ranked_beyond`. `shown_count` is the number
    of results.
    """

    document_id: UUID
    title: str
    reason: MissingReason
    rank: int | None = None
    ranked_beyond: int | None = None
    shown_count: int | None = None
    score: float | None = None
    threshold: float | None = None
    chunk_id: UUID | None = None
    status: DocumentStatus | None = None
    failure: Failure | None = None
    failed_filter: FailedFilter | None = None
    duplicate_of: OtherDocument | None = None
