"""The manifest of a backup."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from portal.errors import BackupRefused

FORMAT = "knowledge-portal-backup"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Member:
    """A part of a backup."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The values that a restore checks before it changes anything. `rows` has the number of rows of
    each table in the backup's snapshot; `members` has all parts except the manifest, by name."""

    portal_version: str
    schema_revision: str
    schema: str
    postgresql_version: str
    pg_dump_version: str
    taken_at: str
    rows: dict[str, int]
    members: dict[str, Member]

    def to_json(self) -> bytes:
        fields = {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(self)
        return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Parse a manifest. Raises BackupRefused for an invalid one, or one of a newer portal."""
        try:
            fields = json.loads(text)
            if fields["format"] != FORMAT:
                raise ValueError(fields["format"])
            version = _number(fields["format_version"])
            if version > FORMAT_VERSION:
                raise BackupRefused(
                    f"The backup has format {version}, made by portal "
                    f"{fields.get('portal_version')}; this portal reads up to {FORMAT_VERSION}. "
                    "Restore it with that portal or a newer one."
                )
            return cls._of(fields)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BackupRefused("The backup's manifest cannot be read.") from error

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Manifest:
        words = ("portal_version", "schema_revision", "schema", "postgresql_version",
                 "pg_dump_version", "taken_at")  # fmt: skip
        members = {
            _word(name): Member(_number(one["size_bytes"]), _word(one["sha256"]))
            for name, one in fields["members"].items()
        }
        return cls(
            **{name: _word(fields[name]) for name in words},
            rows={_word(name): _number(count) for name, count in fields["rows"].items()},
            members=members,
        )


def _word(value: object) -> str:
    """Require printable text, since it may be shown on a terminal."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(value)
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(value)
    return value
