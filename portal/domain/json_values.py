"""Checks of JSON from clients, before any of it is stored or bound."""

from __future__ import annotations

import json
import math
from typing import Any

from portal.errors import InvalidInput

MAX_DEPTH = 8


def check_json(value: Any, *, max_characters: int) -> None:
    """Check that PostgreSQL can store a value parsed from JSON. Raises InvalidInput for what it
    cannot store (NUL, lone surrogates, NaN), for nesting deeper than `MAX_DEPTH`, and for more
    than `max_characters` when serialised."""
    _check(value, MAX_DEPTH)
    written = json.dumps(value, ensure_ascii=False)
    if len(written) > max_characters:
        raise InvalidInput("metadata has at most %(max)s characters", max=max_characters)


def check_text(value: str) -> None:
    """Raise InvalidInput for text that PostgreSQL cannot store."""
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidInput("metadata holds a character that cannot be stored")


def check_number(value: float) -> None:
    """Raise InvalidInput for a number that is not finite."""
    try:
        is_finite = math.isfinite(value)
    except OverflowError:  # An integer that is too large for a float.
        is_finite = False
    if not is_finite:
        raise InvalidInput("metadata holds a number that is not finite")


def _check(value: Any, depth: int) -> None:
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, dict | list):
        if not depth:
            raise InvalidInput("metadata is nested at most %(max)s deep", max=MAX_DEPTH)
        for key in value if isinstance(value, dict) else ():
            check_text(key)
        for member in value.values() if isinstance(value, dict) else value:
            _check(member, depth - 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        check_number(value)
