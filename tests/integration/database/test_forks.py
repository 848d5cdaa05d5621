"""A program that forks its workers after it has opened the database."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import Portal

_SCRIPT = """
import os, sys
from sqlalchemy import text
from portal.store.session import Database

database = Database(sys.argv[1])

def backend():
    with database.read() as session:
        return session.scalar(text("SELECT pg_backend_pid()"))

mine = backend()
child = os.fork()
if not child:
    os._exit(0 if backend() != mine else 1)
_, status = os.waitpid(child, 0)
sys.exit(status or backend() != mine)
"""


def test_forked_child_leaves_its_parents_connections_alone(portal: Portal) -> None:
    url = portal.services.database.url
    command = [sys.executable, "-c", _SCRIPT, url]
    done = subprocess.run(command, check=False, timeout=60)
    assert done.returncode == 0
