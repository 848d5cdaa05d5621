"""The file of a backup: a plain tar of two or three members, written and read as streams.

    database.dump   pg_dump's custom format
    secret_key      the key that signs tokens, if the portal stores it itself
    manifest.json   comes last: an incomplete file has none

Members are never unpacked by name: a file with an unknown member is refused.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from portal.errors import BackupRefused, is_disk_full
from portal.processes.backups import encryption
from portal.processes.backups.encryption import Key
from portal.processes.backups.manifest import Manifest, Member

DATABASE = "database.dump"
SECRET_KEY = "secret_key"  # noqa: S105 - a file's name
MANIFEST = "manifest.json"

_BLOCK_BYTES = 1024 * 1024
_MAX_BYTES = {MANIFEST: 1024 * 1024, SECRET_KEY: 4096}
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


@contextmanager
def new_file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Yield a file that only its owner can read, and which appears at `path` only on success.

    Raises BackupRefused if the file exists, unless `force` is set, and if it cannot be written.
    """
    _refuse_occupied(path, force=force)
    aside: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part"
        )
        aside = Path(name)
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _put_in_place(aside, path, force=force)
        aside = None
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        if aside is not None:
            aside.unlink(missing_ok=True)


def _refuse_occupied(path: Path, *, force: bool) -> None:
    if path.is_dir():
        raise BackupRefused(f"{path} is a directory: name a file in it.")
    if path.exists() and not path.is_file():
        raise BackupRefused(f"{path} is not an ordinary file. A backup is written to one.")
    if path.exists() and not force:
        raise BackupRefused(
            f"{path} is there already. Choose another name, or give --force, which replaces "
            "it when the new backup is whole."
        )
    if not path.parent.is_dir():
        raise BackupRefused(f"There is no directory {path.parent}. Make it first.")


def _put_in_place(aside: Path, path: Path, *, force: bool) -> None:
    if force:
        aside.replace(path)
    else:
        try:
            os.link(aside, path)  # Unlike a rename, it never replaces an existing file.
            aside.unlink()
        except FileExistsError:
            _refuse_occupied(path, force=False)
            raise
        except OSError:  # A file system without hard links.
            _refuse_occupied(path, force=False)
            aside.rename(path)
    with suppress(OSError):  # Some file systems do not sync directories.
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _unwritable(path: Path, error: OSError) -> BackupRefused:
    if is_disk_full(error):
        return BackupRefused(
            f"There is no room for the backup in {path.parent}. No part of it was kept: "
            "free some space, or write it elsewhere."
        )
    return BackupRefused(f"{path} cannot be written ({error.strerror or error}).")


class Writer:
    """Writes the members of an archive. If the output is not seekable, `scratch_dir` needs room for
    the largest member."""

    def __init__(self, file: IO[bytes], scratch_dir: Path | None = None) -> None:
        self._file, self._scratch_dir = file, scratch_dir
        self.members: dict[str, Member] = {}

    def add(
        self, name: str, content: IO[bytes], *, note: Callable[[int], None] = lambda _bytes: None
    ) -> None:
        """Add a stream as a member. `note` is called with the number of bytes so far."""
        # The length of a stream is known only at its end, but the tar header comes first.
        if self._file.seekable():
            start = self._file.tell()
            self._file.write(bytes(tarfile.BLOCKSIZE))
            member = self._copy(content, note)
            end = self._file.tell()
            self._file.seek(start)
            self._file.write(_header(name, member.size_bytes))
            self._file.seek(end)
        else:
            with encryption.measure(content, self._scratch_dir) as (size_bytes, stream):
                self._file.write(_header(name, size_bytes))
                member = self._copy(stream, note)
        self.members[name] = member

    def _copy(self, content: IO[bytes], note: Callable[[int], None]) -> Member:
        digest, size_bytes = hashlib.sha256(), 0
        while block := content.read(_BLOCK_BYTES):
            digest.update(block)
            self._file.write(block)
            size_bytes += len(block)
            note(size_bytes)
        self._file.write(bytes(-size_bytes % tarfile.BLOCKSIZE))
        return Member(size_bytes, digest.hexdigest())

    def finish(self, manifest: Manifest) -> None:
        self.add(MANIFEST, io.BytesIO(manifest.to_json()))
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))


def _header(name: str, size_bytes: int) -> bytes:
    header = tarfile.TarInfo(name)
    header.size, header.mode, header.mtime = size_bytes, 0o600, int(time.time())
    return header.tobuf(tarfile.GNU_FORMAT)


