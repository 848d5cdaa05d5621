"""The selection API: which switch decides, who may set it, and searches follow at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from flask.testing import FlaskClient

from portal import create_app
from portal.domain.documents import Visibility
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents import library, switches
from tests.conftest import Portal
from tests.factories.cases import for_each

DEFAULTS = "/api/user/document-defaults"
ASKED = {"query": "maple", "mode": "keyword"}


def overrides(conversation_id: object) -> str:
    return f"/api/conversations/{conversation_id}/document-overrides"


def listed(client: FlaskClient, portal: Portal, path: str, **query: Any) -> dict[str, Any]:
    answer = client.get(path, headers=portal.headers(), query_string=query)
    assert answer.status_code == 200, answer.json
    return answer.json


def found(client: FlaskClient, portal: Portal, **more: Any) -> set[str]:
    answer = client.post("/api/knowledge/search", headers=portal.headers(), json=ASKED | more)
    return {result["title"] for result in answer.json["results"]}


def switch(client: FlaskClient, portal: Portal, path: str, document: Any, enabled: bool) -> Any:
    answer = client.put(
        f"{path}/{document.id}", headers=portal.headers(), json={"enabled": enabled}
    )
    assert answer.status_code == 200, answer.json
    return answer.json


def test_document_without_a_switch_is_enabled_by_the_system(
    client: FlaskClient, portal: Portal
) -> None:
    document = portal.add("maple", title="One")
    body = listed(client, portal, DEFAULTS)
    assert body["documents"] == [
        {
            "document_id": str(document.id),
            "title": "One",
            "enabled": True,
            "source": "system",
            "user_default": None,
        }
    ]
    assert (body["enabled_count"], body["total_count"], body["next_cursor"]) == (1, 1, None)


def test_own_switch_persists_and_counts_in_new_conversations(
    client: FlaskClient, portal: Portal
) -> None:
    document, _ = portal.add("maple", title="One"), portal.add("maple too", title="Two")
    answer = switch(client, portal, DEFAULTS, document, enabled=False)
    assert (answer["enabled"], answer["source"]) == (False, "user")
    assert found(client, portal) == {"Two"}
    talk = conversations.create(portal.services, portal.admin)
    assert found(client, portal, conversation_id=str(talk.id)) == {"Two"}
    body = listed(client, portal, overrides(talk.id))
    assert [(d["title"], d["enabled"], d["source"]) for d in body["documents"]] == [
        ("One", False, "user"),
        ("Two", True, "system"),
    ]
    assert (body["enabled_count"], body["total_count"]) == (1, 2)


def test_conversation_override_wins_only_there(client: FlaskClient, portal: Portal) -> None:
    document = portal.add("maple", title="One")
    here, there = (conversations.create(portal.services, portal.admin).id for _ in range(2))
    switch(client, portal, DEFAULTS, document, enabled=False)
    answer = switch(client, portal, overrides(here), document, enabled=True)
    assert (answer["enabled"], answer["source"]) == (True, "conversation")
    assert (answer["user_default"], answer["override"]) == (False, True)
    assert found(client, portal, conversation_id=str(here)) == {"One"}
    assert found(client, portal, conversation_id=str(there)) == set()
    assert found(client, portal) == set()


def test_deleted_switch_inherits_again(client: FlaskClient, portal: Portal) -> None:
    document = portal.add("maple", title="One")
    talk = conversations.create(portal.services, portal.admin).id
    for path in (DEFAULTS, overrides(talk)):
        switch(client, portal, path, document, enabled=False)
    for path, source in ((overrides(talk), "user"), (DEFAULTS, "system")):
        for _ in range(2):  # Repeating it changes nothing.
            answer = client.delete(f"{path}/{document.id}", headers=portal.headers())
            assert (answer.status_code, answer.data) == (204, b"")
        (state,) = listed(client, portal, overrides(talk))["documents"]
        assert state["source"] == source
    assert found(client, portal, conversation_id=str(talk)) == {"One"}


def test_all_off_all_on_and_back_to_own_defaults(client: FlaskClient, portal: Portal) -> None:
    documents = [portal.add(f"maple {n}", title=f"Paper {n}") for n in range(3)]
    talk = conversations.create(portal.services, portal.admin).id
    switch(client, portal, DEFAULTS, documents[0], enabled=False)
    titles = [document.title for document in documents]
    for enabled, expected in ((False, []), (True, titles), (None, titles[1:])):
        answer = client.put(overrides(talk), headers=portal.headers(), json={"enabled": enabled})
        assert answer.status_code == 204
        assert sorted(found(client, portal, conversation_id=str(talk))) == expected
        assert switches.count_enabled(portal.services, portal.admin, talk) == (len(expected), 3)


def test_switch_takes_effect_in_every_process_at_once(
    client: FlaskClient, portal: Portal, make_services: Callable[..., Services]
) -> None:
    document = portal.add("maple", title="One")
    talk = conversations.create(portal.services, portal.admin).id
    other = create_app(make_services()).test_client()
    for enabled in (True, False, True, False):
        assert found(other, portal, conversation_id=str(talk)) in ({"One"}, set())  # Cached.
        switch(client, portal, overrides(talk), document, enabled=enabled)
        expected = {"One"} if enabled else set()
        assert found(other, portal, conversation_id=str(talk)) == expected


def test_invisible_document_cannot_be_switched_or_listed(portal: Portal) -> None:
    ada = portal.user("ada")
    hidden = portal.add("maple", owner=portal.admin, visibility=Visibility.PRIVATE)
    trashed, purged = portal.add("maple in the trash"), portal.add("maple gone")
    library.delete_document(portal.services, portal.admin, trashed.id)
    library.purge_document(portal.services, portal.admin, purged.id)
    talk = conversations.create(portal.services, ada).id
    client = portal.client(ada)
    for path in (DEFAULTS, overrides(talk)):
        assert client.get(path).json["documents"] == []
        for document_id in (hidden.id, trashed.id, purged.id, uuid4()):
            address = f"{path}/{document_id}"
            put = client.put(address, json={"enabled": True})
            assert put.status_code == client.delete(address).status_code == 404


@for_each(("body", "status"), [("{", 400), ("{}", 422), ('{"enabled": "yes"}', 422),
    ('{"enabled": null}', 422), ('{"enabled": 1}', 422),
    ('{"enabled": true, "x": 1}', 422)])  # fmt: skip
def test_switch_accepts_only_true_and_false(
    client: FlaskClient, portal: Portal, body: str, status: int
) -> None:
    document = portal.add("maple")
    headers = portal.headers() | {"Content-Type": "application/json"}
    answer = client.put(f"{DEFAULTS}/{document.id}", headers=headers, data=body)
    assert answer.status_code == status


def test_pages_are_whole_and_in_the_order_of_titles(client: FlaskClient, portal: Portal) -> None:
    titles = ["apple", "Banana", "cherry", "Cherry", "50%", "手册"]
    for number, title in enumerate(titles):
        portal.add(f"maple {number}", title=title)
    talk = conversations.create(portal.services, portal.admin).id
    for path in (DEFAULTS, overrides(talk)):
        seen: list[str] = []
        query: dict[str, Any] = {"limit": 2}
        while query.get("cursor", "") is not None:
            page = listed(client, portal, path, **query)
            assert page["total_count"] == len(titles)
            seen += [document["title"] for document in page["documents"]]
            query["cursor"] = page["next_cursor"]
        assert sorted(seen) == sorted(titles)
        assert seen.index("apple") < seen.index("Banana") < seen.index("cherry")
    narrowed = listed(client, portal, DEFAULTS, q="50%")
    assert [document["title"] for document in narrowed["documents"]] == ["50%"]
    assert narrowed["total_count"] == len(titles)


@for_each(
    "cursor",
    [
        # The last is a lone surrogate with a valid id.
        *("x", "eyJ9", "W10", "WzEsMl0", "WyJhXHUwMDAwIiwiYiJd"),
        "WyJcdWQ4MDAiLCAiMDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAxIl0",
    ],
)
def test_bad_cursor_is_malformed(client: FlaskClient, portal: Portal, cursor: str) -> None:
    answer = client.get(DEFAULTS, headers=portal.headers(), query_string={"cursor": cursor})
    assert answer.status_code == 400


def test_switches_of_rows_omit_invisible_documents(portal: Portal) -> None:
    shown, ada = portal.add("maple"), portal.user("ada")
    hidden = portal.add("maple, hidden", visibility=Visibility.PRIVATE)
    switches.set_switch(portal.services, ada, None, shown.id, enabled=False)
    found = switches.find_switches(portal.services, ada, [shown.id, hidden.id])
    assert {key: one.enabled for key, one in found.items()} == {shown.id: False}
    assert switches.find_switches(portal.services, portal.admin, []) == {}
