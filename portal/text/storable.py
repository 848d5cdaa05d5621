"""Text as PostgreSQL can store it."""

from __future__ import annotations


def storable(text: str) -> str:
    """The text with a space for each NUL and a question mark for each lone surrogate: neither is
    to be seen, and PostgreSQL has no place for them."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
