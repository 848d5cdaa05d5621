"""The overview: the portal's state and plots drawn by the server; a page of UI components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import render_template
from flask_babel import format_date, format_decimal, gettext

from portal.domain.overview import Bucket, Day
from portal.http import context
from portal.services.operations import health
from portal.services.operations.reports import overview
from portal.web.blueprint import PageBlueprint
from portal.web.presenters import file_size

blueprint = PageBlueprint("admin_overview", __name__, "/admin", context.for_administrators)

# tokens.css describes their use.
COLOURS = (
    *("paper", "paper-raised", "paper-sunken", "ink", "ink-soft", "ink-faint", "line"),
    *("line-strong", "accent", "accent-strong", "accent-soft", "seal", "danger", "danger-soft"),
    *("good", "good-soft", "caution", "caution-soft", "mark"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a plot: its height, and a highlighted part of it."""

    label: str
    value: float
    words: str
    part: float = 0
    part_words: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars, shown as a picture and as a table. The `…_words` are the headings of the table."""

    name: str
    title: str
    summary: str
    label_words: str
    value_words: str
    bars: Sequence[Bar]
    part_words: str = ""

    @property
    def largest(self) -> float:
        return max((bar.value for bar in self.bars), default=0)


@blueprint.get("/overview")
def show() -> str:
    services, user = context.caller()
    found = overview.show(services, user)
    vector_store = health.check_vector_store(services)
    return render_template(
        "pages/operations/admin_overview.html",
        plots=(
            _searches(
                "latency", gettext("Search time"), gettext("Milliseconds"), found.latency_s, 1000
            ),
            _searches("hits", gettext("Search results"), gettext("Results"), found.hits),
            _answers(found.days),
            _queue(found.days, found.waiting, found.working),
            _storage(found.days),
        ),
        health=health.check(services),
        vector_store=vector_store,
        finds_by_meaning=health.finds_by_meaning(vector_store),
    )


@blueprint.get("/components")
def show_components() -> str:
    bars = [Bar(str(n), n % 5 + 1, str(n % 5 + 1), n % 2, str(n % 2)) for n in range(1, 13)]
    plot = Plot(
        "example", gettext("Example"), "", gettext("Day"), gettext("Value"), bars, gettext("Part")
    )
    return render_template("pages/operations/components.html", colours=COLOURS, plot=plot)


def _searches(
    name: str, title: str, label_words: str, buckets: Sequence[Bucket], factor: int = 1
) -> Plot:
    """Return a plot of searches by a value, which `factor` converts to the displayed unit."""
    count = _number(sum(bucket.count for bucket in buckets))
    return Plot(
        name,
        title,
        gettext("%(count)s searches since the server started.", count=count),
        label_words,
        gettext("Searches"),
        [Bar(_up_to(bucket, factor), bucket.count, _number(bucket.count)) for bucket in buckets],
    )


def _up_to(bucket: Bucket, factor: int) -> str:
    if bucket.limit is None:
        return str(gettext("more"))
    limit = _number(bucket.limit * factor)
    return f"≤ {limit}" if bucket.limit else limit


def _answers(days: Sequence[Day]) -> Plot:
    answered, unanswered = sum(one.answers for one in days), sum(one.unanswered for one in days)
    return Plot(
        "answers",
        gettext("Answers"),
        gettext(
            "%(count)s answers in the last %(days)s days, %(unanswered)s without an answer in the "
            "documents.",
            count=_number(answered),
            days=len(days),
            unanswered=_number(unanswered),
        ),
        gettext("Day"),
        gettext("Answers"),
        [_bar(day, day.answers, day.unanswered) for day in days],
        gettext("No answer"),
    )


def _bar(day: Day, value: int, part: int) -> Bar:
    return Bar(_date(day), value, _number(value), part, _number(part))


def _queue(days: Sequence[Day], waiting: int, working: int) -> Plot:
    return Plot(
        "queue",
        gettext("Queue"),
        gettext(
            "%(waiting)s queued, %(working)s processing. By day: processed, and failed among them.",
            waiting=_number(waiting),
            working=_number(working),
        ),
        gettext("Day"),
        gettext("Processed"),
        [_bar(day, day.read + day.failed, day.failed) for day in days],
        gettext("Failed"),
    )


def _storage(days: Sequence[Day]) -> Plot:
    last = days[-1].stored_bytes if days else 0
    return Plot(
        "storage",
        gettext("Storage"),
        gettext("%(size)s of documents, including the trash.", size=file_size(last)),
        gettext("Day"),
        gettext("Size"),
        [Bar(_date(day), day.stored_bytes, file_size(day.stored_bytes)) for day in days],
    )


def _date(day: Day) -> str:
    return str(format_date(day.day, format="medium"))


def _number(value: float) -> str:
    return str(format_decimal(value))
