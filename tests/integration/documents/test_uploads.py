"""Uploads: quotas, full disks, bounded memory."""

from __future__ import annotations

import errno
import io
import re
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from werkzeug.test import TestResponse

from portal import create_app
from portal.domain.documents import Visibility
from portal.domain.documents.jobs import JobStatus
from portal.domain.people import Scope
from portal.errors import PortalError, QuotaExceeded
from portal.services import Services
from portal.services.documents import library
from portal.services.documents.ingestion import indexing, jobs
from portal.services.documents.ingestion.attempts import BACKOFF_S
from portal.services.documents.intake import idempotency, quotas, uploads
from portal.services.documents.intake.disk_space import ReservedSpace
from portal.services.people import sessions
from tests.conftest import Portal
from tests.factories.uploads import upload

DOCUMENTS = "/api/knowledge/documents"
KB, MB = 1024, 1024 * 1024
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


def post(client: FlaskClient, headers: dict[str, str], *files: tuple[bytes, str]) -> TestResponse:
    data = {"file": [(io.BytesIO(content), name) for content, name in files]}
    return client.post(DOCUMENTS, headers=headers, data=data)


def send(client: FlaskClient, headers: dict[str, str], *files: tuple[bytes, str]) -> TestResponse:
    """Upload as the form does without JavaScript."""
    data = {"file": [(io.BytesIO(content), name) for content, name in files]}
    return client.post("/documents", headers=headers, data=data)


def rows_of(portal: Portal, table: str) -> int:
    with portal.services.database.begin() as session:
        return int(session.scalar(text(f"SELECT count(*) FROM {table}")) or 0)


# --- quotas ---------------------------------------------------------------------------------------


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


