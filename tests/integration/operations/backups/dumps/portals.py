"""Portals to back up, and what is looked at after a restore."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from portal.container import build_services
from portal.domain.search import SearchMode, SearchRequest
from portal.services import Services
from portal.services.documents import library
from portal.services.operations import setup
from portal.services.people import accounts
from portal.services.search import engine
from tests.conftest import make_settings

OFFICE = "The office closes at six. Visitors must sign in at the front desk."
SECRET = "The merger is called Kingfisher."
KEY = "the key that this portal made and keeps, of good length"


@contextmanager
def services_on(url: str, data_dir: Path) -> Iterator[Services]:
    services = build_services(make_settings(data_dir, url, secret_key=None))
    yield services
    services.database.dispose()


def everything_seen(services: Services) -> list[Any]:
    """Return the results of searches, and the originals byte for byte."""
    # An index counts deleted rows until it is rebuilt; a restored index is new.
    setup.repair_keyword_index(services)
    found: list[Any] = []
    for name in ("admin", "ada"):
        user = accounts.find_user(services, name)
        for query in ("年假有几天", "When does the office close?", "Kingfisher"):
            for mode in SearchMode:
                hits = engine.search(services, user, SearchRequest(query=query, mode=mode))
                # Confidence and the order of ties may differ until the model is calibrated.
                found += sorted(
                    (str(hit.chunk_id), hit.text_score, hit.vector_score) for hit in hits.hits
                )
        for document in library.list_documents(services, user).items:
            original = library.open_file(services, user, document.id)
            found.append((document.id, document.status, b"".join(original.parts)))
        found += [document.id for document in library.list_trash(services, user).items]
    return found


def own(directory: Path) -> tuple[str, Path]:
    return "--identity", directory / "identity"
