"""A corrected query gives the results of the right spelling, and is offered when it helps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from portal.domain.documents import Visibility
from portal.domain.search import SearchMode, SearchOutcome, SearchRequest
from portal.domain.search.explaining import MissingReason
from portal.services import Services
from portal.services.search import engine, explaining
from portal.services.search.corrections import spelling
from tests.conftest import Portal

LIBRARY = {
    "annual-leave-en.md": "Annual leave is fifteen days. Every employee asks for leave in time.",
    "release-notes.txt": "The release notes name what is new. The office closes at six.",
    "sick.txt": "Sick leave needs a note from a doctor. Days of leave are annual or not.",
    "报销制度与向量.txt": "向量数据库用来保存向量。报销制度请看员工手册，员工每年有十五天年假。",
}


@pytest.fixture
def library(portal: Portal) -> Portal:
    for name, content in LIBRARY.items():
        portal.add(content, name=name)
    return portal


def search(portal: Portal, query: str, **wishes) -> SearchOutcome:
    return engine.search(portal.services, portal.admin, SearchRequest(query=query, **wishes))


def shown(outcome: SearchOutcome) -> list[tuple[str, float, float]]:
    return [(hit.title, hit.score, hit.confidence) for hit in outcome.hits]


CORRECTED = {
    "emploee": "employee",
    '"anual leave"': '"annual leave"',
    "title:anual": "title:annual",
    "title:anual leave": "title:annual leave",
    'title:"anual leave" days': 'title:"annual leave" days',
    "标题:抱销制度 年假": "标题:报销制度 年假",
    "relase -anual": "release -anual",
}


@pytest.mark.parametrize("mode", [SearchMode.HYBRID, SearchMode.KEYWORD])
def test_fuzzy_search_finds_what_the_correction_finds(library: Portal, mode: SearchMode) -> None:
    for typed, meant in CORRECTED.items():
        corrected = search(library, typed, mode=mode, fuzzy=True)
        assert corrected.correction is not None, typed
        assert (corrected.correction.query, corrected.correction.is_applied) == (meant, True)
        as_typed = search(library, meant, mode=mode)
        assert shown(corrected) == shown(as_typed) != [], typed
        assert corrected.degraded == as_typed.degraded == (), typed


def test_correction_is_embedded_without_a_keyword_backend(
    library: Portal, make_services: Callable[..., Services]
) -> None:
    services = make_services(search={"keyword_backend": "off"})
    without = dataclasses.replace(library, services=services)
    corrected = search(without, "emploee", fuzzy=True)
    assert corrected.correction is not None
    assert shown(corrected) == shown(search(without, "employee")) != []


OFFERED = {
    "anual leave": "annual leave",
    "relase notes": "release notes",
    "向量数剧库": "向量数据库",
    "抱销制度": "报销制度",
    "title:anual": "title:annual",
    '"anual leave" type:md': '"annual leave" type:md',
    "emploee": "employee",
}
NOT_OFFERED = [
    "annual leave",
    "release notes of the office",
    "向量数据库",
    "員工有幾天年假",
    "报销制度",
    "quarterly kubernetes deployment of leave",
    "title:leave",
    "title:leave days",
    "title:nowhere",
    "title:annual.",
]


@pytest.mark.parametrize("mode", [SearchMode.HYBRID, SearchMode.KEYWORD])
def test_another_spelling_is_offered_whatever_else_is_found(
    library: Portal, mode: SearchMode
) -> None:
    found = {typed: search(library, typed, mode=mode).correction for typed in OFFERED}
    assert {typed: one and one.query for typed, one in found.items()} == OFFERED
    assert not any(one.is_applied for one in found.values() if one)
    kept = {typed: search(library, typed, mode=mode).correction for typed in NOT_OFFERED}
    assert kept == dict.fromkeys(NOT_OFFERED)


def test_another_spelling_is_offered_without_a_keyword_backend(
    library: Portal, make_services: Callable[..., Services]
) -> None:
    services = make_services(search={"keyword_backend": "off"})
    offered = search(dataclasses.replace(library, services=services), "anual leave").correction
    assert offered is not None
    assert offered.query == "annual leave"


def test_query_of_known_words_is_not_checked_for_spelling(
    library: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = spelling.correct

    def correct(searchable, text, *rest, **options):
        asked.append(text)
        return real(searchable, text, *rest, **options)

    monkeypatch.setattr(spelling, "correct", correct)
    for known in ("annual leave", "employees ask for leave", "向量数据库", "員工的年假", "RELEASE"):
        search(library, known)
    assert asked == []
    # A query with several unknown words is about another subject, not misspelt.
    search(library, "emploee of the anual leave")
    assert asked == []
    search(library, "anual leave")
    assert asked == ["anual leave"]


def test_words_of_hidden_documents_are_unknown(library: Portal) -> None:
    other = library.user("other")
    library.add("The zirconium reactor.", owner=other, visibility=Visibility.PRIVATE)
    for name in ("first", "second"):
        user = library.user(name)
        library.add("The zirconia ring.", owner=user, visibility=Visibility.PRIVATE)
        found = engine.search(library.services, user, SearchRequest("leave zirconium"))
        assert found.correction is not None
        assert found.correction.query == "leave zirconia"


def test_explanation_uses_the_corrected_query(library: Portal) -> None:
    document = library.add("Nothing of interest stands here.", name="other.txt")
    request = SearchRequest('"anual leave"', fuzzy=True)
    answer = explaining.why_not(library.services, library.admin, request, document.id)
    assert answer.reason is MissingReason.EXCLUDED_BY_FILTER
    assert answer.failed_filter is not None
    assert answer.failed_filter.operand == "annual leave"


def test_title_words_are_looked_up_in_titles(library: Portal) -> None:
    # Parts of titles are known words; words found only in texts are not title words.
    for known in ("title:annua", "title:leave", "title:note", "title:向量"):
        assert search(library, known, fuzzy=True).correction is None
    assert search(library, "title:emploee", fuzzy=True).correction is None
