"""The home page: recent items, results while typing, and an empty portal."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from portal.domain.documents import Visibility
from portal.domain.people import User
from portal.services.answers import conversations, suggesting
from portal.services.documents import examples, library, switches
from portal.services.documents.ingestion import indexing
from portal.services.documents.intake.uploads import Upload
from portal.services.documents.versions import revisions
from portal.text.language import detect_language
from tests.conftest import PASSWORD, Portal
from tests.factories.answers import ask
from tests.factories.browser import Browser
from tests.factories.uploads import upload

FRAGMENT = {"HX-Request": "true", "HX-Target": "home-results"}


def get(client: FlaskClient, portal: Portal, path: str = "/", **headers: str) -> str:
    answer = client.get(path, headers=portal.headers() | headers)
    assert answer.status_code == 200
    return answer.get_data(as_text=True)


def test_empty_portal_leads_to_the_first_upload(client: FlaskClient, portal: Portal) -> None:
    paths = ("/", "/chat", "/search", "/search?q=xyzzy")
    for path in paths:
        assert "empty-portal" in get(client, portal, path), path
    portal.add("The office closes at six.", name="office.txt")
    for path in paths:
        assert "empty-portal" not in get(client, portal, path), path


def test_recent_conversations_and_new_documents_are_listed(
    client: FlaskClient, portal: Portal
) -> None:
    portal.add("The office closes at six.", name="office hours.txt")
    conversations.create(portal.services, portal.admin, "Opening hours")
    page = get(client, portal)
    assert page.index("recent-conversations") < page.index("Opening hours")
    assert page.index("new-documents") < page.index("office hours")


def test_typing_finds_documents_that_the_user_may_see(client: FlaskClient, portal: Portal) -> None:
    mei = portal.user("mei")
    portal.add("The office closes at six.", name="office.txt")
    portal.add("The office safe is green.", name="safe.txt", visibility=Visibility.PRIVATE)
    found = get(client, portal, "/?content=office", **FRAGMENT)
    assert "<html" not in found
    assert found.count("data-document-id") == 2
    assert "/search?q=office" in found
    answer = client.get("/?content=office", headers=portal.headers(mei) | FRAGMENT)
    assert "closes at" in answer.text
    assert "green" not in answer.text
    assert "safe.txt" not in answer.text
    assert get(client, portal, "/?content=+", **FRAGMENT).strip() == ""


def test_examples_are_loaded_and_removed_by_one_request_each(
    client: FlaskClient, portal: Portal
) -> None:
    mei = portal.user("mei")
    own = portal.add("The office closes at six.", name="office.txt", owner=mei)
    headers = portal.headers(mei)
    for _ in range(2):
        assert client.post("/examples", headers=headers).status_code == 303
    listed = library.list_documents(portal.services, mei).items
    assert len(listed) == 1 + len(examples.files())
    page = get(client, portal, "/", **headers)
    assert "examples-loaded" in page
    # The page loads documents as they become ready, and only then questions about them.
    assert 'hx-select="#home-library"' in page
    assert "home-suggestions" not in page
    # Only the owner and administrators see them.
    others = library.list_documents(portal.services, portal.user("li")).items
    assert [other.id for other in others] == [own.id]
    # A deleted example is restored, and removed ones are gone from the trash, too.
    example = next(one for one in listed if one.id != own.id)
    library.delete_document(portal.services, mei, example.id)
    client.post("/examples", headers=headers)
    assert library.get_summary(portal.services, mei, example.id).deleted_at is None
    library.delete_document(portal.services, mei, example.id)
    assert client.post("/examples/remove", headers=headers).status_code == 303
    assert [document.id for document in library.list_documents(portal.services, mei).items] == [
        own.id
    ]
    assert library.list_trash(portal.services, mei).items == ()
    assert "examples-loaded" not in get(client, portal, "/", **headers)


def suggest(portal: Portal, user: User, language: str) -> tuple[str, ...]:
    """Ask for suggestions until all are tried, as the page does."""
    for _ in range(20):
        found = suggesting.suggest_questions(portal.services, user, language=language)
        if found.is_complete:
            return found.questions
    pytest.fail("there are always more to try")


def test_suggested_questions_are_answered(client: FlaskClient, portal: Portal) -> None:
    mei = portal.user("mei")
    for name, content in examples.files().items():
        portal.add(content, name=name, owner=mei, visibility=Visibility.PRIVATE)
    for language in ("zh", "en"):
        suggested = suggest(portal, mei, language)
        assert len(suggested) == suggesting.MAX_SUGGESTED
        assert detect_language(suggested[0]) == language
        for question in suggested:
            conversation = conversations.create(portal.services, mei, "")
            assert ask(portal.services, mei, conversation.id, question).status == "done", question
    fragment = {"HX-Request": "true", "HX-Target": "home-suggestions"}
    page = get(client, portal, "/?suggest=1", **portal.headers(mei), **fragment)
    assert page.count('data-testid="suggestion"') == suggesting.MAX_SUGGESTED
    # Others' private documents suggest nothing, and neither do those that are switched off.
    assert suggest(portal, portal.user("li"), "en") == ()
    assert suggest(portal, portal.admin, "en") == (), "nor do private ones for administrators"
    for document in library.list_documents(portal.services, mei).items:
        switches.set_switch(portal.services, mei, None, document.id, False)
    assert suggest(portal, mei, "en") == ()


def test_news_lists_what_others_added_since_the_last_visit(
    portal: Portal, client: FlaskClient
) -> None:
    mei = portal.user("mei")
    known = portal.add("The office closes at six.", name="office.txt")
    browser = Browser(client.application)
    assert browser.sign_in("mei", PASSWORD).headers["Location"] == "/"
    assert "new-documents" in browser.get("/").text
    # Two hours pass; only their first minutes belong to this visit.
    for statement in (
        "UPDATE users SET visited_at = visited_at - interval '2 hours'",
        "UPDATE tokens SET last_used_at = last_used_at - interval '2 hours'",
        "UPDATE stored_files SET created_at = created_at - interval '3 hours'",
        "UPDATE documents SET created_at = created_at - interval '3 hours'",
    ):
        portal.execute(statement)
    page = browser.get("/").text
    assert "no-news" in page
    added = portal.add("The safe is green.", name="safe.txt")
    portal.add("My own note.", name="own.txt", owner=mei)
    newer = Upload(upload("It closes at seven."), "office.txt")
    version = revisions.add_version(portal.services, portal.admin, known.id, newer)
    assert version.document.job_id
    indexing.index_document(portal.services, version.document.job_id)
    news = browser.get("/").text.split('data-testid="news"')[1].split("</ul>")[0]
    assert str(added.id) in news
    assert "New version" in news
    assert news.index(str(known.id)) < news.index(str(added.id))
    assert "own.txt" not in news


def test_the_one_field_searches_without_scripts(client: FlaskClient, portal: Portal) -> None:
    form = {"content": "office hours", "search": "1"}
    answer = client.post("/chat", data=form, headers=portal.headers())
    assert (answer.status_code, answer.headers["Location"]) == (303, "/search?q=office+hours")
    assert conversations.list_conversations(portal.services, portal.admin).items == ()


def test_exact_name_comes_before_a_search_for_it(client: FlaskClient, portal: Portal) -> None:
    document = portal.add("What is thrown away.", name="trash rules.txt")
    page = get(client, portal, "/go?find=trash")
    page = page[page.index("go-results") :]
    addresses = ("/trash", f"/documents/{document.id}", "/search?q=")
    places = [page.index(f'href="{address}') for address in addresses]
    assert places == sorted(places)


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_actions_are_found_by_english_and_translated_names(
    client: FlaskClient, portal: Portal, language: str
) -> None:
    names = {"theme": "contrast", "主题": "contrast", "upload": "#upload-form", "语言": "language"}
    for words, expected in names.items():
        page = get(client, portal, f"/go?find={words}", **{"Accept-Language": language})
        results = page[page.index("go-results") :]
        assert expected in results[: results.index("/search?q=")], words
    # An action that leads to a place on a page needs that place.
    assert 'id="upload-form"' in get(client, portal, "/documents")


def test_keyboard_focus_stays_on_a_switch_that_is_reset(
    client: FlaskClient, portal: Portal
) -> None:
    document = portal.add("The office closes at six.", name="office.txt")
    headers = portal.headers() | {"HX-Request": "true"}
    for state, is_focused in (("off", False), ("inherit", True)):
        answer = client.post(
            f"/documents/{document.id}/selection", headers=headers, data={"state": state}
        )
        # HTMX itself keeps the focus on an element that has the same id before and after.
        assert ("autofocus" in answer.text) is is_focused, state
