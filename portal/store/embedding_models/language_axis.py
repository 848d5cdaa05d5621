"""A vector index that reduces the distance between languages.

In a graph built on plain vectors the chunks of two languages are two islands: the scan for a query
that lies between them (`portal.embeddings.calibration`) begins on one and rarely finds the other.
So the index stores each chunk with its component along l, the unit vector from one language to the
other, halved, and is searched with each query's component doubled:

    chunk  M x = x - (1 - a) (x·l) l,    query  M⁻¹ q = q + (1/a - 1) (q·l) l,    a = 1/2.

M is symmetric, so (M⁻¹ q)·(M x) = q·x: the inner product that the index orders by is the cosine of
unit vectors, for every query, corrected or not. Only the links of the graph differ.

Both maps are database functions, named after the model, with the vector l in their bodies, so that
they stay what an index was built with. They are written as SQL-standard functions, which bind their
operators on creation, so that a dump restores them under any search path.
"""

from __future__ import annotations

import hashlib

import numpy as np
from sqlalchemy import text
from sqlalchemy.orm import Session

from portal.domain.embedding import Vector

# Share of a chunk's component along the axis that is kept. Recall@10 of 100 rows with ef_search
# 150, with 50,000 synthetic chunks of two languages, for corrected and for plain queries (ef_search
# 100): .674 and .982 with 1, .994 and .990 with 0.5, .990 and .890 with 0.3, .989 and .714 with 0.
SHARE_LEFT = 0.5
# Axes this close are the same: machines that compute the axis of one model differ in the last
# digits.
_SAME_AXIS = 0.98


def shortened(name: str, vector: str) -> str:
    """Return SQL for the vector that the index stores, from an SQL expression for a chunk's."""
    return f"shortened_{name}({vector})"


def stretched(name: str, vector: str) -> str:
    """Return SQL for the vector to search the index with, from an SQL expression for a query's."""
    return f"stretched_{name}({vector})"


def ensure(session: Session, model_id: int, axis: Vector, standing: str | None = None) -> str:
    """Return the name of the functions for an axis (dimensions,) of unit length, creating missing
    ones; it is `standing` if those have the same axis. The caller holds the registry's lock."""
    if standing is not None and _is_of(session, standing, axis):
        return standing
    values = np.asarray(axis, np.float32)
    name = f"m{int(model_id)}_{hashlib.sha256(values.tobytes()).hexdigest()[:12]}"
    known = text("SELECT to_regprocedure(:name) IS NOT NULL")
    if not session.scalar(known, {"name": stretched(name, "vector")}):
        # x + (x <#> m) m, with the operator's negative inner product and m the axis times the root
        # of what is taken away; the query's component is restored by the same m.
        part = values * np.sqrt(1 - SHARE_LEFT)
        taken, given = "(v <#> {m})", f"-(v <#> {{m}}) / {SHARE_LEFT}"
        for call, along in ((shortened, taken), (stretched, given)):
            session.execute(text(_definition(call(name, "v vector"), along, part)))
    return name


def drop(session: Session, model_id: int) -> None:
    """Drop all functions of a model, whose indexes have been dropped."""
    query = """
        SELECT CAST(CAST(p.oid AS regprocedure) AS text) FROM pg_proc p
        WHERE p.proname ~ :pattern
          AND p.pronamespace = to_regnamespace(CAST(current_schema() AS text))
    """
    pattern = f"^(shortened|stretched)_m{int(model_id)}_[0-9a-f]+$"
    for signature in session.scalars(text(query), {"pattern": pattern}).all():
        session.execute(text(f"DROP FUNCTION {signature}"))


def _definition(call: str, along: str, part: Vector) -> str:
    """Return CREATE FUNCTION. Only numbers come from outside."""
    literal = f"CAST('{_literal(part)}' AS vector)"
    amount = along.format(m=literal)
    return f"""
        CREATE FUNCTION {call} RETURNS vector LANGUAGE sql IMMUTABLE PARALLEL SAFE
        RETURN v + CAST(
            array_fill(CAST({amount} AS real), ARRAY[{len(part)}]) AS vector
        ) * {literal}
    """


def _is_of(session: Session, name: str, axis: Vector) -> bool:
    """Return whether the functions have this axis: if so, they stretch it by 1 / SHARE_LEFT."""
    length = session.scalar(
        text(f"SELECT -({stretched(name, 'CAST(:axis AS vector)')} <#> CAST(:axis AS vector))"),
        {"axis": _literal(axis)},
    )
    share = (float(length or 0.0) - 1.0) / (1 / SHARE_LEFT - 1)
    return share >= _SAME_AXIS**2


def _literal(vector: Vector) -> str:
    return f"[{','.join(repr(float(value)) for value in vector)}]"
