"""The portal's own replies to messages that need no documents: greetings, tasks for a language
model, arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass

from portal.answering import arithmetic
from portal.answering.intents import Intent, chances
from portal.text.characters.folding import in_script_of

# From these chances of being a question a message is searched for, and may be.
_QUESTION, _MAY_ASK = 0.35, 0.02
# "What is the difference between A and B?" asks for a comparison if A and B are documents.
_MAY_COMPARE = 0.1
_ABOUT_DOCUMENTS = Intent.OUTLINE, Intent.COMPARISON
_ONLY_SIGNS = re.compile(r"[\s?？!！.。…,，~]+")
# "No, I meant interns" asks again, although it sounds like a complaint.
_ASKS_AGAIN = re.compile(
    r"\s*(?:不对?|不是|错了|no|nope|wrong)[\s,，.。!！]*"
    r"(?:我(?:是问|是说|的意思是|指的是|问的是|说的是)|i (?:meant?\b|was asking about\b))\s*\w",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class UnderstoodMessage:
    """What a message wants instead of an answer from the documents; `result` of a sum. With
    `may_ask` it is a question where no document has the title that it names."""

    intent: Intent
    result: str = ""
    may_ask: bool = False


_REPLIES = {
    Intent.GREETING: {
        "zh": "你好！我从您的文档里查找并引用原文。请直接提问，例如“年假有几天？”。",
        "en": "Hello! I find and quote passages from your documents. "
        "Ask a question, such as “How many days of leave do I get?”",
    },
    Intent.THANKS: {"zh": "不客气。", "en": "You're welcome."},
    Intent.FAREWELL: {"zh": "再见！", "en": "Goodbye!"},
    Intent.COMPLAINT: {
        "zh": "抱歉没有帮上忙。请换个说法再问一次，最好用文档里的词，也可以在回答下方反馈哪里不对。",
        "en": "I am sorry that this did not help. Ask again in other words, best in those of the "
        "documents, or say below the answer what is wrong with it.",
    },
    Intent.ABOUT: {
        "zh": "我是知识门户的问答功能，没有使用语言模型。我在您可以查看的文档中搜索，"
        "逐字引用回答问题的句子、列表和表格行，并注明出处；文档没有写明时，会如实说明。"
        "中文和英文都可以。您也可以问“有哪些文档？”，或者让我“总结”某份文档，我会列出它的提纲。",
        "en": "I answer questions for this portal, without a language model. I search the documents "
        "you can see, quote the sentences, list items and table rows that answer, with their "
        "sources, and say so when the documents do not answer, in Chinese and English. You can "
        "also ask “What documents are there?”, or have me “summarise” a document: I list its outline.",
    },
    Intent.DOUBT: {
        "zh": "我引用的都是文档原文，一字未改。点开引文标记，就能在文档中核对。"
        "如果文档已过时，或者引用得不对，请在回答下方反馈。",
        "en": "I quote documents word for word. Open a citation's marker to check it in its "
        "document. If that is outdated, or does not answer you, say so below the answer.",
    },
    Intent.NOW: {
        "zh": "我只根据文档回答，不知道现在的时间、日期和天气。",
        "en": "I answer from the documents alone, and do not know the time, the date or the weather.",
    },
    Intent.WRITING: {
        "zh": "翻译、改写和写作需要语言模型，而本站目前只引用原文。"
        "管理员可以在“管理”页面接入语言模型。您也可以就文档内容提出具体问题。",
        "en": "Translating, rewriting and drafting need a language model, and this portal only quotes "
        "at the moment. An administrator can connect one under Administration. "
        "You can also ask a specific question about the documents.",
    },
}


def understand(message: str) -> UnderstoodMessage | None:
    """Return what a message wants other than an answer from documents; None for a question."""
    if (result := arithmetic.compute(message)) is not None:
        return UnderstoodMessage(Intent.ARITHMETIC, result)
    if _ONLY_SIGNS.fullmatch(message):
        return UnderstoodMessage(Intent.ABOUT)
    if _ASKS_AGAIN.match(message):
        return None
    found = chances(message)
    is_question = found.pop(Intent.QUESTION)
    intent = max(found, key=found.__getitem__)
    if is_question > _QUESTION:
        may_compare = found[Intent.COMPARISON] > _MAY_COMPARE
        return UnderstoodMessage(Intent.COMPARISON, may_ask=True) if may_compare else None
    return UnderstoodMessage(intent, may_ask=intent in _ABOUT_DOCUMENTS and is_question > _MAY_ASK)


def reply_to(message: UnderstoodMessage, question: str, language: str) -> str | None:
    """Return the reply to a message that needs no documents; None where the documents decide."""
    if message.intent is Intent.ARITHMETIC:
        return message.result
    reply = _REPLIES.get(message.intent)
    if reply is None:
        return None
    return in_script_of(question, reply["zh"]) if language == "zh" else reply["en"]
