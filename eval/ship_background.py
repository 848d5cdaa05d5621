"""Embed the background texts with the bundled model and write the vectors that ship."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from portal.embeddings import background
from portal.embeddings.bundled import E5, TOKEN_CENTRES, BundledEmbedder
from portal.embeddings.e5 import INT8, E5Encoder


def main() -> None:
    embedder = BundledEmbedder(name=E5)
    for old in background.SHIPPED.glob("*.npz"):
        old.unlink()
    path = background.SHIPPED / background.file_name(embedder)
    background.save(background.embed(embedder), path)
    print(f"{path} {path.stat().st_size} bytes")
    centres = {"questions": _centre("questions"), "chunks": _centre("passages")}
    np.savez_compressed(TOKEN_CENTRES, **centres)


def _centre(kind: str) -> NDArray[np.float32]:
    """Return the mean of all tokens of the background texts of one kind."""
    encoder = E5Encoder(INT8)
    lines = [line for language in background.LANGUAGES for line in background.texts(language, kind)]
    vectors = [encoder.encode_tokens(line, kind == "questions")[1] for line in lines]
    return np.vstack(vectors).mean(axis=0)


if __name__ == "__main__":
    main()
