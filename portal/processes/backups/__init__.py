"""`portal backup` and `portal restore`: a portal in one file, and back.

archive    the file: a tar of known members, written and read as streams
encryption the same file in the age format
manifest   the description of its contents
writing    a portal to a file, while it serves
restoring  a file to a portal, in one transaction
rehearsing the same into a portal that is deleted afterwards
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from portal.errors import BackupRefused
from portal.processes.backups import encryption, rehearsing, restoring, writing
from portal.processes.backups.manifest import Manifest
from portal.settings import Settings

_MEGABYTE = 1024 * 1024
_LINE_EVERY_S = 5.0
_STOPPED_BY_SIGNAL = 128


class _Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C so that nothing is left behind."""


def take(
    settings: Settings,
    path: Path,
    *,
    force: bool,
    encrypt: bool | None = None,
    passphrase_file: Path | None = None,
) -> None:
    """Write a backup and report its contents. If `encrypt` is None, encrypt it if the settings name
    recipients."""
    began = time.monotonic()
    lock = _choose_lock(settings, encrypt=encrypt, passphrase_file=passphrase_file)
    with _until_terminated():
        path = path.expanduser().absolute()
        manifest = writing.write(
            settings, path, force=force, lock=lock, note=_ProgressReport("written").note
        )
    size = path.stat().st_size / _MEGABYTE
    kind = "encrypted and checked" if lock else "checked"
    click.echo(
        f"{path}: {_words(manifest)}; {size:.1f} MB, {kind}, in {time.monotonic() - began:.0f} s"
    )


def _choose_lock(
    settings: Settings, *, encrypt: bool | None, passphrase_file: Path | None
) -> encryption.Lock | None:
    if passphrase_file is not None:
        if encrypt is False:
            raise BackupRefused("Give --no-encrypt or --passphrase-file, not both.")
        return encryption.lock_with_passphrase(passphrase_file)
    recipients = settings.backup.recipients
    if encrypt or (encrypt is None and recipients):
        return encryption.lock_for(recipients)
    return None


def put_back(
    settings: Settings,
    path: Path,
    *,
    replace: bool,
    is_rehearsal: bool = False,
    identity: Path | None = None,
    passphrase_file: Path | None = None,
) -> None:
    """Restore a backup and report its contents; a rehearsal restores into a temporary portal."""
    key = encryption.read_key(identity=identity, passphrase_file=passphrase_file)
    began = time.monotonic()
    path, note = path.expanduser().absolute(), _ProgressReport("read").note
    with _until_terminated():
        if is_rehearsal:
            manifest = rehearsing.rehearse(settings, path, key=key, report=_report, note=note)
        else:
            manifest = restoring.restore(
                settings, path, replace=replace, key=key, report=_report, note=note
            )
    click.echo(
        f"{'rehearsed' if is_rehearsal else 'restored'} {_words(manifest)}, "
        f"as of {manifest.taken_at}, in {time.monotonic() - began:.0f} s"
    )


def _words(manifest: Manifest) -> str:
    rows = manifest.rows
    return (
        f"{rows.get('documents', 0):,} documents, {rows.get('document_chunks', 0):,} passages, "
        f"{rows.get('users', 0):,} users, {rows.get('conversations', 0):,} conversations"
    )


def _report(line: str) -> None:
    click.echo(f"  {line} …", err=True)


class _ProgressReport:
    """Reports progress on a terminal, at intervals."""

    def __init__(self, verb: str) -> None:
        self._verb, self._said_at = verb, time.monotonic()

    def note(self, size_bytes: int) -> None:
        if sys.stderr.isatty() and time.monotonic() > self._said_at + _LINE_EVERY_S:
            self._said_at = time.monotonic()
            click.echo(f"  {size_bytes / _MEGABYTE:,.0f} MB {self._verb} …", err=True)


@contextmanager
def _until_terminated() -> Iterator[None]:
    """Undo unfinished work on SIGTERM, as on Ctrl-C, and exit with SIGTERM's own status."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        raise _Terminated

    previous = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    except _Terminated:
        click.echo("portal: stopped", err=True)
        raise SystemExit(_STOPPED_BY_SIGNAL + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, previous)
