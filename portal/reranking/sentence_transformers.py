"""Cross-encoders of the sentence-transformers library, from a path, the cache, or the hub."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from portal.errors import N_, Message, RerankerUnavailable
from portal.settings import DEFAULT_RERANKER
from portal.text.characters.normalise import clean_beginning

# The deadline is checked between batches, so that a late call soon frees the processor.
_BATCH = 4
_MAX_TOKENS = 512
_MAX_CHARACTERS = 2000
# A failing load takes seconds; without a pause every search would pay for it.
_LOAD_AGAIN_AFTER_S = 60.0


class CrossEncoderReranker:
    """A local model, loaded on first use. Thread-safe; threads take turns."""

    def __init__(self, *, model: str | None = None) -> None:
        self._name = model or DEFAULT_RERANKER
        self._lock = threading.Lock()
        self._model: Any = None
        self._failure: Message | None = None
        self._again_at = 0.0

    @property
    def name(self) -> str:
        return self._name

    def load(self) -> None:
        with self._lock:
            self._loaded()

    def scores(self, query: str, chunks: Sequence[str], *, deadline_s: float) -> list[float]:
        ends_at = time.monotonic() + deadline_s
        asked, *texts = (clean_beginning(text, _MAX_CHARACTERS) for text in (query, *chunks))
        pairs = [(asked, text) for text in texts]
        found: list[float] = []
        with self._lock:
            model = self._loaded()
            for start in range(0, len(pairs), _BATCH):
                if time.monotonic() > ends_at:
                    raise RerankerUnavailable(
                        "it took more than %(seconds)s seconds", seconds=f"{deadline_s:g}"
                    )
                batch = pairs[start : start + _BATCH]
                found += model.predict(batch, batch_size=_BATCH, show_progress_bar=False).tolist()
        return found

    def _loaded(self) -> Any:
        if self._model is not None:
            return self._model
        if self._failure and time.monotonic() < self._again_at:
            raise RerankerUnavailable(self._failure)
        try:
            self._model = _load(self._name)
        except RerankerUnavailable as error:
            self._failure = error.reason
            self._again_at = time.monotonic() + _LOAD_AGAIN_AFTER_S
            raise
        return self._model


def _load(name: str) -> Any:
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise RerankerUnavailable(
            "the package sentence-transformers is not installed. Run `./run setup --local`, "
            "or set PORTAL_RERANK__PROVIDER=off"
        ) from error
    path = Path(name).expanduser()
    source = str(path) if path.is_dir() else name
    model = None
    # The cache first: a machine without a network would otherwise wait for the hub to time out.
    # The library raises many kinds of errors for "not in the cache".
    with contextlib.suppress(Exception):
        model = CrossEncoder(source, device="cpu", max_length=_MAX_TOKENS, local_files_only=True)
    try:
        if not model and not path.is_dir():
            # Ask the hub once: the library retries for a minute if the hub cannot be reached.
            get_hf_file_metadata(hf_hub_url(name, "config.json"))
        model = model or CrossEncoder(source, device="cpu", max_length=_MAX_TOKENS)
    except Exception as error:
        raise RerankerUnavailable(
            "the model “%(name)s” is neither a directory with a cross-encoder, nor in the "
            "cache, nor can it be downloaded. Copy one to this machine and set "
            "PORTAL_RERANK__MODEL to its directory (%(error)s)",
            name=name,
            error=f"{type(error).__name__}: {error}",
        ) from error
    return _check(model, name)


def _check(model: Any, name: str) -> Any:
    """Reject models that load but cannot rank: to a model that was trained to make vectors the
    library adds a head of random weights, and a classifier of several labels has no single score.
    Raises RerankerUnavailable."""
    architectures = getattr(model.config, "architectures", None) or []
    makes_vectors = bool(architectures) and not any(
        "ForSequenceClassification" in kind or "ForCausalLM" in kind for kind in architectures
    )
    labels = getattr(model, "num_labels", 1)
    if makes_vectors or labels != 1:
        what = N_("it only computes embeddings")
        if labels != 1:
            what = N_("it is a classifier with %(count)s labels", count=labels)
        raise RerankerUnavailable(
            "the model “%(name)s” is not a reranker: %(what)s. Set PORTAL_RERANK__MODEL to a "
            "cross-encoder with a single score",
            name=name,
            what=what,
        )
    return model
