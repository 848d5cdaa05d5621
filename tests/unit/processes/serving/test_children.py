"""Child processes of `portal serve`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from portal.processes.serving import children
from portal.processes.serving.web_server import PROJECT_DIR

_PROGRAM = """
class Cycle:
    def __init__(self):
        self.itself = self
    def __del__(self):
        print("collected", flush=True)

def main():
    global kept
    kept = [Cycle()]
    print("ends", flush=True)
"""


def test_child_does_not_collect_garbage_at_exit(tmp_path: Path) -> None:
    (tmp_path / "brief_program.py").write_text(_PROGRAM)
    found = subprocess.run(
        [sys.executable, "-m", children.__name__, str(os.getpid()), "brief_program:main"],
        env=os.environ | {"PYTHONPATH": f"{PROJECT_DIR}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "ends\n"
