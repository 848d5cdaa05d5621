"""The embedding model that a portal serves."""

from __future__ import annotations

from portal.services import Services
from portal.services.models import builds, catalog
from portal.store.embedding_models import registry
from portal.store.embedding_models.registry import RegisteredModel
from tests.conftest import Portal


def serving(portal: Portal) -> RegisteredModel:
    """Return the active model."""
    with portal.services.database.begin() as session:
        model = registry.find_active(session)
    assert model is not None
    return model


def reindex(services: Services) -> None:
    """Bring the active model up to date, as `portal reindex` does."""
    list(builds.build(services, catalog.ensure_serving(services).name))
