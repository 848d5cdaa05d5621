"""Answers shown on the pages while they are written."""

from __future__ import annotations

from uuid import uuid4

from portal.domain.conversations import MessageStatus
from tests.factories.answers import SaysWhatIsWritten
from tests.integration.answers.chat_pages.conftest import (
    EVENTS,
    FRAGMENT,
    QUESTION,
    Chat,
    events_of,
    text_of,
)


def test_answer_is_streamed_as_events(chat: Chat) -> None:
    address = chat.begin()
    answer = chat.post(f"{address}/messages", EVENTS, content=QUESTION)
    assert answer.content_type.startswith("text/event-stream")
    assert answer.headers["X-Accel-Buffering"] == "no"
    names, values = zip(*events_of(answer), strict=True)
    assert (names[0], names[-1]) == ("begun", "done")
    assert {"html"} <= set(names[1:-1]) <= {"html", "text"}
    assert QUESTION in values[0]["html"]
    assert 'data-status="done"' in values[-1]["html"]
    assert 'data-testid="citation-marker"' in values[-1]["html"]
    assert "<noscript>" not in values[-1]["html"]
    assert values[-1]["title"] == QUESTION


def test_table_markup_is_never_shown_while_it_is_written(
    chat: Chat, script: SaysWhatIsWritten
) -> None:
    pieces = ["From ", "the ", "list:\n", "\n", "> | Plan | Price |\n", "> | --- | --- |\n"]
    script.scripts[:] = [[*pieces, "> | Te", "am | 4", "9 |\n", ">\n", "> ", "[1]"]]
    events = events_of(chat.post(f"{chat.begin()}/messages", EVENTS, content=QUESTION))
    assert ">49</td>" in events[-1][1]["html"]
    shown = [values.get("text") or text_of(values["html"]) for _, values in events[1:-1]]
    assert "From the list:" in "".join(shown)
    assert not any("|" in words or ">" in words for words in shown)


def test_stream_that_cannot_begin_returns_a_fragment(chat: Chat) -> None:
    for address in (f"/chat/{uuid4()}", chat.begin()):
        answer = chat.post(f"{address}/messages", EVENTS, content=" ")
        assert answer.status_code in {404, 422}
        assert 'data-testid="notification"' in answer.get_data(as_text=True)
        assert "<html" not in answer.get_data(as_text=True)


def test_reader_who_leaves_ends_the_answer(chat: Chat, script: SaysWhatIsWritten) -> None:
    script.scripts = [[f"word{number} " for number in range(500)]]
    address = chat.begin()
    path = f"{address}/messages"
    answer = chat.client.post(
        path, data={"content": QUESTION}, headers=chat.headers | EVENTS, buffered=False
    )
    stream = iter(answer.response)
    for _ in range(3):
        next(stream)
    answer.close()
    written = chat.messages(address)[1]
    assert written.status is MessageStatus.STOPPED
    assert written.content.startswith("word0")
    assert "Stopped before finishing." in text_of(chat.get(address))


def test_unread_answer_is_stopped_by_a_button(chat: Chat, script: SaysWhatIsWritten) -> None:
    script.scripts = [[f"word{number} " for number in range(500)]]
    address = chat.begin()
    answer = chat.client.post(
        f"{address}/messages",
        data={"content": QUESTION},
        headers=chat.headers | EVENTS,
        buffered=False,
    )
    message = chat.messages(address)[1]
    assert 'hx-trigger="every 2s"' in chat.get(address).get_data(as_text=True)
    stopped = chat.post(f"{address}/messages/{message.id}/stop", FRAGMENT)
    assert 'data-status="stopped"' in stopped.get_data(as_text=True)
    answer.close()
    assert script.open_streams == 0
    assert chat.messages(address)[1].status is MessageStatus.STOPPED


def test_retry_and_edit_replace_the_previous_answer(chat: Chat, script: SaysWhatIsWritten) -> None:
    address = chat.begin()
    chat.ask(address)
    question, answer = chat.messages(address)
    script.scripts = [["At six o'clock [1]."]]
    chat.post(f"{address}/messages/{answer.id}/retry")
    assert [m.content for m in chat.messages(address)] == [QUESTION, "At six o'clock [1]."]
    form = chat.get(f"{address}/messages/{question.id}/edit")
    assert f'value="{question.id}"' in form.get_data(as_text=True)
    changed = "Who must sign in?"
    chat.post(f"{address}/messages", content=changed, replace_from=str(question.id))
    assert chat.messages(address)[0].content == changed
    assert len(chat.messages(address)) == 2
