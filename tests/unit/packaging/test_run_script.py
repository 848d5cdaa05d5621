from __future__ import annotations

import ast
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from queue import Queue
from types import ModuleType

import pytest

RUN = Path(__file__).resolve().parents[3] / "run"


def load(path: Path) -> ModuleType:
    loader = SourceFileLoader(f"portal_{path.stem}", str(path))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@pytest.fixture
def run() -> ModuleType:
    return load(RUN)


@pytest.fixture
def lock() -> ModuleType:
    return load(RUN.parent / "requirements" / "lock.py")


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(RUN), *arguments], check=False, capture_output=True, text=True
    )


def test_old_pythons_parse_the_script_up_to_the_version_check() -> None:
    tree = ast.parse(RUN.read_text(encoding="utf-8"), feature_version=(3, 5))
    checked_at = next(i for i, node in enumerate(tree.body) if isinstance(node, ast.If))
    before = [node for node in tree.body[:checked_at] if isinstance(node, ast.Import)]
    assert [alias.name for node in before for alias in node.names] == ["sys"]


def test_run_imports_only_the_standard_library() -> None:
    imports = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(RUN.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imports <= sys.stdlib_module_names


def test_help_explains_every_command() -> None:
    done = call("--help")
    assert done.returncode == 0
    extras = ("--local", "--ocr", "--chroma", "--mcp", "--langchain", "--tracing", "--all")
    for name in ("test", "check", "bench", "eval", "portal", "setup", *extras):
        assert name in done.stdout


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["setup", "--nonsense"], ["check", "nonsense"]]
)
def test_wrong_use_is_reported(arguments: list[str]) -> None:
    done = call(*arguments)
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def test_locks_match_their_sources(lock: ModuleType) -> None:
    assert lock.behind() == []


def test_a_changed_source_is_noticed_and_a_comment_is_not(
    lock: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "REQUIREMENTS", tmp_path)
    for name in lock.LOCKS:
        (tmp_path / f"{name}.in").write_text("flask>=3\n")
        (tmp_path / f"{name}.txt").write_text(f"{lock.MARK}{lock.source_hash(name)}\n")
    (tmp_path / "core.in").write_text("# why\nflask>=3  # because\n")
    assert lock.behind() == []
    (tmp_path / "core.in").write_text("flask>=4\n")
    assert lock.behind() == ["core"]


def test_every_locked_package_has_hashes_and_none_has_an_address(run: ModuleType) -> None:
    for name in run.LOCKS:
        text = (run.REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
        packages = text.replace("\\\n", " ").splitlines()
        for line in packages:
            if line and not line.startswith("#"):
                assert "--hash=sha256:" in line, line
        assert "://" not in text
        assert "--index" not in text


def test_no_lock_contains_django(run: ModuleType) -> None:
    for name in run.LOCKS:
        lines = (run.REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        assert not any(line.startswith("django==") for line in lines)


def test_every_extra_of_the_project_has_a_lock(run: ModuleType, lock: ModuleType) -> None:
    sources = {path.stem for path in run.REQUIREMENTS.glob("*.in")}
    assert sources == set(run.LOCKS) == set(lock.LOCKS)


def test_a_run_that_waited_for_another_installs_nothing_again(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, installed = Queue[str](), []
    monkeypatch.setattr(run, "say", said.put)
    monkeypatch.setattr(run, "STAMP", tmp_path / "stamp.json")
    monkeypatch.setattr(run, "INSTALL_LOCK", tmp_path / "lock")
    monkeypatch.setattr(run, "PYTHON", Path(sys.executable))
    for name in ("make_venv", "install_lock", "install_project", "must"):
        monkeypatch.setattr(run, name, lambda *given: installed.append(given))
    with ThreadPoolExecutor(1) as pool:
        with run.one_at_a_time():
            waiting = pool.submit(run.install)
            assert "waiting for another ./run" in said.get(timeout=20)
            locks = {name: run.fingerprint(name) for name in ("core", "project")}
            stamp = {"root": str(run.ROOT), "locks": locks}
            run.STAMP.write_text(json.dumps(stamp), encoding="utf-8")
        waiting.result(timeout=20)
    assert installed == []


def test_an_installation_that_was_moved_is_rebuilt(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp = tmp_path / "stamp.json"
    stamp.write_text('{"root": "elsewhere", "locks": {"core": "x"}}')
    monkeypatch.setattr(run, "STAMP", stamp)
    assert run.installed() == {}
