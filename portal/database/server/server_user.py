"""The operating system's user of the server. PostgreSQL refuses to run as root, so root starts it
as another user."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

import structlog

from portal.errors import ServerSetup

SYSTEM_USER = "portal-postgres"

log = structlog.get_logger(__name__)


def choose_server_user(cluster: Path) -> pwd.struct_passwd:
    """Return the user to run the server as: the current one; for root the cluster's owner or a
    dedicated user. Raises ServerSetup when there is no such user."""
    owner_uid = cluster.stat().st_uid if cluster.exists() else None
    if os.geteuid() != 0:
        me = _entry(os.geteuid())
        if owner_uid not in (None, me.pw_uid):
            raise ServerSetup(
                f"The database in {cluster} belongs to the user {_name(owner_uid)}, and you "
                f"are {me.pw_name}. Start the portal as the user (or as root) who made it, or "
                "set PORTAL_DATA_DIR to a directory of your own."
            )
        return me
    if owner_uid:
        return _entry(owner_uid)
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return _make_system_user()


def _entry(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise ServerSetup(
            f"The user with the number {uid} has no name, and PostgreSQL does not start "
            "without one. Add it to /etc/passwd, or set DATABASE_URL to a server of your own."
        ) from None


def _name(uid: int | None) -> str:
    try:
        return pwd.getpwuid(uid or 0).pw_name
    except KeyError:
        return str(uid)


def _make_system_user() -> pwd.struct_passwd:
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    useradd = shutil.which("useradd", path=search)
    if useradd is not None:
        command = [useradd, "--system", "--user-group", "--no-create-home"]
        command += ["--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", SYSTEM_USER]
        subprocess.run(command, check=False, capture_output=True)
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        raise ServerSetup(
            "PostgreSQL does not run as root, and a system user for it could not be added. "
            f"Add one named {SYSTEM_USER} (useradd --system {SYSTEM_USER}), or start the portal "
            "as an ordinary user."
        ) from None


def open_path_for(user: pwd.struct_passwd, target: Path) -> None:
    """Let `user` reach `target`, whose own permissions are not changed. Gives others permission to
    traverse (not to list) root's directories on the path, such as those of `mktemp -d`. Raises
    ServerSetup if a home directory, or one that root does not own, is closed."""
    if os.geteuid() != 0 or user.pw_uid == 0:
        return
    homes = {Path(entry.pw_dir) for entry in pwd.getpwall() if entry.pw_dir not in ("/", "")}
    for directory in reversed(target.parents):
        state = directory.stat()
        if _may_pass(user, state):
            continue
        if directory in homes or state.st_uid != 0:
            raise ServerSetup(
                f"The database server runs as the user {user.pw_name}, because PostgreSQL "
                f"refuses to run as root, and that user may not enter {directory}, which is "
                "private. Put the portal and its data directory elsewhere (for example under "
                "/srv or /opt), start it as an ordinary user, or set DATABASE_URL."
            )
        directory.chmod(stat.S_IMODE(state.st_mode) | stat.S_IXOTH)
        log.info("opened directory to pass through", directory=str(directory), user=user.pw_name)


def _may_pass(user: pwd.struct_passwd, state: os.stat_result) -> bool:
    if state.st_uid == user.pw_uid:
        return bool(state.st_mode & stat.S_IXUSR)
    if state.st_gid == user.pw_gid:
        return bool(state.st_mode & stat.S_IXGRP)
    return bool(state.st_mode & stat.S_IXOTH)


def open_installation_for(user: pwd.struct_passwd, installation: Path) -> None:
    """Let `user` run the programs of a package that was installed under a strict umask."""
    open_path_for(user, installation)
    if os.geteuid() != 0:
        return
    for folder, _, names in os.walk(installation):
        for path in [Path(folder), *(Path(folder, name) for name in names)]:
            mode = stat.S_IMODE(path.stat().st_mode)
            # Everyone may read and run what the owner may.
            wanted = mode | (mode & 0o500) >> 6
            if wanted != mode:
                path.chmod(wanted)
