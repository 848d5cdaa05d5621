"""What tests upload."""

from __future__ import annotations

import io


def upload(content: str | bytes) -> io.BytesIO:
    """A stream as a browser sends it."""
    return io.BytesIO(content.encode() if isinstance(content, str) else content)
