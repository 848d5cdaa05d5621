"""Shared conversations: who may read them, and which parts."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from portal import create_app
from portal.domain.conversations import SharedMessage, Withheld
from portal.domain.documents import DocumentSummary, Visibility
from portal.domain.people import User
from portal.errors import InvalidInput, NoSuchAccount, NotFound
from portal.services.answers import conversations, sharing
from portal.services.documents import library
from tests.conftest import Portal
from tests.factories.answers import ask, saying

SECRET = "The office closes at six. Visitors must sign in at the front desk."
OPEN = "The cafeteria opens at seven in the morning."
QUESTION = "When does the office close?"


@pytest.fixture
def secret(portal: Portal) -> DocumentSummary:
    return portal.add(SECRET, name="zephyr.txt", title="Zephyr plan")


@pytest.fixture
def reader(portal: Portal) -> User:
    return portal.user("mei")


def set_private(portal: Portal, document: DocumentSummary) -> None:
    library.change_document(
        portal.services, portal.admin, document.id, visibility=Visibility.PRIVATE
    )


def share(portal: Portal, reader: User, *questions: str) -> UUID:
    begun = conversations.create(portal.services, portal.admin).id
    for question in questions:
        ask(portal.services, portal.admin, begun, question)
    sharing.add_reader(portal.services, portal.admin, begun, reader.name)
    return begun


def answers(portal: Portal, reader: User, talk: UUID) -> list[SharedMessage]:
    _, messages = sharing.read(portal.services, reader, talk)
    return [one for one in messages if one.message.role == "assistant"]


def test_reader_reads_and_others_find_nothing(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    with_model = replace(portal, services=saying(portal.services, "It closes at six [1]."))
    talk = share(with_model, reader, QUESTION)
    shared, messages = sharing.read(portal.services, reader, talk)
    assert (shared.title, shared.owner_name) == (QUESTION, "admin")
    assert [one.is_withheld for one in messages] == [False, False]
    assert "closes at six" in messages[1].message.content
    assert [one.id for one in sharing.list_shared(portal.services, reader)] == [talk]
    for stranger in (portal.user("eve"), portal.admin):
        with pytest.raises(NotFound):
            sharing.read(portal.services, stranger, talk)
    client, headers = create_app(portal.services).test_client(), portal.headers(reader)
    # The owner's address redirects readers, and no other users.
    led = client.get(f"/chat/{talk}", headers=headers)
    assert (led.status_code, led.location) == (303, f"/shared/{talk}")
    others, owner = portal.headers(portal.user("ida")), portal.headers()
    for one in (talk, uuid4()):
        for path in (f"/chat/{one}", f"/shared/{one}"):
            assert client.get(path, headers=others).status_code == 404
    # The shared address redirects the owner to the conversation.
    led = client.get(f"/shared/{talk}", headers=owner)
    assert (led.status_code, led.location) == (303, f"/chat/{talk}")
    # A reader may only read.
    message = messages[1].message
    for path in (
        f"/chat/{talk}/share",
        f"/chat/{talk}/export",
        f"/chat/{talk}/messages/{message.id}/replay",
        f"/citations/{message.citations[0].id}",
        f"/api/conversations/{talk}",
    ):
        assert client.get(path, headers=headers).status_code == 404, path
    assert client.get(f"/shared/{talk}", headers=headers).status_code == 200
    sharing.remove_reader(portal.services, portal.admin, talk, reader.id)
    for path in (f"/chat/{talk}", f"/shared/{talk}"):
        assert client.get(path, headers=headers).status_code == 404, path
    assert sharing.list_shared(portal.services, reader) == ()


def page_of(portal: Portal, reader: User, talk: UUID) -> str:
    client = create_app(portal.services).test_client()
    return client.get(f"/shared/{talk}", headers=portal.headers(reader)).text


def test_trashed_source_is_shown_to_those_who_may_restore_it(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    talk = share(portal, reader, QUESTION)
    assert not answers(portal, reader, talk)[0].is_withheld
    library.delete_document(portal.services, portal.admin, secret.id)
    (shown,) = answers(portal, reader, talk)
    assert (shown.withheld, shown.message.citations) == (Withheld.TRASHED, ())
    assert "a document it is based on was deleted" in page_of(portal, reader, talk)
    own = conversations.messages(portal.services, portal.admin, talk)[-1]
    assert own.citations[0].can_restore


def test_reason_for_withholding_considers_cited_sources_only(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    read_beside = portal.add("The office of the mayor is painted green.", name="mayor.txt")
    with_model = replace(portal, services=saying(portal.services, "It closes at six [1]."))
    talk = share(with_model, reader, QUESTION)
    (shown,) = answers(portal, reader, talk)
    cited = {one.document_id: one.was_cited for one in shown.message.citations}
    assert cited == {secret.id: True, read_beside.id: False}
    library.delete_document(portal.services, portal.admin, secret.id)
    set_private(portal, read_beside)
    assert answers(portal, reader, talk)[0].withheld is Withheld.TRASHED


def test_source_that_a_reader_may_not_see_leaks_nothing(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    portal.add(OPEN, name="cafeteria.txt")
    listing, outside = "What documents are there?", "When does the cafeteria open?"
    talk = share(portal, reader, QUESTION, listing, outside)
    set_private(portal, secret)
    shown = answers(portal, reader, talk)
    assert [one.is_withheld for one in shown] == [True, True, False]
    assert "seven in the morning" in shown[2].message.content
    page = page_of(portal, reader, talk)
    assert "documents you can't access" in page
    for words in ("at six", "Visitors", "Zephyr plan", str(secret.id), "sha256"):
        assert words not in page, words
    library.change_document(portal.services, portal.admin, secret.id, visibility=Visibility.SHARED)
    assert not answers(portal, reader, talk)[0].is_withheld


def test_withheld_answer_shows_none_of_its_sources(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    copy = portal.add("The office closes at six on Mondays.", name="copy.txt", title="Open copy")
    with_model = replace(portal, services=saying(portal.services, "At six [1], at six [2]."))
    talk = share(with_model, reader, QUESTION)
    assert len(answers(portal, reader, talk)[0].message.citations) == 2
    set_private(portal, secret)
    (shown,) = answers(portal, reader, talk)
    assert (shown.withheld, shown.message.citations) == (Withheld.HIDDEN, ())
    assert copy.title not in page_of(portal, reader, talk)


def test_outline_that_names_other_documents_is_withheld(portal: Portal, reader: User) -> None:
    for place in ("Berlin", "Oslo"):
        portal.add(f"# Rules\n\nThe {place} office opens at nine.", title=f"{place} handbook")
    talk = share(portal, reader, "Summarise the handbook", "Summarise the Oslo handbook")
    assert [one.is_withheld for one in answers(portal, reader, talk)] == [True, False]


def test_answer_is_withheld_for_documents_read_earlier_in_the_conversation(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    with_model = replace(
        portal, services=saying(portal.services, "It closes at six [1].", "As I said: at six.")
    )
    talk = share(with_model, reader, QUESTION)
    set_private(portal, secret)
    portal.add(OPEN, name="cafeteria.txt")
    library.delete_document(portal.services, portal.admin, secret.id)
    ask(with_model.services, portal.admin, talk, "Say it again, with the cafeteria.")
    shown = answers(portal, reader, talk)
    assert [one.is_withheld for one in shown] == [True, True]
    assert [one.message.content for one in shown] == ["", ""]


def test_erased_source_withholds_nothing(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    talk = share(portal, reader, QUESTION)
    library.delete_document(portal.services, portal.admin, secret.id)
    library.purge_document(portal.services, portal.admin, secret.id)
    (shown,) = answers(portal, reader, talk)
    assert not shown.is_withheld
    assert "at six" not in shown.message.content


def test_only_the_owner_shares_a_conversation(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    services, admin = portal.services, portal.admin
    talk = share(portal, reader)
    with pytest.raises(InvalidInput):
        sharing.add_reader(services, admin, talk, admin.name)
    with pytest.raises(NoSuchAccount):
        sharing.add_reader(services, admin, talk, "nobody")
    for user in (reader, portal.user("eve")):
        with pytest.raises(NotFound):
            sharing.add_reader(services, user, talk, "eve")
        with pytest.raises(NotFound):
            sharing.remove_reader(services, user, talk, reader.id)
    conversations.delete(services, admin, talk)
    with pytest.raises(NotFound):
        sharing.read(services, reader, talk)
    conversations.restore(services, admin, talk)
    sharing.leave(services, reader, talk)
    with pytest.raises(NotFound):
        sharing.leave(services, reader, talk)
    with services.database.begin() as session:
        log = session.execute(
            text("SELECT event, subject_title FROM audit_log WHERE event LIKE 'conversation%'")
        ).all()
    assert {tuple(one) for one in log} == {
        ("conversation_shared", None),
        ("conversation_unshared", None),
    }


def test_branch_copies_up_to_an_answer_and_nothing_later(
    portal: Portal, secret: DocumentSummary
) -> None:
    services, admin = portal.services, portal.admin
    talk = conversations.create(services, admin).id
    first = ask(services, admin, talk, QUESTION)
    ask(services, admin, talk, "And the cafeteria?")
    copy = conversations.branch(services, admin, first.id)
    copied = conversations.messages(services, admin, copy.id)
    assert [one.content for one in copied] == [QUESTION, first.content]
    assert copied[1].citations[0].quote_sha256 == first.citations[0].quote_sha256
    assert not {one.id for one in copied[1].citations} & {one.id for one in first.citations}
    ask(services, admin, copy.id, "Anything else?")
    assert len(conversations.messages(services, admin, talk)) == 4
    with pytest.raises(NotFound):
        conversations.branch(services, portal.user("eve"), first.id)
    with pytest.raises(NotFound):
        conversations.branch(services, admin, copied[0].id)
    library.delete_document(services, admin, secret.id)
    library.purge_document(services, admin, secret.id)
    assert "at six" not in conversations.messages(services, admin, copy.id)[1].content


def test_word_file_has_the_table_and_the_sources(portal: Portal) -> None:
    from io import BytesIO

    import docx

    from portal.services.answers import exporting
    from portal.services.answers.exporting import ExportFormat

    portal.add(
        "# Leave\n\n| Years | Days |\n| --- | --- |\n| Two | 25 |\n| Five | 30 |\n", name="leave.md"
    )
    talk = conversations.create(portal.services, portal.admin).id
    ask(portal.services, portal.admin, talk, "How many days after five years?\x0b")
    file = exporting.export(portal.services, portal.admin, talk, "en", ExportFormat.DOCX)
    document = docx.Document(BytesIO(file.content))
    assert file.name.endswith(".docx")
    header, row = document.tables[0].rows
    assert [cell.text for cell in row.cells] == ["Five", "30"]
    bold = [each.cells[0].paragraphs[0].runs[0].bold for each in (header, row)]
    assert bold == [True, None]
    words = [paragraph.text for paragraph in document.paragraphs]
    assert "Sources" in words
    assert any(one.startswith("[1] leave") for one in words)


def test_reader_is_notified_once_until_sharing_ends(
    portal: Portal, secret: DocumentSummary, reader: User
) -> None:
    client = create_app(portal.services).test_client()
    owner, mine = portal.headers(), portal.headers(reader)
    talk = conversations.create(portal.services, portal.admin).id
    ask(portal.services, portal.admin, talk, QUESTION)
    readers = f"/api/conversations/{talk}/readers"
    for _ in range(2):
        answer = client.post(readers, headers=owner, json={"name": reader.name})
        assert answer.json["readers"] == [{"id": str(reader.id), "name": reader.name}]
    # Sharing it again does not notify the reader again.
    sharing.remove_reader(portal.services, portal.admin, talk, reader.id)
    sharing.add_reader(portal.services, portal.admin, talk, reader.name)
    [told] = client.get("/api/notifications", headers=mine).json["notifications"]
    assert (told["kind"], told["conversation_id"]) == ("shared", str(talk))
    page = client.get("/notifications", headers=mine).text
    assert f"admin shared the conversation “{QUESTION}” with you." in page
    opened = client.post(f"/notifications/{told['id']}/open", headers=mine)
    assert opened.location == f"/shared/{talk}"
    [listed] = client.get("/api/shared-conversations", headers=mine).json["conversations"]
    assert (listed["id"], listed["owner_name"]) == (str(talk), "admin")
    read = client.get(f"/api/shared-conversations/{talk}", headers=mine).json
    assert [one["withheld"] for one in read["messages"]] == [False, False]
    set_private(portal, secret)
    read = client.get(f"/api/shared-conversations/{talk}", headers=mine).json
    assert (read["messages"][1]["withheld"], read["messages"][1]["content"]) == (True, "")
    assert client.delete(f"{readers}/{reader.id}", headers=owner).status_code == 204
    assert client.get("/api/notifications", headers=mine).json["notifications"] == []
    assert client.get(f"/api/shared-conversations/{talk}", headers=mine).status_code == 404
