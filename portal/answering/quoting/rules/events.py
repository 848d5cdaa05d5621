"""Events that a question may ask about: where someone was born is not where they died.

Vectors place such words close together, because texts say them about the same people and things.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# One event per line, in both languages; texts are folded.
_EVENTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bborn\b|\bbirth|出生|诞生|生于|生日",
        r"\bdied?\b|\bdies\b|\bdeath|passed away|去世|逝世|死于|死亡|过世",
        r"\bmarr(?:y|ie)|\bwedding|结婚|婚礼|嫁给|娶",
        r"\bgraduat|毕业",
        r"\bfounde[dr]|\bfounding|\bestablished|\b(?:been|is|was|were) set up\b|创[立办建始]|成立",
        r"\b(?:bought|purchased)\b|购[入买置]|买[的了入]",
        r"\binvent(?:s|ed|ors?|ions?)?\b|发明",
        r"\bdiscover(?:ed|y|er)|发现",
        (  # "Minutes: Ann Lee"
            r"\b(?:wrote|written|writer|author)|\bdrafted|\bminute(?:s:|[- ]taker)|记录人?:|整理人"
            r"|撰写|编写|起草|作者|写[了的下]|写[^一-龥]"
        ),
        r"\bdesigned|\bdesigner of\b|设计(?![部师团组软稿图文院费])",
        r"\bpainted|\bpainter|绘制|画[了的]",
        r"\bw[io]ns?\b|\bwinn|\bchampion|获胜|赢得|夺冠|冠军|获奖|荣获",
    )
)


# "If you discover a leak, …" does not ask about a discovery.
_CIRCUMSTANCE = re.compile(
    r"(?:\A|[,;。]|如果?|[若我你您]|我们|一旦|要是|万一|员工|有人)发现(?![了的者于])"
    r"|\b(?:i|we|you|someone|somebody|anyone) (?:have |has |just )?discovered\b"
)
OF_LIFE = _EVENTS[:2]
# "Ada Lovelace (1815–1852)", also with days and months.
_LIFE_DATES = re.compile(
    r"\([^()]{0,24}1\d{3}[^()]{0,16}[-—~至][^()]{0,16}(?:1\d|20)\d\d[^()]{0,12}\)"
)


Events = Sequence[re.Pattern[str]]


def find_events(question: str) -> Events:
    """Return the events that a folded question asks about."""
    asked = _CIRCUMSTANCE.sub(" ", question)
    return tuple(event for event in _EVENTS if event.search(asked))


def lacks_event(asked: Events, said: str, *, is_when: bool = False) -> bool:
    """Return whether a folded text lacks one of the events asked about. Dates of a life say when
    someone was born and died, not where."""
    tells_life = is_when and _LIFE_DATES.search(said) is not None
    return any(not (event.search(said) or (tells_life and event in OF_LIFE)) for event in asked)


def has_another_event(asked: Events, said: str, *, is_when: bool = False) -> bool:
    """Return whether a folded text lacks one of the events asked about, but names any event."""
    return lacks_event(asked, said, is_when=is_when) and any(one.search(said) for one in _EVENTS)
