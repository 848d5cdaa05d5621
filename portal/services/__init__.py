"""Use cases: one function each, in one transaction. None of them knows of HTTP.

Every function takes the `Services` container first: what the process has at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from portal.domain.answering import ChatModel
from portal.domain.embedding import Embedder
from portal.domain.reranking import Reranker
from portal.embeddings.calibration import Calibration
from portal.services.answer_slots import AnswerSlots
from portal.settings import Settings
from portal.store.enabled_sets import EnabledSets
from portal.store.session import Database


@dataclass(frozen=True, slots=True)
class Services:
    """What a process works with. `portal.bootstrap` makes it, tests make their own."""

    settings: Settings
    database: Database
    embedder: Embedder
    calibration: Calibration
    chat: ChatModel
    secret_key: str = field(repr=False)
    reranker: Reranker | None = None
    enabled_sets: EnabledSets = field(default_factory=EnabledSets, repr=False)
    answer_slots: AnswerSlots = field(default_factory=AnswerSlots, repr=False)
