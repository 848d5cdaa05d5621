"""What is left of a user anywhere in the database after their account is erased."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta

from flask.testing import FlaskClient
from sqlalchemy import text

from bench import databases
from portal.database.server.client_programs import find_program
from portal.domain.documents import Visibility
from portal.domain.people import DocumentFate
from portal.processes.worker import work_until_empty
from portal.services.answers import conversations
from portal.services.operations import account_deletion, maintenance
from portal.services.people import sessions
from portal.services.search import saved
from tests.conftest import PASSWORD, Portal
from tests.factories.answers import ask
from tests.factories.browser import Browser
from tests.factories.uploads import run_apart

NAME, TITLE = "quixadaname", "Quixtitle"
# One word each for a document, a question, a saved search, a tag, a folder and a domain.
WORDS = ("quixword", "quixquestion", "quixsaved", "quixtag", "quixfolder", "quixdomain")


def dumped(portal: Portal) -> dict[str, str]:
    """Return the rows of each table as pg_dump writes them, in lower case."""
    program, _ = find_program("pg_dump", major=18)
    command = [str(program), "--data-only", databases.plain(portal.services.database.url)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    tables: dict[str, str] = {}
    name = ""
    for line in done.stdout.splitlines():
        if line.startswith("COPY public."):
            name = line.removeprefix("COPY public.").split(" ")[0]
        tables[name] = tables.get(name, "") + line.lower() + "\n"
    return tables


def holding(tables: dict[str, str], word: str) -> set[str]:
    """Return the tables that contain the word, as text or as bytes."""
    return {name for name, rows in tables.items() if word in rows or word.encode().hex() in rows}


def leave_traces(portal: Portal, browser: Browser) -> None:
    """Let a user do everything that leaves traces."""
    ada = portal.user(NAME)
    browser.sign_in(NAME, PASSWORD)
    sessions.sign_in(portal.services, name=NAME, password=PASSWORD)
    content = f"The {WORDS[0]} of the lighthouse is kept in a drawer. Nobody knows the {WORDS[0]}."
    document = portal.add(
        content, name=f"{TITLE}.txt", title=TITLE, owner=ada, visibility=Visibility.PRIVATE,
        domain=WORDS[5],
    )  # fmt: skip
    headers = portal.headers(ada)
    client = browser.client
    folder = client.post(
        "/api/folders", json={"name": WORDS[4], "visibility": "private"}, headers=headers
    )
    assert folder.status_code < 300, folder.text
    for change in (
        {"action": "add_tag", "tag": WORDS[3]},
        {"action": "switch", "enabled": False},
        {"action": "switch", "enabled": True},
        {"action": "move", "folder_id": folder.json["id"]},
    ):
        body = {"ids": [str(document.id)], **change}
        assert client.post("/api/knowledge/bulk", json=body, headers=headers).status_code == 200
    talk = conversations.create(portal.services, ada)
    answer = ask(portal.services, ada, talk.id, f"Where is the {WORDS[0]} {WORDS[1]} kept?")
    assert answer.citations
    saved.save(portal.services, ada, WORDS[2], {"q": WORDS[0]})
    run_apart(work_until_empty, portal.services)


def test_erasure_leaves_only_names_in_the_audit_log_and_titles_of_tombstones(
    portal: Portal, client: FlaskClient
) -> None:
    leave_traces(portal, Browser(client.application))
    before = dumped(portal)
    for word in (NAME, TITLE.lower(), *WORDS):
        assert holding(before, word), f"{word} was never stored: the test shows nothing"
    user = next(u for u in _users(portal) if u[1] == NAME)
    account_deletion.delete_account(
        portal.services, portal.admin, user[0], documents=DocumentFate.PURGE
    )
    maintenance.run(portal.services)
    after = dumped(portal)
    left = {word: holding(after, word) for word in (NAME, TITLE.lower(), *WORDS)}
    assert {word: tables for word, tables in left.items() if tables} == {
        NAME: {"audit_log"},
        TITLE.lower(): {"audit_log", "documents"},
    }
    # Entries of the audit log are deleted after their time.
    long_ago = datetime.now(UTC) - timedelta(days=portal.services.settings.audit.retention_days + 1)
    portal.execute("UPDATE audit_log SET created_at = :then", then=long_ago)
    maintenance.run(portal.services)
    assert holding(dumped(portal), NAME) == set()


def _users(portal: Portal) -> list[tuple[object, ...]]:
    with portal.services.database.begin() as session:
        return [tuple(row) for row in session.execute(text("SELECT id, name FROM users"))]
