"""Replies to what asks nothing of the documents: greetings, thanks, tasks for a language model."""

from __future__ import annotations

import re

from portal.text.folding import fold

_GREETING = {
    "zh": "你好！我从您的文档里查找并引用原文。请直接提问，例如“年假有几天？”。",
    "en": "Hello! I find and quote passages from your documents. "
    "Ask a question, such as “How many days of leave do I get?”",
}
_THANKS = {"zh": "不客气。", "en": "You're welcome."}
_ABOUT = {
    "zh": "我是知识门户的问答功能，没有使用语言模型。我在您可以查看的文档中搜索，"
    "逐字引用最相关的句子并注明出处；文档没有写明时，会如实说明。",
    "en": "I answer questions for this portal, without a language model. I search the documents "
    "you can see, quote the sentences that answer with their sources, and say so when the "
    "documents do not answer.",
}
_NEEDS_MODEL = {
    "zh": "总结、翻译、改写和写作需要语言模型，而本站目前只引用原文。"
    "管理员可以通过 PORTAL_CHAT__PROVIDER 接入语言模型。您也可以就文档内容提出具体问题。",
    "en": "Summarizing, translating, rewriting and drafting need a language model, and this portal "
    "only quotes at the moment. An administrator can connect one with PORTAL_CHAT__PROVIDER. "
    "You can also ask a specific question about the documents.",
}

# Folded: lower case, simplified. They count only when nothing else is said.
_SAID = (
    (
        _GREETING,
        r"[你您]好[呀啊]?|大家好|嗨|哈[喽罗]|早上好|早安|下午好|晚上好|在吗",
        r"hi|hello|hey|(?:hi|hello) there|good (?:morning|afternoon|evening)",
    ),
    (
        _THANKS,
        r"(?:非常)?感谢|谢谢[你您了]?|多谢|辛苦了",
        r"thanks?(?: you)?(?: (?:very|so) much| a lot)?|thx|cheers",
    ),
    (
        _ABOUT,
        r"[你您]是谁|你叫什么(?:名字)?|你是(?:什么|机器人|人工智能|ai)吗?",
        r"[你您](?:能|会|可以)[做干]些?什么|你有什么功能|怎么用|如何使用",
        r"who are you|what are you|what can you do(?: for me)?|help|how does this work",
    ),
    (
        _NEEDS_MODEL,
        r"请?(?:帮我|麻烦)?(?:总结|概括|归纳|概述|翻译|改写|润色|扩写|缩写).{0,60}",
        r"请?(?:帮我)?(?:写|起草)[一个份篇封].{0,60}",
        r"(?:please |can you |could you )?(?:summari[sz]e|translate|rewrite|paraphrase)\b.{0,80}",
        r"(?:please |can you |could you )?(?:draft|compose|write|give) (?:me )?(?:an?|the) .{0,80}",
    ),
)
_AROUND = r"[\s!?.,~;:。！？，、～；：…]*"
_REPLIES = tuple(
    (re.compile(f"{_AROUND}(?:{'|'.join(patterns)}){_AROUND}"), reply) for reply, *patterns in _SAID
)


def find_reply(message: str, language: str) -> str | None:
    """Return the reply to a message that asks nothing of the documents; None for a question."""
    folded = fold(message).text.strip()
    for pattern, reply in _REPLIES:
        if pattern.fullmatch(folded):
            return reply["zh" if language == "zh" else "en"]
    return None
