"""Users with more or fewer documents switched on: the selectivity of a search."""

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

# The number of results of every measured search.
RESULTS = 10
# In percent of the documents that the user may see.
SHARES = (100.0, 50.0, 10.0, 1.0, 0.1)
IN_A_CONVERSATION = " in a conversation"
BY_FOLDERS = " by folders"
FOLDERS = 400
_FOLDERS_A_SECTION = 20


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A user, perhaps in a conversation, and which documents are `enabled` there: (documents,)."""

    name: str
    percent: float
    user: User
    conversation_id: UUID | None
    enabled: Flags

    @property
    def is_default(self) -> bool:
        """Return whether it comes from a user's switches of documents."""
        return self.name == name_of(self.percent)

    def request(self, query: str, **options: Any) -> SearchRequest:
        """Return a search as this user makes it."""
        return SearchRequest(query, conversation_id=self.conversation_id, top_n=RESULTS, **options)

    def as_dict(self) -> dict[str, Any]:
        """Return all but `enabled`, for JSON."""
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
    """Return three profiles per share: a user with such defaults; a conversation with such
    overrides, of a user who has switched a random half off; and a user who has switched the folder
    above all others off, and folders below it back on."""
    rng = np.random.default_rng([seed, 11])
    with psycopg.connect(services.database.conninfo) as connection:
        # These are from a run that was interrupted here.
        connection.execute("DELETE FROM users WHERE name NOT IN ('owner', 'keeper')")
    talker = _user(services, "talker")
    default = rng.random(len(document_ids)) < 0.5
    with psycopg.connect(services.database.conninfo) as connection:
        _switch(connection, "user", talker.id, document_ids, off=~default)
        profiles = []
        folders = _Folders(connection, document_ids, rng)
        for percent in SHARES:
            name = name_of(percent)
            enabled = _choose(rng, visible, percent)
            user = _user(services, f"sees {name}")
            _switch(connection, "user", user.id, document_ids, off=visible & ~enabled)
            profiles.append(Profile(name, percent, user, None, enabled))
            # A switch is stored only if it differs from the default, as when users set it.
            conversation = _conversation(connection, talker.id, name)
            on, off = enabled & ~default, visible & ~enabled & default
            _switch(connection, "conversation", conversation, document_ids, on=on, off=off)
            profiles.append(
                Profile(name + IN_A_CONVERSATION, percent, talker, conversation, enabled)
            )
            filer = _user(services, f"files {name}")
            enabled = visible & folders.switch(connection, filer.id, percent)
            profiles.append(Profile(name + BY_FOLDERS, percent, filer, None, enabled))
    with psycopg.connect(services.database.conninfo, autocommit=True) as connection:
        # As autovacuum does within a minute of that many changes.
        connection.execute(
            "VACUUM (ANALYZE) user_document_defaults, conversation_document_overrides, "
            "folder_states, folders, documents"
        )
    return profiles


class _Folders:
    """A tree of folders three levels deep, with each document in a random folder."""

    def __init__(
        self, connection: psycopg.Connection, document_ids: Sequence[UUID], rng: np.random.Generator
    ) -> None:
        self.ids = [uuid4() for _ in range(FOLDERS)]
        # The first is above all, and every twentieth above those that follow it.
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO folders (id, parent_id, name) VALUES (%s, %s, %s)",
                [(one, self._parent(place), str(place)) for place, one in enumerate(self.ids)],
            )
            self.places = rng.integers(0, FOLDERS, len(document_ids))
            cursor.execute(
                "UPDATE documents d SET folder_id = filed.folder_id"
                " FROM unnest(%s::uuid[], %s::uuid[]) AS filed (id, folder_id)"
                " WHERE d.id = filed.id",
                [list(document_ids), [self.ids[place] for place in self.places]],
            )
        self.order = rng.permutation(np.arange(1, FOLDERS))

    def _parent(self, place: int) -> UUID | None:
        if place % _FOLDERS_A_SECTION:
            return self.ids[place - place % _FOLDERS_A_SECTION]
        return self.ids[0] if place else None

    def switch(self, connection: psycopg.Connection, user: UUID, percent: float) -> Flags:
        """Switch the top, and folders below it; return the documents (documents,) that are on."""
        count = max(1, round(FOLDERS * percent / 100))
        is_on = np.full(FOLDERS, percent == 100)
        is_on[self.order[:count]] = True
        with connection.cursor() as cursor:
            # Folders within others are switched too, because the nearest switch counts.
            cursor.executemany(
                "INSERT INTO folder_switches (user_id, folder_id, enabled) VALUES (%s, %s, %s)",
                [
                    (user, self.ids[place], bool(is_on[place]))
                    for place in range(FOLDERS)
                    if place % _FOLDERS_A_SECTION == 0 or is_on[place] != is_on[self._above(place)]
                ],
            )
        return np.asarray(is_on[self.places])

    @staticmethod
    def _above(place: int) -> int:
        return place - place % _FOLDERS_A_SECTION


def _choose(rng: np.random.Generator, visible: Flags, percent: float) -> Flags:
    """Return a random choice of this share of the visible documents, at least one."""
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
