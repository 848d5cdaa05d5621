"""Validation of titles, domains, descriptions and tags."""

from __future__ import annotations

from collections.abc import Iterable

from portal.errors import InvalidInput
from portal.text.characters.scripts import is_invisible

MAX_TITLE_CHARACTERS = 300
MAX_DOMAIN_CHARACTERS = 100
MAX_TAG_CHARACTERS = 50
MAX_TAGS = 30
MAX_DESCRIPTION_CHARACTERS = 1000


def one_line(text: str) -> str:
    """Return text on one line, with spaces for control, direction and invisible characters."""
    return " ".join("".join(" " if is_invisible(one) else one for one in text).split())


def check_title(title: str, *, max_characters: int = MAX_TITLE_CHARACTERS) -> str:
    """Return a title fit to show, on one line. Raises InvalidInput."""
    title = one_line(title)
    if not 1 <= len(title) <= max_characters:
        raise InvalidInput("a title must have 1 to %(max)s characters", max=max_characters)
    return title


def check_name(name: str, *, max_characters: int) -> str:
    """Return the name of a group or of a saved search, on one line. Raises InvalidInput."""
    name = one_line(name)
    if not 1 <= len(name) <= max_characters:
        raise InvalidInput("a name must have 1 to %(max)s characters", max=max_characters)
    return name


def check_domain(domain: str | None) -> str | None:
    """Return a domain on one line; None for an empty one. Raises InvalidInput."""
    domain = one_line(domain or "")
    if len(domain) > MAX_DOMAIN_CHARACTERS:
        raise InvalidInput(
            "a domain can have at most %(max)s characters", max=MAX_DOMAIN_CHARACTERS
        )
    return domain or None


def check_description(description: str) -> str:
    """Return the description of a folder or group. Raises InvalidInput."""
    description = description.strip()
    if len(description) > MAX_DESCRIPTION_CHARACTERS:
        raise InvalidInput(
            "a description can have at most %(max)s characters", max=MAX_DESCRIPTION_CHARACTERS
        )
    return description


def check_tags(tags: Iterable[str]) -> list[str]:
    """Return tags on one line each, without empty ones and those that differ only in case.

    Raises InvalidInput.
    """
    kept = list({tag.casefold(): tag for tag in map(one_line, tags) if tag}.values())
    if len(kept) > MAX_TAGS:
        raise InvalidInput("a document can have at most %(max)s tags", max=MAX_TAGS)
    if any(len(tag) > MAX_TAG_CHARACTERS or len(split_tags(tag)) > 1 for tag in kept):
        raise InvalidInput(
            "a tag has at most %(max)s characters and no comma", max=MAX_TAG_CHARACTERS
        )
    return kept


def split_tags(text: str) -> list[str]:
    """Return the tags of a field, which are separated by commas, including Chinese ones."""
    return text.replace("，", ",").replace("、", ",").split(",")
