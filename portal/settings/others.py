"""Settings of reading documents, and of programs."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from portal.settings.base import Section

_PUBLIC_KEY = re.compile("age1[02-9ac-hj-np-z]{58}")


class AuditSettings(Section):
    """The log of who did what (`/admin/audit`)."""

    retention_days: int = Field(
        365, ge=0, le=36500, description="days after which entries are deleted; 0: never"
    )


class MetricsSettings(Section):
    """Who may read /metrics, beside administrators."""

    token: SecretStr | None = Field(
        None,
        min_length=16,
        description="a bearer token for Prometheus, which opens nothing else; unset: none",
    )
    from_this_machine: bool = Field(
        False,
        description="true: programs on this machine need no token; not behind a proxy on the same "
        "machine that PORTAL_TRUSTED_PROXIES does not count",
    )
    cached_s: float = Field(
        1.0, ge=0, le=60, description="how long an answer is reused for the next scrapes"
    )


class IngestSettings(Section):
    """How documents are taken apart."""

    chunk_tokens: int = Field(300, ge=50, le=480, description="length of a passage, about")
    max_pages: int = Field(5000, ge=1, description="pages a PDF may have")
    max_characters: int = Field(20_000_000, ge=1000, description="characters a document may have")
    extraction_timeout_s: int = Field(300, ge=1, le=3600, description="time to read one file")
    extraction_memory_mb: int = Field(768, ge=256, description="memory to read one file")
    ocr_timeout_s: int = Field(
        1800, ge=1, le=86400, description="time to recognise the text of one scanned file"
    )


class UploadSettings(Section):
    """What happens to a file before it is taken."""

    scan_command: str | None = Field(
        None,
        description="a malware scanner that reads the file from its standard input and ends with 0 "
        "(clean) or 1 (infected), such as `clamdscan --no-summary -`; unset: no scan",
    )
    scan_timeout_s: float = Field(
        30, gt=0, le=600, description="time to scan one file; then it is refused"
    )


class BackupSettings(Section):
    """What `portal backup` writes."""

    recipients: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="public keys (age1…) that backups are encrypted for, with commas between "
        "them; their private keys stay elsewhere",
    )

    @field_validator("recipients", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value

    @field_validator("recipients")
    @classmethod
    def _are_public_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        keys = tuple(key.strip() for key in value if key.strip())
        for key in keys:
            if not _PUBLIC_KEY.fullmatch(key):
                raise ValueError("public keys as age-keygen prints them (age1…)")
        return keys


class McpSettings(Section):
    """What AI clients get of `portal mcp`."""

    fetch_characters: int = Field(
        50_000, ge=1000, le=1_000_000, description="most of a document's text in one answer"
    )


class ChromaSettings(Section):
    """How collections of Chroma's are searched."""

    lexical_leg: Literal["native", "own"] = Field(
        "native", description="`own` ranks words here where Chroma has no BM25 index of its own"
    )
