"""A server that comes back without its last transactions, as after a failover."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from sqlalchemy import text

from portal.container import build_services
from portal.database.embedded import EmbeddedPostgres
from portal.domain.search import SearchMode, SearchRequest
from portal.services.operations import setup
from portal.services.search import engine
from tests.conftest import SERVER, Portal, make_settings


@pytest.mark.slow
def test_nothing_that_was_cached_under_a_lost_transaction_is_taken_for_current(
    run_dir: Path,
) -> None:
    server = EmbeddedPostgres(run_dir / "lossy", extra_settings=SERVER)
    services = build_services(make_settings(run_dir / "lossy", server.start()))
    list(setup.prepare_database(services))
    portal = Portal.of(services)
    documents = [portal.add(f"The heron keeps the lamp of tower {n}.").id for n in range(2)]
    copy = run_dir / "before"

    def switch_off(document_id: object) -> tuple[list[object], str]:
        """Switch a document off and search; return what was found, and the transaction's id."""
        with services.database.begin() as session:
            row = {"user": portal.admin.id, "document": document_id}
            insert = "INSERT INTO user_document_defaults VALUES (:user, :document, FALSE)"
            session.execute(text(insert), row)
        request = SearchRequest("heron lamp", mode=SearchMode.VECTOR)
        hits = engine.search(services, portal.admin, request).hits
        used = portal.scalar("SELECT CAST(xmin AS text) FROM user_document_defaults")
        return [hit.document_id for hit in hits], used

    try:
        server.stop()
        shutil.copytree(server.cluster, copy)
        server.start()
        found, lost = switch_off(documents[0])
        assert found == [documents[1]]
        server.stop()
        _overwrite(server.cluster, copy)
        server.start()
        found, used = switch_off(documents[1])
        assert used == lost, "the id did not recur, and nothing was tried"
        assert found == [documents[0]]
    finally:
        services.database.dispose()
        server.stop()


def _overwrite(cluster: Path, copy: Path) -> None:
    """Replace a server's files with a copy that belongs to the server's user."""
    owner = cluster.stat()
    shutil.copytree(copy, cluster, dirs_exist_ok=True)
    for path in (cluster, *cluster.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
