"""The reason why a document is not among the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.people import User
from portal.domain.search import Facets, SearchMode, SearchRequest
from portal.domain.search.explaining import FailedFilter, MissingReason, WhyNot
from portal.errors import NotFound
from portal.services import Services
from portal.services.documents import library
from portal.services.search import engine, explaining
from tests.conftest import Portal
from tests.factories.cases import for_each

WHY = "/api/knowledge/search/why"
LEAVE = "员工每年有十五天带薪年假。病假需要医生证明。"
OFFICE = "The office closes at six. Visitors must sign in at the front desk."


def why(
    portal: Portal, query: str, document_id: UUID, user: User | None = None, **wishes
) -> WhyNot:
    request = SearchRequest(query=query, **wishes)
    return explaining.why_not(portal.services, user or portal.admin, request, document_id)


def execute(portal: Portal, statement: str, **binds: object) -> object:
    with portal.services.database.begin() as session:
        result = session.execute(text(statement), binds)
        return result.scalar() if result.returns_rows else None


def switch(portal: Portal, user: User, document_id: UUID, *, on: bool) -> None:
    execute(
        portal,
        "INSERT INTO user_document_defaults (user_id, document_id, enabled) VALUES (:p, :d, :on)",
        p=user.id,
        d=document_id,
        on=on,
    )


def converse(portal: Portal, user: User, document_id: UUID, *, on: bool) -> UUID:
    """Create a conversation of this user with the document switched on or off."""
    conversation = execute(
        portal, "INSERT INTO conversations (user_id) VALUES (:p) RETURNING id", p=user.id
    )
    assert isinstance(conversation, UUID)
    execute(
        portal,
        "INSERT INTO conversation_document_overrides (conversation_id, document_id, enabled)"
        " VALUES (:c, :d, :on)",
        c=conversation,
        d=document_id,
        on=on,
    )
    return conversation


@pytest.fixture
def office(portal: Portal) -> UUID:
    portal.add(LEAVE, name="年假规定.txt")
    return portal.add(OFFICE, name="handbook.md", domain="house").id


def test_document_among_the_results_is_reported_with_its_rank(portal: Portal, office: UUID) -> None:
    answer = why(portal, "When does the office close?", office)
    assert (answer.reason, answer.rank, answer.title) == (MissingReason.IN_RESULTS, 1, "handbook")


def test_trash_is_shown_to_those_who_may_restore_and_hidden_from_others(
    portal: Portal, office: UUID
) -> None:
    other = portal.user("other")
    library.delete_document(portal.services, portal.admin, office)
    assert why(portal, "office", office).reason is MissingReason.IN_TRASH
    with pytest.raises(NotFound):
        why(portal, "office", office, other)
    library.purge_document(portal.services, portal.admin, office)
    with pytest.raises(NotFound):
        why(portal, "office", office)


def test_failed_document_reports_its_failure(portal: Portal) -> None:
    broken = portal.add(b"%PDF-1.4 this is no PDF", name="broken.pdf")
    answer = why(portal, "office", broken.id)
    assert answer.reason is MissingReason.NOT_READY
    assert answer.failure is not None
    assert answer.status == broken.status == "failed"


def test_switches_are_distinguished_and_the_conversation_comes_first(
    portal: Portal, office: UUID
) -> None:
    user = portal.user("reader")
    on = converse(portal, user, office, on=True)
    off = converse(portal, user, office, on=False)
    assert why(portal, "office", office, user).reason is MissingReason.IN_RESULTS
    answer = why(portal, "office", office, user, conversation_id=off)
    assert answer.reason is MissingReason.OFF_IN_CONVERSATION
    switch(portal, user, office, on=False)
    assert why(portal, "office", office, user).reason is MissingReason.OFF_BY_DEFAULT
    answer = why(portal, "office", office, user, conversation_id=off)
    assert answer.reason is MissingReason.OFF_IN_CONVERSATION
    answer = why(portal, "office", office, user, conversation_id=on)
    assert answer.reason is MissingReason.IN_RESULTS
    with pytest.raises(NotFound):
        why(portal, "office", office, conversation_id=on)  # Another user's conversation.


@for_each(
    ("query", "domain", "failed"),
    [
        ("office", "finance", FailedFilter("domain", "finance")),
        ("office type:pdf", None, FailedFilter("type", "PDF")),
        ("office title:规定", None, FailedFilter("title", "规定")),
        ('office "带薪年假"', None, FailedFilter("phrase", "带薪年假")),
        ("office -visitors", None, FailedFilter("word", "visitors")),
    ],
)
def test_filter_that_excludes_is_named(
    portal: Portal, office: UUID, query: str, domain: str | None, failed: FailedFilter
) -> None:
    answer = why(portal, query, office, domain=domain)
    assert (answer.reason, answer.failed_filter) == (MissingReason.EXCLUDED_BY_FILTER, failed)


def test_facet_that_excludes_is_named_as_such(portal: Portal, office: UUID) -> None:
    answer = why(portal, "office", office, facets=Facets(tag="travel"))
    assert answer.failed_filter == FailedFilter("facet", "")


def test_phrase_ignored_by_the_search_excludes_nothing(portal: Portal, office: UUID) -> None:
    answer = why(portal, 'office "closes at seven"', office)
    assert answer.reason is MissingReason.IN_RESULTS


def test_copy_is_reported_as_a_duplicate_of_a_result(portal: Portal, office: UUID) -> None:
    copy = portal.add(OFFICE.upper() + "\n", name="copy.txt")
    shown = engine.search(portal.services, portal.admin, SearchRequest("office")).hits
    standing = next(hit for hit in shown if hit.duplicate_count == 1)
    hidden = copy.id if standing.document_id == office else office
    answer = why(portal, "office", hidden)
    assert answer.reason is MissingReason.DUPLICATE_OF
    assert answer.duplicate_of is not None
    assert (answer.duplicate_of.id, answer.duplicate_of.rank) == (standing.document_id, 1)


def test_filters_that_no_single_chunk_meets_are_named_together(portal: Portal) -> None:
    between = "The river runs on between its banks. " * 100
    document = portal.add(f"A grey heron stands here. {between} A brown otter swims there.")
    answer = why(portal, '"grey heron" -otter', document.id)
    assert answer.reason is MissingReason.IN_RESULTS
    portal.add("A grey heron met a brown otter.", name="both.txt")
    answer = why(portal, '"grey heron" "brown otter"', document.id)
    assert answer.failed_filter is not None
    assert answer.failed_filter.kind == "together"


def test_document_without_vectors_waits_for_them(portal: Portal, office: UUID) -> None:
    execute(portal, "DELETE FROM chunk_embeddings WHERE document_id = :d", d=office)
    assert (
        why(portal, "年假", office, mode=SearchMode.VECTOR).reason is MissingReason.NO_EMBEDDING_YET
    )
    # Keywords find it without a vector.
    assert why(portal, "office", office).reason is MissingReason.IN_RESULTS
    answer = why(portal, "office", office, mode=SearchMode.KEYWORD)
    assert answer.reason is MissingReason.IN_RESULTS


def test_score_below_the_threshold_is_reported(portal: Portal, office: UUID) -> None:
    answer = why(portal, "年假", office, threshold=0.99)
    assert answer.reason is MissingReason.BELOW_THRESHOLD
    assert answer.score is not None
    assert answer.score < 0.99 == answer.threshold


def test_document_without_any_word_of_a_search_by_words_reports_it(
    portal: Portal, office: UUID
) -> None:
    answer = why(portal, "年假", office, mode=SearchMode.KEYWORD)
    assert answer.reason is MissingReason.NO_WORD_IN_COMMON


@for_each("query", ["type:txt", "-draft", "type:pdf", "-office"])
def test_query_of_filters_alone_is_reported_as_having_no_words(
    portal: Portal, office: UUID, query: str
) -> None:
    found = engine.search(portal.services, portal.admin, SearchRequest(query))
    assert (found.hits, found.degraded) == ((), ("no_words",))
    assert why(portal, query, office).reason is MissingReason.NO_WORDS


def test_keyword_search_without_a_backend_reports_it_as_the_reason(
    portal: Portal, office: UUID, make_services: Callable[..., Services]
) -> None:
    services = make_services(search={"keyword_backend": "off"})
    without = replace(portal, services=services)
    answer = why(without, "office", office, mode=SearchMode.KEYWORD)
    assert answer.reason is MissingReason.KEYWORD_UNAVAILABLE
    assert why(without, "office", office).reason is MissingReason.IN_RESULTS


@pytest.mark.parametrize("mode", list(SearchMode))
def test_rank_is_the_place_in_the_search_itself(portal: Portal, mode: SearchMode) -> None:
    for number in range(30):
        words = "budget " * (30 - number) + "of the plan "
        portal.add(words + f"for house {number} " * number, name=f"n{number}.txt")
    request = SearchRequest("budget", mode=mode, top_n=100)
    hits = engine.search(portal.services, portal.admin, request).hits
    last = hits[-1]
    answer = why(portal, "budget", last.document_id, mode=mode, top_n=3)
    assert answer.reason is MissingReason.RANKED
    first = [hit.document_id for hit in hits].index(last.document_id) + 1
    assert (answer.rank, answer.shown_count) == (first, 3)


def test_rank_counts_far_beyond_what_a_search_returns(portal: Portal) -> None:
    best = "".join(
        f"Section {number}. The budget of the budget office for the budget year {number}. "
        + f"Numbers of room {number} follow in order. " * 30
        for number in range(130)
    )
    portal.add(best, name="budget.txt")
    last = portal.add("A long walk along the river " * 20 + " and a budget.", name="walk.txt")
    answer = why(portal, "budget", last.id, mode=SearchMode.KEYWORD, top_n=5)
    assert answer.reason is MissingReason.RANKED
    assert answer.rank is not None
    assert answer.rank > 100


def test_api_reports_the_reason_in_the_readers_language(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    headers = portal.headers() | {"Accept-Language": "zh-CN"}
    asked = {"query": "office -visitors", "document_id": str(office), "mode": "hybrid"}
    answer = client.get(WHY, headers=headers, query_string=asked)
    assert answer.status_code == 200
    assert answer.json["reason"] == "excluded_by_filter"
    assert answer.json["failed_filter"] == {"kind": "word", "operand": "visitors"}
    assert "handbook" in answer.json["message"]
    assert "visitors" in answer.json["message"]
    assert not answer.json["message"].isascii()
    assert set(answer.json) >= {"rank", "score", "threshold", "chunk_id", "duplicate_of"}


@for_each(
    ("asked", "status"),
    [
        ({"query": "office"}, 422),
        ({"query": " ", "document_id": str(uuid4())}, 422),
        ({"query": "office", "document_id": "x"}, 422),
        ({"query": "office", "document_id": str(uuid4()), "colour": "red"}, 422),
        ({"query": "office", "document_id": str(uuid4())}, 404),
    ],
)
def test_api_refuses_what_it_cannot_answer(
    client: FlaskClient, portal: Portal, asked: dict[str, str], status: int
) -> None:
    assert client.get(WHY, headers=portal.headers(), query_string=asked).status_code == status


def test_search_api_returns_ranks_and_matched_words(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    body = {"query": "office", "fuzzy": True, "normalisation": "minmax"}
    answer = client.post("/api/knowledge/search", headers=portal.headers(), json=body).json
    assert answer["correction"] is None
    result = answer["results"][0]
    assert {"vector_rank", "text_rank", "rerank_score", "matched_words"} <= set(result)
    assert result["duplicate_count"] == 0
