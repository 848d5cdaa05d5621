"""Cases that share fixtures all run, and every failing one is reported."""

from __future__ import annotations

import pytest

from tests.factories.cases import for_each


def test_all_failing_cases_are_reported() -> None:
    ran = []

    @for_each("given", [0, 1, 2, 3])
    def divide(given: int) -> None:
        ran.append(given)
        with pytest.raises(ZeroDivisionError):
            1 / (given % 2)

    with pytest.RaisesGroup(pytest.fail.Exception, pytest.fail.Exception) as failed:
        divide()
    assert ran == [0, 1, 2, 3]
    notes = [error.__notes__ for error in failed.value.exceptions]
    assert notes == [["in the case (1,)"], ["in the case (3,)"]]
