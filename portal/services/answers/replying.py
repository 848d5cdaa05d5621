"""Messages that are not questions: the portal's own replies, and the documents that a language
model reads as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from portal.answering import replies
from portal.answering.intents import Intent
from portal.answering.quoting.questions import has_name
from portal.answering.quoting.rendering import as_markdown
from portal.answering.replies import UnderstoodMessage
from portal.domain.documents.selection import AskScope
from portal.domain.people import User
from portal.store.answers import conversations as conversation_store
from portal.store.answers import sources as source_store
from portal.store.documents import rows as document_store
from portal.store.documents import switches as switch_store
from portal.store.session import Session
from portal.text.characters.folding import fold, in_script_of
from portal.text.terms.analyser import query_terms

_YEAR = re.compile(r"[\s(（_-]*(?:19|20)\d\d年?(?:[版度])?[\s)）_-]*")
_BETWEEN_WORDS = re.compile(r"[\s_-]+")
_MAX_LISTED = 30
_MAX_READ = 2000
_MAX_OUTLINED = 40
_MAX_READ_BY_MODEL = 60
_BESIDE_MODEL = frozenset({
    Intent.GREETING, Intent.THANKS, Intent.FAREWELL, Intent.LIST_DOCUMENTS, Intent.NOW,
    Intent.ARITHMETIC,
})  # fmt: skip

# Words that ask for an outline.
_REQUEST = """
总结 概括 归纳 概述 概要 摘要 提要 提纲 大纲 目录 要点 重点 梗概 大意 主旨 核心 观点 主要 大概 大致
内容 结论 简单 简要 简短 提炼 浓缩 精简 说说 讲讲 介绍 讲 说 写 列 列出 一下 请 帮 给 我 你 您 把
将 用 成 几条 几句 句话 三句话 一句话 这 这份 这个 这篇 文档 文件 资料 什么 哪些 的 了 是 有
summarise summarize summary outline overview gist tldr recap main key point takeaway highlight
brief short quick sum up boil down give show tell me the this that document file doc it about
what say cover sentence bullet line paragraph word please can could you in of for
"""

_WORDS = {
    "listed": {
        "zh": "目前可以查询的文档有 {enabled} 份（共 {total} 份）：",
        "en": "{enabled} of {total} documents are in use:",
    },
    "more": {"zh": "……另有 {count} 份。", "en": "… and {count} more."},
    "none": {
        "zh": "还没有文档。请先上传文档，然后再提问。",
        "en": "There are no documents yet. Upload some first, then ask again.",
    },
    "all_off": {
        "zh": "所有文档都已在此对话中停用，因此没有可供查询的内容。请至少启用一份文档。",
        "en": "All documents are switched off for this conversation, so there is nothing to answer "
        "from. Switch on at least one.",
    },
    "scope_off": {
        "zh": "这个问题所限定的范围内没有已启用的文档。请在此对话中启用它们，或换一个范围再提问。",
        "en": "Nothing that this question is about is switched on in this conversation. Switch it "
        "on, or ask about something else.",
    },
    "no_more": {
        "zh": "上一条回答没有引用原文，所以没有更多内容可以显示。请提出具体问题。",
        "en": "The last answer quotes nothing, so there is no more to show. Ask a specific "
        "question.",
    },
    "which": {
        "zh": "概括需要语言模型，而本站目前只引用原文。我可以列出文档的提纲：请写出文档标题，"
        "例如“总结《{title}》”。",
        "en": "Summarising needs a language model, and this portal only quotes at the moment. "
        "I can list a document's outline: name its title, as in “Summarise {title}”.",
    },
    "alike": {
        "zh": "以下文档也符合，可以写出标题再问，例如“总结《{title}》”：",
        "en": "These documents match as well. Name one by its title, as in “Summarise {title}”:",
    },
    "comparison": {
        "zh": "比较文档需要语言模型，而本站目前只引用原文。"
        "请就每份文档分别提问，或者让我“总结《{title}》”。",
        "en": "Comparing documents needs a language model, and this portal only quotes at the "
        "moment. Ask about each of them in turn, or have me “summarise {title}”.",
    },
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply to a message; `outlined` are the chunks of a document to outline above it, or with
    `is_more` those that the last answer quotes from."""

    text: str | None = None
    outlined: Sequence[UUID] = ()
    is_more: bool = False


def find_reply(
    session: Session, user: User, conversation_id: UUID | None, message: str, language: str,
    *, scope: AskScope | None = None, before: int | None = None,
) -> Reply | None:  # fmt: skip
    """Return the portal's own reply to a message; None for a question that documents can answer.
    `before` is the message's position, if it is in the conversation already."""
    understood = replies.understand(message)

    def say(name: str, **values: object) -> str:
        text = _WORDS[name]["zh" if language == "zh" else "en"].format(**values)
        return in_script_of(message, text) if language == "zh" else text

    if understood and (text := replies.reply_to(understood, message, language)):
        return Reply(text)
    if not switch_store.has_enabled(session, user, conversation_id, scope):
        is_scoped = scope or (
            conversation_id and conversation_store.get_scope(session, conversation_id)
        )
        sees_any = document_store.sees_any(session, user)
        return Reply(say("none" if not sees_any else "scope_off" if is_scoped else "all_off"))
    if understood is None:
        return None
    if understood.intent is Intent.MORE:
        cited = (
            source_store.last_cited_chunks(session, conversation_id, before=before)
            if conversation_id
            else ()
        )
        return Reply(None if cited else say("no_more"), cited, is_more=bool(cited))
    titles = _titles(session, user, conversation_id, scope)
    if understood.intent is Intent.LIST_DOCUMENTS:
        enabled_count, total_count = switch_store.count_enabled(
            session, user, conversation_id, scope=scope
        )
        head = say("listed", enabled=enabled_count, total=total_count)
        rest = enabled_count - _MAX_LISTED
        return Reply(_list(head, titles, say("more", count=rest) if rest > 0 else ""))
    return _reply_about(session, message, understood, titles, say)


