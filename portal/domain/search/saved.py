"""Searches that a user has saved under a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

MAX_SAVED = 100
MAX_NAME_CHARACTERS = 100
MAX_VALUE_CHARACTERS = 1000
NAMES = ("q", "mode", "folder", "tag", "type", "owner", "domain", "days", "meta", "fuzzy")
"""The arguments of a saved search, named as in the URL of the search page."""


@dataclass(frozen=True, slots=True)
class SavedSearch:
    id: UUID
    name: str
    arguments: Mapping[str, str]
    created_at: datetime

    @property
    def query(self) -> str:
        return self.arguments["q"]
