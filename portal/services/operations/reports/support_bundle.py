"""The support bundle: the state of a portal, without anything that users wrote."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import distributions, version
from typing import Any

import psutil
from prometheus_client import CollectorRegistry, generate_latest

from portal.errors import PortalError
from portal.observability import metric_files
from portal.observability.redaction import scrub
from portal.services import Services
from portal.services.operations import health, setup
from portal.services.transactions import in_transaction
from portal.settings import Settings
from portal.store.operations import support

# These may contain passwords, anywhere in them.
_ADDRESSES = ("database_url", "database_replica_url", "redis_url")

_read_database = in_transaction(support.read_state)


def make_bundle(services: Services) -> Iterator[tuple[str, str]]:
    """Yield the bundle's files, name and text. What cannot be read is replaced by the reason."""
    parts: dict[str, Callable[[], Any]] = {
        "versions.json": _versions,
        "settings.json": lambda: _settings(services.settings),
        "doctor.json": lambda: setup.diagnose(services),
        "health.json": lambda: {
            "health": health.check(services),
            "vector_store": health.check_vector_store(services),
        },
        "database.json": lambda: _read_database(services),
    }
    for name, read in parts.items():
        yield name, json.dumps(_read(read), ensure_ascii=False, indent=2, default=str) + "\n"
    yield "metrics.txt", _metrics(services.settings)


def _read(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except PortalError as error:
        return {"not_read": error.code}
    except Exception as error:  # noqa: BLE001 - a bundle is for when something is broken
        return {"not_read": type(error).__name__}


def _versions() -> dict[str, Any]:
    return {
        "portal": version("knowledge-portal"),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "packages": {
            distribution.name: distribution.version
            for distribution in sorted(distributions(), key=lambda d: d.name)
        },
    }


def _settings(settings: Settings) -> dict[str, Any]:
    """Return all settings; for secrets and addresses of servers, only whether they are set."""
    values = settings.model_dump(mode="json")  # Pydantic masks secret texts.
    for name in _ADDRESSES:
        values[name] = "set" if values[name] else None
    return {name: _without_secrets(value) for name, value in values.items()}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_secrets(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_secrets(inner) for inner in value]
    return scrub(value) if isinstance(value, str) else value


def _metrics(settings: Settings) -> str:
    registry = CollectorRegistry()
    shared = metric_files.of_processes(settings.data_dir)
    if shared is not None:
        registry.register(shared)
    return generate_latest(registry).decode()
