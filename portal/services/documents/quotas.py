"""How much of their own a person may keep: the bytes of the originals of all their documents.

What lies in the trash and what came before a newer version counts: it is kept. A purge frees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from portal.domain.people import User, require_admin
from portal.errors import QuotaExceeded
from portal.services import Services
from portal.store.documents import files as file_store
from portal.store.session import Session


@dataclass(frozen=True, slots=True)
class Use:
    """What a person keeps, and what they may; None: as much as they like."""

    used_bytes: int
    limit_bytes: int | None

    @property
    def share(self) -> float:
        """Of the limit, from 0 to 1; 0 where there is none."""
        return min(1.0, self.used_bytes / self.limit_bytes) if self.limit_bytes else 0.0


def use_of(services: Services, user: User) -> Use:
    """What a person keeps at this moment."""
    with services.database.begin() as session:
        used_bytes = file_store.used_bytes(session, user.id)
    return Use(used_bytes, services.settings.quota_bytes or None)


def use_by_owner(services: Services, administrator: User) -> dict[UUID, int]:
    """Bytes that everybody keeps who keeps any. Administrators only."""
    require_admin(administrator)
    with services.database.begin() as session:
        return file_store.used_bytes_by_owner(session)


@contextmanager
def room_for(
    services: Services, session: Session, owner_id: UUID, *, name: str, size_bytes: int
) -> Iterator[None]:
    """Around a block that stores an original of so many bytes and gives it to a document of this
    owner. Raises QuotaExceeded before it, or after it, when another upload was quicker: then the
    transaction is to end with nothing.
    """
    limit_bytes, estimates = services.settings.quota_bytes, services.use_estimates
    if not limit_bytes or estimates.reserve(owner_id, size_bytes, limit_bytes=limit_bytes):
        yield
        return

    def check(added_bytes: int) -> None:
        used_bytes = file_store.used_bytes(session, owner_id) + added_bytes
        estimates.set(owner_id, used_bytes)
        if used_bytes > limit_bytes:
            raise QuotaExceeded(
                name=name,
                size_bytes=size_bytes,
                used_bytes=used_bytes - size_bytes,
                limit_bytes=limit_bytes,
            )

    # Most that does not fit is refused before it is written.
    check(size_bytes)
    yield
    # Counted under a lock only now: held while a large file is written, it would let nothing else
    # of this person pass. Whoever waited for it sees what came in meanwhile.
    file_store.lock_use(session, owner_id)
    check(0)
