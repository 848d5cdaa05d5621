"""The command line: ``portal serve``, ``portal import`` and the rest, a module a family."""

from portal.processes.cli import backups, documents, models, operations, serving, users
from portal.processes.cli.base import main

__all__ = ["backups", "documents", "main", "models", "operations", "serving", "users"]
