"""Numerical libraries use one thread per product, because several products run at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_MULTIPLY = (
    "import os, {first}; import numpy as np; a = np.ones((600, 600), np.float32); a @ a;"
    "print(len(os.listdir('/proc/self/task')))"
)


@pytest.mark.parametrize("first", ["portal", "eval", "bench", "portal.embeddings"])
def test_numpy_multiplies_in_the_calling_thread(first):
    inherited = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name}
    said = subprocess.run(
        [sys.executable, "-c", _MULTIPLY.format(first=first)],
        env=inherited,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert said.strip() == "1"
