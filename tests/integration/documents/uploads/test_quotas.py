"""Quotas of users."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from portal import create_app
from portal.errors import PortalError, QuotaExceeded
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.intake import quotas, uploads
from tests.conftest import Portal
from tests.factories.uploads import upload
from tests.integration.documents.uploads.conftest import DOCUMENTS, KB, MB, post, rows_of, send


@pytest.fixture
def bounded(make_services: Callable[..., Services]) -> Portal:
    """Return a portal with a quota of one megabyte."""
    return Portal.of(make_services(quota_mb=1))


def test_quota_counts_what_is_kept_and_a_purge_frees_it(bounded: Portal) -> None:
    client, ada = create_app(bounded.services).test_client(), bounded.user("ada")
    headers = bounded.headers(ada)
    first = post(client, headers, (b"a" * 600 * KB, "a.txt")).json["documents"][0]
    refused = post(client, headers, (b"b" * 600 * KB, "b.txt"))
    error = refused.json["error"]
    assert (refused.status_code, error["code"]) == (413, "quota_exceeded")
    assert error["details"] == {
        "size_bytes": 600 * KB,
        "used_bytes": 600 * KB,
        "limit_bytes": MB,
    }
    assert all(word in error["message"] for word in ("b.txt", "1 MB", "0.6 MB", "trash"))
    # A duplicate costs nothing, and each user has their own quota.
    assert post(client, headers, (b"a" * 600 * KB, "c.txt")).json["documents"][0]["is_duplicate"]
    assert post(client, bounded.headers(), (b"b" * 600 * KB, "b.txt")).status_code == 202
    page = send(client, headers | {"HX-Request": "true"}, (b"b" * 600 * KB, "b.txt"))
    assert page.status_code == 413
    assert "0.6 MB" in page.text
    together = post(client, headers, (b"1" * 300 * KB, "1.txt"), (b"2" * 300 * KB, "2.txt"))
    assert together.status_code == 413
    assert rows_of(bounded, "stored_files") == 2
    assert "600 KB of 1 MB" in client.get("/account", headers=headers).text
    page = client.get("/admin", headers=bounded.headers()).text
    assert re.search(r"ada.*600 KB of files", page, re.DOTALL)
    address = f"{DOCUMENTS}/{first['id']}"
    assert client.delete(address, headers=headers).status_code == 204
    assert post(client, headers, (b"b" * 600 * KB, "b.txt")).status_code == 413
    library.restore_document(bounded.services, ada, first["id"])
    library.purge_document(bounded.services, ada, first["id"])
    assert quotas.use_of(bounded.services, ada).used_bytes == 0
    assert post(client, headers, (b"b" * 600 * KB, "b.txt")).status_code == 202


def test_concurrent_uploads_cannot_exceed_the_quota(
    bounded: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both check the quota before either has stored anything."""
    met = threading.Barrier(2)
    add_file = uploads.file_store.add_file

    def add_together(*arguments: Any, **named: Any) -> Any:
        met.wait(timeout=10)
        return add_file(*arguments, **named)

    monkeypatch.setattr(uploads.file_store, "add_file", add_together)
    outcomes: list[PortalError | None] = []

    def store(letter: str) -> None:
        try:
            uploads.store_upload(
                bounded.services,
                bounded.admin,
                stream=upload(letter * 600 * KB),
                file_name=f"{letter}.txt",
            )
        except PortalError as error:
            outcomes.append(error)
        else:
            outcomes.append(None)

    threads = [threading.Thread(target=store, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(map(type, outcomes), key=str) == sorted([QuotaExceeded, type(None)], key=str)
    assert quotas.use_of(bounded.services, bounded.admin).used_bytes == 600 * KB
