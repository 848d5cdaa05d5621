"""Test that docs/settings.md lists every setting once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import BaseModel

from portal.settings import Settings
from portal.settings.fields import environment_name
from portal.settings.page import EVERYDAY, settings_page


def names(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from names(field.annotation, (*path, name))
        else:
            yield environment_name((*path, name))


def test_page_lists_every_setting_once_and_those_that_users_set_first() -> None:
    listed = [line.split("`")[1] for line in settings_page().splitlines() if line.startswith("| `")]
    assert Counter(listed) == Counter(names(Settings))
    assert tuple(listed[: len(EVERYDAY)]) == EVERYDAY
