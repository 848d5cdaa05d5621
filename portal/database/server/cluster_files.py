"""Configuration files of the embedded server: settings sized to the machine, and access rules."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

import psutil

MIB = 1024 * 1024
CLUSTER = "postgres"
"""Name of the server's folder in the data directory."""
SETTINGS_FILE = "portal.conf"
SUPERUSER = "portal"
PORT = 5432  # Only names the socket file: the server listens on no network address.

# pg_hba.conf. `peer` needs no password that could leak from an environment or a file, and without a
# network address there is nothing to attack by guessing.
# "all" databases do not include replication, which replicas and pg_basebackup need.
ACCESS_TEXT = (
    "# Written by the portal at every start.\n"
    "local all all peer map=portal\n"
    "local replication all peer map=portal\n"
)
_INCLUDE_LINE = f"include_if_exists '{SETTINGS_FILE}'"


def pg_textsearch_prefix() -> Path | None:
    """Return the directory of a package with pg_textsearch for this machine; None if there is
    none."""
    spec = importlib.util.find_spec("pgserver")
    if spec is None or spec.origin is None:
        return None
    prefix = Path(spec.origin).parent / "pginstall"
    control = prefix / "share" / "postgresql" / "extension" / "pg_textsearch.control"
    libraries = (prefix / "lib" / "postgresql").glob("pg_textsearch.*")
    return prefix if control.is_file() and any(libraries) else None


def machine_memory_bytes() -> int:
    """Return the memory that this process may use: the machine's, or its container's limit if
    lower."""
    memory = int(psutil.virtual_memory().total)
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limit = Path("/sys/fs/cgroup", name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdigit():
            memory = min(memory, int(limit))
    return memory


def _shared_memory_type(needed_bytes: int) -> dict[str, str]:
    """Return the setting for a machine whose /dev/shm is too small for parallel index builds, as in
    containers, which have 64 MB."""
    try:
        room = os.statvfs("/dev/shm")  # noqa: S108 - a mount to measure, not a temporary file
    except OSError:
        return {}
    if room.f_frsize * room.f_blocks >= needed_bytes:
        return {}
    return {"dynamic_shared_memory_type": "sysv"}


def server_settings(
    *, memory_bytes: int, socket_dir: Path, textsearch_prefix: Path | None
) -> dict[str, str]:
    """Return settings for a machine with this much memory. Durability stays on."""
    shared_buffers = max(64 * MIB, min(memory_bytes // 4, 2048 * MIB))
    # A vector index that outgrows this is built five times slower: a million chunks take 1.5 GB.
    maintenance = max(64 * MIB, min(memory_bytes // 8, 2048 * MIB))
    settings = {
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": str(socket_dir),
        "unix_socket_permissions": "0700",
        "max_connections": "100",
        "shared_buffers": f"{shared_buffers // MIB}MB",
        "effective_cache_size": f"{max(shared_buffers, memory_bytes // 2) // MIB}MB",
        "maintenance_work_mem": f"{maintenance // MIB}MB",
        "autovacuum_work_mem": f"{maintenance // 4 // MIB}MB",
        "work_mem": f"{max(4, min(32, memory_bytes // 256 // MIB))}MB",
        "max_wal_size": "2GB",
        "checkpoint_timeout": "15min",
        "wal_compression": "on",
        "random_page_cost": "1.1",
        "jit": "off",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
        # Leaves out the values that DETAIL quotes, such as a name that is taken.
        "log_error_verbosity": "terse",
        "lc_messages": "C",
        **_shared_memory_type(maintenance + 64 * MIB),
    }
    if textsearch_prefix is not None:
        # The server's own directories come first: the other package has an old pgvector (0.8.1,
        # CVE-2026-3172) that must never be found.
        share = textsearch_prefix / "share" / "postgresql"
        settings["extension_control_path"] = f"$system:{share}"
        settings["dynamic_library_path"] = f"$libdir:{textsearch_prefix / 'lib' / 'postgresql'}"
        settings["shared_preload_libraries"] = "pg_textsearch"
    return settings


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def settings_text(settings: Mapping[str, str]) -> str:
    lines = [
        "# Written by the portal at every start. To change a setting, use ALTER SYSTEM, which",
        "# PostgreSQL reads after this file.",
        *(f"{name} = {_quote(value)}" for name, value in settings.items()),
    ]
    return "\n".join(lines) + "\n"


def identities_text(system_users: set[str]) -> str:
    """Return pg_ident.conf: the operating system's users that may connect as the portal's database
    user."""
    rows = [f'portal "{name}" {SUPERUSER}' for name in sorted(system_users)]
    return "\n".join(["# Written by the portal at every start.", *rows]) + "\n"


def includes_our_settings(postgresql_conf: str) -> str:
    """Return the text of postgresql.conf with the portal's file included last."""
    if _INCLUDE_LINE in postgresql_conf.splitlines():
        return postgresql_conf
    return f"{postgresql_conf.rstrip()}\n\n{_INCLUDE_LINE}\n"
