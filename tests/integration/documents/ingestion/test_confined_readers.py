"""A reader taken over by a hostile file is confined, by each layer and by all together."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.ingest import reader_process
from portal.ingest.limits import FileToRead
from portal.ingest.readers import confinement

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="confinement is made of what Linux has"
)

ORDINARY_USER = 12_345
ATTEMPTS = (
    "secret_key", "passwd", "other_upload", "list_folder", "parent_environment", "parent_memory",
    "write_outside", "remove_upload", "postgres_socket", "abstract_socket", "tcp_port",
    "name_lookup", "udp", "fork", "run_program", "replace_program", "trace_parent", "signal_parent",
    "stop_parent_thread", "raise_limits", "become_root", "new_namespace", "duplicate_descriptor",
    "shared_memory", "io_uring", "own_limits_of_parent",
)  # fmt: skip

# Runs in place of a reader; it imports everything it needs before it is confined.
HOSTILE_READER = textwrap.dedent(
    """
    import codecs, ctypes, os, resource, socket, subprocess
    codecs.lookup("idna")  # For addresses.
    LIBC = ctypes.CDLL(None, use_errno=True)

    def checked(result):
        if result < 0:
            raise OSError(ctypes.get_errno(), "refused")
        return result

    def read(
        file, *, secret_key, other_upload, folder, unix_socket, abstract_socket, port, harm=True
    ):
        parent = os.getppid()
        def connect(kind, address):
            with socket.socket(kind, socket.SOCK_STREAM) as one:
                one.connect(address)
        def ask_name_server():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.sendto(bytes(12), ("127.0.0.1", 53))
        attempts = {
            "secret_key": lambda: open(secret_key).read(),
            "passwd": lambda: open("/etc/passwd").read(),
            "other_upload": lambda: open(other_upload).read(),
            "list_folder": lambda: os.listdir(folder),
            "parent_environment": lambda: open(f"/proc/{parent}/environ").read(),
            "parent_memory": lambda: open(f"/proc/{parent}/mem", "rb").close(),
            "write_outside": lambda: open(os.path.join(folder, "written"), "w").close(),
            "remove_upload": lambda: os.unlink(other_upload),
            "postgres_socket": lambda: connect(socket.AF_UNIX, unix_socket),
            "abstract_socket": lambda: connect(socket.AF_UNIX, abstract_socket),
            "tcp_port": lambda: connect(socket.AF_INET, ("127.0.0.1", port)),
            "name_lookup": ask_name_server,
            "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
            "fork": lambda: os.fork() or os._exit(0),
            "run_program": lambda: subprocess.run(["/bin/true"], check=True),
            "replace_program": lambda: os.execv("/bin/echo", ["echo", '{"replaced": true}']),
            "trace_parent": lambda: checked(LIBC.ptrace(16, parent, 0, 0)),
            "signal_parent": lambda: os.kill(parent, 0),
            "stop_parent_thread": lambda: checked(LIBC.syscall(234, parent, parent, 0)),
            "raise_limits": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
            "become_root": lambda: os.setuid(0),
            "new_namespace": lambda: checked(LIBC.unshare(0x10000000)),
            "duplicate_descriptor": lambda: os.dup(0),
            "shared_memory": lambda: os.memfd_create("x"),
            "io_uring": lambda: checked(LIBC.syscall(425, 1, bytes(120))),
            "own_limits_of_parent": lambda: resource.prlimit(parent, resource.RLIMIT_CORE),
        }
        if not harm:
            del attempts["replace_program"], attempts["trace_parent"]
        first = file.read(5).decode()
        done = []
        for name, attempt in attempts.items():
            try:
                attempt()
            except (OSError, ValueError, subprocess.SubprocessError):
                continue
            done.append(name)
        yield {"read": first, "attempted": list(attempts), "done": done, "uid": os.getuid()}
    """
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[dict[str, object]]:
    """Yield what a process without confinement can reach."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o777)
    (tmp_path / "secret_key").write_text("the signing key")
    (folder / "upload-of-another").write_text("private words")
    for name in ("secret_key", "tmp/upload-of-another"):
        (tmp_path / name).chmod(0o666)
    name = f"\0portal-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        named.bind(str(folder / ".s.PGSQL.5432"))
        (folder / ".s.PGSQL.5432").chmod(0o777)
        abstract.bind(name)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            named.listen()
            abstract.listen()
            yield {
                "secret_key": str(tmp_path / "secret_key"),
                "other_upload": str(folder / "upload-of-another"),
                "folder": str(folder),
                "unix_socket": str(folder / ".s.PGSQL.5432"),
                "abstract_socket": name,
                "port": listener.getsockname()[1],
            }


@pytest.fixture
def readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "readers"
    folder.mkdir(mode=0o755)
    (folder / "hostile.py").write_text(HOSTILE_READER)
    monkeypatch.setattr(reader_process, "_READERS", folder)
    return folder


def upload(tmp_path: Path) -> Path:
    path = tmp_path / "upload"
    path.write_text("words of an upload")
    return path


