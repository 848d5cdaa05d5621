"""Vector indexes: the expressions they are built on, and the ORDER BY that a search needs.

The cast must be the same in the index and in the query, because the planner matches expressions.
Half precision halves the index without a visible effect: the scores that are shown come from the
full vectors. Above 4,000 dimensions pgvector only indexes binary vectors, one bit a dimension;
their order is approximate, so several times as many rows are read and sorted by the full vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from portal.domain.vector_collections import Distance
from portal.settings import SearchSettings
from portal.store.embedding_models import language_axis

Method = Literal["hnsw", "ivfflat"]
VectorType = Literal["halfvec", "vector", "bit"]

# Limits of pgvector, README of 0.8.
MAX_VECTOR_DIMENSIONS = 2000
MAX_HALFVEC_DIMENSIONS = 4000
_OPERATORS: dict[Distance, str] = {"cosine": "<=>", "l2": "<->", "ip": "<#>"}
# Binary vectors order so roughly that this many times the wanted rows are needed to include the
# true best ones.
_BIT_CANDIDATE_FACTOR = 8
# A number of lists that differs by less than this is not worth a rebuild.
_LISTS_TOLERANCE = 4
# pgvector's advice: a list per thousand rows up to a million.
_ROWS_A_LIST = 1000
_MAX_LISTS = 32768
# The most vectors that a scan visits when the selection rejects what it finds.
_MAX_SCAN_TUPLES = 20_000


@dataclass(frozen=True, slots=True)
class IndexShape:
    """The definition of a vector index: its method, the type of its vectors, the metric it orders
    by, and the name of the `language_axis` along which its vectors are shortened, if any. Binary
    vectors order by angle, whatever the metric."""

    method: Method = "hnsw"
    vector_type: VectorType = "halfvec"
    metric: Distance = "cosine"
    axis: str | None = None

    @classmethod
    def of(cls, method: str, vector_type: str, axis: str | None = None) -> IndexShape:
        """Return the shape of an index on unit vectors from the registry's columns, whose values
        are checked by a constraint."""
        # Shortened vectors differ in length, so they are compared by inner product.
        metric: Distance = "ip" if axis else "cosine"
        return cls(cast("Method", method), cast("VectorType", vector_type), metric, axis)

    @property
    def operator_class(self) -> str:
        if self.vector_type == "bit":
            return "bit_hamming_ops"
        return f"{self.vector_type}_{self.metric}_ops"

    @property
    def candidate_factor(self) -> int:
        return _BIT_CANDIDATE_FACTOR if self.vector_type == "bit" else 1

    def indexed(self, vector: str, dimensions: int) -> str:
        """Return the expression that the index is built on, given an SQL expression for a full
        vector."""
        if self.axis:
            vector = language_axis.shortened(self.axis, vector)
        return self._kept(vector, dimensions)

    def _kept(self, vector: str, dimensions: int) -> str:
        if self.vector_type == "bit":
            return f"CAST(binary_quantize({vector}) AS bit({dimensions}))"
        return f"CAST({vector} AS {self.vector_type}({dimensions}))"

    def distance(self, vector: str, question: str, dimensions: int) -> str:
        """Return the distance that the index orders by, between an SQL expression for a full vector
        and a bind with a VectorParameter."""
        asked = f"CAST({question} AS vector)"
        if self.axis:
            asked = language_axis.stretched(self.axis, asked)
        # A subquery is evaluated once; the bare expression, in a cached plan, for each row.
        asked = f"(SELECT {self._kept(asked, dimensions)})"
        operator = "<~>" if self.vector_type == "bit" else _OPERATORS[self.metric]
        return f"({self.indexed(vector, dimensions)} {operator} {asked})"


def shape_for(search: SearchSettings, dimensions: int, axis: str | None = None) -> IndexShape:
    """Return the shape that the settings ask for, or the nearest that vectors of this length can
    have, with the vectors shortened along an axis."""
    vector_type: VectorType = search.vector_type
    if vector_type == "vector" and dimensions > MAX_VECTOR_DIMENSIONS:
        vector_type = "halfvec"
    if vector_type == "halfvec" and dimensions > MAX_HALFVEC_DIMENSIONS:
        vector_type = "bit"
    return IndexShape.of(search.index, vector_type, axis)


def wants_index(search: SearchSettings) -> bool:
    """Return whether vectors have an index at all."""
    return search.index != "hnsw" or search.hnsw.enabled


def index_name(partition: str, method: str) -> str:
    return f"ix_{partition}_{method}"


def options(shape: IndexShape, search: SearchSettings, rows: int = 0) -> dict[str, int]:
    """Return the storage parameters of an index for the settings and the number of rows."""
    if shape.method == "hnsw":
        # pgvector refuses a graph whose nodes have more links than candidates to choose from.
        candidates = max(search.hnsw.ef_construction, 2 * search.hnsw.m)
        return {"m": search.hnsw.m, "ef_construction": candidates}
    lists = search.ivfflat.lists or min(_MAX_LISTS, max(1, round(rows / _ROWS_A_LIST)))
    return {"lists": lists}


def create_statement(
    partition: str,
    shape: IndexShape,
    dimensions: int,
    search: SearchSettings,
    *,
    rows: int = 0,
    name: str | None = None,
    concurrently: bool = False,
) -> str:
    """Return CREATE INDEX for a partition. Nothing in it comes from outside: names are made of
    integers, the rest of bounded settings."""
    parameters = ", ".join(f"{k} = {int(v)}" for k, v in options(shape, search, rows).items())
    how = "CONCURRENTLY " if concurrently else ""
    expression = shape.indexed("embedding", dimensions)
    return (
        f"CREATE INDEX {how}{name or index_name(partition, shape.method)} ON {partition}"
        f" USING {shape.method} (({expression}) {shape.operator_class})"
        f" WITH ({parameters})"
    )


def scan_settings(search: SearchSettings, wanted: int) -> dict[str, str]:
    """Return the settings that a transaction needs for correct scans: `wanted` is the LIMIT of the
    leg. An `ef_search` below the LIMIT would cut results short; the iterative scan continues when
    the selection rejects what the index finds."""
    # For both kinds of index, so that a search need not know which one is in use.
    return {
        "hnsw.ef_search": str(min(1000, max(search.hnsw.ef_search, wanted))),
        "hnsw.iterative_scan": "relaxed_order",
        "hnsw.max_scan_tuples": str(_MAX_SCAN_TUPLES),
        "ivfflat.probes": str(search.ivfflat.probes),
        "ivfflat.iterative_scan": "relaxed_order",
    }


@dataclass(frozen=True, slots=True)
class StandingIndex:
    """An index on a partition's vectors, as the server reports it."""

    name: str
    method: str
    is_valid: bool
    options: Mapping[str, int] = field(default_factory=dict)
    size_bytes: int = 0


