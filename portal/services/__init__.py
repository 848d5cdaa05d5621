"""Use cases: one function each, in one transaction. None of them knows about HTTP.

Every function takes the `Services` container first: the parts of this process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from portal.domain.answering import ChatModel
from portal.domain.embedding import Embedder
from portal.domain.search.reranking import Reranker
from portal.embeddings.calibration import Calibration
from portal.services.answers.built_models import BuiltModel
from portal.services.answers.slots import AnswerSlots
from portal.services.documents.intake.use_estimates import UseEstimates
from portal.services.documents.reading.page_readers import PageReaders
from portal.services.documents.versions.comparisons import Comparisons
from portal.services.models.vector_rounds import VectorRounds
from portal.services.operations.health_monitor import HealthMonitor
from portal.services.operations.single_flight import SingleFlight
from portal.services.people.federation.issuer_keys import IssuerKeys
from portal.services.people.federation.oidc_provider import OidcProvider
from portal.services.search.cache import SearchCache
from portal.settings import Settings
from portal.store.search.selection.enabled_sets import EnabledSets
from portal.store.session import Database

if TYPE_CHECKING:
    # Importing it doubles the start-up time of a command, and few installations use Redis.
    from portal.store.redis_store import RedisStore


@dataclass(frozen=True, slots=True)
class Services:
    """The dependencies of all use cases, built once per process by `portal.container`."""

    settings: Settings
    database: Database
    embedder: Embedder
    calibration: Calibration
    chat: ChatModel
    secret_key: str = field(repr=False)
    old_secret_key: str | None = field(default=None, repr=False)
    reranker: Reranker | None = None
    redis: RedisStore | None = field(default=None, repr=False)
    issuer_keys: IssuerKeys | None = field(default=None, repr=False)
    oidc: OidcProvider | None = field(default=None, repr=False)
    search_cache: SearchCache = field(default_factory=SearchCache, repr=False)
    enabled_sets: EnabledSets = field(default_factory=EnabledSets, repr=False)
    built_model: BuiltModel = field(default_factory=BuiltModel, repr=False)
    answer_slots: AnswerSlots = field(default_factory=AnswerSlots, repr=False)
    use_estimates: UseEstimates = field(default_factory=UseEstimates, repr=False)
    comparisons: Comparisons = field(default_factory=Comparisons, repr=False)
    page_readers: PageReaders = field(default_factory=PageReaders, repr=False)
    vector_rounds: VectorRounds = field(default_factory=VectorRounds, repr=False)
    reranker_health: HealthMonitor = field(default_factory=HealthMonitor, repr=False)
    embedder_health: HealthMonitor = field(default_factory=HealthMonitor, repr=False)
    vector_store_reads: SingleFlight[dict[str, Any]] = field(
        default_factory=SingleFlight, repr=False
    )

    @property
    def secret_keys(self) -> list[str]:
        """Return the keys that verify signatures, oldest first. The last one signs."""
        return [key for key in (self.old_secret_key, self.secret_key) if key]
