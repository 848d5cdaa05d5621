"""What a question asks for, found once."""

from __future__ import annotations

from portal.answering.quoting.asked import Asked


def test_long_question_is_compared_by_its_first_words() -> None:
    assert len(Asked.of("".join(chr(0x4E00 + 5 * place) for place in range(4_000))).words) == 128
