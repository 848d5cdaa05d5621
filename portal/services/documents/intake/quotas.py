"""Storage quotas: the bytes of the originals of all of a user's documents.

Files in the trash and of earlier versions count, since they are kept. A purge frees their space.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from portal.domain.people import User, require_admin
from portal.errors import QuotaExceeded
from portal.services import Services
from portal.store.documents.ingestion import files as file_store
from portal.store.session import Session


@dataclass(frozen=True, slots=True)
class Use:
    """The storage that a user uses, and the limit; None for no limit."""

    used_bytes: int
    limit_bytes: int | None

    @property
    def share(self) -> float:
        """Return the used share of the limit, from 0 to 1; 0 without a limit."""
        return min(1.0, self.used_bytes / self.limit_bytes) if self.limit_bytes else 0.0


def use_of(services: Services, user: User) -> Use:
    """Return the storage that a user uses now."""
    with services.database.begin() as session:
        used_bytes = file_store.used_bytes(session, user.id)
    return Use(used_bytes, services.settings.quota_bytes or None)


def use_by_owner(services: Services, administrator: User) -> dict[UUID, int]:
    """Return the bytes stored by each user who has any. Administrators only."""
    require_admin(administrator)
    with services.database.begin() as session:
        return file_store.used_bytes_by_owner(session)


@contextmanager
def room_for(
    services: Services, session: Session, owner_id: UUID, *, name: str, size_bytes: int
) -> Iterator[None]:
    """Enforce the quota around a block that stores an original and gives it to a document. Raises
    QuotaExceeded before the block, or after it if a concurrent upload was quicker; the caller must
    then roll back."""
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

    # Most files that exceed the quota are refused before they are written.
    check(size_bytes)
    yield
    # Locked only now: holding the lock while a large file is written would block the owner's other
    # uploads. The recount includes what they stored meanwhile.
    file_store.lock_use(session, owner_id)
    check(0)
