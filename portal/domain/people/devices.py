"""Short names for the programs that users sign in with."""

from __future__ import annotations

from dataclasses import dataclass

# The order matters: the user agent of a browser may also name those further down.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("MicroMessenger", "WeChat"),
    ("Vivaldi", "Vivaldi"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("HeadlessChrome", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_PLATFORMS = (
    ("HarmonyOS", "HarmonyOS"),
    ("OpenHarmony", "HarmonyOS"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
_MAX_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Device:
    """A program and its operating system; None if unknown."""

    program: str | None
    platform: str | None


def parse_device(user_agent: str) -> Device:
    """Parse a user agent. It is only what the client claims to be."""
    platform = _first(_PLATFORMS, user_agent)
    if user_agent.startswith("Mozilla/"):
        return Device(_first(_BROWSERS, user_agent), platform)
    # Programs start with their own name: “curl/8.5.0”.
    words = user_agent.split()
    program = words[0].partition("/")[0][:_MAX_CHARACTERS] if words else ""
    return Device(program if program.isprintable() and program else None, platform)


def _first(known: tuple[tuple[str, str], ...], user_agent: str) -> str | None:
    return next((name for mark, name in known if mark in user_agent), None)
