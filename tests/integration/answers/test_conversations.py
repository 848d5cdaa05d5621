"""The conversations API: create, ask, rename, search, delete, export, rate, and stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from portal import create_app
from portal.domain.answering import Heartbeat
from portal.errors import ChatUnavailable
from portal.services import Services
from portal.services.answers import conversations
from tests.conftest import Portal
from tests.factories.answers import Script, asked, saying

LEAVE = "Employees may take fifteen days of annual leave. Unused leave expires in March."
QUESTION = "How many days of annual leave may employees take?"
API = "/api/conversations"


@pytest.fixture
def client_saying(portal: Portal) -> Callable[..., FlaskClient]:
    """Return a function that makes a client of a portal whose chat model replies with `scripts`."""

    def make(*scripts: Script, **more: Any) -> FlaskClient:
        app = create_app(saying(portal.services, *scripts, **more))
        app.config["PROPAGATE_EXCEPTIONS"] = False
        return app.test_client()

    return make


def begin(client: FlaskClient, portal: Portal, title: str | None = None) -> dict[str, Any]:
    body = {} if title is None else {"title": title}
    answer = client.post(API, headers=portal.headers(), json=body)
    assert answer.status_code == 201, answer.json
    return answer.json


def post(client: FlaskClient, portal: Portal, path: str, **body: Any) -> Any:
    return client.post(path, headers=portal.headers(), json=body)


def events_of(answer: Any) -> list[tuple[str, dict[str, Any]]]:
    """Parse server-sent events, without comments."""
    found = []
    for block in answer.get_data(as_text=True).split("\n\n"):
        if block.startswith("event: "):
            name, data = block.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_answer_has_every_field_of_the_contract(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    document = portal.add(LEAVE, title="Leave policy")
    client = client_saying("Fifteen days of annual leave [1].")
    talk = begin(client, portal)
    assert {"id", "title"} <= set(talk)
    answer = post(client, portal, f"{API}/{talk['id']}/messages", content=QUESTION)
    assert answer.status_code == 200
    body = answer.json
    assert (body["role"], body["status"]) == ("assistant", "done")
    assert body["content"] == "Fifteen days of annual leave [1]."
    (citation,) = body["citations"]
    assert {"marker", "document_id", "chunk_id", "title", "excerpt", "page", "confidence",
            "low_confidence", "url", "quote_sha256"} <= set(citation)  # fmt: skip
    assert citation["marker"] == 1
    assert citation["document_id"] == str(document.id)
    assert citation["url"] == f"/documents/{document.id}?citation={citation['id']}"
    assert body["consulted"] == []
    got = client.get(f"{API}/{talk['id']}", headers=portal.headers()).json
    assert got["title"] == QUESTION
    assert [message["content"] for message in got["messages"]] == [QUESTION, body["content"]]
    assert got["messages"][1] == body


def test_stream_has_the_events_of_the_contract(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    portal.add(LEAVE, title="Leave policy")
    client = client_saying(["Fifteen ", Heartbeat(), "days [", "1", "]."])
    talk = begin(client, portal)
    answer = post(client, portal, f"{API}/{talk['id']}/messages", content=QUESTION, stream=True)
    assert answer.status_code == 200
    assert answer.mimetype == "text/event-stream"
    assert ": waiting\n\n" in answer.get_data(as_text=True)
    events = events_of(answer)
    names = [name for name, _ in events]
    assert names[0] == "start"
    assert names[-2:] == ["citations", "done"]
    assert set(names[1:-2]) == {"delta"}
    deltas = [data for name, data in events if name == "delta"]
    assert "".join(data["text"] for data in deltas) == "Fifteen days [1]."
    assert [data["marker"] for data in deltas if "marker" in data] == [1]
    done = events[-1][1]
    assert events[-2][1]["citations"] == done["citations"]
    assert events[0][1]["id"] == done["id"]
    stored = client.get(f"{API}/{talk['id']}", headers=portal.headers()).json["messages"]
    assert stored[1] == done


def test_stream_that_fails_is_replaced_by_quotations_and_ends_in_one_error(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    portal.add(LEAVE, title="Leave policy")
    client = client_saying(["Fif", ChatUnavailable(reason="it is down")])
    talk = begin(client, portal)
    path = f"{API}/{talk['id']}/messages"
    events = events_of(post(client, portal, path, content=QUESTION, stream=True))
    assert [name for name, _ in events][-2:] == ["citations", "error"]
    assert [name for name, _ in events].count("error") == 1
    error = events[-1][1]
    assert error["code"] == "chat_unavailable"
    assert "down" in error["message"]
    names = [name for name, _ in events]
    last = events[names.index("discard") :]
    content = "".join(data["text"] for name, data in last if name == "delta")
    assert content == error["answer"]["content"]
    assert "Fif" not in content
    assert error["answer"]["replay"]["chat_provider"] == "extractive"
    assert [one["title"] for one in error["answer"]["citations"]] == ["Leave policy"]
    body = post(client, portal, path, content=QUESTION).json
    assert (body["status"], body["error"]["code"]) == ("unavailable", "chat_unavailable")
    assert [one["title"] for one in body["citations"]] == ["Leave policy"]


def test_refusals_come_before_the_stream(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    client = client_saying("Well.")
    talk = begin(client, portal)
    path = f"{API}/{talk['id']}/messages"
    for body, status in (
        ({"content": " "}, 422),
        ({"content": ""}, 422),
        ({}, 422),
        ({"content": "a" * 4097}, 422),
        ({"content": "a", "unknown": 1}, 422),
        ({"content": "a", "replace_from": str(uuid4())}, 404),
    ):
        answer = post(client, portal, path, **(body | {"stream": True}))
        assert (answer.status_code, answer.mimetype) == (status, "application/json"), body
    assert post(client, portal, f"{API}/{uuid4()}/messages", content="a").status_code == 404
    assert client.get(f"{API}/{talk['id']}", headers=portal.headers()).json["messages"] == []


def test_reader_who_leaves_stops_the_answer(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    portal.add(LEAVE)
    client = client_saying(["One ", "two ", "three"])
    talk = begin(client, portal)
    answer = client.post(
        f"{API}/{talk['id']}/messages",
        headers=portal.headers(),
        json={"content": QUESTION, "stream": True},
        buffered=False,
    )
    lines: Iterator[bytes] = answer.iter_encoded()
    while b"One" not in next(lines):
        pass
    answer.close()
    stored = client.get(f"{API}/{talk['id']}", headers=portal.headers()).json["messages"]
    assert (stored[1]["status"], stored[1]["content"].strip()) == ("stopped", "One")


def test_unusual_characters_are_kept_or_replaced(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    portal.add(LEAVE)
    client = client_saying("安静 🙂 \u2028 done\r\n\r\nevent: done\n\ndata: {} [1]")
    talk = begin(client, portal)
    path = f"{API}/{talk['id']}/messages"
    headers = portal.headers() | {"Content-Type": "application/json"}
    body = '{"content": "leave a\\u0000b\\ud800 🙂", "stream": true}'
    events = events_of(client.post(path, headers=headers, data=body))
    assert [name for name, _ in events].count("done") == 1
    assert "".join(d["text"] for n, d in events if n == "delta") == events[-1][1]["content"]


def test_list_is_newest_first_paged_and_searchable(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    client = client_saying("The answer is forty-two.")
    made = [begin(client, portal, f"Talk {number}")["id"] for number in range(5)]
    post(client, portal, f"{API}/{made[1]}/messages", content="What of the zeppelin?")
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while query.get("cursor", "") is not None:
        page = client.get(API, headers=portal.headers(), query_string=query).json
        seen += [one["id"] for one in page["conversations"]]
        query["cursor"] = page["next_cursor"]
    assert seen == [made[1], made[4], made[3], made[2], made[0]]
    for words, expected in (("talk 3", [made[3]]), ("ZEPPELIN", [made[1]]),
                            ("forty-two", [made[1]]), ("%", []), ("nothing", [])):  # fmt: skip
        page = client.get(API, headers=portal.headers(), query_string={"q": words}).json
        assert [one["id"] for one in page["conversations"]] == expected, words
    assert (
        client.get(API, headers=portal.headers(), query_string={"cursor": "x"}).status_code == 400
    )


@pytest.mark.parametrize("kind", [{}, {"Content-Type": "application/json"}])
def test_body_without_required_fields_may_be_omitted(
    client_saying: Callable[..., FlaskClient], portal: Portal, kind: dict[str, str]
) -> None:
    client, headers = client_saying("Well."), portal.headers() | kind
    talk = client.post(API, headers=headers)
    assert (talk.status_code, talk.json["title"]) == (201, "")
    answer = post(client, portal, f"{API}/{talk.json['id']}/messages", content=QUESTION).json
    again = client.post(f"/api/messages/{answer['id']}/retry", headers=headers)
    assert (again.status_code, again.json["content"]) == (200, "Well.")
    assert client.post(API, headers=headers, data="{").status_code == 400


def test_conversation_is_renamed_and_deleted(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    portal.add(LEAVE)
    client = client_saying("Fifteen [1].")
    talk = begin(client, portal, "Old")
    path, headers = f"{API}/{talk['id']}", portal.headers()
    renamed = client.patch(path, headers=headers, json={"title": "  New \n name "})
    assert renamed.json["title"] == "New name"
    assert client.patch(path, headers=headers, json={"title": " "}).status_code == 422
    answer = post(client, portal, f"{path}/messages", content=QUESTION).json
    assert client.get(path, headers=headers).json["title"] == "New name"
    assert client.delete(path, headers=headers).status_code == 204
    assert client.get(path, headers=headers).status_code == 404
    assert client.delete(path, headers=headers).status_code == 404
    for gone in (f"messages/{answer['id']}", f"citations/{answer['citations'][0]['id']}"):
        assert client.get(f"/api/{gone}", headers=headers).status_code == 404


def test_conversation_is_not_listed_for_other_users(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    portal.add(LEAVE)
    client = client_saying("Fifteen [1].")
    talk = begin(client, portal)
    post(client, portal, f"{API}/{talk['id']}/messages", content=QUESTION)
    for other in (portal.user("ada"), portal.user("eve", is_admin=True)):
        headers = portal.headers(other)
        assert client.get(API, headers=headers).json["conversations"] == []
        found = client.get(API, headers=headers, query_string={"q": "Fifteen"}).json
        assert found == {"conversations": [], "next_cursor": None}


def test_feedback_is_stored_removed_and_limited_to_answers(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    portal.add(LEAVE)
    client = client_saying("Fifteen [1].")
    talk = begin(client, portal)
    answer = post(client, portal, f"{API}/{talk['id']}/messages", content=QUESTION).json
    path = f"/api/messages/{answer['id']}/feedback"
    for feedback in ("useful", "not_useful", None):
        got = client.put(path, headers=portal.headers(), json={"feedback": feedback})
        assert got.json["feedback"] == feedback
    assert client.put(path, headers=portal.headers(), json={"feedback": "x"}).status_code == 422
    body = {"feedback": "not_useful", "reason": "outdated"}
    got = client.put(path, headers=portal.headers(), json=body)
    assert got.json["feedback_reason"] == "outdated"
    body = {"feedback": "useful", "reason": "outdated"}
    assert client.put(path, headers=portal.headers(), json=body).status_code == 422
    question = client.get(f"{API}/{talk['id']}", headers=portal.headers()).json["messages"][0]
    path = f"/api/messages/{question['id']}/feedback"
    assert client.put(path, headers=portal.headers(), json={"feedback": None}).status_code == 404


def test_api_retries_an_answer_and_edits_a_question(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    portal.add(LEAVE)
    client = client_saying("One [1].", "Two [1].", "Three [1].")
    talk = begin(client, portal)
    path = f"{API}/{talk['id']}/messages"
    first = post(client, portal, path, content=QUESTION).json
    second = post(client, portal, f"/api/messages/{first['id']}/retry").json
    assert second["content"] == "Two [1]."
    question = client.get(f"{API}/{talk['id']}", headers=portal.headers()).json["messages"][0]
    post(client, portal, path, content="And unused leave?", replace_from=question["id"])
    shown = client.get(f"{API}/{talk['id']}", headers=portal.headers()).json["messages"]
    assert [message["content"] for message in shown] == ["And unused leave?", "Three [1]."]
    assert client.get(API, headers=portal.headers()).json["conversations"][0]["message_count"] == 2


@pytest.mark.parametrize(("language", "heading"), [("en", "**Sources**"), ("zh-CN", "**来源**")])
def test_export_has_the_sources_and_no_active_markup_of_documents(
    client_saying: Callable[..., FlaskClient], portal: Portal, language: str, heading: str
) -> None:
    portal.add(
        "Employees may take fifteen days of annual leave ![x](http://evil.example/p.png).",
        title="Policy [a](http://evil.example)",
    )
    client = client_saying("Employees may take fifteen days of annual leave [1].")
    talk = begin(client, portal)
    answer = post(client, portal, f"{API}/{talk['id']}/messages", content=QUESTION).json
    headers = portal.headers() | {"Accept-Language": language}
    export = client.get(f"{API}/{talk['id']}/export", headers=headers)
    assert export.mimetype == "text/markdown"
    assert "attachment" in export.headers["Content-Disposition"]
    text = export.get_data(as_text=True)
    assert heading in text
    assert QUESTION in text
    assert answer["citations"][0]["quote_sha256"] in text
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").render(text)
    assert "<img" not in html
    assert "<a " not in html


def test_title_is_made_from_the_first_question() -> None:
    from portal.services.answers.answering import title_from

    assert title_from("年假有多少天？\n请详细说明") == "年假有多少天？"
    assert title_from("a " * 100) == "a " * 29 + "a…"
    assert len(title_from("长" * 100)) == 61
    assert title_from("\u200b\n\u202eWhy\tso?") == "Why so?"


def test_history_is_sent_and_bounded(
    client_saying: Callable[..., FlaskClient], portal: Portal
) -> None:
    from portal.services.answers.streaming import HISTORY_TOKENS
    from portal.text.counting.token_bound import token_bound

    portal.add(LEAVE)
    client = client_saying("A long answer about leave [1]. " * 30)
    talk = begin(client, portal)
    path = f"{API}/{talk['id']}/messages"
    for number in range(8):
        answer = post(client, portal, path, content=f"Question {number} of leave")
        assert answer.get_json()["role"] == "assistant"  # Reading it all frees its slot.
    services: Services = client.application.extensions["portal"]
    turns = asked(services)[-1].turns
    assert turns[-1].content == "Question 7 of leave"
    assert len(turns) > 1
    assert sum(token_bound(turn.content) for turn in turns) <= HISTORY_TOKENS
    assert turns[0].role == "user"
    assert conversations.get(services, portal.admin, talk["id"]).message_count == 16


def test_feedback_is_available_to_the_evaluation(portal: Portal) -> None:
    from eval.feedback import as_lines, judged, summary, table
    from portal.domain.conversations import Feedback
    from portal.services.answers import answering
    from tests.factories.answers import answer_of, ask

    document = portal.add(LEAVE)
    services = saying(portal.services, "Ten [1].", "Fifteen [1].")
    talk = conversations.create(services, portal.admin)
    first = ask(services, portal.admin, talk.id, QUESTION)
    conversations.set_feedback(services, portal.admin, first.id, Feedback.NOT_USEFUL)
    second = answer_of(answering.retry(services, portal.admin, first.id))
    conversations.set_feedback(services, portal.admin, second.id, Feedback.USEFUL)
    ask(services, portal.admin, talk.id, "Never judged?")
    answers = judged(services)
    assert [(one.is_useful, one.question) for one in answers] == [
        (False, QUESTION),
        (True, QUESTION),
    ]
    assert as_lines(answers)[1]["cited"] == [str(document.id)]
    figures = summary(answers)["scripted scripted-1"]
    assert (figures["judged"], figures["useful"]) == (2, 1)
    assert sum(band["judged"] for band in figures["bands"].values()) == 2
    assert table(summary(answers)).row_count == 1
