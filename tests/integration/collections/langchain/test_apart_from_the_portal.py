"""Programs' collections and the portal's documents are isolated from each other."""

from __future__ import annotations

import subprocess
import sys

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from portal.integrations.langchain import PostgresVectorStore
from portal.services.models import switching
from tests.conftest import Portal

_WORDS = "zebrafish migrate by moonlight"


@pytest.fixture
def others(portal: Portal) -> PostgresVectorStore:
    """Return a collection whose texts would be the best hits."""
    settings = portal.services.settings
    store = PostgresVectorStore("others", connection=settings)
    store.add_texts([_WORDS] * 30, [{"n": n} for n in range(30)])
    return store


def test_portal_searches_show_no_records_of_collections(
    portal: Portal, client: FlaskClient, others: PostgresVectorStore
) -> None:
    document = portal.add("A note on how zebrafish migrate.")
    for mode in ("hybrid", "vector", "keyword"):
        body = {"query": _WORDS, "mode": mode, "top_n": 20}
        answer = client.post("/api/knowledge/search", json=body, headers=portal.headers())
        results = answer.get_json()["results"]
        assert [result["document_id"] for result in results] == [str(document.id)], mode
    assert others.count() == 30


def test_portal_pages_show_no_records_of_collections(
    portal: Portal, others: PostgresVectorStore
) -> None:
    ids = portal.scalars("SELECT id FROM documents")
    jobs = portal.scalars("SELECT id FROM jobs")
    client = portal.client()
    listed = client.get("/api/knowledge/documents").get_json()
    assert listed["total_count"] == 0
    for path in (
        f"/api/knowledge/documents/{ids[0]}",
        f"/api/knowledge/documents/{ids[0]}/content",
        f"/documents/{ids[0]}",
        f"/api/v1/jobs/{jobs[0]}/chunks",
    ):
        assert client.get(path).status_code == 404, path
    path = f"/api/user/document-defaults/{ids[0]}"
    switched = client.put(path, json={"enabled": False})
    assert switched.status_code == 404
    assert client.delete(f"/api/knowledge/documents/{ids[0]}").status_code == 404
    assert others.count() == 30


def test_portal_ignores_the_models_of_collections(
    portal: Portal, others: PostgresVectorStore
) -> None:
    names = [summary.model.name for summary in switching.list_models(portal.services)]
    assert names == [portal.services.embedder.name]
    # A document indexed now is embedded for the portal's model only.
    portal.add("Written after the collection was made.")
    with portal.services.database.begin() as session:
        counts = session.execute(
            text("SELECT model_id, count(*) FROM chunk_embeddings GROUP BY 1 ORDER BY 1")
        )
        assert [count for _model, count in counts] == [1, 30]


def test_collections_exclude_the_documents_of_the_portal(
    portal: Portal, others: PostgresVectorStore
) -> None:
    document = portal.add("Quarterly report of the portal.")
    assert others.similarity_search("Quarterly report", k=50, filter={"n": -1}) == []
    assert "Quarterly report of the portal." not in others.get()["documents"]
    assert not others.delete_document(document.id)
    others.delete(where_document={"$contains": " "})
    others.delete_collection()
    assert portal.scalars("SELECT id FROM documents") == [document.id]


def test_portal_model_embeds_where_none_is_given(
    portal: Portal, others: PostgresVectorStore
) -> None:
    expected = portal.services.embedder.embed_query(_WORDS)
    assert others.embeddings.embed_query(_WORDS) == pytest.approx(expected.tolist())
    assert others.similarity_search(_WORDS, k=1)[0].page_content == _WORDS


def test_serving_needs_no_langchain() -> None:
    script = (
        "import sys, portal, portal.processes.worker, portal.processes.cli, portal.container\n"
        "print([name for name in sys.modules if name.startswith(('langchain', 'langsmith'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["langchain", "langchain.store", "connectors"])
def test_import_without_the_extra_names_it(module: str) -> None:
    script = (
        "import sys\nsys.modules['langchain_core'] = None\n"
        "import portal, portal.container, portal.processes.cli\n"
        f"import portal.integrations.{module}"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: portal.integrations.langchain needs the extra `langchain`: "
        "run ./run setup --langchain"
    )
