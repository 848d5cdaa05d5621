"""What surrounds the processes fails: disk, descriptors, memory, clock. The long round alone."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.conftest import PASSWORD
from tests.factories.servers.endpoint import wait
from tests.faults.conftest import Tally
from tests.faults.world import World

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_long")]
_READY_WITHIN_S = 120.0
# The time of day alone: what waits for a time span goes by another clock.
_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    long offset = 0;
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("CLOCK_OFFSET"), "r") : NULL;
    if (file != NULL) {
        if (fscanf(file, "%ld", &offset) == 1) now->tv_sec += offset;
        fclose(file);
    }
    return result;
}
"""
_REFUSED = {500, 503, 507}


def upload(world: World, name: str, client: httpx.Client | None = None) -> str | None:
    """Upload a document; return its id, or None if it was refused."""
    text = f"The keeper of {name} lives in Brume.".encode()
    with suppress(httpx.TransportError):
        answer = (client or world.client).post(
            "/api/knowledge/documents", files={"file": (f"{name}.txt", text)}
        )
        if answer.status_code == 202:
            return str(answer.json()["documents"][0]["id"])
        assert answer.status_code in _REFUSED, answer.text
    return None


def is_found(world: World, name: str, client: httpx.Client | None = None) -> bool:
    with suppress(httpx.TransportError):
        answer = (client or world.client).post(
            "/api/knowledge/search", json={"query": name, "mode": "keyword", "top_n": 50}
        )
        return answer.is_success and name in [hit["title"] for hit in answer.json()["results"]]
    return False


def check_works(world: World, name: str, *earlier: str) -> float:
    """Check that the portal is whole; return how long it took to be so."""
    began = time.monotonic()
    wait(world.is_ready, _READY_WITHIN_S, "not ready")
    wait(lambda: upload(world, name) is not None, _READY_WITHIN_S, "no upload is taken")
    taken_s = time.monotonic() - began
    for one in (*earlier, name):
        wait(lambda one=one: is_found(world, one), _READY_WITHIN_S, f"{one} is not found")
    return taken_s


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Mount a file system in memory at `folder`, where that is allowed."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def world(run_dir: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(run_dir / request.node.name, workers=1)
    yield world
    world.stop()


def serving(world: World) -> psutil.Process:
    """Return the process that serves, a child of gunicorn's."""
    return psutil.Process(world.web.pid).children()[0]


def test_a_full_disk_of_database_and_log_loses_nothing_and_uploads_continue(
    run_dir: Path, tally: Tally
) -> None:
    with mounted(run_dir / "full", "-o", "size=500m,mode=755") as folder:
        world = World(folder / "data", workers=1)
        filler = folder / "filler"
        try:
            check_works(world, "before")
            taken = []
            for round_number in range(3):
                with filler.open("wb") as stream, suppress(OSError):
                    while True:
                        stream.write(bytes(1 << 16))
                for number in range(20):
                    name = f"full{round_number}x{number}"
                    if upload(world, name):
                        taken.append(name)
                filler.unlink()
                if not world.server.is_running():
                    # A server that cannot write its log stops; its operator starts it again.
                    world.server.start()
                recovery_s = check_works(world, f"after{round_number}", "before", *taken)
                tally.note("disk of database and log full", recovery_s=recovery_s)
        finally:
            world.stop()


def test_a_data_directory_that_is_read_only_does_not_stop_reading(
    run_dir: Path, tally: Tally
) -> None:
    world = World(run_dir / "read-only", workers=1)
    try:
        check_works(world, "before")
        with mounted(run_dir / "read-only-data", "-o", "size=1m,ro") as folder:
            world.restart_with({"PORTAL_DATA_DIR": str(folder)})
            wait(world.is_ready, _READY_WITHIN_S, "not ready on a read-only directory")
            wait(lambda: is_found(world, "before"), _READY_WITHIN_S, "not found")
            world.client.get("/documents").raise_for_status()
            upload(world, "meanwhile")
            world.restart_with({})
        tally.note("data directory read-only", recovery_s=check_works(world, "after", "before"))
    finally:
        world.stop()


def test_a_process_without_descriptors_refuses_and_continues(world: World, tally: Tally) -> None:
    check_works(world, "before")
    for number in range(5):
        process = serving(world)
        soft, hard = process.rlimit(resource.RLIMIT_NOFILE)
        process.rlimit(resource.RLIMIT_NOFILE, (process.num_fds() + 2, hard))
        clients = [httpx.Client(base_url=world.client.base_url, timeout=2) for _ in range(20)]
        for client in clients:
            with suppress(httpx.TransportError):
                client.get("/health/live")
        with suppress(httpx.TransportError):
            upload(world, f"lacking{number}")
        for client in clients:
            client.close()
        assert process.is_running()
        process.rlimit(resource.RLIMIT_NOFILE, (soft, hard))
        recovery_s = check_works(world, f"after{number}", "before")
        tally.note("no file descriptors left", recovery_s=recovery_s)


def test_a_process_without_memory_refuses_or_ends_and_continues(world: World, tally: Tally) -> None:
    check_works(world, "before")
    for number in range(5):
        process = serving(world)
        hard = process.rlimit(resource.RLIMIT_AS)[1]
        process.rlimit(resource.RLIMIT_AS, (process.memory_info().vms + (4 << 20), hard))
        big = b"The keeper of words lives in Brume. " * 600_000
        for _ in range(4):
            with suppress(httpx.TransportError):
                files = {"file": (f"big{number}.txt", big)}
                world.client.post("/api/knowledge/documents", files=files)
            with suppress(httpx.TransportError):
                world.client.get("/documents")
        with suppress(psutil.NoSuchProcess):
            process.rlimit(resource.RLIMIT_AS, (hard, hard))
        recovery_s = check_works(world, f"after{number}", "before")
        tally.note("no memory left", recovery_s=recovery_s)


@pytest.fixture
def shifted_clock(run_dir: Path) -> tuple[Path, dict[str, str]]:
    """Return a file that holds seconds to add to the clock, and the environment that heeds it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, library, offset = (run_dir / f"clock.{end}" for end in ("c", "so", "offset"))
    source.write_text(_CLOCK)
    offset.write_text("0")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return offset, {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(offset)}


def test_clocks_that_jump_lose_nothing(
    run_dir: Path, tally: Tally, shifted_clock: tuple[Path, dict[str, str]]
) -> None:
    offset, environment = shifted_clock
    world = World(run_dir / "clocks", workers=1, environment=environment)
    try:
        check_works(world, "before")
        for number, hours in enumerate((3, -3, 48, -48, 0)):
            offset.write_text(f"{hours * 3600}")
            began = time.monotonic()
            # Tokens of the other time may have ended, or not begun: people sign in again.
            body = {"username": "admin", "password": PASSWORD}
            answer = world.client.post("/api/auth/token", json=body)
            assert answer.is_success, answer.text
            token = answer.json()["access_token"]
            world.client.headers["Authorization"] = f"Bearer {token}"
            check_works(world, f"after{number}", "before")
            tally.note("clock of the portal jumps", recovery_s=time.monotonic() - began)
        assert world.rows("SELECT count(*) FROM jobs WHERE attempts > 1")[0][0] == 0
    finally:
        world.stop()