def test_hostile_reader_reaches_nothing(
    tmp_path: Path, readers: Path, world: dict[str, object]
) -> None:
    (record,) = reader_process.read_records("hostile", FileToRead(upload(tmp_path), "a"), **world)
    assert record["read"] == "words"
    assert set(record["attempted"]) == set(ATTEMPTS)
    assert record["done"] == []
    assert Path(str(world["other_upload"])).read_text() == "private words"
    if os.geteuid() == 0:
        assert record["uid"] == confinement.NOBODY


def test_hostile_reader_succeeds_without_confinement(
    tmp_path: Path, readers: Path, world: dict[str, object]
) -> None:
    """Without this, the attempts above would prove nothing."""
    done = run_apart(tmp_path, readers, world, layers=())["done"]
    possible = set(ATTEMPTS) - {
        "replace_program", "trace_parent", "io_uring", "parent_memory", "parent_environment",
        "fork", "become_root", "raise_limits", "stop_parent_thread", "own_limits_of_parent",
        "signal_parent", "new_namespace",
    }  # fmt: skip
    assert possible <= set(done)


@pytest.mark.parametrize("uid", [0, ORDINARY_USER])
def test_readers_of_root_and_of_an_ordinary_user_are_confined_alike(
    tmp_path: Path, readers: Path, world: dict[str, object], uid: int
) -> None:
    if os.geteuid() != 0 and uid != os.geteuid():
        uid = os.geteuid()
    found = run_apart(tmp_path, readers, world, uid=uid)
    assert found["done"] == []
    assert found["uid"] == (confinement.NOBODY if uid == 0 else uid) or "network" in found["layers"]


@pytest.mark.parametrize(
    ("layer", "refuses"),
    [
        ("landlock", {"secret_key", "passwd", "other_upload", "list_folder", "write_outside",
                      "remove_upload", "abstract_socket", "tcp_port", "run_program"}),
        ("seccomp", set(ATTEMPTS)),
        ("limits", {"secret_key", "passwd", "other_upload", "write_outside", "postgres_socket",
                    "abstract_socket", "tcp_port", "udp", "duplicate_descriptor", "run_program"}),
    ],
)  # fmt: skip
def test_each_layer_alone_refuses_its_attempts(
    tmp_path: Path, readers: Path, world: dict[str, object], layer: str, refuses: set[str]
) -> None:
    found = run_apart(tmp_path, readers, world, layers=("no_new_privs", layer), uid=ORDINARY_USER)
    if layer not in found["layers"]:
        pytest.skip(f"this kernel has no {layer}")
    assert set(found["done"]) & refuses == set()


def run_apart(
    tmp_path: Path,
    readers: Path,
    world: dict[str, object],
    *,
    layers: tuple[str, ...] | None = None,
    uid: int = 0,
) -> dict[str, object]:
    """Run the hostile reader with these layers only, as this user; return its report."""
    # Unless refused, one of the harmful calls ends the reader and the other stops this test.
    options = world | {"harm": layers is None or "seccomp" in layers}
    runner = f"""
import json, os, resource, runpy, sys
confinement = runpy.run_path({confinement.__file__!r})
hostile = runpy.run_path({str(readers / "hostile.py")!r})
# Where Python is installed for root alone, an ordinary user could not load these.
if os.geteuid() == 0 and {uid}:
    os.setgroups([]); os.setresgid({uid}, {uid}, {uid}); os.setresuid({uid}, {uid}, {uid})
chosen = {layers!r}
network = confinement["leave_network"]() if chosen is None else False
apply = {{
    "user": confinement["_drop_root"],
    "no_new_privs": confinement["_renounce_privileges"],
    "landlock": confinement["_restrict_by_landlock"],
    "limits": confinement["_forbid_new_resources"],
    "seccomp": confinement["_filter_system_calls"],
}}
held = [name for name, one in apply.items() if (chosen is None or name in chosen) and one()]
for record in hostile["read"](sys.stdin.buffer, **json.loads(sys.argv[1])):
    print(json.dumps(record | {{"layers": held + ["network"] * network}}), flush=True)
"""
    with upload(tmp_path).open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-P", "-c", runner, json.dumps(options)],
            stdin=file, capture_output=True, text=True, check=False, timeout=15,
        )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[0])


def test_reader_ends_with_its_parent(tmp_path: Path, readers: Path) -> None:
    (readers / "idle.py").write_text(
        "import time\ndef read(file):\n yield {'started': True}\n while True: time.sleep(0.1)\n"
    )
    starter = (
        "import os, sys\nfrom pathlib import Path\n"
        "from portal.ingest import reader_process as r\n"
        "from portal.ingest.limits import FileToRead\n"
        f"r._READERS = Path({str(readers)!r})\n"
        f"file = FileToRead(Path({str(upload(tmp_path))!r}), 'a')\n"
        "for one in r.read_records('idle', file):\n"
        "    print(open(f'/proc/self/task/{os.getpid()}/children').read(), flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        reader = int(process.stdout.readline().split()[0])
        process.kill()
    ended = threading.Event()
    for _ in range(100):
        if not Path(f"/proc/{reader}").exists() or "Z" in _state(reader):
            ended.set()
            break
        threading.Event().wait(0.05)
    assert ended.is_set()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"
