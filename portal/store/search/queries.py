"""The queries of both legs of a search, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from portal.domain.deadlines import Deadline
from portal.domain.embedding import Vector
from portal.domain.search import KeywordBackend
from portal.settings import SearchSettings
from portal.store.embedding_models.registry import RegisteredModel
from portal.store.search.selection.scope import Scope, Versions
from portal.store.search.selection.visible_corpus import VisibleCorpus


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """The query of the vector leg. `search_vector` orders the leg, `plain_vector` gives the cosine
    that is shown, `corrected_vector` the similarity that fusion and confidence use. A query that
    `is_corrected` is unlike the chunks that the graph was built from."""

    model: RegisteredModel
    search_vector: Vector
    plain_vector: Vector
    corrected_vector: Vector
    is_corrected: bool


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """The query of the keyword leg. `words` are in the syntax of the backend."""

    backend: KeywordBackend
    terms: Sequence[str]
    words: str


@dataclass(frozen=True, slots=True)
class Legs:
    """The queries for the database: at least one of `vector` and `keywords`, each for `leg_limit`
    chunks among those in `scope`; with `by_document` also for the documents of chunks.
    `total_chunks` are those of the vector index, `corpus` what the user may see, None for
    administrators, who see all. Statements end at `deadline`."""

    scope: Scope
    vector: VectorQuery | None
    keywords: KeywordQuery | None
    versions: Versions
    corpus: VisibleCorpus | None
    corpus_version: int
    total_chunks: int
    leg_limit: int
    deadline: Deadline
    settings: SearchSettings
    by_document: bool = False

    @property
    def visible_chunks(self) -> int:
        """Return the number of chunks the user may see; nothing shown or scored may depend on other
        chunks."""
        return self.total_chunks if self.corpus is None else self.corpus.chunk_count

    @property
    def has_private(self) -> bool:
        """Return whether words are also searched for in the user's own private chunks, which are
        not in the index of shared ones."""
        is_bm25 = (
            self.keywords is not None and self.keywords.backend is KeywordBackend.PG_TEXTSEARCH
        )
        return is_bm25 and self.corpus is not None and self.corpus.private_chunks > 0
