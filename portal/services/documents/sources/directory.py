"""A directory on the server, below one that the operator allows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from portal.domain.documents.sources import Listing, Opened, SourceItem, Unchanged
from portal.errors import N_, InvalidInput, PortalError, SourceUnavailable, UnsupportedSuffix
from portal.services.documents.intake.finding_files import find_files
from portal.services.documents.intake.importing import display_name
from portal.services.documents.sources.kinds import SourceContext, SourceKind


@dataclass(frozen=True, slots=True)
class Directory:
    """The files below a directory, as `portal import` finds them: no hidden ones, no links. Those
    of other types are refused."""

    root: Path

    def list_items(self) -> Listing:
        """Return all files, with time and size as the stamp. Raises SourceUnavailable."""
        if not os.path.isdir(self.root):  # noqa: PTH112 - `is_dir` raises where it may not look
            raise SourceUnavailable("the directory does not exist")
        unreadable: list[str] = []
        refused: list[tuple[str, PortalError]] = []
        unsupported = UnsupportedSuffix()
        items = []
        for path in find_files(
            [self.root],
            cannot_read=lambda one, _: unreadable.append(self._name(one)),
            is_unsupported=lambda one: refused.append((display_name(self._name(one)), unsupported)),
        ):
            try:
                found = path.lstat()
                name = self._name(path)
                name.encode()
            except (OSError, UnicodeError):
                unreadable.append(display_name(path.name))
                continue
            stamp = f"{found.st_mtime_ns} {found.st_size}"
            above = "" if path.parent == self.root else PurePosixPath(name).parent.as_posix()
            items.append(SourceItem(name, stamp, above))
        if "." in unreadable:
            raise SourceUnavailable("the directory cannot be read")
        return Listing(items, unreadable, refused)

    @contextmanager
    def open(self, item: SourceItem, known: str | None) -> Iterator[Opened | Unchanged]:
        """Open a file unless its time and size are as before. Raises OSError, also for one that
        became a link since it was listed."""
        if item.stamp == known:
            yield Unchanged(item.stamp)
            return
        path = self.root / item.path
        if not path.parent.resolve().is_relative_to(self.root):
            raise OSError("it lies outside of the directory")
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError("it is not a file")
            yield Opened(stream, path.name, item.stamp)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def open_directory(context: SourceContext, address: str) -> Directory:
    """Return a directory. Raises InvalidInput unless the operator allows it or one above it; the
    error does not reveal whether a directory elsewhere exists."""
    try:
        root = Path(address).resolve()
    except (OSError, RuntimeError, ValueError):
        root = None
    for allowed in context.settings.sources.directories:
        top = allowed.resolve()
        # Keys and settings of programs are kept in hidden directories.
        if (
            root is not None
            and root.is_relative_to(top)
            and not any(part.startswith(".") for part in root.relative_to(top).parts)
        ):
            return Directory(root)
    raise InvalidInput("the operator of this server does not allow this directory")


KIND = SourceKind(
    name="directory",
    label=N_("A directory on the server"),
    hint=N_("One of these, or a directory below: %(list)s"),
    open=open_directory,
    allowed=lambda settings: ", ".join(map(str, settings.sources.directories)),
)
