"""The example runs as its first lines say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_chain_answers_from_the_collection(database_url: str) -> None:
    url = database_url.replace("postgresql+psycopg", "postgresql")
    for _again in range(2):
        done = subprocess.run(
            [sys.executable, "examples/langchain_chain.py", "When does the canteen open?"],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": url, "PORTAL_EMBEDDING__PROVIDER": "hashing"},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert done.stdout.strip() == "The canteen opens at noon. [canteen.md]"
