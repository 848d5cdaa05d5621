from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.errors import UndecodableText
from portal.ingest.decoding import decode
from tests.factories.files import SIMPLIFIED_TEXT, TRADITIONAL_TEXT

JAPANESE = "日本語の文書を検索するためのシステムです。毎日使っています。"
KOREAN = "한국어 문서를 검색하는 시스템입니다. 안녕하세요, 반갑습니다."
RUSSIAN = "Привет, это русский текст для проверки кодировки файла."
FRENCH = "Café, résumé et naïveté – « voilà » des mots français à l’épreuve."


@pytest.mark.parametrize(
    ("text", "encoding", "reported"),
    [
        (SIMPLIFIED_TEXT, "utf-8", "utf-8"),
        (SIMPLIFIED_TEXT, "utf-8-sig", "utf-8-sig"),
        (SIMPLIFIED_TEXT, "utf-16", "utf-16"),
        (SIMPLIFIED_TEXT, "utf-32", "utf-32"),
        (SIMPLIFIED_TEXT, "utf-16-le", "utf-16-le"),
        (SIMPLIFIED_TEXT, "utf-16-be", "utf-16-be"),
        (SIMPLIFIED_TEXT, "gb18030", "gb18030"),
        (SIMPLIFIED_TEXT, "gbk", "gb18030"),
        (TRADITIONAL_TEXT, "gb18030", "gb18030"),
        (TRADITIONAL_TEXT, "big5", "big5"),
        (JAPANESE, "shift_jis", "shift_jis"),
        (JAPANESE, "euc_jp", "euc_jp"),
        (KOREAN, "euc_kr", "euc_kr"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8_r", "koi8-r"),
        (FRENCH, "cp1252", "cp1252"),
        ("plain ASCII", "ascii", "utf-8"),
        ("Plain words in two bytes each.", "utf-16-le", "utf-16-le"),
    ],
)
def test_encoding_is_recognised_and_nothing_is_lost(
    text: str, encoding: str, reported: str
) -> None:
    decoded = decode(text.encode(encoding), file_name="a.txt")
    assert decoded.text == text
    assert decoded.encoding == reported


@pytest.mark.parametrize("start", range(0, 40, 5))
@pytest.mark.parametrize("length", [8, 20, 50])
def test_short_gb18030_and_big5_texts_are_not_confused(start: int, length: int) -> None:
    for text, encoding in ((SIMPLIFIED_TEXT, "gb18030"), (TRADITIONAL_TEXT, "big5")):
        piece = (text * 2)[start : start + length]
        assert decode(piece.encode(encoding), file_name="a.txt").text == piece


def test_chosen_encoding_overrides_the_recognition() -> None:
    data = "Zażółć gęślą jaźń".encode("cp1250")
    assert decode(data, file_name="a.txt", encoding="cp1250").text == "Zażółć gęślą jaźń"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "no-such-encoding"])
def test_wrong_choice_is_refused_rather_than_dropping_bytes(encoding: str) -> None:
    with pytest.raises(UndecodableText):
        decode(SIMPLIFIED_TEXT.encode("gb18030"), file_name="a.txt", encoding=encoding)


def test_bytes_that_are_not_text_are_refused() -> None:
    with pytest.raises(UndecodableText):
        decode(bytes(range(256)) * 20, file_name="a.bin")


def test_broken_utf_8_with_a_byte_order_mark_is_refused() -> None:
    with pytest.raises(UndecodableText):
        decode(b"\xef\xbb\xbfabc\xff\xfe", file_name="a.txt")


@given(st.text())
def test_utf_8_is_always_decoded_exactly(text: str) -> None:
    if "\0" not in text and not text.startswith("\ufeff"):
        assert decode(text.encode(), file_name="a.txt").text == text


@given(st.binary(max_size=60))
def test_any_bytes_decode_whole_or_are_refused(data: bytes) -> None:
    try:
        decoded = decode(data, file_name="a.txt")
    except UndecodableText:
        return
    if any("not valid characters" in warning for warning in decoded.warnings):
        assert decoded.text.replace("\ufffd", "") in data.decode(decoded.encoding, "ignore")
        return
    strictly = data.decode(decoded.encoding)
    assert decoded.text in {strictly, strictly.removeprefix("\ufeff")}


def test_utf_8_with_a_few_nuls_stays_utf_8_and_counts_them() -> None:
    sentences = b"A plain sentence of an English report stands here. " * 2_400
    data = sentences[:100_000] + b"\0" + sentences[100_000:110_000] + b"\0" + sentences[110_000:]
    decoded = decode(data, file_name="a.txt")
    assert decoded.encoding == "utf-8"
    assert decoded.text == data.decode().replace("\0", "\ufffd")
    assert decoded.warnings == ("U+0000 (NUL), shown as “�” in the text: 2",)
    assert decode(sentences, file_name="a.txt").warnings == ()


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("Words in two bytes each.".encode("utf-16-le"), "cp1252"),
        ("Words in two bytes each.".encode("utf-16-le"), "utf-8"),
        (b"\xef\xbb\xbfone\0two\0", None),
        (b"words and then " * 5_000 + bytes(5_000), None),
    ],
)
def test_text_full_of_nuls_is_refused(data: bytes, encoding: str | None) -> None:
    with pytest.raises(UndecodableText):
        decode(data, file_name="a.txt", encoding=encoding)
