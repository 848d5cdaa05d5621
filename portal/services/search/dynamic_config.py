"""`dynamic_config`: settings that administrators change at runtime, with their defaults."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from portal.answering.writing.prompt import MIN_TOKEN_BUDGET
from portal.domain.people import User
from portal.domain.search import Fusion, Normalisation
from portal.domain.search.chunk_search import FUSIONS
from portal.errors import Forbidden, InvalidInput, verbatim
from portal.services import Services, audit
from portal.services.audit import AuditEvent, Subject, SubjectKind
from portal.settings import SearchSettings
from portal.store import config as config_store
from portal.store.session import Session

# The value that overrides each setting of PORTAL_SEARCH__HYBRID.
OF_HYBRID_SETTINGS = {
    "vector_weight": "semantic_weight",
    "text_weight": "bm25_weight",
    "fusion_method": "fusion",
    "rrf_k": "rrf_k",
}


class DynamicConfig(BaseModel):
    """Runtime settings, read for every search so that a change takes effect at once in every
    process."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    semantic_weight: float = Field(0.7, ge=0, le=1)
    bm25_weight: float = Field(0.3, ge=0, le=1)
    fusion: Fusion = Fusion.WEIGHTED
    normalisation: Normalisation = Normalisation.CALIBRATED
    rrf_k: int = Field(60, ge=1, le=1000)
    top_n: int = Field(5, ge=1, le=100)
    confidence_threshold: float = Field(0.5, ge=0, le=1)
    domain_boost: float = Field(0.05, ge=0, le=0.5)
    context_token_budget: int = Field(2000, ge=MIN_TOKEN_BUDGET, le=100_000)


def defaults(search: SearchSettings) -> DynamicConfig:
    """Return the defaults, which are the values of the settings."""
    hybrid = search.hybrid
    values = {key: getattr(hybrid, name) for name, key in OF_HYBRID_SETTINGS.items()}
    return DynamicConfig(**values | {"fusion": FUSIONS[hybrid.fusion_method]})


def read(session: Session, search: SearchSettings) -> DynamicConfig:
    """Return the values in force."""
    return from_stored(config_store.read_all(session), search)


def from_stored(stored: dict[str, Any], search: SearchSettings) -> DynamicConfig:
    """Return the values in force, ignoring stored values that are no longer valid."""
    unset = defaults(search)
    known = {key: value for key, value in stored.items() if key in DynamicConfig.model_fields}
    try:
        config = DynamicConfig(**(unset.model_dump() | known))
    except ValidationError as error:
        wrong = {str(item["loc"][0]) for item in error.errors()}
        return from_stored({key: known[key] for key in known.keys() - wrong}, search)
    if config.semantic_weight + config.bm25_weight <= 0:
        # One weight is stored as 0, and the other is 0 in the settings.
        weights = {"semantic_weight": unset.semantic_weight, "bm25_weight": unset.bm25_weight}
        return config.model_copy(update=weights)
    return config


def show(services: Services, user: User) -> DynamicConfig:
    """Return the values in force. Administrators only."""
    if not user.is_admin:
        raise Forbidden
    with services.database.begin() as session:
        return read(session, services.settings.search)


def change(services: Services, user: User, values: dict[str, Any]) -> DynamicConfig:
    """Change some values. A value equal to the default is deleted, so that it follows the settings.
    Administrators only. Raises InvalidInput, then nothing changes."""
    if not user.is_admin:
        raise Forbidden
    unknown = sorted(set(values) - set(DynamicConfig.model_fields))
    if unknown:
        raise InvalidInput(verbatim(", ".join(unknown)))
    with services.database.begin() as session:
        current = read(session, services.settings.search)
        before = current.model_dump(mode="json")
        merged = current.model_dump() | values
        try:
            config = DynamicConfig(**merged)
        except ValidationError as error:
            names = sorted({str(item["loc"][0]) for item in error.errors()})
            raise InvalidInput(verbatim(", ".join(names))) from error
        if config.semantic_weight + config.bm25_weight <= 0:
            raise InvalidInput(verbatim("semantic_weight, bm25_weight"))
        after = config.model_dump(mode="json")
        unset = defaults(services.settings.search).model_dump(mode="json")
        for key in values:
            if after[key] == unset[key]:
                config_store.delete(session, key=key)
            else:
                config_store.write(session, key=key, value=after[key], updated_by=user.id)
        changed = [key for key in values if before[key] != after[key]]
        for key in changed:
            audit.record(
                session,
                AuditEvent.SETTINGS_CHANGED,
                user,
                Subject(SubjectKind.SETTING, key, key),
                before=before[key],
                after=after[key],
            )
    return config
