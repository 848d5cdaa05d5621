"""Chroma's own client, with its telemetry off. Needs the extra `chroma`.

`chromadb` is imported here alone, and not before it is needed: whoever has not the extra is told
how to get it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from portal.errors import ServerSetup

# What Chroma keeps of a directory of its own; a directory without it is none.
DATABASE_FILE = "chroma.sqlite3"
DEFAULT_PORT = 8000

Client = Any
"""`chromadb.api.ClientAPI`, or whatever answers like it."""


def open_directory(directory: Path | str, *, create: bool = True) -> Client:
    """A client of the records in a directory, which is made unless `create` says no.

    Raises ServerSetup without the extra, for a directory that cannot be opened, and for one that
    this process has opened already by other settings of Chroma's; hand that client over instead.
    """
    chromadb = chroma()
    directory = Path(directory)
    if not create and not (directory / DATABASE_FILE).is_file():
        raise ServerSetup(
            reason=f"{directory} is no directory of Chroma's: no {DATABASE_FILE} in it"
        )
    try:
        return chromadb.PersistentClient(str(directory), settings=_quiet(chromadb))
    except Exception as error:
        raise ServerSetup(reason=f"Chroma cannot open {directory}: {error}") from error


def open_server(
    host: str,
    port: int = DEFAULT_PORT,
    *,
    ssl: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Client:
    """A client of a Chroma server. Raises ServerSetup without the extra, and where none answers."""
    chromadb = chroma()
    try:
        return chromadb.HttpClient(
            host, port, ssl=ssl, headers=dict(headers or {}), settings=_quiet(chromadb)
        )
    except Exception as error:
        raise ServerSetup(reason=f"no Chroma server answers at {host}:{port}: {error}") from error


def chroma() -> Any:
    """The package `chromadb`. Raises ServerSetup where it is not installed."""
    try:
        return importlib.import_module("chromadb")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "chromadb":
            raise
        raise ServerSetup(reason="this needs the extra `chroma`: ./run setup --chroma") from error


def _quiet(chromadb: Any) -> Any:
    # Nothing that a program keeps here is anybody else's business, how often it is used included.
    return chromadb.config.Settings(anonymized_telemetry=False)
