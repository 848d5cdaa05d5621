"""The backup commands with embedded databases: a running one and a new one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import text

from portal.container import build_services
from portal.database.embedded import EmbeddedPostgres, borrowed
from portal.database.lock import DataDirLock
from portal.domain.search import SearchMode, SearchRequest
from portal.services.documents import library
from portal.services.operations import health, setup
from portal.services.people import accounts, sessions, tokens
from portal.services.search import engine
from tests.conftest import PASSWORD, SERVER, make_settings

LETTER = "灯塔的预算在第七章。The budget of the lighthouse is in section 7.\n" * 40


def portal(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("portal")), *map(str, arguments)]
    environment = {"PORTAL_EMBEDDING__PROVIDER": "hashing", "PORTAL_ADMIN_PASSWORD": PASSWORD}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=os.environ | environment
    )


@pytest.mark.slow
def test_serving_portal_is_backed_up_and_restored_in_another_directory(tmp_path: Path) -> None:
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "portal.tar"
    (tmp_path / "letter.txt").write_text(LETTER, encoding="utf-8")
    assert portal("import", tmp_path / "letter.txt", "--wait", "--data-dir", old).returncode == 0

    server = EmbeddedPostgres(old, extra_settings=SERVER)
    with DataDirLock(old) as lock:
        lock.announce("http://127.0.0.1:8000")
        services = build_services(make_settings(old, server.start(), secret_key=None))
        token = sessions.token_for(services, accounts.find_user(services, "admin"), ttl_s=600)
        assert "rehearsal" not in health.check(services)
        taken = portal("backup", file, "--data-dir", old)
        refused = portal("restore", file, "--replace", "--data-dir", old)
        rehearsed = portal("restore", file, "--rehearse", "--data-dir", old)
        after_success = health.check(services)["rehearsal"]
        (tmp_path / "half.tar").write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        failed = portal("restore", tmp_path / "half.tar", "--rehearse", "--data-dir", old)
        after_failure = health.check(services)["rehearsal"]
        with services.database.begin() as session:
            session.execute(text("DELETE FROM document_chunks"))
        assert portal("backup", tmp_path / "not found.tar", "--data-dir", old).returncode == 0
        lost = portal("restore", tmp_path / "not found.tar", "--rehearse", "--data-dir", old)
        services.database.dispose()
        assert server.is_running()
        server.stop()
    assert (taken.returncode, taken.stderr) == (0, "")
    assert (refused.returncode, "A portal already runs" in refused.stderr) == (1, True)
    assert (rehearsed.returncode, "rehearsed 1 documents" in rehearsed.stdout) == (0, True)
    assert (failed.returncode, after_success["status"], after_failure["status"]) == (
        1,
        "ok",
        "failed",
    )
    assert (lost.returncode, "only 0 found their document" in lost.stderr) == (1, True)
    assert after_failure["at"] > after_success["at"]
    assert not list(Path(tempfile.gettempdir()).glob("portal-rehearsal-*"))

    restored = portal("restore", file, "--data-dir", new)
    assert restored.returncode == 0, restored.stderr
    assert "restored 1 documents" in restored.stdout
    assert not list(tmp_path.glob(".*"))
    with borrowed(new, extra_settings=SERVER) as url:
        services = build_services(make_settings(new, url, secret_key=None))
        setup.repair_keyword_index(services)  # As every start does.
        assert sessions.sign_in(services, name="admin", password=PASSWORD)
        admin = accounts.find_user(services, "admin")
        assert tokens.authenticate(services, token).user == admin
        (letter,) = library.list_documents(services, admin).items
        assert b"".join(library.open_file(services, admin, letter.id).parts) == LETTER.encode()
        for mode in SearchMode:
            found = engine.search(services, admin, SearchRequest(query="灯塔", mode=mode))
            assert {hit.document_id for hit in found.hits} == {letter.id}, mode
        services.database.dispose()
