"""Without the extra `chroma`, the error says how to install it."""

from __future__ import annotations

import importlib
import sys

import pytest

from portal.errors import ServerSetup
from portal.integrations.chroma import client as chroma_client
from portal.integrations.chunk_stores import open_chunk_store


def test_missing_extra_is_named(monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.partition(".")[0] == "chromadb"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    importlib.invalidate_caches()
    for place in ({"directory": tmp_path / "new"}, {"host": "there"}, {"client": object()}):
        with pytest.raises(ServerSetup, match=r"\./run setup --chroma"):
            open_chunk_store("chroma", **place)
    assert not (tmp_path / "new").exists()


def test_broken_chroma_is_not_called_missing(monkeypatch):
    def fail(name):
        raise ModuleNotFoundError("No module named 'mmh3'", name="mmh3")

    monkeypatch.setattr(chroma_client.importlib, "import_module", fail)
    with pytest.raises(ModuleNotFoundError, match="mmh3"):
        chroma_client.chroma()
