"""Queries that look like SQL or markup are searched for as text on every endpoint (ADR 14)."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from portal.services.documents import library
from tests.conftest import Portal
from tests.factories.cases import for_each

# Queries that a filter of "dangerous" words would refuse, each with a document that contains it.
QUERIES = {
    "drop": "'; DROP TABLE documents; --",
    "delete": "DELETE FROM users WHERE name = 'bobby' -- gone",
    "union": "x' UNION SELECT password_hash FROM users /* all */",
    "script": "<script>alert('hello')</script>",
    "link": '<a href="javascript:steal()">prize</a>',
    "format": "%(user_id)s :limit {config} $1 %s",
    "words": "how do I delete or update an insert, or exec a select?",
}
# Where queries have operators, -rf would be one.
LITERAL = {"shell": "rm -rf /var --no-preserve-root", "type": 'type:pdf title:x "quoted words"'}

# The names of the query and of the results in each endpoint.
ENDPOINTS = {
    "/api/knowledge/search": ("query", "results"),
    "/v1/search": ("query", "hits"),
    "/v1/answer": ("query", "hits"),
    "/api/semantic_search": ("query", "results"),
    "/api/v1/search/semantic": ("query_text", "results"),
    "/api/v1/search/text": ("query", "results"),
    "/api/v1/search/hybrid": ("query_text", "results"),
}


@pytest.fixture
def filled(portal: Portal) -> Portal:
    for name, words in (QUERIES | LITERAL).items():
        portal.add(words, name=f"{name}.txt", title=name)
    portal.add("Nothing to see here.", name="other.txt", title="other")
    return portal


def best_title(body: Any, kept_in: str) -> str:
    found = (body.get("data") or body)[kept_in][0]
    return str(found.get("title") or found["metadata"]["title"])


@for_each("path", ENDPOINTS)
def test_query_that_looks_like_code_finds_the_text_it_looks_like(
    client: FlaskClient, filled: Portal, path: str
) -> None:
    field, kept_in = ENDPOINTS[path]
    headers = filled.headers()
    queries = QUERIES if path.startswith("/api/knowledge") else QUERIES | LITERAL
    for name, query in queries.items():
        answer = client.post(path, headers=headers, json={field: query})
        assert answer.status_code == 200, (query, answer.json)
        assert best_title(answer.json, kept_in) == name
    documents = library.list_documents(filled.services, filled.admin)
    assert documents.total_count == len(QUERIES) + len(LITERAL) + 1


def test_query_in_an_address_is_data_too(client: FlaskClient, filled: Portal) -> None:
    headers = filled.headers()
    for path, field, kept_in in (
        ("/v1/search", "q", "hits"), ("/api/semantic_search", "query", "results"),
    ):  # fmt: skip
        for query in (QUERIES | LITERAL).values():
            answer = client.get(path, query_string={field: query}, headers=headers)
            assert answer.status_code == 200
            assert answer.json["query"] == query
            assert answer.json[kept_in]
