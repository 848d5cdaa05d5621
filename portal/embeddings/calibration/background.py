"""General texts, and a model's vectors of them.

A cosine alone means little: multilingual-e5 gives unrelated texts .7 to .85, more in Chinese than
in English, and most between texts of one language. So every question is measured against 64 chunks
and 32 questions per language, written for this purpose, which stand for "anything at all". Chunks
are paired by line across languages, so that subjects cancel out in differences.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from portal.domain.embedding import Embedder, Vector

LANGUAGES = ("zh", "en")

_TEXTS = Path(__file__).parent / "background"
SHIPPED = _TEXTS / "vectors"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_computing = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Unit vectors by language: `chunks` (64, dim), `questions` (32, dim)."""

    chunks: dict[str, Vector]
    questions: dict[str, Vector]


def texts(language: str, kind: str) -> list[str]:
    """Return the lines of a background file; `kind` is ``passages`` or ``questions``."""
    lines = (_TEXTS / f"{language}.{kind}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip()]


def load(embedder: Embedder, cache_dir: Path | None = None) -> Background:
    """Return the background of a model: shipped, from the cache, or embedded now and cached.

    Raises EmbedderUnavailable if it must be embedded and the model does not answer.
    """
    name = file_name(embedder)
    candidates = [SHIPPED / name] + ([cache_dir / name] if cache_dir else [])
    for path in candidates:
        if (background := _read(path, embedder.dimensions)) is not None:
            return background
    with _computing:
        background = embed(embedder)
        if cache_dir:
            # If it cannot be saved, it is embedded again at the next start.
            with contextlib.suppress(OSError):
                save(background, cache_dir / name)
    return background


def embed(embedder: Embedder) -> Background:
    """Embed all background texts: some seconds with a local model."""
    return Background(
        chunks={
            language: embedder.embed_chunks(texts(language, "passages")) for language in LANGUAGES
        },
        questions={
            language: np.stack([embedder.embed_query(q) for q in texts(language, "questions")])
            for language in LANGUAGES
        },
    )


def file_name(embedder: Embedder) -> str:
    """Return a file name that depends on the model, its dimensions and the texts."""
    digest = hashlib.sha256()
    for language in LANGUAGES:
        for kind in ("passages", "questions"):
            digest.update("\n".join(texts(language, kind)).encode())
    model = hashlib.sha256(embedder.name.encode()).hexdigest()[:8]
    readable = _UNSAFE.sub("_", embedder.name)[:60]
    return f"{readable}-{model}-{embedder.dimensions}-{digest.hexdigest()[:12]}.npz"


def save(background: Background, path: Path) -> None:
    """Write the file atomically: another process may be reading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {
        f"{language}_{kind}": vectors[language].astype(np.float16)
        for language in LANGUAGES
        for kind, vectors in (("passages", background.chunks), ("questions", background.questions))
    }
    partial = path.with_name(f".{path.name}.{threading.get_ident()}.partial")
    with partial.open("wb") as file:
        np.savez_compressed(file, **arrays)
    partial.replace(path)


def _read(path: Path, dimensions: int) -> Background | None:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name].astype(np.float32) for name in stored.files}
        background = Background(
            chunks={language: arrays[f"{language}_passages"] for language in LANGUAGES},
            questions={language: arrays[f"{language}_questions"] for language in LANGUAGES},
        )
    except (OSError, KeyError, ValueError, BadZipFile):
        return None  # Missing or damaged: it is embedded again.
    whole = all(array.ndim == 2 and array.shape[1] == dimensions for array in arrays.values())  # noqa: PLR2004
    return background if whole else None