class Backup:
    """A backup that is open for reading."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._members = _known_members(archive)
        if MANIFEST not in self._members or DATABASE not in self._members:
            raise BackupRefused("This is not a whole backup of a portal: it may have been cut off.")
        self.manifest = Manifest.from_json(self._bytes_of(MANIFEST))

    def verify(self, *, note: Callable[[int], None] = lambda _bytes: None) -> None:
        """Read everything and compare it with the manifest. Raises BackupRefused if they differ."""
        wanted = self.manifest.members
        if set(wanted) | {MANIFEST} != set(self._members):
            raise _damaged("what it holds")
        done = 0
        for name, member in wanted.items():
            if self._read(name, note, before=done) != member:
                raise _damaged(name)
            done += member.size_bytes

    def _read(self, name: str, note: Callable[[int], None], *, before: int) -> Member:
        """Return the real size and checksum of a member."""
        digest, size_bytes = hashlib.sha256(), 0
        try:
            with self.open(name) as content:
                while block := content.read(_BLOCK_BYTES):
                    digest.update(block)
                    size_bytes += len(block)
                    note(before + size_bytes)
        except tarfile.TarError as error:
            raise _damaged(name) from error
        return Member(size_bytes, digest.hexdigest())

    def open(self, name: str) -> IO[bytes]:
        """Open a member at its beginning; only one can be open at a time."""
        content = self._archive.extractfile(self._members[name])
        if content is None:
            raise _damaged(name)
        return content

    def secret_key(self) -> str | None:
        """Return the key that signed the portal's tokens; None if the portal did not store it.
        Raises BackupRefused if it is damaged."""
        if SECRET_KEY not in self._members:
            return None
        try:
            key = self._bytes_of(SECRET_KEY).decode("ascii").strip()
        except UnicodeDecodeError:
            key = ""
        if not key or not key.isprintable():
            raise _damaged(SECRET_KEY)
        return key

    def _bytes_of(self, name: str) -> bytes:
        with self.open(name) as content:
            return content.read()


@contextmanager
def open_archive(path: Path, key: Key | None = None) -> Iterator[Backup]:
    """Open a backup for reading. Raises BackupRefused for a file that is not a backup, that cannot
    be read, or that needs another key."""
    with ExitStack() as stack:
        try:
            if not path.is_file():
                raise BackupRefused(f"There is no file {path}.")
            file = stack.enter_context(path.open("rb"))
            is_encrypted = encryption.is_encrypted(file)
        except OSError as error:
            raise BackupRefused(f"{path} cannot be read ({error.strerror}).") from error
        if is_encrypted and key is None:
            raise BackupRefused(
                f"{path} is encrypted. Give --identity FILE or --passphrase-file FILE."
            )
        if key is not None and not is_encrypted:
            raise BackupRefused(
                f"{path} is not encrypted, and a key was given. If that is what you "
                "expect, leave out --identity and --passphrase-file."
            )
        yield stack.enter_context(read_archive(file, key, path))


@contextmanager
def read_archive(file: IO[bytes], key: Key | None, path: Path) -> Iterator[Backup]:
    """Open the archive in a file, decrypted if there is a key. Raises BackupRefused."""
    with ExitStack() as stack:
        try:
            if key is not None:
                file = stack.enter_context(encryption.decrypting(file, key))
            archive = stack.enter_context(tarfile.open(fileobj=file, mode="r:"))
        except OSError as error:
            raise BackupRefused(f"{path} cannot be read ({error.strerror}).") from error
        except tarfile.TarError as error:
            raise BackupRefused(f"{path} is not a backup of a portal.") from error
        yield Backup(archive)


def _known_members(archive: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    members: dict[str, tarfile.TarInfo] = {}
    try:
        for member in archive:
            is_known = member.name in (DATABASE, SECRET_KEY, MANIFEST)
            is_plain = member.type in _PLAIN and not member.issparse()
            if not is_known or not is_plain or member.name in members:
                raise BackupRefused(
                    "The file contains something that no backup of a portal contains "
                    f"({member.name!a:.100}). Nothing of it was read."
                )
            if member.size > _MAX_BYTES.get(member.name, member.size):
                raise _damaged(member.name)
            members[member.name] = member
    except (tarfile.TarError, ValueError, EOFError, OverflowError, IndexError) as error:
        raise BackupRefused(
            "This is not a whole backup of a portal: it is damaged or was cut off."
        ) from error
    return members


def _damaged(what: str) -> BackupRefused:
    return BackupRefused(
        f"The backup is damaged: {what} is not as its manifest says. Nothing was changed. "
        "Copy the file again, or take another backup."
    )
