"""Values for the templates of messages: an answer's HTML, its sources and their state."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

from flask import Flask, get_template_attribute
from flask_babel import format_decimal, gettext
from markupsafe import Markup

from portal.answering.quoted import quoted_lines, quoted_tables
from portal.domain.answering import Outcome, SentenceSupport
from portal.domain.conversations import (
    AnswerBegun,
    Citation,
    FeedbackReason,
    Message,
    MessageStatus,
    Replay,
    Role,
    SourceState,
)
from portal.domain.search.degraded import ANSWER_CUT_OFF, PARTLY_READ
from portal.errors import N_
from portal.services.answers.drafts import READ_OF
from portal.services.answers.exporting import answer_with_sources
from portal.services.answers.writers import EXTRACTIVE
from portal.text.layout.tables import split_cells
from portal.web.answers.html import to_html
from portal.web.i18n import language
from portal.web.search.explanations import degraded_notices

STATE_WORDS = {
    SourceState.REPLACED: N_("The document has changed"),
    SourceState.TRASHED: N_("Document in the trash"),
    SourceState.GONE: N_("Document deleted"),
}
STATE_ICONS = {
    SourceState.REPLACED: "file-clock",
    SourceState.TRASHED: "trash-2",
    SourceState.GONE: "file-x",
}
REASON_WORDS = {
    FeedbackReason.WRONG: N_("Wrong"),
    FeedbackReason.INCOMPLETE: N_("Incomplete"),
    FeedbackReason.OUTDATED: N_("Outdated"),
    FeedbackReason.BAD_SOURCE: N_("Bad source"),
}
_ESCAPED = re.compile(r"\\([^\w\s]|_)")
# Answers with these statuses have no quotation and show the chunks that were found.
SHOWS_CHUNKS = frozenset({MessageStatus.ABSTAINED, MessageStatus.UNAVAILABLE})


def answer_html(message: Message, macro: str = "marker") -> Markup:
    """Render an answer, with its markers as this macro of citations and unsupported sentences
    flagged."""
    by_number = {source.marker: source for source in cited(message)}
    marker = get_template_attribute("macros/citations.html", macro)
    flag = get_template_attribute("macros/citations.html", "unsupported_flag")
    shown: set[int] = set()

    def marker_html(number: int) -> Markup:
        # Of several markers with the same number, only the first gets an id, for links back.
        is_first = number not in shown
        shown.add(number)
        return Markup(marker(message, by_number[number], is_first))  # noqa: S704 - a macro's

    return to_html(
        message.content,
        markers=by_number,
        marker_html=marker_html,
        flag_html=flag(),
        support=judged(message),
    )


def cited(message: Message) -> tuple[Citation, ...]:
    """Return the cited sources by number."""
    return _in_order(source for source in message.citations if source.was_cited)


def quoted_header(message: Message, citation: Citation) -> tuple[str, ...]:
    """Return the header below which an answer quotes the rows of a citation; empty for other
    text."""
    first = citation.excerpt.partition("\n")[0]
    cells = [first[start:end].strip() for start, end in split_cells(first, 0, len(first))]
    for table in quoted_tables(quoted_lines(message.content)):
        width = len(table.header)
        filled = cells + [""] * (width - len(cells))
        if width > 1 and any(list(map(_unescaped, row)) == filled for row in table.rows):
            return tuple(map(_unescaped, table.header))
    return ()


def _unescaped(markdown: str) -> str:
    return _ESCAPED.sub(r"\1", markdown)


def consulted(message: Message) -> tuple[Citation, ...]:
    """Return the sources that were read but not cited, by number."""
    return _in_order(source for source in message.citations if not source.was_cited)


def changed_count(message: Message) -> int:
    """Return how many cited sources have changed since; without citations, how many of those that
    were read."""
    sources = cited(message) or message.citations
    return sum(source.state is not SourceState.CURRENT for source in sources)


def judged(message: Message) -> tuple[SentenceSupport, ...]:
    """Return the sentences that can be compared with their sources: complete ones with letters."""
    content, degraded = message.content, message.replay.degraded if message.replay else ()
    is_cut = message.status is MessageStatus.STOPPED or ANSWER_CUT_OFF in degraded
    end = len(content.rstrip()) - is_cut
    return tuple(
        sentence
        for sentence in message.support
        if sentence.end <= end and any(map(str.isalpha, content[sentence.start : sentence.end]))
    )


def outcome_of(message: Message) -> str | None:
    """Return the outcome of an extractive answer; None for one of a language model."""
    return message.replay.extra.get("outcome") if message.replay else None


def shows_chunks(message: Message) -> bool:
    """Return whether the chunks that were found are shown below an answer."""
    has_answered = outcome_of(message) in {Outcome.REPLY, Outcome.QUOTED}
    return message.status in SHOWS_CHUNKS and not has_answered


def answer_notices(replay: Replay) -> list[str]:
    """Return a sentence for each thing that the search or the answer lacks."""
    notices = degraded_notices([one for one in replay.degraded if one != PARTLY_READ])
    if PARTLY_READ in replay.degraded:
        read, total = replay.extra[READ_OF]
        words = {"read": format_decimal(read), "total": format_decimal(total)}
        notices.append(gettext("Read the first %(read)s of %(total)s passages.", **words))
    return notices


def lacks_documents(message: Message) -> bool:
    """Return whether there was no document to answer from, and the reply says so."""
    is_reply = outcome_of(message) == Outcome.REPLY
    return is_reply and message.replay is not None and not message.replay.enabled_count


def unsupported_count(message: Message) -> int:
    return sum(sentence.is_supported is False for sentence in judged(message))


def searched_for(message: Message, question: str | None) -> str | None:
    """Return the search query if it differs from the question."""
    query = message.replay.search_query if message.replay else ""
    return query if query and question is not None and query.strip() != question.strip() else None


def begun(began: AnswerBegun) -> Message:
    """Return the empty answer that is about to be written."""
    return replace(
        began.question,
        id=began.answer_id,
        role=Role.ASSISTANT,
        content="",
        status=MessageStatus.STREAMING,
        citations=(),
        support=(),
        replay=None,
        feedback=None,
    )


def questions_of(messages: Iterable[Message]) -> dict[UUID, str]:
    """Map each answer's id to its question."""
    question, found = "", {}
    for message in messages:
        if message.role is Role.USER:
            question = message.content
        else:
            found[message.id] = question
    return found


def writer_words(provider: str, model: str) -> str:
    """Return the name of the writer of answers."""
    if provider == EXTRACTIVE:
        return str(gettext("Quotations only · no language model"))
    return model or provider


def init_app(app: Flask) -> None:
    app.jinja_env.globals.update(_globals())


def _globals() -> dict[str, Any]:
    return {
        "answer_html": answer_html,
        "answer_with_sources": lambda message: answer_with_sources(message, language()),
        "cited_sources": cited,
        "quoted_header": quoted_header,
        "consulted_sources": consulted,
        "changed_count": changed_count,
        "unsupported_count": unsupported_count,
        "searched_for": searched_for,
        "writer_words": writer_words,
        "feedback_reasons": lambda: {key: gettext(word) for key, word in REASON_WORDS.items()},
        "shows_passages": shows_chunks,
        "outcome_of": outcome_of,
        "lacks_documents": lacks_documents,
        "state_word": lambda state: gettext(STATE_WORDS[state]),
        "state_icon": STATE_ICONS.__getitem__,
        "answer_notices": answer_notices,
    }


def _in_order(sources: Iterable[Citation]) -> tuple[Citation, ...]:
    return tuple(sorted(sources, key=lambda source: source.marker))
