"""Encrypted backups: opened only with their key, whole or refused, and never in plain on disk."""

from __future__ import annotations

import errno
import io
import os
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

import pyrage
import pytest
from pyrage import x25519

from portal.errors import BackupRefused, InvalidSetting
from portal.processes.backups import encryption, writing
from portal.processes.backups.archive import (
    DATABASE,
    MANIFEST,
    SECRET_KEY,
    Writer,
    new_file,
    open_archive,
)
from portal.processes.backups.encryption import Key, Lock
from portal.settings import load_settings
from tests.unit.processes.backups.test_archive import KEY, MANIFESTO

PASSPHRASE = "correct horse battery staple"
# Random bytes do not compress, and these are longer than any pipe or buffer.
DUMP = b"words of a private document " + os.urandom(3_000_000)


@pytest.fixture
def sealed(tmp_path: Path) -> tuple[Path, Path]:
    """Return a backup that is encrypted for a public key, and the file of its identity."""
    identity = x25519.Identity.generate()
    secret = tmp_path / "secret"
    secret.write_text(f"# created: today\n# public key: …\n{identity}\n", encoding="utf-8")
    path = tmp_path / "portal.tar.age"
    write(path, encryption.lock_for([str(identity.to_public())]))
    return path, secret


def any_lock() -> Lock:
    return encryption.lock_for([str(x25519.Identity.generate().to_public())])


def write(
    path: Path, lock: Lock | None, then: Callable[[IO[bytes]], None] = lambda _file: None
) -> None:
    with new_file(path, force=False) as file:
        with encryption.encrypting(file, lock) as target:
            fill(Writer(target, scratch_dir=path.parent))
        then(file)
        writing.verify_written(file, path, lock)


def fill(writer: Writer) -> None:
    writer.add(DATABASE, io.BytesIO(DUMP))
    writer.add(SECRET_KEY, io.BytesIO(KEY))
    writer.finish(replace(MANIFESTO, members=dict(writer.members)))


def key_in(secret: Path) -> Key:
    key = encryption.read_key(identity=secret, passphrase_file=None)
    assert key is not None
    return key


def check(path: Path, key: Key | None) -> None:
    with open_archive(path, key) as backup:
        backup.verify()


def test_an_encrypted_backup_opens_with_its_key_as_often_as_needed(
    sealed: tuple[Path, Path],
) -> None:
    path, secret = sealed
    with open_archive(path, key_in(secret)) as backup:
        backup.verify()
        for _ in range(2):
            with backup.open(DATABASE) as dump:
                assert dump.read() == DUMP
        assert backup.secret_key() == KEY.decode()


def test_age_decrypts_it_to_the_same_tar(sealed: tuple[Path, Path], tmp_path: Path) -> None:
    path, secret = sealed
    assert path.read_bytes().startswith(b"age-encryption.org/v1\n-> X25519 ")
    plain = tmp_path / "portal.tar"
    pyrage.decrypt_file(str(path), str(plain), key_in(secret).identities)
    check(plain, None)


def test_armored_files_of_age_open_as_well(sealed: tuple[Path, Path], tmp_path: Path) -> None:
    path, secret = sealed
    key, armored = key_in(secret), tmp_path / "armored"
    plain = pyrage.decrypt(path.read_bytes(), key.identities)
    public = [each.to_public() for each in key.identities]
    armored.write_bytes(pyrage.encrypt(plain, public, armored=True))
    check(armored, key)


def test_only_its_own_passphrase_opens_a_backup(tmp_path: Path) -> None:
    # One test: each use of a passphrase takes a second, on purpose.
    path, secret = tmp_path / "portal.tar.age", tmp_path / "secret"
    secret.write_text(f"{PASSPHRASE}\n", encoding="utf-8")
    write(path, encryption.lock_with_passphrase(secret))
    plain = pyrage.passphrase.decrypt(path.read_bytes(), PASSPHRASE)
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        assert tar.getnames() == [DATABASE, SECRET_KEY, MANIFEST]
    check(path, encryption.read_key(identity=None, passphrase_file=secret))
    with pytest.raises(BackupRefused, match="not its key or passphrase"):
        check(path, Key(passphrase="another passphrase"))
    with pytest.raises(BackupRefused, match="not its key or passphrase"):
        check(path, Key(identities=(x25519.Identity.generate(),)))


def test_no_plain_text_is_on_disk_during_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk: list[bytes] = []
    copy = Writer._copy

    def look(writer: Writer, content: io.BufferedIOBase, note: Callable[[int], None]) -> object:
        # Include files that no longer have a name.
        for descriptor in Path("/proc/self/fd").iterdir():
            try:
                if descriptor.is_file():
                    on_disk.append(descriptor.read_bytes())
            except OSError:
                continue
        return copy(writer, content, note)

    monkeypatch.setattr(Writer, "_copy", look)
    write(tmp_path / "portal.tar.age", any_lock())
    assert any(DUMP[-64:] not in each and len(each) > len(DUMP) for each in on_disk)
    assert not any(b"private document" in each for each in on_disk)
    assert [each.name for each in tmp_path.iterdir()] == ["portal.tar.age"]


