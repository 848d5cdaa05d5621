"""Conversations are found, renamed, rated and deleted, by their owner only."""

from __future__ import annotations

import re

from portal.domain.documents import DocumentSummary
from tests.conftest import Portal
from tests.factories.answers import SaysWhatIsWritten
from tests.integration.answers.chat_pages.conftest import (
    EVENTS,
    FRAGMENT,
    OFFICE,
    PANE,
    QUESTION,
    Chat,
    events_of,
    text_of,
)

EVIL = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"


def test_conversation_is_found_renamed_exported_and_deleted(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    assert chat.post(f"{address}/rename", title="Opening hours").status_code == 303
    assert "Opening hours" in text_of(chat.get("/chat?q=opening"))
    assert "No conversations match “zzz”." in text_of(chat.get("/chat?q=zzz"))
    assert chat.post(f"{address}/rename", title=" ").status_code == 422
    export = chat.get(f"{address}/export")
    assert export.mimetype == "text/markdown"
    assert "Opening%20hours.md" in export.headers["Content-Disposition"]
    assert "closes at six" in export.get_data(as_text=True)
    assert chat.post(f"{address}/delete").status_code == 303
    assert chat.get(address).status_code == 404
    assert "Opening hours" not in text_of(chat.get("/chat"))
    assert chat.post(f"{address}/restore").status_code == 303
    assert "closes at six" in chat.get(address).text


def test_pinned_conversations_stand_above_the_others(chat: Chat) -> None:
    first, second = chat.begin(), chat.begin()
    chat.post(f"{first}/rename", title="First")
    chat.post(f"{second}/rename", title="Second")
    assert "Pinned" not in text_of(chat.get("/chat"))
    assert chat.post(f"{first}/pin", next=first).location == first
    listed = text_of(chat.get("/chat"))
    assert listed.index("Pinned") < listed.index("First") < listed.index("Second")
    assert listed.count("First") == 1
    assert "Unpin “First”" in chat.get("/chat").text
    # A search finds them, too.
    assert "First" in text_of(chat.get("/chat?q=first"))
    assert chat.post(f"{first}/pin", off="1").status_code == 303
    assert "Pinned" not in text_of(chat.get("/chat"))


def test_skip_link_jumps_past_the_conversation_list(chat: Chat) -> None:
    page = chat.get(chat.begin()).text
    [target] = re.findall(r'class="skip-link" href="#([^"]+)"', page)
    place = re.search(rf'id="{target}"[^>]*tabindex="-1"', page)
    assert place is not None
    assert page.index('id="conversations"') < place.start() < page.index('class="chat-head"')
    assert 'class="skip-link" href="#main"' in chat.get("/chat").text


def test_form_on_its_own_page_shows_its_error_in_place(chat: Chat) -> None:
    conversation = chat.begin()
    for address in (f"{conversation}/share", f"{conversation}/rename"):
        in_dialog, alone = chat.get(address, **FRAGMENT).text, chat.get(address).text
        assert [f'hx-post="{address}"' in one for one in (in_dialog, alone)] == [True, False]
        refused = chat.post(address, name="nobody", title="")
        assert refused.status_code == 422
        assert "<html" in refused.text
        assert 'role="alert"' in refused.text


def test_change_keeps_the_open_conversation_and_its_list(chat: Chat) -> None:
    first, second = chat.begin(), chat.begin()
    headers = FRAGMENT | {"HX-Current-URL": f"http://localhost{first}?source=x&shown=60"}
    stays = f"{first}?shown=60&q=hours"
    for change, form in (("pin", {}), ("rename", {"title": "Hours"})):
        assert chat.post(f"{second}/{change}", headers, q="hours", **form).location == stays
    refused = chat.post(f"{second}/rename", headers, title=" ")
    assert (refused.status_code, refused.headers["HX-Retarget"]) == (422, "#dialog-content")
    assert chat.post(f"{second}/delete", headers, q="").location == f"{first}?shown=60&q="
    # The open conversation cannot stay open once it is deleted.
    gone = chat.post(f"{first}/delete", headers, q="")
    assert (gone.status_code, gone.headers["HX-Redirect"]) == (200, "/chat")
    assert "Conversation deleted." in text_of(chat.get("/chat"))


def test_reason_for_bad_feedback_takes_one_click(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    path = f"{address}/messages/{chat.messages(address)[1].id}/feedback"
    assert "feedback-reasons" not in chat.get(address).text
    assert "Outdated" in chat.post(path, FRAGMENT, feedback="not_useful").text
    for reason, kept in (("outdated", "outdated"), ("wrong", "wrong"), ("wrong", None)):
        shown = chat.post(path, FRAGMENT, reason=reason)
        assert shown.status_code == 200
        assert ("Thanks for your feedback." in shown.text) == (kept is not None)
        message = chat.messages(address)[1]
        assert (message.feedback, message.feedback_reason) == ("not_useful", kept)
    assert chat.post(path, reason="boring").status_code == 400
    chat.post(path, reason="incomplete")
    chat.post(path, feedback="useful")
    assert chat.messages(address)[1].feedback_reason is None


def test_feedback_is_given_and_taken_back(chat: Chat) -> None:
    address = chat.begin()
    chat.ask(address)
    message = chat.messages(address)[1]
    path = f"{address}/messages/{message.id}/feedback"
    assert 'aria-pressed="true"' in chat.post(path, FRAGMENT, feedback="useful").text
    assert chat.messages(address)[1].feedback == "useful"
    assert 'aria-pressed="true"' not in chat.post(path, FRAGMENT, feedback="useful").text
    assert chat.post(path, feedback="splendid").status_code == 400


def test_markup_in_text_is_escaped_everywhere(
    chat: Chat, portal: Portal, office: DocumentSummary, script: SaysWhatIsWritten
) -> None:
    portal.add(f"{OFFICE} {EVIL}", name="evil.txt", title=f"Evil {EVIL}"[:200])
    script.scripts = [
        [f"{EVIL} six [1]. ![x](http://evil.example/x.png) [y](http://evil.example) [2]"]
    ]
    address = chat.begin()
    streamed = chat.post(f"{address}/messages", EVENTS, content=f"{QUESTION} {EVIL}")
    message = chat.messages(address)[1]
    pages = [values.get("html", "") for _, values in events_of(streamed)]
    replay = f"{address}/messages/{message.id}/replay"
    pages += [chat.get(path).text for path in (address, "/chat", f"{address}/documents", replay)]
    sources = f"{address}?sources={message.id}&at=1"
    pages.append(chat.get(sources, **PANE).get_data(as_text=True))
    for citation in message.citations:
        pages.append(chat.get(f"/citations/{citation.id}/card", **FRAGMENT).text)
        pages.append(chat.get(f"/citations/{citation.id}").text)
    for page in pages:
        assert not re.search(r"<img|<script>|onerror=alert\(1\)>(?!.*&)", page)
        assert not re.search(r"""(href|src|action|hx-\w+)=["']?(https?:)?//""", page)


def test_message_is_not_found_under_another_conversation(
    chat: Chat, office: DocumentSummary
) -> None:
    address = chat.begin()
    chat.ask(address)
    _, message = chat.messages(address)
    other = chat.begin()
    assert chat.get(f"{other}?sources={message.id}").status_code == 404
    assert chat.post(f"{other}/messages/{message.id}/retry").status_code == 404
