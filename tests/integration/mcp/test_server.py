"""`portal mcp` over both transports, used through the SDK's client."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.domain.documents import Visibility
from portal.domain.documents.folder_members import MemberKind
from portal.domain.documents.folders import FolderRole, FolderVisibility
from portal.domain.people import Scope, TokenKind, User
from portal.errors import InvalidToken, NotFound, RateLimited, SecondFactorEnrolmentRequired
from portal.services import Services
from portal.services.documents import folders, library, selections
from portal.services.documents.folders import members as folder_members
from portal.services.people import accounts, sessions, tokens
from tests.conftest import PASSWORD, Portal
from tests.factories.uploads import run_apart

pytestmark = pytest.mark.mcp
pytest.importorskip("mcp", reason="not installed: ./run setup --mcp")
httpx2 = pytest.importorskip("httpx2")

from mcp import Client, MCPError  # noqa: E402 - only where it is there
from mcp.server.transport_security import TransportSecuritySettings  # noqa: E402

from portal.integrations.mcp import serving, tools  # noqa: E402
from tests.factories.servers.mcp import (  # noqa: E402
    MCP,
    PROJECT,
    PUBLIC_URL,
    Door,
    ask,
    http_process,
    mcp_environment,
    refusal,
)

Visit = Callable[[Client], Awaitable[None]]

NOT_FOUND = str(NotFound())
HANDBOOK = "Refunds are paid within fourteen days of the return."
CHINESE = "退款将在退货后十四天内支付到原来的账户。"


@pytest.fixture
def environment(portal: Portal, database_url: str, tmp_path: Path) -> dict[str, str]:
    return mcp_environment(database_url, tmp_path, portal.services.secret_key)


@pytest.fixture(params=["stdio", "http"])
def door(request: pytest.FixtureRequest, environment: dict[str, str]) -> Iterator[Door]:
    if request.param == "stdio":
        yield Door(environment)
        return
    with http_process(environment) as (url, _process):
        yield Door(environment, url)


@pytest.fixture
def http_url(environment: dict[str, str]) -> Iterator[str]:
    with http_process(environment) as (url, _process):
        yield url


def go(door: Door, token: str, visit: Visit, *, mode: str = "auto") -> None:
    """Run `visit` with a client connected over the given transport."""

    async def enter() -> None:
        async with door.enter(token, mode=mode) as client:
            await visit(client)

    run_apart(lambda: asyncio.run(enter()))


def reading_token(portal: Portal, user: User | None = None) -> str:
    _, secret = sessions.create_personal_token(
        portal.services, user or portal.admin, name="assistant", ttl_s=3600, scopes=[Scope.READ]
    )
    return secret


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
            # The link opens the passage on the portal's page.
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
    selections.set_switch(portal.services, ada, None, off.id, enabled=False)
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


def test_hostile_input_is_looked_for_or_refused_in_words(portal: Portal, door: Door) -> None:
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
        tokens.revoke(portal.services, token)
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


# --- HTTP -----------------------------------------------------------------------------------------

HEADERS = {"Accept": "application/json, text/event-stream"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def post(url: str, token: str | None, **headers: str) -> httpx2.Response:
    authorization = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx2.post(url, json=LIST, headers=HEADERS | authorization | headers)


def test_http_without_a_good_token_is_401(portal: Portal, http_url: str) -> None:
    token = portal.token(portal.admin)
    assert post(http_url, token).status_code == 200
    with portal.services.database.begin() as session:
        # A refresh token is not valid for calls.
        renewing = tokens.issue(
            portal.services,
            session,
            user_id=portal.admin.id,
            kind=TokenKind.REFRESH,
            ttl_s=600,
            family_id=uuid4(),
        )
    for wrong in (None, "x", token[:-3] + "abc", renewing):
        answer = post(http_url, wrong)
        assert answer.status_code == 401, wrong
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    tokens.revoke(portal.services, token)
    assert post(http_url, token).status_code == 401


def test_http_answers_only_to_its_own_names(portal: Portal, environment: dict[str, str]) -> None:
    token = reading_token(portal)
    with http_process(environment, "--allowed-host", "tools.example.org") as (url, _process):
        for good in ("localhost:1", "tools.example.org", "portal.example.org", "127.0.0.1"):
            assert post(url, token, Host=good).status_code == 200, good
        for wrong in ("evil.example.org", "portal.example.org.evil.com", "localhost.evil.com:80"):
            assert post(url, token, Host=wrong).status_code == 421, wrong
        assert post(url, token, Origin="https://evil.example.org").status_code == 403
        assert post(url, token, Origin=PUBLIC_URL).status_code == 200


def test_http_answers_503_without_a_database_and_401_for_a_wrong_token(
    portal: Portal, make_services: Callable[..., Services]
) -> None:
    away = make_services(database_url="postgresql://nobody@127.0.0.1:1/none")
    app = serving.web_app(away, TransportSecuritySettings())
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)

    async def call() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await http.post("/mcp", json=LIST, headers=portal.headers())

    answer = run_apart(lambda: asyncio.run(call()))
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "database_unavailable"
    assert int(answer.headers["Retry-After"]) > 0


def test_http_stops_at_a_signal_with_a_client_connected(
    portal: Portal, environment: dict[str, str]
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with http_process(environment) as (url, process), httpx2.Client() as client:
            token = {"Authorization": f"Bearer {reading_token(portal)}"}
            assert client.post(url, json=LIST, headers=HEADERS | token).status_code == 200
            process.send_signal(number)
            assert process.wait(20) == 0


# --- the process ----------------------------------------------------------------------------------


def test_stdio_ends_with_its_input_or_at_a_signal(
    portal: Portal, environment: dict[str, str]
) -> None:
    environment |= {"PORTAL_TOKEN": reading_token(portal), "PORTAL_LOG_LEVEL": "debug"}
    hello = (
        '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion":'
        ' "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}\n'
    )
    for number in (None, signal.SIGINT, signal.SIGTERM):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(MCP, env=environment, text=True, **pipes) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(hello)
            process.stdin.flush()
            assert '"knowledge-portal"' in process.stdout.readline()
            if number is not None:
                # Standard input stays open, so that only the signal ends the process.
                process.send_signal(number)
                assert process.wait(20) == 0
            left, errors = process.communicate(timeout=20)
            assert (process.returncode, left) == (0, "")
            assert "Traceback" not in errors


def run_mcp(environment: dict[str, str], *options: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*MCP, *options],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr.strip().splitlines()[-1]


def test_stdio_does_not_start_without_a_good_token(
    portal: Portal, environment: dict[str, str]
) -> None:
    status, output, words = run_mcp(environment)
    assert (status, output) == (1, "")
    assert words.startswith("portal: PORTAL_TOKEN is not set")
    token = reading_token(portal)
    tokens.revoke(portal.services, token)
    for wrong in (token, "nonsense"):
        status, output, words = run_mcp(environment | {"PORTAL_TOKEN": wrong})
        assert (status, output, words) == (1, "", f"portal: {InvalidToken()}")


def test_a_port_that_is_taken_is_reported_in_a_line(
    portal: Portal, environment: dict[str, str], http_url: str
) -> None:
    port = http_url.rsplit(":", 1)[1].removesuffix("/mcp")
    status, output, words = run_mcp(environment, "--http", "--port", port)
    assert (status, output) == (1, "")
    assert f"127.0.0.1:{port}" in words


def test_missing_extra_is_reported_in_one_line(environment: dict[str, str]) -> None:
    code = "import sys; sys.modules['mcp'] = None; from portal.processes.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "mcp"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "portal: this needs the extra: ./run setup --mcp\n"


def test_serving_pages_does_not_load_the_protocol() -> None:
    code = (
        "import sys, portal.processes.cli, portal.processes.worker\n"
        "import portal.processes.serving.supervisor\n"
        "import portal.web, portal.api\n"
        "sys.exit(any(name in sys.modules for name in ('mcp', 'mcp_types', 'starlette')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False)
    assert done.returncode == 0


def test_the_example_reads_the_best_document_both_ways(
    portal: Portal, environment: dict[str, str], http_url: str
) -> None:
    portal.add(HANDBOOK, title="Handbook")
    environment |= {"PORTAL_TOKEN": reading_token(portal), "HOME": os.environ.get("HOME", "/")}
    for options in ([], ["--url", http_url]):
        done = subprocess.run(
            [sys.executable, str(PROJECT / "examples/mcp_client.py"), *options, "refunds"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert f"- Handbook\n  {PUBLIC_URL}/documents/" in done.stdout
        assert done.stdout.endswith(f"Handbook\n\n{HANDBOOK}\n")


def test_session_that_has_to_set_up_a_second_factor_reads_nothing(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(sign_in={"require_second_factor": "everyone"})
    accounts.ensure_first_administrator(services)
    pair = sessions.sign_in(services, name="admin", password=PASSWORD)
    with pytest.raises(SecondFactorEnrolmentRequired):
        tools.reader(services, pair.access_token)
