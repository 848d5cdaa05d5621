"""Searches and answers while a new version replaces the old one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from portal.domain.search import SearchMode, SearchOutcome, SearchRequest, Weights
from portal.services.answers import conversations, single_answer
from portal.services.answers.retrieving import ask_in, retrieve, search_further
from portal.services.search import engine, finding
from portal.store.search.legs.offers import Offers
from tests.conftest import Portal
from tests.integration.documents.revisions.versions import FIRST, SECOND, THIRD, read, send


def test_search_at_the_moment_of_the_swap_finds_the_document(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = portal.add(FIRST)
    find_offers, coming = finding.find_offers, [SECOND]

    def late(*asked: Any, **named: Any) -> Offers:
        # The enabled documents are known by now; the chunks are not yet looked up.
        if coming:
            send(portal, document.id, coming.pop())
            read(portal, document.id)
        return find_offers(*asked, **named)

    monkeypatch.setattr(finding, "find_offers", late)
    for mode in SearchMode:
        coming[:] = [SECOND]
        request = SearchRequest("annual leave", mode=mode)
        hits = engine.search(portal.services, portal.admin, request).hits
        assert [hit.document_id for hit in hits] == [document.id], mode
        assert "twenty" in hits[0].excerpt
        send(portal, document.id, FIRST)
        read(portal, document.id)


def test_answers_retry_when_a_document_changes_before_its_text_is_read(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = portal.add(FIRST)
    search, coming = engine.search, [SECOND]

    def then_swapped(*asked: Any, **options: Any) -> SearchOutcome:
        outcome = search(*asked, **options)
        if coming:
            send(portal, document.id, coming.pop())
            read(portal, document.id)
        return outcome

    monkeypatch.setattr(engine, "search", then_swapped)
    question = "How many days of annual leave are there?"
    place = conversations.create(portal.services, portal.admin).id
    asked = ask_in(portal.services, portal.admin, place, question, None)
    (source,) = retrieve(portal.services, asked).sources
    assert "twenty" in source.text
    coming.append(THIRD)
    (source,) = search_further(portal.services, asked, "annual leave", ())
    assert "thirty" in source.text
    coming.append(FIRST)
    weights = Weights(0.7, 0.3)
    answer = single_answer.answer(
        portal.services, portal.admin, question, k=3, weights=weights, language="en"
    )
    assert "fifteen" in answer.text
    assert answer.citations == (document.id,)


def test_searches_see_exactly_one_version_of_a_text(portal: Portal) -> None:
    document = portal.add(f"Kingfisher. {FIRST}", name="version 0.txt")
    portal.add("Nothing of that kind.")
    stop, wrong, seen = threading.Event(), [], set()

    def search_on(mode: SearchMode) -> None:
        while not stop.is_set():
            hits = engine.search(
                portal.services, portal.admin, SearchRequest("kingfisher", mode=mode, top_n=5)
            ).hits
            texts = {hit.excerpt for hit in hits if hit.document_id == document.id}
            seen.update(texts)
            if len(texts) != 1:
                wrong.append((mode, texts))

    searchers = [
        threading.Thread(target=search_on, args=[mode])
        for mode in (SearchMode.HYBRID, SearchMode.KEYWORD)
    ]
    for searcher in searchers:
        searcher.start()
    for number in range(1, 9):
        send(portal, document.id, f"Kingfisher. Version {number}. {FIRST}")
        read(portal, document.id)
    stop.set()
    for searcher in searchers:
        searcher.join()
    assert wrong == []
    assert len(seen) > 2
