"""The registry entry of a kind of source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from portal.domain.documents.sources import Source
from portal.errors import Message
from portal.settings import Settings


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What sources need of the portal. `take_turn` reserves the next request to a host, at least
    that many seconds after the one before, and returns how long to wait for it."""

    settings: Settings
    take_turn: Callable[[str, float], float]
    should_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source.

    `open` raises InvalidInput for an address that the operator does not allow. `allowed` returns
    what may be followed, in the words of the setting, or nothing if nothing may; `hint` shows it as
    `list`. Sources on the web are read apart from others, since servers may be slow. With
    `is_list`, another address is another version of the same list: what left it is removed.
    """

    name: str
    label: Message
    hint: Message
    open: Callable[[SourceContext, str], Source]
    allowed: Callable[[Settings], str]
    is_web: bool = False
    is_list: bool = False
