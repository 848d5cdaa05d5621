"""The administration page of embedding models, with and without HTMX."""

from __future__ import annotations

import re

import pytest
from flask.testing import FlaskClient

from portal.services.models import builds, catalog, switching
from portal.store.embedding_models import builds as build_store
from tests.conftest import Portal

OLD, NEW = "hashing-384", "words"


class Pages:
    """A signed-in administrator's browser."""

    def __init__(self, client: FlaskClient, portal: Portal) -> None:
        self.client, self.headers = client, portal.headers()

    def get(self, path: str, **headers: str) -> str:
        answer = self.client.get(path, headers=self.headers | headers)
        assert answer.status_code == 200
        return answer.get_data(as_text=True)

    def post(self, path: str, **form: str) -> str:
        """Submit a form and return the text of the next page."""
        answer = self.client.post(path, data=form, headers=self.headers)
        assert answer.status_code == 303
        return self.get(answer.headers["Location"])


@pytest.fixture
def pages(client: FlaskClient, portal: Portal) -> Pages:
    portal.add("Divers must not touch the coral.", name="coral.txt")
    return Pages(client, portal)


def built(portal: Portal) -> None:
    model = catalog.register(portal.services, f"hashing:{NEW}@64")
    list(builds.build(portal.services, model.name))


def test_build_from_the_page_shows_its_progress(pages: Pages, portal: Portal) -> None:
    page = pages.post("/admin/models/build", name=f"hashing:{NEW}@64")
    assert 'data-testid="build-stage"' in page
    assert re.search(r'hx-trigger="every \d+s"', page)
    fragment = pages.get("/admin/models", **{"HX-Request": "true", "HX-Target": "model-list"})
    assert fragment.lstrip().startswith("<section")
    builds.build_slice(portal.services, NEW, should_stop=lambda: False)
    page = pages.get("/admin/models")
    assert 'data-testid="build-stage"' not in page
    assert 'hx-target="#model-list"' not in page
    assert 'data-testid="comparison"' in page


def test_page_switches_rolls_back_and_drops_models(pages: Pages, portal: Portal) -> None:
    built(portal)
    assert NEW in pages.post("/admin/models/switch", name=NEW)
    assert serving(portal) == NEW
    assert 'data-testid="roll-back"' in pages.get("/admin/models")
    pages.post("/admin/models/rollback")
    assert serving(portal) == OLD
    assert "confirm-drop" in pages.get(f"/admin/models/drop?name={NEW}")
    pages.post("/admin/models/drop", name=NEW)
    assert NEW not in {s.model.name for s in switching.list_models(portal.services)}


def test_refused_action_is_reported_on_the_page(pages: Pages, portal: Portal) -> None:
    for path, name, words in (
        ("switch", OLD, "is already active"),
        ("rollback", "", "no previous model to roll back to"),
        ("drop", OLD, "switch to another model first"),
    ):
        page = pages.post(f"/admin/models/{path}", name=name)
        assert words in page, path
        assert 'data-kind="error"' in page


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/etc", "cannot be built from this page"),
        ("nothing:x", "“nothing:x” has no known provider"),
    ],
)
def test_name_that_cannot_be_built_stays_in_its_field(
    pages: Pages, portal: Portal, name: str, words: str
) -> None:
    refused = pages.client.post("/admin/models/build", data={"name": name}, headers=pages.headers)
    assert refused.status_code == 422
    assert words in refused.text
    assert re.search(rf'value="{name}"[^>]*aria-invalid="true"[^>]*autofocus', refused.text)


def test_build_failure_is_shown_in_words(pages: Pages, portal: Portal) -> None:
    from portal.domain.documents import Failure

    model = catalog.register(portal.services, f"hashing:{NEW}@64")
    with portal.services.database.begin() as session:
        failure = Failure("embedder_unavailable", {"reason": "the endpoint sleeps"})
        build_store.note_progress(session, model, "failed", failure=failure)
    assert "the endpoint sleeps" in pages.get("/admin/models")


def test_page_is_translated_into_chinese(pages: Pages, portal: Portal) -> None:
    built(portal)
    page = pages.get("/admin/models", **{"Accept-Language": "zh-CN"})
    assert "嵌入模型" in page
    for english in ("Embedding models", "Switch", "Active", "Ranked first"):
        assert english not in page


def serving(portal: Portal) -> str:
    return catalog.ensure_serving(portal.services).name
