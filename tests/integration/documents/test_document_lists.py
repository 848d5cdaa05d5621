"""The list of documents: its order, its filters and its pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import DocumentSort, MediaType
from portal.domain.people import User
from portal.services.documents import folders
from portal.services.people import accounts
from tests.conftest import Portal

LIST = "/api/knowledge/documents"
_INSERT = text(
    """
    INSERT INTO documents (collection_id, owner_id, title, file_name, media_type, size_bytes,
                           sha256, domain, visibility, status, created_at)
    SELECT id, :owner_id, :title, :title, :media_type, :size, :sha256, :domain, :visibility,
           :status, now() - make_interval(secs => :age)
    FROM collections WHERE name = 'portal' RETURNING id
    """
)


@pytest.fixture
def add(portal: Portal) -> Callable[..., str]:
    """Return a function that adds documents, each older than the one before."""
    ages = count(1)

    def insert(title: str, owner: User, **values: Any) -> str:
        row = {"media_type": MediaType.PDF, "size": 1, "domain": None, "visibility": "shared"}
        row |= {"status": "ready", "sha256": uuid4().hex, "age": next(ages)} | values
        with portal.services.database.begin() as session:
            given = row | {"title": title, "owner_id": owner.id}
            return str(session.execute(_INSERT, given).scalar_one())

    return insert


def titles_of(
    client: FlaskClient, headers: dict[str, str], path: str = LIST, **query: Any
) -> list[str]:
    """Return the titles of all pages."""
    titles, cursor, pages = [], "", 0
    while cursor is not None:
        given = {"limit": 2, **query, **({"cursor": cursor} if cursor else {})}
        page = client.get(path, headers=headers, query_string=given).json
        titles += [document["title"] for document in page["documents"]]
        cursor, pages = page["next_cursor"], pages + 1
        assert pages < 20
    return titles


def test_every_sort_order_holds_across_pages(
    portal: Portal, client: FlaskClient, add: Callable[..., str]
) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    rows = [
        ("b", ada, "ready", MediaType.PDF, 3),
        ("A", eve, "failed", MediaType.DOCX, 3),
        ("c", ada, "ready", MediaType.TEXT, 1),
        ("合同", eve, "queued", MediaType.PDF, 20),
        ("b", ada, "ready", MediaType.PDF, 4),
    ]
    for title, owner, status, media_type, size in rows:
        add(title, owner, status=status, media_type=media_type, size=size)
    add("hidden", ada, visibility="private")
    keys: dict[str, Callable[[Any], Any]] = {
        "created": lambda row: -rows.index(row),
        "title": lambda row: row[0].lower(),
        "size": lambda row: row[4],
        "type": lambda row: row[3].short,
        "status": lambda row: row[2],
        "owner": lambda row: row[1].name,
    }
    headers = portal.headers(eve)
    for sort in DocumentSort:
        # Equal documents stay in the default order: newest first.
        expected = sorted(rows, key=keys[sort.key], reverse=sort.is_descending)
        titles = [row[0] for row in expected]
        assert titles_of(client, headers, sort=sort.value) == titles, sort


def test_cursor_of_another_order_is_refused(
    portal: Portal, client: FlaskClient, add: Callable[..., str]
) -> None:
    for title in "abc":
        add(title, portal.admin)
    headers = portal.headers()
    for sort in DocumentSort:
        query = {"sort": sort.value, "limit": 1}
        cursor = client.get(LIST, headers=headers, query_string=query).json["next_cursor"]
        for other in DocumentSort:
            query = {"sort": other.value, "cursor": cursor}
            answer = client.get(LIST, headers=headers, query_string=query)
            assert answer.status_code == (200 if other is sort else 400), (sort, other)


def test_titles_and_folders_are_sorted_in_natural_order(
    portal: Portal, client: FlaskClient, add: Callable[..., str]
) -> None:
    # These include a number of more than 64 bits, and numbers in the middle of Chinese.
    titles = ["9" * 30, "Note-4", "note-4b", "note-04c", "note-10", "note-10.2", "note-10.10"]
    titles += ["note-2026", "note-20260101", "第2章", "第10章"]
    for title in reversed(titles):
        add(title, portal.admin)
    headers = portal.headers()
    assert titles_of(client, headers, sort="title") == titles
    assert titles_of(client, headers, sort="-title") == titles[::-1]
    assert titles_of(client, headers, path="/api/user/document-defaults") == titles
    for name in ("Part 10", "part 9"):
        folders.create_folder(portal.services, portal.admin, name=name)
    paths = folders.list_paths(portal.services, portal.admin)
    assert [path.words for path in paths] == ["part 9", "Part 10"]


def test_titles_of_many_numbers_fit_into_a_cursor(
    portal: Portal, client: FlaskClient, add: Callable[..., str]
) -> None:
    titles = ["1名" * 149 + f"{number}名" for number in range(8, 12)]
    for title in reversed(titles):
        add(title, portal.admin)
    assert titles_of(client, portal.headers(), sort="title") == titles
    assert titles_of(client, portal.headers(), "/api/user/document-defaults") == titles


def test_filters_combine_and_are_kept_in_the_address(
    portal: Portal, client: FlaskClient, add: Callable[..., str]
) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")
    wanted = {"domain": "law", "visibility": "private", "status": "failed"}
    add("plan one", ada, **wanted)
    for title, owner, other in (
        ("plan two", ada, {"domain": "art"}),
        ("plan three", ada, {"visibility": "shared"}),
        ("plan four", ada, {"status": "ready"}),
        ("plan five", eve, {}),
        ("other", ada, {}),
    ):
        add(title, owner, **wanted | other)
    given = {"q": "plan", "domain": "law", "visibility": "private", "status": "failed"}
    assert titles_of(client, portal.headers(), **given, owner_id=str(ada.id)) == ["plan one"]
    # Another user's private documents are not counted either.
    page = client.get(LIST, headers=portal.headers(eve), query_string={"owner_id": str(ada.id)})
    assert page.json["total_count"] == 1
    address = {**given, "owner": str(ada.id), "sort": "title"}
    shown = client.get("/documents", headers=portal.headers(), query_string=address).text
    assert re.findall(r'class="document-title"[^>]*>([^<]+)<', shown) == ["plan one"]
    for value in ("law", "private", "failed", str(ada.id), "title"):
        assert re.search(rf'<option value="{value}"\s+selected', shown), value
    # Only owners of documents that the user may see are offered.
    others = client.get("/documents?more=1", headers=portal.headers(portal.user("zoe"))).text
    assert ">ada<" in others
    assert ">eve<" not in others


def test_type_filter_offers_only_types_of_visible_documents(
    portal: Portal, client: FlaskClient, add: Callable[..., str]
) -> None:
    ada, eve = portal.user("ada"), portal.user("eve")

    def offered(page: str) -> list[str]:
        choice = re.search(r'<select id="filter-type".*?</select>', page, re.DOTALL)
        assert choice is not None
        return re.findall(r'<option value="(\w+)"', choice[0])

    def get(address: str, user: User = eve, **more: str) -> str:
        return client.get(address, headers=portal.headers(user) | more).text

    assert offered(get("/documents")) == []
    add("open", ada, media_type=MediaType.PDF)
    add("private", ada, media_type=MediaType.DOCX, visibility="private")
    assert offered(get("/documents")) == ["pdf"]
    assert offered(get("/documents", ada)) == offered(get("/documents", portal.admin))
    assert offered(get("/documents", ada)) == ["pdf", "docx"]
    # The same holds where the list shows none of them; the chosen type is offered, too.
    assert offered(get("/documents?q=nothing&type=csv")) == ["pdf", "csv"]
    add("mail", eve, media_type=MediaType.EML)
    client.post(
        f"/documents/{add('sheet', eve, media_type=MediaType.XLSX)}/delete",
        headers=portal.headers(eve),
    )
    fragment = {"HX-Request": "true", "HX-Target": "document-results", "X-Refresh": "true"}
    refreshed = get("/documents", **fragment)
    assert offered(refreshed) == ["pdf", "eml"]
    assert re.search(r'<select id="filter-type"[^>]*hx-swap-oob', refreshed)


def test_back_shows_as_many_rows_as_before(
    portal: Portal, client: FlaskClient, add: Callable[..., str]
) -> None:
    for number in range(60):
        add(f"{number:03}", portal.admin)
    headers = portal.headers()
    first = client.get("/documents?sort=title&q=0", headers=headers).text
    assert first.count('data-testid="document-row"') == 50
    more = re.search(r'hx-get="(/documents\?cursor=[^"]+)"', first)
    assert more is not None
    page = "http://localhost/documents?sort=title&q=0"
    fragment = headers | {"HX-Request": "true", "HX-Target": "load-more", "HX-Current-URL": page}
    answer = client.get(more[1].replace("&amp;", "&"), headers=fragment)
    assert answer.text.count('data-testid="document-row"') == 10
    address = answer.headers["HX-Replace-Url"]
    back = client.get(address, headers=headers).text
    assert re.findall(r'class="document-title"[^>]*>(\d+)<', back) == [
        f"{number:03}" for number in range(60)
    ]
    for shown in ("-1", "x", "999999999999"):
        assert client.get(f"/documents?shown={shown}", headers=headers).status_code == 200


def test_tags_are_shared_filter_and_hide_with_their_documents(
    portal: Portal, client: FlaskClient, add: Callable[..., str]
) -> None:
    ada, eve = (portal.headers(portal.user(name)) for name in ("ada", "eve"))
    owner = portal.services, "ada"
    open_id = add("open", accounts.find_user(*owner))
    hidden_id = add("hidden", accounts.find_user(*owner), visibility="private")

    def tag(document_id: str, *tags: str, headers: dict[str, str] = ada) -> int:
        address = f"{LIST}/{document_id}/tags"
        return client.put(address, headers=headers, json={"tags": tags}).status_code

    assert tag(open_id, " 2026", "合同", "CONTRACT", "Contract") == 200
    assert tag(hidden_id, "合同", "severance") == 200
    assert tag(open_id, "mine", headers=eve) == 403
    assert tag(hidden_id, "mine", headers=eve) == 404
    assert tag(open_id, "a,b") == tag(open_id, "x" * 51) == 422
    seen = client.get("/api/knowledge/tags", headers=eve).json["tags"]
    assert [(one["name"], one["document_count"]) for one in seen] == [
        ("2026", 1),
        ("Contract", 1),
        ("合同", 1),
    ]
    assert titles_of(client, eve, tag="合同") == ["open"]
    assert titles_of(client, ada, tag="合同") == ["open", "hidden"]
    page = client.get("/documents?tag=合同", headers=eve).text
    assert "severance" not in page
    assert re.search(r'<option value="合同"\s+selected>合同 \(1\)', page)
    edit = {"title": "open", "domain": "", "visibility": "shared", "tags": "新，2027、 old"}
    assert client.post(f"/documents/{open_id}/edit", headers=ada, data=edit).status_code == 303
    assert client.get(f"{LIST}/{open_id}", headers=ada).json["tags"] == ["新", "2027", "old"]
