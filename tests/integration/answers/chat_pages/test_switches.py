"""Document switches, on the list of documents and in a conversation."""

from __future__ import annotations

import re
from uuid import UUID

from portal.domain.documents import DocumentSummary
from portal.services.documents import switches
from tests.conftest import Portal
from tests.integration.answers.chat_pages.conftest import FRAGMENT, Chat, text_of


def test_document_list_switches_a_document(chat: Chat, office: DocumentSummary) -> None:
    def toggle() -> tuple[str, str]:
        page = chat.get("/documents").get_data(as_text=True)
        state = re.search(r'role="switch"[^>]*aria-checked="(\w+)"[^>]*data-document-id', page)
        assert state
        return state[1], text_of(chat.get("/documents"))

    path = f"/documents/{office.id}/selection"
    assert toggle()[0] == "true"
    assert "On (system default)" in toggle()[1]
    assert chat.post(path, state="off").status_code == 303
    assert toggle()[0] == "false"
    assert "Off (your default)" in toggle()[1]
    fragment = chat.post(path, FRAGMENT, state="inherit").get_data(as_text=True)
    assert fragment.count('data-testid="selection-toggle"') == 1
    assert 'aria-checked="true"' in fragment
    assert chat.post(path, state="perhaps").status_code == 400


def test_switches_of_a_conversation_apply_to_its_next_answer(
    chat: Chat, office: DocumentSummary
) -> None:
    address, other = chat.begin(), chat.begin()
    drawer = f"{address}/documents"
    assert "Using 1 of 1 documents" in text_of(chat.get(drawer))
    fragment = chat.post(f"{drawer}/{office.id}", FRAGMENT, state="off").get_data(as_text=True)
    assert "Using 0 of 1 documents" in fragment
    assert "Off in this conversation" in fragment
    chat.ask(address)
    chat.ask(other)
    assert chat.messages(address)[1].citations == ()
    assert chat.messages(other)[1].citations != ()
    assert chat.post(drawer, state="inherit").status_code == 303
    assert "On (system default)" in text_of(chat.get(drawer))
    assert "Using 1 of 1 documents" in text_of(chat.get(address))


def test_drawer_is_searched_by_title(chat: Chat, portal: Portal) -> None:
    portal.add("Plums.", name="plums.txt")
    address = chat.begin()
    listed = {**FRAGMENT, "HX-Target": "selection-list"}
    found = text_of(chat.get(f"{address}/documents?q=plum", **listed))
    assert "plums" in found
    assert "handbook" not in found
    assert "No documents match" in text_of(chat.get(f"{address}/documents?q=zzz", **listed))


def test_one_request_switches_all_documents(chat: Chat, portal: Portal) -> None:
    portal.add("Plums.", name="plums.txt")
    address = chat.begin()
    conversation_id = UUID(address.rsplit("/", 1)[1])
    for state, count in (("off", 0), ("on", 2), ("inherit", 2)):
        answer = chat.post(f"{address}/documents", FRAGMENT, state=state)
        assert f"Using {count} of 2 documents" in text_of(answer)
        counted = switches.count_enabled(portal.services, chat.user, conversation_id)
        assert counted == (count, 2)