def test_two_uploads_at_once_do_not_pass_the_quota_together(
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


# --- a full disk ----------------------------------------------------------------------------------

NO_ROOM = "RAISE 'could not extend file' USING ERRCODE = 'disk_full'"


@contextmanager
def full(portal: Portal, table: str) -> Iterator[None]:
    """Make writes to this table fail as if the database's disk were full."""
    name = f"full_{table}"
    with portal.services.database.begin() as session:
        session.execute(
            text(
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {NO_ROOM}; END $$"
            )
        )
        session.execute(
            text(
                f"CREATE TRIGGER {name} BEFORE INSERT ON {table} "
                f"FOR EACH ROW EXECUTE FUNCTION {name}()"
            )
        )
    yield
    with portal.services.database.begin() as session:
        session.execute(text(f"DROP FUNCTION {name} CASCADE"))


def test_full_database_disk_is_reported_and_stores_nothing(
    client: FlaskClient, portal: Portal
) -> None:
    headers = portal.headers() | {"Idempotency-Key": "key-1"}
    for table in ("stored_file_parts", "jobs"):
        with full(portal, table):
            answer = post(client, headers, (b"first", "a.txt"), (b"second", "b.txt"))
            assert (answer.status_code, answer.json["error"]["code"]) == (507, "storage_full")
        for kept in ("stored_files", "stored_file_parts", "documents", "jobs"):
            assert rows_of(portal, kept) == 0, kept
        assert rows_of(portal, "procrastinate_jobs") == 0
    # Once there is room, the same request with the same key succeeds.
    assert post(client, headers, (b"first", "a.txt"), (b"second", "b.txt")).status_code == 202


def test_full_disk_for_uploads_is_reported(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_device(**_: object) -> IO[bytes]:
        return Path("/dev/full").open("r+b", 0)

    monkeypatch.setattr(tempfile, "TemporaryFile", full_device)
    answer = post(client, portal.headers(), (b"text", "a.txt"))
    assert (answer.status_code, answer.json["error"]["code"]) == (507, "storage_full")
    page = send(client, portal.headers() | {"HX-Request": "true"}, (b"text", "a.txt"))
    assert page.status_code == 507
    assert "disk is full" in page.text
    assert rows_of(portal, "documents") == 0


def test_uploads_stop_before_the_embedded_database_has_no_room(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("usage", (), {"free": 64 * MB + 1999})
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    headers = portal.headers()
    # The disk is not checked for a database on another server.
    assert post(client, headers, (b"a" * 1000, "a.txt")).status_code == 202
    (portal.services.settings.data_dir / "postgres").mkdir()
    assert post(client, headers, (b"b" * 1000, "b.txt")).status_code == 507
    assert post(client, headers, (b"b" * 999, "b.txt")).status_code == 202
    # A body that does not fit on the disk while it arrives is refused before it is read.
    file = Body(4 * MB)
    answer = file.post(client, headers)
    assert (answer.status_code, answer.json["error"]["code"]) == (507, "storage_full")
    assert file.read_bytes < MB
    assert not ReservedSpace._all_bytes


def test_job_waits_for_room_and_loses_no_attempt(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("usage", (), {"free": 31 * MB})
    receipt = uploads.store_upload(
        portal.services, portal.admin, stream=upload("Some words."), file_name="a.txt"
    )
    job_id = receipt.document.job_id
    assert job_id is not None
    (portal.services.settings.data_dir / "postgres").mkdir()
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    for _ in range(5):
        indexing.index_document(portal.services, job_id)
    job = jobs.newest_jobs(portal.services, [job_id])[receipt.document.id]
    assert (job.status, job.failure.code) == (JobStatus.QUEUED, "storage_full")
    assert job.retry_at is not None
    waiting = library.get_summary(portal.services, portal.admin, receipt.document.id)
    assert waiting.status == "queued"
    usage.free = 33 * MB
    indexing.index_document(portal.services, job_id)
    ready = library.get_summary(portal.services, portal.admin, receipt.document.id)
    assert ready.status == "ready"
    assert rows_of(portal, "jobs WHERE attempts = 1 AND failed_attempts = 0") == 1


def test_job_on_a_full_disk_waits_fails_with_its_reason_and_is_tried_again(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = uploads.store_upload(
        portal.services, portal.admin, stream=upload("Some words."), file_name="a.txt"
    )
    job_id = receipt.document.job_id
    assert job_id is not None

    def job() -> Any:
        return jobs.newest_jobs(portal.services, [job_id])[receipt.document.id]

    with full(portal, "document_chunks"):
        indexing.index_document(portal.services, job_id)
    assert (job().status, job().failure.code) == (JobStatus.QUEUED, "storage_full")
    # The same for the job's temporary files.
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "_copy_file", lambda *_: Path("/dev/full").write_bytes(b"x"))
        with portal.services.database.begin() as session:
            session.execute(text("UPDATE jobs SET revision_id = NULL"))
        for _ in BACKOFF_S:
            indexing.index_document(portal.services, job_id)
    document = library.get_summary(portal.services, portal.admin, receipt.document.id)
    assert document.status == "failed"
    assert document.failure is not None
    assert document.failure.code == "storage_full"
    jobs.retry(portal.services, portal.admin, document.id)
    indexing.index_document(portal.services, job_id)
    assert portal.services.settings.temporary_dir.is_dir()
    assert not list(portal.services.settings.temporary_dir.iterdir())
    ready = library.get_summary(portal.services, portal.admin, document.id)
    assert ready.status == "ready"


# --- memory and early refusals --------------------------------------------------------------------


class Body(io.RawIOBase):
    """A multipart body with one file of the given size, generated as it is read."""

    BEGIN = (
        b"--x\r\nContent-Disposition: form-data; name=file; filename=big.txt\r\n"
        b"Content-Type: text/plain\r\n\r\n"
    )
    END = b"\r\n--x--\r\n"

    def __init__(self, size_bytes: int) -> None:
        self.length = len(self.BEGIN) + size_bytes + len(self.END)
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), 64 * KB, self.length - self.read_bytes)
        for place in range(count) if self._is_at_an_end(count) else ():
            buffer[place] = self._byte(self.read_bytes + place)
        if not self._is_at_an_end(count):
            buffer[:count] = b"word and " * (count // 9) + b"." * (count % 9)
        self.read_bytes += count
        return count

    def _is_at_an_end(self, count: int) -> bool:
        after = self.length - len(self.END)
        return self.read_bytes < len(self.BEGIN) or self.read_bytes + count > after

    def _byte(self, place: int) -> int:
        if place < len(self.BEGIN):
            return self.BEGIN[place]
        from_end = place - (self.length - len(self.END))
        return self.END[from_end] if from_end >= 0 else ord("a")

    def post(self, client: FlaskClient, headers: dict[str, str]) -> TestResponse:
        length, kind = str(self.length), "multipart/form-data; boundary=x"
        sent = {"wsgi.input": self, "CONTENT_LENGTH": length, "CONTENT_TYPE": kind}
        return client.post(DOCUMENTS, headers=headers, environ_overrides=sent)


def test_memory_does_not_grow_with_the_file(client: FlaskClient, portal: Portal) -> None:
    peaks = []
    for size_bytes in (4 * MB, 40 * MB):
        tracemalloc.start()
        assert Body(size_bytes).post(client, portal.headers()).status_code == 202
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2 * MB
    assert peaks[1] < 16 * MB
    with portal.services.database.begin() as session:
        sizes = session.scalars(text("SELECT size_bytes FROM stored_files ORDER BY 1")).all()
    assert sizes == [4 * MB, 40 * MB]


@pytest.fixture
def small(make_services: Callable[..., Services]) -> Portal:
    """Return a portal that accepts files of up to a megabyte."""
    return Portal.of(make_services(max_upload_mb=1))


def test_what_is_too_large_is_refused_before_it_is_read_to_its_end(small: Portal) -> None:
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


# --- the form without a script --------------------------------------------------------------------


def test_form_takes_the_good_files_and_says_of_each_what_came_of_it(
    small: Portal,
) -> None:
    portal, client = small, create_app(small.services).test_client()
    headers, ada = portal.headers(), portal.user("ada")
    portal.add(b"known", name="known.txt")
    portal.add(b"foreign", name="foreign.txt", owner=ada, visibility=Visibility.PRIVATE)
    files = [
        (b"good", "good.txt"),
        (PNG, "picture.pdf"),
        (b"known", "copy.txt"),
        (b"x" * (MB + 1), "large.txt"),
        (b"foreign", "mine.txt"),
    ]
    answer = send(client, headers, *files)
    assert answer.status_code == 200
    queue = answer.text.partition('data-testid="upload-summary"')[2].partition("</ul>")[0]
    states = re.findall(r'data-testid="upload-item"\s+data-state="(\w+)"', queue)
    assert states == ["failed", "failed", "known"]
    assert "3 of 5 stored, 2 failed" in " ".join(answer.text.split())
    assert all(word in answer.text for word in ("picture.pdf", "PNG", "larger than the limit"))
    titles = {item["title"] for item in client.get(DOCUMENTS, headers=headers).json["documents"]}
    assert titles == {"good", "known", "mine", "foreign"}
    all_bad = send(client, headers, (PNG, "picture.pdf"), (b"", "empty.txt"))
    assert all_bad.status_code == 415
    assert "0 of 2 stored, 2 failed" in " ".join(all_bad.text.split())
    # The domain in the upload form does not filter the document list.
    wished = {"file": (io.BytesIO(PNG), "picture.pdf"), "domain": "law"}
    assert 'class="document-row"' in client.post("/documents", headers=headers, data=wished).text
    few = send(client, headers, (b"1", "1.txt"), (b"2", "2.txt"))
    assert (few.status_code, few.location) == (303, "/documents")


def test_list_that_refreshes_of_itself_makes_no_entry_in_the_history(
    client: FlaskClient, portal: Portal
) -> None:
    headers = portal.headers() | {"HX-Request": "true", "HX-Target": "document-results"}
    filtered = client.get("/documents?q=a&status=", headers=headers)
    assert filtered.headers["HX-Push-Url"] == "/documents?q=a"
    refreshed = client.get("/documents?q=a", headers=headers | {"X-Refresh": "true"})
    assert "HX-Push-Url" not in refreshed.headers


def test_list_that_refreshes_after_an_upload_brings_the_tree_of_folders(
    client: FlaskClient, portal: Portal
) -> None:
    headers = portal.headers() | {"HX-Request": "true", "HX-Target": "document-results"}
    assert 'id="folder-tree"' not in client.get("/documents", headers=headers).text
    refreshed = client.get("/documents", headers=headers | {"X-Refresh": "true"}).text
    assert re.search(r'<nav id="folder-tree"[^>]*hx-swap-oob="true"', refreshed)


def test_form_stops_at_a_full_disk_and_says_what_was_stored(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_upload, tried = uploads.store_upload, []

    def store(*given: Any, **named: Any) -> Any:
        tried.append(named["file_name"])
        if len(tried) == 2:
            raise OSError(errno.ENOSPC, "no space left")
        return store_upload(*given, **named)

    monkeypatch.setattr(uploads, "store_upload", store)
    files = [(b"%d" % number, f"{number}.txt") for number in range(4)]
    answer = send(client, portal.headers(), *files)
    assert answer.status_code == 200
    assert "1 of 4 stored, 3 failed" in " ".join(answer.text.split())
    assert tried == ["0.txt", "1.txt"]


def test_form_stores_nothing_for_whom_it_does_not_know(client: FlaskClient, portal: Portal) -> None:
    for more in ({}, {"HX-Request": "true"}):
        data = {"file": [(io.BytesIO(b"text"), "a.txt")], "visibility": "secret"}
        headers = portal.headers() | more
        assert client.post("/documents", headers=headers, data=data).status_code == 422
    assert rows_of(portal, "documents") == 0


def test_form_says_that_what_is_wished_private_is_shared(
    client: FlaskClient, portal: Portal
) -> None:
    portal.add(b"known", name="known.txt")
    data = {"file": [(io.BytesIO(b"known"), "known.txt")], "visibility": "private"}
    headers = portal.headers() | {"HX-Request": "true"}
    answer = client.post("/documents", headers=headers, data=data)
    assert "visible to everyone" in answer.text


def test_long_titles_fit_into_the_note(client: FlaskClient, portal: Portal) -> None:
    names = [f"{number}{'长' * 250}.txt" for number in range(5)]
    answer = send(client, portal.headers(), *((name.encode(), name) for name in names))
    assert answer.status_code == 303
    assert max(map(len, answer.headers.getlist("Set-Cookie"))) < 4000


def test_file_that_is_sent_twice_is_the_same_upload(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers() | {"HX-Request": "true", "Idempotency-Key": "key-1"}
    first, again = (send(client, headers, (b"good", "good.txt")) for _ in range(2))
    assert 'class="document-row"' in first.text
    assert "upload-note" not in again.text
    found = re.findall(r'data-document-id="([^"]+)"', first.text + again.text)
    assert len(set(found)) == 1
    # The row takes the place of the one that may be there already.
    assert f'<li id="document-{found[0]}" hx-swap-oob="delete">' in again.text
    other = send(client, headers, (b"other", "good.txt"))
    assert other.status_code == 409
    known = send(client, headers | {"Idempotency-Key": "key-2"}, (b"good", "good.txt"))
    assert "Already uploaded." in known.text
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
        with portal.services.database.begin() as session:
            session.execute(
                text("UPDATE idempotency_keys SET created_at = now() - CAST(:age AS interval)"),
                {"age": age},
            )
        assert post(client, mine | key, (b"another", "b.txt")).status_code == status
    # Cleanup deletes the other user's key, which is a day old; this user's was renewed.
    assert post(client, mine | key, (b"mine", "a.txt")).status_code == 409
    idempotency.delete_expired(portal.services)
    assert rows_of(portal, "idempotency_keys") == 1
