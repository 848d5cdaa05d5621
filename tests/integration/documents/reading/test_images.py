"""Images in documents: shown in their place in the text, decoded and encoded again."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from flask.testing import FlaskClient
from PIL import Image

from portal import create_app
from portal.domain.documents import Visibility
from portal.services.documents import library
from tests.conftest import Portal
from tests.factories.files import illustrated

IMAGE = re.compile(r'<img src="(/documents/[^"]+/images/[^"]+)"')


@pytest.fixture
def client(portal: Portal) -> Iterator[FlaskClient]:
    yield create_app(portal.services).test_client()
    portal.services.page_readers.close()


@pytest.mark.parametrize("suffix", illustrated.FORMATS)
def test_images_are_shown_where_the_document_has_them(
    client: FlaskClient, portal: Portal, suffix: str
) -> None:
    content = illustrated.FORMATS[suffix](illustrated.png())
    document = portal.add(content, name=f"lamps.{suffix}")
    page = client.get(f"/documents/{document.id}", headers=portal.headers()).text
    (address,) = IMAGE.findall(page)
    above, below = page.index("Above the image."), page.find("Below the image.")
    assert above < page.index(address)
    assert suffix == "pptx" or page.index(address) < below
    sent = client.get(address, headers=portal.headers())
    assert sent.headers["Content-Type"] == "image/png"
    assert "private" in sent.headers["Cache-Control"] or "no-cache" in sent.headers["Cache-Control"]
    shown = Image.open(io.BytesIO(sent.data))
    assert (shown.format, shown.size) == ("PNG", (300, 120))
    assert re.search(rf'src="{re.escape(address)}" width="300" height="120"', page)


def test_large_images_are_sent_small_and_embedded_ones_leave_no_text(
    client: FlaskClient, portal: Portal
) -> None:
    noise = Image.merge("RGB", [Image.effect_noise((3000, 400), 90) for _ in range(3)])
    written = io.BytesIO()
    noise.save(written, "PNG")
    document = portal.add(illustrated.notes(written.getvalue()), name="noise.md")
    page = client.get(f"/documents/{document.id}", headers=portal.headers()).text
    assert "base64" not in page
    (address,) = IMAGE.findall(page)
    sent = client.get(address, headers=portal.headers())
    assert sent.headers["Content-Type"] == "image/jpeg"
    shown = Image.open(io.BytesIO(sent.data))
    assert shown.width == 1400
    assert f'width="{shown.width}" height="{shown.height}"' in page
    assert len(sent.data) < len(written.getvalue()) / 3


def test_images_are_seen_by_those_who_see_the_document(client: FlaskClient, portal: Portal) -> None:
    content = illustrated.word(illustrated.png())
    secret = portal.add(content, name="secret.docx", visibility=Visibility.PRIVATE)
    own, other = portal.headers(), portal.headers(portal.user("ada"))
    (address,) = IMAGE.findall(client.get(f"/documents/{secret.id}", headers=own).text)
    assert client.get(address, headers=own).status_code == 200
    for asked in (address, address.replace(str(secret.id), str(uuid4()))):
        assert client.get(asked, headers=other).status_code == 404
    assert client.get(address[:-4] + "0000", headers=own).status_code == 404
    library.delete_document(portal.services, portal.admin, secret.id)
    assert client.get(address, headers=own).status_code == 404


def test_broken_images_are_missing_and_do_not_stop_others(
    client: FlaskClient, portal: Portal
) -> None:
    broken = [b"\x89PNG\r\n\x1a\n" + bytes(200), illustrated.SCRIPT, b"GIF89a" + bytes(40)]
    bomb = illustrated.png(size=(20_000, 3_000))
    text = b"".join(map(illustrated.notes, [*broken, bomb, illustrated.png()]))
    document = portal.add(text, name="mixed.md")
    page = client.get(f"/documents/{document.id}", headers=portal.headers()).text
    sent = [client.get(image, headers=portal.headers()) for image in IMAGE.findall(page)]
    assert [answer.status_code for answer in sent] == [404, 404, 404, 404, 200]
