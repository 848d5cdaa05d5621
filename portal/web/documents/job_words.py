"""Job progress in the reader's language."""

from __future__ import annotations

from datetime import UTC, datetime

from flask import Flask
from flask_babel import format_time, format_timedelta, gettext, ngettext

from portal.domain.documents.jobs import Job, JobStage, JobStatus
from portal.http.messages import failure_message

# Before this, an estimate of the remaining time would only be a guess.
MIN_ELAPSED_S = 3.0


def stage_words(job: Job) -> str:
    """Return the stage of a job with its counts; empty while it is unknown."""
    if job.stage is JobStage.READING and not job.total:
        words = gettext("Reading the file")
    elif job.stage is JobStage.READING:
        words = ngettext(
            "Reading: %(done)s of %(num)s page", "Reading: %(done)s of %(num)s pages",
            job.total, done=job.done
        )  # fmt: skip
    elif job.stage is JobStage.EMBEDDING:
        words = ngettext(
            "Embedding: %(done)s of %(num)s passage", "Embedding: %(done)s of %(num)s passages",
            job.total, done=job.done
        ) + _remaining_words(job)  # fmt: skip
    else:
        words = ""
    return str(words)


def _remaining_words(job: Job) -> str:
    """Return the estimated remaining time of embedding; empty in the first seconds."""
    if job.started_at is None or not job.done:
        return ""
    elapsed = datetime.now(UTC) - job.started_at
    if elapsed.total_seconds() < MIN_ELAPSED_S:
        return ""
    remaining = elapsed * ((job.total - job.done) / job.done)
    if remaining.total_seconds() < 1:
        return ""
    words = gettext("about %(time)s left", time=format_timedelta(remaining))
    return f" · {words}"


def waiting_words(job: Job) -> str:
    """Return why a job waits for another attempt, and until when; empty if it does not wait."""
    if job.status is not JobStatus.QUEUED or job.retry_at is None or job.failure is None:
        return ""
    words = gettext(
        "Attempt %(number)s failed: %(reason)s The next one is due at %(time)s.",
        number=job.attempts,
        reason=failure_message(job.failure),
        time=format_time(job.retry_at, format="medium"),
    )
    return str(words)


def duration_words(job: Job) -> str:
    """Return how long a job took from its first attempt to its end; empty before that."""
    if job.started_at is None or job.finished_at is None:
        return ""
    seconds = max(1, round((job.finished_at - job.started_at).total_seconds()))
    minutes, rest = divmod(seconds, 60)
    if minutes:
        return str(gettext("took %(minutes)s min %(seconds)s s", minutes=minutes, seconds=rest))
    return str(ngettext("took %(num)s second", "took %(num)s seconds", seconds))


def retried_words(count: int) -> str:
    """Return the message about how many documents are queued again."""
    if not count:
        return str(gettext("No failed documents."))
    return str(
        ngettext("%(num)s document is queued again.", "%(num)s documents are queued again.", count)
    )


def init_app(app: Flask) -> None:
    app.jinja_env.globals.update(
        stage_words=stage_words,
        waiting_words=waiting_words,
        duration_words=duration_words,
    )
