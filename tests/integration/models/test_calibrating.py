"""A model without confidence constants is calibrated on the stored chunks."""

from __future__ import annotations

from portal.domain.search import SearchRequest
from portal.embeddings.calibration import background as backgrounds
from portal.services.models import calibrating
from portal.services.search import engine
from portal.store.embedding_models import registry, samples
from tests.conftest import Portal


def constants_said(portal: Portal) -> str:
    outcome = engine.search(
        portal.services, portal.admin, SearchRequest(query="tides", explain=True)
    )
    assert outcome.explanation is not None
    return outcome.explanation["confidence_constants"]


def test_constants_are_borrowed_until_there_are_enough_chunks(portal: Portal) -> None:
    chunks = backgrounds.texts("en", "passages")
    portal.add(chunks[0], name="first.txt")
    calibrating.fit_if_due(portal.services)
    assert constants_said(portal) == "borrowed"
    for place, chunk in enumerate(chunks[1:51]):
        portal.add(chunk, name=f"{place}.txt")
    calibrating.fit_if_due(portal.services)
    assert constants_said(portal) == "corpus"
    with portal.services.database.begin() as session:
        model = registry.find_active(session)
        assert model is not None
        kept = samples.read_constants(session, model)
    assert kept is not None
    assert kept["stored"] == kept["passages"] == 51
    # Without new chunks there is nothing to calibrate.
    assert not calibrating.fit_model(portal.services, model)


def test_no_fit_without_stored_chunks(portal: Portal) -> None:
    calibrating.fit_if_due(portal.services)
    assert constants_said(portal) == "borrowed"
