"""Limits on answers running at once, for all users and for each."""

from __future__ import annotations

from uuid import uuid4

import pytest

from portal.errors import TooManyAnswers, TooManyOwnAnswers
from portal.services.answers.slots import AnswerSlots
from portal.settings import ChatSettings


def test_one_user_never_holds_all_slots() -> None:
    slots, settings, (ada, eve) = (
        AnswerSlots(),
        ChatSettings(concurrent_answers=5),
        (uuid4(), uuid4()),
    )
    held = [slots.take(ada, settings) for _ in range(2)]
    with pytest.raises(TooManyOwnAnswers) as refused:
        slots.take(ada, settings)
    assert refused.value.params == {"max": 2}
    held += [slots.take(eve, settings) for _ in range(2)]
    held += [slots.take(uuid4(), settings)]
    with pytest.raises(TooManyAnswers):
        slots.take(uuid4(), settings)
    assert slots.taken == 5
    held[0].release()
    held[0].release()
    assert slots.taken == 4
    slots.take(ada, settings)  # Dropped at once, which releases it.
    assert slots.taken == 4
    held.clear()
    assert slots.taken == 0


@pytest.mark.parametrize(
    ("slots", "each", "expected"),
    [(1, None, 1), (2, None, 1), (3, None, 2), (10, None, 5), (4, 4, 4)],
)
def test_one_user_gets_half_of_the_slots_by_default(
    slots: int, each: int | None, expected: int
) -> None:
    settings = ChatSettings(concurrent_answers=slots, concurrent_answers_each=each)
    assert settings.answers_per_user == expected
