"""Parts of OpenAI's protocol that the clients for chat and for embeddings share."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DEFAULT_API_BASE = "https://api.openai.com/v1"
# Statuses of requests that may succeed when they are retried.
RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


def authorization(key: str) -> dict[str, str]:
    """Return the header with the key; no header for a key that cannot be sent in one."""
    # A key with other characters is invalid, and the client's error would quote it.
    return {"Authorization": f"Bearer {key}"} if key.isascii() and key.isprintable() and key else {}


def retry_after_s(header: str) -> float:
    """Return the seconds to wait, from a Retry-After header (seconds or a date); 0 for neither."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return 0.0
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
