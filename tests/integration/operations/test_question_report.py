"""The report of poorly answered questions, and the evaluation set saved from it."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from uuid import uuid4

import pytest
from flask.testing import FlaskClient

from eval.answers import sets as answer_sets
from portal.domain.answering import Abstained
from portal.domain.conversations import Feedback, FeedbackReason, Message
from portal.domain.documents import DocumentSummary
from portal.domain.people import User
from portal.errors import ChatUnavailable
from portal.services.answers import conversations
from portal.services.documents import library
from portal.services.operations.reports import overview, question_report
from portal.services.operations.reports.question_report import Problem, Report
from portal.services.people import accounts
from tests.conftest import Portal
from tests.factories.answers import Script, ask, saying

PAGE = "/admin/questions"
LEAVE = "Employees may take fifteen days of annual leave. Unused leave expires in March."
QUESTION = "How many days of annual leave may employees take?"


def asker(portal: Portal) -> User:
    return accounts.find_user(portal.services, "reader")


def answered(
    portal: Portal, script: Script = "Fifteen days [1].", asked: str = QUESTION
) -> Message:
    """Ask a question as an ordinary user and return the answer."""
    services = saying(portal.services, script)
    conversation = conversations.create(services, asker(portal))
    return ask(services, asker(portal), conversation.id, asked)


def judge(portal: Portal, message: Message, reason: FeedbackReason | None = None) -> None:
    conversations.set_feedback(
        portal.services, asker(portal), message.id, Feedback.NOT_USEFUL, reason
    )


def report(portal: Portal, problem: Problem | None = None, days: int = 7) -> Report:
    return question_report.show(portal.services, portal.admin, days=days, problem=problem)


def get(client: FlaskClient, portal: Portal, path: str = PAGE) -> str:
    headers = portal.headers() | {"Accept-Language": "en"}
    return client.get(path, headers=headers).get_data(as_text=True)


@pytest.fixture
def document(portal: Portal) -> DocumentSummary:
    portal.user("reader")
    return portal.add(LEAVE, name="leave.txt")


def make_low(portal: Portal, message: Message) -> None:
    portal.execute(
        "UPDATE citations SET scores = scores || '{\"low_confidence\": true}'"
        " WHERE message_id = :id",
        id=message.id,
    )


def make_sure(portal: Portal, message: Message) -> None:
    portal.execute(
        "UPDATE citations SET scores = scores || '{\"low_confidence\": false}'"
        " WHERE message_id = :id",
        id=message.id,
    )


def test_each_problem_has_its_questions_and_good_answers_none(portal: Portal, document) -> None:
    good, low, bad = (answered(portal) for _ in range(3))
    none = answered(portal, [Abstained("Nothing.")])
    for one in (good, bad):
        make_sure(portal, one)
    make_low(portal, low)
    judge(portal, bad, FeedbackReason.OUTDATED)
    found = {
        problem: [question.id for question in report(portal, problem).questions]
        for problem in Problem
    }
    assert found == {
        Problem.UNANSWERED: [none.id],
        Problem.MODEL_FAILED: [],
        Problem.LOW_CONFIDENCE: [low.id],
        Problem.NOT_USEFUL: [bad.id],
        Problem.STALE: [],
    }
    week = report(portal).weeks[0]
    assert (week.answers, week.unanswered, week.low_confidence, week.not_useful) == (4, 1, 1, 1)


def test_failures_of_the_model_are_not_missing_documents(
    client: FlaskClient, portal: Portal, document
) -> None:
    down = ChatUnavailable(reason="it is down")
    quoted = answered(portal, [down])
    make_sure(portal, quoted)
    failed = answered(portal, ["Half", down], "Who waters the plants?")
    assert report(portal, Problem.UNANSWERED).questions == []
    # Quotations took the place of one of them, but the model failed all the same.
    found = report(portal).questions
    assert [(one.id, one.model_failed) for one in found] == [(failed.id, True), (quoted.id, True)]
    assert report(portal).weeks[0].model_failed == 2
    page = get(client, portal, f"{PAGE}?problem=model_failed")
    row = page.split('data-testid="reported-question"')[1].split("</li>")[0]
    assert 'href="/admin/answers"' in row
    assert "Upload a document" not in row


def test_changed_sources_are_reported(portal: Portal, document) -> None:
    message = answered(portal)
    make_sure(portal, message)
    assert report(portal).questions == []
    library.delete_document(portal.services, portal.admin, document.id)
    assert [question.id for question in report(portal, Problem.STALE).questions] == [message.id]


@pytest.mark.parametrize("said", ["Hello", "Summarize leave"])
def test_requests_that_search_nothing_are_not_reported(portal: Portal, document, said: str) -> None:
    conversation = conversations.create(portal.services, portal.admin)
    assert ask(portal.services, portal.admin, conversation.id, said).status == "abstained"
    assert report(portal).questions == []
    (today,) = overview.show(portal.services, portal.admin).days[-1:]
    assert (today.answers, today.unanswered) == (0, 0)


def test_page_shows_what_to_do_and_not_who_asked(
    client: FlaskClient, portal: Portal, document
) -> None:
    message = answered(portal)
    judge(portal, message, FeedbackReason.OUTDATED)
    page = get(client, portal)
    assert QUESTION in page
    for fact in ("Not helpful", "Outdated"):
        assert f'<span class="fact">{fact}</span>' in page
    assert f"/documents/{document.id}/revisions" in page
    assert "New version of “leave”" in page
    assert "reader" not in page
    assert "Fifteen days [1]" not in page
    assert str(message.conversation_id) not in page
    unanswered = answered(portal, [Abstained("Nothing.")], "Who waters the plants?")
    page = get(client, portal, f"{PAGE}?problem=unanswered")
    assert "Who waters the plants?" in page
    assert "Upload a document" in page
    assert QUESTION not in page.split("reported-questions")[1].split("cited-heading")[0]
    conversations.delete(portal.services, asker(portal), unanswered.conversation_id)
    assert "Who waters the plants?" not in get(client, portal)


def test_question_asked_again_is_one_row(client: FlaskClient, portal: Portal, document) -> None:
    judge(portal, answered(portal), FeedbackReason.WRONG)
    latest = answered(portal, [Abstained("Nothing.")], QUESTION.lower().rstrip("?"))
    other = answered(portal, [Abstained("Nothing.")], "Who waters the plants?")
    found = report(portal).questions
    assert [(one.id, one.times) for one in found] == [(other.id, 1), (latest.id, 2)]
    assert (found[1].unanswered, found[1].not_useful, found[1].reason) == (True, True, "wrong")
    assert "asked 2 times" in get(client, portal)


def test_follow_up_is_shown_with_what_was_searched_for(
    client: FlaskClient, portal: Portal, document
) -> None:
    services = saying(portal.services, [Abstained("Nothing.")])
    conversation = conversations.create(services, asker(portal))
    for question in ("Who waters the plants?", "Why?"):
        ask(services, asker(portal), conversation.id, question)
    page = get(client, portal)
    assert "Searched for: waters plants Why?" in page
    assert "q=waters+plants+Why" in page


def test_source_in_the_trash_is_offered_for_restoring(
    client: FlaskClient, portal: Portal, document
) -> None:
    judge(portal, answered(portal))
    library.delete_document(portal.services, portal.admin, document.id)
    page = get(client, portal)
    assert "Restore “leave” from the trash" in page
    assert "New version of" not in page
    form = {"next": PAGE}
    restored = client.post(f"/trash/{document.id}/restore", data=form, headers=portal.headers())
    assert restored.headers["Location"] == PAGE
    assert "New version of “leave”" in get(client, portal)


def test_each_cited_document_is_offered_once_with_its_file_name(
    client: FlaskClient, portal: Portal, document
) -> None:
    other = portal.add(LEAVE + " The rest is paid.", name="leave.md")
    message = answered(portal, "Fifteen days [1]. They expire in March [2].")
    judge(portal, message)
    offered = "UPDATE citations SET was_cited = true, title = 'leave' WHERE message_id = :id"
    portal.execute(offered, id=message.id)
    page = get(client, portal)
    for cited, file_name in ((document, "leave.txt"), (other, "leave.md")):
        assert page.count(f"/documents/{cited.id}/revisions") == 1
        assert f"New version of “leave · {file_name} · " in page


def test_most_cited_documents_come_first(portal: Portal, document) -> None:
    answered(portal)
    answered(portal)
    assert [(one.id, one.answers) for one in report(portal).documents] == [(document.id, 2)]


def test_one_click_makes_an_entry_that_eval_reads(
    client: FlaskClient, portal: Portal, document, tmp_path: Path
) -> None:
    bad = answered(portal)
    judge(portal, bad)
    none = answered(portal, [Abstained("Nothing.")], "Who waters the plants?")
    gold = {"gold": "fifteen days， March, 1,280"}
    for message, form in ((bad, gold), (none, gold | {"absent": "true"})):
        path = f"{PAGE}/{message.id}/keep"
        answer = client.post(path, headers=portal.headers(), data=form)
        assert answer.status_code == 303
    assert get(client, portal).count("In the evaluation set") == 2
    file = client.get(f"{PAGE}/evaluation-set.zip", headers=portal.headers())
    zipfile.ZipFile(io.BytesIO(file.data)).extractall(tmp_path)
    loaded = answer_sets.load(tmp_path)
    assert [path.name for path in loaded.documents] == ["001-leave.txt"]
    assert loaded.documents[0].read_text() == LEAVE
    first, second = loaded.questions
    assert (first.kind, first.text, first.gold) == (
        "fact",
        QUESTION,
        (("fifteen days",), ("March",), ("1,280",)),
    )
    assert (second.kind, second.text) == ("absent", "Who waters the plants?")
    assert client.post(f"{PAGE}/{bad.id}/remove", headers=portal.headers()).status_code == 303
    assert [one.message_id for one in report(portal).kept] == [none.id]


def test_answers_that_need_no_attention_cannot_be_kept(
    client: FlaskClient, portal: Portal, document
) -> None:
    good = answered(portal)
    make_sure(portal, good)
    for message_id in (good.id, uuid4()):
        answer = client.post(f"{PAGE}/{message_id}/keep", headers=portal.headers())
        assert answer.status_code == 404


def test_follow_up_is_exported_after_what_it_follows(
    client: FlaskClient, portal: Portal, document, tmp_path: Path
) -> None:
    services = saying(portal.services, "Fifteen [1].", "How many days for interns?", "Four [1].")
    conversation = conversations.create(services, asker(portal))
    ask(services, asker(portal), conversation.id, QUESTION)
    follow_up = ask(services, asker(portal), conversation.id, "and for interns?")
    judge(portal, follow_up)
    path = f"{PAGE}/{follow_up.id}/keep"
    client.post(path, headers=portal.headers(), data={"gold": "four"})
    file = client.get(f"{PAGE}/evaluation-set.zip", headers=portal.headers())
    zipfile.ZipFile(io.BytesIO(file.data)).extractall(tmp_path)
    [question] = answer_sets.load(tmp_path).questions
    assert (question.text, question.after) == ("and for interns?", (QUESTION,))
