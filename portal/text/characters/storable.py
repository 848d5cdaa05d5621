"""Text as PostgreSQL can store it."""

from __future__ import annotations


def storable(text: str) -> str:
    """Replace each NUL with a space and each lone surrogate with a question mark.

    PostgreSQL can store neither.
    """
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
