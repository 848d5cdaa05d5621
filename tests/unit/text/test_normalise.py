from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from portal.text.characters.normalise import clean, normalise

odd = st.text(
    max_size=25, alphabet="a ﬁ½ﷺ\u0301\u0323\u0327\0\u00ad\ufeff\ud800ｶﾞＡ가\u1100\u1161\u11a8가"
) | st.text(max_size=25)


def test_result_is_nfkc_without_what_crashes_models() -> None:
    assert clean("ﬁ\0 \ud800Ａ\u00adb\ufeff⼀") == "fi Ab一"
    assert clean("ﷺ" * 10) == unicodedata.normalize("NFKC", "ﷺ" * 10)


@given(odd)
def test_result_is_normalised(text: str) -> None:
    result = clean(text)
    assert "\0" not in result
    result.encode()
    assert clean(result) == result


@given(odd)
def test_every_range_maps_into_the_original(text: str) -> None:
    normalised = normalise(text)
    previous = 0
    for place in range(len(normalised.text)):
        start, end = normalised.original_span(place, place + 1)
        assert 0 <= start < end <= len(text)
        assert start >= previous
        previous = start


def test_plain_characters_map_to_themselves() -> None:
    text = "aﬁbﷺc\0d"
    normalised = normalise(text)
    for character in "abcd":
        place = normalised.text.index(character)
        start, end = normalised.original_span(place, place + 1)
        assert text[start:end] == character


def test_long_runs_of_marks_take_linear_time() -> None:
    assert clean("a" + "\u0301\u0323" * 200_000)
