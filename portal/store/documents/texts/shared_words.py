"""Words of shared chunks that a trigger left for later (migration 0065)."""

from __future__ import annotations

from sqlalchemy import text

from portal.store.session import Session

# For bulk loads while nothing searches: triggers then add the words of all chunks at once,
# however many a transaction has.
WITH_ALL_WORDS = "SET portal.shared = '-1000000000'"

_FILL = text(
    """
    WITH missing AS MATERIALIZED (
        SELECT chunk_id FROM shared_chunks WHERE terms IS NULL LIMIT :limit FOR UPDATE SKIP LOCKED
    )
    UPDATE shared_chunks s SET terms = c.terms FROM missing JOIN document_chunks c
        ON c.id = missing.chunk_id
    WHERE s.chunk_id = missing.chunk_id
    """
)
_TRANSACTION = text("SELECT CAST(pg_current_xact_id_if_assigned() AS text)")
# The triggers run at the end of the transaction.
_LEFT_BY = text(
    """
    SELECT EXISTS (SELECT FROM shared_chunks
                   WHERE terms IS NULL AND xmin = CAST(CAST(:transaction AS xid8) AS xid))
    """
)
_CHANGED = text(
    "UPDATE collections SET corpus_version = transaction_version() WHERE name = 'portal'"
)


def fill(session: Session, limit: int) -> int:
    """Add the words of at most `limit` chunks that have none yet; return how many."""
    return session.execute(_FILL, {"limit": limit}).rowcount  # type: ignore[attr-defined,no-any-return]


def transaction_of(session: Session) -> str | None:
    """Return the id of the session's transaction; None if it has changed nothing."""
    transaction: str | None = session.scalar(_TRANSACTION)
    return transaction


def are_left_by(session: Session, transaction: str) -> bool:
    """Return whether a transaction that has ended left chunks without words."""
    return bool(session.scalar(_LEFT_BY, {"transaction": transaction}))


def note_change(session: Session) -> None:
    """Invalidate what searches cached before these words were added."""
    session.execute(_CHANGED)
