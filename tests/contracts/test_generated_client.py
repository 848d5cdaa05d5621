"""A client generated from /openapi works against a live portal."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID, uuid4

import pytest
from werkzeug.serving import make_server

from portal import create_app
from portal.services.documents.ingestion import indexing
from tests.conftest import PASSWORD, Portal
from tests.factories.servers import running

PACKAGE = "generated_portal_client"

pytestmark = pytest.mark.slow


@pytest.fixture
def address(portal: Portal) -> Iterator[str]:
    """Serve this test's portal; yield its address."""
    server = make_server("127.0.0.1", 0, create_app(portal.services), threaded=True)
    with running(server):
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def generated(portal: Portal, tmp_path: Path) -> Iterator[ModuleType]:
    """Generate the client package from the document that the portal serves."""
    document = tmp_path / "openapi.json"
    document.write_bytes(create_app(portal.services).test_client().get("/openapi").data)
    config = tmp_path / "config.yaml"
    config.write_text("post_hooks: []\n", encoding="utf-8")
    command = [str(Path(sys.executable).with_name("openapi-python-client")), "generate"]
    command += ["--path", str(document), "--config", str(config), "--meta", "none"]
    command += ["--output-path", str(tmp_path / PACKAGE), "--fail-on-warning"]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(tmp_path))
    yield importlib.import_module(PACKAGE)
    sys.path.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


def call(group: str, operation: str, **arguments: Any) -> Any:
    """Call an operation; return the response as the client's own model."""
    return importlib.import_module(f"{PACKAGE}.api.{group}.{operation}").sync(**arguments)


def test_every_operation_has_a_function(generated: ModuleType, portal: Portal) -> None:
    spec = create_app(portal.services).test_client().get("/openapi").get_json()
    wanted = {
        method["operationId"] for methods in spec["paths"].values() for method in methods.values()
    }
    folder = Path(generated.__file__ or "").parent / "api"
    assert {path.stem for path in folder.glob("*/*.py")} - {"__init__"} == wanted


def test_a_program_signs_in_uploads_searches_and_asks(
    generated: ModuleType, portal: Portal, address: str
) -> None:
    models = importlib.import_module(f"{PACKAGE}.models")
    types = importlib.import_module(f"{PACKAGE}.types")
    signed_in = call(
        "sign_in",
        "auth_create_token",
        client=generated.Client(base_url=address),
        body=models.Credentials(username="admin", password=PASSWORD),
    )
    client = generated.AuthenticatedClient(base_url=address, token=signed_in.access_token)

    file = types.File(payload=io.BytesIO("年假为每年十五天。".encode()), file_name="leave.txt")
    body = models.KnowledgeUploadDocumentsBody(file=[file], title="Leave")
    uploaded = call("knowledge", "knowledge_upload_documents", client=client, body=body)
    [document] = uploaded.documents
    assert document.title == "Leave"
    indexing.index_document(portal.services, document.job_id)

    listed = call("knowledge", "knowledge_list_documents", client=client, limit=10)
    assert [one.id for one in listed.documents] == [document.id]
    assert listed.documents[0].status == "ready"

    found = call(
        "knowledge", "knowledge_search", client=client, body=models.SearchBody(query="年假")
    )
    assert found.results[0].document_id == document.id
    assert isinstance(found.results[0].chunk_id, UUID)

    made = call("conversations", "conversations_create_conversation", client=client)
    answer = call(
        "conversations",
        "conversations_ask",
        client=client,
        conversation_id=made.id,
        body=models.MessageBody(content="年假有多少天？"),
    )
    assert answer.citations[0].document_id == document.id

    missing = call("knowledge", "knowledge_get_document", client=client, document_id=uuid4())
    assert missing.error.code == "not_found"
    assert missing.error.request_id
