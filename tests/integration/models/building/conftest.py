"""Fixtures for the tests of building models."""

from __future__ import annotations

import pytest

from portal.services.models import builds, catalog, switching
from portal.services.models.switching import ModelSummary
from tests.conftest import Portal
from tests.factories.models import serving


@pytest.fixture
def filled(portal: Portal) -> Portal:
    for name, words in TEXTS.items():
        portal.add(words, name=f"{name}.txt")
    return portal


OLD, NEW = "hashing-384", "hashing-64"
TEXTS = {
    "coral": "Divers must not touch the coral. The fine is five hundred.",
    "tea": "绿茶应在阴凉干燥处保存。开封后三个月内饮用完毕。",
    "bread": "Knead the dough for ten minutes. Let it rise until it has doubled.",
}


def summary(portal: Portal, name: str) -> ModelSummary:
    (found,) = (s for s in switching.list_models(portal.services) if s.model.name == name)
    return found


def build(portal: Portal, spec: str = "hashing:hashing-64@64", **options: object) -> str:
    model = catalog.register(portal.services, spec)
    list(builds.build(portal.services, model.name, **options))
    return model.name


def active(portal: Portal) -> str:
    return serving(portal).name
