"""A bounded cache of query vectors, because users page, refine and reload."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cachetools import LRUCache

from portal.domain.embedding import Embedder, HeldToLength, TokenEmbedder, TokenVectors, Vector
from portal.domain.sightings import Seen
from portal.embeddings.shared import SharedVectors
from portal.embeddings.validation import require_shape
from portal.errors import N_, EmbedderUnavailable, InvalidEmbedding
from portal.observability import metrics

MAX_QUERIES = 2048  # About 3 MB at 384 dimensions.
MAX_TOKENS = 16_384  # About 25 MB at 384 dimensions.
_LOOK = "?"


class CachedQueries:
    """An embedder that remembers the vectors of recent questions, its own and those of other
    processes, and whether the model answered when it was last asked. Safe for threads."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        max_queries: int = MAX_QUERIES,
        shared: SharedVectors | None = None,
    ) -> None:
        self._embedder = embedder
        self._shared = shared
        self._vectors: LRUCache[str, Vector] = LRUCache(maxsize=max_queries)
        self._tokens: LRUCache[tuple[str, bool], TokenVectors] = LRUCache(
            MAX_TOKENS, getsizeof=lambda one: len(one.spans)
        )
        self._lock = threading.Lock()
        self._seen: Seen | None = None
        self._length: int | None = None

    @property
    def seen(self) -> Seen | None:
        """Whether the model gave usable vectors when it was last asked for some, and when that
        was; None when it was not asked yet. What is remembered says nothing of it."""
        return self._seen

    def look(self) -> None:
        """Ask the model itself, past what is remembered. Raises EmbedderUnavailable,
        InvalidEmbedding."""
        self._embed(_LOOK)

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def hold_to(self, dimensions: int) -> None:
        """Give vectors of the length that the model is registered with, and refuse others: an
        endpoint may have another model behind the same name. Cheap when that is so already."""
        if self._length == dimensions:
            return
        self._length = dimensions
        if isinstance(self._embedder, HeldToLength):
            self._embedder.hold_to(dimensions)

    def embed_query(self, text: str) -> Vector:
        with self._lock:
            vector = self._fitting(self._vectors.get(text))
        if vector is None and self._shared is not None:
            vector = self._keep(text, self._fitting(self._shared.get(text)))
        metrics.cache_asked("query_embeddings", hit=vector is not None)
        return self._embed(text) if vector is None else vector

    def _embed(self, text: str) -> Vector:
        # The lock is not held while the model works: two threads may embed the same question,
        # but no question waits for another one.
        with self._noting():
            vector = self._embedder.embed_query(text)
            self._require_length(vector.reshape(1, -1), count=1)
        if self._shared is not None:
            self._shared.put(text, vector)
        self._keep(text, vector)
        return vector

    def _keep(self, text: str, vector: Vector | None) -> Vector | None:
        if vector is not None:
            vector.setflags(write=False)  # Everyone who asks again gets this very array.
            with self._lock:
                self._vectors[text] = vector
        return vector

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        with self._noting():
            vectors = self._embedder.embed_chunks(texts)
            if len(texts):
                self._require_length(vectors, count=len(texts))
            return vectors

    def embed_tokens(self, texts: Sequence[str], *, is_question: bool) -> list[TokenVectors]:
        """Embed texts token by token; those of recent texts are remembered, since questions that
        follow one another meet the same statements."""
        if not isinstance(self._embedder, TokenEmbedder):
            raise EmbedderUnavailable(reason=N_("the model has only vectors of whole texts"))
        with self._lock:
            found = {text: self._tokens.get((text, is_question)) for text in texts}
        missing = [text for text, known in found.items() if known is None]
        if missing:
            made = self._embedder.embed_tokens(missing, is_question=is_question)
            with self._lock:
                for text, tokens in zip(missing, made, strict=True):
                    self._tokens[text, is_question] = found[text] = tokens
        return [known for text in texts if (known := found[text]) is not None]

    def _fitting(self, vector: Vector | None) -> Vector | None:
        """None for one of another length: it was kept before the model was held to this one."""
        is_other = vector is not None and self._length not in {None, len(vector)}
        return None if is_other else vector

    def _require_length(self, vectors: Vector, *, count: int) -> None:
        if self._length is not None:
            require_shape(vectors.shape, dimensions=self._length, count=count, of=self.name)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except (EmbedderUnavailable, InvalidEmbedding):
            self._seen = Seen(is_well=False)
            raise
        self._seen = Seen(is_well=True)


def hold_to(embedder: Embedder, dimensions: int) -> None:
    """Have a model refuse vectors of any other length than the one that it is registered with."""
    if isinstance(embedder, HeldToLength):
        embedder.hold_to(dimensions)
