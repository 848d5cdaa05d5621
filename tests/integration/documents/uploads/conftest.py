"""Fixtures for the tests of uploads."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from portal.services import Services
from tests.conftest import Portal


@pytest.fixture
def small(make_services: Callable[..., Services]) -> Portal:
    """Return a portal that accepts files of up to a megabyte."""
    return Portal.of(make_services(max_upload_mb=1))


DOCUMENTS = "/api/knowledge/documents"
KB, MB = 1024, 1024 * 1024


def post(client: FlaskClient, headers: dict[str, str], *files: tuple[bytes, str]) -> TestResponse:
    data = {"file": [(io.BytesIO(content), name) for content, name in files]}
    return client.post(DOCUMENTS, headers=headers, data=data)


def send(client: FlaskClient, headers: dict[str, str], *files: tuple[bytes, str]) -> TestResponse:
    """Upload as the form does without JavaScript."""
    data = {"file": [(io.BytesIO(content), name) for content, name in files]}
    return client.post("/documents", headers=headers, data=data)


def rows_of(portal: Portal, table: str) -> int:
    return int(portal.scalar(f"SELECT count(*) FROM {table}") or 0)


class Body(io.RawIOBase):
    """A multipart body with one file of the given size, generated as it is read."""

    BEGIN = (
        b"--x\r\nContent-Disposition: form-data; name=file; filename=big.txt\r\n"
        b"Content-Type: text/plain\r\n\r\n"
    )
    END = b"\r\n--x--\r\n"

    def __init__(self, size_bytes: int) -> None:
        self.length = len(self.BEGIN) + size_bytes + len(self.END)
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), 64 * KB, self.length - self.read_bytes)
        for place in range(count) if self._is_at_an_end(count) else ():
            buffer[place] = self._byte(self.read_bytes + place)
        if not self._is_at_an_end(count):
            buffer[:count] = b"word and " * (count // 9) + b"." * (count % 9)
        self.read_bytes += count
        return count

    def _is_at_an_end(self, count: int) -> bool:
        after = self.length - len(self.END)
        return self.read_bytes < len(self.BEGIN) or self.read_bytes + count > after

    def _byte(self, place: int) -> int:
        if place < len(self.BEGIN):
            return self.BEGIN[place]
        from_end = place - (self.length - len(self.END))
        return self.END[from_end] if from_end >= 0 else ord("a")

    def post(self, client: FlaskClient, headers: dict[str, str]) -> TestResponse:
        length, kind = str(self.length), "multipart/form-data; boundary=x"
        sent = {"wsgi.input": self, "CONTENT_LENGTH": length, "CONTENT_TYPE": kind}
        return client.post(DOCUMENTS, headers=headers, environ_overrides=sent)
