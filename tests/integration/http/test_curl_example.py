"""`examples/curl.sh` works on a running portal."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import text

from portal.domain.people import Scope
from portal.processes.worker import work_until_empty
from portal.services.people import sessions
from tests.conftest import PASSWORD, Portal
from tests.factories.servers.endpoint import dead_port, wait_until
from tests.factories.servers.web import web_process
from tests.factories.uploads import run_apart

SCRIPT = Path(__file__).resolve().parents[3] / "examples/curl.sh"
QUESTION = "When is the canteen open?"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose `curl` and `python3` record the arguments visible to `ps`."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("curl", "python3"):
        program = programs / name
        program.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/seen\nexec {shutil.which(name)} "$@"\n',
            encoding="utf-8",
        )
        program.chmod(0o755)
    return {"PATH": f"{programs}:{os.environ['PATH']}", "PORTAL_PASSWORD": PASSWORD}


def start(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["sh", str(SCRIPT), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refusal(environment: Mapping[str, str], *arguments: str) -> str:
    """Run the script, expect it to fail, and return its message."""
    with start(environment, *arguments) as process:
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (1, "")
    assert errors.count("curl.sh: ") == 1
    return errors


def tokens_in_use(portal: Portal) -> int:
    with portal.services.database.begin() as session:
        live = "SELECT count(*) FROM tokens WHERE revoked_at IS NULL AND kind <> 'personal'"
        return session.scalar(text(live)) or 0


def test_the_script_does_what_it_says(
    portal: Portal, environment: dict[str, str], tmp_path: Path
) -> None:
    handbook = tmp_path / 'Handbook, "new"; 手册.md'
    handbook.write_text("# Canteen\n\nThe canteen is open from noon to two.\n", encoding="utf-8")
    _, token = sessions.create_personal_token(
        portal.services, portal.admin, name="script", ttl_s=600, scopes=[Scope.WRITE]
    )
    before = tokens_in_use(portal)
    with web_process(portal.services.settings, tmp_path / "web") as url:
        environment |= {"PORTAL_URL": f"{url}/"}
        with start(environment, str(handbook), QUESTION) as process:
            queued = "SELECT count(*) FROM jobs WHERE status = 'queued'"

            def is_uploaded() -> bool:
                return process.poll() is not None or bool(portal.scalar(queued))

            wait_until(is_uploaded, within_s=60, complaint="nothing was uploaded")
            run_apart(work_until_empty, portal.services)
            output, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, ""), errors
        assert "Signed in as admin." in output
        assert "It is ready." in output
        assert "The canteen is open from noon to two." in output
        assert f"{url}/documents/" in output
        assert "[1] matches the document word for word." in output
        assert tokens_in_use(portal) == before

        with_token = environment | {"PORTAL_TOKEN": token, "PORTAL_PASSWORD": ""}
        with start(with_token, str(handbook), QUESTION) as process:
            again, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
        assert "Signed in" not in again
        assert "[1] matches the document word for word." in again

        arguments = (str(handbook), QUESTION)
        assert "401" in refusal(environment | {"PORTAL_PASSWORD": "wrong"}, *arguments)
        assert "401" in refusal(environment | {"PORTAL_TOKEN": "wrong"}, *arguments)
        assert "PORTAL_TOKEN" in refusal(environment | {"PORTAL_PASSWORD": ""}, *arguments)
    away = environment | {"PORTAL_URL": f"http://127.0.0.1:{dead_port()}"}
    assert "is the portal running" in refusal(away, *arguments)
    assert "no file" in refusal(environment, "missing.md", QUESTION)
    assert "usage" in refusal(environment)

    seen = (tmp_path / "seen").read_text(encoding="utf-8")
    assert "/api/auth/token" in seen
    for secret in (PASSWORD, token, "Bearer"):
        assert secret not in seen
