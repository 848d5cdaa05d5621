"""The tools of `portal mcp` over both transports, used through the SDK's client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.errors import InvalidToken, RateLimited, SecondFactorEnrolmentRequired
from portal.services import Services
from portal.services.documents import folders, library, switches
from portal.services.documents.folders import members as folder_members
from portal.services.people import accounts, sessions, tokens
from tests.conftest import PASSWORD, Portal

pytestmark = pytest.mark.mcp
pytest.importorskip("mcp", reason="not installed: ./run setup --mcp")
pytest.importorskip("httpx2")

from mcp import Client, MCPError  # noqa: E402 - only where it is there

from portal.integrations.mcp import tools  # noqa: E402
from tests.factories.servers.mcp import (  # noqa: E402
    PUBLIC_URL,
    Door,
    ask,
    http_process,
    refusal,
)
from tests.integration.mcp.visiting import (  # noqa: E402
    CHINESE,
    HANDBOOK,
    NOT_FOUND,
    go,
    reading_token,
)


def test_both_tools_are_listed_as_reading_only(portal: Portal, door: Door) -> None:
    async def visit(client: Client) -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(listed) == ["search", "fetch"]
        assert listed["search"].input_schema["required"] == ["query"]
        assert listed["fetch"].input_schema["required"] == ["id"]
        for tool in listed.values():
            assert tool.title
            assert tool.description
            assert tool.output_schema is not None
            hints = tool.annotations
            assert hints is not None
            assert (hints.read_only_hint, hints.destructive_hint) == (True, False)
            assert hints.open_world_hint is False
        with pytest.raises(MCPError):
            await client.call_tool("delete", {"id": "1"})

    go(door, reading_token(portal), visit)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_found_document_can_be_read_whole(
    portal: Portal, door: Door, client: FlaskClient, mode: str
) -> None:
    handbook = portal.add(HANDBOOK, name="handbook.txt", title="Handbook")
    chinese = portal.add(CHINESE, name="退款.txt", title="退款说明")
    portal.add("The canteen opens at noon.", name="canteen.txt")

    async def visit(mcp: Client) -> None:
        for question, expected, words in (
            ("how long do refunds take?", handbook, HANDBOOK),
            ("退款要多久？", chinese, CHINESE),
        ):
            best, *_others = (await ask(mcp, "search", query=question))["results"]
            assert set(best) == {"id", "title", "url"}
            assert best["title"] == expected.title
            document = await ask(mcp, "fetch", id=best["id"])
            assert set(document) == {"id", "title", "text", "url", "metadata"}
            assert document["text"] == words
            assert {key: document[key] for key in best} == best
            assert document["metadata"]["document_id"] == str(expected.id)
            assert document["metadata"]["truncated"] is False
            by_document = await ask(mcp, "fetch", id=str(expected.id))
            assert by_document["text"] == words
            # The link opens the chunk on the portal's page.
            assert best["url"].startswith(f"{PUBLIC_URL}/documents/{expected.id}?chunk=")
            page = client.get(
                best["url"].removeprefix(PUBLIC_URL), headers=portal.headers(portal.admin)
            )
            assert f'id="{best["url"].partition("#")[2]}"' in page.text

    go(door, portal.token(portal.admin), visit, mode=mode)


def test_document_of_any_length_is_found_once(portal: Portal, environment: dict[str, str]) -> None:
    chapters = [f"## Chapter {n}\n\nRefunds, case {n}. " + "More words. " * 120 for n in range(12)]
    portal.add("# Refunds\n\n" + "\n\n".join(chapters), name="book.md", title="Book")
    portal.add(HANDBOOK, title="Handbook")

    async def visit(client: Client) -> None:
        found = (await ask(client, "search", query="refunds"))["results"]
        assert sorted(result["title"] for result in found) == ["Book", "Handbook"]

    go(Door(environment), reading_token(portal), visit)


def test_long_document_is_read_around_the_chunk(
    portal: Portal, environment: dict[str, str]
) -> None:
    filling = [f"Paragraph {n} tells of nothing in particular.\n\n" for n in range(400)]
    filling[300] = "The zebra password is hidden under the blue stone.\n\n"
    portal.add("".join(filling), title="Long")
    short = environment | {"PORTAL_MCP__FETCH_CHARACTERS": "2000"}

    async def visit(client: Client) -> None:
        best, *_ = (await ask(client, "search", query="zebra blue stone"))["results"]
        document = await ask(client, "fetch", id=best["id"])
        known = document["metadata"]
        assert "zebra" in document["text"]
        assert len(document["text"]) == 2000
        assert known["truncated"] is True
        assert "".join(filling)[known["char_start"] : known["char_end"]] == document["text"]

    go(Door(short), reading_token(portal), visit)


def test_foreign_document_answers_like_a_missing_one(portal: Portal, door: Door) -> None:
    ada, bob = portal.user("ada"), portal.user("bob")
    private = portal.add(HANDBOOK, owner=bob, visibility=Visibility.PRIVATE, title="Bob's")
    off = portal.add(f"{HANDBOOK} Off.", title="Switched off")
    trashed = portal.add(f"{HANDBOOK} Trash.", title="Trashed")
    shown = portal.add(f"{HANDBOOK} Shown.", title="Shown")
    switches.set_switch(portal.services, ada, None, off.id, enabled=False)
    library.delete_document(portal.services, portal.admin, trashed.id)
    with portal.services.database.engine.connect() as connection:
        rows = connection.execute(text("SELECT document_id, id FROM document_chunks")).all()
    chunks: dict[object, str] = {row[0]: str(row[1]) for row in rows}

    async def visit(client: Client) -> None:
        found = (await ask(client, "search", query="refunds fourteen days"))["results"]
        assert [result["title"] for result in found] == ["Shown"]
        missing = await refusal(client, "fetch", id=str(uuid4()))
        assert missing == NOT_FOUND
        for hidden in (private, off, trashed):
            assert await refusal(client, "fetch", id=chunks[hidden.id]) == missing
            assert await refusal(client, "fetch", id=str(hidden.id)) == missing
        assert (await ask(client, "fetch", id=chunks[shown.id]))["title"] == "Shown"

    go(door, reading_token(portal, ada), visit)


def test_member_of_a_folder_reads_it_until_removed(portal: Portal, door: Door) -> None:
    services, ada = portal.services, portal.user("ada")
    found = {}
    for name, member in (("Ours", "ada"), ("Theirs", portal.user("bob").name)):
        document = portal.add(f"{HANDBOOK} {name}.", title=name)
        folder = folders.create_folder(
            services, portal.admin, name=name, visibility=FolderVisibility.MEMBERS
        )
        folder_members.set_member(
            *(services, portal.admin, folder),
            kind=MemberKind.USER, name=member, role=FolderRole.READER,
        )  # fmt: skip
        folders.move_document(services, portal.admin, document.id, folder)
        found[name] = (document, folder)

    async def visit(client: Client) -> None:
        (best,) = (await ask(client, "search", query="refunds"))["results"]
        assert best["title"] == "Ours"
        assert (await ask(client, "fetch", id=best["id"]))["title"] == "Ours"
        assert await refusal(client, "fetch", id=str(found["Theirs"][0].id)) == NOT_FOUND
        folder_members.remove_member(services, portal.admin, found["Ours"][1], ada.id)
        assert (await ask(client, "search", query="refunds"))["results"] == []
        for identifier in (best["id"], str(found["Ours"][0].id)):
            assert await refusal(client, "fetch", id=identifier) == NOT_FOUND

    go(door, reading_token(portal, ada), visit)


def test_an_administrators_reading_token_shows_no_foreign_document(
    portal: Portal, environment: dict[str, str]
) -> None:
    private = portal.add(HANDBOOK, owner=portal.user("bob"), visibility=Visibility.PRIVATE)

    async def visit(client: Client) -> None:
        assert (await ask(client, "search", query="refunds"))["results"] == []
        assert await refusal(client, "fetch", id=str(private.id)) == NOT_FOUND

    go(Door(environment), reading_token(portal), visit)


def test_hostile_input_is_searched_for_or_refused_with_a_message(
    portal: Portal, door: Door
) -> None:
    document = portal.add(HANDBOOK, title="Handbook")

    async def visit(client: Client) -> None:
        for hostile in ("\0", f"{document.id}\0", "'; DROP TABLE documents; --", "../../etc", "％"):
            assert await refusal(client, "fetch", id=hostile) == NOT_FOUND
        for hostile in (f"{{{document.id}}}", document.id.hex, f"urn:uuid:{document.id}"):
            assert await refusal(client, "fetch", id=hostile) == NOT_FOUND
        assert "at most" in await refusal(client, "fetch", id="9" * 100_000)
        assert "at most" in await refusal(client, "search", query="refund " * 10_000)
        for odd in ({}, {"query": None}, {"query": ["a"]}, {"query": ""}):
            assert "query" in await refusal(client, "search", **odd)
        for mistyped in ({"scopes": {}}, {"scope": {"document": []}}):
            assert "scope" in await refusal(client, "search", query="refund", **mistyped)
        for query in (
            "refunds\0 fourteen",
            "'; DELETE FROM documents; --",
            '-refunds "x" domain:y',
        ):
            assert isinstance((await ask(client, "search", query=query))["results"], list)
        assert (await ask(client, "search", query=" \0 "))["results"] == []
        assert (await ask(client, "fetch", id=str(document.id)))["text"] == HANDBOOK

    go(door, reading_token(portal), visit)


def test_calls_do_not_wait_for_one_another(portal: Portal, door: Door) -> None:
    document = portal.add(HANDBOOK, title="Handbook")

    async def visit(client: Client) -> None:
        await ask(client, "search", query="refunds")
        engine = portal.services.database.engine
        with engine.begin() as connection:
            # Searches read this table first; fetching does not need it.
            connection.execute(text("LOCK TABLE dynamic_config IN ACCESS EXCLUSIVE MODE"))
            held = asyncio.ensure_future(ask(client, "search", query="refunds in words of its own"))
            for _ in range(3):
                assert (await ask(client, "fetch", id=str(document.id)))["title"] == "Handbook"
            assert not held.done()
        assert [found["title"] for found in (await held)["results"]] == ["Handbook"]
        many = await asyncio.gather(
            *(ask(client, "search", query=f"refunds {n}") for n in range(20))
        )
        assert all(answer["results"][0]["title"] == "Handbook" for answer in many)

    go(door, reading_token(portal), visit)


def test_a_token_that_is_revoked_opens_nothing_more(
    portal: Portal, environment: dict[str, str]
) -> None:
    document = portal.add(HANDBOOK)
    token = reading_token(portal)

    async def visit(client: Client) -> None:
        assert (await ask(client, "search", query="refunds"))["results"]
        tokens.revoke(portal.services, tokens.authenticate(portal.services, token), token)
        assert await refusal(client, "search", query="refunds") == str(InvalidToken())
        assert await refusal(client, "fetch", id=str(document.id)) == str(InvalidToken())

    go(Door(environment), token, visit)


def test_each_user_has_a_limit_for_each_tool(portal: Portal, environment: dict[str, str]) -> None:
    document = portal.add(HANDBOOK, title="Handbook")
    limits = {
        "PORTAL_RATE_LIMITS__ENABLED": "true",
        "PORTAL_RATE_LIMITS__SEARCH_HYBRID": "2 per hour",
        "PORTAL_RATE_LIMITS__GET_CHUNK": "1 per minute; 5 per day",
    }

    async def call_often(client: Client) -> None:
        await ask(client, "search", query="refunds")
        # Invalid calls count too, because checking the token costs a query.
        assert "query" in await refusal(client, "search")
        words = await refusal(client, "search", query="refunds")
        seconds = next(int(word) for word in words.split() if word.isdigit())
        assert words == str(RateLimited(seconds=seconds))
        assert 3500 < seconds <= 3600
        await ask(client, "fetch", id=str(document.id))
        assert await refusal(client, "fetch", id=str(document.id)) != NOT_FOUND

    with http_process(environment | limits) as (url, _process):
        door = Door(environment, url)
        go(door, reading_token(portal), call_often)
        # Limits count by user, not by token.
        go(door, reading_token(portal, portal.user("ada")), call_often)

        async def call_again(client: Client) -> None:
            assert str(RateLimited(seconds=0))[:17] == (await refusal(client, "search"))[:17]

        go(door, portal.token(portal.admin), call_again)


def test_session_that_has_to_set_up_a_second_factor_reads_nothing(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(sign_in={"require_second_factor": "everyone"})
    accounts.ensure_first_administrator(services)
    pair = sessions.sign_in(services, name="admin", password=PASSWORD)
    with pytest.raises(SecondFactorEnrolmentRequired):
        tools.reader(services, pair.access_token)
