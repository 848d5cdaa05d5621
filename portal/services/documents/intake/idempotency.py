"""Idempotency keys: a repeated request runs once and gets the same answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from portal.domain import locks
from portal.domain.people import User
from portal.errors import IdempotencyConflict, IdempotencyMismatch, InvalidInput
from portal.services import Services
from portal.store.documents.ingestion import idempotency as idempotency_store

MAX_KEY_CHARACTERS = 200
# The characters that any HTTP header can carry.
_KEY = re.compile(rf"[!-~]{{1,{MAX_KEY_CHARACTERS}}}")
_LIFE = timedelta(hours=24)

Answer = dict[str, Any]


def once(
    services: Services,
    user: User,
    *,
    key: str | None,
    body_sha256: Callable[[], str],
    action: Callable[[], Answer],
) -> Answer:
    """Return the answer of `action`, or its earlier answer under this key; without a key, always
    run it. Raises InvalidInput for a malformed key, IdempotencyConflict while the first request
    runs, IdempotencyMismatch for another body."""
    if key is None:
        return action()
    if _KEY.fullmatch(key) is None:
        raise InvalidInput(
            "Idempotency-Key has 1 to %(max)s characters of ASCII, and no spaces",
            max=MAX_KEY_CHARACTERS,
        )
    digest = body_sha256()
    # Held during the request: the server releases the lock when a process dies, so a retry need not
    # wait for a timeout.
    with services.database.hold(locks.IDEMPOTENCY, f"{user.id} {key}") as is_first:
        with services.database.begin() as session:
            earlier = idempotency_store.find(session, user_id=user.id, key=key, life=_LIFE)
            if earlier is not None and earlier.body_sha256 != digest:
                raise IdempotencyMismatch
            if earlier is not None and earlier.response is not None:
                return earlier.response
            if not is_first:
                raise IdempotencyConflict
            idempotency_store.claim(session, user_id=user.id, key=key, body_sha256=digest)
        return _answer(services, user, key, action)


def delete_expired(services: Services) -> None:
    """Delete expired keys."""
    with services.database.begin() as session:
        idempotency_store.delete_expired(session, life=_LIFE)


def _answer(services: Services, user: User, key: str, action: Callable[[], Answer]) -> Answer:
    try:
        answer = action()
    except BaseException:
        # A failed request may be retried with the same key.
        with services.database.begin() as session:
            idempotency_store.release(session, user_id=user.id, key=key)
        raise
    with services.database.begin() as session:
        idempotency_store.answer(session, user_id=user.id, key=key, response=answer)
    return answer