@pytest.mark.parametrize("kept", [0, 30, 100, 200, 300, 1_000_000, -1, -70_000])
def test_truncated_file_is_refused(sealed: tuple[Path, Path], kept: int) -> None:
    path, secret = sealed
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(BackupRefused):
        check(path, key_in(secret))


@pytest.mark.parametrize("at", [40, 70, 130, 100_000, 2_000_000, -1])
def test_flipped_bit_is_noticed(sealed: tuple[Path, Path], at: int) -> None:
    path, secret = sealed
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(BackupRefused, match="cannot be decrypted"):
        check(path, key_in(secret))


def test_another_key_opens_nothing(sealed: tuple[Path, Path]) -> None:
    wrong = Key(identities=(x25519.Identity.generate(),))
    with (
        pytest.raises(BackupRefused, match="not its key or passphrase"),
        open_archive(sealed[0], wrong),
    ):
        pass


def test_missing_or_unneeded_key_is_reported_with_advice(
    sealed: tuple[Path, Path], tmp_path: Path
) -> None:
    path, secret = sealed
    with pytest.raises(BackupRefused, match="is encrypted"), open_archive(path):
        pass
    plain = tmp_path / "plain.tar"
    write(plain, None)
    with pytest.raises(BackupRefused, match="not encrypted"), open_archive(plain, key_in(secret)):
        pass


@pytest.mark.parametrize("encrypted", [False, True])
def test_file_that_the_disk_corrupted_is_not_put_in_place(tmp_path: Path, encrypted: bool) -> None:
    lock = any_lock() if encrypted else None
    with pytest.raises(BackupRefused):
        write(tmp_path / "portal.tar", lock, then=overwrite_some)
    assert not list(tmp_path.iterdir())


def overwrite_some(file: IO[bytes]) -> None:
    file.seek(1_500_000)
    file.write(b"\0" * 16)


def test_full_disk_is_reported_as_such(tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def write(self, _content: object, /) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    lock = any_lock()
    with (
        pytest.raises(BackupRefused, match="no room"),
        new_file(tmp_path / "portal.tar", force=False),
        encryption.encrypting(Full(), lock) as target,
    ):
        fill(Writer(target, scratch_dir=tmp_path))
    assert not list(tmp_path.iterdir())


def test_interrupted_backup_leaves_no_file(tmp_path: Path) -> None:
    def interrupt(_file: IO[bytes]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "portal.tar", any_lock(), then=interrupt)
    assert not list(tmp_path.iterdir())


def test_file_too_large_for_memory_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encryption, "MAX_IN_MEMORY_BYTES", 2_000_000)
    with pytest.raises(BackupRefused, match="PORTAL_BACKUP__RECIPIENTS"):
        write(tmp_path / "portal.tar", Lock((), Key(passphrase=PASSPHRASE)))
    assert not list(tmp_path.iterdir())


def test_invalid_key_files_are_refused_without_repeating_them(tmp_path: Path) -> None:
    file = tmp_path / "key"
    identity = str(x25519.Identity.generate())
    for content in (identity[:-1], "# only a comment\n", "AGE-SECRET-KEY-1HUNTER2", "\0\xff" * 99):
        file.write_text(content, encoding="latin-1")
        with pytest.raises(BackupRefused) as refused:
            encryption.read_key(identity=file, passphrase_file=None)
        assert content not in str(refused.value)
        assert refused.value.__cause__ is None
    for content, words in (("", "is empty"), (" \n", "is empty"), ("short", "too short")):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(BackupRefused, match=words):
            encryption.lock_with_passphrase(file)
    with pytest.raises(BackupRefused, match="cannot be read"):
        encryption.read_key(identity=tmp_path / "nothing", passphrase_file=None)
    with pytest.raises(BackupRefused, match="not both"):
        encryption.read_key(identity=file, passphrase_file=file)


def test_keys_are_not_shown_when_printed() -> None:
    identity = x25519.Identity.generate()
    shown = repr([Key(passphrase=PASSPHRASE), Key(identities=(identity,))])
    assert PASSPHRASE not in shown
    assert "AGE-SECRET-KEY" not in shown


def test_recipients_must_be_public_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [str(x25519.Identity.generate().to_public()) for _ in range(2)]
    monkeypatch.setenv("PORTAL_BACKUP__RECIPIENTS", ", ".join(keys))
    assert load_settings().backup.recipients == tuple(keys)
    for wrong in ("age1short", str(x25519.Identity.generate()), f"{keys[0]} {keys[1]}"):
        monkeypatch.setenv("PORTAL_BACKUP__RECIPIENTS", wrong)
        with pytest.raises(InvalidSetting) as refused:
            load_settings()
        assert "AGE-SECRET-KEY" not in str(refused.value)
    with pytest.raises(BackupRefused, match="nothing to encrypt for"):
        encryption.lock_for([])
    with pytest.raises(BackupRefused, match="not a public key"):
        encryption.lock_for([keys[0][:-1] + ("q" if keys[0][-1] != "q" else "p")])


def test_reading_may_stop_in_the_middle(sealed: tuple[Path, Path]) -> None:
    path, secret = sealed
    with open_archive(path, key_in(secret)) as backup, backup.open(DATABASE) as dump:
        assert dump.read(10) == DUMP[:10]
