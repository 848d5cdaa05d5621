"""Runs one reader, confined and within limits, and prints what it yields as JSON lines.

    python -P limited.py READER MEMORY_MB CPU_SECONDS OPTIONS < FILE

The first line says which layers of confinement hold: `{"confined_by": ["user", …]}`.

A script: of the portal it imports other modules of this folder only. Parsers are fed with files
that anyone may have made, many are written in C, and none may take the portal down or see what it
knows.
"""

from __future__ import annotations

import codecs
import json
import os
import runpy
import sys
import types
from typing import Any

# Python loads them when they are first used, which is too late.
_CODECS = ("ascii", "latin-1", "cp437", "cp1252", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")


def limit_process(memory_mb: int, cpu_seconds: int) -> None:
    """Make the system end this process rather than let it take the machine down."""
    try:
        import resource
    except ImportError:  # Windows; the wall time limit of the parent still holds.
        return
    memory = memory_mb << 20
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _name_packages() -> None:
    """Let readers import modules of this folder without all that their packages import."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as below
    for name in ("portal.ingest.readers", "portal.ingest", "portal"):
        sys.modules[name] = package = types.ModuleType(name)
        package.__path__ = [folder]
        folder = os.path.dirname(folder)  # noqa: PTH120


def main(reader: str, memory_mb: str, cpu_seconds: str, options: str) -> None:
    """Print the records, each as soon as it is there."""
    limit_process(int(memory_mb), int(cpu_seconds))
    try:
        confinement = runpy.run_path(os.path.join(os.path.dirname(__file__), "confinement.py"))  # noqa: PTH118, PTH120 - pathlib is slow to import
        _name_packages()
        layers = ["network"] if confinement["leave_network"]() else []
        module = runpy.run_path(reader)
        for name in _CODECS:
            codecs.lookup(name)
        if "load" in module:
            module["load"]()
        layers += confinement["confine"]()
        _write({"confined_by": layers})
        for record in module["read"](sys.stdin.buffer, **json.loads(options)):
            _write(record)
    except MemoryError:
        _write({"error": "memory"})


def _write(record: Any) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
