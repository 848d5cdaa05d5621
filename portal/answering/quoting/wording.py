"""The portal's own sentences around quotations, in the language and script of the question."""

from __future__ import annotations

from portal.domain.answering import ChatRequest
from portal.text.characters.folding import in_script_of

_WORDS = {
    "introduction": {
        "zh": "以下是文档中的原文摘录：",
        "en": "Quoted from your documents, word for word:",
    },
    "outline": {
        "zh": "概括需要语言模型。以下是《{title}》的提纲，每节列出第一句原文：",
        "en": "Summarising takes a language model. This is the outline of “{title}”, with the "
        "first sentence of each section, word for word:",
    },
    "section": {
        "zh": "上面引用的原文所在的章节：",
        "en": "The section that the last answer quotes from, word for word:",
    },
    "no_more": {
        "zh": "那一节没有更多内容了。点开上面的引用标记，可以在文档中继续阅读。",
        "en": "That section says no more. Open a citation above to read on in the document.",
    },
    "on_topic": {
        "zh": "文档提到了这个话题，但没有写明所问的内容。",
        "en": "The documents mention this, but do not say what you asked.",
    },
    "nothing": {
        "zh": "在已启用的文档中没有找到与此相关的内容。",
        "en": "Nothing about this was found in the documents in use.",
    },
    "nearest": {
        "zh": "没有找到与此相关的内容。下面是最接近的段落，可能与问题无关。",
        "en": "Nothing about this was found. The passages below are the nearest, and may be about "
        "something else.",
    },
    "part_on_topic": {
        "zh": "文档中没有写明：{part}",
        "en": "The documents do not say: {part}",
    },
    "part_nothing": {
        "zh": "文档中没有找到：{part}",
        "en": "Nothing was found for: {part}",
    },
}


def say(name: str, request: ChatRequest, **values: str) -> str:
    """Return one of the portal's own sentences."""
    text = _WORDS[name]["zh" if request.language == "zh" else "en"]
    # Titles and parts of the question keep their own script.
    text = in_script_of(request.question, text) if request.language == "zh" else text
    return text.format(**values)
