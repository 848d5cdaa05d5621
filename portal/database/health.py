"""Shortcomings of a database server for the portal, with their effect and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, text

from portal.database.bm25.indexes import Bm25State, read_state
from portal.database.extensions import (
    MIN_PGVECTOR,
    MIN_SERVER,
    Extension,
    read_extensions,
    server_version,
    version_tuple,
)
from portal.domain.search import NO_TEXTSEARCH, TEXTSEARCH_REMEDY

_MIB = 1024 * 1024
# Building an index of 50,000 chunks of 512 dimensions in half precision takes about this much.
_MIN_MAINTENANCE_BYTES = 256 * _MIB
_MIN_BUFFERS_BYTES = 256 * _MIB
# Above this the planner assumes spinning disks and avoids index scans that are fast.
_MAX_RANDOM_PAGE_COST = 2.0
_BM25_STATES = {
    "absent": "missing",
    "stale": "out of date",
    "rebuilding": "being rebuilt",
}
_JUDGED_SETTINGS = (
    "fsync",
    "full_page_writes",
    "jit",
    "maintenance_work_mem",
    "random_page_cost",
    "shared_buffers",
)


@dataclass(frozen=True)
class Shortcoming:
    """A shortcoming of the server. With `is_fatal` the portal cannot use it."""

    what: str
    cost: str
    remedy: str
    is_fatal: bool = False


@dataclass(frozen=True)
class ServerReport:
    """The report of `portal doctor` and /health/vector_store about the database server."""

    server_version: str
    extensions: dict[str, str | None]
    bm25: Bm25State
    lacks: tuple[Shortcoming, ...]

    @property
    def is_fit(self) -> bool:
        """Return whether the portal can use this server."""
        return not any(lack.is_fatal for lack in self.lacks)


def report(connection: Connection, *, wants_bm25: bool = True) -> ServerReport:
    """Inspect the server of `connection` without changing anything."""
    version = server_version(connection)
    extensions = read_extensions(connection)
    textsearch = extensions["pg_textsearch"]
    bm25 = read_state(connection) if textsearch.installed else Bm25State("absent")
    lacks = [
        *_check_version(version),
        *_check_encoding(connection),
        *_check_extensions(extensions),
        *(_check_bm25(connection, bm25, textsearch) if wants_bm25 else ()),
        *_check_settings(connection),
    ]
    return ServerReport(
        server_version=".".join(str(part) for part in version),
        extensions={name: extension.installed for name, extension in extensions.items()},
        bm25=bm25,
        lacks=tuple(lacks),
    )


def _check_version(version: tuple[int, ...]) -> Iterator[Shortcoming]:
    if version < MIN_SERVER:
        yield Shortcoming(
            what=f"PostgreSQL {version[0]} is older than {MIN_SERVER[0]}",
            cost="the portal does not start",
            remedy="upgrade the server, or unset DATABASE_URL to use the embedded one",
            is_fatal=True,
        )


def _check_encoding(connection: Connection) -> Iterator[Shortcoming]:
    if connection.execute(text("SHOW server_encoding")).scalar_one() != "UTF8":
        yield Shortcoming(
            what="the database's encoding is not UTF8",
            cost="Chinese text cannot be stored",
            remedy="create a new database: CREATE DATABASE portal ENCODING 'UTF8' "
            "TEMPLATE template0",
            is_fatal=True,
        )


def _check_extensions(extensions: dict[str, Extension]) -> Iterator[Shortcoming]:
    vector, wanted = extensions["vector"], ".".join(str(part) for part in MIN_PGVECTOR)
    found = vector.installed or vector.available
    if found is None or version_tuple(found) < MIN_PGVECTOR:
        have = f"pgvector {found}" if found else "no pgvector"
        yield Shortcoming(
            what=f"{have}, where {wanted} is the minimum",
            cost="the portal does not start",
            remedy=f"install pgvector {wanted} or newer on the server, then run portal migrate",
            is_fatal=True,
        )
    elif vector.installed is None:
        yield _not_created(vector, "the portal does not start")
    costs = {
        "pg_trgm": "fuzzy search corrects words with one error only",
        "unaccent": "words that differ in accents are not matched",
    }
    for name, cost in costs.items():
        if extensions[name].installed is not None:
            continue
        if extensions[name].available is not None:
            yield _not_created(extensions[name], cost)
        else:
            remedy = "install PostgreSQL's contrib package on the server, then run portal migrate"
            yield Shortcoming(what=f"no {name}", cost=cost, remedy=remedy)


def _not_created(extension: Extension, cost: str) -> Shortcoming:
    return Shortcoming(
        what=f"{extension.name} {extension.available} is available, but not created",
        cost=f"until then {cost}",
        remedy="run portal migrate, which creates it, or as the database's administrator "
        f"CREATE EXTENSION {extension.name}",
    )


def _check_bm25(
    connection: Connection, bm25: Bm25State, textsearch: Extension
) -> Iterator[Shortcoming]:
    if textsearch.installed is None:
        cost = (
            "hybrid search is semantic only; searches for words alone rank by ts_rank_cd, "
            "which does not weigh rare words"
        )
        if textsearch.available is None:
            yield Shortcoming(what=NO_TEXTSEARCH, cost=cost, remedy=TEXTSEARCH_REMEDY)
        else:
            yield _not_created(textsearch, cost)
        return
    is_migrated = connection.scalar(text("SELECT to_regclass('bm25_index_state')")) is not None
    if is_migrated and bm25.state != "ready":
        yield Shortcoming(
            what=f"the keyword index is {_BM25_STATES[bm25.state]}",
            cost="until it is back, hybrid search is semantic only and searches for words "
            "alone rank by ts_rank_cd",
            remedy="a running worker rebuilds it, in minutes where there are many chunks",
        )


def _check_settings(connection: Connection) -> Iterator[Shortcoming]:
    rows = connection.execute(
        text("SELECT name, setting, unit FROM pg_settings WHERE name = ANY(:names)"),
        {"names": list(_JUDGED_SETTINGS)},
    )
    settings = {row.name: (row.setting, row.unit) for row in rows}
    for name in ("fsync", "full_page_writes"):
        if settings[name][0] == "off":
            cost = "a crash of the machine can destroy the database"
            yield Shortcoming(what=f"{name} is off", cost=cost, remedy=f"set {name} = on")
    if settings["jit"][0] == "on":
        cost = "short searches wait for compilation, often longer than for their answer"
        yield Shortcoming(what="jit is on", cost=cost, remedy="set jit = off")
    if float(settings["random_page_cost"][0]) > _MAX_RANDOM_PAGE_COST:
        what = f"random_page_cost is {settings['random_page_cost'][0]}"
        cost = "the planner avoids indexes that are fast on solid-state disks"
        yield Shortcoming(what=what, cost=cost, remedy="set random_page_cost = 1.1")
    for name, min_bytes, cost in (
        ("shared_buffers", _MIN_BUFFERS_BYTES, "vector searches read from disk"),
        ("maintenance_work_mem", _MIN_MAINTENANCE_BYTES, "vector indexes are built slowly"),
    ):
        size = int(settings[name][0]) * (8192 if settings[name][1] == "8kB" else 1024)
        if size < min_bytes:
            what = f"{name} is {size // _MIB} MB"
            remedy = f"set {name} to {min_bytes // _MIB} MB or more"
            yield Shortcoming(what=what, cost=cost, remedy=remedy)
