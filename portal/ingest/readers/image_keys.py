"""Keys of the images in a file, which name an image in the text without its bytes."""

from __future__ import annotations

import hashlib
import posixpath

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"})
OF_FILE = "portal-image:"
"""The scheme of addresses that stand for an image of the file."""
_DATA = "data:image/"
_LENGTH = 20


def key_of(address: str) -> str:
    """Return the key of the image at an address in a page; empty unless the file contains it. SVG
    drawings, which may contain scripts, have no key."""
    if address.startswith(OF_FILE):
        return address.removeprefix(OF_FILE)
    kind, _, data = address.strip().partition(",")
    is_picture = kind.lower().startswith(_DATA) and "svg" not in kind.lower()
    return hash_of("".join(data.split())) if is_picture and data else ""


def address_of(part: str) -> str:
    """Return the address of a part of an archive; empty if it is not a picture."""
    is_picture = posixpath.splitext(part)[1].lower() in SUFFIXES
    return OF_FILE + hash_of(part) if is_picture else ""


def hash_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:_LENGTH]
