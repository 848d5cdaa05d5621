"""Where a search looks: for which user, in which conversation, with which filters."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field
from uuid import UUID

from portal.domain.people import User
from portal.store.search.filters.narrowing import Narrowing


@dataclass(frozen=True, slots=True)
class Scope:
    """The user who searches, the conversation, and the filters of the search."""

    user: User
    conversation_id: UUID | None = None
    narrowing: Narrowing = field(default_factory=Narrowing)

    def key(self) -> Hashable:
        """Return a key that distinguishes scopes whose documents may differ. It is short however
        long the conditions are, because the cache does not count the size of its keys."""
        narrowing, user = self.narrowing, self.user
        binds = sorted((name, repr(value)) for name, value in narrowing.binds.items())
        conditions = repr((narrowing.documents, narrowing.chunks, binds))
        digest = hashlib.sha256(conditions.encode("utf-8", "surrogatepass")).digest()
        return user.id, user.is_admin, self.conversation_id, digest


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions that an enabled set depends on; equal versions mean an equal set.

    They are read before the set itself: after a change in between, the set looks older than it is,
    and the next search computes it again.
    """

    collection_id: UUID
    documents: int
    defaults: int
    overrides: int
