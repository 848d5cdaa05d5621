"""The kinds of sources."""

from __future__ import annotations

from collections.abc import Callable

from portal.domain.documents.sources import Source, SourceKind
from portal.services.documents.sources.directory import open_directory
from portal.settings import Settings

_OPEN: dict[SourceKind, Callable[[Settings, str], Source]] = {
    SourceKind.DIRECTORY: open_directory,
}


def open_source(settings: Settings, kind: SourceKind, address: str) -> Source:
    """Return the source at an address. Raises InvalidInput if the operator does not allow it."""
    return _OPEN[kind](settings, address)
