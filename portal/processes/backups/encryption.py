"""Encryption of backups in the age format (https://age-encryption.org/v1), by pyrage.

The plaintext is the same tar as without encryption. For public keys it is written and read as a
stream; with a passphrase, pyrage can encrypt only in memory, which limits the size.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO, Any

import pyrage
from pyrage import x25519

from portal.errors import BackupRefused

MIN_PASSPHRASE_CHARACTERS = 12
MAX_IN_MEMORY_BYTES = 1024**3
_MAX_KEY_FILE_BYTES = 64 * 1024
_BLOCK_BYTES = 1024 * 1024
_AGE = b"age-encryption.org/v1\n"
_ARMORED_AGE = b"-----BEGIN AGE ENCRYPTED FILE-----"


@dataclass(frozen=True, slots=True)
class Key:
    """The key of an encrypted backup: identities or a passphrase."""

    identities: tuple[x25519.Identity, ...] = ()
    passphrase: str | None = None

    def __repr__(self) -> str:
        return "Key(…)"


@dataclass(frozen=True, slots=True)
class Lock:
    """The recipients of an encrypted backup, and the key that reads it back after writing."""

    recipients: tuple[x25519.Recipient, ...]
    key: Key


def lock_for(recipients: Sequence[str]) -> Lock:
    """Return a lock for public keys, and for a temporary key, which is kept in memory only and
    reads the file back. Raises BackupRefused if there are none or one is invalid."""
    if not recipients:
        raise BackupRefused(
            "There is nothing to encrypt for. Set PORTAL_BACKUP__RECIPIENTS to public keys "
            "(age1…), or give --passphrase-file."
        )
    once = x25519.Identity.generate()
    try:
        parsed = tuple(x25519.Recipient.from_str(each) for each in recipients)
    except pyrage.RecipientError as error:
        raise BackupRefused(
            "PORTAL_BACKUP__RECIPIENTS has something that is not a public key (age1…)."
        ) from error
    return Lock((*parsed, once.to_public()), Key(identities=(once,)))


def lock_with_passphrase(path: Path) -> Lock:
    """Return a lock with the passphrase in a file. Raises BackupRefused if it is too short."""
    passphrase = _read_passphrase(path)
    if len(passphrase) < MIN_PASSPHRASE_CHARACTERS:
        raise BackupRefused(
            f"The passphrase in {path} is too short: {MIN_PASSPHRASE_CHARACTERS} characters "
            "or more."
        )
    return Lock((), Key(passphrase=passphrase))


def read_key(*, identity: Path | None, passphrase_file: Path | None) -> Key | None:
    """Read the key for a backup; None if neither file is given. Raises BackupRefused."""
    if identity is not None and passphrase_file is not None:
        raise BackupRefused("Give --identity or --passphrase-file, not both.")
    if passphrase_file is not None:
        return Key(passphrase=_read_passphrase(passphrase_file))
    if identity is None:
        return None
    lines = [line.strip() for line in _read_key_file(identity).splitlines()]
    try:
        keys = [x25519.Identity.from_str(line) for line in lines if line and line[0] != "#"]
    except pyrage.IdentityError:
        keys = []
    if not keys:
        # Without the cause, which quotes the file's contents.
        raise BackupRefused(
            f"{identity} is not a file of age identities, as age-keygen writes them "
            "(AGE-SECRET-KEY-1…)."
        ) from None
    return Key(identities=tuple(keys))


def _read_passphrase(path: Path) -> str:
    lines = _read_key_file(path).splitlines()
    if not lines or not lines[0].strip():
        raise BackupRefused(f"The first line of {path} is empty: it must be the passphrase.")
    return lines[0]


def _read_key_file(path: Path) -> str:
    try:
        with path.open("rb") as file:  # The file may also be a pipe.
            content = file.read(_MAX_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise BackupRefused(f"{path} cannot be read ({error.strerror}).") from error
    try:
        if len(content) <= _MAX_KEY_FILE_BYTES:
            return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    raise BackupRefused(f"{path} is not a file of text with a key or a passphrase in it.")


# --- writing ----------------------------------------------------------------------------------


@contextmanager
def encrypting(file: IO[bytes], lock: Lock | None) -> Iterator[IO[bytes]]:
    """Yield the file to write plaintext to; `file` itself without a lock. With public keys it is
    not seekable."""
    if lock is None:
        yield file
    elif lock.key.passphrase is not None:
        plain = _BoundedBuffer()
        yield plain
        file.write(pyrage.passphrase.encrypt(plain.getvalue(), lock.key.passphrase))
    else:
        with _encrypting_stream(file, lock.recipients) as stream:
            yield stream


class _BoundedBuffer(io.BytesIO):
    def write(self, content: Any, /) -> int:
        if self.tell() + len(content) > MAX_IN_MEMORY_BYTES:
            raise BackupRefused(
                f"The backup is larger than {MAX_IN_MEMORY_BYTES // 1024**2} MB, which is "
                "too much for a passphrase: it is encrypted in memory. Set "
                "PORTAL_BACKUP__RECIPIENTS to a public key, for which it is streamed."
            )
        return super().write(content)


class _ErrorKeepingFile:
    """A wrapper that keeps the error of a failed write: pyrage passes on only its text."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, content: bytes) -> int:
        try:
            return self._file.write(content)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            self.error = error
            raise


