"""The search page, the preferred domain and the search settings, without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal import create_app
from portal.domain.documents import Visibility
from portal.domain.people import User
from portal.domain.search import Correction, SearchOutcome
from portal.errors import DatabaseUnavailable
from portal.services import Services
from portal.services.documents import folders, library
from portal.services.people import accounts
from portal.services.search import dynamic_config, engine
from tests.conftest import Portal

OFFICE = "The office closes at six. Visitors must sign in at the front desk."
FRAGMENT = {"HX-Request": "true", "HX-Target": "why-not"}
SETTINGS = "/admin/search"


@pytest.fixture
def office(portal: Portal) -> UUID:
    return portal.add(OFFICE, name="handbook.md", domain="house").id


def text_of(answer: TestResponse) -> str:
    """Return the visible text on one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", answer.get_data(as_text=True))).split())


def headers(portal: Portal, user: User | None = None, language: str = "en") -> dict[str, str]:
    return portal.headers(user) | {"Accept-Language": language}


def test_result_says_why_it_was_found(client: FlaskClient, portal: Portal, office: UUID) -> None:
    answer = client.get("/search?q=office+visitors", headers=headers(portal))
    words = text_of(answer)
    assert answer.status_code == 200
    for said in ("Why this result?", "By meaning", "cosine", "By keywords", "Confidence"):
        assert said in words
    assert re.search(r"Weighted scores: meaning \d+%, words \d+%", words)
    assert re.search(r"Confidence \d+% · ", words)
    assert "Search details" in words
    assert "Calibration of confidence" in words
    assert "confidence constants" not in words


def test_row_deep_in_a_table_is_shown_below_its_header(client: FlaskClient, portal: Portal) -> None:
    rows = [f"Widget {number},{number + 10},each" for number in range(40)]
    portal.add("\n".join(["Item,Price,Unit", *rows]), name="prices.csv")
    page = client.get("/search?q=widget+27", headers=headers(portal)).get_data(as_text=True)
    result = page.partition('<article class="result')[2].partition("</article>")[0]
    words = " ".join(re.sub(r"<[^>]*>", " ", result).split())
    assert "Widget 27 37 each" in words
    assert "Widget 0 10" not in words
    assert re.findall(r'<th scope="col">(\w+)</th>', result) == ["Item", "Price", "Unit"]


def test_table_header_at_the_start_of_an_excerpt_is_shown_as_a_header(
    client: FlaskClient, portal: Portal
) -> None:
    portal.add("Widget,Price\nHammer,30\nSaw,20", name="prices.csv")
    page = client.get("/search?q=widget+hammer", headers=headers(portal)).get_data(as_text=True)
    table = page.partition('<table class="result-table" tabindex="0">')[2].partition("</table>")[0]
    header = re.findall(r'<th scope="col">(.*?)</th>', table)
    assert header == ["<mark>Widget</mark>", "Price"]
    rows = re.findall(r"<td>(.*?)</td>", table)
    assert rows == ["<mark>Hammer</mark>", "30", "Saw", "20"]


@pytest.mark.parametrize("as_fragment", [{}, {"HX-Request": "true"}])
def test_search_that_is_refused_says_when_to_try_again(
    client: FlaskClient,
    portal: Portal,
    monkeypatch: pytest.MonkeyPatch,
    as_fragment: dict[str, str],
) -> None:
    def refuse(*_: object) -> SearchOutcome:
        raise DatabaseUnavailable

    monkeypatch.setattr(engine, "search_or_words", refuse)
    answer = client.get("/search?q=office", headers=headers(portal) | as_fragment)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0


