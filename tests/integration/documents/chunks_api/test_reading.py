"""Chunks of a job, read over the API."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from flask.testing import FlaskClient

from portal.domain.documents import DocumentSummary, Visibility
from portal.services.documents import library
from tests.conftest import Portal
from tests.factories.cases import for_each
from tests.integration.documents.chunks_api.conftest import Api, assert_envelope


def test_chunk_response_has_every_field(api: Api, document: DocumentSummary) -> None:
    first = api.get().json["data"]["chunks"][0]
    assert set(first) == {
        "id", "job_id", "document_id", "chunk_index", "content", "context", "metadata", "page",
        "heading", "created_at", "has_embedding",
    }  # fmt: skip
    assert first["job_id"] == str(document.job_id)
    assert first["document_id"] == str(document.id)
    assert first["chunk_index"] == 0
    assert first["content"].startswith("Rule 0")
    assert first["metadata"] == {"source_file": "rules.txt", "page_number": None}
    assert first["has_embedding"] is True
    assert api.get(f"/{first['id']}").json == {"success": True, "data": first, "error": None}


def test_pages_hold_every_chunk_once(api: Api) -> None:
    everything = api.get("?limit=100").json["data"]
    total = everything["pagination"]["total"]
    assert total > 4
    paged: list[dict[str, Any]] = []
    for offset in range(0, total + 2, 2):
        page = api.get(f"?limit=2&offset={offset}").json
        assert (page["success"], page["error"]) == (True, None)
        assert page["data"]["pagination"] == {
            "total": total,
            "page": offset // 2 + 1,
            "per_page": 2,
            "total_pages": (total + 1) // 2,
        }
        paged += page["data"]["chunks"]
    assert paged == everything["chunks"]


def test_order_is_by_index_or_age_either_way(api: Api) -> None:
    api.add("behind the last")
    indexes = [chunk["chunk_index"] for chunk in api.get("?limit=100").json["data"]["chunks"]]
    assert indexes == list(range(len(indexes)))
    for wish in ("sort_order=desc", "sort_by=created_at&sort_order=desc"):
        turned = api.get(f"?limit=100&{wish}").json["data"]["chunks"]
        assert [chunk["chunk_index"] for chunk in turned] == indexes[::-1]


@for_each(
    "query",
    ["limit=0", "limit=101", "limit=x", "offset=-1", "sort_by=content", "sort_order=up", "x=1"],
)
def test_wishes_that_make_no_sense_are_422(api: Api, query: str) -> None:
    assert_envelope(api.get(f"?{query}"), 422, "invalid")


def test_foreign_missing_and_trashed_are_the_same_404(client: FlaskClient, portal: Portal) -> None:
    private = portal.add("a secret zeppelin", name="p.txt", visibility=Visibility.PRIVATE)
    gone = portal.add("gone zeppelin", name="g.txt")
    ben = portal.headers(portal.user("ben"))
    gone_chunk = Api(client, ben, gone.job_id).get().json["data"]["chunks"][0]["id"]
    library.delete_document(portal.services, portal.admin, gone.id)
    own = Api(client, portal.headers(), private.job_id)
    chunk = own.get().json["data"]["chunks"][0]["id"]
    for job_id in (private.job_id, gone.job_id, uuid4()):
        foreign = Api(client, ben, job_id)
        for rest in ("", f"/{chunk}", f"/{gone_chunk}", f"/{uuid4()}"):
            assert_envelope(foreign.get(rest), 404, "not_found")
            assert_envelope(foreign.delete(rest), 404, "not_found")
        assert_envelope(foreign.post({"content": "mine"}), 404, "not_found")
    assert own.get(f"/{chunk}").status_code == 200


def test_chunk_of_another_job_is_not_under_this_one(
    client: FlaskClient, portal: Portal, api: Api
) -> None:
    other = portal.add("another", name="o.txt")
    own = Api(client, portal.headers(), other.job_id).get().json["data"]["chunks"][0]["id"]
    assert_envelope(api.get(f"/{own}"), 404)
    assert_envelope(api.delete(f"/{own}"), 404)