@contextmanager
def _encrypting_stream(
    file: IO[bytes], recipients: Sequence[x25519.Recipient]
) -> Iterator[IO[bytes]]:
    """Yield a file whose content is encrypted in a thread."""
    # Signals raise in the main thread, where pyrage would swallow the exception.
    target = _ErrorKeepingFile(file)
    source, sink = _pipe()
    failure: list[Exception] = []

    def encrypt() -> None:
        try:
            with source:
                pyrage.encrypt_io(source, target, recipients)
        except (pyrage.EncryptError, OSError) as error:
            failure.append(target.error or error)

    thread = Thread(target=encrypt, daemon=True)
    thread.start()
    try:
        yield sink
        sink.close()
    except BrokenPipeError:
        thread.join()
        if not failure:
            raise
    finally:
        with suppress(OSError):
            sink.close()
        thread.join()
    if failure:
        raise failure[0]


@contextmanager
def measure(content: IO[bytes], directory: Path | None) -> Iterator[tuple[int, IO[bytes]]]:
    """Yield the length of a stream, and its bytes. They are buffered in an unnamed file, encrypted
    with a key that is kept in memory only."""
    once = x25519.Identity.generate()
    with tempfile.TemporaryFile(dir=directory) as scratch:
        size_bytes = 0
        with _encrypting_stream(scratch, [once.to_public()]) as sink:
            while block := content.read(_BLOCK_BYTES):
                size_bytes += len(block)
                sink.write(block)
        with _Decrypted(scratch, Key(identities=(once,))) as stream:
            yield size_bytes, io.BufferedReader(stream)


# --- reading ----------------------------------------------------------------------------------


def is_encrypted(file: IO[bytes]) -> bool:
    file.seek(0)
    start = file.read(len(_ARMORED_AGE))
    file.seek(0)
    return start.startswith((_AGE, _ARMORED_AGE))


def decrypting(file: IO[bytes], key: Key) -> AbstractContextManager[IO[bytes]]:
    """Open the plaintext of an encrypted file, which is seekable. Raises BackupRefused."""
    if key.passphrase is None:
        return io.BufferedReader(_Decrypted(file, key), _BLOCK_BYTES)
    file.seek(0)
    if os.fstat(file.fileno()).st_size > 2 * MAX_IN_MEMORY_BYTES:
        raise BackupRefused(
            "The file is too large for a backup with a passphrase. Decrypt it with `age -d`."
        )
    try:
        return io.BytesIO(pyrage.passphrase.decrypt(file.read(), key.passphrase))
    except (pyrage.DecryptError, OSError) as error:
        raise _unreadable() from error


class _Decrypted(io.RawIOBase):
    """The plaintext of a file for public keys. Seeking back decrypts from the start again."""

    def __init__(self, file: IO[bytes], key: Key) -> None:
        self._file, self._key = file, key
        self._thread: Thread | None = None
        self._position = 0
        self._failed = False
        self._start()

    def _start(self) -> None:
        self._file.seek(0)
        self._source, sink = _pipe()
        self._position = 0

        def decrypt() -> None:
            try:
                with sink:
                    pyrage.decrypt_io(self._file, sink, self._key.identities)
            except (pyrage.DecryptError, OSError):
                # The reader closing its end of the pipe also ends here, which is not a failure.
                self._failed = True

        self._failed = False
        self._thread = Thread(target=decrypt, daemon=True)
        self._thread.start()

    def _stop(self) -> None:
        self._source.close()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        content = self._source.read(len(buffer))
        if not content and self._thread is not None:
            self._thread.join()
            if self._failed:
                raise _unreadable()
        buffer[: len(content)] = content
        self._position += len(content)
        return len(content)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_CUR:
            offset += self._position
        elif whence != os.SEEK_SET:
            raise io.UnsupportedOperation("the length is not known")
        if offset < self._position:
            self._stop()
            self._start()
        block = bytearray(_BLOCK_BYTES)
        while self._position < offset:
            left = min(offset - self._position, _BLOCK_BYTES)
            if not self.readinto(memoryview(block)[:left]):
                break
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if not self.closed:
            self._stop()
        super().close()


def _unreadable() -> BackupRefused:
    return BackupRefused(
        "The backup cannot be decrypted: it is damaged or was cut off, or this is not its "
        "key or passphrase. Nothing was changed."
    )


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", buffering=_BLOCK_BYTES), os.fdopen(writing, "wb")
