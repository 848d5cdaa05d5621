"""POST /v1/answer returns an answer that cites documents, and always the hits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.answering import Abstained, ChatEvent, ChatRequest, TextDelta
from portal.domain.documents import Visibility
from portal.errors import ChatUnavailable
from portal.services import Services
from portal.services.answers import single_answer
from portal.services.documents import library, switches
from portal.services.search.programs import document_search
from portal.settings.models import ChatSettings
from tests.conftest import Portal
from tests.factories.answers import asked, saying
from tests.factories.servers.chat import Die, Pause, Status, fake_chat

QUESTION = "How many days of annual leave do employees take?"
LEAVE = "Employees take fifteen days of annual leave every year."
SICK = "Employees on sick leave bring a certificate on the third day."
REPORT = "The annual report counts the days of rain."


@pytest.fixture
def ids(portal: Portal) -> dict[str, str]:
    words = {"leave": LEAVE, "sick": SICK, "report": REPORT}
    return {name: str(portal.add(one, name=f"{name}.txt").id) for name, one in words.items()}


def answer(
    portal: Portal, services: Services, query: str = QUESTION, *, status: int = 200, **body: Any
) -> Any:
    client: FlaskClient = create_app(services).test_client()
    headers = portal.headers(body.pop("user", None)) | body.pop("headers", {})
    given = client.post("/v1/answer", headers=headers, json={"query": query} | body)
    assert given.status_code == status, given.json
    return given.json


def documents(given: Any) -> list[str]:
    return [hit["document_id"] for hit in given["hits"]]


def test_extractive_answer_cites_the_document_it_quotes(
    portal: Portal, ids: dict[str, str]
) -> None:
    given = answer(portal, portal.services)
    assert "fifteen days of annual leave" in given["answer"]
    assert "[1]" in given["answer"]
    assert given["citations"][0] == ids["leave"]
    assert set(given["citations"]) <= set(documents(given))
    assert (given["status"], given["degraded"], given["reasons"]) == ("done", False, [])
    # Repeated requests give the same answer: nothing is random or kept between two answers.
    assert answer(portal, portal.services) == given


def test_hits_are_those_of_the_search_with_the_same_weights(
    portal: Portal, ids: dict[str, str]
) -> None:
    weights = {"text": 0.9, "vector": 0.2}
    given = answer(portal, portal.services, k=2, weights=weights)
    searched = create_app(portal.services).test_client().post(
        "/v1/search",
        headers=portal.headers(),
        json={"query": QUESTION, "limit": 2, "weights": weights},
    )  # fmt: skip
    assert given["hits"] == searched.json["hits"]
    assert len(given["hits"]) == 2


def test_citations_are_documents_by_first_use_of_their_markers(
    portal: Portal, ids: dict[str, str]
) -> None:
    services = saying(portal.services, "Third [3], then first [1], third again [3][1].")
    given = answer(portal, services)
    order = documents(given)
    assert given["citations"] == [order[2], order[0]]
    assert given["answer"] == "Third [1], then first [2], third again [1][2]."


def test_marker_without_a_retrieved_source_cites_nothing(
    portal: Portal, ids: dict[str, str]
) -> None:
    services = saying(portal.services, "Surely [7]. Also [2]. And [99].")
    given = answer(portal, services)
    assert given["citations"] == [documents(given)[1]]
    assert "7" not in given["answer"]
    assert "99" not in given["answer"]


def test_answer_without_markers_cites_nothing(portal: Portal, ids: dict[str, str]) -> None:
    given = answer(portal, saying(portal.services, "I simply know it."))
    assert (given["citations"], given["status"]) == ([], "done")


def test_prompt_holds_titles_and_chunks_of_the_hits_as_data(
    portal: Portal, ids: dict[str, str]
) -> None:
    services = saying(portal.services, "Well.")
    answer(portal, services, k=2)
    (request,) = asked(services)
    assert [str(source.document_id) for source in request.sources] == documents(
        answer(portal, services, k=2)
    )
    for source in request.sources:
        assert f"title: {source.title}" in request.system
        assert source.text in request.system
    assert [turn.content for turn in request.turns] == [QUESTION]
    assert request.can_search is False


def test_nothing_found_is_reported_and_cites_nothing(portal: Portal) -> None:
    given = answer(portal, portal.services, "zebra crossing")
    assert given["answer"].startswith("There are no documents yet")
    portal.add("The kettle is in the kitchen.", name="kettle.txt")
    given = answer(portal, portal.services, "zebra crossing")
    assert (given["status"], given["citations"], given["hits"]) == ("abstained", [], [])
    assert given["answer"].startswith("Nothing about this was found")


def test_abstention_cites_nothing_and_shows_the_hits(portal: Portal, ids: dict[str, str]) -> None:
    services = saying(portal.services, [Abstained("I do not know.")])
    given = answer(portal, services)
    assert (given["status"], given["answer"], given["citations"]) == (
        "abstained", "I do not know.", [],
    )  # fmt: skip
    assert len(given["hits"]) == 3
    assert given["degraded"] is False


def is_unavailable(given: Any) -> bool:
    return (
        given["answer"] == "answer unavailable"
        and given["status"] == "unavailable"
        and given["citations"] == []
        and len(given["hits"]) == 3
        and given["degraded"] is True
        and given["reasons"] == ["chat_unavailable"]
        and bool(given["message"])
    )


@pytest.mark.parametrize(
    "script",
    [
        [Status(500)],
        [Status(401, {"error": {"message": "no"}})],
        ["Fifteen [1]", Die()],
        [Pause()],
        [],
    ],
    ids=["500", "401", "dies", "says nothing", "empty"],
)
def test_chat_endpoint_that_fails_or_is_slow_leaves_the_hits(
    portal: Portal, ids: dict[str, str], make_services: Callable[..., Services], script: list[Any]
) -> None:
    with fake_chat(script) as chat:
        settings = {"provider": "openai", "api_base": chat.url, "first_token_timeout_s": 0.5}
        assert is_unavailable(answer(portal, make_services(chat=settings)))


def test_model_that_answers_after_two_seconds_is_waited_for_by_default(
    portal: Portal, ids: dict[str, str], make_services: Callable[..., Services]
) -> None:
    assert ChatSettings().first_token_timeout_s > 2.5
    with fake_chat([Pause(2.0), "Fifteen [1]."]) as chat:
        services = make_services(chat={"provider": "openai", "api_base": chat.url})
        given = answer(portal, services)
    assert (given["status"], given["answer"]) == ("done", "Fifteen [1].")


def test_dead_chat_endpoint_is_reported_in_the_readers_language(
    portal: Portal, ids: dict[str, str], make_services: Callable[..., Services]
) -> None:
    with fake_chat() as chat:
        url = chat.url
    services = make_services(chat={"provider": "openai", "api_base": url})
    english = answer(portal, services, headers={"Accept-Language": "en"})
    chinese = answer(portal, services, headers={"Accept-Language": "zh-CN"})
    # The error code is the same in every language; the message is translated.
    assert is_unavailable(english)
    assert is_unavailable(chinese)
    assert english["message"] != chinese["message"]


def test_text_before_a_failure_is_not_an_answer(portal: Portal, ids: dict[str, str]) -> None:
    services = saying(portal.services, ["Fifteen [1].", ChatUnavailable(reason="gone")])
    assert is_unavailable(answer(portal, services))


def test_answer_uses_no_hidden_or_disabled_document(portal: Portal, ids: dict[str, str]) -> None:
    owner, reader = portal.user("owner"), portal.user("reader")
    secret = portal.add(
        f"Secret: {LEAVE}", name="secret.txt", owner=owner, visibility=Visibility.PRIVATE
    )
    switches.set_switch(portal.services, reader, None, UUID(ids["sick"]), enabled=False)
    services = saying(portal.services, "All [1][2][3][4].")
    given = answer(portal, services, user=reader)
    assert set(given["citations"]) == {ids["leave"], ids["report"]}
    (request,) = asked(services)
    assert "Secret" not in request.system
    assert "certificate" not in request.system
    assert str(secret.id) in answer(portal, services, user=owner)["citations"]


def test_document_purged_between_search_and_reading_is_not_read(
    portal: Portal, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    doomed = [UUID(ids["leave"])]

    def search_then_purge(*arguments: Any, **more: Any) -> Any:
        found = document_search.search(*arguments, **more)
        while doomed:
            library.purge_document(portal.services, portal.admin, doomed.pop())
        return found

    class Stub:
        search = staticmethod(search_then_purge)

    monkeypatch.setattr(single_answer, "document_search", Stub)
    services = saying(portal.services, "All [1][2][3].")
    given = answer(portal, services)
    assert ids["leave"] not in given["citations"]
    (request,) = asked(services)
    assert "fifteen" not in request.system


def test_answers_share_the_slots_of_the_process(
    portal: Portal, ids: dict[str, str], make_services: Callable[..., Services]
) -> None:
    is_writing, may_end = threading.Event(), threading.Event()

    def slow(_request: ChatRequest) -> Iterator[ChatEvent]:
        is_writing.set()
        may_end.wait(30)
        yield TextDelta("Done [1].")

    services = saying(make_services(chat={"concurrent_answers": 1}), slow)
    first: list[Any] = []
    thread = threading.Thread(target=lambda: first.append(answer(portal, services)))
    thread.start()
    assert is_writing.wait(30)
    refused = answer(portal, services, status=503)
    may_end.set()
    thread.join(30)
    assert refused["error"]["code"] == "too_many_answers"
    assert first[0]["status"] == "done"
    assert answer(portal, services)["status"] == "done"
    assert services.answer_slots.taken == 0


def test_slot_is_freed_when_the_search_is_refused(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    services = make_services(chat={"concurrent_answers": 1})
    for _ in range(3):
        answer(portal, services, "\u200b", status=422)
    assert services.answer_slots.taken == 0


def test_nothing_of_an_answer_is_stored(portal: Portal, ids: dict[str, str]) -> None:
    answer(portal, portal.services)
    headers = portal.headers()
    client = create_app(portal.services).test_client()
    assert client.get("/api/conversations", headers=headers).json["conversations"] == []


def test_question_about_the_available_documents_gets_a_reply(
    portal: Portal, ids: dict[str, str]
) -> None:
    given = answer(portal, portal.services, query="Which documents do you have?")
    assert given["status"] == "abstained"
    assert "documents are in use" in given["answer"]
