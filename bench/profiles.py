"""Persons for whom more or fewer documents are switched on: the selectivity of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import numpy.typing as npt
import psycopg

from portal.domain.people import User
from portal.domain.search import SearchRequest
from portal.services import Services
from portal.services.people import accounts

Flags = npt.NDArray[np.bool_]

# In percent of the documents that the person may see.
SHARES = (100.0, 50.0, 10.0, 1.0, 0.1)
IN_A_CONVERSATION = " in a conversation"


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Who asks, where, and for which documents (documents,) that leaves `enabled`."""

    name: str
    percent: float
    user: User
    conversation_id: UUID | None
    enabled: Flags

    def request(self, query: str, **options: Any) -> SearchRequest:
        """A search as this person makes it."""
        return SearchRequest(query, conversation_id=self.conversation_id, **options)

    def as_dict(self) -> dict[str, Any]:
        """All but `enabled`, for JSON."""
        return {
            "name": self.name,
            "percent": self.percent,
            "person": asdict(self.user) | {"id": str(self.user.id)},
            "conversation_id": str(self.conversation_id) if self.conversation_id else None,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], enabled: Flags) -> Profile:
        user = values["person"]
        conversation = values["conversation_id"]
        return cls(
            name=values["name"],
            percent=values["percent"],
            user=User(**(user | {"id": UUID(user["id"])})),
            conversation_id=UUID(conversation) if conversation else None,
            enabled=enabled,
        )


def name_of(percent: float) -> str:
    return f"{percent:g} %"


def make(
    services: Services, document_ids: Sequence[UUID], visible: Flags, *, seed: int
) -> list[Profile]:
    """Two profiles a share: a person whose defaults are so, and a conversation whose overrides
    make it so for a person who has switched a random half off."""
    rng = np.random.default_rng([seed, 11])
    talker = _user(services, "talker")
    default = rng.random(len(document_ids)) < 0.5
    with psycopg.connect(services.database.conninfo) as connection:
        _switch(connection, "user", talker.id, document_ids, off=~default)
        profiles = []
        for percent in SHARES:
            name = name_of(percent)
            enabled = _choose(rng, visible, percent)
            user = _user(services, f"sees {name}")
            _switch(connection, "user", user.id, document_ids, off=visible & ~enabled)
            profiles.append(Profile(name, percent, user, None, enabled))
            # A switch is stored where it differs from the default, as people set it.
            conversation = _conversation(connection, talker.id, name)
            on, off = enabled & ~default, visible & ~enabled & default
            _switch(connection, "conversation", conversation, document_ids, on=on, off=off)
            profiles.append(
                Profile(name + IN_A_CONVERSATION, percent, talker, conversation, enabled)
            )
    with psycopg.connect(services.database.conninfo, autocommit=True) as connection:
        # As autovacuum does within a minute of so many changes.
        connection.execute(
            "VACUUM (ANALYZE) user_document_defaults, conversation_document_overrides"
        )
    return profiles


def _choose(rng: np.random.Generator, visible: Flags, percent: float) -> Flags:
    """That share of the visible documents, at least one."""
    places = np.flatnonzero(visible)
    count = max(1, round(len(places) * percent / 100))
    enabled = np.zeros_like(visible)
    enabled[rng.choice(places, size=count, replace=False)] = True
    return enabled


def _user(services: Services, name: str) -> User:
    return accounts.create_user(services, name=name, password="correct horse battery")


def _conversation(connection: psycopg.Connection, user: UUID, title: str) -> UUID:
    id_ = uuid4()
    connection.execute(
        "INSERT INTO conversations (id, user_id, title) VALUES (%s, %s, %s)", [id_, user, title]
    )
    return id_


_TABLES = {
    "user": ("user_document_defaults", "user_id"),
    "conversation": ("conversation_document_overrides", "conversation_id"),
}


def _switch(
    connection: psycopg.Connection,
    tier: str,
    owner: UUID,
    document_ids: Sequence[UUID],
    *,
    off: Flags,
    on: Flags | None = None,
) -> None:
    table, key = _TABLES[tier]
    statement = f"COPY {table} ({key}, document_id, enabled) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
        for flags, enabled in ((off, False), (on, True)):
            for place in np.flatnonzero(flags).tolist() if flags is not None else ():
                copy.write_row((owner, document_ids[place], enabled))
