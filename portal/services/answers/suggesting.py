"""Suggested questions: made from the documents, and tried before they are shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from time import monotonic

from cachetools import TTLCache

from portal.answering.quoting.extractive import ExtractiveChatModel
from portal.domain.people import User
from portal.errors import PortalError
from portal.services import Services
from portal.services.answers import single_answer, suggested_questions
from portal.services.search import cache
from portal.store.documents import question_texts
from portal.store.search.context import read_context
from portal.text.language import detect_language

MAX_SUGGESTED = 4
_MAX_DOCUMENTS = 12
# Each costs a search and the reading of its chunks.
_MAX_TRIED = 10
_KEPT_S = 600.0
# How long a request tries questions; the next one continues where it stopped.
_BUDGET_S = 0.8


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Questions that documents answer; not complete while more are still to be tried."""

    questions: tuple[str, ...]
    is_complete: bool


@dataclass(slots=True)
class _Progress:
    """The questions that are left to try, and those that are answered."""

    left: list[str]
    found: tuple[str, ...] = ()


_cache: TTLCache[str, _Progress] = TTLCache(1000, _KEPT_S)
_lock = Lock()


def suggest_questions(services: Services, user: User, *, language: str) -> Suggestions:
    """Return questions that the user's documents answer, those in `language` first. They are kept
    until the documents or their switches change. Administrators get no questions about the private
    documents of others."""
    user = replace(user, is_admin=False)
    wanted = services.settings.search.keyword_backend
    with services.database.driver() as reader:
        context = read_context(reader, user.id, None, keyword_backend=wanted)
    key = cache.key_of(user, context, language, services.embedder.name)
    with _lock:
        progress = _cache.get(key)
    progress = progress or _Progress(_candidates(services, user, language)[:_MAX_TRIED])
    tried = _try(services, user, language, progress, until=monotonic() + _BUDGET_S)
    with _lock:
        _cache[key] = tried
    return Suggestions(tried.found, is_complete=not tried.left)


def _try(
    services: Services, user: User, language: str, progress: _Progress, *, until: float
) -> _Progress:
    """Try questions until enough are answered, or time is up."""
    # A language model would be called for every question; whatever quotations can answer, it can
    # answer too.
    quoting = replace(services, chat=ExtractiveChatModel(services.embedder))
    left, found = list(progress.left), list(progress.found)
    while left and monotonic() < until:
        question = left.pop(0)
        try:
            is_answered = single_answer.is_answered(quoting, user, question, language=language)
        except PortalError:
            left.clear()
            break
        if is_answered:
            found.append(question)
        if len(found) == MAX_SUGGESTED:
            left.clear()
    return _Progress(left, tuple(found))


def _candidates(services: Services, user: User, language: str) -> list[str]:
    """Return questions: those in `language` first, two of each document at a time, and of these
    first the questions that documents ask themselves."""
    with services.database.begin() as session:
        texts = question_texts.read_newest(session, user, limit=_MAX_DOCUMENTS)
    ranked = [
        (
            detect_language(question) != language,
            rank // 2,
            question not in text.body,
            rank,
            question,
        )
        for text in texts
        for rank, question in enumerate(
            suggested_questions.suggest(text.title, text.body, text.headings)
        )
    ]
    ranked.sort(key=lambda one: one[:-1])
    return list(dict.fromkeys(question for *_, question in ranked))
