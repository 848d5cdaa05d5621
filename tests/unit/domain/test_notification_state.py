"""A few documents are announced at once, those of an import together."""

from __future__ import annotations

import pytest

from portal.domain.documents.notifications import (
    FEW_HELD_S,
    MANY_IN_WORK,
    MAX_HELD_S,
    NotificationState,
)


@pytest.mark.parametrize(
    ("in_work", "waiting_s", "is_due"),
    [
        (0, None, False),
        (MANY_IN_WORK, None, False),
        (0, 0.0, True),
        (MANY_IN_WORK - 1, FEW_HELD_S - 1, False),
        (MANY_IN_WORK - 1, FEW_HELD_S, True),
        (MANY_IN_WORK, MAX_HELD_S - 1, False),
        (MANY_IN_WORK, MAX_HELD_S, True),
    ],
)
def test_jobs_in_progress_delay_notifications_but_not_forever(
    in_work: int, waiting_s: float | None, is_due: bool
) -> None:
    assert NotificationState(unread=3, in_work=in_work, waiting_s=waiting_s).is_due is is_due
