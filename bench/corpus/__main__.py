"""Make a corpus to measure: `python -m bench.corpus`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.corpus import DEFAULT_DATA_DIR, open_corpus


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the corpora that are missing."""
    parser = argparse.ArgumentParser(prog="python -m bench.corpus", description=main.__doc__)
    parser.add_argument("--size", type=int, nargs="+", default=[50_000], metavar="CHUNKS")
    parser.add_argument("--data-dir", type=Path, default=DEFAULT_DATA_DIR)
    options = parser.parse_args(arguments)
    for size in options.size:
        with open_corpus(
            size, options.data_dir, log=lambda message: print(message, file=sys.stderr)
        ) as corpus:
            print(
                f"{size} passages in {len(corpus.document_ids)} documents:",
                corpus.services.database.url,
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
