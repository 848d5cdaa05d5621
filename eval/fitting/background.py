"""Embed the background texts with the bundled model and write the vectors that ship."""

from __future__ import annotations

from portal.embeddings.calibration import background
from portal.embeddings.providers.bundled import E5, BundledEmbedder


def main() -> None:
    embedder = BundledEmbedder(name=E5)
    for old in background.SHIPPED.glob("*.npz"):
        old.unlink()
    path = background.SHIPPED / background.file_name(embedder)
    background.save(background.embed(embedder), path)
    print(f"{path} {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
