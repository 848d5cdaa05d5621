"""Models of the sentence-transformers library, from a path, the cache, or the model hub."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from portal.domain.embedding import Vector
from portal.embeddings.validation import validated
from portal.errors import EmbedderUnavailable
from portal.text.normalise import clean

DEFAULT_MODEL = "BAAI/bge-small-zh-v1.5"
_BATCH = 32

# What a model was trained to see before a question and before a passage. The first family whose
# name occurs in the model's name counts; other models bring their prompts or need none.
PREFIXES: tuple[tuple[str, str, str], ...] = (
    ("bge-m3", "", ""),
    ("-zh", "为这个句子生成表示以用于检索相关文章：", ""),
    ("bge-", "Represent this sentence for searching relevant passages: ", ""),
    ("e5-", "query: ", "passage: "),
)


def prefixes(model: str) -> tuple[str, str]:
    """Prefix of questions and prefix of passages for a model, by its name."""
    name = model.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].lower()
    for family, question, passage in PREFIXES:
        if family == "-zh" and "bge-" not in name:
            continue
        if family in name:
            return question, passage
    return "", ""


class SentenceTransformersEmbedder:
    """A local model, loaded once at the start so that what is wrong is said there."""

    def __init__(self, *, model: str | None = None, dimensions: int | None = None) -> None:
        self._model_name = model or DEFAULT_MODEL
        self._question, self._passage = prefixes(self._model_name)
        self._model = _load(self._model_name)
        self._lock = threading.Lock()
        got = _dimensions(self._model)
        if dimensions is not None and dimensions != got:
            raise EmbedderUnavailable(
                reason=f"“{self._model_name}” gives {got} dimensions, not {dimensions}. Set "
                f"PORTAL_EMBEDDING__DIMENSIONS={got} or leave it out"
            )
        self._dimensions = got

    @property
    def name(self) -> str:
        # A model taken from a directory is the same model wherever the directory is.
        return Path(self._model_name).name if _is_path(self._model_name) else self._model_name

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([self._question + clean(text)])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vector:
        return self._embed([self._passage + clean(text) for text in texts])

    def _embed(self, texts: list[str]) -> Vector:
        if not texts:
            return validated([], dimensions=self._dimensions, count=0)
        with self._lock:  # The tokenizer's truncation settings are shared and not thread-safe.
            vectors = self._model.encode(
                texts, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False
            )
        return validated(vectors, dimensions=self._dimensions, count=len(texts))


def _is_path(model: str) -> bool:
    return Path(model).expanduser().is_dir()


def _dimensions(model: Any) -> int:
    # Renamed in sentence-transformers 5.
    measure = getattr(model, "get_embedding_dimension", None)
    return int((measure or model.get_sentence_embedding_dimension)())


def _load(model: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise EmbedderUnavailable(
            reason="the package sentence-transformers is not installed. Run "
            "`./run setup --local`, or `pip install -r requirements/local.txt`"
        ) from error
    source = str(Path(model).expanduser()) if _is_path(model) else model
    # The cache first: a machine without a network would otherwise wait for the hub to time out.
    # The library raises many kinds of errors for "not in the cache".
    with contextlib.suppress(Exception):
        return SentenceTransformer(source, device="cpu", local_files_only=True)
    try:
        return SentenceTransformer(source, device="cpu")
    except Exception as error:
        raise EmbedderUnavailable(
            reason=f"the model “{model}” is neither a directory, nor in the cache, nor can it be "
            "downloaded. Copy it to this machine and set PORTAL_EMBEDDING__MODEL to its "
            f"directory ({type(error).__name__}: {error})"
        ) from error
