"""Open Chroma's client, with telemetry off. Needs the extra `chroma`.

`chromadb` is imported only here and only when needed; if it is missing, the error names the extra.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from portal.errors import ServerSetup

# Chroma's database; a directory without it is not a Chroma directory.
DATABASE_FILE = "chroma.sqlite3"
DEFAULT_PORT = 8000

Client = Any
"""`chromadb.api.ClientAPI` or an object with its methods."""


def open_directory(directory: Path | str, *, create: bool = True) -> Client:
    """Open a Chroma directory, creating it unless `create` is false.

    Raises ServerSetup without the extra, for a directory that cannot be opened, and for one that
    this process has opened with other settings; pass that client instead.
    """
    chromadb = chroma()
    directory = Path(directory)
    if not create and not (directory / DATABASE_FILE).is_file():
        raise ServerSetup(f"{directory} is not a Chroma directory: it has no {DATABASE_FILE}")
    try:
        return chromadb.PersistentClient(str(directory), settings=_quiet(chromadb))
    except Exception as error:
        raise ServerSetup(f"Chroma cannot open {directory}: {error}") from error


def open_server(
    host: str,
    port: int = DEFAULT_PORT,
    *,
    ssl: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Client:
    """Connect to a Chroma server. Raises ServerSetup without the extra or if it does not answer."""
    chromadb = chroma()
    try:
        return chromadb.HttpClient(
            host, port, ssl=ssl, headers=dict(headers or {}), settings=_quiet(chromadb)
        )
    except Exception as error:
        raise ServerSetup(f"no Chroma server answers at {host}:{port}: {error}") from error


def chroma() -> Any:
    """Import `chromadb`. Raises ServerSetup if it is not installed."""
    try:
        return importlib.import_module("chromadb")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "chromadb":
            raise
        raise ServerSetup("this needs the extra `chroma`: ./run setup --chroma") from error


def _quiet(chromadb: Any) -> Any:
    # By default Chroma sends usage data to its vendor.
    return chromadb.config.Settings(anonymized_telemetry=False)
