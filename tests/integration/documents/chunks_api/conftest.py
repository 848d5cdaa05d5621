"""Fixtures for the tests of the chunks API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from portal.domain.documents import DocumentSummary
from tests.conftest import Portal

PARAGRAPHS = "\n\n".join(f"Rule {n}: " + f"word{n} " * 120 for n in range(6))


@pytest.fixture
def document(portal: Portal) -> DocumentSummary:
    return portal.add(PARAGRAPHS, name="rules.txt", title="Rules")


@pytest.fixture
def api(client: FlaskClient, portal: Portal, document: DocumentSummary) -> Api:
    return Api(client, portal.headers(), document.job_id)


ADDED = "Zeppelin pilots earn leave by the hour."


class Api:
    """A client for the chunks of one job."""

    def __init__(self, client: FlaskClient, headers: dict[str, str], job_id: object) -> None:
        self.client, self.headers = client, headers
        self.path = f"/api/v1/jobs/{job_id}/chunks"

    def get(self, rest: str = "") -> Any:
        return self.client.get(self.path + rest, headers=self.headers)

    def post(self, body: Any) -> Any:
        # Serialised here, so that lone surrogates can be sent too.
        return self.client.post(
            self.path, data=json.dumps(body), content_type="application/json", headers=self.headers
        )

    def add(self, content: str = ADDED, **more: Any) -> dict[str, Any]:
        """Add one chunk and return it."""
        answer = self.post({"content": content, **more})
        assert answer.status_code == 201, answer.json
        (chunk,) = answer.json["data"]["chunks"]
        return dict(chunk)

    def delete(self, rest: str = "") -> Any:
        return self.client.delete(self.path + rest, headers=self.headers)


def assert_envelope(answer: Any, status: int, code: str | None = None) -> None:
    assert answer.status_code == status, answer.get_data(as_text=True)
    assert set(answer.json) == {"success", "data", "error"}
    assert answer.json["success"] is False
    assert answer.json["data"] is None
    assert answer.json["error"]["request_id"]
    if code is not None:
        assert answer.json["error"]["code"] == code
