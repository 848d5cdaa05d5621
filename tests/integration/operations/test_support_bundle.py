"""The support bundle describes the state of a portal, without secrets of users or operators."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner
from prometheus_client import CollectorRegistry, Counter

from portal.container import build_services
from portal.observability import metric_files
from portal.processes.cli import main
from portal.services import Services
from portal.services.answers import conversations
from portal.services.documents.ingestion import indexing
from portal.services.documents.intake import uploads
from portal.services.operations.reports import support_bundle
from tests.conftest import Portal, make_settings
from tests.factories.answers import ask
from tests.factories.uploads import upload

CANARY = "zanzibar"
PARTS = {
    *("versions.json", "settings.json", "doctor.json", "health.json", "database.json"),
    "metrics.txt",
}
SECRETS = {
    "admin_password": f"{CANARY} battery",
    "secret_key": f"{CANARY} is a key that is long enough for HS256",
    "embedding": {"provider": "hashing", "api_key": CANARY, "api_base": "http://h/v1"},
    "chat": {"api_key": CANARY},
    "metrics": {"cached_s": 0, "token": f"{CANARY}-{CANARY}"},
    "redis_url": f"redis://:{CANARY}@127.0.0.1:1/0",
    "database_replica_url": f"postgresql://me:{CANARY}@127.0.0.1:1/x?password={CANARY}",
}


def test_no_secret_query_title_name_or_text_is_in_a_bundle(
    make_services: Callable[..., Services],
) -> None:
    services = make_services(**SECRETS)
    portal = Portal.of(services)
    ada = portal.user(f"ada-{CANARY}")
    portal.add(f"The {CANARY} sings at dawn.", name=f"{CANARY}.txt", title=f"A {CANARY}", owner=ada)
    talk = conversations.create(services, ada)
    ask(services, ada, talk.id, f"Where does the {CANARY} sing?")
    damaged = uploads.store_upload(
        services, ada, stream=upload(b"%PDF-1.7 " + CANARY.encode()), file_name=f"{CANARY}.pdf"
    )
    assert damaged.document.job_id is not None
    indexing.index_document(services, damaged.document.job_id)

    files = dict(support_bundle.make_bundle(services))
    assert set(files) == PARTS
    assert [name for name, text in files.items() if CANARY in text.lower()] == []
    assert "not_read" not in "".join(files.values())
    database = json.loads(files["database.json"])
    assert [(row["code"], row["count"]) for row in database["failed_jobs"]] != []
    assert {row["name"] for row in database["tables"]} >= {"documents", "messages"}
    assert all(row["is_valid"] for row in database["indexes"])
    settings = json.loads(files["settings.json"])
    assert settings["redis_url"] == "set"
    assert settings["search"]["hnsw"]["m"] == 16
    assert json.loads(files["doctor.json"])["schema"]
    assert json.loads(files["versions.json"])["packages"]["SQLAlchemy"]


def test_a_bundle_is_made_without_a_database(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
    services = build_services(settings)
    files = dict(support_bundle.make_bundle(services))
    services.database.dispose()
    assert set(files) == PARTS
    assert json.loads(files["database.json"]) == {"not_read": "database_unavailable"}
    assert json.loads(files["health.json"])["health"]["checks"]["database"] == "unavailable"


def test_the_command_writes_a_new_file_that_only_its_owner_reads(
    tmp_path: Path, database_url: str
) -> None:
    with metric_files.joined(tmp_path):
        # A metric that is created after joining is stored in the shared files.
        Counter("portal_canary", "", registry=CollectorRegistry()).inc()
    file = tmp_path / "bundle.zip"
    arguments = ["--data-dir", str(tmp_path), "doctor", "--bundle", str(file)]
    environment = {"DATABASE_URL": database_url, "PORTAL_EMBEDDING__PROVIDER": "hashing"}
    done = CliRunner().invoke(main, arguments, env=environment)
    assert (done.exit_code, "read it before you send it" in done.output) == (0, True), done.output
    assert file.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(file) as archive:
        assert set(archive.namelist()) == PARTS
        assert "portal_canary_total 1.0" in archive.read("metrics.txt").decode()
    again = CliRunner().invoke(main, arguments, env=environment)
    assert again.exit_code == 1
    assert "exists" in again.output
