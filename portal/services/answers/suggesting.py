"""Suggested questions: made from the documents, and tried before they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, zip_longest
from threading import Lock

from cachetools import TTLCache

from portal.answering import suggestions
from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.domain.people import User
from portal.errors import PortalError
from portal.services import Services
from portal.services.answers import single_answer
from portal.services.search import cache
from portal.store.documents import question_texts
from portal.store.search.context import read_context
from portal.text.language import detect_language

MAX_SUGGESTED = 4
_MAX_DOCUMENTS = 12
# Each costs a search and the reading of its chunks.
_MAX_TRIED = 10
_KEPT_S = 600.0

_kept: TTLCache[str, tuple[str, ...]] = TTLCache(1000, _KEPT_S)
_lock = Lock()


def suggest_questions(services: Services, user: User, *, language: str) -> tuple[str, ...]:
    """Return questions that the user's documents answer, those in `language` first.

    They are kept until the documents or their switches change.
    """
    wanted = services.settings.search.keyword_backend
    with services.database.driver() as reader:
        context = read_context(reader, user.id, None, keyword_backend=wanted)
    key = cache.key_of(user, context, language, services.embedder.name)
    with _lock:
        if (found := _kept.get(key)) is not None:
            return found
    answered = tuple(_answered(services, user, language))
    with _lock:
        _kept[key] = answered
    return answered


def _answered(services: Services, user: User, language: str) -> Iterator[str]:
    # A language model would be asked for each; what quotations answer it answers too.
    quoting = replace(services, chat=ExtractiveChatModel(services.embedder))
    found = 0
    for question in _candidates(services, user, language)[:_MAX_TRIED]:
        try:
            is_answered = single_answer.is_answered(quoting, user, question, language=language)
        except PortalError:
            return
        if is_answered:
            yield question
            found += 1
        if found == MAX_SUGGESTED:
            return


def _candidates(services: Services, user: User, language: str) -> list[str]:
    """Return questions, one of each document in turn."""
    with services.database.begin() as session:
        texts = question_texts.read_newest(session, user, limit=_MAX_DOCUMENTS)
    texts.sort(key=lambda one: detect_language(one.body) != language)
    of_each = [suggestions.suggest(t.title, t.body, t.headings, t.tables) for t in texts]
    return list(dict.fromkeys(filter(None, chain.from_iterable(zip_longest(*of_each)))))
