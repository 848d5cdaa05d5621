"""pg_dump and pg_restore: a version that suits the server, and their output as a stream."""

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

from portal.database.server.programs import installation
from portal.errors import BackupRefused, ServerSetup

BLOCK_BYTES = 1024 * 1024

# A lock that is held for longer belongs to another process's migration.
_LOCK_WAIT_MS = 60_000
_LAST_LINES = 3
# Entries that the server creates itself: the schema exists before the restore, and extensions are
# those of the server that restores.
_OF_THE_SERVER = re.compile(r"\d+; \d+ \d+ (COMMENT - )?(SCHEMA|EXTENSION) ")


def find_program(name: str, *, major: int, over_tls: bool = False) -> tuple[Path, str]:
    """Return the path and version of a `pg_dump` or `pg_restore` of this major version or a newer
    one: the portal's own or the first on PATH. The portal's own has no TLS, and would send a dump
    unencrypted or fail. Raises BackupRefused if there is none."""
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
        f"This needs {name} of PostgreSQL {major} or newer"
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
    """Yield a dump of a schema as of an exported snapshot, in pg_dump's custom format. Raises
    BackupRefused at the end if pg_dump failed: the output is then incomplete."""
    where, secrets = _connection(conninfo)
    command = [
        *(str(program), "--format=custom", "--compress=1", "--encoding=UTF8"),
        # A quoted name is a pattern that matches nothing else.
        *("--schema", sql.Identifier(schema).as_string(), "--snapshot", snapshot),
        *("--no-owner", "--no-privileges", "--no-tablespaces", "--no-password"),
        *(f"--lock-wait-timeout={_LOCK_WAIT_MS}", "--dbname", where),
    ]
    with _running(command, environment=secrets) as stream:
        yield stream


def contents_of(program: Path, dump: IO[bytes], *, left_out: Sequence[str]) -> str:
    """Return the contents of a dump, as pg_restore lists them, without what a server creates and
    without indexes whose names begin with one of `left_out`."""
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
    """Return the names of the functions in a dump, from the result of `contents_of`."""
    pattern = rf"^\d+; \d+ \d+ FUNCTION {re.escape(schema)} ([^(]+)\("
    found = re.finditer(pattern, contents, re.MULTILINE)
    return {each[1] for each in found}


@contextmanager
def script_of(
    program: Path, dump: IO[bytes], *, section: str, use_list: Path
) -> Iterator[IO[bytes]]:
    """Yield the SQL of one section of a dump. Raises BackupRefused at the end if the dump is
    incomplete."""
    command = [str(program), "--file=-", f"--section={section}", f"--use-list={use_list}"]
    command += ["--no-owner", "--no-privileges", "--no-tablespaces", "--no-security-labels"]
    command += ["--no-publications", "--no-subscriptions"]
    with _running(command, given=dump) as stream:
        yield stream


def _connection(conninfo: str) -> tuple[str, dict[str, str]]:
    """Return the connection string without the password, which must not show in a list of
    processes, and an environment variable with it."""
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
    """Yield a program's output; kill it if the reader stops. Raises BackupRefused."""
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            env=os.environ | {"LC_ALL": "C", "LANG": "C", **(environment or {})},
            start_new_session=True,  # Ctrl-C is for the portal, which then ends this process.
        )
        feeder = Thread(target=_feed, args=(given, process), daemon=True) if given else None
        try:
            if feeder is not None:
                feeder.start()
            assert process.stdout is not None  # noqa: S101 - requested above
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
            raise BackupRefused(_failure(Path(command[0]).name, words.read(), status))


def _feed(source: IO[bytes], process: subprocess.Popen[bytes]) -> None:
    target = process.stdin
    if target is None:
        return
    try:
        shutil.copyfileobj(source, target, BLOCK_BYTES)
    except (OSError, ValueError, BackupRefused):
        # It closed its input, either because it had enough or because it cannot read the file; in
        # that case its exit status and message report it.
        pass
    finally:
        with suppress(OSError):
            target.close()


def _failure(name: str, words: bytes, status: int) -> str:
    lines = [line.strip() for line in words.decode("utf-8", "replace").splitlines()]
    last_lines = " | ".join([line for line in lines if line][-_LAST_LINES:])
    return f"{name} did not succeed: {last_lines or f'it ended with {status}'}"
