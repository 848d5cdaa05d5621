"""Memory, early refusals, and repeated uploads."""

from __future__ import annotations

import re
import tracemalloc
from uuid import UUID

from flask.testing import FlaskClient

from portal import create_app
from portal.domain.people import Scope
from portal.services.documents import library
from portal.services.documents.intake import idempotency
from portal.services.people import sessions
from tests.conftest import Portal
from tests.integration.documents.uploads.conftest import KB, MB, Body, post, rows_of, send


def test_memory_does_not_grow_with_the_file(client: FlaskClient, portal: Portal) -> None:
    peaks = []
    for size_bytes in (4 * MB, 40 * MB):
        tracemalloc.start()
        assert Body(size_bytes).post(client, portal.headers()).status_code == 202
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2 * MB
    assert peaks[1] < 16 * MB
    sizes = portal.scalars("SELECT size_bytes FROM stored_files ORDER BY 1")
    assert sizes == [4 * MB, 40 * MB]


def test_too_large_file_is_refused_before_it_is_read_completely(small: Portal) -> None:
    client, headers = create_app(small.services).test_client(), small.headers()
    file = Body(8 * MB)
    answer = file.post(client, headers)
    assert (answer.status_code, answer.json["error"]["code"]) == (413, "too_large")
    assert "big.txt" in answer.json["error"]["message"]
    assert file.read_bytes < 2 * MB
    request = Body(20 * MB)
    assert request.post(client, headers).status_code == 413
    assert request.read_bytes == 0
    _, reader = sessions.create_personal_token(
        small.services, small.admin, name="reader", ttl_s=60, scopes=[Scope.READ]
    )
    for token, status in (("made-up", 401), (reader, 403)):
        body = Body(512 * KB)
        headers = {"Authorization": f"Bearer {token}"}
        assert body.post(client, headers).status_code == status
        assert body.read_bytes == 0


def test_file_that_is_sent_twice_is_the_same_upload(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers() | {"HX-Request": "true", "Idempotency-Key": "key-1"}
    first, again = (send(client, headers, (b"good", "good.txt")) for _ in range(2))
    assert 'class="document-row"' in first.text
    assert "data-note" not in again.text
    found = re.findall(r'data-document-id="([^"]+)"', first.text + again.text)
    assert len(set(found)) == 1
    # The row replaces one that may already be there.
    assert f'<li id="document-{found[0]}" hx-swap-oob="delete">' in again.text
    other = send(client, headers, (b"other", "good.txt"))
    assert other.status_code == 409
    known = send(client, headers | {"Idempotency-Key": "key-2"}, (b"good", "good.txt"))
    assert "Already uploaded." in known.text
    known = send(client, headers | {"Idempotency-Key": "key-3"}, (b"good", "copy.txt"))
    assert 'data-note="“good” has the same content' in known.text
    library.delete_document(portal.services, portal.admin, UUID(found[0]))
    repeated = send(client, headers, (b"good", "good.txt"))
    assert repeated.status_code == 404
    assert rows_of(portal, "documents") == 1


def test_idempotency_key_belongs_to_a_user_and_lives_a_day(
    client: FlaskClient, portal: Portal
) -> None:
    mine, theirs = portal.headers(), portal.headers(portal.user("ada"))
    key = {"Idempotency-Key": "key-1"}
    assert post(client, mine | key, (b"mine", "a.txt")).status_code == 202
    assert post(client, theirs | key, (b"theirs", "a.txt")).status_code == 202
    for age, status in (("23 hours", 409), ("25 hours", 202)):
        portal.execute(
            "UPDATE idempotency_keys SET created_at = now() - CAST(:age AS interval)", age=age
        )
        assert post(client, mine | key, (b"another", "b.txt")).status_code == status
    # Cleanup deletes the other user's key, which is a day old; this user's was renewed.
    assert post(client, mine | key, (b"mine", "a.txt")).status_code == 409
    idempotency.delete_expired(portal.services)
    assert rows_of(portal, "idempotency_keys") == 1
