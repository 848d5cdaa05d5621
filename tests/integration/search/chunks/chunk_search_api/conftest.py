"""Fixtures for the tests of the chunk search API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal.domain.documents import DocumentSummary
from portal.domain.documents.chunks import NewChunk
from portal.domain.people import User
from portal.services.documents import chunks
from tests.conftest import Portal


@pytest.fixture
def document(portal: Portal) -> DocumentSummary:
    """Return a document whose chunks are `TEXTS`, with metadata."""
    document = portal.add("An empty page, nearly.", name="base.txt", title="Base")
    new = [
        NewChunk(one, metadata={"page_number": place, "source_file": f"{place % 2}.pdf"})
        for place, one in enumerate(TEXTS)
    ]
    chunks.add_chunks(portal.services, portal.admin, document.job_id, new)
    return document


@pytest.fixture
def ask(client: FlaskClient, portal: Portal) -> Ask:
    def ask(kind: str, *, user: User | None = None, status: int = 200, **body: Any) -> Any:
        answer = client.post(f"/api/v1/search/{kind}", json=body, headers=portal.headers(user))
        assert answer.status_code == status, answer.get_data(as_text=True)
        assert set(answer.json) == {"success", "data", "error"}
        assert answer.json["success"] is (status == 200)
        return answer.json["data"] if status == 200 else answer.json["error"]

    return ask


TEXTS = (
    "Annual leave is fifteen days for all staff.",
    "Copper pipes carry water through the old house.",
    "Unused annual leave expires at the end of March.",
    "年假为每年十五天，未休年假于三月底作废。",
    "The violin stands in the corner of the house.",
    "Glaciers carry stones through old valleys.",
)
Ask = Callable[..., Any]


def contents(data: Any) -> list[str]:
    return [result["chunk"]["content"] for result in data["results"]]


def similar(client: FlaskClient, headers: dict[str, str], chunk_id: object, query: str = "") -> Any:
    return client.get(f"/api/v1/search/similar/{chunk_id}{query}", headers=headers)
