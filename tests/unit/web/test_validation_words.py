"""Test the messages about wrong values: which field, in its own unit, and what is right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from portal.api import validation
from portal.api.people.auth import Credentials, RevokeRequest
from portal.api.schemas import RequestModel
from portal.api.search.chunk_search_schemas import BatchBody, HybridBody, SemanticBody, TextBody

LANGUAGES = "language must be one of: 'auto', 'simple', 'english', 'chinese', 'en', 'zh'"
SCALARS = {"query": "a", "top_k": 0, "highlight": "yes", "fuzzy": "yes", "job_id": "7"}


@pytest.mark.parametrize(
    ("model", "body", "said"),
    [
        (TextBody, {"query": "a" * 5000}, "query must have at most 4096 characters"),
        (TextBody, {"query": ""}, "query must have 1 or more characters"),
        (SemanticBody, {"query_text": "a" * 5000}, "query_text must have at most 4096 characters"),
        (
            SemanticBody,
            {"query_vector": [1.0] * 16001},
            "query_vector must have at most 16000 items",
        ),
        (RevokeRequest, {"token": "a" * 5000}, "token must have at most 4096 characters"),
        (Credentials, {"username": "ada"}, "password is required"),
        (BatchBody, {"queries": []}, "queries must have 1 or more items"),
        (BatchBody, {"queries": 7}, "queries must be a list"),
        (TextBody, {"query": "a", "q": 1}, "q is not a known field; remove it"),
        (TextBody, {"query": "\u200b"}, "the query has no visible characters; enter a question"),
        (HybridBody, {"query_text": "a", "rrf_k": 1.5}, "rrf_k must be a whole number"),
        (TextBody, {"query": "a", "language": "x"}, LANGUAGES),
        (
            TextBody,
            SCALARS,
            "job_id must be a UUID; top_k must be at least 1; highlight must be true or false; …",
        ),
    ],
)
def test_refusal_names_the_field_and_what_is_right(
    app: Any, model: type[RequestModel], body: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate_json(json.dumps(body), strict=True)
    with app.test_request_context(headers={"Accept-Language": "en"}):
        assert validation.summary(validation.words_of(refused.value)) == said
