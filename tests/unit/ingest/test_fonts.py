"""Fonts that replace those that PDFs do not embed."""

from __future__ import annotations

from pathlib import Path

import pytest
import reportlab

from portal.ingest.fonts import CHINESE, Face, choose_fonts, read_faces

VERA = Path(reportlab.__file__).parent / "fonts" / "VeraBd.ttf"
GB, GREEK = 1 << 18, 1 << 3


def face(
    name: str, *, weight: int = 400, serif: bool = False, pages: int = GB, size: int = 1
) -> Face:
    return Face(Path(name), size, 0, name, weight, serif, False, pages)


def chosen(*faces: Face) -> dict[tuple[bool, bool], str]:
    fonts = choose_fonts(faces)
    return {(font.is_serif, font.is_bold): font.path for font in fonts if font.charset == CHINESE}


def test_names_weights_and_styles_are_read() -> None:
    (vera,) = read_faces(VERA)
    assert (vera.name, vera.weight, vera.is_serif, vera.is_italic, vera.offset) == (
        "Bitstream Vera Sans", 700, False, False, 0,
    )  # fmt: skip


def test_shapes_of_the_language_come_before_style_and_weight() -> None:
    found = chosen(
        face("Pan CJK JP", weight=700, serif=True), face("Pan CJK SC"), face("Greek", pages=GREEK)
    )
    assert set(found.values()) == {"Pan CJK SC"}
    assert len(found) == 4


def test_font_has_the_style_and_weight_asked_for() -> None:
    songti, heiti, bold = (
        face("Songti", serif=True),
        face("Heiti"),
        face("Heiti Bold", weight=700),
    )
    assert chosen(songti, heiti, bold) == {
        (True, False): "Songti", (True, True): "Songti",
        (False, False): "Heiti", (False, True): "Heiti Bold",
    }  # fmt: skip


def test_fonts_that_would_fill_the_memory_are_left_out() -> None:
    assert not chosen(face("Huge", size=300 << 20))


@pytest.mark.parametrize("content", [b"", b"ttcf", b"\0\1\0\0" + bytes(200), b"\xff" * 500])
def test_broken_fonts_raise_expected_errors(tmp_path: Path, content: bytes) -> None:
    import struct

    path = tmp_path / "broken.ttf"
    path.write_bytes(content)
    with pytest.raises((OSError, struct.error, KeyError)):
        list(read_faces(path))
