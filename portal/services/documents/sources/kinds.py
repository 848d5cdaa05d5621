"""The registry entry of a kind of source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from portal.domain.documents.sources import Source
from portal.errors import Message
from portal.settings import Settings


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What sources need from the portal. `take_turn` reserves the next request to a host, at least
    the given number of seconds after the previous one, and returns how many seconds to wait."""

    settings: Settings
    take_turn: Callable[[str, float], float]
    should_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source.

    `open` raises InvalidInput for an address that the operator does not allow. `allowed` returns
    what the operator allows, as text from the settings, or an empty text if nothing is allowed;
    `hint` shows it as `list`. Sources on the web are read separately from others, since servers may
    be slow. With `is_list`, a new address is a new version of the same list, and documents that are
    no longer listed are removed.
    """

    name: str
    label: Message
    hint: Message
    open: Callable[[SourceContext, str], Source]
    allowed: Callable[[Settings], str]
    is_web: bool = False
    is_list: bool = False
