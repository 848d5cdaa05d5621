"""Chinese and English are equal: no text exists in one language only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from flask_babel import force_locale
from pydantic import ValidationError

from portal.api import validation
from portal.api.people.auth import Credentials, RevokeRequest
from portal.api.schemas import RequestModel
from portal.api.search.chunk_search_schemas import BatchBody, HybridBody, SemanticBody, TextBody
from portal.domain.documents import Failure
from portal.errors import (
    N_,
    EmbedderUnavailable,
    InvalidInput,
    TooLarge,
    UnsupportedFormat,
    verbatim,
)
from portal.http import messages
from portal.ingest import media_types
from portal.web import translations

ZH = translations.load()["zh_Hans_CN"]


def test_every_message_is_translated_and_none_is_left_over():
    assert translations.main(["--check"]) == 0


def test_words_of_the_first_design_are_unchanged():
    assert ZH.gettext("Upload documents") == "上传文档"
    assert ZH.gettext("Delete") == "删除"


def test_a_missing_a_fuzzy_and_an_obsolete_message_are_found():
    wanted, ours = Catalog(), Catalog()
    for message_id in ("new", "unsure", "%(name)s is here"):
        wanted.add(message_id)
    ours.add("unsure", "也许", flags=["fuzzy"])
    ours.add("gone", "没了")
    ours.add("%(name)s is here", "%(nmae)s 在")
    assert translations.faults(ours, wanted) == [
        "missing: new",
        "fuzzy: unsure",
        "unknown place: %(name)s is here",
        "obsolete: gone",
    ]


def _kinds() -> set[str]:
    named = {name for _, name in (*media_types._SIGNATURES, *media_types._ZIP_KINDS)}
    return named | set(media_types._DAMAGED.values())


@pytest.mark.parametrize("kind", sorted(_kinds()))
def test_every_kind_of_file_that_is_refused_has_its_chinese_name(app, kind):
    with app.test_request_context(), force_locale("zh_Hans_CN"):
        assert messages.translated(kind) != kind


def test_messages_within_messages_are_translated(app):
    reason = N_("there is no directory “%(path)s”", path="m/")
    error = EmbedderUnavailable(reason=N_("“%(name)s”: %(reason)s", name="bge", reason=reason))
    assert str(error) == "The embedding model cannot be used: “bge”: there is no directory “m/”."
    with app.test_request_context(), force_locale("zh_Hans_CN"):
        assert messages.error_message(error) == "嵌入模型无法使用：“bge”：没有目录“m/”。"
        assert messages.translated("什么也不像") == "什么也不像"


@pytest.mark.parametrize(
    ("error", "chinese"),
    [
        (UnsupportedFormat(name="a.png", detected=N_("a PNG image")), "PNG 图片"),
        (
            EmbedderUnavailable(reason=N_("there is no directory “%(path)s”", path=Path("m"))),
            "没有目录“m”",
        ),
        (InvalidInput(reason=verbatim("100% %(x)s")), "100% %(x)s"),
        (TooLarge(name="a.txt", limit_mb=5), "“a.txt”超过了 5 MB 的上限"),
    ],
)
def test_stored_failure_reads_in_both_languages(app, error, chinese):
    stored = json.dumps(Failure(error.code, error.params).as_json())
    failure = Failure.stored(json.loads(stored))
    with app.test_request_context(), force_locale("zh_Hans_CN"):
        assert chinese in messages.failure_message(failure)
    with app.test_request_context(), force_locale("en"):
        assert messages.failure_message(failure) == str(error)


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
def test_refusal_names_the_field_and_what_it_takes(
    app: Any, model: type[RequestModel], body: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        model.model_validate_json(json.dumps(body), strict=True)
    with app.test_request_context(headers={"Accept-Language": "en"}):
        assert validation.summary(validation.words_of(refused.value)) == said
