"""Claims about every entry of the registries."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from portal.domain.documents import TYPES, MediaType
from portal.domain.embedding import Embedder
from portal.domain.search import Fusion, Normalisation
from portal.domain.search.fusion import FUSIONS
from portal.embeddings import create_embedder
from portal.errors import MESSAGES, PortalError, tree
from portal.ingest.formats import FORMATS
from portal.ingest.media_types import PICTURES, SUFFIXES
from portal.settings import EmbeddingSettings
from portal.web import translations

ROOT = Path(__file__).parents[2]


def test_every_media_type_has_an_extractor_and_suffixes() -> None:
    assert set(FORMATS) == {*SUFFIXES, *PICTURES} == set(MediaType)


def test_every_media_type_is_listed_by_the_docs() -> None:
    operators = (ROOT / "docs" / "search.md").read_text("utf-8")
    (row,) = re.findall(r"^\| `type:pdf`.*$", operators, re.MULTILINE)
    assert set(TYPES) <= set(re.findall("`([a-z]+)`", row))


def test_every_fusion_has_its_sql() -> None:
    assert set(FUSIONS) == set(product(Fusion, Normalisation))


@pytest.mark.parametrize("provider", ["bundled", "hashing"])
def test_local_embedder_keeps_its_promises(provider: str) -> None:
    import numpy as np

    embedder = create_embedder(EmbeddingSettings(provider=provider))
    assert isinstance(embedder, Embedder)
    texts = ["一段中文。", "An English one.", "", "\0\ud800", "ﷺ" * 20]
    vectors = embedder.embed_chunks(texts)
    assert vectors.shape == (len(texts), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert np.allclose(vectors[1], embedder.embed_chunks(texts[1:2])[0], atol=1e-4)
    assert embedder.embed_query("问题").shape == (embedder.dimensions,)


def test_every_error_has_a_chinese_message() -> None:
    catalog = translations.load()["zh_Hans_CN"]
    for code, message in MESSAGES.items():
        if message in {"%(reason)s", "%(reason)s."}:
            continue  # An error of the command line.
        assert catalog.gettext(message) != message, code


def test_error_codes_are_unique() -> None:
    ours = [error for error in tree(PortalError) if error.__module__.startswith("portal.errors.")]
    words = {}
    for error in ours:
        words.setdefault(error.code, set()).add(error.status)
    assert all(len(statuses) == 1 for statuses in words.values())
