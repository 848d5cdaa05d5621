"""Compile requirements/*.in into hash-locked *.txt (./run lock), or say which are behind (--check).

The compilation needs uv; the check needs nothing, not even a network.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent
LOCKS = ("core", "dev", "local", "ocr", "chroma", "mcp", "langchain", "tracing", "bench", "load")
MARK = "# source sha256: "

# What packages name and the portal never imports. django-htmx is wanted for its static files only,
# and sqlparse comes with Django; APIFlask names pydantic's support of e-mail addresses.
NOT_LOCKED = ("django", "sqlparse", "email-validator", "dnspython")
# On Linux the portal takes torch's builds for the CPU: what builds for NVIDIA's cards pull in
# (4 GB) is left out. Those builds are not on every index, so their hashes are added by hand.
NOT_LOCKED_WITH_TORCH = (
    *("cuda-bindings", "cuda-pathfinder", "cuda-toolkit", "nvidia-cublas", "nvidia-cuda-cupti"),
    *("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-cufft"),
    *("nvidia-cufile", "nvidia-curand", "nvidia-cusolver", "nvidia-cusparse"),
    *("nvidia-cusparselt-cu13", "nvidia-nccl-cu13", "nvidia-nvjitlink", "nvidia-nvshmem-cu13"),
    *("nvidia-nvtx", "triton"),
)
# langchain-postgres asks for pgvector below 0.4, and works with what the portal has.
OVERRIDES = {"bench": ("pgvector",)}
# Locks that are installed together hold the same versions of what they share.
CONSTRAINED_BY = {
    "core": (),
    "dev": ("core",),
    "tracing": ("core", "dev", "chroma"),  # Chroma brings parts of OpenTelemetry.
    "bench": ("core", "dev", "chroma"),
}
TORCH = "torch==2.13.0 \\\n"
TORCH_BY_SYSTEM = """\
torch==2.13.0+cpu ; sys_platform == 'linux' \\
    --hash=sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b
torch==2.13.0 ; sys_platform != 'linux' \\
"""


def source_hash(name: str) -> str:
    """Hash the source of a lock, without its comments."""
    lines = (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8").splitlines()
    wanted = sorted(filter(None, (line.split("#")[0].strip() for line in lines)))
    return hashlib.sha256("\n".join(wanted).encode()).hexdigest()


def behind() -> list[str]:
    """Return the locks that are older than their source."""
    return [name for name in LOCKS if MARK + source_hash(name) not in _head(name)]


def _head(name: str) -> list[str]:
    path = REQUIREMENTS / f"{name}.txt"
    return path.read_text(encoding="utf-8").splitlines()[:5] if path.exists() else []


def compile_lock(name: str, uv: str) -> None:
    """Compile NAME.txt. Locked versions stay where NAME.in allows it."""
    target = REQUIREMENTS / f"{name}.txt"
    if name == "local" and target.exists():
        text = target.read_text(encoding="utf-8").replace(TORCH_BY_SYSTEM, TORCH)
        target.write_text(text, encoding="utf-8")
    left_out = (*NOT_LOCKED, *(NOT_LOCKED_WITH_TORCH if name == "local" else ()))
    command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-header", "--no-annotate"]
    command += ["--no-emit-index-url", "--no-emit-find-links"]
    command += [part for package in left_out for part in ("--no-emit-package", package)]
    for other in CONSTRAINED_BY.get(name, ("core", "dev")):
        command += ["--constraint", str(REQUIREMENTS / f"{other}.txt")]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as overrides:
        overrides.writelines(f"{_pin(package)}\n" for package in OVERRIDES.get(name, ()))
        overrides.flush()
        command += ["--override", overrides.name]
        subprocess.run([*command, str(REQUIREMENTS / f"{name}.in"), "-o", str(target)], check=True)
    text = target.read_text(encoding="utf-8").replace(TORCH, TORCH_BY_SYSTEM)
    head = f"# Made by ./run lock from {name}.in; do not edit.\n{MARK}{source_hash(name)}\n\n"
    target.write_text(head + text, encoding="utf-8")


def _pin(package: str) -> str:
    """Return the version of a package that core.txt locks, as `name==version`."""
    for line in (REQUIREMENTS / "core.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{package}=="):
            return line.split(" ")[0]
    raise LookupError(f"core.txt does not lock {package}")


def main(arguments: list[str]) -> int:
    """Return 1 if locks are behind or uv is missing."""
    if arguments == ["--check"]:
        names = behind()
        if names:
            print("behind their *.in: " + ", ".join(names) + "; call ./run lock")
        return 1 if names else 0
    uv = shutil.which("uv")
    if uv is None:
        print("./run lock needs uv: https://docs.astral.sh/uv/", file=sys.stderr)
        return 1
    for name in LOCKS:
        print(f"locking {name} …", flush=True)
        compile_lock(name, uv)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