def test_query_of_filters_alone_asks_for_a_word(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    for question in ("type:md", "-draft"):
        words = text_of(client.get(f"/search?q={question}", headers=headers(portal)))
        assert "Add a word" in words
        assert "No results" not in words
        assert "Try other words" not in words
        assert "Only ready documents" not in words
    asked = client.get("/search/why?q=type:md&title=handbook", headers=headers(portal))
    assert "Add a word" in text_of(asked)


def test_keyword_search_without_a_backend_reports_it(
    portal: Portal, office: UUID, make_services: Callable[..., Services]
) -> None:
    client = create_app(make_services(search={"keyword_backend": "off"})).test_client()
    words = text_of(client.get("/search?q=office&mode=keyword", headers=headers(portal)))
    assert "Keyword search is not available" in words
    assert "Search by keywords and meaning" in words
    assert "semantic results only" not in words
    assert "No results" not in words
    assert "semantic results only" in text_of(
        client.get("/search?q=office", headers=headers(portal))
    )


def test_document_is_explained_by_its_title(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    address = "/search/why?q=office+-visitors&title=handbook"
    for more in ({}, FRAGMENT):
        answer = client.get(address, headers=headers(portal) | more)
        assert answer.status_code == 200
        assert 'data-reason="excluded_by_filter"' in answer.get_data(as_text=True)
        assert "Every passage of “handbook” contains “visitors”" in text_of(answer)
        assert ("<html" in answer.get_data(as_text=True)) is not bool(more)


def test_user_chooses_among_several_documents(client: FlaskClient, portal: Portal) -> None:
    for name in ("plan a.txt", "plan b.txt", "plan.txt"):
        portal.add(OFFICE + name, name=name)
    several = client.get("/search/why?q=office&title=plan+", headers=headers(portal))
    assert "data-reason" in several.get_data(as_text=True)  # An exact title selects one document.
    several = client.get("/search/why?q=office&title=pla", headers=headers(portal))
    links = re.findall(r'href="(/search/why[^"]+)"', several.get_data(as_text=True))
    assert len(links) == 3
    chosen = client.get(unescape(links[0]), headers=headers(portal))
    assert 'data-reason="in_results"' in chosen.get_data(as_text=True)


def test_foreign_document_is_not_explained_by_title_or_id(
    client: FlaskClient, portal: Portal
) -> None:
    owner, other = portal.user("owner"), portal.user("other")
    private = portal.add(OFFICE, name="secret.txt", owner=owner, visibility=Visibility.PRIVATE)
    by_title = client.get("/search/why?q=office&title=secret", headers=headers(portal, other))
    assert "No documents you can access match “secret”" in text_of(by_title)
    for document_id in (private.id, UUID(int=0)):
        address = f"/search/why?q=office&document={document_id}"
        answer = client.get(address, headers=headers(portal, other))
        assert "does not exist" in text_of(answer)
        assert "secret" not in text_of(answer)


def test_document_in_the_trash_is_explained_with_a_link(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    library.delete_document(portal.services, portal.admin, office)
    answer = client.get("/search/why?q=office&title=handbook", headers=headers(portal))
    assert 'data-reason="in_trash"' in answer.get_data(as_text=True)
    assert 'href="/trash"' in answer.get_data(as_text=True)


@pytest.mark.parametrize("is_applied", [True, False])
def test_correction_is_reported_and_undone_by_a_link(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch, is_applied: bool
) -> None:
    found = Correction("<office>", ("office",), (("ofice", "<office>"),), is_applied)

    def search(*_arguments: object, **_options: object) -> SearchOutcome:
        return SearchOutcome("<ofice>", (), 0, "hybrid", ("keyword_unavailable",), correction=found)

    monkeypatch.setattr(engine, "search", search)
    answer = client.get("/search?q=<ofice>&fuzzy=1", headers=headers(portal))
    page, words = answer.get_data(as_text=True), text_of(answer)
    assert "<office>" not in page
    assert "These are semantic results only." in words
    if is_applied:
        assert "Results for <office> ." in words
        assert 'href="/search?q=%3Cofice%3E"' in page
    else:
        assert "Did you mean <office> ?" in words
        assert 'href="/search?q=%3Coffice%3E&amp;fuzzy=1"' in page


def test_preferred_domain_is_saved_and_removed(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    portal.add(OFFICE + " 2", name="x.txt", domain="hidden", visibility=Visibility.PRIVATE)
    reader = portal.user("reader")
    page = client.get("/account", headers=headers(portal, reader)).get_data(as_text=True)
    assert '<option value="house">' in page
    assert "hidden" not in page.split('id="known-domains"')[1].split("</datalist>")[0]
    for given, kept in ((" house ", "house"), ("", None)):
        answer = client.post(
            "/account/preferences", data={"domain": given}, headers=portal.headers(reader)
        )
        assert answer.status_code == 303
        assert accounts.find_user(portal.services, "reader").preferred_domain == kept
    answer = client.post(
        "/account/preferences", data={"domain": "x" * 101}, headers=headers(portal, reader)
    )
    assert answer.status_code == 422
    assert "a domain can have at most 100 characters" in text_of(answer)


def test_language_is_saved_only_if_it_was_changed(client: FlaskClient, portal: Portal) -> None:
    in_english = headers(portal, portal.user("reader"))
    for chosen, kept in (("en", None), ("zh-CN", "zh-CN"), ("zh-CN", "zh-CN"), ("en", "en")):
        form = {"domain": "", "language": chosen}
        client.post("/account/preferences", data=form, headers=in_english)
        assert accounts.find_user(portal.services, "reader").language == kept


def test_changed_search_settings_take_effect_at_once(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    page = text_of(client.get(SETTINGS, headers=headers(portal)))
    assert "Accepts a whole number from 1 to 100. Default: 5." in page
    given = {"top_n": "7", "fusion": "rrf", "semantic_weight": "0.25", "bm25_weight": "0.75"}
    assert client.post(SETTINGS, data=given, headers=headers(portal)).status_code == 303
    config = dynamic_config.show(portal.services, portal.admin)
    assert (config.top_n, config.fusion, config.semantic_weight) == (7, "rrf", 0.25)
    asked = {"query": "office", "explain": True}
    found = client.post("/api/knowledge/search", json=asked, headers=portal.headers()).json
    assert found["explanation"]["fusion"] == "rrf"
    answer = client.post(SETTINGS, data={"action": "defaults"}, headers=headers(portal))
    assert answer.status_code == 303
    assert dynamic_config.show(portal.services, portal.admin) == dynamic_config.DynamicConfig()


def test_misspelt_word_is_corrected_on_the_page(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    suggested = client.get("/search?q=vistors", headers=headers(portal)).get_data(as_text=True)
    assert 'data-applied="false"' in suggested
    assert 'href="/search?q=visitors"' in suggested
    applied = client.get("/search?q=vistors&fuzzy=1", headers=headers(portal))
    assert "Results for visitors ." in text_of(applied)
    assert "handbook" in text_of(applied)


def test_filters_narrow_the_search_and_stay_in_its_address(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    portal.add(OFFICE + " This is the annex.", name="annex.md", domain="Annex")

    def found(arguments: str) -> list[str]:
        page = client.get(f"/search?q=office+visitors{arguments}", headers=headers(portal))
        assert page.status_code == 200
        return re.findall(r'data-document-id="([^"]+)"', page.get_data(as_text=True))

    assert len(set(found(""))) == 2
    assert set(found("&domain=HOUSE")) == {str(office)}
    assert set(found("&meta=source_file%3Dhandbook.md")) == {str(office)}
    assert found("&meta=source_file%3Dnone.md") == []
    assert found("&meta=source_file%3Da，b") == []
    # A comma of Chinese keyboards also ends a condition.
    assert set(found("&meta=source_file%3Dhandbook.md，")) == {str(office)}
    page = client.get("/search?q=office&meta=page_number%3D3&domain=house", headers=headers(portal))
    assert 'value="page_number=3"' in page.get_data(as_text=True)
    refused = client.get("/search?q=office&meta=nonsense", headers=headers(portal, language="zh"))
    assert refused.status_code == 422
    assert "名称=值" in text_of(refused)
    assert ">重试</a>" not in refused.text


def test_only_administrators_try_other_weights(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    address = "/search?q=office+visitors&fusion=rrf&vector=0"
    assert 'name="fusion"' in client.get(address, headers=headers(portal)).get_data(as_text=True)
    assert "reciprocal rank fusion" in text_of(client.get(address, headers=headers(portal))).lower()
    reader = portal.user("reader")
    page = client.get(address, headers=headers(portal, reader))
    assert 'name="fusion"' not in page.get_data(as_text=True)
    assert "Weighted scores" in text_of(page)


def test_results_are_grouped_and_weaker_ones_folded(client: FlaskClient, portal: Portal) -> None:
    portal.add(OFFICE, name="handbook.md")
    portal.add("Roses are pruned in March.", name="garden.md")
    page = client.get("/search?q=When+does+the+office+close%3F&n=20", headers=headers(portal))
    words = page.get_data(as_text=True)
    strong, _, weak = words.partition('data-testid="weaker"')
    assert "handbook" in strong.partition('data-testid="strong-results"')[2]
    assert "2 documents found" in strong
    assert "1 document with weaker matches" in weak
    assert "garden" in weak
    assert not weak.startswith(" open")
    # Unfolded results stay unfolded after Back, and when more results are loaded.
    here = "/search?q=When+does+the+office+close%3F&n=20&weaker=1"
    fragment = {"HX-Request": "true", "HX-Target": "search-results"}
    shown = client.get(here, headers=headers(portal))
    more = client.get(
        here.replace("n=20&weaker=1", "n=30"),
        headers=headers(portal) | fragment | {"HX-Current-URL": f"http://localhost{here}"},
    )
    for answer in (shown, more):
        assert answer.text.partition('data-testid="weaker"')[2].startswith(" open")
    assert "weaker=1" in more.headers["HX-Push-Url"]


def test_note_without_a_good_match_mentions_a_question_only_for_one(
    client: FlaskClient, portal: Portal, office: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = engine.search_or_words
    monkeypatch.setattr(
        engine, "search_or_words", lambda *given: replace(search(*given), off_topic=True)
    )
    for query, is_question in (("office 4471", False), ("when does the office close", True)):
        page = client.get("/search", query_string={"q": query}, headers=headers(portal))
        assert ("Nothing seems to answer this question." in text_of(page)) is is_question
        assert (f"No good match for “{query}”." in text_of(page)) is not is_question


def test_showing_more_after_a_weak_match_unfolds_the_weak_ones(
    client: FlaskClient, portal: Portal
) -> None:
    portal.add(OFFICE, name="handbook.md")
    for month in ("March", "April", "May"):
        portal.add(f"Roses are pruned in {month}.", name=f"{month}.md")
    query = "/search?q=When+does+the+office+close%3F"
    page = client.get(f"{query}&n=2", headers=headers(portal)).text
    more = re.search(r'data-testid="show-more"\s+href="([^"]+)"', page)
    assert more is not None
    fragment = {"HX-Request": "true", "HX-Target": "search-results"}
    for sent in ({}, fragment | {"HX-Current-URL": f"http://localhost{query}&n=2"}):
        answer = client.get(unescape(more[1]), headers=headers(portal) | sent)
        assert answer.text.partition('data-testid="weaker"')[2].startswith(" open")
    # After a strong match, there may be more strong ones.
    page = client.get(f"{query}&n=1", headers=headers(portal)).text
    more = re.search(r'data-testid="show-more"\s+href="([^"]+)"', page)
    assert more is not None
    assert "weaker" not in more[1]


def test_preview_shows_the_first_result_that_is_not_folded(
    client: FlaskClient, portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal.add(OFFICE, name="handbook.md")
    portal.add("Roses are pruned in March.", name="garden.md")
    search = engine.search_or_words

    def weakest_first(*asked: Any) -> SearchOutcome:
        outcome = search(*asked)
        return replace(outcome, hits=outcome.hits[::-1])

    monkeypatch.setattr(engine, "search_or_words", weakest_first)
    page = client.get("/search?q=When+does+the+office+close%3F&n=20", headers=headers(portal)).text
    results, _, preview = page.partition('id="search-preview"')
    assert results.index(">handbook</a>") < results.index(">garden</a>")
    assert ">handbook</a>" in preview


def test_title_follows_a_search_and_typing_adds_one_history_entry(
    client: FlaskClient, portal: Portal, office: UUID
) -> None:
    fragment = {"HX-Request": "true", "HX-Target": "search-results"}
    for before, header in (("offi", "HX-Replace-Url"), ("garden", "HX-Push-Url")):
        here = {"HX-Current-URL": f"http://localhost/search?q={before}"}
        answer = client.get("/search?q=office", headers=headers(portal) | fragment | here)
        assert answer.headers[header] == "/search?q=office"
        assert "<title>office · Search · Knowledge portal</title>" in answer.text


def test_facets_count_what_the_user_searches(client: FlaskClient, portal: Portal) -> None:
    reader = portal.user("reader")
    portal.add(OFFICE, name="a.md", domain="house")
    portal.add(OFFICE + " 2", name="b.txt", domain="House")
    off = portal.add(OFFICE + " 3", name="c.txt", domain="law")
    portal.add(OFFICE + " 4", name="d.md", domain="secret", visibility=Visibility.PRIVATE)
    for switched_on, counts in ((True, ("house (2)", "law (1)", "TXT (2)")), (False, ("TXT (1)",))):
        client.put(
            f"/api/user/document-defaults/{off.id}",
            json={"enabled": switched_on},
            headers=headers(portal, reader),
        )
        words = text_of(client.get("/search?q=office", headers=headers(portal, reader)))
        assert all(count.lower() in words.lower() for count in counts)
        assert "MD (1)" in words
        assert "secret" not in words
        assert ("law (1)" in words) is switched_on
        days = [words.index(f"Last {count} days") for count in (7, 30, 365)]
        assert days == sorted(days)


def test_chosen_facet_limits_the_results_and_other_values_stay_visible(
    client: FlaskClient, portal: Portal
) -> None:
    for name in ("a.md", "b.txt"):
        portal.add(f"{OFFICE} {name * 20}", name=name)
    page = client.get("/search?q=office&type=md", headers=headers(portal)).get_data(as_text=True)
    assert page.count('data-testid="search-result"') == 1
    assert '<option value="md" selected>MD (1)</option>' in page
    assert "TXT (1)" in page
    for condition in (f"owner={UUID(int=1)}", "tag=none", "domain=none"):
        page = client.get(f"/search?q=office&{condition}", headers=headers(portal)).text
        assert 'data-testid="search-result"' not in page
    for condition in (f"owner={portal.admin.id}", "days=7"):
        page = client.get(f"/search?q=office&{condition}", headers=headers(portal)).text
        assert page.count('data-testid="search-result"') == 2


def test_folder_counts_what_is_below_it(client: FlaskClient, portal: Portal) -> None:
    top = folders.create_folder(portal.services, portal.admin, name="Rules")
    below = folders.create_folder(portal.services, portal.admin, name="2026", parent_id=top)
    for name, folder in (("a.md", top), ("b.md", below), ("c.md", None)):
        document = portal.add(f"{OFFICE} {name * 20}", name=name)
        if folder:
            folders.move_document(portal.services, portal.admin, document.id, folder)
    page = client.get(f"/search?q=office&folder={top}", headers=headers(portal))
    assert page.text.count('data-testid="search-result"') == 2
    assert "Rules (2)" in text_of(page)
    assert "Rules / 2026 (1)" in text_of(page)


def test_folder_that_is_hidden_answers_like_a_missing_one(
    client: FlaskClient, portal: Portal
) -> None:
    hidden = folders.create_folder(
        portal.services, portal.admin, name="Hidden", visibility=Visibility.PRIVATE
    )
    reader = portal.user("reader")
    for folder_id in (hidden, UUID(int=1)):
        address = f"/search?q=office&folder={folder_id}"
        assert client.get(address, headers=headers(portal, reader)).status_code == 404
