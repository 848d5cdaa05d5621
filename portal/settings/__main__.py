"""Print docs/settings.md."""

from __future__ import annotations

import sys
from pathlib import Path

from portal.settings.page import settings_page


def main(arguments: list[str]) -> int:
    """Print the settings page, or with ``--check FILE`` check that FILE is up to date."""
    page = settings_page()
    if arguments[:1] == ["--check"]:
        path = Path(arguments[1])
        if path.is_file() and path.read_text(encoding="utf-8") == page:
            return 0
        print(f"{path} is behind the code: run `python -m portal.settings > {path}`")
        return 1
    sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
