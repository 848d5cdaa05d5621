"""Runs one reader within limits and prints what it yields as JSON lines.

    python -P limited.py READER PATH MEMORY_MB CPU_SECONDS OPTIONS

A script: it imports nothing of the portal. Parsers are fed with files from strangers, many are
written in C, and none may take the portal down or see what it knows.
"""

from __future__ import annotations

import json
import runpy
import sys


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


def main(reader: str, path: str, memory_mb: str, cpu_seconds: str, options: str) -> None:
    """Print the records, each as soon as it is there."""
    limit_process(int(memory_mb), int(cpu_seconds))
    try:
        for record in runpy.run_path(reader)["read"](path, **json.loads(options)):
            sys.stdout.write(json.dumps(record) + "\n")
            sys.stdout.flush()
    except MemoryError:
        sys.stdout.write('{"error": "memory"}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
