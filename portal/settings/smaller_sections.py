"""Settings of ingestion, backups, metrics, and other smaller sections."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from portal.settings.base import Listed, Section

Network = IPv4Network | IPv6Network

_HOST = re.compile(r"(?:\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)*|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?")
_PUBLIC_KEY = re.compile("age1[02-9ac-hj-np-z]{58}")


class AuditSettings(Section):
    """The audit log (`/admin/audit`)."""

    retention_days: int = Field(
        365, ge=0, le=36500, description="days after which entries are deleted; 0: never"
    )


class MetricsSettings(Section):
    """Who may read /metrics, besides administrators."""

    token: SecretStr | None = Field(
        None,
        min_length=16,
        description="bearer token for Prometheus, valid for /metrics only; unset: none",
    )
    from_this_machine: bool = Field(
        False,
        description="true: programs on this machine need no token; do not use it behind a proxy on "
        "this machine that PORTAL_TRUSTED_PROXIES does not count",
    )
    cached_s: float = Field(
        1.0, ge=0, le=60, description="how long a response is cached for the next scrapes"
    )


class TracingSettings(Section):
    """Spans for an OpenTelemetry collector; needs the extra `tracing`."""

    endpoint: str | None = Field(
        None,
        description="address that spans are sent to by OTLP over HTTP, such as "
        "`http://collector:4318/v1/traces`; unset: no spans are recorded. The SDK's own variables "
        "(`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER` …) apply",
    )


class IngestSettings(Section):
    """How documents are read and split."""

    chunk_tokens: int = Field(300, ge=50, le=480, description="approximate length of a chunk")
    max_pages: int = Field(5000, ge=1, description="maximum pages of a PDF")
    max_characters: int = Field(20_000_000, ge=1000, description="maximum characters of a document")
    extraction_timeout_s: int = Field(
        300, ge=1, le=3600, description="time limit for reading one file"
    )
    extraction_memory_mb: int = Field(768, ge=256, description="memory limit for reading one file")
    ocr_timeout_s: int = Field(
        1800, ge=1, le=86400, description="time limit for text recognition in one scanned file"
    )


class UploadSettings(Section):
    """Checks of a file before it is accepted."""

    scan_command: str | None = Field(
        None,
        description="command of a malware scanner that reads the file from standard input and "
        "exits with 0 (clean) or 1 (infected), such as `clamdscan --no-summary -`; unset: no scan",
    )
    scan_timeout_s: float = Field(
        30,
        gt=0,
        le=600,
        description="time limit for scanning one file; after that, the file is refused",
    )


class SourceSettings(Section):
    """What folders may be synchronised with."""

    directories: Listed[Path] = Field(
        (),
        description="directories on this server, separated by commas, that a folder can be tied to "
        "by those who may change it, including everything below; unset: none",
    )
    hosts: Listed[str] = Field(
        (),
        description="hosts whose pages, sitemaps and feeds may be followed, separated by commas: "
        "`docs.example.org`, `*.example.org`, `*` for any; `host:port` for ports other than 80 and "
        "443; unset: none",
    )
    private_networks: Listed[Network] = Field(
        (),
        description="networks such as `10.1.0.0/16`, separated by commas, that the hosts may be "
        "in, besides public addresses; unset: none",
    )
    ca_file: Path | None = Field(
        None,
        description="PEM file with certificate authorities to accept for hosts, in addition to the "
        "public ones; unset: none",
    )
    delay_s: float = Field(
        1.0,
        ge=0,
        le=60,
        description="minimum time between two requests to a host, across all workers; a longer "
        "delay in its robots.txt takes precedence",
    )
    max_pages: int = Field(
        500, ge=1, le=100_000, description="maximum pages of a source, and of a host in a run"
    )
    max_mb: int = Field(
        200, ge=1, le=100_000, description="maximum MB downloaded from a host in a run"
    )
    timeout_s: int = Field(
        30, ge=1, le=600, description="time limit for a page, from the connection to the last byte"
    )

    @field_validator("ca_file")
    @classmethod
    def _is_readable(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError("a file in PEM format")
        return value

    @field_validator("directories")
    @classmethod
    def _are_absolute(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        if not all(one.is_absolute() for one in value):
            raise ValueError("paths that begin with /")
        return value

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(_HOST.fullmatch(one) for one in value):
            raise ValueError("names of hosts, such as docs.example.org or *.example.org:8080")
        return value


class BackupSettings(Section):
    """What `portal backup` writes."""

    recipients: Listed[str] = Field(
        (),
        description="public keys (age1…) that backups are encrypted for, separated by commas; keep "
        "their private keys elsewhere",
    )

    @field_validator("recipients")
    @classmethod
    def _are_public_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(_PUBLIC_KEY.fullmatch, value)):
            raise ValueError("public keys as age-keygen prints them (age1…)")
        return value


class McpSettings(Section):
    """The server of AI clients, `portal mcp`."""

    fetch_characters: int = Field(
        50_000,
        ge=1000,
        le=1_000_000,
        description="maximum characters of a document's text in a response",
    )


class ChromaSettings(Section):
    """The Chroma backend."""

    lexical_leg: Literal["native", "own"] = Field(
        "native",
        description="`own` ranks words in the portal if Chroma has no BM25 index of its own",
    )
