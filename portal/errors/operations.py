"""Errors of the server: database, disk, settings and commands."""

from __future__ import annotations

import errno

from portal.errors.base import PortalError, Unavailable
from portal.errors.messages import N_, Message, verbatim

# A message on the line of its name keeps this list short.
# fmt: off


class DatabaseUnavailable(Unavailable):
    message = N_("The database is not responding. Try again in a moment.")


class WritingUnavailable(DatabaseUnavailable):
    message = N_("The portal is read-only at the moment. Nothing was saved. Try again in a "
                 "minute.")
    retry_after_s = 10


class StorageFull(PortalError):
    status = 507
    message = N_("The server's disk is full. Nothing was saved. Tell your administrator.")


def is_disk_full(error: BaseException) -> bool:
    """Return whether a file could not be written because the disk or a quota is full."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class CommandRefused(PortalError):
    """A refused command. It is shown only on the command line, so only in English."""

    message = Message("%(reason)s")

    def __init__(self, reason: str) -> None:
        super().__init__(verbatim(reason))


class InvalidSetting(CommandRefused):
    message = Message("%(reason)s.")

    def __init__(self, *, name: str, got: str, takes: str) -> None:
        super().__init__(f"{name} is {got}, but takes {takes}")


class ServerSetup(CommandRefused):
    """The machine or its database cannot serve."""

    code = "server_setup"


class BackupRefused(CommandRefused):
    """A backup cannot be written or restored."""

    code = "backup_refused"
