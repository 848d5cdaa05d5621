"""Models of the sentence-transformers library, from a path, the cache, or the model hub."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from portal.domain.embedding import Vector
from portal.embeddings.loading import BackgroundLoad
from portal.embeddings.providers.prefixes import prefixed, prefixes
from portal.embeddings.validation import is_path, validated
from portal.errors import N_, EmbedderUnavailable, Message

DEFAULT_MODEL = "BAAI/bge-small-zh-v1.5"
_BATCH = 32
# Max wait for a model at start; one that is being downloaded may take longer.
_START_TIMEOUT_S = 30.0


class SentenceTransformersEmbedder:
    """A local model, loaded in the background on first use. Thread-safe; threads take turns.

    A query waits up to `timeout_s` seconds for the model to load. A model that fails to load is
    retried after a minute, so that one installed later is found without a restart. `clock` is
    monotonic seconds.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        dimensions: int | None = None,
        query_prefix: str | None = None,
        timeout_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model_name = model or DEFAULT_MODEL
        self._asked_dimensions = dimensions
        self._question, self._chunk = prefixes(self._model_name, question=query_prefix)
        self._timeout_s = timeout_s
        self._encoding = threading.Lock()
        self._loading = BackgroundLoad(self._load, clock=clock)

    @property
    def name(self) -> str:
        # A model taken from a directory is the same model in any directory.
        name = self._model_name
        return Path(name).expanduser().name if is_path(name) else name

    @property
    def dimensions(self) -> int:
        """Return the model's dimensions; loads it. Raises EmbedderUnavailable."""
        return _dimensions(self._loading.get(wait_s=_START_TIMEOUT_S))

    def embed_query(self, text: str) -> Vector:
        model = self._loading.get(wait_s=self._timeout_s)
        vector: Vector = self._embed(model, [prefixed(self._question, text)])[0]
        return vector

    def embed_chunks(self, texts: Sequence[str]) -> Vector:
        return self._embed(self._loading.get(), [prefixed(self._chunk, text) for text in texts])

    def _embed(self, model: Any, texts: list[str]) -> Vector:
        with self._encoding:  # The tokenizer's truncation settings are shared, not thread-safe.
            vectors = texts and model.encode(
                texts, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False
            )
        return validated(vectors, dimensions=_dimensions(model), count=len(texts))

    def _load(self) -> Any:
        model = load_model(self._model_name)
        got = _dimensions(model)
        if self._asked_dimensions not in {None, got}:
            raise EmbedderUnavailable(
                "“%(name)s” gives %(got)s dimensions, not %(asked)s. Set "
                "PORTAL_EMBEDDING__DIMENSIONS=%(got)s or leave it out",
                name=self._model_name,
                got=got,
                asked=self._asked_dimensions,
            )
        return model


def load_model(model: str) -> Any:
    """Return the library's own object. Raises EmbedderUnavailable, with the remedy."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EmbedderUnavailable(
            "the package sentence-transformers is not installed. Run `./run setup --local`, "
            "or `pip install -r requirements/local.txt`"
        ) from error
    try:
        if is_path(model):
            return SentenceTransformer(
                str(Path(model).expanduser()), device="cpu", local_files_only=True
            )
        # Try the cache first: a machine without a network would otherwise wait for the hub to time
        # out. The library raises many kinds of errors for "not in the cache".
        with contextlib.suppress(Exception):
            return SentenceTransformer(model, device="cpu", local_files_only=True)
        if "/" in model:  # The library completes shorter names.
            _find_on_hub(model)
        return SentenceTransformer(model, device="cpu")
    except Exception as error:
        raise EmbedderUnavailable(_reason(model, error)) from error


def _find_on_hub(model: str) -> None:
    """Ask the hub once: the library retries for a minute if the hub cannot be reached."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    with contextlib.suppress(EntryNotFoundError):  # The model is there, in another layout.
        get_hf_file_metadata(hf_hub_url(model, "config.json"))


def _reason(model: str, error: Exception) -> Message:
    path = Path(model).expanduser()
    said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if not is_path(model):
        return N_(
            "the model “%(name)s” is neither in the cache, nor can it be downloaded. Copy the "
            "model to this machine and set PORTAL_EMBEDDING__MODEL to its directory (%(error)s)",
            name=model,
            error=said,
        )
    if not path.is_dir():
        return N_(
            "there is no directory “%(path)s”. Copy the model to this machine and set "
            "PORTAL_EMBEDDING__MODEL to its directory (%(error)s)",
            path=path,
            error=said,
        )
    return N_(
        "the directory “%(path)s” holds no model that can be loaded. Copy the model to this "
        "machine and set PORTAL_EMBEDDING__MODEL to its directory (%(error)s)",
        path=path,
        error=said,
    )


def _dimensions(model: Any) -> int:
    # Renamed in sentence-transformers 5.
    measure = getattr(model, "get_embedding_dimension", None)
    return int((measure or model.get_sentence_embedding_dimension)())
