"""The file of a backup: whole or refused, and written whole or not at all."""

from __future__ import annotations

import errno
import io
import os
import stat
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from portal.errors import BackupRefused
from portal.processes.backups import archive
from portal.processes.backups.archive import (
    DATABASE,
    MANIFEST,
    SECRET_KEY,
    Writer,
    new_file,
    open_archive,
)
from portal.processes.backups.manifest import FORMAT_VERSION, Manifest

DUMP = bytes(range(256)) * 4000
KEY = b"a key that signs"
MANIFESTO = Manifest(
    portal_version="1.2",
    schema_revision="0013",
    schema="public",
    postgresql_version="18.6",
    pg_dump_version="18.6",
    taken_at="2026-01-02T03:04:05+00:00",
    rows={"documents": 7},
    members={},
)


def fill(file: io.BufferedIOBase) -> None:
    writer = Writer(file)
    writer.add(DATABASE, io.BytesIO(DUMP))
    writer.add(SECRET_KEY, io.BytesIO(KEY))
    writer.finish(replace(MANIFESTO, members=dict(writer.members)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "portal.tar"
    with new_file(path, force=False) as file:
        fill(file)
    return path


def check(path: Path) -> None:
    with open_archive(path) as backup:
        backup.verify()


def test_archive_round_trip(path: Path) -> None:
    with open_archive(path) as backup:
        backup.verify()
        assert replace(backup.manifest, members={}) == MANIFESTO
        for _ in range(2):  # It can be read again, each time from the beginning.
            with backup.open(DATABASE) as dump:
                assert dump.read() == DUMP
        assert backup.secret_key() == KEY.decode()


def test_backup_has_mode_600_and_is_a_plain_tar(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with tarfile.open(path) as tar:
        assert tar.getnames() == [DATABASE, SECRET_KEY, MANIFEST]
        assert all(member.mode == 0o600 for member in tar)


@pytest.mark.parametrize("kept", [0, 1, 511, 512, 100_000, 1024 * 1000, -1024, -1025, -3000])
def test_truncated_file_is_refused(path: Path, kept: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    if kept == -1024:  # The two blocks of zeros at the end carry no information.
        return check(path)
    with pytest.raises(BackupRefused):
        check(path)
    return None


@pytest.mark.parametrize("name", [DATABASE, SECRET_KEY, MANIFEST])
@pytest.mark.parametrize("place", [0.0, 0.5, 0.999])
def test_flipped_bit_is_noticed(path: Path, name: str, place: float) -> None:
    with tarfile.open(path) as tar:
        member = tar.getmember(name)
    at = member.offset_data + int(place * member.size)
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 0x80
    path.write_bytes(damaged)
    with pytest.raises(BackupRefused):
        check(path)


def hostile(name: str = DATABASE, **changes: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    for attribute, value in changes.items():
        setattr(member, attribute, value)
    return member


@pytest.mark.parametrize(
    "member",
    [
        hostile("../escaped"),
        hostile("/tmp/escaped"),
        hostile(f"./{DATABASE}/../../escaped"),
        hostile("C:\\escaped"),
        hostile("portal.yaml"),
        hostile(SECRET_KEY, type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        hostile(SECRET_KEY, type=tarfile.LNKTYPE, linkname="../../etc/passwd"),
        hostile(SECRET_KEY, type=tarfile.FIFOTYPE),
        hostile(SECRET_KEY, type=tarfile.CHRTYPE, devmajor=1, devminor=5),
        hostile(SECRET_KEY, type=tarfile.DIRTYPE),
        hostile(SECRET_KEY, pax_headers={"GNU.sparse.map": "0,1", "GNU.sparse.size": "999999999"}),
        hostile(DATABASE),
        hostile("\x1b[2J\x1b]0;owned\x07"),
    ],
    ids=lambda member: f"{member.name!a}-{member.type.decode()}",
)
def test_unexpected_member_is_refused_and_nothing_is_written(
    path: Path, tmp_path: Path, member: tarfile.TarInfo
) -> None:
    before = sorted(tmp_path.rglob("*"))
    if member.name == SECRET_KEY:
        _without_key(path)
    with tarfile.open(path, "a", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(member)
    with pytest.raises(BackupRefused) as refused:
        check(path)
    assert str(refused.value).isprintable()
    assert sorted(tmp_path.rglob("*")) == before


def _without_key(path: Path) -> None:
    with path.open("r+b") as file:
        writer = Writer(file)
        writer.add(DATABASE, io.BytesIO(DUMP))
        writer.finish(replace(MANIFESTO, members=dict(writer.members)))
        file.truncate()


def test_huge_member_that_claims_to_be_small_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tar"
    with path.open("wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo(MANIFEST)
        member.size = 4 * 1024**3
        file.write(member.tobuf())
        file.seek(member.size, os.SEEK_CUR)
        tar.offset = file.tell()
        tar.addfile(tarfile.TarInfo(DATABASE))
    with pytest.raises(BackupRefused, match="damaged"):
        check(path)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz"])
def test_a_compressed_file_is_not_unpacked(path: Path, tmp_path: Path, mode: str) -> None:
    packed = tmp_path / "packed"
    with tarfile.open(packed, mode) as tar:
        tar.add(path, arcname=DATABASE)
    with pytest.raises(BackupRefused, match="not a backup"):
        check(packed)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.replace(b'"format_version": 1', b'"format_version": true'),
        lambda told: told.replace(b'"documents": 7', b'"documents": -7'),
        lambda told: told.replace(b'"public"', b'"pub\\u001b[31mlic"'),
        lambda told: told.replace(b"knowledge-portal-backup", b"something-else"),
        lambda _told: b"[" * 100_000,
        lambda _told: b"null",
        lambda _told: b"\xff\xfe",
        lambda _told: b"{}",
    ],
)
def test_invalid_manifest_is_refused(change: Callable[[bytes], bytes]) -> None:
    told = MANIFESTO.to_json()
    assert change(told) != told
    with pytest.raises(BackupRefused, match="manifest"):
        Manifest.from_json(change(told))


def test_a_newer_format_is_refused_with_the_version_that_made_it() -> None:
    newer = MANIFESTO.to_json().replace(
        b'"format_version": %d' % FORMAT_VERSION, b'"format_version": %d' % (FORMAT_VERSION + 1)
    )
    with pytest.raises(BackupRefused, match=r"portal 1\.2"):
        Manifest.from_json(newer)


@pytest.mark.parametrize("force", [False, True])
def test_failure_leaves_no_file_and_replaces_none(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "portal.tar"
    if force:
        path.write_bytes(b"the last good one")
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    failures = (KeyboardInterrupt(), OSError(errno.ENOSPC, "full"), BackupRefused(reason="no"))
    for failure in failures:
        with pytest.raises((KeyboardInterrupt, BackupRefused)):
            _write(path, force=force, then=failure)
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def _write(path: Path, *, force: bool, then: BaseException | None = None) -> None:
    """Write a whole backup; then another program puts a file in its place, or it fails."""
    with new_file(path, force=force) as file:
        fill(file)
        if then is not None:
            raise then
        path.write_bytes(b"somebody else's")


def test_another_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "portal.tar"
    with pytest.raises(BackupRefused, match="already"):
        _write(path, force=False)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"somebody else's"]


def test_archive_is_put_in_place_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(archive.os, "link", no_links)
    with new_file(tmp_path / "portal.tar", force=False) as file:
        fill(file)
    assert [each.name for each in tmp_path.iterdir()] == ["portal.tar"]
    check(tmp_path / "portal.tar")


def test_unusable_target_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path, "is a directory"),
        (tmp_path / "no" / "portal.tar", "There is no directory"),
        (tmp_path / "pipe", "not an ordinary file"),
    ):
        with pytest.raises(BackupRefused, match=words), new_file(path, force=True):
            pass
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "nothing"):
        with pytest.raises(BackupRefused, match="There is no file"), open_archive(path):
            pass
