"""Checks of new passwords: not short, common, like a name, or known from a breach.

zxcvbn estimates how many guesses a password takes. It gets only the first characters, since its
time grows with the square of the length and with every sign that may stand for a letter; argon2
hashes the whole password.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from portal.errors import (
    BlankPassword,
    BreachedListUnavailable,
    BreachedPassword,
    CommonPassword,
    InvalidInput,
    PasswordLikeName,
    WeakPassword,
)
from portal.settings import Settings

MIN_CHARACTERS = 10
MAX_CHARACTERS = 1000  # Hashing texts of any length would invite denial of service.
# 10⁸ guesses or more: out of reach for guesses at the portal, and slow work with a stolen hash.
_MIN_SCORE = 3
_MAX_SCORED_CHARACTERS = 50
# zxcvbn tries all combinations of what such signs may stand for: 21 of them take 15 seconds.
_LETTER_LIKE_SIGNS = frozenset("4@8({[<3690!1|05$+7%2")
_MAX_LETTER_LIKE_SIGNS = 8
_PORTAL_NAMES = ("portal", "knowledge", "knowledge portal", "knowledgeportal", "知识门户")
_MIN_NAME_PART = 3

# The longest line of a list is 40 digits, a colon and a count.
_MAX_LINE_BYTES = 128
_DIGEST_CHARACTERS = 40


def check_length(password: str) -> None:
    """Check the number of characters. Raises WeakPassword, InvalidInput."""
    if len(password) < MIN_CHARACTERS:
        raise WeakPassword(min=MIN_CHARACTERS)
    if len(password) > MAX_CHARACTERS:
        raise InvalidInput("a password can have at most %(max)s characters", max=MAX_CHARACTERS)


def check_password(settings: Settings, password: str, *, name: str) -> None:
    """Check a new password of the user called `name`. Raises WeakPassword with the reason,
    InvalidInput, BreachedListUnavailable."""
    check_length(password)
    if all(unicodedata.category(character)[0] in "CZ" for character in password):
        raise BlankPassword
    host = urlsplit(settings.public_url).hostname if settings.has_public_url else None
    names = [*_name_parts(name), *_PORTAL_NAMES, *_name_parts(host or "")]
    # Imported late: its word lists take a while to load, and few commands need them.
    from zxcvbn import zxcvbn

    estimate = zxcvbn(_select_scored(password), user_inputs=names)
    if estimate["score"] < _MIN_SCORE:
        used = {match.get("dictionary_name") for match in estimate["sequence"]}
        folded = unicodedata.normalize("NFKC", password).casefold()
        if "user_inputs" in used or any(part in folded for part in names):
            raise PasswordLikeName
        raise CommonPassword
    breached = settings.passwords.breached_file
    if breached is not None and _is_breached(breached, password):
        raise BreachedPassword


def _select_scored(password: str) -> str:
    """Return the part that zxcvbn scores. The rest could only make the password look better."""
    text = unicodedata.normalize("NFKC", password)[:_MAX_SCORED_CHARACTERS]
    kept: list[str] = []
    signs: set[str] = set()
    for character in text:
        if character in _LETTER_LIKE_SIGNS:
            if len(signs) == _MAX_LETTER_LIKE_SIGNS and character not in signs:
                continue
            signs.add(character)
        kept.append(character)
    return "".join(kept)


def _name_parts(name: str) -> Iterator[str]:
    name = unicodedata.normalize("NFKC", name).casefold()
    parts = [part for part in re.split(r"[\W_]+", name) if part]
    yield from {name, "".join(parts)} - {""}
    yield from (part for part in parts if len(part) >= _MIN_NAME_PART)


def _is_breached(path: Path, password: str) -> bool:
    digest = hashlib.sha1(password.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    try:
        return _has_line(path, digest.upper().encode())
    except OSError as error:
        raise BreachedListUnavailable from error


def _has_line(path: Path, digest: bytes) -> bool:
    """Return whether a line of the sorted file begins with the digest, by bisection: the list of
    Have I Been Pwned is 40 GB long."""
    with path.open("rb") as file:
        low, high = 0, file.seek(0, 2)
        # The line, if there is one, begins in [low, high).
        while low < high:
            middle = (low + high) // 2
            file.seek(max(middle - 1, 0))
            if middle:
                file.readline(_MAX_LINE_BYTES)
            start = file.tell()
            if start >= high:
                high = middle
                continue
            found = file.readline(_MAX_LINE_BYTES)[:_DIGEST_CHARACTERS].upper()
            if found == digest:
                return True
            if found < digest:
                low = file.tell()
            else:
                high = middle
    return False
