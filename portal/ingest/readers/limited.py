"""Entry point of reader processes: runs one reader, confined, and prints JSON lines.

    python -P limited.py READER MEMORY_MB CPU_SECONDS OPTIONS < FILE

The first line says which layers of confinement hold: `{"confined_by": ["user", …]}`.

This script imports only modules of its folder. Parsers read untrusted files, many are written in C,
and none may crash the portal or see its data.
"""

from __future__ import annotations

import codecs
import json
import os
import resource
import runpy
import sys
import types
from typing import Any

# Python loads codecs on first use, which would be too late.
_CODECS = ("ascii", "latin-1", "cp437", "cp1252", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")


def limit_process(memory_mb: int, cpu_seconds: int) -> None:
    """Set resource limits, so that the system ends this process before it exhausts the machine."""
    memory = memory_mb << 20
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _name_packages() -> None:
    """Let readers import modules of this folder without importing the packages around it."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as below
    for name in ("portal.ingest.readers", "portal.ingest", "portal"):
        sys.modules[name] = package = types.ModuleType(name)
        package.__path__ = [folder]
        folder = os.path.dirname(folder)  # noqa: PTH120


def main(reader: str, memory_mb: str, cpu_seconds: str, options: str) -> None:
    """Print the records as JSON lines, each as soon as it is ready."""
    limit_process(int(memory_mb), int(cpu_seconds))
    try:
        confinement = runpy.run_path(os.path.join(os.path.dirname(__file__), "confinement.py"))  # noqa: PTH118, PTH120 - pathlib is slow to import
        _name_packages()
        layers = ["network"] if confinement["leave_network"]() else []
        module = runpy.run_path(reader)
        for name in _CODECS:
            codecs.lookup(name)
        given = json.loads(options)
        if "load" in module:
            module["load"](**given)
        layers += confinement["confine"]()
        _write({"confined_by": layers})
        for record in module["read"](sys.stdin.buffer, **given):
            _write(record)
    except MemoryError:
        _write({"error": "memory"})


def _write(record: Any) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    status = 1
    try:
        main(*sys.argv[1:])
        status = 0
    finally:
        # All output is written. The runtime of the OCR models would delay a normal exit by half a
        # minute.
        os._exit(status)
