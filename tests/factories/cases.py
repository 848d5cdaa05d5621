"""Cases that share the fixtures of one test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def for_each(
    names: str | Iterable[str], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each case in turn, on the same fixtures; fail with all cases that fail.

    Like `pytest.mark.parametrize`, for cases that leave nothing behind: creating a database for
    each takes longer than most of them.
    """
    wanted = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    rows = [case if len(wanted) > 1 else (case,) for case in cases]
    assert rows

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed = []
            for row in rows:
                try:
                    test(**fixtures, **dict(zip(wanted, row, strict=True)))
                # `pytest.raises` fails with the second one if nothing is raised.
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised together
                    error.add_note(f"in the case {row!r}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(rows)} cases fail", failed)

        signature = inspect.signature(test)
        kept = [one for name, one in signature.parameters.items() if name not in wanted]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate
