"""Saved searches: listed on pages, for their owner only."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from portal.errors import InvalidInput, NameTaken
from portal.services.search import saved
from tests.conftest import Portal


def test_search_is_saved_renamed_and_deleted(client: FlaskClient, portal: Portal) -> None:
    mei, eve = portal.user("mei"), portal.user("eve")
    headers = portal.headers(mei)
    form = {"q": "leave", "type": "pdf", "mode": "hybrid", "name": "  Leave   papers "}
    answer = client.post("/search/saved", data=form, headers=headers)
    assert answer.headers["Location"] == "/search?q=leave&type=pdf"
    (found,) = saved.list_saved(portal.services, mei)
    assert (found.name, found.arguments) == ("Leave papers", {"q": "leave", "type": "pdf"})
    for path in ("/search", "/"):
        page = client.get(path, headers=headers).text
        assert 'href="/search?q=leave&amp;type=pdf"' in page, path
    with pytest.raises(NameTaken):
        saved.save(portal.services, mei, "Leave papers", {"q": "x"})
    # Other users do not see the search.
    assert saved.list_saved(portal.services, eve) == []
    renamed = {"name": "Papers"}
    for action in ("rename", "delete"):
        refused = client.post(
            f"/search/saved/{found.id}/{action}", data=renamed, headers=portal.headers(eve)
        )
        assert refused.status_code == 404
    client.post(f"/search/saved/{found.id}/rename", data=renamed, headers=headers)
    assert [one.name for one in saved.list_saved(portal.services, mei)] == ["Papers"]
    client.post(f"/search/saved/{found.id}/delete", headers=headers)
    assert saved.list_saved(portal.services, mei) == []


def test_search_without_words_is_not_saved(portal: Portal) -> None:
    for arguments in ({"q": " "}, {}):
        with pytest.raises(InvalidInput):
            saved.save(portal.services, portal.admin, "n", arguments)
    made = saved.save(portal.services, portal.admin, "", {"q": "quince", "days": "7"})
    assert (made.name, made.arguments) == ("quince", {"q": "quince", "days": "7"})
