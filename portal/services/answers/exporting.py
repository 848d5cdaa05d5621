"""Export of a conversation as a Markdown or Word file, and of an answer as text, with sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from uuid import UUID

from portal.domain.conversations import Citation, Message, MessageStatus, Role, SourceState
from portal.domain.documents import MediaType
from portal.domain.people import User
from portal.services import Services
from portal.services.answers import conversations
from portal.services.answers.word_documents import WordDocument
from portal.text.titles import one_line

# Exported files are in the reader's language, although no page renders them.
_WORDS = {
    "en": {
        "untitled": "Conversation",
        "question": "Question",
        "answer": "Answer",
        "cited": "Sources",
        "consulted": "Also consulted",
        "page": "p. {page}",
        "low": "low confidence",
        "stopped": "This answer was stopped.",
        "unavailable": "No answer was available.",
        "quoted": "The language model failed, and the documents are quoted instead.",
        "replaced": "the document has changed since",
        "trashed": "the document is in the trash",
        "gone": "the document is gone",
        "hash": "SHA-256 of the quotation",
    },
    "zh": {
        "untitled": "对话",
        "question": "问题",
        "answer": "回答",
        "cited": "来源",
        "consulted": "也参考了",
        "page": "第 {page} 页",
        "low": "置信度低",
        "stopped": "此回答已被停止。",
        "unavailable": "当时无法给出回答。",
        "quoted": "语言模型未能完成回答，因此改为引用原文。",
        "replaced": "文档此后已更改",
        "trashed": "文档在回收站中",
        "gone": "文档已不存在",
        "hash": "引文的 SHA-256",
    },
}
_SIGNS = re.compile(r"[\\`*_\[\]<>!#|~]")
_NOT_IN_FILE_NAMES = re.compile(r'[/\\:*?"<>|]')
_FILE_NAME_CHARACTERS = 80
_UNFINISHED = frozenset({MessageStatus.STOPPED, MessageStatus.UNAVAILABLE})
_NOTED = {
    SourceState.REPLACED: "replaced",
    SourceState.TRASHED: "trashed",
    SourceState.GONE: "gone",
}


class ExportFormat(StrEnum):
    MARKDOWN = "md"
    DOCX = "docx"


@dataclass(frozen=True, slots=True)
class ExportedFile:
    name: str
    media_type: str
    content: bytes


def export(
    services: Services,
    user: User,
    conversation_id: UUID,
    language: str,
    file_format: ExportFormat = ExportFormat.MARKDOWN,
) -> ExportedFile:
    """Return the whole conversation as a file: each question under a heading, each answer with its
    citations. `language` is `zh-CN` or `en`. Raises NotFound."""
    conversation = conversations.get(services, user, conversation_id)
    messages = conversations.messages(services, user, conversation_id)
    words = _words(language)
    title = one_line(conversation.title) or words["untitled"]
    # Some file systems reject these characters.
    stem = _NOT_IN_FILE_NAMES.sub("", title)[:_FILE_NAME_CHARACTERS].strip()
    name = f"{stem or words['untitled']}.{file_format}"
    day = conversation.created_at.astimezone(UTC).strftime("%Y-%m-%d")
    if file_format is ExportFormat.DOCX:
        return ExportedFile(name, MediaType.DOCX, _as_docx(title, day, messages, words))
    parts = [f"# {title}", day]
    for message in messages:
        parts += _message(message, words)
    return ExportedFile(name, "text/markdown", ("\n\n".join(parts) + "\n").encode())


def answer_with_sources(message: Message, language: str) -> str:
    """Return an answer as text to be pasted elsewhere, followed by the sources that it cites."""
    words = _words(language)
    cited = [one for one in message.citations if one.was_cited]
    lines = [message.content.strip()]
    if cited:
        lines += ["", f"{words['cited']}:" if words is _WORDS["en"] else f"{words['cited']}："]
        lines += [f"[{one.marker}] {one_line(one.title)}{_place(one, words)}" for one in cited]
    return "\n".join(lines)


def _words(language: str) -> dict[str, str]:
    return _WORDS["zh" if language.startswith("zh") else "en"]


def _place(citation: Citation, words: dict[str, str]) -> str:
    if citation.page is None:
        return ""
    return ", " + words["page"].format(page=citation.page_label or citation.page)


def _message(message: Message, words: dict[str, str]) -> Iterator[str]:
    if message.role is Role.USER:
        yield f"## {words['question']}"
        # Quoted, so that nothing in it becomes a heading of the file.
        yield _quoted(message.content)
        return
    yield f"### {words['answer']}"
    if message.content.strip():
        yield message.content.strip()
    if message.status in _UNFINISHED:
        yield f"*{_unfinished(message, words)}*"
    heading, sources = _sources(message)
    if sources:
        yield f"**{words[heading]}**"
        yield "\n".join(_source(one, words) for one in sources)


def _unfinished(message: Message, words: dict[str, str]) -> str:
    """Return why an answer is not the whole text of a model."""
    return words["quoted" if message.quotes_instead else message.status.value]


def _sources(message: Message) -> tuple[str, Sequence[Citation]]:
    """Return the key of the heading and the cited sources; if none is cited, those that were only
    consulted, which are many."""
    cited = [one for one in message.citations if one.was_cited]
    return ("cited", cited) if cited else ("consulted", message.citations)


def _as_docx(title: str, day: str, messages: Sequence[Message], words: dict[str, str]) -> bytes:
    document = WordDocument(title, language="zh-CN" if words is _WORDS["zh"] else "en")
    document.add_paragraph(day)
    for message in messages:
        if message.role is Role.USER:
            document.add_heading(words["question"], level=1)
            document.add_quotation(message.content)
            continue
        document.add_heading(words["answer"], level=2)
        document.add_markdown(message.content)
        if message.status in _UNFINISHED:
            document.add_paragraph(_unfinished(message, words))
        heading, sources = _sources(message)
        if sources:
            document.add_heading(words[heading], level=3)
        for one in sources:
            document.add_paragraph(f"[{one.marker}] {one_line(one.title)} ({_notes(one, words)})")
            if one.excerpt:
                document.add_quotation(one.excerpt)
            document.add_paragraph(f"{words['hash']}: {one.quote_sha256}")
    return document.as_bytes()


def _notes(citation: Citation, words: dict[str, str]) -> str:
    notes = [f"{round(citation.confidence * 100)}%"]
    if citation.page is not None:
        notes.insert(0, words["page"].format(page=citation.page_label or citation.page))
    if citation.low_confidence:
        notes.append(words["low"])
    if (state := _NOTED.get(citation.state)) is not None:
        notes.append(words[state])
    return ", ".join(notes)


def _source(citation: Citation, words: dict[str, str]) -> str:
    title = _literal(one_line(citation.title))
    lines = [f"- [{citation.marker}] {title} ({_notes(citation, words)})"]
    if citation.excerpt:
        lines.append(_quoted(_literal(citation.excerpt), indent="  "))
    lines.append(f"  {words['hash']}: `{citation.quote_sha256}`")
    return "\n".join(lines)


def _quoted(text: str, *, indent: str = "") -> str:
    return "\n".join(f"{indent}> {line}".rstrip() for line in text.strip().splitlines())


def _literal(text: str) -> str:
    """Escape Markdown: a document must not add a remote image or a heading."""
    return _SIGNS.sub(r"\\\g<0>", text)