def standing_indexes(connection: Connection | Session, partition: str) -> list[StandingIndex]:
    rows = connection.execute(
        text(
            """
            SELECT c.relname, m.amname, i.indisvalid, c.reloptions, pg_relation_size(c.oid) AS size
            FROM pg_index i
            JOIN pg_class c ON c.oid = i.indexrelid
            JOIN pg_am m ON m.oid = c.relam
            WHERE i.indrelid = to_regclass(:partition) AND m.amname IN ('hnsw', 'ivfflat')
            ORDER BY c.relname
            """
        ),
        {"partition": partition},
    )
    return [
        StandingIndex(row.relname, row.amname, row.indisvalid, _read(row.reloptions), row.size)
        for row in rows
    ]


def _read(reloptions: list[str] | None) -> dict[str, int]:
    pairs = (option.split("=", 1) for option in reloptions or ())
    return {name: int(value) for name, value in pairs}


def is_current(
    index: StandingIndex, partition: str, shape: IndexShape, search: SearchSettings, rows: int
) -> bool:
    """Return whether an index matches the settings. The type of its vectors is in the registry,
    which changes in the same transaction."""
    if not index.is_valid or index.name != index_name(partition, shape.method):
        return False
    wanted = options(shape, search, rows)
    if shape.method == "ivfflat" and not search.ivfflat.lists:
        lists = index.options.get("lists", 0)
        return lists <= wanted["lists"] * _LISTS_TOLERANCE and (
            wanted["lists"] <= lists * _LISTS_TOLERANCE
        )
    return dict(index.options) == wanted


def described(shape: IndexShape, options: Mapping[str, int]) -> str:
    """Describe an index in words, such as `hnsw halfvec m=16 ef_construction=64`."""
    parameters = (f"{name}={value}" for name, value in options.items())
    return " ".join((shape.method, shape.vector_type, *parameters))


def build_aside(
    connection: Connection,
    partition: str,
    shape: IndexShape,
    dimensions: int,
    search: SearchSettings,
    *,
    rows: int,
) -> str:
    """Build an index concurrently beside the one in use, and return its name. `connection` has no
    transactions. Leftovers of an interrupted build are removed."""
    name = f"{index_name(partition, shape.method)}_new"
    statement = create_statement(
        partition, shape, dimensions, search, rows=rows, name=name, concurrently=True
    )
    connection.execute(text(f"DROP INDEX CONCURRENTLY IF EXISTS {name}"))
    connection.execute(text(statement))
    return name


def replace(session: Session, partition: str, name: str, method: Method) -> None:
    """Replace all other indexes of the partition with the index `name`."""
    for index in standing_indexes(session, partition):
        if index.name != name:
            session.execute(text(f"DROP INDEX {index.name}"))
    session.execute(text(f"ALTER INDEX {name} RENAME TO {index_name(partition, method)}"))
