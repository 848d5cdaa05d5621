"""Saved searches: name, list, rename and delete them. They are private to their user."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from portal.domain.people import User
from portal.domain.search.saved import (
    MAX_NAME_CHARACTERS,
    MAX_SAVED,
    MAX_VALUE_CHARACTERS,
    NAMES,
    SavedSearch,
)
from portal.errors import InvalidInput, existing
from portal.services import Services
from portal.store.search import saved as saved_store
from portal.text.titles import check_name


def list_saved(services: Services, user: User) -> list[SavedSearch]:
    """Return the user's saved searches, by name."""
    with services.database.read() as session:
        return saved_store.list_saved(session, user.id)


def save(services: Services, user: User, name: str, arguments: Mapping[str, str]) -> SavedSearch:
    """Save a search by the arguments of its address; without a name it is named after its query.

    Raises InvalidInput, NameTaken.
    """
    kept = {key: arguments[key].strip() for key in NAMES if arguments.get(key, "").strip()}
    if "q" not in kept:
        raise InvalidInput("a search needs words to search for")
    if any(len(value) > MAX_VALUE_CHARACTERS for value in kept.values()):
        raise InvalidInput("a search has at most %(max)s characters", max=MAX_VALUE_CHARACTERS)
    name = name or kept["q"][:MAX_NAME_CHARACTERS]
    name = check_name(name, max_characters=MAX_NAME_CHARACTERS)
    with services.database.begin() as session:
        if len(saved_store.list_saved(session, user.id)) >= MAX_SAVED:
            raise InvalidInput(
                "you have %(max)s saved searches already. Delete one first", max=MAX_SAVED
            )
        return saved_store.add(session, user.id, name, kept)


def rename(services: Services, user: User, search_id: UUID, name: str) -> SavedSearch:
    """Rename a saved search. Raises NotFound, also for another user's, InvalidInput, NameTaken."""
    name = check_name(name, max_characters=MAX_NAME_CHARACTERS)
    with services.database.begin() as session:
        existing(saved_store.find(session, user.id, search_id))
        saved_store.rename(session, user.id, search_id, name)
        return existing(saved_store.find(session, user.id, search_id))


def delete(services: Services, user: User, search_id: UUID) -> None:
    """Delete a saved search. Raises NotFound, also for another user's."""
    with services.database.begin() as session:
        existing(saved_store.find(session, user.id, search_id))
        saved_store.remove(session, user.id, search_id)
