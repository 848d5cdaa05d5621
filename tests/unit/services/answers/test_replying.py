"""The documents named by a request to compare."""

from __future__ import annotations

from uuid import UUID

from portal.services.answers.replying import _all_named


def test_titles_that_are_only_years_are_named_only_by_the_year() -> None:
    titles = {UUID(int=1): "2025.md", UUID(int=2): "2026.md"}
    assert _all_named("the team plan and the enterprise plan", titles) == []
    assert _all_named("2025 and 2026", titles) == list(titles)
