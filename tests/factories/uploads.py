"""Small helpers: uploads, calls in another thread, functions that fail, the BM25 mark."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

needs_bm25 = pytest.mark.bm25


def upload(content: str | bytes) -> io.BytesIO:
    """Return a stream as a browser sends it."""
    return io.BytesIO(content.encode() if isinstance(content, str) else content)


def run_apart(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a thread without an event loop: browser tests leave one in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


def failing(error: Exception) -> Callable[..., None]:
    """Return a function that raises the error with any arguments."""

    def fail(*_arguments: object, **_named: object) -> None:
        raise error

    return fail
