"""The device that a user agent names."""

from __future__ import annotations

import pytest

from portal.domain.people.devices import Device, parse_device

AGENTS = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0": ("Firefox", "Linux"),
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0": ("Edge", "Windows"),
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
    "Gecko) Version/18.5 Mobile/15E148 Safari/604.1": ("Safari", "iPhone"),
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/140.0.0.0 Mobile Safari/537.36": ("Chrome", "Android"),
    "curl/8.5.0": ("curl", None),
    "": (None, None),
    "   ": (None, None),
    "Mozilla/5.0": (None, None),
}


@pytest.mark.parametrize(("user_agent", "expected"), AGENTS.items())
def test_device_is_read_from_the_user_agent(
    user_agent: str, expected: tuple[str | None, str | None]
) -> None:
    assert parse_device(user_agent) == Device(*expected)


def test_name_of_a_program_is_short_and_printable() -> None:
    assert len(parse_device("x" * 1000).program or "") == 40
    assert parse_device("a\x1b[31m/1").program is None
