"""Copies of a corpus: one without folders, and one in a tree of folders, some for members only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psycopg
from sqlalchemy.engine import make_url

from bench import databases
from bench.corpus import Corpus, attach
from bench.over_http import UNLIMITED
from portal.domain.search.bm25 import INDEXES
from portal.services.operations import setup

FOLDERS, GROUPS, MEMBERS, CHANGED = 2_000, 200, 200, 10_000
CHANGED_DOMAIN = "changed"
_SECTIONS, _PER_SECTION = 20, 9
_LOWEST = _SECTIONS * (_PER_SECTION + 1)
_GROUPS_PER_USER = 5

# Triggers would run for each row; here everything is set at once, as they would leave it. A copy of
# a BM25 index would share its state with the original.
_EMPTY = f"""
    DROP INDEX {", ".join(index.name for index in INDEXES)};
    SET session_replication_role = replica;
    UPDATE documents SET folder_id = NULL, gate_id = NULL;
    DELETE FROM folder_switches; DELETE FROM folder_states; DELETE FROM folders;
    UPDATE documents SET domain = '{CHANGED_DOMAIN}' WHERE id IN (
        SELECT id FROM documents WHERE deleted_at IS NULL AND visibility = 'shared'
        ORDER BY id LIMIT {CHANGED}
    );
    SET session_replication_role = DEFAULT;
"""
# Sections at the top, folders in each, and the others below those. Every tenth folder of the middle
# is open to the members of groups only. Documents lie at random in all but the first.
_FILL = f"""
    SELECT setseed(0.5);
    CREATE TEMP TABLE tree AS
        SELECT place, gen_random_uuid() AS id, CASE
            WHEN place < {_SECTIONS} THEN NULL
            WHEN place < {_LOWEST} THEN (place - {_SECTIONS}) / {_PER_SECTION}
            ELSE {_SECTIONS} + place % {_LOWEST - _SECTIONS} END AS parent
        FROM generate_series(0, {FOLDERS - 1}) place;
    INSERT INTO folders (id, parent_id, owner_id, name, visibility)
        SELECT t.id, p.id, u.id, 'Folder ' || t.place, CASE
            WHEN t.place >= {_SECTIONS} AND t.place < {_LOWEST}
                AND t.place % 10 = 0 THEN 'members' ELSE 'shared' END
        FROM tree t LEFT JOIN tree p ON p.place = t.parent
        JOIN users u ON u.name = 'owner' ORDER BY t.place;
    INSERT INTO users (name, password_hash)
        SELECT 'member ' || number, password_hash
        FROM users, generate_series(1, {MEMBERS}) number WHERE name = 'owner';
    INSERT INTO groups (name) SELECT 'Group ' || number FROM generate_series(1, {GROUPS}) number;
    INSERT INTO group_members (group_id, user_id)
        SELECT g.id, u.id FROM users u CROSS JOIN LATERAL (
            SELECT id FROM groups WHERE u.name <> '' ORDER BY random() LIMIT {_GROUPS_PER_USER}
        ) g WHERE u.name LIKE 'member %';
    INSERT INTO folder_members (folder_id, group_id, role)
        SELECT f.id, g.id, 'reader' FROM folders f CROSS JOIN LATERAL (
            SELECT id FROM groups WHERE f.name <> '' ORDER BY random() LIMIT {GROUPS // 10}
        ) g WHERE f.visibility = 'members';
    UPDATE documents d SET folder_id = t.id
        FROM (SELECT id, 1 + floor(random() * {FOLDERS - 1}) AS place FROM documents) at
        JOIN tree t ON t.place = at.place WHERE d.id = at.id;
"""


@dataclass(frozen=True, slots=True)
class Filed:
    """A copy of the corpus; `folder_id` is one of its sections, or None without folders."""

    corpus: Corpus
    folder_id: UUID | None


@contextmanager
def filed_copies(corpus: Corpus, data_dir: Path) -> Iterator[tuple[Filed, Filed]]:
    """Yield copies of the corpus without folders and with them; both are dropped afterwards."""
    url = corpus.services.database.url
    corpus.services.database.dispose()  # A database in use cannot be a template.
    with ExitStack() as stack:
        copies = [
            stack.enter_context(_copy(corpus, data_dir, url, kind)) for kind in ("flat", "filed")
        ]
        for copy, statements in zip(copies, (_EMPTY, _EMPTY + _FILL), strict=True):
            with psycopg.connect(copy.services.database.conninfo, autocommit=True) as connection:
                with connection.transaction():
                    connection.execute(statements)
                setup.repair_keyword_index(copy.services)
                connection.execute("VACUUM (ANALYZE)")
        with psycopg.connect(copies[1].services.database.conninfo) as connection:
            row = connection.execute("SELECT id FROM folders WHERE name = 'Folder 0'").fetchone()
            assert row is not None
        yield Filed(copies[0], None), Filed(copies[1], row[0])


@contextmanager
def _copy(corpus: Corpus, data_dir: Path, url: str, kind: str) -> Iterator[Corpus]:
    source = make_url(url).database
    server_url = databases.named(url, "postgres")
    template = f"TEMPLATE {source} STRATEGY file_copy"
    with databases.temporary(server_url, f"{source}_{kind}", template) as address:
        copy = attach(corpus.size, data_dir, address, mean_chunks=1, **UNLIMITED)
        try:
            yield copy
        finally:
            copy.services.database.dispose()
