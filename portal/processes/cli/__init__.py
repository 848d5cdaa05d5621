"""The command line: ``portal serve``, ``portal import`` and the rest, one module per family."""

from portal.processes.cli import backups, documents, models, operations, serving, users
from portal.processes.cli.base import main

__all__ = ["backups", "documents", "main", "models", "operations", "serving", "users"]
