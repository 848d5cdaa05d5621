"""The portal under load: a web process, a worker and accounts on a kept corpus."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import psutil
import psycopg

from bench.cluster.nodes import wait
from bench.cluster.programs import Process, free_port
from bench.corpus import Corpus
from bench.promises import slow_chat_model
from portal.database.server.postmaster import running_postmaster
from portal.services.people import accounts

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
NAMES = "load"
PASSWORD = "correct horse battery"
# Less than the portal waits for a first word, even on a busy machine.
MODEL_LATENCY_S = 1.5
_START_TIMEOUT_S = 120.0
# One hash for all of them: it costs a tenth of a second, and is verified at each sign-in.
_COPIES = """
    INSERT INTO users
    SELECT (jsonb_populate_record(u, jsonb_build_object(
               'id', gen_random_uuid(), 'name', %(names)s || n, 'name_skeleton', NULL))).*
      FROM users u, generate_series(2, %(count)s) n
     WHERE u.name = %(names)s || '1'
    ON CONFLICT DO NOTHING
"""
_SIZES = """
    SELECT (SELECT count(*) FROM document_chunks), pg_database_size(current_database()),
           (SELECT coalesce(sum(pg_relation_size(i.indexrelid)), 0) FROM pg_index i
              JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
             WHERE a.amname IN ('hnsw', 'ivfflat'))
"""


@dataclass(frozen=True)
class Served:
    """A portal that answers at `port`; `trees` are its processes and the database server's."""

    port: int
    url: str
    trees: dict[str, psutil.Process]


@contextmanager
def served(
    corpus: Corpus, folder: Path, cluster: Path, *, environment: dict[str, str]
) -> Iterator[Served]:
    """Serve the corpus as `portal serve` does, with the default limits."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with ExitStack() as stack:
        variables = os.environ | {
            "PYTHONPATH": str(ROOT),
            "DATABASE_URL": corpus.services.database.url,
            "PORTAL_DATA_DIR": str(folder),
            "PORTAL_SECRET_KEY": "kept nowhere: only a load test signs in to this",
            "PORTAL_CHAT__PROVIDER": "openai",
            "PORTAL_CHAT__API_BASE": stack.enter_context(slow_chat_model(MODEL_LATENCY_S)),
            # All users of the test have the same address.
            "PORTAL_WEB__CONNECTIONS_PER_ADDRESS": "0",
            **environment,
        }
        web = [sys.executable, "-m", "gunicorn", "wsgi:app", "--bind", f"{HOST}:{port}"]
        worker = [sys.executable, "-c", "from portal.processes.cli import main; main()", "worker"]
        processes = {
            name: Process(
                name, command, log=folder / f"{name}.log", cwd=ROOT, environment=variables
            )
            for name, command in (("web", [*web, "--no-control-socket"]), ("worker", worker))
        }
        for process in processes.values():
            stack.callback(process.stop)
            process.start()
        wait(lambda: _answers(port), _START_TIMEOUT_S, f"the portal did not start: {folder}")
        postmaster = running_postmaster(cluster)
        assert postmaster is not None
        trees = {name: psutil.Process(one.pid) for name, one in processes.items()}
        yield Served(
            port,
            corpus.services.database.conninfo,
            trees | {"PostgreSQL": psutil.Process(postmaster.pid)},
        )


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://{HOST}:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def make_accounts(corpus: Corpus, count: int) -> None:
    """Create the accounts load1, load2, … with one password, unless they exist."""
    with psycopg.connect(corpus.services.database.conninfo) as connection:
        query = "SELECT 1 FROM users WHERE name = %s"
        if connection.execute(query, [f"{NAMES}1"]).fetchone() is None:
            accounts.create_user(corpus.services, name=f"{NAMES}1", password=PASSWORD)
        connection.execute(_COPIES, {"names": NAMES, "count": count})


def sizes(corpus: Corpus) -> tuple[int, int, int]:
    """Return the number of chunks, and the bytes of the database and of its vector indexes."""
    with psycopg.connect(corpus.services.database.conninfo) as connection:
        row = connection.execute(_SIZES).fetchone()
        assert row is not None
        return int(row[0]), int(row[1]), int(row[2])


def run_locust(port: int, plan: Path, record: Path) -> int:
    """Run locust's users until the stages of the plan are over; return locust's exit status."""
    command = [sys.executable, "-m", "locust", "-f", str(ROOT / "bench" / "load" / "scenario.py")]
    command += ["--headless", "--only-summary", "--host", f"http://{HOST}:{port}"]
    variables = os.environ | {"LOAD_PLAN": str(plan), "LOAD_RECORD": str(record)}
    with (record.with_suffix(".log")).open("w") as log:
        done = subprocess.run(
            command, cwd=ROOT, env=variables, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    return done.returncode
