"""Saved searches: by pages and by the API, and no other user's."""

from __future__ import annotations

from flask.testing import FlaskClient

from tests.conftest import Portal

API = "/api/searches"


def test_search_is_saved_renamed_and_deleted(client: FlaskClient, portal: Portal) -> None:
    headers = portal.headers(portal.user("mei"))
    form = {"q": "leave", "type": "pdf", "mode": "hybrid", "name": "  Leave   papers "}
    answer = client.post("/search/saved", data=form, headers=headers)
    assert answer.headers["Location"] == "/search?q=leave&type=pdf"
    (found,) = client.get(API, headers=headers).json["searches"]
    assert (found["name"], found["arguments"]) == ("Leave papers", {"q": "leave", "type": "pdf"})
    for path in ("/search", "/"):
        page = client.get(path, headers=headers).text
        assert 'href="/search?q=leave&amp;type=pdf"' in page, path
    # A name is given once, and others' searches are not there.
    assert client.post(API, json={"name": "Leave papers", "arguments": {"q": "x"}}, headers=headers
    ).status_code == 409  # fmt: skip
    eve = portal.headers(portal.user("eve"))
    assert client.get(API, headers=eve).json == {"searches": []}
    for method in ("PATCH", "DELETE"):
        body = {"json": {"name": "mine"}} if method == "PATCH" else {}
        refused = client.open(f"{API}/{found['id']}", method=method, headers=eve, **body)
        assert refused.status_code == 404
    renamed = {"name": "Papers"}
    client.post(f"/search/saved/{found['id']}/rename", data=renamed, headers=headers)
    assert client.get(API, headers=headers).json["searches"][0]["name"] == "Papers"
    client.post(f"/search/saved/{found['id']}/delete", headers=headers)
    assert client.get(API, headers=headers).json == {"searches": []}


def test_search_without_words_is_not_saved(portal: Portal) -> None:
    client = portal.client()
    for arguments in ({"q": " "}, {"q": "x", "days": 0}, {"q": "x", "type": "y" * 31}, {}):
        body = {"name": "n", "arguments": arguments}
        assert client.post(API, json=body).status_code == 422
    made = client.post(API, json={"arguments": {"q": "quince", "days": 7}})
    assert made.status_code == 201
    assert (made.json["name"], made.json["arguments"]) == ("quince", {"q": "quince", "days": "7"})
