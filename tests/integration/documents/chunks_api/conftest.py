"""Fixtures of these tests."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from portal.domain.documents import DocumentSummary
from tests.conftest import Portal
from tests.integration.documents.chunks_api.api import Api

PARAGRAPHS = "\n\n".join(f"Rule {n}: " + f"word{n} " * 120 for n in range(6))


@pytest.fixture
def document(portal: Portal) -> DocumentSummary:
    return portal.add(PARAGRAPHS, name="rules.txt", title="Rules")


@pytest.fixture
def api(client: FlaskClient, portal: Portal, document: DocumentSummary) -> Api:
    return Api(client, portal.headers(), document.job_id)
