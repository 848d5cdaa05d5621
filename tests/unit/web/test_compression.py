"""Compression: who gets it, which responses are left alone, and that only the size changes."""

from __future__ import annotations

import gzip
import re

import pytest
from flask import Response

from portal.http.responses.compression import compress

GZIP = {"Accept-Encoding": "gzip"}


def test_compressed_response_is_the_same_and_smaller(app):
    client = app.test_client()
    plain, packed = client.get("/login"), client.get("/login", headers=GZIP)
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed.vary
    assert "Accept-Encoding" in plain.vary
    assert packed.content_length == len(packed.data) < len(plain.data) * 0.7
    token = re.compile(rb"[\w=-]{100,}")  # Masked in each response.
    assert token.sub(b"", gzip.decompress(packed.data)) == token.sub(b"", plain.data)


def test_bundles_are_compressed_and_cached(app):
    client = app.test_client()
    page = client.get("/login").text
    address = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    found = client.get(address, headers=GZIP)
    assert found.headers["Content-Encoding"] == "gzip"
    assert "immutable" in found.headers["Cache-Control"]
    assert gzip.decompress(found.data) == client.get(address).data


@pytest.mark.parametrize("accepts", ["", "identity", "gzip;q=0", "br"])
def test_clients_without_gzip_get_plain_text(app, accepts):
    headers = {"Accept-Encoding": accepts}
    assert "Content-Encoding" not in app.test_client().get("/login", headers=headers).headers


@pytest.mark.parametrize(
    "response",
    [
        Response(iter(["data: x\n\n" * 500]), mimetype="text/event-stream"),
        Response(iter(["x" * 5000]), mimetype="text/plain"),
        Response("x" * 5000, mimetype="image/png"),
        Response("x" * 5000, mimetype="text/plain", status=206),
        Response("short", mimetype="text/plain"),
    ],
)
def test_streams_pictures_and_partial_responses_are_not_compressed(app, response):
    with app.test_request_context("/", headers=GZIP):
        assert "Content-Encoding" not in compress(response).headers


def test_first_page_is_at_most_ten_requests_and_150_kb(app):
    client = app.test_client()
    page = client.get("/login", headers=GZIP)
    text = gzip.decompress(page.data).decode()
    addresses = {
        part.partition('"')[0]
        for mark in ('rel="stylesheet" href="', 'rel="stylesheet"\n            href="', 'src="')
        for part in text.split(mark)[1:]
    }
    found = [client.get(address, headers=GZIP) for address in addresses]
    assert {one.status_code for one in found} == {200}
    assert len(addresses) + 2 <= 10  # Plus the page and its icon.
    assert len(page.data) + sum(len(one.data) for one in found) < 150_000
    scripts = [one for one in found if "javascript" in one.mimetype]
    assert sum(len(script.data) for script in scripts) < 60_000