def find_reply_beside_model(
    session: Session, user: User, conversation_id: UUID, message: str, language: str,
    *, scope: AskScope | None = None,
) -> Reply | None:  # fmt: skip
    """Return the portal's own reply to a message that a language model has no better answer to:
    a greeting, a sum, a request for the list of documents. None for other messages."""
    understood = replies.understand(message)
    if understood is None or understood.intent not in _BESIDE_MODEL:
        return None
    return find_reply(session, user, conversation_id, message, language, scope=scope)


def _reply_about(
    session: Session,
    message: str,
    understood: UnderstoodMessage,
    titles: dict[UUID, str],
    say: Callable[..., str],
) -> Reply | None:
    """Return the reply to a request to outline or compare documents; None for a question."""
    if understood.intent is Intent.COMPARISON:
        named = _all_named(message, titles)
        is_question = understood.may_ask and len(named) < 2  # noqa: PLR2004
        if not named or is_question:
            return None
        return Reply(say("comparison", title=as_markdown(titles[named[0]])))
    found = _find(session, message, titles, is_request=not understood.may_ask)
    if not found:
        title = as_markdown(next(iter(titles.values())))
        return None if understood.may_ask else Reply(say("which", title=title))
    outlined, *others = found
    chunks = source_store.first_chunks(session, outlined, limit=_MAX_OUTLINED)
    if not others:
        return Reply(outlined=chunks)
    head = say("alike", title=as_markdown(titles[others[0]]))
    return Reply(_list(head, {one: titles[one] for one in others}, ""), chunks)


def chunks_to_read(
    session: Session, user: User, conversation_id: UUID, message: str,
    *, scope: AskScope | None = None,
) -> tuple[UUID, ...]:  # fmt: skip
    """Return the first chunks of each document that a language model is to summarise or compare;
    none for other messages."""
    understood = replies.understand(message)
    if understood is None or understood.intent not in (Intent.OUTLINE, Intent.COMPARISON):
        return ()
    titles = _titles(session, user, conversation_id, scope)
    if understood.intent is Intent.COMPARISON:
        named = _all_named(message, titles)
        documents = named if len(named) > 1 else []
    else:
        documents = _find(session, message, titles, is_request=not understood.may_ask)[:1]
    return tuple(
        chunk_id
        for document_id in documents
        for chunk_id in source_store.first_chunks(
            session, document_id, limit=_MAX_READ_BY_MODEL // len(documents)
        )
    )


def _titles(
    session: Session, user: User, conversation_id: UUID | None, scope: AskScope | None
) -> dict[UUID, str]:
    listed = switch_store.list_switches(
        session, user, conversation_id, contains="", cursor=None, limit=_MAX_READ, scope=scope
    )
    return {one.document_id: one.title for one in listed.items if one.enabled}


def _all_named(message: str, titles: dict[UUID, str]) -> list[UUID]:
    """Return the documents whose whole title is in the text, or all that only their years tell
    apart: "this and last year's travel policy"."""
    folded = _spaced(fold(message).text)
    by_name: dict[str, list[UUID]] = {}
    for document_id, title in titles.items():
        by_name.setdefault(_YEAR.sub("", _plain(title)).strip(), []).append(document_id)
    in_years = {
        one
        for name, ones in by_name.items()
        if name and len(ones) > 1 and has_name(folded, name)
        for one in ones
    }
    return [
        document_id
        for document_id, title in titles.items()
        if (plain := _plain(title)) and (has_name(folded, plain) or document_id in in_years)
    ]


def _plain(title: str) -> str:
    """Return a title folded, without the ending of a file name and the signs between its words."""
    folded = fold(title).text
    return _spaced(folded.rpartition(".")[0] or folded)


def _spaced(folded: str) -> str:
    """Return a folded text with spaces for hyphens, as file names have them: on-call-rules."""
    return _BETWEEN_WORDS.sub(" ", folded).strip()


def _list(head: str, titles: dict[UUID, str], rest: str) -> str:
    lines = [f"- {as_markdown(title)}" for title in list(titles.values())[:_MAX_LISTED]]
    return "\n".join([head, "", *lines, *filter(None, [rest])])


def _find(
    session: Session, message: str, titles: dict[UUID, str], *, is_request: bool
) -> list[UUID]:
    """Return the documents that a message names equally well by their titles, or else by their
    first headings; the only one if it surely is a request."""
    if is_request and len(titles) == 1:
        return list(titles)
    return _named(message, titles) or _named(
        message, source_store.first_headings(session, list(titles))
    )


def _named(message: str, titles: dict[UUID, str]) -> list[UUID]:
    """Return the documents whose titles share most words with a request, at least half of those of
    the shorter one."""
    words = set(query_terms(message)) - _of_requests()
    folded = _spaced(fold(message).text)

    def shared(title: str) -> tuple[int, bool]:
        terms = set(query_terms(title))
        common = len(words & terms)
        is_enough = 2 * common >= min(len(words), len(terms))
        return common if is_enough else 0, has_name(folded, _plain(title))

    found = {document_id: shared(title) for document_id, title in titles.items()}
    best = max(found.values(), default=(0, False))
    return [one for one in titles if found[one] == best and best[0]]


@cache
def _of_requests() -> frozenset[str]:
    """Return the terms of a request that name no document."""
    return frozenset(query_terms(_REQUEST))
