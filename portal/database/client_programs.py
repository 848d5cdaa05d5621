"""pg_dump and pg_restore: which of them fits a server, and their bytes as a stream."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from portal.database.programs import installation
from portal.errors import BackupRefused, ServerSetup

BLOCK_BYTES = 1024 * 1024

# One that is held for longer is another process's migration, which would not wait for us either.
_LOCK_WAIT_MS = 60_000
_LAST_LINES = 3
# What the server creates itself: a schema is there before anything is in it, and
# extensions are as the server that restores has them.
_OF_THE_SERVER = re.compile(r"\d+; \d+ \d+ (COMMENT - )?(SCHEMA|EXTENSION) ")


def find_program(name: str, *, major: int, over_tls: bool = False) -> tuple[Path, str]:
    """`pg_dump` or `pg_restore` of this major version or a newer one, and its version: the
    portal's own or the first on PATH. The portal's own has no TLS, and would send a dump in plain
    or fail. Raises BackupRefused where there is none."""
    candidates: list[Path] = []
    if not over_tls:
        with suppress(ServerSetup):
            candidates.append(installation() / "bin" / name)
    candidates += [Path(found) for found in [shutil.which(name)] if found]
    for path in candidates:
        version = _version(path)
        if version is not None and int(version.split(".")[0]) >= major:
            return path, version
    raise BackupRefused(
        reason=f"This needs {name} of PostgreSQL {major} or newer"
        f"{', with TLS,' * over_tls} which is not here. Install "
        f"the PostgreSQL {major} client programs, so that {name} is on PATH."
    )


def _version(program: Path) -> str | None:
    try:
        said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"\d+(\.\d+)*", said.stdout)
    return found[0] if found else None


@contextmanager
def dumped(program: Path, conninfo: str, *, schema: str, snapshot: str) -> Iterator[IO[bytes]]:
    """A schema as it was at an exported snapshot, in pg_dump's custom format. Raises BackupRefused
    at the end where pg_dump did not succeed: what was read until then is not whole."""
    where, secrets = _connection(conninfo)
    command = [
        *(str(program), "--format=custom", "--compress=1", "--encoding=UTF8"),
        # Quoted, a name is a pattern that nothing else matches.
        *("--schema", sql.Identifier(schema).as_string(), "--snapshot", snapshot),
        *("--no-owner", "--no-privileges", "--no-tablespaces", "--no-password"),
        *(f"--lock-wait-timeout={_LOCK_WAIT_MS}", "--dbname", where),
    ]
    with _running(command, environment=secrets) as stream:
        yield stream


def contents_of(program: Path, dump: IO[bytes], *, left_out: Sequence[str]) -> str:
    """What is in a dump, as pg_restore lists it, without what a server creates and without
    indexes whose names begin as those of `left_out` do."""
    with _running([str(program), "--list"], given=dump) as stream:
        lines = stream.read().decode("utf-8", "replace").splitlines()
    unwanted = tuple(f" {name}" for name in left_out)
    return "\n".join(
        line
        for line in lines
        if not _OF_THE_SERVER.match(line)
        and not (" INDEX " in line and any(name in line for name in unwanted))
    )


def functions_in(contents: str, schema: str) -> set[str]:
    """Names of the functions that a dump brings, of what `contents_of` gives."""
    pattern = rf"^\d+; \d+ \d+ FUNCTION {re.escape(schema)} ([^(]+)\("
    found = re.finditer(pattern, contents, re.MULTILINE)
    return {each[1] for each in found}


@contextmanager
def script_of(
    program: Path, dump: IO[bytes], *, section: str, use_list: Path
) -> Iterator[IO[bytes]]:
    """The SQL of one section of a dump. Raises BackupRefused at the end where it is not whole."""
    command = [str(program), "--file=-", f"--section={section}", f"--use-list={use_list}"]
    command += ["--no-owner", "--no-privileges", "--no-tablespaces", "--no-security-labels"]
    command += ["--no-publications", "--no-subscriptions"]
    with _running(command, given=dump) as stream:
        yield stream


def _connection(conninfo: str) -> tuple[str, dict[str, str]]:
    """How to reach the server, and which part of it must not show in a list of processes."""
    parts = {k: str(v) for k, v in conninfo_to_dict(conninfo).items() if v is not None}
    password = parts.pop("password", None)
    return make_conninfo("", **parts), {"PGPASSWORD": password} if password else {}


@contextmanager
def _running(
    command: Sequence[str],
    *,
    given: IO[bytes] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[IO[bytes]]:
    """What a program writes; killed where its reader gives up. Raises BackupRefused with its last
    words where it fails."""
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            env=os.environ | {"LC_ALL": "C", "LANG": "C", **(environment or {})},
            start_new_session=True,  # Ctrl-C is for the portal, which then ends this.
        )
        feeder = Thread(target=_feed, args=(given, process), daemon=True) if given else None
        try:
            if feeder is not None:
                feeder.start()
            assert process.stdout is not None  # noqa: S101 - it was asked for above
            yield process.stdout
            status = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if feeder is not None:
                feeder.join()
            if process.stdout is not None:
                process.stdout.close()
        if status:
            words.seek(0)
            raise BackupRefused(reason=_failure(Path(command[0]).name, words.read(), status))


def _feed(source: IO[bytes], process: subprocess.Popen[bytes]) -> None:
    target = process.stdin
    if target is None:
        return
    try:
        shutil.copyfileobj(source, target, BLOCK_BYTES)
    except (OSError, ValueError, BackupRefused):
        # It had enough, which is its right, or the file cannot be read: then it misses the rest,
        # and says so.
        pass
    finally:
        with suppress(OSError):
            target.close()


def _failure(name: str, words: bytes, status: int) -> str:
    lines = [line.strip() for line in words.decode("utf-8", "replace").splitlines()]
    told = " | ".join([line for line in lines if line][-_LAST_LINES:])
    return f"{name} did not succeed: {told or f'it ended with {status}'}"
